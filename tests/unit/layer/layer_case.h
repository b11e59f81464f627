/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers to test: a table of features, random tensors for them, the arguments
 * of a call over these, and the plain fp64 composition of layer_ref.c to
 * compare with. */
#ifndef ATTN_TESTS_LAYER_CASE_H
#define ATTN_TESTS_LAYER_CASE_H

#include "attn_layer.h"
#include "attn_ref.h"

#include <stdbool.h>

typedef enum tensor {
    X, X_KV, W_Q, W_K, W_V, W_O, B_Q, B_K, B_V, B_O, G_Q, G_K, BIAS, SINKS,
    SLOPES, N_PARAMETERS, /* what has a gradient; then what has none */
    D_Y = N_PARAMETERS, D_LSE, N_INPUTS
} tensor;

enum features {
    WITH_BIASES = 1,      /* b_q, b_k, b_v, b_o */
    WITH_NORM = 2,
    WITH_GAINS = 4,       /* (dim_qk) */
    WITH_HEAD_GAINS = 8,  /* (heads, dim_qk) */
    WITH_HALVES = 16,     /* rope, pairs half apart */
    WITH_PAIRS = 32,      /* rope, interleaved, part of the head, yarn */
    WITH_POSITIONS = 64,
    WITH_CROSS = 128,
    WITH_MASK = 256,
    WITH_BIAS = 512,      /* (heads, 1, len_k) */
    WITH_SINKS = 1024,
    WITH_SLOPES = 2048,
    WITH_LENGTHS = 4096,
    WITH_DROPOUT = 8192,
    WITH_SOFTCAP = 16384,
    WITH_CAUSAL = 32768,  /* bottom_right, and a window */
    WITH_D_LSE = 65536,
    WITHOUT_W_O = 131072
};

typedef struct layer_row {
    const char *name;
    unsigned with;
    int64_t heads, heads_kv;
} layer_row;

extern const layer_row layer_table[];
extern const size_t n_layer_rows;

/* Batches, lengths, widths: small for differences, large for blocks. */
typedef struct layer_sizes {
    int64_t batch, len_q, len_k, dim_x, dim_x_kv, dim_y, dim_qk, dim_v;
} layer_sizes;

extern const layer_sizes layer_small, layer_large;

/* A tensor as doubles, dense. Absent: rank 0, NULL. */
typedef struct values {
    double *at;
    int32_t rank;
    int64_t shape[4], n;
} values;

typedef struct layer_case {
    layer_row row;
    attn_dtype dtype;
    attn_layer_desc desc;
    values in[N_INPUTS];      /* rounded to dtype */
    unsigned char *mask;      /* (len_q, len_k) */
    int64_t *k_lengths;       /* (batch) */
    int64_t *positions, *positions_kv; /* (batch, len) */
} layer_case;

layer_case layer_case_open(const layer_row *row, const layer_sizes *sizes,
                           attn_dtype dtype);
void layer_case_close(layer_case *c);

/* Typed tensors of one call; of an f64 case, the inputs are the case's own
 * doubles, so that changing one changes the call. */
typedef struct layer_call {
    const layer_case *c;
    attn_layer_args args;
    void *memory[64];
    int n_memory;
} layer_call;

layer_call layer_call_open(const layer_case *c);
void layer_call_close(layer_call *call);
/* A dense tensor of the call's type (or another), zeroed, freed with it. */
attn_tensor layer_call_tensor(layer_call *call, attn_dtype dtype, int32_t rank,
                              const int64_t *shape);
/* Outputs: y, lse and weights; or every gradient. */
void layer_call_forward(layer_call *call);
void layer_call_backward(layer_call *call);
/* The gradient of a parameter; absent if the case lacks it. */
attn_tensor layer_gradient(const layer_call *call, tensor which);
const char *layer_tensor_name(tensor which);

/* Element `index` of a dense tensor. */
double layer_value(const attn_tensor *t, int64_t index);

/* y and lse by plain loops and attn_ref.h, and a bound on the error of an
 * implementation in the case's type; arrays of the caller. The bound and lse
 * may be NULL. */
void layer_ref(const layer_case *c, double *y, double *y_bound, double *lse);

#endif
