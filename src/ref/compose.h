/* SPDX-License-Identifier: Apache-2.0
 *
 * The stages one after another, in memory that is there already: what
 * attn_ref_forward and _backward do for one problem, and the varlen ones for
 * each sequence. */
#ifndef ATTN_REF_COMPOSE_H
#define ATTN_REF_COMPOSE_H

#include "ref/ref.h"

/* s, p, dp and visible hold a number for every pair, lse for every row. */
typedef struct attn__ref_scratch {
    attn_ref_real *s, *p, *dp, *lse;
    unsigned char *visible;
} attn__ref_scratch;

/* Room for problems of up to so many rows and pairs. E_NOMEM, E_OVERFLOW. */
attn_status attn__ref_scratch_open(attn__ref_scratch *scratch, int64_t rows,
                                   int64_t pairs);
void attn__ref_scratch_close(attn__ref_scratch *scratch);

/* rows = batch heads_q len_q, pairs = rows len_k, or E_OVERFLOW. */
attn_status attn__ref_count(const attn_ref_problem *problem, int64_t *rows,
                            int64_t *pairs);

void attn__ref_forward_in(attn__ref_scratch *scratch,
                          const attn_ref_stages *stages,
                          const attn_ref_problem *problem,
                          const attn_ref_real *q, const attn_ref_real *k,
                          const attn_ref_real *v,
                          const attn_ref_results *results);
/* The stages of a backward alone: visible, p and lse are in the scratch, from a
 * forward of the same problem. */
void attn__ref_gradients_in(attn__ref_scratch *scratch,
                            const attn_ref_stages *stages,
                            const attn_ref_problem *problem,
                            const attn_ref_real *q, const attn_ref_real *k,
                            const attn_ref_real *v, const attn_ref_real *d_o,
                            const attn_ref_real *dlse,
                            const attn_ref_gradients *gradients);
void attn__ref_backward_in(attn__ref_scratch *scratch,
                           const attn_ref_stages *stages,
                           const attn_ref_problem *problem,
                           const attn_ref_real *q, const attn_ref_real *k,
                           const attn_ref_real *v, const attn_ref_real *d_o,
                           const attn_ref_real *dlse,
                           const attn_ref_gradients *gradients);

#endif
