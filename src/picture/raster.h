/* SPDX-License-Identifier: Apache-2.0
 *
 * Dots from a sheet, row by row, so that no picture is ever held whole. */
#ifndef ATTN_PICTURE_RASTER_H
#define ATTN_PICTURE_RASTER_H

#include "picture/sheet.h"
#include "picture/strokes.h"

/* An item has the strokes from `first` to that of the next item, and they are
 * in the rows from `top` up to `bottom`. */
typedef struct attn__reach {
    size_t first;
    int64_t top, bottom;
} attn__reach;

typedef struct attn__raster {
    const attn__sheet *sheet;
    int64_t density; /* dots to a pixel */
    int64_t width, height; /* in dots */
    attn__strokes strokes; /* of text and curves */
    attn__reach *reach;    /* of each item, and one more */
    float *coverage; /* a row of zeros between calls */
    uint32_t *row;
    /* For each item of cells, the codes of one row of units, and which. */
    attn__heat heat;
    uint16_t **codes;
    int64_t *unit;
} attn__raster;

attn_status attn__raster_init(attn__raster *raster, const attn__sheet *sheet,
                              const attn_figure *figure, int64_t density,
                              attn_diag *diag);
void attn__raster_free(attn__raster *raster);
/* Row y as 3 * width bytes. Allocates nothing. */
void attn__raster_row(attn__raster *raster, int64_t y, uint8_t *rgb);

#endif
