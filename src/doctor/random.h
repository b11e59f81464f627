/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers for questions: Philox, so that a seed and a count give them again.
 * They are multiples of 1/64 below 8, which f16 holds exactly: every type of
 * input asks the same question. */
#ifndef ATTN_DOCTOR_RANDOM_H
#define ATTN_DOCTOR_RANDOM_H

#include <math.h>

#include "core/philox.h"

typedef struct attn__random {
    uint64_t seed;
    uint32_t count;
} attn__random;

/* In [0, 1). */
static inline double attn__uniform(attn__random *r)
{
    const attn__philox words =
        attn__philox4x32((attn__philox){{r->count++, 0, 0, 0x646f63}}, r->seed);

    return words.word[0] * 0x1p-32;
}

/* Normal with the given deviation, by Box and Muller. */
static inline double attn__normal(attn__random *r, double deviation)
{
    const double u = 1 - attn__uniform(r), t = attn__uniform(r);
    const double x =
        deviation * sqrt(-2 * log(u)) * cos(6.283185307179586 * t);

    return fmax(-7.5, fmin(7.5, round(x * 64) / 64));
}

/* 0 <= x < n. */
static inline int64_t attn__below(attn__random *r, int64_t n)
{
    return (int64_t)(attn__uniform(r) * (double)n);
}

#endif
