/* SPDX-License-Identifier: Apache-2.0
 *
 * What a demo was asked: from the values of a call to a question, as the
 * doctor itself would have put it. */
#include <string.h>

#include "doctor/demo.h"

const attn_parameter attn__demo_parameters[DEMO_N] = {
    [DEMO_Q] = {.name = "q"},
    [DEMO_K] = {.name = "k"},
    [DEMO_V] = {.name = "v"},
    [DEMO_MASK] = {.name = "mask", .optional = 1, .fallback = "None"},
    [DEMO_BIAS] = {.name = "bias", .optional = 1, .fallback = "None"},
    [DEMO_SCALE] = {.name = "scale", .optional = 1, .fallback = "None"},
    [DEMO_CAUSAL] = {.name = "causal", .optional = 1, .fallback = "False"},
    [DEMO_WINDOW] = {.name = "window_size", .optional = 1, .fallback = "None"},
    [DEMO_SOFTCAP] = {.name = "softcap", .optional = 1, .fallback = "0.0"},
    [DEMO_SLOPES] = {.name = "alibi_slopes", .optional = 1, .fallback = "None"},
    [DEMO_SINKS] = {.name = "sinks", .optional = 1, .fallback = "None"},
    [DEMO_LENGTHS] = {.name = "k_lengths", .optional = 1, .fallback = "None"},
    [DEMO_D_O] = {.name = "do"},
    [DEMO_CU_Q] = {.name = "cu_seqlens_q"},
    [DEMO_CU_K] = {.name = "cu_seqlens_k"},
    [DEMO_X] = {.name = "x"},
    [DEMO_W_QKV] = {.name = "w_qkv"},
    [DEMO_W_O] = {.name = "w_o"},
    [DEMO_HEADS] = {.name = "n_heads"},
    [DEMO_POSITIONS] = {.name = "positions"},
};

/* ------------------------------------------------------- values to numbers */

typedef struct values {
    const attn_value *by[DEMO_N]; /* NULL where none was given */
    attn__arena *arena;
    bool dense; /* strides are taken for those of a dense array */
} values;

static double element(const attn_input *t, int64_t x, bool dense)
{
    int64_t at = 0, end = 0;

    for (int32_t a = t->rank - 1; a >= 0; a--)
        end += (t->shape[a] - 1) * t->stride[a];
    if (dense) {
        at = x <= end ? x : end;
    } else {
        for (int32_t a = t->rank - 1; a >= 0; a--) {
            at += x % t->shape[a] * t->stride[a];
            x /= t->shape[a];
        }
    }
    if (t->dtype == ATTN_F64)
        return ((const double *)t->data)[at];
    if (t->dtype == ATTN_F32)
        return (double)((const float *)t->data)[at];
    if (t->dtype == ATTN_I64)
        return (double)((const int64_t *)t->data)[at];
    return (double)((const unsigned char *)t->data)[at];
}

static int64_t count_of(const attn_input *t)
{
    int64_t n = 1;

    for (int32_t a = 0; a < t->rank; a++)
        n *= t->shape[a];
    return n;
}

static double *numbers(const values *v, int what)
{
    const attn_input *t = &v->by[what]->tensor;
    double *x = attn__arena_doubles(v->arena, count_of(t) + 1);

    for (int64_t e = 0; x && e < count_of(t); e++)
        x[e] = element(t, e, v->dense);
    return x;
}

static int64_t *integers(const values *v, int what)
{
    const attn_input *t = &v->by[what]->tensor;
    int64_t *x = attn__arena_take(v->arena, count_of(t) + 1, sizeof *x);

    for (int64_t e = 0; x && e < count_of(t); e++)
        x[e] = (int64_t)element(t, e, false);
    return x;
}

static void axes_of(const attn_input *t, int64_t shape[4])
{
    for (int a = 3, own = t->rank - 1; a >= 0; a--, own--)
        shape[a] = own >= 0 ? t->shape[own] : 1;
}

/* ---------------------------------------------------------- the question */

static bool take_inputs(const values *v, attn__question *q)
{
    const attn_input *tq, *tk, *tv;

    if (!v->by[DEMO_Q] || !v->by[DEMO_K] || !v->by[DEMO_V])
        return false;
    tq = &v->by[DEMO_Q]->tensor;
    tk = &v->by[DEMO_K]->tensor;
    tv = &v->by[DEMO_V]->tensor;
    if (tq->rank != 4 || tk->rank != 4 || tv->rank != 4 ||
        tk->shape[1] == 0 || tq->shape[1] % tk->shape[1] != 0 ||
        tq->shape[3] != tk->shape[3] || tk->shape[2] != tv->shape[2] ||
        tk->shape[1] != tv->shape[1] || tq->shape[0] != tk->shape[0])
        return false;
    *q = (attn__question){
        .n = {tq->shape[0], tq->shape[1], tk->shape[1], tq->shape[2],
              tk->shape[2], tq->shape[3], tv->shape[3]},
        .q = numbers(v, DEMO_Q),
        .k = numbers(v, DEMO_K),
        .v = numbers(v, DEMO_V),
        .window = {-1, -1},
    };
    q->asked = attn__sizes_asked(&q->n);
    return true;
}

static void take_pairs(const values *v, attn__question *q)
{
    if (v->by[DEMO_MASK]) {
        const attn_input *t = &v->by[DEMO_MASK]->tensor;
        unsigned char *bits =
            attn__arena_take(v->arena, count_of(t) + 1, 1);

        for (int64_t e = 0; bits && e < count_of(t); e++)
            bits[e] = element(t, e, v->dense) != 0;
        q->mask = bits;
        axes_of(t, q->mask_shape);
        q->asked |= ASK_MASK;
    }
    if (v->by[DEMO_BIAS]) {
        q->bias = numbers(v, DEMO_BIAS);
        axes_of(&v->by[DEMO_BIAS]->tensor, q->bias_shape);
        q->asked |= ASK_BIAS;
    }
}

static void take_numbers(const values *v, attn__question *q)
{
    if (v->by[DEMO_SCALE]) {
        q->scale = v->by[DEMO_SCALE]->real;
        q->asked |= ASK_SCALE;
    }
    if (v->by[DEMO_CAUSAL] && v->by[DEMO_CAUSAL]->integer[0])
        q->asked |= ASK_CAUSAL;
    if (v->by[DEMO_WINDOW]) {
        memcpy(q->window, v->by[DEMO_WINDOW]->integer, sizeof q->window);
        q->asked |= ASK_WINDOW;
    }
    if (v->by[DEMO_SOFTCAP] && v->by[DEMO_SOFTCAP]->real > 0) {
        q->softcap = v->by[DEMO_SOFTCAP]->real;
        q->asked |= ASK_SOFTCAP;
    }
}

static void take_vectors(const values *v, attn__question *q)
{
    if (v->by[DEMO_SLOPES]) {
        q->slopes = numbers(v, DEMO_SLOPES);
        q->asked |= ASK_ALIBI;
    }
    if (v->by[DEMO_SINKS]) {
        q->sinks = numbers(v, DEMO_SINKS);
        q->asked |= ASK_SINKS;
    }
    if (v->by[DEMO_LENGTHS]) {
        q->lengths = integers(v, DEMO_LENGTHS);
        q->asked |= ASK_LENGTHS;
    }
}

/* Gradients are asked for. */
static bool take_gradient(const values *v, attn__question *q)
{
    if (!v->by[DEMO_D_O])
        return true;
    if (count_of(&v->by[DEMO_D_O]->tensor) != attn__count_o(&q->n))
        return false;
    q->d_o = numbers(v, DEMO_D_O);
    q->asked |= ASK_BACKWARD;
    return true;
}

/* (total, heads, dim) to (heads, total, dim). */
static double *turned(const values *v, int what)
{
    const attn_input *t = &v->by[what]->tensor;
    const int64_t total = t->shape[0], heads = t->shape[1], dim = t->shape[2];
    const double *x = numbers(v, what);
    double *y = attn__arena_doubles(v->arena, count_of(t) + 1);

    for (int64_t e = 0; x && y && e < count_of(t); e++)
        y[(e / dim % heads * total + e / dim / heads) * dim + e % dim] = x[e];
    return y;
}

static bool take_packed(const values *v, attn__question *q)
{
    const attn_input *tq, *tk, *tv;

    if (!v->by[DEMO_Q] || !v->by[DEMO_K] || !v->by[DEMO_V] ||
        !v->by[DEMO_CU_K])
        return false;
    tq = &v->by[DEMO_Q]->tensor;
    tk = &v->by[DEMO_K]->tensor;
    tv = &v->by[DEMO_V]->tensor;
    if (tq->rank != 3 || tk->rank != 3 || tv->rank != 3 ||
        tk->shape[1] == 0 || tq->shape[1] % tk->shape[1] != 0)
        return false;
    *q = (attn__question){
        .n = {1, tq->shape[1], tk->shape[1], tq->shape[0], tk->shape[0],
              tq->shape[2], tv->shape[2]},
        .q = turned(v, DEMO_Q),
        .k = turned(v, DEMO_K),
        .v = turned(v, DEMO_V),
        .window = {-1, -1},
        .cu_q = integers(v, DEMO_CU_Q),
        .cu_k = integers(v, DEMO_CU_K),
        .n_sequences = v->by[DEMO_CU_Q]->tensor.shape[0] - 1,
    };
    q->asked = attn__sizes_asked(&q->n) | ASK_VARLEN;
    return true;
}

/* Columns first ... first + width of a matrix. */
static double *columns(const values *v, const double *x, int64_t rows,
                       int64_t all, int64_t first, int64_t width)
{
    double *y = attn__arena_doubles(v->arena, rows * width + 1);

    for (int64_t e = 0; x && y && e < rows * width; e++)
        y[e] = x[e / width * all + first + e % width];
    return y;
}

static bool take_layer(const values *v, attn__question *q)
{
    const attn_input *tx = &v->by[DEMO_X]->tensor, *tw;
    int64_t heads, model, width;
    const double *w;

    if (!v->by[DEMO_W_QKV] || !v->by[DEMO_W_O] || !v->by[DEMO_HEADS])
        return false;
    tw = &v->by[DEMO_W_QKV]->tensor;
    heads = v->by[DEMO_HEADS]->integer[0];
    if (tx->rank != 3 || tw->rank != 2 || tw->shape[0] != tx->shape[2] ||
        heads < 1 || tw->shape[1] % (3 * heads) != 0)
        return false;
    model = tx->shape[2];
    width = tw->shape[1] / 3;
    w = numbers(v, DEMO_W_QKV);
    *q = (attn__question){
        .n = {tx->shape[0], heads, heads, tx->shape[1], tx->shape[1],
              width / heads, width / heads},
        .window = {-1, -1},
        .layer = {.model = model,
                  .x = numbers(v, DEMO_X),
                  .w_q = columns(v, w, model, 3 * width, 0, width),
                  .w_k = columns(v, w, model, 3 * width, width, width),
                  .w_v = columns(v, w, model, 3 * width, 2 * width, width),
                  .w_o = numbers(v, DEMO_W_O)},
    };
    q->q = q->k = q->v = attn__arena_doubles(
        v->arena, attn__count_q(&q->n) + 1); /* the projections come there */
    q->asked = attn__sizes_asked(&q->n) | ASK_LAYER | ASK_PACKED;
    return true;
}

bool attn__demo_understand(const attn_value *list, int32_t n, const int *what,
                           bool dense, attn__question *q, attn__arena *arena)
{
    values v = {.arena = arena, .dense = dense};

    for (int32_t x = 0; x < n; x++) {
        if (list[x].kind != ATTN_VALUE_NONE)
            v.by[what[list[x].parameter]] = &list[x];
    }
    if (v.by[DEMO_X])
        return take_layer(&v, q) && !arena->failed;
    if (v.by[DEMO_CU_Q])
        return take_packed(&v, q) && !arena->failed;
    if (!take_inputs(&v, q) || !take_gradient(&v, q))
        return false;
    take_pairs(&v, q);
    take_numbers(&v, q);
    take_vectors(&v, q);
    return !arena->failed;
}
