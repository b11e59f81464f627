/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic that tells when the result does not fit. Each returns true and
 * stores the result, or returns false. Products of sizes go through here one
 * factor at a time: a test of the product itself comes too late. */
#ifndef ATTN_CORE_CHECKED_H
#define ATTN_CORE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool attn__add_i64(int64_t a, int64_t b, int64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool attn__mul_i64(int64_t a, int64_t b, int64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

static inline bool attn__add_size(size_t a, size_t b, size_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool attn__mul_size(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* Up to the next multiple of `alignment`, a power of two. */
static inline bool attn__align_size(size_t size, size_t alignment, size_t *up)
{
    size_t padded;

    if (!attn__add_size(size, alignment - 1, &padded))
        return false;
    *up = padded & ~(alignment - 1);
    return true;
}

/* a + b, held at the ends of the range instead of wrapping. */
static inline int64_t attn__saturating_add(int64_t a, int64_t b)
{
    int64_t sum;

    if (attn__add_i64(a, b, &sum))
        return sum;
    return b > 0 ? INT64_MAX : INT64_MIN;
}

static inline int64_t attn__min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t attn__max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t attn__ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

#endif
