/* SPDX-License-Identifier: Apache-2.0
 *
 * Computing a lesson. Arrays become dense fp64 matrices of one head, which the
 * stages of attn_ref.h turn into each other; nothing is left out, so that
 * memory is a few times Lq x Lk. */
#include "lesson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ inputs */

/* To f64, first as --dtype rounds it. Text is refused later, by name. */
static int widen(const cli_inputs *inputs, const char *name,
                 attn_dtype rounded)
{
    attn_array *a = cli_input(inputs, name);
    attn_diag diag;

    if (!a || a->dtype == ATTN_NONE)
        return CLI_GO;
    if ((rounded != ATTN_NONE &&
         attn_array_convert(a, rounded, &diag) != ATTN_OK) ||
        attn_array_convert(a, ATTN_F64, &diag) != ATTN_OK)
        return cli_refused(&diag);
    return CLI_GO;
}

int cli_lesson_widen(const cli_inputs *inputs, cli_attention *options)
{
    static const char *const rounded[] = {"q", "k", "v", "do", "x", "x_kv",
                                          "dy", CLI_PARAMETERS};
    static const char *const others[] = {"bias", "alibi_slopes", "sinks",
                                         "dlse"};
    int code = CLI_GO;

    for (size_t i = 0; i < sizeof rounded / sizeof *rounded && code == CLI_GO;
         i++)
        code = widen(inputs, rounded[i], options->dtype);
    for (size_t i = 0; i < sizeof others / sizeof *others && code == CLI_GO;
         i++)
        code = widen(inputs, others[i], ATTN_NONE);
    options->dtype = ATTN_F64;
    return code;
}

/* ------------------------------------------------------------------ memory */

double *cli_numbers(int64_t rows, int64_t columns)
{
    return calloc((size_t)rows * (size_t)columns + 1, sizeof(double));
}

static bool make(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;
    const int64_t n = p->len_q, m = p->len_k;

    s->q = cli_numbers(n, p->dim_qk);
    s->k = cli_numbers(m, p->dim_qk);
    s->v = cli_numbers(m, p->dim_v);
    s->dots = cli_numbers(n, m);
    s->raw = cli_numbers(n, m);
    s->softcapped = cli_numbers(n, m);
    s->biased = cli_numbers(n, m);
    s->visible = calloc((size_t)n * (size_t)m + 1, 1);
    s->p = cli_numbers(n, m);
    s->lse = cli_numbers(n, 1);
    s->entropy = cli_numbers(n, 1);
    s->o = cli_numbers(n, p->dim_v);
    return s->q && s->k && s->v && s->dots && s->raw && s->softcapped &&
           s->biased && s->visible && s->p && s->lse && s->entropy && s->o;
}

static bool make_gradients(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    s->d_o = cli_numbers(p->len_q, p->dim_v);
    s->dp = cli_numbers(p->len_q, p->len_k);
    s->ds = cli_numbers(p->len_q, p->len_k);
    s->dq = cli_numbers(p->len_q, p->dim_qk);
    s->dk = cli_numbers(p->len_k, p->dim_qk);
    s->dv = cli_numbers(p->len_k, p->dim_v);
    s->dbias = s->bias ? cli_numbers(p->len_q, p->len_k) : NULL;
    s->dsinks = s->sink ? cli_numbers(1, 1) : NULL;
    s->dslopes = s->slope ? cli_numbers(1, 1) : NULL;
    return s->d_o && s->dp && s->ds && s->dq && s->dk && s->dv &&
           !s->dbias == !s->bias && !s->dsinks == !s->sink &&
           !s->dslopes == !s->slope;
}

void cli_lesson_free(cli_lesson *s)
{
    double *all[] = {s->q,    s->k,       s->v,   s->raw, s->softcapped,
                     s->biased, s->p,     s->lse, s->entropy, s->o,
                     s->dropout, s->d_o,  s->dp,  s->ds,  s->dq,
                     s->dk,   s->dv,      s->dlse, s->bias, s->slope,
                     s->sink, s->dots,    s->dbias, s->dsinks,
                     s->dslopes};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    for (int i = 0; i < s->n_parts; i++)
        free(s->parts[i].x);
    free(s->visible);
    free(s->mask);
    memset(s, 0, sizeof *s);
}

/* ----------------------------------------------------------------- copying */

/* Where (b, h) of a tensor begins that is broadcast from the right to (B, H,
 * rows, columns); *r and *c are the strides of its last two axes. */
static int64_t begin(const attn_input *t, int64_t b, int64_t h, int64_t *r,
                     int64_t *c)
{
    const int64_t place[2] = {b, h};
    int64_t stride[4], at = 0;

    for (int axis = 0; axis < 4; axis++) {
        const int own = axis - (4 - t->rank);

        stride[axis] = own < 0 || t->shape[own] == 1 ? 0 : t->stride[own];
        if (axis < 2)
            at += stride[axis] * place[axis];
    }
    *r = stride[2];
    *c = stride[3];
    return at;
}

static void copy_head(const attn_input *t, int64_t b, int64_t h, int64_t rows,
                      int64_t columns, double *to)
{
    int64_t r, c;
    const int64_t at = begin(t, b, h, &r, &c);

    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[i * columns + j] =
                ((const double *)t->data)[at + i * r + j * c];
}

/* Mask and bias of the head, spread over every pair. */
static bool copy_pairs(cli_lesson *s, const attn_args *a)
{
    attn_ref_problem *p = &s->problem;
    const int64_t dense[4] = {0, 0, p->len_k, 1};
    int64_t r, c, at;

    if (a->bias.dtype != ATTN_NONE) {
        s->bias = cli_numbers(p->len_q, p->len_k);
        if (!s->bias)
            return false;
        copy_head(&a->bias, s->batch, s->head, p->len_q, p->len_k, s->bias);
        p->bias = s->bias;
        memcpy(p->bias_stride, dense, sizeof dense);
    }
    if (a->mask.dtype == ATTN_NONE)
        return true;
    s->mask = calloc((size_t)p->len_q * (size_t)p->len_k + 1, 1);
    if (!s->mask)
        return false;
    at = begin(&a->mask, s->batch, s->head, &r, &c);
    for (int64_t i = 0; i < p->len_q; i++)
        for (int64_t j = 0; j < p->len_k; j++)
            s->mask[i * p->len_k + j] =
                ((const unsigned char *)a->mask.data)[at + i * r + j * c];
    p->mask = s->mask;
    memcpy(p->mask_stride, dense, sizeof dense);
    return true;
}

/* The slope and the sink of the head: (H), or (B, H), or one for all. */
static bool copy_number(const attn_input *t, int64_t b, int64_t h,
                        double **to, const attn_ref_real **of_problem)
{
    int64_t at = 0;

    if (t->dtype == ATTN_NONE)
        return true;
    *to = cli_numbers(1, 1);
    if (!*to)
        return false;
    if (t->rank > 1 && t->shape[0] > 1)
        at += b * t->stride[0];
    if (t->shape[t->rank - 1] > 1)
        at += h * t->stride[t->rank - 1];
    **to = ((const double *)t->data)[at];
    *of_problem = *to;
    return true;
}

static void describe(cli_lesson *s, const cli_problem *p)
{
    const attn_desc *d = &p->desc;
    const attn_array *lengths = cli_input(p->inputs, "k_lengths");
    attn_ref_problem *r = &s->problem;

    s->n_batch = d->batch;
    s->n_heads = d->heads_q;
    s->n_kv = d->heads_kv;
    s->kv_head = s->head / (d->heads_q / d->heads_kv);
    attn_ref_problem_init(r, 1, 1, 1, d->len_q, d->len_k, d->dim_qk,
                          d->dim_v);
    r->scale = d->scale;
    r->softcap = d->softcap;
    r->causal = d->causal;
    r->empty_rows = d->empty_rows;
    r->window_left = d->window_left;
    r->window_right = d->window_right;
    s->q_offset = cli_offset_of(p, s->batch);
    r->q_offset = &s->q_offset;
    if (lengths) {
        s->k_length = cli_index(lengths, s->batch);
        r->k_lengths = &s->k_length;
    }
}

static bool copy_all(cli_lesson *s, const cli_problem *p)
{
    const attn_args *a = &p->args;
    attn_ref_problem *r = &s->problem;

    copy_head(&a->q, s->batch, s->head, r->len_q, r->dim_qk, s->q);
    copy_head(&a->kv.k, s->batch, s->kv_head, r->len_k, r->dim_qk, s->k);
    copy_head(&a->kv.v, s->batch, s->kv_head, r->len_k, r->dim_v, s->v);
    if (p->desc.dropout_p > 0) {
        s->dropout = cli_numbers(r->len_q, r->len_k);
        if (!s->dropout)
            return false;
        attn_ref_dropout(1, 1, r->len_q, r->len_k, p->desc.dropout_p,
                         a->seed, a->offset, s->batch * s->n_heads + s->head,
                         NULL, s->dropout);
        r->dropout = s->dropout;
    }
    return copy_pairs(s, a) &&
           copy_number(&a->alibi_slopes, s->batch, s->head, &s->slope,
                       &r->alibi_slopes) &&
           copy_number(&a->sinks, 0, s->head, &s->sink, &r->sinks);
}

/* --------------------------------------------------------------- computing */

static void forward(cli_lesson *s)
{
    const attn_ref_problem *r = &s->problem;
    attn_ref_problem unscaled = *r;

    unscaled.scale = 1;
    attn_ref_scores(&unscaled, ATTN_STAGE_RAW, s->q, s->k, s->dots);
    attn_ref_scores(r, ATTN_STAGE_RAW, s->q, s->k, s->raw);
    attn_ref_scores(r, ATTN_STAGE_SOFTCAPPED, s->q, s->k, s->softcapped);
    attn_ref_scores(r, ATTN_STAGE_BIASED, s->q, s->k, s->biased);
    attn_ref_visible(r, s->visible);
    attn_ref_softmax(r, s->biased, s->visible, s->p, s->lse);
    attn_ref_entropy(r, s->visible, s->p, s->entropy);
    attn_ref_output(r, s->visible, s->p, s->v, s->o);
}

static bool backward(cli_lesson *s, const cli_problem *p)
{
    const attn_ref_problem *r = &s->problem;
    const int64_t row = s->batch * s->n_heads + s->head;

    if (!make_gradients(s))
        return false;
    if (s->layer) {
        if (!cli_lesson_take_layer_grad(s))
            return false;
    } else if (s->has_do)
        copy_head(&p->args.d_o, s->batch, s->head, r->len_q, r->dim_v,
                  s->d_o);
    else
        memcpy(s->d_o, s->o,
               (size_t)r->len_q * (size_t)r->dim_v * sizeof *s->o);
    if (p->args.dlse.dtype != ATTN_NONE) {
        s->dlse = cli_numbers(r->len_q, 1);
        if (!s->dlse)
            return false;
        memcpy(s->dlse, (const double *)p->args.dlse.data + row * r->len_q,
               (size_t)r->len_q * sizeof *s->dlse);
    }
    attn_ref_output_backward(r, s->visible, s->p, s->v, s->d_o, s->dp, s->dv);
    attn_ref_softmax_backward(r, s->visible, s->p, s->lse, s->dp, s->dlse,
                              s->ds, s->dsinks);
    attn_ref_scores_backward(r, s->q, s->k, s->visible, s->ds, s->dq, s->dk,
                             s->dbias, s->dslopes);
    return true;
}

/* The row that says most: whose weights are furthest from equal ones. */
static int64_t sharpest(const cli_lesson *s)
{
    double most = -1;
    int64_t best = 0;

    for (int64_t i = 0; i < s->problem.len_q; i++) {
        const int64_t n = cli_lesson_row(s, i).n_visible;
        const double gain = n > 0 ? log((double)n) - s->entropy[i] : 0;

        if (gain > most) {
            most = gain;
            best = i;
        }
    }
    return best;
}

int cli_lesson_learn(cli_lesson *s, const cli_problem *p)
{
    describe(s, p);
    if (!make(s) || !copy_all(s, p))
        return cli_no_memory();
    forward(s);
    if (s->layer && !cli_lesson_take_layer(s))
        return cli_no_memory();
    if (s->grad && !backward(s, p))
        return cli_no_memory();
    if (!s->one_row)
        s->row = sharpest(s);
    return CLI_GO;
}

/* ------------------------------------------------------------------ asking */

cli_row cli_lesson_row(const cli_lesson *s, int64_t i)
{
    const int64_t m = s->problem.len_k;
    cli_row row = {0, -1, -INFINITY, 0, 0};

    for (int64_t j = 0; j < m; j++) {
        if (!s->visible[i * m + j])
            continue;
        row.n_visible++;
        row.max = fmax(row.max, s->biased[i * m + j]);
        if (row.best < 0 || s->p[i * m + j] > s->p[i * m + row.best])
            row.best = j;
    }
    if (s->sink)
        row.max = fmax(row.max, *s->sink);
    for (int64_t j = 0; j < m; j++)
        if (s->visible[i * m + j])
            row.sum += exp(s->biased[i * m + j] - row.max);
    if (s->sink && *s->sink > -INFINITY)
        row.sum += exp(*s->sink - row.max);
    row.effective = row.n_visible > 0 ? exp(s->entropy[i]) : 0;
    return row;
}

int64_t cli_strongest(const cli_lesson *s, int64_t i, double least,
                      int64_t *keys, int64_t n)
{
    const int64_t m = s->problem.len_k;
    const double *p = s->p + i * m;
    int64_t found = 0;

    for (int64_t j = 0; j < m; j++) {
        int64_t at;

        if (!(s->visible[i * m + j] && p[j] >= least))
            continue;
        if (found == n && p[keys[n - 1]] >= p[j])
            continue;
        found += found < n;
        for (at = found - 1; at > 0 && p[keys[at - 1]] < p[j]; at--)
            keys[at] = keys[at - 1];
        keys[at] = j;
    }
    return found;
}

const char *cli_key_name(const cli_lesson *s, int64_t j, char *text,
                         size_t size)
{
    const attn_array *t = s->tokens;

    if (t)
        return t->text[(t->rank > 1 ? s->batch * s->problem.len_k : 0) + j];
    snprintf(text, size, "key %lld", (long long)j);
    return text;
}

const char *cli_query_name(const cli_lesson *s, int64_t i, char *text,
                           size_t size)
{
    if (s->tokens && s->problem.len_q == s->problem.len_k)
        return cli_key_name(s, i, text, size);
    snprintf(text, size, "query %lld", (long long)i);
    return text;
}
