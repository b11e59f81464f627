/* SPDX-License-Identifier: Apache-2.0
 *
 * The colour bar with its numbers, and the keys of the other colours. */
#ifndef ATTN_PICTURE_BAR_H
#define ATTN_PICTURE_BAR_H

#include "picture/sheet.h"
#include "picture/ticks.h"

#define ATTN__MOST_TICKS 16

typedef struct attn__bar {
    double width; /* 0: there is no heat map, and no bar */
    const char *value;
    int n;        /* numbers beside it, and their texts */
    double at[ATTN__MOST_TICKS];
    char text[ATTN__MOST_TICKS][ATTN__NUMBER_SIZE];
} attn__bar;

attn__bar attn__bar_plan(const attn__sheet *sheet, const attn_figure *figure);
/* With its upper left corner at (x, y), beside cells of so many pixels;
 * returns where it ends. */
double attn__bar_draw(attn__sheet *sheet, const attn__bar *bar, double x,
                      double y, double height);

#endif
