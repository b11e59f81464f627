/* SPDX-License-Identifier: Apache-2.0
 *
 * Coverage of a dot by a line: one minus the distance by which the dot's
 * centre lies outside, held to 0..1. Exact for edges along the axes, close
 * enough to the eye elsewhere. */
#include "picture/strokes.h"

#include <math.h>

#include "core/alloc.h"

attn_status attn__stroke_add(attn__strokes *strokes, attn__stroke stroke)
{
    if (strokes->n == strokes->room) {
        const size_t room = strokes->room ? 2 * strokes->room : 256;
        attn__stroke *grown =
            attn__realloc_array(strokes->at, room, sizeof *grown);

        if (!grown)
            return ATTN_E_NOMEM;
        strokes->at = grown;
        strokes->room = room;
    }
    strokes->at[strokes->n++] = stroke;
    return ATTN_OK;
}

void attn__strokes_free(attn__strokes *strokes)
{
    attn__free(strokes->at);
    *strokes = (attn__strokes){NULL, 0, 0};
}

static float clamp01(float value)
{
    return value < 0 ? 0 : value > 1 ? 1 : value;
}

/* Distance from (x, y) to the nearest point of the line. */
static float distance(const attn__stroke *s, float x, float y)
{
    const float dx = s->x1 - s->x0, dy = s->y1 - s->y0;
    const float square = dx * dx + dy * dy;
    float t = 0, ex, ey;

    if (square > 0)
        t = clamp01(((x - s->x0) * dx + (y - s->y0) * dy) / square);
    ex = s->x0 + t * dx - x;
    ey = s->y0 + t * dy - y;
    return sqrtf(ex * ex + ey * ey);
}

/* The part of the line within `reach` of the row at y: *t0 to *t1 along it. */
static int crosses(const attn__stroke *s, float y, float reach, float *t0,
                   float *t1)
{
    const float dy = s->y1 - s->y0;
    float a = 0, b = 1;

    if (fminf(s->y0, s->y1) - reach > y || fmaxf(s->y0, s->y1) + reach < y)
        return 0;
    if (dy != 0) {
        const float u = (y - reach - s->y0) / dy, v = (y + reach - s->y0) / dy;

        a = clamp01(fminf(u, v));
        b = clamp01(fmaxf(u, v));
    }
    *t0 = a;
    *t1 = b;
    return 1;
}

void attn__stroke_cover(const attn__stroke *s, int64_t row, int64_t width,
                        float *coverage, int64_t *from, int64_t *to)
{
    const float y = (float)row + 0.5f, reach = s->radius + 0.5f;
    const float dx = s->x1 - s->x0;
    float t0, t1, left, right;
    int64_t first, last;

    if (!crosses(s, y, reach, &t0, &t1))
        return;
    left = fminf(s->x0 + t0 * dx, s->x0 + t1 * dx) - reach;
    right = fmaxf(s->x0 + t0 * dx, s->x0 + t1 * dx) + reach;
    first = left > 0 ? (int64_t)left : 0;
    last = right < (float)width ? (int64_t)right : width - 1;
    for (int64_t x = first; x <= last; x++) {
        const float c = clamp01(reach - distance(s, (float)x + 0.5f, y));

        if (c > coverage[x])
            coverage[x] = c;
    }
    if (first <= last && first < *from)
        *from = first;
    if (first <= last && last + 1 > *to)
        *to = last + 1;
}
