/* SPDX-License-Identifier: Apache-2.0
 *
 * One batch entry (or packed sequence) of a problem, dense, and what the
 * reference makes of it in long double. Compiled with src/ref/wide.h. */
#ifndef ATTN_TESTS_KERNELCHECK_ENTRY_H
#define ATTN_TESTS_KERNELCHECK_ENTRY_H

#include "attn_ref.h"

#include "kernelcheck.h"

typedef attn_ref_real real; /* long double */

/* One batch entry, dense. */
typedef struct entry {
    const problem *p;
    int64_t b, q_start, k_start, len_q, len_k, heads_q, heads_kv, dim, dim_v;
    int64_t q_offset, length; /* keys at and beyond length are hidden */
    attn_ref_problem ref;
    real *q, *k, *v, *d_o, *dlse, *bias, *slopes, *sinks, *dropout;
    double *q_size, *k_size, *v_size, *d_o_size; /* their absolute values */
    unsigned char *mask;
    real *o, *lse, *entropy, *weights, *stage;
    unsigned char *visible;
    real *dq, *dk, *dv, *dbias, *dsinks, *dslopes;
} entry;

/* n zeros; no memory ends the program. */
void *zeros(int64_t n, size_t size);
real *reals(int64_t n);

bool paged(const problem *p);

/* Logical index of (b, h, i, c) in a tensor shaped like q, k or o. */
int64_t row_index(const entry *e, const attn_input *t, int64_t start,
                  int64_t h, int64_t i, int64_t c);
/* The same of a key, in k, v or their pages. */
int64_t key_index(const entry *e, const attn_input *t, int64_t h, int64_t j,
                  int64_t c);
/* Of a row, in lse or entropy. */
int64_t stats_index(const entry *e, const attn_input *t, int64_t h, int64_t i);
/* Of pair (h, i, j) in a tensor that broadcasts to the scores. */
int64_t pair_index(const entry *e, const attn_input *t, int64_t h, int64_t i,
                   int64_t j);
int64_t slope_index(const entry *e, const attn_input *t, int64_t h);

/* Batch entry b of p; then its results. */
void entry_load(entry *e, const problem *p, int64_t b);
void entry_compute(entry *e);
void entry_free(entry *e);

#endif
