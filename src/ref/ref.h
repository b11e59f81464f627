/* SPDX-License-Identifier: Apache-2.0
 *
 * What the stages share: a row of the problem, that is one query of one head,
 * and where its parts lie. Row r = (b heads_q + h) len_q + i; each stage is a
 * loop over the rows, and each transpose too. */
#ifndef ATTN_REF_REF_H
#define ATTN_REF_REF_H

#include <stdbool.h>
#include <stdint.h>

#include "attn_ref.h"

typedef struct attn__ref_row {
    int64_t index;     /* r: row of q, o, lse; pairs are r len_k + j */
    int64_t b, h, i;   /* batch, query head, query */
    int64_t position;  /* p = i + q_offset, on the key axis */
    int64_t first_key; /* row of k and v that is key 0 of its KV head */
} attn__ref_row;

int64_t attn__ref_rows(const attn_ref_problem *problem);
attn__ref_row attn__ref_row_at(const attn_ref_problem *problem, int64_t r);

/* Where element (b, h, i, j) of a broadcast array lies. */
int64_t attn__ref_at(const int64_t stride[4], const attn__ref_row *row,
                     int64_t j);

/* Does the head have a sink? One of -inf adds nothing: it is none. */
bool attn__ref_has_sink(const attn_ref_problem *problem, int64_t h);

/* Nothing to attend to: no visible key and no sink. `visible` is that of the
 * whole problem. */
bool attn__ref_row_is_empty(const attn_ref_problem *problem,
                            const attn__ref_row *row,
                            const unsigned char *visible);

/* x = 0 in every element of an array broadcast over `length`: one along an
 * axis of stride 0, be the axis as long as it may, or empty. */
void attn__ref_clear(attn_ref_real *x, int64_t axes, const int64_t *length,
                     const int64_t *stride);

/* x[0..n) = value. */
void attn__ref_fill(attn_ref_real *x, int64_t n, attn_ref_real value);

#endif
