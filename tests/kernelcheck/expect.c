/* SPDX-License-Identifier: Apache-2.0
 *
 * What must come out of a problem, and how far off it may be: the reference in
 * long double, one batch entry (or packed sequence) at a time, and the bounds
 * of docs/numerics.md beside it. Compiled with src/ref/wide.h. */
#include "entry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- bounds */

/* The roundings of one problem's type (docs/numerics.md). */
typedef struct units {
    double u;       /* of the accumulator */
    double storage; /* half an ulp of the outputs' type, relative */
    double tiny;    /* the smallest normal weight */
    double least;   /* the smallest number of all: what underflow loses */
    double block;   /* sqrt(T) + sqrt(n_k / T) + 8 */
} units;

static units units_of(const entry *e)
{
    const bool wide = e->p->desc.dtype == ATTN_F64;
    units n;

    n.u = wide ? 0x1p-53 : 0x1p-24;
    n.tiny = wide ? 0x1p-1022 : 0x1p-126;
    n.least = wide ? 0x1p-1074 : 0x1p-149;
    n.storage = e->p->desc.dtype == ATTN_BF16  ? 0x1p-9
                : e->p->desc.dtype == ATTN_F16 ? 0x1p-12
                                               : n.u;
    n.block = sqrt(ATTN__BLOCK_KEYS) +
              sqrt((double)e->len_k / ATTN__BLOCK_KEYS) + 8;
    return n;
}

/* What a row's and a pair's bounds are made of. */
typedef struct row_terms {
    double s;       /* max over visible j of the terms of the score */
    double epsilon; /* relative error of a weight */
    double eta;     /* relative error of dp and delta */
    double mean_a;  /* sum_j p_ij A_ij, A_ij = sum_c |d_o||v| * factor */
    double delta;   /* error of delta from what underflow took of o */
} row_terms;

/* Bounds are wanted to a few digits: four sums side by side. */
static double product_of(const double *x, const double *y, int64_t n)
{
    double sum[4] = {0, 0, 0, 0};
    int64_t c = 0;

    for (; c + 4 <= n; c += 4)
        for (int k = 0; k < 4; k++)
            sum[k] += x[c + k] * y[c + k];
    for (; c < n; c++)
        sum[0] += x[c] * y[c];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

static double score_terms(const entry *e, int64_t h, int64_t i, int64_t j)
{
    const int64_t g = h / (e->heads_q / e->heads_kv);
    const int64_t at = (h * e->len_q + i) * e->len_k + j;
    double sum;

    sum = product_of(e->q_size + (h * e->len_q + i) * e->dim,
                     e->k_size + (g * e->len_k + j) * e->dim, e->dim);
    sum *= fabs(e->dim > 0 ? e->p->desc.scale : 0);
    if (e->bias && e->visible[at])
        sum += fabs((double)e->bias[at]);
    if (e->slopes)
        sum += fabs((double)e->slopes[h]) *
               fabs((double)(i + e->q_offset - j));
    return sum;
}

static double dropped(const entry *e, int64_t at)
{
    return e->dropout ? (double)e->dropout[at] : 1;
}

/* A_ij: the absolute terms of dp_ij. */
static double dp_terms(const entry *e, int64_t h, int64_t i, int64_t j)
{
    const int64_t g = h / (e->heads_q / e->heads_kv);
    const double sum =
        product_of(e->d_o_size + (h * e->len_q + i) * e->dim_v,
                   e->v_size + (g * e->len_k + j) * e->dim_v, e->dim_v);

    return sum * dropped(e, (h * e->len_q + i) * e->len_k + j);
}

/* Half an ulp of the output's type, with the step of its denormals. */
static double rounding(attn_dtype dtype, double value)
{
    switch (dtype) {
    case ATTN_F64:
        return 0x1p-53 * fabs(value) + 0x1p-1074;
    case ATTN_F32:
        return 0x1p-24 * fabs(value) + 0x1p-149;
    case ATTN_BF16:
        return 0x1p-8 * fabs(value) + 0x1p-133;
    default:
        return 0x1p-11 * fabs(value) + 0x1p-24;
    }
}

static row_terms terms_of(const entry *e, const units *n, int64_t h,
                          int64_t i)
{
    row_terms t = {0, 0, 0, 0, 0};

    for (int64_t j = 0; j < e->len_k; j++) {
        const int64_t at = (h * e->len_q + i) * e->len_k + j;
        double s;

        if (!e->visible[at])
            continue;
        s = score_terms(e, h, i, j);
        t.s = s > t.s ? s : t.s;
        if (!e->d_o)
            continue;
        t.mean_a += (double)e->weights[at] * dp_terms(e, h, i, j);
        t.delta += n->tiny * dp_terms(e, h, i, j);
    }
    if (e->sinks && isfinite((double)e->sinks[h]))
        t.s = fmax(t.s, fabs((double)e->sinks[h]));
    t.epsilon = 8 * n->u * (sqrt((double)e->dim + 2) * t.s + n->block);
    t.eta = 8 * n->u * (sqrt((double)e->dim_v + 2) + 4) + 2 * n->storage;
    for (int64_t c = 0; e->d_o && c < e->dim_v; c++)
        t.delta += rounding(e->p->desc.dtype, 0) *
                   e->d_o_size[(h * e->len_q + i) * e->dim_v + c];
    return t;
}

/* --------------------------------------------------------------- collect */

static field *field_of(expectation *x, const char *name)
{
    for (int i = 0; i < x->n; i++)
        if (strcmp(x->field[i].name, name) == 0)
            return &x->field[i];
    return NULL;
}

/* Add to one element of a field (outputs summed over entries come by parts).
 */
static void add(field *f, int64_t index, real want, double bound)
{
    f->want[index] += want;
    f->bound[index] += bound;
}

static void add_row(expectation *x, const entry *e, const units *n, int64_t h,
                    int64_t i, const row_terms *t)
{
    field *o = field_of(x, "o"), *lse = field_of(x, "lse");
    const attn_input like_o = attn_in(o->got), like_lse = attn_in(lse->got);
    const int64_t g = h / (e->heads_q / e->heads_kv);
    const int64_t row = h * e->len_q + i;
    const double tail = (double)e->len_k;
    double *values = zeros(2 * e->dim_v, sizeof *values);
    double *largest = values + e->dim_v;

    for (int64_t j = 0; j < e->len_k; j++) {
        const int64_t pair = row * e->len_k + j;
        const double *v = e->v_size + (g * e->len_k + j) * e->dim_v;
        const double p = (double)e->weights[pair] * dropped(e, pair);

        for (int64_t c = 0; e->visible[pair] && c < e->dim_v; c++) {
            values[c] += p * v[c];
            largest[c] = v[c] > largest[c] ? v[c] : largest[c];
        }
    }
    for (int64_t c = 0; c < e->dim_v; c++) {
        const int64_t at = row_index(e, &like_o, e->q_start, h, i, c);

        o->rounded[at] += n->storage * values[c];
        add(o, at, e->o[row * e->dim_v + c],
            t->epsilon * values[c] + tail * n->tiny * 2 * largest[c] +
                rounding(o->got.dtype, (double)e->o[row * e->dim_v + c]));
    }
    free(values);
    add(lse, stats_index(e, &like_lse, h, i), e->lse[row],
        t->epsilon + rounding(lse->got.dtype, (double)e->lse[row]) +
            n->u * fabs((double)e->lse[row]));
}

static void add_entropy(expectation *x, const entry *e, int64_t h, int64_t i,
                        const row_terms *t)
{
    field *f = field_of(x, "entropy");
    const int64_t row = h * e->len_q + i;
    double spread = 1;

    if (!f)
        return;
    for (int64_t j = 0; j < e->len_k; j++) {
        const double p = (double)e->weights[row * e->len_k + j];

        if (p > 0)
            spread += p * (fabs(log(p)) + 1);
    }
    const attn_input like = attn_in(f->got);

    add(f, stats_index(e, &like, h, i), e->entropy[row],
        t->epsilon * spread +
            rounding(f->got.dtype, (double)e->entropy[row]));
}

/* weights, and the chosen stage of the scores. */
static void add_pairs(expectation *x, const entry *e, const units *n,
                      int64_t h, int64_t i, const row_terms *t)
{
    field *w = field_of(x, "weights"), *s = field_of(x, "stage");
    if (!w)
        return;
    for (int64_t j = 0; j < e->len_k; j++) {
        const int64_t pair = (h * e->len_q + i) * e->len_k + j;
        const int64_t at =
            ((e->b * e->heads_q + h) * e->len_q + i) * e->len_k + j;
        const double p = (double)e->weights[pair];
        /* Keys that a page table does not reach are not read: raw scores
         * there count as 0. */
        const bool unread = paged(e->p) && j >= e->length &&
                            e->p->stage != ATTN_STAGE_BIASED;
        const real score = unread ? 0 : e->stage[pair];
        const double size = unread ? 0 : score_terms(e, h, i, j);

        add(w, at, e->weights[pair],
            t->epsilon * p + 2 * n->tiny + rounding(w->got.dtype, p));
        add(s, at, score,
            8 * n->u * (sqrt((double)e->dim + 2) + 4) * size +
                8 * n->u * fabs((double)score) +
                rounding(s->got.dtype, (double)score));
    }
}

static void add_head_gradients(expectation *x, const entry *e, int64_t h,
                               double slope_bound, double sink_bound)
{
    field *slopes = field_of(x, "dslopes"), *sinks = field_of(x, "dsinks");

    if (slopes) {
        const attn_input like = attn_in(slopes->got);

        add(slopes, slope_index(e, &like, h), e->dslopes[h],
            slope_bound + rounding(slopes->got.dtype,
                                   (double)e->dslopes[h]));
    }
    if (sinks)
        add(sinks, h, e->dsinks[h],
            sink_bound + rounding(sinks->got.dtype, (double)e->dsinks[h]));
}

/* Bounds of dq and, summed over rows, of dk and dv. `g_ij` is the size of the
 * terms of ds_ij, relative error 2 (epsilon + eta). */
typedef struct key_bounds {
    double *dk, *dv;
} key_bounds;

static void add_dq(expectation *x, const entry *e, int64_t h, int64_t i,
                   const double *bound)
{
    field *f = field_of(x, "dq");
    const real *dq = e->dq + (h * e->len_q + i) * e->dim;

    if (!f)
        return;
    const attn_input like = attn_in(f->got);

    for (int64_t c = 0; c < e->dim; c++)
        add(f, row_index(e, &like, e->q_start, h, i, c), dq[c],
            bound[c] + rounding(f->got.dtype, (double)dq[c]));
}

static void add_row_gradients(expectation *x, const entry *e, const units *n,
                              int64_t h, int64_t i, const row_terms *t,
                              const key_bounds *keys, double *slope_bound,
                              double *sink_bound)
{
    const int64_t g = h / (e->heads_q / e->heads_kv);
    const int64_t row = h * e->len_q + i;
    const double scale = fabs(e->dim > 0 ? e->p->desc.scale : 0);
    const double dlse = e->dlse ? fabs((double)e->dlse[row]) : 0;
    /* The bend of the softcap: its slope moves by 2/softcap of the score. */
    const double bend =
        e->p->desc.softcap > 0 ? 1 + 2 / e->p->desc.softcap : 1;
    const double rate = 2 * bend * (t->epsilon + t->eta) +
                        8 * n->u * (n->block + sqrt((double)e->len_q) + 2);
    field *db = field_of(x, "dbias");
    double *dq = calloc((size_t)e->dim + 1, sizeof *dq);

    for (int64_t j = 0; j < e->len_k; j++) {
        const int64_t pair = row * e->len_k + j;
        const double p = (double)e->weights[pair];
        double ds, weight;

        if (!e->visible[pair])
            continue;
        ds = (rate * p + n->tiny) * (dp_terms(e, h, i, j) + t->mean_a + dlse) +
             p * t->delta + 2 * n->least;
        weight = (rate * p + n->tiny) * dropped(e, pair);
        for (int64_t c = 0; c < e->dim; c++) {
            const int64_t key = (g * e->len_k + j) * e->dim + c;

            dq[c] += scale * ds * e->k_size[key];
            keys->dk[key] += scale * ds * e->q_size[row * e->dim + c];
        }
        for (int64_t c = 0; c < e->dim_v; c++)
            keys->dv[(g * e->len_k + j) * e->dim_v + c] +=
                weight * e->d_o_size[row * e->dim_v + c];
        *slope_bound += ds * fabs((double)(i + e->q_offset - j));
        if (db) {
            const attn_input like = attn_in(db->got);

            add(db, pair_index(e, &like, h, i, j), 0,
                ds + rounding(db->got.dtype, (double)e->dbias[pair]));
        }
    }
    if (e->sinks && isfinite((double)e->sinks[h]))
        *sink_bound += exp((double)(e->sinks[h] - e->lse[row])) *
                       (rate * (t->mean_a + dlse) + t->delta);
    add_dq(x, e, h, i, dq);
    free(dq);
}

static void add_dbias(expectation *x, const entry *e)
{
    field *f = field_of(x, "dbias");

    if (!f)
        return;
    const attn_input like = attn_in(f->got);

    for (int64_t h = 0; h < e->heads_q; h++)
        for (int64_t i = 0; i < e->len_q; i++)
            for (int64_t j = 0; j < e->len_k; j++)
                add(f, pair_index(e, &like, h, i, j),
                    e->dbias[(h * e->len_q + i) * e->len_k + j], 0);
}

static void add_keys(expectation *x, const entry *e, const char *name,
                     const real *want, const double *bound, int64_t dim)
{
    field *f = field_of(x, name);
    const int64_t written = paged(e->p) ? e->length : e->len_k;

    if (!f)
        return;
    const attn_input like = attn_in(f->got);

    for (int64_t h = 0; h < e->heads_kv; h++)
        for (int64_t j = 0; j < written; j++)
            for (int64_t c = 0; c < dim; c++) {
                const int64_t at = (h * e->len_k + j) * dim + c;

                add(f, key_index(e, &like, h, j, c), want[at],
                    bound[at] + rounding(f->got.dtype, (double)want[at]));
            }
}

static void entry_collect(expectation *x, const entry *e)
{
    const units n = units_of(e);
    const int64_t keys = e->heads_kv * e->len_k;
    const key_bounds key = {
        zeros(keys * e->dim, sizeof(double)),
        zeros(keys * e->dim_v, sizeof(double))};

    for (int64_t h = 0; h < e->heads_q; h++) {
        double slope_bound = 0, sink_bound = 0;

        for (int64_t i = 0; i < e->len_q; i++) {
            const row_terms t = terms_of(e, &n, h, i);

            add_row(x, e, &n, h, i, &t);
            add_entropy(x, e, h, i, &t);
            add_pairs(x, e, &n, h, i, &t);
            if (e->p->backward)
                add_row_gradients(x, e, &n, h, i, &t, &key, &slope_bound,
                                  &sink_bound);
        }
        if (e->p->backward)
            add_head_gradients(x, e, h, slope_bound, sink_bound);
    }
    if (e->p->backward) {
        add_dbias(x, e);
        add_keys(x, e, "dk", e->dk, key.dk, e->dim);
        add_keys(x, e, "dv", e->dv, key.dv, e->dim_v);
    }
    free(key.dk);
    free(key.dv);
}

static void expect_field(expectation *x, const char *name, attn__pass pass,
                         const attn_tensor *got)
{
    const attn_input view = attn_in(*got);
    field *f = &x->field[x->n];

    if (!attn__asked(got))
        return;
    f->name = name;
    f->pass = pass;
    f->got = *got;
    f->n = count_of(&view);
    f->want = reals(f->n);
    f->bound = zeros(f->n, sizeof(double));
    f->rounded = zeros(f->n, sizeof(double));
    x->n++;
}

void expect_make(expectation *x, const problem *p)
{
    const attn_args *a = &p->args;
    const attn__pass forward = attn__forward_pass(&p->desc);

    memset(x, 0, sizeof *x);
    expect_field(x, "o", forward, &a->o);
    expect_field(x, "lse", forward, &a->lse);
    expect_field(x, "entropy", ATTN__PASS_weights, &a->entropy);
    expect_field(x, "weights", ATTN__PASS_weights, &a->weights);
    expect_field(x, "stage", ATTN__PASS_weights, &p->stage_out);
    expect_field(x, "dq", ATTN__PASS_dq, &a->dq);
    expect_field(x, "dsinks", ATTN__PASS_dq, &a->dsinks);
    expect_field(x, "dslopes", ATTN__PASS_dq, &a->dslopes);
    expect_field(x, "dk", ATTN__PASS_dkv, &a->dk);
    expect_field(x, "dv", ATTN__PASS_dkv, &a->dv);
    expect_field(x, "dbias", ATTN__PASS_dbias, &a->dbias);
    for (int64_t b = 0; b < p->desc.batch; b++) {
        entry e;

        entry_load(&e, p, b);
        entry_compute(&e);
        entry_collect(x, &e);
        entry_free(&e);
    }
}

void expect_free(expectation *x)
{
    for (int i = 0; i < x->n; i++) {
        free(x->field[i].want);
        free(x->field[i].bound);
        free(x->field[i].rounded);
    }
}
