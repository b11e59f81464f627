/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands along an axis: a label for each cell, or numbers with ticks. */
#ifndef ATTN_PICTURE_LABELS_H
#define ATTN_PICTURE_LABELS_H

#include "picture/sheet.h"

#define ATTN__LONGEST 150.0 /* pixels of a label */
#define ATTN__CUT_SIZE 256  /* bytes */

/* Cells along an axis. */
typedef struct attn__axis {
    int64_t n, first; /* cell i is number first + i */
    double pitch;     /* pixels from one to the next */
    const char *const *labels;
    /* chosen by attn__axis_plan: */
    int64_t step;  /* between cells that have a label */
    bool numbers;  /* not labels */
    bool ticks;
    bool turned;
    double size;   /* of the text */
    double room;   /* that it takes beside the cells */
} attn__axis;

/* `text` as far as it fits in `room` pixels, with an ellipsis where it is
 * cut. */
void attn__cut(const attn__sheet *sheet, const char *text, double size,
               double room, char to[ATTN__CUT_SIZE]);

void attn__axis_plan(const attn__sheet *sheet, attn__axis *axis,
                     bool is_rows);
/* Down from y, left of x. */
void attn__axis_rows(attn__sheet *sheet, const attn__axis *axis, double x,
                     double y);
/* Right from x, below y. */
void attn__axis_columns(attn__sheet *sheet, const attn__axis *axis, double x,
                        double y);

#endif
