/* SPDX-License-Identifier: Apache-2.0
 *
 * Round numbers along an axis, and numbers as text in any locale. */
#ifndef ATTN_PICTURE_TICKS_H
#define ATTN_PICTURE_TICKS_H

#include <stddef.h>
#include <stdint.h>

#define ATTN__NUMBER_SIZE 32

/* Ticks at (first + i) * step, 0 <= i < n. */
typedef struct attn__ticks {
    double step;
    int64_t first, n;
    int decimals; /* that a multiple of step needs; -1 = an exponent */
} attn__ticks;

/* At most `most` >= 2 multiples of 1, 2 or 5 times a power of ten, from low to
 * high > low. */
attn__ticks attn__ticks_of(double low, double high, int64_t most);
/* The least of 1, 2, 5, 10, 20, ... that is not below `least`. */
int64_t attn__round_step(double least);

/* "-0.50" for decimals = 2; "3e-07" for -1; "NaN", "inf" and "-inf". Terminated
 * within ATTN__NUMBER_SIZE. */
void attn__format(char text[ATTN__NUMBER_SIZE], double value, int decimals);

#endif
