/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix tiles of kernels/simd/tiles_amx.h in C, as the manual named there
 * defines them: of each pair of terms one goes to either of two sums, which
 * begin at 0 and are added to c in the end; what is below 2^-126 counts as 0.
 * It takes that header's guard, and so its place. */
#ifndef ATTN_KERNELS_TILES_AMX_H
#define ATTN_KERNELS_TILES_AMX_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define AMX_ROWS 16
#define AMX_STEP 32
#define AMX_TILE (AMX_ROWS * AMX_STEP)

typedef union emulated_tile {
    uint16_t bf16[AMX_ROWS][AMX_STEP];
    float f32[AMX_ROWS][AMX_STEP / 2];
} emulated_tile;

static _Thread_local emulated_tile emulated_tiles[8];

static inline void emulated_copy(char *to, ptrdiff_t to_row, const char *from,
                                 ptrdiff_t from_row)
{
    for (ptrdiff_t r = 0; r < AMX_ROWS; r++)
        memcpy(to + r * to_row, from + r * from_row,
               sizeof(uint16_t) * AMX_STEP);
}

static inline float emulated_flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}

static inline float emulated_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float x;

    memcpy(&x, &bits, sizeof x);
    return emulated_flush(x);
}

static inline void emulated_product(emulated_tile *c, const emulated_tile *a,
                                    const emulated_tile *b)
{
    for (int m = 0; m < AMX_ROWS; m++)
        for (int n = 0; n < AMX_STEP / 2; n++) {
            float sum[2] = {0, 0};

            for (int k = 0; k < AMX_STEP; k++)
                sum[k % 2] = emulated_flush(
                    fmaf(emulated_bf16(a->bf16[m][k]),
                         emulated_bf16(b->bf16[k / 2][2 * n + k % 2]),
                         sum[k % 2]));
            c->f32[m][n] =
                emulated_flush(emulated_flush(c->f32[m][n]) +
                               emulated_flush(sum[0] + sum[1]));
        }
}

#define AMX_LOAD(t, from, stride)                                             \
    emulated_copy((char *)&emulated_tiles[t], 64, (const char *)(from),       \
                  (ptrdiff_t)(stride))
#define AMX_STORE(t, to, stride)                                              \
    emulated_copy((char *)(to), (ptrdiff_t)(stride),                          \
                  (const char *)&emulated_tiles[t], 64)
#define AMX_ZERO(t) memset(&emulated_tiles[t], 0, sizeof(emulated_tile))
#define AMX_PRODUCT(c, a, b)                                                  \
    emulated_product(&emulated_tiles[c], &emulated_tiles[a],                  \
                     &emulated_tiles[b])

static inline void amx_begin(void)
{
    memset(emulated_tiles, 0, sizeof emulated_tiles);
}

static inline void amx_end(void)
{
}

#endif
