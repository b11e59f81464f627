/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product c = sum over batches of a b, + d: what its kernels take,
 * how they divide their slot, and their list, gemm.def, as prototypes and as a
 * table. A kernel writes the rows and columns of its unit and nothing else.
 * Reads: only elements that the views name. */
#ifndef ATTN_KERNELS_GEMM_H
#define ATTN_KERNELS_GEMM_H

#include "kernels/slot.h"

/* Terms of a sum that are summed on their own before they join the rest:
 * errors grow as sqrt(block) + sqrt(blocks). Bits depend on it. */
#define ATTN__GEMM_BLOCK 64
/* The largest unit: bits do not depend on it. */
#define ATTN__GEMM_ROWS 120
#define ATTN__GEMM_COLUMNS 128

/* Views have the axes (-, batch, row, column), stride 0 where broadcast. */
typedef struct attn__gemm {
    attn__view a, b, d; /* d.data is NULL where nothing is added */
    attn__target c;
    int64_t batch;      /* of c */
    int64_t sum;        /* batches of a and b that make one of c */
    int64_t m, n, k;
} attn__gemm;

/* Rows [row0, row1) and columns [column0, column1) of one batch of c. */
typedef struct attn__gemm_unit {
    int64_t batch, row0, row1, column0, column1;
} attn__gemm_unit;

typedef void attn__gemm_kernel(const attn__gemm *gemm,
                               const attn__gemm_unit *unit, void *slot);

typedef struct attn__gemm_slot {
    void *a;     /* [ATTN__GEMM_ROWS][ATTN__GEMM_BLOCK], where converted */
    void *panel; /* [ATTN__GEMM_BLOCK][tile columns] */
    void *acc;   /* [tiles][ATTN__GEMM_ROWS][tile columns] */
} attn__gemm_slot;

static inline void attn__gemm_take(attn__arena *arena, attn__gemm_slot *slot,
                                   size_t real_size)
{
    slot->a = attn__take(arena, ATTN__GEMM_ROWS, ATTN__GEMM_BLOCK, real_size);
    slot->panel = attn__take(arena, ATTN__GEMM_BLOCK, ATTN__MAX_TILE_ROWS,
                             real_size);
    slot->acc = attn__take(arena, ATTN__GEMM_ROWS, ATTN__GEMM_COLUMNS,
                           real_size);
}

#define ATTN__GEMM(dtype, isa, needs, real, budget)                           \
    void attn__gemm_##dtype##_##isa(const attn__gemm *gemm,                   \
                                    const attn__gemm_unit *unit, void *slot);
#include "kernels/gemm.def"
#undef ATTN__GEMM

typedef struct attn__gemm_row {
    attn__gemm_kernel *run;
    const char *name; /* without attn__ */
    attn_dtype dtype;
    attn_isa isa;
    unsigned needs;
    size_t real_size; /* bytes of the accumulator */
    double budget;
} attn__gemm_row;

extern const attn__gemm_row attn__gemm_rows[];
extern const size_t attn__n_gemm_rows;

#endif
