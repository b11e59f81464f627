/* SPDX-License-Identifier: Apache-2.0
 *
 * Random attention problems for the tests of the reference, as plain doubles,
 * and the reference run on them in double and in long double. Sizes in the
 * tables are pairwise different and no powers of two, so that no exchanged
 * axis can hide. */
#ifndef ATTN_TESTS_REF_CASE_H
#define ATTN_TESTS_REF_CASE_H

#include <stdbool.h>
#include <stdint.h>

#include "attn.h"

typedef struct ref_features {
    const char *name;
    int64_t batch, heads_q, heads_kv, len_q, len_k, dim_qk, dim_v;
    attn_causal causal;
    int64_t left, right; /* window width + 1; 0 = unbounded */
    double softcap;
    double scale;       /* 0 = default */
    bool scale_is_zero; /* really 0 */
    const char *mask;   /* axes that it has, of "bhij"; NULL = none */
    const char *bias;   /* likewise */
    bool bias_hides;    /* a third of the bias is -inf */
    const char *slopes; /* of "bh" */
    bool sinks, dlse, q_offset, k_lengths;
    double dropout;
    bool empty_row; /* the mask hides all of query 0 */
} ref_features;

/* Arrays as attn_ref.h has them; NULL where absent. */
typedef struct ref_case {
    ref_features f;
    double scale;
    double *q, *k, *v, *d_o, *dlse, *bias, *slopes, *sinks, *dropout;
    unsigned char *mask;
    int64_t *q_offset, *k_lengths;
    int64_t mask_stride[4], bias_stride[4], slopes_stride[2];
    int64_t n_q, n_k, n_v, n_o, rows, pairs, n_bias, n_slopes; /* elements */
} ref_case;

/* Everything follows from the seed. ref_case_close frees it. */
ref_case ref_case_open(const ref_features *f, uint64_t seed);
void ref_case_close(ref_case *c);

/* A standard normal number, and one of 0 .. n - 1, from counter `at`. */
double ref_normal(uint64_t seed, uint64_t at);
int64_t ref_below(uint64_t seed, uint64_t at, int64_t n);

/* All results of a case, in long double whichever way they were computed. */
typedef struct ref_outputs {
    long double *o, *lse, *entropy, *weights, *softcapped;
    long double *dq, *dk, *dv, *dbias, *dslopes, *dsinks;
    unsigned char *visible;
} ref_outputs;

ref_outputs ref_run(const ref_case *c);      /* in double */
ref_outputs ref_run_wide(const ref_case *c); /* in long double */
void ref_outputs_close(ref_outputs *out);

#endif
