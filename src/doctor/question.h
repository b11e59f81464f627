/* SPDX-License-Identifier: Apache-2.0
 *
 * A question: one small attention problem that is put to the subject, and its
 * answer. Arrays are dense (batch, heads, len, dim), whatever layout the
 * subject wants; the binding turns them round. */
#ifndef ATTN_DOCTOR_QUESTION_H
#define ATTN_DOCTOR_QUESTION_H

#include <stdbool.h>
#include <stdint.h>

#include "attn_doctor.h"
#include "doctor/arena.h"

/* What a question asks beyond q, k, v: bits of `asked`. */
enum {
    ASK_MASK = 1 << 0,
    ASK_BIAS = 1 << 1,
    ASK_SCALE = 1 << 2,
    ASK_CAUSAL = 1 << 3,
    ASK_WINDOW = 1 << 4,
    ASK_SOFTCAP = 1 << 5,
    ASK_ALIBI = 1 << 6,
    ASK_SINKS = 1 << 7,
    ASK_LENGTHS = 1 << 8,
    ASK_OFFSET = 1 << 9,
    ASK_VARLEN = 1 << 10,
    ASK_ROPE = 1 << 11,
    ASK_EXTRA = 1 << 12, /* further results, such as weights */
    /* and properties of its sizes */
    ASK_GROUPS = 1 << 16,  /* heads_q != heads_kv */
    ASK_CROSS = 1 << 17,   /* len_q != len_k */
    ASK_DIMS = 1 << 18,    /* dim_v != dim_qk */
    ASK_BATCH = 1 << 19,   /* batch > 1 */
    ASK_HEADS = 1 << 20,   /* heads_q > 1 */
    ASK_BACKWARD = 1 << 21, /* gradients */
    ASK_LAYER = 1 << 22,    /* projections */
    ASK_MODEL = 1 << 23,    /* model width != heads x dim */
    ASK_PACKED = 1 << 24,   /* q, k, v from one matrix, or in one array, */
    ASK_PAIRED = 1 << 25,   /* or k, v in one array */
    ASK_ALONE = 1 << 30     /* of hypotheses: not as one of two that only
                               together meet a question */
};

typedef struct attn__sizes {
    int64_t batch, heads_q, heads_kv, len_q, len_k, dim_qk, dim_v;
} attn__sizes;

/* Projections of a multi-head layer: x (batch, len, model) @ w + b. */
typedef struct attn__projections {
    int64_t model;
    const double *x, *w_q, *w_k, *w_v, *w_o; /* (d_in, d_out) */
    const double *b_q, *b_k, *b_v, *b_o;     /* NULL = none */
} attn__projections;



typedef struct attn__question {
    const char *title;
    uint32_t asked;
    int64_t number;  /* the how manieth call it was */
    int64_t longest; /* of the lengths of all calls up to it */
    attn__sizes n;
    const double *q, *k, *v, *d_o;
    const double *o, *lse_in; /* of a backward pass that wants them */
    double scale, softcap;
    int64_t window[2];         /* left, right; -1 = unbounded */
    const unsigned char *mask; /* 1 = attend, in mask_shape, row-major */
    int64_t mask_shape[4];     /* 1 = broadcast */
    const double *bias;
    int64_t bias_shape[4];
    const double *slopes, *sinks; /* (heads_q) */
    const int64_t *lengths, *offset; /* (batch) */
    const int64_t *cu_q, *cu_k; /* (n_sequences + 1), of packed sequences */
    int64_t n_sequences;
    attn__projections layer;   /* x NULL: none */

    attn_outcome outcome;
    const char *refusal;  /* why it was not answered */
    bool wrong_shape;     /* it was, with arrays of other shapes */
    uint32_t mutated;     /* bit x: the call changed parameter x */
    attn_dtype dtype;     /* of the answer */
    double *answer;       /* o, or y of a layer, or dq dk dv: n_answer */
    int64_t n_answer;
    double *weights, *lse; /* further results, NULL where there is none */
    double seconds;
} attn__question;

/* Width of q's projection, heads x dim. */
int64_t attn__width_q(const attn__sizes *n);
int64_t attn__width_k(const attn__sizes *n);
int64_t attn__width_v(const attn__sizes *n);
int64_t attn__width_o(const attn__sizes *n);

/* The sizes' bits of `asked`. */
uint32_t attn__sizes_asked(const attn__sizes *n);
int64_t attn__count_q(const attn__sizes *n);
int64_t attn__count_k(const attn__sizes *n);
int64_t attn__count_v(const attn__sizes *n);
int64_t attn__count_o(const attn__sizes *n);
int64_t attn__count_rows(const attn__sizes *n);
int64_t attn__count_pairs(const attn__sizes *n);

/* Strides of a broadcast array of shape[4] within four axes. */
void attn__broadcast_strides(const int64_t shape[4], int64_t stride[4]);

#endif
