/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox4x32-10, the counter-based generator of the dropout masks: J. Salmon
 * et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3.
 * Checked against the published known answers. */
#ifndef ATTN_CORE_PHILOX_H
#define ATTN_CORE_PHILOX_H

#include <stdbool.h>
#include <stdint.h>

typedef struct attn__philox {
    uint32_t word[4];
} attn__philox;

static inline attn__philox attn__philox4x32(attn__philox counter, uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < 10; round++) {
        const uint64_t a = UINT64_C(0xD2511F53) * counter.word[0];
        const uint64_t b = UINT64_C(0xCD9E8D57) * counter.word[2];

        counter = (attn__philox){{(uint32_t)(b >> 32) ^ counter.word[1] ^ k0,
                                  (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ counter.word[3] ^ k1,
                                  (uint32_t)a}};
        k0 += 0x9E3779B9u; /* golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    return counter;
}

/* Which pairs a dropout mask keeps, as contract: counter = (j div 4, i,
 * b * heads + h, offset), word j mod 4; kept if word >= threshold. */
typedef struct attn__dropout {
    uint64_t seed;
    uint64_t threshold; /* floor(p * 2^32), 0 to 2^32 */
    uint32_t offset;
} attn__dropout;

static inline attn__dropout attn__dropout_of(double p, uint64_t seed,
                                             uint32_t offset)
{
    return (attn__dropout){seed, (uint64_t)(p * 0x1p32), offset};
}

/* The four words for keys 4 * j4 to 4 * j4 + 3. */
static inline attn__philox attn__dropout_words(const attn__dropout *d,
                                               uint32_t head, uint32_t i,
                                               uint32_t j4)
{
    return attn__philox4x32((attn__philox){{j4, i, head, d->offset}}, d->seed);
}

static inline bool attn__dropout_keeps(const attn__dropout *d, uint32_t head,
                                       int64_t i, int64_t j)
{
    const attn__philox words =
        attn__dropout_words(d, head, (uint32_t)i, (uint32_t)(j >> 2));

    return words.word[j & 3] >= d->threshold;
}

/* What a kept weight is multiplied by: 1 / (1 - p); nothing is kept at 1. */
static inline double attn__dropout_factor(double p)
{
    return p < 1 ? 1 / (1 - p) : 0;
}

#endif
