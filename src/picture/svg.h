/* SPDX-License-Identifier: Apache-2.0
 *
 * A sheet as SVG. */
#ifndef ATTN_PICTURE_SVG_H
#define ATTN_PICTURE_SVG_H

#include "picture/sheet.h"
#include "picture/stream.h"

/* Write it to the stream, whose failures remain there. `heat` is scratch. */
void attn__svg_write(const attn__sheet *sheet, const attn_figure *figure,
                     attn__heat *heat, attn__stream *stream);

#endif
