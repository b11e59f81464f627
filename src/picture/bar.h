/* SPDX-License-Identifier: Apache-2.0
 *
 * The colour bar with its numbers, and the keys of the other colours. */
#ifndef ATTN_PICTURE_BAR_H
#define ATTN_PICTURE_BAR_H

#include "picture/scene.h"
#include "picture/ticks.h"

typedef struct attn__bar {
    double width; /* 0: there is no heat map, and no bar */
    const char *value;
    attn__ticks ticks;
} attn__bar;

attn__bar attn__bar_plan(const attn__scene *scene, const attn_figure *figure);
/* With its upper left corner at (x, y), beside cells of so many pixels;
 * returns where it ends. */
double attn__bar_draw(attn__scene *scene, const attn__bar *bar, double x,
                      double y, double height);

#endif
