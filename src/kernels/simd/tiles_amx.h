/* SPDX-License-Identifier: Apache-2.0
 *
 * AMX: eight tile registers of 16 rows of 64 bytes, and one product,
 *
 *   c[m][n] += sum over k of a[m][k] b[k][n]      16 x 32 by 32 x 16, bf16
 *
 * where b holds pairs of rows: b[k / 2][2 n + k % 2]. c is fp32; inputs and
 * results below 2^-126 count as 0, and no flag or mode is looked at (Intel 64
 * and IA-32 Architectures Software Developer's Manual, TDPBF16PS). */
#ifndef ATTN_KERNELS_TILES_AMX_H
#define ATTN_KERNELS_TILES_AMX_H

#include <stddef.h>
#include <stdint.h>

#define AMX_ROWS 16
#define AMX_STEP 32 /* bf16s of one row: what one product sums */
#define AMX_TILE (AMX_ROWS * AMX_STEP)

/* The compilers' own functions for these don't say that memory is read or
 * written. Strides are in bytes. */
#define AMX_LOAD(t, from, stride)                                             \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t                          \
                     :                                                        \
                     : "r"(from), "r"((ptrdiff_t)(stride))                    \
                     : "memory")
#define AMX_STORE(t, to, stride)                                              \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)"                      \
                     :                                                        \
                     : "r"(to), "r"((ptrdiff_t)(stride))                      \
                     : "memory")
#define AMX_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : :)
#define AMX_PRODUCT(c, a, b)                                                  \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

/* All tiles whole. The state is the thread's own: from here to the release. */
static inline void amx_begin(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } whole = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64},
               {16, 16, 16, 16, 16, 16, 16, 16}};

    __asm__ volatile("ldtilecfg %0" : : "m"(whole));
}

static inline void amx_end(void)
{
    __asm__ volatile("tilerelease");
}

#endif
