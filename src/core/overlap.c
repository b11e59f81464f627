/* SPDX-License-Identifier: Apache-2.0
 *
 * Do two views share bytes? Outputs must not overlap themselves or anything
 * else, but the q, k and v of one packed tensor interleave without sharing.
 * "May share" can be said of views that don't, never the reverse: whether one
 * view meets itself is exact for axes that nest (each stride at least the
 * extent of all smaller ones), which every slice of a dense array has; whether
 * two views meet is exact unless that takes more than BUDGET steps to find
 * out, which no view that people make has needed. */
#include "core/tensor.h"

#include <stdlib.h>

/* Steps of the search below, a few microseconds. */
#define BUDGET 1000

/* No memory is that long; longer views are not looked at. */
#define LONGEST (INT64_C(1) << 60)

/* One axis of the question: `step` bytes, at most `below` steps back and
 * `above` steps forward. */
typedef struct axis {
    int64_t step, below, above;
} axis;

static void sort_falling(axis *axes, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && axes[k].step > axes[k - 1].step; k--) {
            const axis t = axes[k];
            axes[k] = axes[k - 1];
            axes[k - 1] = t;
        }
}

/* How far the axes can go back and forward together. */
static void reach(const axis *axes, int n, int64_t *back, int64_t *forth)
{
    *back = *forth = 0;
    for (int k = 0; k < n; k++) {
        *back += axes[k].step * axes[k].below;
        *forth += axes[k].step * axes[k].above;
    }
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Whether `distance` plus a sum of steps can come to lie in [low, high]. Axes
 * are sorted by falling step; of the largest, only those counts are tried that
 * the smaller ones can make up for: two at most where axes nest. */
static bool meets(const axis *axes, int n, int64_t distance, int64_t low,
                  int64_t high, int *budget)
{
    int64_t back, forth;

    if (n == 0)
        return distance >= low && distance <= high;
    reach(axes + 1, n - 1, &back, &forth);
    const int64_t step = axes[0].step;
    int64_t first = -floor_div(distance + forth - low, step);
    int64_t last = floor_div(high + back - distance, step);

    if (first < -axes[0].below)
        first = -axes[0].below;
    if (last > axes[0].above)
        last = axes[0].above;
    for (int64_t count = first; count <= last; count++)
        if (--*budget < 0 || meets(axes + 1, n - 1, distance + count * step,
                                   low, high, budget))
            return true;
    return false;
}

bool attn__self_overlaps(const attn_input *t)
{
    const int64_t element = (int64_t)attn_dtype_size(t->dtype);
    int64_t extent = element;
    axis axes[4];
    int n = 0;

    if (attn__is_empty(t))
        return false;
    for (int32_t a = 0; a < t->rank; a++)
        if (t->shape[a] > 1)
            axes[n++] = (axis){llabs(t->stride[a]) * element, 0,
                               t->shape[a] - 1};
    sort_falling(axes, n);
    while (n-- > 0) {
        if (axes[n].step < extent)
            return true;
        extent += axes[n].step * axes[n].above;
    }
    return false;
}

/* The lowest byte of a view and one past its highest. */
static void range(const attn_input *t, uintptr_t *low, uintptr_t *high)
{
    const int64_t element = (int64_t)attn_dtype_size(t->dtype);

    *low = (uintptr_t)t->data;
    *high = (uintptr_t)t->data + (uintptr_t)element;
    for (int32_t a = 0; a < t->rank; a++) {
        const int64_t span = (t->shape[a] - 1) * t->stride[a] * element;

        if (span < 0)
            *low -= (uintptr_t)-span;
        else
            *high += (uintptr_t)span;
    }
}

/* The steps that separate an element of b from one of a: both views' axes,
 * those of equal stride joined into one. */
static int joint_axes(const attn_input *a, const attn_input *b, axis *axes)
{
    const attn_input *const views[2] = {a, b};
    int n = 0;

    for (int v = 0; v < 2; v++) {
        const attn_input *t = views[v];

        for (int32_t k = 0; k < t->rank; k++) {
            const int64_t step =
                t->stride[k] * (int64_t)attn_dtype_size(t->dtype);
            const int64_t reach = t->shape[k] - 1;
            /* b moves forward along its strides, a backward. */
            const bool forward = (step > 0) == (v == 1);
            int same = 0;

            if (step == 0 || reach == 0)
                continue;
            while (same < n && axes[same].step != llabs(step))
                same++;
            if (same == n)
                axes[n++] = (axis){llabs(step), 0, 0};
            if (forward)
                axes[same].above += reach;
            else
                axes[same].below += reach;
        }
    }
    return n;
}

bool attn__overlaps(const attn_input *a, const attn_input *b)
{
    const int64_t size_a = (int64_t)attn_dtype_size(a->dtype);
    const int64_t size_b = (int64_t)attn_dtype_size(b->dtype);
    uintptr_t low_a, high_a, low_b, high_b;
    int budget = BUDGET;
    axis axes[8];
    int n;

    if (attn__is_empty(a) || attn__is_empty(b))
        return false;
    range(a, &low_a, &high_a);
    range(b, &low_b, &high_b);
    if (high_a <= low_b || high_b <= low_a)
        return false;
    if (high_a - low_a > LONGEST || high_b - low_b > LONGEST)
        return true;
    n = joint_axes(a, b, axes);
    sort_falling(axes, n);
    /* An element of a at A and one of b at B share a byte if B - A lies in
     * (-size_b, size_a). */
    return meets(axes, n,
                 (int64_t)((uintptr_t)b->data - (uintptr_t)a->data),
                 1 - size_b, size_a - 1, &budget);
}
