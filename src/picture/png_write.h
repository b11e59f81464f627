/* SPDX-License-Identifier: Apache-2.0
 *
 * A raster as PNG. */
#ifndef ATTN_PICTURE_PNG_WRITE_H
#define ATTN_PICTURE_PNG_WRITE_H

#include "picture/raster.h"
#include "picture/stream.h"

/* Write every row to the stream; failures are the stream's. */
void attn__png_write(attn__raster *raster, attn__stream *stream);

/* Where rows of 8-bit samples come from: row y into samples[channels * width].
 * 3 channels are RGB, 4 are RGBA. */
typedef struct attn__png_source {
    void (*row)(void *from, int64_t y, uint8_t *samples);
    void *from;
    int64_t width, height;
    int channels;
} attn__png_source;

void attn__png_write_rows(const attn__png_source *source,
                          attn__stream *stream);

#endif
