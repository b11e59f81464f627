/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference run on a ref_case: see ref_run.h. */
#include "ref_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static void *room(int64_t n, size_t size)
{
    void *memory = calloc(n > 0 ? (size_t)n : 1, size);

    assert_non_null(memory);
    return memory;
}

static attn_ref_real *reals(const double *x, int64_t n)
{
    attn_ref_real *y;

    if (!x)
        return NULL;
    y = room(n, sizeof *y);
    for (int64_t i = 0; i < n; i++)
        y[i] = (attn_ref_real)x[i];
    return y;
}

ref_inputs ref_inputs_open(const ref_case *c)
{
    const ref_features *f = &c->f;
    ref_inputs in = {
        .q = reals(c->q, c->n_q),
        .k = reals(c->k, c->n_k),
        .v = reals(c->v, c->n_v),
        .d_o = reals(c->d_o, c->n_o),
        .dlse = reals(c->dlse, c->rows),
        .bias = reals(c->bias, c->n_bias),
        .slopes = reals(c->slopes, c->n_slopes),
        .sinks = reals(c->sinks, f->heads_q),
        .dropout = reals(c->dropout, c->pairs),
    };
    attn_ref_problem *p = &in.problem;

    attn_ref_problem_init(p, f->batch, f->heads_q, f->heads_kv, f->len_q,
                          f->len_k, f->dim_qk, f->dim_v);
    p->scale = (attn_ref_real)c->scale;
    p->softcap = (attn_ref_real)f->softcap;
    p->causal = f->causal;
    p->window_left = f->left - 1;
    p->window_right = f->right - 1;
    p->q_offset = c->q_offset;
    p->k_lengths = c->k_lengths;
    p->mask = c->mask;
    p->bias = in.bias;
    p->alibi_slopes = in.slopes;
    p->sinks = in.sinks;
    p->dropout = in.dropout;
    memcpy(p->mask_stride, c->mask_stride, sizeof p->mask_stride);
    memcpy(p->bias_stride, c->bias_stride, sizeof p->bias_stride);
    memcpy(p->slopes_stride, c->slopes_stride, sizeof p->slopes_stride);
    return in;
}

void ref_inputs_close(ref_inputs *in)
{
    void *owned[] = {in->q,    in->k,      in->v,     in->d_o,    in->dlse,
                     in->bias, in->slopes, in->sinks, in->dropout};

    for (size_t n = 0; n < COUNT(owned); n++)
        free(owned[n]);
    *in = (ref_inputs){0};
}

/* Hands over x as long double and frees it. */
static long double *widened(attn_ref_real *x, int64_t n)
{
    long double *y;

    if (!x)
        return NULL;
    y = room(n, sizeof *y);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i];
    free(x);
    return y;
}

static void forward(const attn_ref_stages *stages, const ref_case *c,
                    const ref_inputs *in, ref_outputs *out)
{
    const attn_ref_results results = {
        .o = room(c->n_o, sizeof(attn_ref_real)),
        .lse = room(c->rows, sizeof(attn_ref_real)),
        .entropy = room(c->rows, sizeof(attn_ref_real)),
        .weights = room(c->pairs, sizeof(attn_ref_real)),
        .softcapped = room(c->pairs, sizeof(attn_ref_real)),
        .visible = room(c->pairs, 1),
    };

    assert_int_equal(
        attn_ref_forward(stages, &in->problem, in->q, in->k, in->v, &results),
        ATTN_OK);
    out->o = widened(results.o, c->n_o);
    out->lse = widened(results.lse, c->rows);
    out->entropy = widened(results.entropy, c->rows);
    out->weights = widened(results.weights, c->pairs);
    out->softcapped = widened(results.softcapped, c->pairs);
    out->visible = results.visible;
}

static void backward(const attn_ref_stages *stages, const ref_case *c,
                     const ref_inputs *in, ref_outputs *out)
{
    const size_t size = sizeof(attn_ref_real);
    const attn_ref_gradients g = {
        .dq = room(c->n_q, size),
        .dk = room(c->n_k, size),
        .dv = room(c->n_v, size),
        .dbias = c->bias ? room(c->n_bias, size) : NULL,
        .dslopes = c->slopes ? room(c->n_slopes, size) : NULL,
        .dsinks = c->sinks ? room(c->f.heads_q, size) : NULL,
    };

    assert_int_equal(attn_ref_backward(stages, &in->problem, in->q, in->k,
                                       in->v, in->d_o, in->dlse, &g),
                     ATTN_OK);
    out->dq = widened(g.dq, c->n_q);
    out->dk = widened(g.dk, c->n_k);
    out->dv = widened(g.dv, c->n_v);
    out->dbias = widened(g.dbias, c->n_bias);
    out->dslopes = widened(g.dslopes, c->n_slopes);
    out->dsinks = widened(g.dsinks, c->f.heads_q);
}

ref_outputs ref_run_with(const attn_ref_stages *stages, const ref_case *c,
                         const ref_inputs *in)
{
    ref_outputs out = {0};

    forward(stages, c, in, &out);
    if (in->problem.empty_rows != ATTN_EMPTY_NAN)
        backward(stages, c, in, &out);
    return out;
}

ref_outputs ref_run(const ref_case *c)
{
    ref_inputs in = ref_inputs_open(c);
    ref_outputs out = ref_run_with(NULL, c, &in);

    ref_inputs_close(&in);
    return out;
}
