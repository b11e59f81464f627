/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in fp32 as a textbook writes it: every sum from left to right, no
 * FMA, expf and tanhf of the C library, division last. One batch entry; arrays
 * as attn_ref.h has them. */
#ifndef ATTN_TESTS_TEXTBOOK_H
#define ATTN_TESTS_TEXTBOOK_H

#include <stdint.h>

typedef struct textbook {
    int64_t heads_q, heads_kv, len_q, len_k, dim_qk, dim_v, q_offset;
    float scale, softcap;         /* softcap 0 = off */
    const unsigned char *visible; /* (heads_q, len_q, len_k) */
    const float *q, *k, *v, *d_o;
    const float *bias;   /* as visible; NULL = none */
    const float *slopes; /* (heads_q); NULL = none */
    const float *sinks;  /* (heads_q); NULL = none */
    float *o, *dq, *dk, *dv;
} textbook;

/* o, dq, dk and dv. */
void textbook_run(const textbook *t);

#endif
