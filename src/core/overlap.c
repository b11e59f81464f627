/* SPDX-License-Identifier: Apache-2.0
 *
 * Do two views share bytes? Outputs must not overlap themselves or anything
 * else, but the q, k and v of one packed tensor interleave without sharing.
 * The answer is exact for axes that nest (each stride at least the extent of
 * all smaller ones), which every slice of a dense array has; others are
 * judged by their address ranges. */
#include "core/tensor.h"

#include <stdlib.h>

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

/* Whether `distance` plus a sum of steps can come within `element` bytes of
 * zero. Axes are sorted by falling step; only the two nearest multiples of a
 * step can leave a rest that the smaller axes make up for. */
static bool reaches_zero(const axis *axes, int n, int64_t distance,
                         int64_t element)
{
    if (n == 0)
        return distance > -element && distance < element;
    for (int64_t side = 0; side < 2; side++) {
        int64_t steps = -distance / axes[0].step;

        steps += distance > 0 ? -side : side;
        if (steps < -axes[0].below || steps > axes[0].above)
            continue;
        if (reaches_zero(axes + 1, n - 1, distance + steps * axes[0].step,
                         element))
            return true;
    }
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
    axis axes[8];
    int n;

    if (attn__is_empty(a) || attn__is_empty(b))
        return false;
    range(a, &low_a, &high_a);
    range(b, &low_b, &high_b);
    if (high_a <= low_b || high_b <= low_a)
        return false;
    n = joint_axes(a, b, axes);
    sort_falling(axes, n);
    return reaches_zero(axes, n,
                        (int64_t)((uintptr_t)b->data - (uintptr_t)a->data),
                        size_a > size_b ? size_a : size_b);
}
