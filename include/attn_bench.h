/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_bench.h: how fast this machine is, and which part of that our kernels
 * reach. A row is one problem; running it takes turns between the kernel and
 * the machine's own limit (a loop of multiply-adds in registers at the same
 * level, or for decode a loop that only reads K and V), in one process, so
 * that what disturbs one disturbs the other; medians of the turns' ratios. A
 * decode goes round copies of K and V, 1 GiB together, so that no cache holds
 * them. Since 0.1. */
#ifndef ATTN_BENCH_H
#define ATTN_BENCH_H

#include "attn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Multiply-adds per second (each 2 operations) of a loop without memory at
 * `isa`'s own width on `threads` threads of `pool` (NULL for one), in
 * operations per second. f64 or f32, or at ATTN_ISA_AMX bf16: products of
 * tiles. 0 where this CPU or build has no such loop. */
ATTN_API double attn_limit_fma(attn_isa isa, attn_dtype dtype, attn_pool *pool,
                               int64_t threads);

/* Bytes per second of a loop that adds up `size` bytes at `data`. */
ATTN_API double attn_limit_read(const void *data, size_t size,
                                attn_pool *pool, int64_t threads);

typedef struct attn_bench_row {
    const char *name;
    attn_pass pass; /* ATTN_FORWARD or ATTN_BACKWARD */
    int32_t both;   /* 1: forward and backward, one after the other */
    attn_dtype dtype;
    attn_precision precision;
    int64_t batch, heads_q, heads_kv, len_q, len_k, dim;
    attn_causal causal;
    int64_t window_left; /* -1 = unbounded */
    uint32_t inputs;     /* of ATTN_WITH_MASK, ATTN_WITH_ALIBI */
    int32_t bshd;        /* memory of order (batch, len, heads, dim) */
} attn_bench_row;

/* The rows that `attn bench` knows, 0 <= index < count. */
ATTN_API int64_t attn_bench_count(void);
ATTN_API const attn_bench_row *attn_bench_row_at(int64_t index);

typedef struct attn_bench_result {
    double seconds;    /* of one call, median */
    double operations; /* visible pairs * dim * 4 (backward 10, both 14), per
                          second; where `reads`, bytes of K and V per second */
    double limit;      /* the machine's, in operations or bytes per second */
    double fraction;   /* of the limit, median of the turns' ratios */
    int32_t reads;     /* the limit is the read loop's: fraction of bytes */
    char kernel[32];
} attn_bench_result;

/* Run one row for about `seconds` (at least five turns). Inputs are random;
 * memory is allocated and freed. Returns OK, E_NOMEM or what the plan says. */
ATTN_API attn_status attn_bench_run(const attn_bench_row *row,
                                    attn_isa isa_limit, int64_t threads,
                                    double seconds, attn_bench_result *result,
                                    attn_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
