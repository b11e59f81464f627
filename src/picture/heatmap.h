/* SPDX-License-Identifier: Apache-2.0
 *
 * From a matrix to colours, one row at a time. Cells are folded into units: a
 * unit is one cell, or where the matrix is larger than its picture, a block of
 * them that shows its largest. */
#ifndef ATTN_PICTURE_HEATMAP_H
#define ATTN_PICTURE_HEATMAP_H

#include <stdbool.h>

#include "attn_picture.h"

enum {
    ATTN__MASKED = 256, /* beyond the levels 0 to 255 */
    ATTN__NAN = 257
};

/* How the cells of an axis lie on pixels: one of cell and fold is 1. */
typedef struct attn__fit {
    int64_t n;    /* cells */
    int64_t cell; /* pixels to a cell */
    int64_t fold; /* cells to a pixel */
} attn__fit;

static inline int64_t attn__units(attn__fit fit)
{
    return (fit.n + fit.fold - 1) / fit.fold;
}

static inline int64_t attn__pixels(attn__fit fit)
{
    return attn__units(fit) * fit.cell;
}

/* What the shown values of a figure span. */
typedef struct attn__range {
    double low, high; /* low < high; both positive where they are logarithmic */
    bool log;
    bool any_masked, any_nan;
} attn__range;

/* Room for a row of any panel of a figure. */
typedef struct attn__heat {
    double *value;  /* of cells; after a fold, of units */
    uint8_t *shown;
    uint16_t *code; /* of units: a level, ATTN__MASKED or ATTN__NAN */
} attn__heat;

attn_status attn__heat_init(attn__heat *heat, const attn_figure *figure,
                            attn_diag *diag);
void attn__heat_free(attn__heat *heat);

/* Over all heat maps of the figure; its own low and high are kept where they
 * are numbers. */
void attn__range_of(const attn_figure *figure, attn__heat *heat,
                    attn__range *range);
/* Values and codes of one row of units. */
void attn__heat_row(attn__heat *heat, const attn_panel *panel, attn__fit rows,
                    attn__fit columns, const attn__range *range, int64_t unit);
/* Where a value lies between low and high: 0 to 1. NaN must not come here. */
double attn__range_part(const attn__range *range, double value);
/* Element i of a vector. */
double attn__element(const attn_input *values, int64_t i);

#endif
