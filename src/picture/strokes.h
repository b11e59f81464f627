/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines with round ends, and how much of a pixel they cover. Letters and
 * curves are made of them. */
#ifndef ATTN_PICTURE_STROKES_H
#define ATTN_PICTURE_STROKES_H

#include "attn.h"

typedef struct attn__stroke {
    float x0, y0, x1, y1, radius; /* in dots */
} attn__stroke;

typedef struct attn__strokes {
    attn__stroke *at;
    size_t n, room;
} attn__strokes;

/* E_NOMEM leaves what there is. */
attn_status attn__stroke_add(attn__strokes *strokes, attn__stroke stroke);
void attn__strokes_free(attn__strokes *strokes);

/* For the row of dots whose centres lie at y + 0.5: raise coverage[x], 0 to 1,
 * to what the stroke covers, x in 0..width-1. [*from, *to) grows to hold every
 * x that was raised. */
void attn__stroke_cover(const attn__stroke *stroke, int64_t y, int64_t width,
                        float *coverage, int64_t *from, int64_t *to);

#endif
