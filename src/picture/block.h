/* SPDX-License-Identifier: Apache-2.0
 *
 * One panel and what belongs to it: how large it is, and placing it. */
#ifndef ATTN_PICTURE_BLOCK_H
#define ATTN_PICTURE_BLOCK_H

#include "picture/labels.h"

typedef struct attn__block {
    const attn_panel *panel;
    attn__fit row_fit, column_fit; /* heat maps */
    attn__axis rows, columns;      /* rows: heat maps only */
    double low, high;              /* the vertical axis of curves */
    double width, height;          /* of the cells or the plot */
    double left, right, bottom;    /* room for labels */
    bool row_labels, column_labels; /* whether they are drawn */
} attn__block;

/* Decide everything but which labels are drawn. `crowd` is the number of
 * panels, `cell` that of the figure. E_LIMIT if it will never fit. */
attn_status attn__block_plan(const attn__sheet *sheet, const attn_panel *panel,
                             int64_t cell, int64_t crowd, attn__block *block,
                             attn_diag *diag);
/* With the upper left corner of the cells at (x, y). `heat` is scratch. */
void attn__block_draw(attn__sheet *sheet, const attn__block *block,
                      attn__heat *heat, double x, double y);

/* plot.c: the same for curves. */
void attn__plot_plan(const attn__sheet *sheet, attn__block *block);
void attn__plot_draw(attn__sheet *sheet, const attn__block *block, double x,
                     double y);

#endif
