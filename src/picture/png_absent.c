/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of png_write.c where libpng was not there to build with. */
#include "picture/png_write.h"

#include "attn_picture.h"
#include "core/diag.h"

const char *attn_picture_formats(void)
{
    return "svg";
}

void attn__png_write_rows(const attn__png_source *source,
                          attn__stream *stream)
{
    (void)source;
    if (stream->status == ATTN_OK)
        stream->status = attn__fail(&stream->diag, ATTN_E_UNSUPPORTED, "png",
                                    "is not written by this build, for want "
                                    "of libpng");
}

void attn__png_write(attn__raster *raster, attn__stream *stream)
{
    (void)raster;
    attn__png_write_rows(NULL, stream);
}
