/* SPDX-License-Identifier: Apache-2.0
 *
 * Which keys a position may see. Causal, window and length are one interval
 * of keys per query; everything that skips or masks by geometry asks here. */
#ifndef ATTN_POSITION_GEOMETRY_H
#define ATTN_POSITION_GEOMETRY_H

#include "core/checked.h"

/* Keys lo <= j < hi; empty where hi <= lo. */
typedef struct attn__interval {
    int64_t lo, hi;
} attn__interval;

typedef struct attn__geometry {
    int64_t window_left, window_right; /* -1 = unbounded */
    bool causal;                       /* j <= p */
} attn__geometry;

/* The keys that a query at position p sees of len_k. p, the windows and
 * len_k are at most 2^62 in size, but their sums may not fit: they saturate. */
static inline attn__interval attn__visible_keys(const attn__geometry *g,
                                                int64_t p, int64_t len_k)
{
    int64_t lo = 0, hi = len_k;

    if (g->window_left >= 0)
        lo = attn__max_i64(lo, attn__saturating_add(p, -g->window_left));
    if (g->window_right >= 0)
        hi = attn__min_i64(
            hi, attn__saturating_add(attn__saturating_add(p, g->window_right),
                                     1));
    if (g->causal)
        hi = attn__min_i64(hi, attn__saturating_add(p, 1));
    return (attn__interval){lo, attn__max_i64(lo, hi)};
}

/* Whether keys [j0, j1) are all seen (FULL), some (EDGE) or none (EMPTY). */
typedef enum attn__block_class {
    ATTN__BLOCK_EMPTY,
    ATTN__BLOCK_EDGE,
    ATTN__BLOCK_FULL
} attn__block_class;

/* `any` holds every key that some row sees, `all` those that every row sees. */
static inline attn__block_class attn__classify(attn__interval any,
                                               attn__interval all, int64_t j0,
                                               int64_t j1)
{
    if (j1 <= any.lo || j0 >= any.hi)
        return ATTN__BLOCK_EMPTY;
    return j0 >= all.lo && j1 <= all.hi ? ATTN__BLOCK_FULL : ATTN__BLOCK_EDGE;
}

#endif
