/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiply-adds that depend on nothing but themselves: as many chains as the
 * level's register tile has sums. NAME is the instance. */
#include <math.h>

#include "limits/limits.h"

#define FMA_CHAINS (PRODUCT_ROWS * TILE_VECTORS)

#define FMA_JOIN(a, b) a##b
#define FMA_NAMED(a, b) FMA_JOIN(a, b)

#if defined(__clang__)
#define FMA_UNROLL _Pragma("unroll")
#else
#define FMA_UNROLL _Pragma("GCC unroll 24")
#endif

double FMA_NAMED(attn__fma_, NAME)(int64_t rounds)
{
    const V factor = v_set1((REAL)0.999), term = v_set1((REAL)1e-3);
    V sums[FMA_CHAINS];
    REAL total = 0;

    for (ptrdiff_t k = 0; k < FMA_CHAINS; k++)
        sums[k] = v_set1((REAL)k);
    for (int64_t n = 0; n < rounds; n++) {
        FMA_UNROLL
        for (ptrdiff_t k = 0; k < FMA_CHAINS; k++)
            sums[k] = v_fma(sums[k], factor, term);
    }
    for (ptrdiff_t k = 0; k < FMA_CHAINS; k++)
        total += sums[k][0];
    /* The sum keeps the loop alive; it is about FMA_CHAINS, never 0. */
    return total != 0 ? 2.0 * FMA_CHAINS * (double)LANES : 0;
}
