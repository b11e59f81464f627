/* SPDX-License-Identifier: Apache-2.0
 *
 * A ref_case computed by the library: see ref_library.h. */
#include "ref_library.h"

#include <stdlib.h>
#include <string.h>

#include "attn_ref.h"
#include "unit.h"

#define DROPOUT_SEED UINT64_C(1202056903)
#define DROPOUT_OFFSET 3

ref_case ref_library_case(const ref_features *f, uint64_t seed)
{
    ref_case c = ref_case_open(f, seed);
    double *lists[] = {c.q, c.k, c.v, c.d_o, c.dlse, c.bias, c.slopes, c.sinks};
    const int64_t counts[] = {c.n_q,  c.n_k,    c.n_v,      c.n_o,
                              c.rows, c.n_bias, c.n_slopes, c.f.heads_q};

    for (size_t l = 0; l < COUNT(lists); l++) {
        for (int64_t n = 0; lists[l] && n < counts[l]; n++)
            lists[l][n] = (double)(float)lists[l][n];
    }
    if (c.dropout)
        attn_ref_dropout(f->batch, f->heads_q, f->len_q, f->len_k, f->dropout,
                         DROPOUT_SEED, DROPOUT_OFFSET, 0, NULL, c.dropout);
    for (int64_t b = 0; !f->q_offset && b < f->batch; b++)
        c.q_offset[b] =
            attn_ref_q_offset(f->causal, f->len_q, f->len_k,
                              c.k_lengths ? c.k_lengths[b] : f->len_k);
    return c;
}

static void *room(int64_t n, size_t size)
{
    void *memory = calloc(n > 0 ? (size_t)n : 1, size);

    assert_non_null(memory);
    return memory;
}

static void *stored(attn_dtype dtype, const double *x, int64_t n)
{
    void *data = room(n, sizeof(double));

    for (int64_t i = 0; i < n; i++) {
        if (dtype == ATTN_F32)
            ((float *)data)[i] = (float)x[i];
        else
            ((double *)data)[i] = x[i];
    }
    return data;
}

/* Takes the data over. */
static long double *unstored(attn_dtype dtype, void *data, int64_t n)
{
    long double *x = room(n, sizeof *x);

    for (int64_t i = 0; i < n; i++)
        x[i] = dtype == ATTN_F32 ? (long double)((float *)data)[i]
                                 : (long double)((double *)data)[i];
    free(data);
    return x;
}

/* Dense over the axes that `has` names, 1 along the others. */
static attn_input spread(const void *data, attn_dtype dtype, const char *axes,
                         const char *has, const int64_t *length)
{
    const int32_t rank = (int32_t)strlen(axes);
    int64_t shape[4];

    for (int32_t a = 0; a < rank; a++)
        shape[a] = strchr(has, axes[a]) ? length[a] : 1;
    return attn_in_dense(data, dtype, rank, shape);
}

/* A computation by the library: what it was given, and where results go. */
typedef struct call {
    const ref_case *c;
    attn_dtype dtype;
    attn_desc desc;
    attn_args args;
    void *inputs[16]; /* to be freed */
    int n_inputs;
} call;

static void *give(call *x, const double *values, int64_t n)
{
    void *data = stored(x->dtype, values, n);

    x->inputs[x->n_inputs++] = data;
    return data;
}

static void describe(call *x, double change)
{
    const ref_features *f = &x->c->f;

    attn_desc_init(&x->desc, x->dtype, f->batch, f->heads_q, f->heads_kv,
                   f->len_q, f->len_k, f->dim_qk, f->dim_v);
    x->desc.causal = f->causal;
    x->desc.window_left = f->left - 1;
    x->desc.window_right = f->right - 1;
    x->desc.softcap = f->softcap;
    x->desc.scale = x->c->scale * (1 + change);
    x->desc.dropout_p = f->dropout;
    x->desc.inputs =
        (f->mask ? ATTN_WITH_MASK : 0) | (f->bias ? ATTN_WITH_BIAS : 0) |
        (f->slopes ? ATTN_WITH_ALIBI : 0) | (f->sinks ? ATTN_WITH_SINKS : 0) |
        (f->k_lengths ? ATTN_WITH_K_LENGTHS : 0) |
        (f->q_offset ? ATTN_WITH_Q_OFFSET : 0);
}

static void bring(call *x)
{
    const ref_case *c = x->c;
    const ref_features *f = &c->f;
    const attn_dtype t = x->dtype;
    const int64_t pairs[] = {f->batch, f->heads_q, f->len_q, f->len_k};
    attn_args *a = &x->args;

    attn_args_init(a);
    a->q = attn_in_bhsd(give(x, c->q, c->n_q), t, f->batch, f->heads_q,
                        f->len_q, f->dim_qk);
    a->kv.k = attn_in_bhsd(give(x, c->k, c->n_k), t, f->batch, f->heads_kv,
                           f->len_k, f->dim_qk);
    a->kv.v = attn_in_bhsd(give(x, c->v, c->n_v), t, f->batch, f->heads_kv,
                           f->len_k, f->dim_v);
    a->d_o = attn_in_bhsd(give(x, c->d_o, c->n_o), t, f->batch, f->heads_q,
                          f->len_q, f->dim_v);
    if (c->dlse)
        a->dlse = attn_in_dense(give(x, c->dlse, c->rows), t, 3, pairs);
    if (c->mask)
        a->mask = spread(c->mask, ATTN_BOOL, "bhij", f->mask, pairs);
    if (c->bias)
        a->bias =
            spread(give(x, c->bias, c->n_bias), t, "bhij", f->bias, pairs);
    if (c->slopes && c->slopes_stride[0] == 0)
        a->alibi_slopes =
            attn_in_dense(give(x, c->slopes, c->n_slopes), t, 1, pairs + 1);
    else if (c->slopes)
        a->alibi_slopes =
            attn_in_dense(give(x, c->slopes, c->n_slopes), t, 2, pairs);
    if (c->sinks)
        a->sinks =
            attn_in_dense(give(x, c->sinks, f->heads_q), t, 1, pairs + 1);
    if (c->k_lengths)
        a->kv.k_lengths = attn_in_dense(c->k_lengths, ATTN_I64, 1, pairs);
    if (f->q_offset)
        a->q_offset = attn_in_dense(c->q_offset, ATTN_I64, 1, pairs);
    a->seed = DROPOUT_SEED;
    a->offset = DROPOUT_OFFSET;
}

static attn_tensor result(attn_dtype dtype, int32_t rank, const int64_t *shape,
                          bool wanted)
{
    int64_t n = 1;

    if (!wanted)
        return (attn_tensor){0};
    for (int32_t a = 0; a < rank; a++)
        n *= shape[a];
    return attn_dense(room(n, sizeof(double)), dtype, rank, shape);
}

static void ask(call *x)
{
    const ref_features *f = &x->c->f;
    const int64_t pairs[] = {f->batch, f->heads_q, f->len_q, f->len_k};
    const int64_t o[] = {f->batch, f->heads_q, f->len_q, f->dim_v};
    attn_args *a = &x->args;
    const attn_dtype t = x->dtype;

    a->o = result(t, 4, o, true);
    a->lse = result(ATTN_F64, 3, pairs, true);
    a->entropy = result(ATTN_F64, 3, pairs, true);
    a->weights = result(t, 4, pairs, true);
    a->dq = result(t, 4, a->q.shape, true);
    a->dk = result(t, 4, a->kv.k.shape, true);
    a->dv = result(t, 4, a->kv.v.shape, true);
    a->dbias = result(t, a->bias.rank, a->bias.shape, x->c->bias != NULL);
    a->dsinks = result(ATTN_F64, 1, pairs + 1, x->c->sinks != NULL);
    a->dslopes = result(ATTN_F64, a->alibi_slopes.rank, a->alibi_slopes.shape,
                        x->c->slopes != NULL);
}

static long double *take(const attn_tensor *t, int64_t n)
{
    return t->data ? unstored(t->dtype, t->data, n) : NULL;
}

ref_outputs ref_library(const ref_case *c, attn_dtype dtype, double change)
{
    call x = {.c = c, .dtype = dtype};
    attn_args *a = &x.args;
    attn_diag diag;
    ref_outputs out;

    describe(&x, change);
    bring(&x);
    ask(&x);
    if (attn_attention(&x.desc, a, 2, &diag) != ATTN_OK ||
        attn_attention_backward(&x.desc, a, 2, &diag) != ATTN_OK)
        fail_msg("%s: %s: %s", c->f.name, diag.field, diag.message);
    out = (ref_outputs){
        .o = take(&a->o, c->n_o),
        .lse = take(&a->lse, c->rows),
        .entropy = take(&a->entropy, c->rows),
        .weights = take(&a->weights, c->pairs),
        .dq = take(&a->dq, c->n_q),
        .dk = take(&a->dk, c->n_k),
        .dv = take(&a->dv, c->n_v),
        .dbias = take(&a->dbias, c->n_bias),
        .dslopes = take(&a->dslopes, c->n_slopes),
        .dsinks = take(&a->dsinks, c->f.heads_q),
    };
    while (x.n_inputs > 0)
        free(x.inputs[--x.n_inputs]);
    return out;
}
