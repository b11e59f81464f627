/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of layers, and cases made of its rows. */
#include "layer_case.h"

#include "core/element.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const layer_row layer_table[] = {
    {"plain", 0, 3, 3},
    {"biases, causal", WITH_BIASES | WITH_CAUSAL, 2, 2},
    {"grouped, softcap", WITH_SOFTCAP, 4, 2},
    {"norm", WITH_NORM, 2, 1},
    {"norm with gains", WITH_NORM | WITH_GAINS, 4, 2},
    {"norm with gains a head, rope",
     WITH_NORM | WITH_HEAD_GAINS | WITH_HALVES | WITH_BIASES | WITH_CAUSAL, 4,
     2},
    {"rope in halves", WITH_HALVES, 2, 2},
    {"rope in pairs", WITH_PAIRS | WITH_POSITIONS, 2, 2},
    {"cross", WITH_CROSS | WITH_BIASES, 2, 2},
    {"cross, rope, mask",
     WITH_CROSS | WITH_HALVES | WITH_POSITIONS | WITH_MASK, 4, 2},
    {"bias, sinks, slopes",
     WITH_BIAS | WITH_SINKS | WITH_SLOPES | WITH_D_LSE, 4, 4},
    {"lengths, dropout, no w_o",
     WITH_LENGTHS | WITH_DROPOUT | WITHOUT_W_O | WITH_BIASES, 2, 1},
};

const size_t n_layer_rows = COUNT(layer_table);

const layer_sizes layer_small = {2, 4, 5, 5, 6, 3, 6, 3};
const layer_sizes layer_large = {2, 37, 41, 130, 70, 67, 16, 24};

static const char *const names[] = {
    "x",   "x_kv", "w_q", "w_k", "w_v",  "w_o",   "b_q",     "b_k", "b_v",
    "b_o", "g_q",  "g_k", "bias", "sinks", "slopes", "d_y", "dlse"};

const char *layer_tensor_name(tensor which)
{
    return names[which];
}

/* ----------------------------------------------------------------- cases */

static uint32_t seed;

static double number(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (double)(int32_t)seed * 0x1p-31;
}

static double rounded(double x, attn_dtype dtype)
{
    double place[1];

    attn__write(place, dtype, 0, x);
    return attn__read(place, dtype, 0);
}

/* Numbers of about `size`, around `middle`, that dtype can hold. */
static void fill(layer_case *c, tensor which, double middle, double size,
                 int32_t rank, const int64_t *shape)
{
    values *v = &c->in[which];

    v->rank = rank;
    v->n = 1;
    for (int32_t a = 0; a < rank; a++) {
        v->shape[a] = shape[a];
        v->n *= shape[a];
    }
    v->at = malloc((size_t)(v->n + 1) * sizeof *v->at);
    for (int64_t i = 0; i < v->n; i++)
        v->at[i] = rounded(middle + size * number(), c->dtype);
}

#define FILL(which, middle, size, ...)                                        \
    fill(c, (which), (middle), (size),                                        \
         (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),       \
         (int64_t[]){__VA_ARGS__})

static void fill_weights(layer_case *c, const layer_sizes *s)
{
    const unsigned with = c->row.with;
    const int64_t x_kv = with & WITH_CROSS ? s->dim_x_kv : s->dim_x;
    const int64_t q = c->row.heads * s->dim_qk, k = c->row.heads_kv * s->dim_qk;
    const int64_t v = c->row.heads_kv * s->dim_v, o = c->row.heads * s->dim_v;

    FILL(X, 0, 1, s->batch, s->len_q, s->dim_x);
    if (with & WITH_CROSS)
        FILL(X_KV, 0, 1, s->batch, s->len_k, s->dim_x_kv);
    FILL(W_Q, 0, 2 / sqrt((double)s->dim_x), s->dim_x, q);
    FILL(W_K, 0, 2 / sqrt((double)x_kv), x_kv, k);
    FILL(W_V, 0, 2 / sqrt((double)x_kv), x_kv, v);
    if (!(with & WITHOUT_W_O))
        FILL(W_O, 0, 2 / sqrt((double)o), o, s->dim_y);
    if (with & WITH_BIASES) {
        FILL(B_Q, 0, 1, q);
        FILL(B_K, 0, 1, k);
        FILL(B_V, 0, 1, v);
        if (!(with & WITHOUT_W_O))
            FILL(B_O, 0, 1, s->dim_y);
    }
    if (with & WITH_GAINS) {
        FILL(G_Q, 1, 0.5, s->dim_qk);
        FILL(G_K, 1, 0.5, s->dim_qk);
    }
    if (with & WITH_HEAD_GAINS) {
        FILL(G_Q, 1, 0.5, c->row.heads, s->dim_qk);
        FILL(G_K, 1, 0.5, c->row.heads_kv, s->dim_qk);
    }
    FILL(D_Y, 0, 1, s->batch, s->len_q, with & WITHOUT_W_O ? o : s->dim_y);
}

static void fill_shapers(layer_case *c, const layer_sizes *s, int64_t len_k)
{
    const unsigned with = c->row.with;

    if (with & WITH_BIAS)
        FILL(BIAS, 0, 1, c->row.heads, 1, len_k);
    if (with & WITH_SINKS)
        FILL(SINKS, 0, 1, c->row.heads);
    if (with & WITH_SLOPES)
        FILL(SLOPES, 0.2, 0.1, s->batch, c->row.heads);
    if (with & WITH_D_LSE)
        FILL(D_LSE, 0, 1, s->batch, c->row.heads, s->len_q);
    if (with & WITH_MASK) {
        c->mask = malloc((size_t)(s->len_q * len_k));
        for (int64_t i = 0; i < s->len_q * len_k; i++)
            c->mask[i] = number() < 0.5;
    }
    if (with & WITH_LENGTHS) {
        c->k_lengths = malloc((size_t)s->batch * sizeof(int64_t));
        for (int64_t b = 0; b < s->batch; b++)
            c->k_lengths[b] = len_k - 1 - b;
    }
}

static int64_t *places(int64_t batch, int64_t len)
{
    int64_t *p = malloc((size_t)(batch * len) * sizeof *p);

    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < len; i++)
            p[b * len + i] = 3 * b + 2 * i;
    return p;
}

static void describe(layer_case *c, const layer_sizes *s, int64_t len_k)
{
    const unsigned with = c->row.with;
    attn_layer_desc *d = &c->desc;
    attn_desc *a = &d->attention;

    attn_layer_desc_init(d, c->dtype, s->batch, s->len_q, s->dim_x,
                         c->row.heads, c->row.heads_kv);
    d->dim_x_kv = with & WITH_CROSS ? s->dim_x_kv : 0;
    d->dim_y = with & WITHOUT_W_O ? 0 : s->dim_y;
    d->qk_norm = (with & WITH_NORM) != 0;
    d->norm_eps = 0x1p-10; /* large enough for its loss to show */
    attn_desc_init(a, c->dtype, s->batch, c->row.heads, c->row.heads_kv,
                   s->len_q, len_k, s->dim_qk, s->dim_v);
    a->softcap = with & WITH_SOFTCAP ? 1.5 : 0;
    a->dropout_p = with & WITH_DROPOUT ? 0.25 : 0;
    if (with & WITH_CAUSAL) {
        a->causal = ATTN_CAUSAL_BOTTOM_RIGHT;
        a->window_left = 2;
    }
    a->inputs = (with & WITH_MASK ? ATTN_WITH_MASK : 0) |
                (with & WITH_BIAS ? ATTN_WITH_BIAS : 0) |
                (with & WITH_SINKS ? ATTN_WITH_SINKS : 0) |
                (with & WITH_SLOPES ? ATTN_WITH_ALIBI : 0) |
                (with & WITH_LENGTHS ? ATTN_WITH_K_LENGTHS : 0);
    d->rotary = (with & (WITH_HALVES | WITH_PAIRS)) != 0;
    if (with & WITH_PAIRS) {
        d->rope.interleaved = 1;
        d->rope.rotary_dim = 4;
        d->rope.scaling = ATTN_ROPE_YARN;
        d->rope.factor = 4;
        d->rope.original_max_position = 16;
    }
}

layer_case layer_case_open(const layer_row *row, const layer_sizes *sizes,
                           attn_dtype dtype)
{
    const int64_t len_k =
        row->with & WITH_CROSS ? sizes->len_k : sizes->len_q;
    layer_case c = {.row = *row, .dtype = dtype};

    seed = 7;
    describe(&c, sizes, len_k);
    fill_weights(&c, sizes);
    fill_shapers(&c, sizes, len_k);
    if (row->with & WITH_POSITIONS) {
        c.positions = places(sizes->batch, sizes->len_q);
        c.positions_kv = row->with & WITH_CROSS
                             ? places(sizes->batch, len_k)
                             : NULL;
    }
    return c;
}

void layer_case_close(layer_case *c)
{
    for (int t = 0; t < N_INPUTS; t++)
        free(c->in[t].at);
    free(c->mask);
    free(c->k_lengths);
    free(c->positions);
    free(c->positions_kv);
}

/* ----------------------------------------------------------------- calls */

static int64_t count_of(int32_t rank, const int64_t *shape)
{
    int64_t n = 1;

    for (int32_t a = 0; a < rank; a++)
        n *= shape[a];
    return n;
}

attn_tensor layer_call_tensor(layer_call *call, attn_dtype dtype, int32_t rank,
                              const int64_t *shape)
{
    void *data = calloc((size_t)count_of(rank, shape) + 1,
                        attn_dtype_size(dtype));

    assert_true(call->n_memory < (int)COUNT(call->memory));
    call->memory[call->n_memory++] = data;
    return attn_dense(data, dtype, rank, shape);
}

static attn_input input(layer_call *call, tensor which)
{
    const values *v = &call->c->in[which];
    attn_tensor t;

    if (!v->at)
        return (attn_input){0};
    if (call->c->dtype == ATTN_F64)
        return attn_in_dense(v->at, ATTN_F64, v->rank, v->shape);
    t = layer_call_tensor(call, call->c->dtype, v->rank, v->shape);
    for (int64_t i = 0; i < v->n; i++)
        attn__write(t.data, t.dtype, i, v->at[i]);
    return attn_in(t);
}

static attn_input indices(const int64_t *data, int32_t rank, int64_t n0,
                          int64_t n1)
{
    const int64_t shape[2] = {n0, n1};

    return data ? attn_in_dense(data, ATTN_I64, rank, shape) : (attn_input){0};
}

layer_call layer_call_open(const layer_case *c)
{
    const attn_desc *d = &c->desc.attention;
    const int64_t mask[2] = {d->len_q, d->len_k};
    layer_call call = {.c = c};
    attn_layer_args *a = &call.args;
    attn_input *const to[N_INPUTS] = {
        &a->x,   &a->x_kv, &a->w_q, &a->w_k,           &a->w_v,
        &a->w_o, &a->b_q,  &a->b_k, &a->b_v,           &a->b_o,
        &a->g_q, &a->g_k,  &a->attention.bias,         &a->attention.sinks,
        &a->attention.alibi_slopes, &a->d_y,           &a->attention.dlse};

    attn_layer_args_init(a);
    for (int t = 0; t < N_INPUTS; t++)
        *to[t] = input(&call, (tensor)t);
    if (c->dtype != ATTN_F64 && c->in[D_LSE].at) { /* f32 or f64 only */
        a->attention.dlse = attn_in_dense(c->in[D_LSE].at, ATTN_F64, 3,
                                          c->in[D_LSE].shape);
    }
    a->positions = indices(c->positions, 2, d->batch, d->len_q);
    a->positions_kv = indices(c->positions_kv, 2, d->batch, d->len_k);
    a->attention.kv.k_lengths = indices(c->k_lengths, 1, d->batch, 0);
    if (c->mask)
        a->attention.mask = attn_in_dense(c->mask, ATTN_BOOL, 2, mask);
    a->attention.seed = 42;
    return call;
}

void layer_call_close(layer_call *call)
{
    for (int i = 0; i < call->n_memory; i++)
        free(call->memory[i]);
}

void layer_call_forward(layer_call *call)
{
    const layer_case *c = call->c;
    const attn_desc *d = &c->desc.attention;
    const int64_t lse[3] = {d->batch, d->heads_q, d->len_q};
    const int64_t weights[4] = {d->batch, d->heads_q, d->len_q, d->len_k};

    call->args.y = layer_call_tensor(call, c->dtype, 3, c->in[D_Y].shape);
    call->args.attention.lse = layer_call_tensor(call, ATTN_F64, 3, lse);
    call->args.attention.weights =
        layer_call_tensor(call, c->dtype, 4, weights);
}

static attn_tensor *gradient_of(attn_layer_args *a, tensor which)
{
    attn_tensor *const to[N_PARAMETERS] = {
        &a->dx,   &a->dx_kv, &a->dw_q, &a->dw_k, &a->dw_v,
        &a->dw_o, &a->db_q,  &a->db_k, &a->db_v, &a->db_o,
        &a->dg_q, &a->dg_k,  &a->attention.dbias, &a->attention.dsinks,
        &a->attention.dslopes};

    return to[which];
}

attn_tensor layer_gradient(const layer_call *call, tensor which)
{
    attn_layer_args copy = call->args;

    return *gradient_of(&copy, which);
}

void layer_call_backward(layer_call *call)
{
    const layer_case *c = call->c;

    for (int t = 0; t < N_PARAMETERS; t++) {
        const values *v = &c->in[t];
        const bool small = t == SINKS || t == SLOPES;

        if (v->at)
            *gradient_of(&call->args, (tensor)t) = layer_call_tensor(
                call, small ? ATTN_F64 : c->dtype, v->rank, v->shape);
    }
}

double layer_value(const attn_tensor *t, int64_t index)
{
    return attn__read(t->data, t->dtype, index);
}
