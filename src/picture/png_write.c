/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing PNG by libpng, whose memory comes from our allocator, whose output
 * goes to our stream, and whose errors end here: it leaves by longjmp, so what
 * must survive lies in a struct outside of the function that it leaves. */
#include "picture/png_write.h"

#include <png.h>
#include <setjmp.h>

#include "attn_picture.h"
#include "core/alloc.h"

const char *attn_picture_formats(void)
{
    return "svg png";
}

typedef struct job {
    const attn__png_source *source;
    attn__stream *stream;
    png_structp png;
    png_infop info;
    uint8_t *samples; /* one row */
} job;

static png_voidp allocate(png_structp png, png_alloc_size_t size)
{
    (void)png;
    return attn__alloc(size);
}

static void release(png_structp png, png_voidp ptr)
{
    (void)png;
    attn__free(ptr);
}

static void put(png_structp png, png_bytep data, size_t n)
{
    job *j = png_get_io_ptr(png);

    attn__stream_put(j->stream, data, n);
    /* No more work for a file that is lost. */
    if (j->stream->status != ATTN_OK)
        png_error(png, "");
}

static void flush(png_structp png)
{
    (void)png;
}

/* What libpng can complain of here is memory; the stream complains itself. */
static void leave(png_structp png, png_const_charp message)
{
    job *j = png_get_error_ptr(png);

    if (j->stream->status == ATTN_OK)
        j->stream->status = attn__fail(&j->stream->diag, ATTN_E_NOMEM, "png",
                                       "%s", message);
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void write_rows(job *j)
{
    const attn__png_source *from = j->source;

    if (setjmp(png_jmpbuf(j->png)))
        return;
    png_set_write_fn(j->png, j, put, flush);
    png_set_IHDR(j->png, j->info, (png_uint_32)from->width,
                 (png_uint_32)from->height, 8,
                 from->channels == 3 ? PNG_COLOR_TYPE_RGB
                                     : PNG_COLOR_TYPE_RGB_ALPHA,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(j->png, j->info);
    for (int64_t y = 0; y < from->height; y++) {
        from->row(from->from, y, j->samples);
        png_write_row(j->png, j->samples);
    }
    png_write_end(j->png, j->info);
}

void attn__png_write_rows(const attn__png_source *source,
                          attn__stream *stream)
{
    job j = {.source = source, .stream = stream};

    if (stream->status != ATTN_OK)
        return;
    j.samples = attn__calloc((size_t)source->width, (size_t)source->channels);
    j.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &j, leave, ignore,
                                      NULL, allocate, release);
    if (j.png)
        j.info = png_create_info_struct(j.png);
    if (j.samples && j.info)
        write_rows(&j);
    else
        stream->status = attn__fail(&stream->diag, ATTN_E_NOMEM, "png",
                                    "no memory to write it");
    png_destroy_write_struct(&j.png, &j.info);
    attn__free(j.samples);
}

static void raster_row(void *from, int64_t y, uint8_t *rgb)
{
    attn__raster_row(from, y, rgb);
}

void attn__png_write(attn__raster *raster, attn__stream *stream)
{
    const attn__png_source source = {raster_row, raster, raster->width,
                                     raster->height, 3};

    attn__png_write_rows(&source, stream);
}
