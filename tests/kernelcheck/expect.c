/* SPDX-License-Identifier: Apache-2.0
 *
 * What must come out of a problem, and how far off it may be: the reference in
 * long double, one batch entry (or packed sequence) at a time, and the bounds
 * of docs/numerics.md beside it. Compiled with src/ref/wide.h. */
#include "attn_ref.h"

#include "kernelcheck.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef attn_ref_real real; /* long double */

/* One batch entry, dense. */
typedef struct entry {
    const problem *p;
    int64_t b, q_start, k_start, len_q, len_k, heads_q, heads_kv, dim, dim_v;
    int64_t q_offset, length; /* keys at and beyond length are hidden */
    attn_ref_problem ref;
    real *q, *k, *v, *d_o, *dlse, *bias, *slopes, *sinks, *dropout;
    unsigned char *mask;
    real *o, *lse, *entropy, *weights, *raw, *softcapped, *biased;
    unsigned char *visible;
    real *dq, *dk, *dv, *dbias, *dsinks, *dslopes;
} entry;

static void *zeros(int64_t n, size_t size)
{
    void *ptr = calloc(n > 0 ? (size_t)n : 1, size);

    if (!ptr)
        abort();
    return ptr;
}

static real *reals(int64_t n)
{
    return zeros(n, sizeof(real));
}

/* ------------------------------------------------- the entry's own arrays */

static bool varlen(const problem *p)
{
    return p->desc.inputs & ATTN_WITH_VARLEN;
}

static bool paged(const problem *p)
{
    return p->desc.inputs & ATTN_WITH_PAGES;
}

static int64_t index_at(const attn_input *t, int64_t i)
{
    return (int64_t)read_logical(t, i);
}

/* Logical index of (b, h, i, c) in a tensor shaped like q, k or o. */
static int64_t row_index(const entry *e, const attn_input *t, int64_t start,
                         int64_t h, int64_t i, int64_t c)
{
    if (t->rank == 3)
        return ((start + i) * t->shape[1] + h) * t->shape[2] + c;
    return ((e->b * t->shape[1] + h) * t->shape[2] + i) * t->shape[3] + c;
}

static int64_t key_index(const entry *e, const attn_input *t, int64_t h,
                         int64_t j, int64_t c)
{
    const attn_input *table = &e->p->args.kv.block_table;

    if (paged(e->p)) {
        const int64_t size = t->shape[2];
        const int64_t page =
            index_at(table, e->b * table->shape[1] + j / size);

        return ((page * t->shape[1] + h) * size + j % size) * t->shape[3] + c;
    }
    return row_index(e, t, e->k_start, h, j, c);
}

static int64_t stats_index(const entry *e, const attn_input *t, int64_t h,
                           int64_t i)
{
    if (t->rank == 2)
        return h * t->shape[1] + e->q_start + i;
    return (e->b * t->shape[1] + h) * t->shape[2] + i;
}

/* Logical index of pair (h, i, j) in a tensor that broadcasts to the scores. */
static int64_t pair_index(const entry *e, const attn_input *t, int64_t h,
                          int64_t i, int64_t j)
{
    const int64_t at[4] = {e->b, h, i, j};
    int64_t index = 0;

    for (int32_t a = 0; a < t->rank; a++)
        index = index * t->shape[a] +
                (t->shape[a] == 1 ? 0 : at[4 - t->rank + a]);
    return index;
}

static int64_t slope_index(const entry *e, const attn_input *t, int64_t h)
{
    return t->rank == 2 ? e->b * t->shape[1] + h : h;
}

static real *load_rows(const entry *e, const attn_input *t, int64_t heads,
                       int64_t len, int64_t dim)
{
    real *to = reals(heads * len * dim);

    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < len; i++)
            for (int64_t c = 0; c < dim; c++)
                to[(h * len + i) * dim + c] = (real)read_logical(
                    t, row_index(e, t, e->q_start, h, i, c));
    return to;
}

static real *load_keys(const entry *e, const attn_input *t, int64_t dim)
{
    real *to = reals(e->heads_kv * e->len_k * dim);
    const int64_t readable = paged(e->p) ? e->length : e->len_k;

    for (int64_t h = 0; h < e->heads_kv; h++)
        for (int64_t j = 0; j < readable; j++)
            for (int64_t c = 0; c < dim; c++)
                to[(h * e->len_k + j) * dim + c] =
                    (real)read_logical(t, key_index(e, t, h, j, c));
    return to;
}

static void load_sizes(entry *e)
{
    const problem *p = e->p;
    const attn_args *a = &p->args;

    e->heads_q = p->desc.heads_q;
    e->heads_kv = p->desc.heads_kv;
    e->dim = p->desc.dim_qk;
    e->dim_v = p->desc.dim_v;
    e->len_q = p->desc.len_q;
    e->len_k = p->len_k;
    if (varlen(p)) {
        e->q_start = index_at(&a->cu_seqlens_q, e->b);
        e->len_q = index_at(&a->cu_seqlens_q, e->b + 1) - e->q_start;
    }
    if (varlen(p) && !paged(p)) {
        e->k_start = index_at(&a->cu_seqlens_k, e->b);
        e->len_k = index_at(&a->cu_seqlens_k, e->b + 1) - e->k_start;
    }
    e->length = attn__given(&a->kv.k_lengths)
                    ? index_at(&a->kv.k_lengths, e->b)
                    : e->len_k;
    e->q_offset = attn__given(&a->q_offset)
                      ? index_at(&a->q_offset, e->b)
                      : attn_ref_q_offset(p->desc.causal, e->len_q, e->len_k,
                                          e->length);
}

static void load_shapers(entry *e)
{
    const attn_args *a = &e->p->args;
    const int64_t pairs = e->heads_q * e->len_q * e->len_k;

    if (attn__given(&a->mask))
        e->mask = zeros(pairs, 1);
    if (attn__given(&a->bias))
        e->bias = reals(pairs);
    for (int64_t h = 0; h < e->heads_q; h++)
        for (int64_t i = 0; i < e->len_q; i++)
            for (int64_t j = 0; j < e->len_k; j++) {
                const int64_t at = (h * e->len_q + i) * e->len_k + j;

                if (e->mask)
                    e->mask[at] = read_logical(&a->mask,
                                               pair_index(e, &a->mask, h, i,
                                                          j)) != 0;
                if (e->bias)
                    e->bias[at] = (real)read_logical(
                        &a->bias, pair_index(e, &a->bias, h, i, j));
            }
    if (attn__given(&a->alibi_slopes)) {
        e->slopes = reals(e->heads_q);
        for (int64_t h = 0; h < e->heads_q; h++)
            e->slopes[h] = (real)read_logical(
                &a->alibi_slopes, slope_index(e, &a->alibi_slopes, h));
    }
    if (attn__given(&a->sinks)) {
        e->sinks = reals(e->heads_q);
        for (int64_t h = 0; h < e->heads_q; h++)
            e->sinks[h] = (real)read_logical(&a->sinks, h);
    }
}

static void load_gradients_in(entry *e)
{
    const attn_args *a = &e->p->args;

    e->d_o = load_rows(e, &a->d_o, e->heads_q, e->len_q, e->dim_v);
    if (!attn__given(&a->dlse))
        return;
    e->dlse = reals(e->heads_q * e->len_q);
    for (int64_t h = 0; h < e->heads_q; h++)
        for (int64_t i = 0; i < e->len_q; i++)
            e->dlse[h * e->len_q + i] = (real)read_logical(
                &a->dlse, stats_index(e, &a->dlse, h, i));
}

static void dense_pair_strides(const entry *e, int64_t stride[4])
{
    stride[0] = 0;
    stride[1] = e->len_q * e->len_k;
    stride[2] = e->len_k;
    stride[3] = 1;
}

static void load_ref(entry *e)
{
    const attn_desc *d = &e->p->desc;
    attn_ref_problem *ref = &e->ref;

    attn_ref_problem_init(ref, 1, e->heads_q, e->heads_kv, e->len_q, e->len_k,
                          e->dim, e->dim_v);
    ref->scale = (real)d->scale;
    ref->softcap = (real)d->softcap;
    ref->causal = d->causal;
    ref->empty_rows = d->empty_rows;
    ref->window_left = d->window_left;
    ref->window_right = d->window_right;
    ref->q_offset = &e->q_offset;
    ref->k_lengths = &e->length;
    ref->mask = e->mask;
    dense_pair_strides(e, ref->mask_stride);
    ref->bias = e->bias;
    dense_pair_strides(e, ref->bias_stride);
    ref->alibi_slopes = e->slopes;
    ref->slopes_stride[1] = 1;
    ref->sinks = e->sinks;
    if (d->dropout_p > 0) {
        e->dropout = reals(e->heads_q * e->len_q * e->len_k);
        attn_ref_dropout(1, e->heads_q, e->len_q, e->len_k, d->dropout_p,
                         e->p->args.seed, e->p->args.offset, e->b,
                         e->p->args.dropout_start, e->dropout);
        ref->dropout = e->dropout;
    }
}

static void entry_load(entry *e, const problem *p, int64_t b)
{
    const attn_args *a = &p->args;

    memset(e, 0, sizeof *e);
    e->p = p;
    e->b = b;
    load_sizes(e);
    e->q = load_rows(e, &a->q, e->heads_q, e->len_q, e->dim);
    e->k = load_keys(e, &a->kv.k, e->dim);
    e->v = load_keys(e, &a->kv.v, e->dim_v);
    load_shapers(e);
    load_ref(e);
    if (p->backward)
        load_gradients_in(e);
}

static void entry_compute(entry *e)
{
    const int64_t rows = e->heads_q * e->len_q, pairs = rows * e->len_k;
    const int64_t keys = e->heads_kv * e->len_k;

    e->o = reals(rows * e->dim_v);
    e->lse = reals(rows);
    e->entropy = reals(rows);
    e->weights = reals(pairs);
    e->raw = reals(pairs);
    e->softcapped = reals(pairs);
    e->biased = reals(pairs);
    e->visible = zeros(pairs, 1);
    const attn_ref_results results = {e->o,   e->lse,        e->entropy,
                                      e->weights, e->raw, e->softcapped,
                                      e->biased,  e->visible};
    if (attn_ref_forward(NULL, &e->ref, e->q, e->k, e->v, &results) !=
        ATTN_OK)
        abort();
    if (!e->p->backward)
        return;
    e->dq = reals(rows * e->dim);
    e->dk = reals(keys * e->dim);
    e->dv = reals(keys * e->dim_v);
    e->dbias = reals(pairs);
    e->dsinks = reals(e->heads_q);
    e->dslopes = reals(e->heads_q);
    const attn_ref_gradients gradients = {e->dq, e->dk, e->dv,
                                          e->bias ? e->dbias : NULL,
                                          e->sinks ? e->dsinks : NULL,
                                          e->slopes ? e->dslopes : NULL};
    if (attn_ref_backward(NULL, &e->ref, e->q, e->k, e->v, e->d_o, e->dlse,
                          &gradients) != ATTN_OK)
        abort();
}

static void entry_free(entry *e)
{
    void *const all[] = {e->q,       e->k,     e->v,       e->d_o,
                         e->dlse,    e->bias,  e->slopes,  e->sinks,
                         e->dropout, e->mask,  e->o,       e->lse,
                         e->entropy, e->weights, e->raw,   e->softcapped,
                         e->biased,  e->visible, e->dq,    e->dk,
                         e->dv,      e->dbias, e->dsinks,  e->dslopes};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

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
    double delta;   /* error of delta from o's denormal steps */
} row_terms;

static double score_terms(const entry *e, int64_t h, int64_t i, int64_t j)
{
    const int64_t g = h / (e->heads_q / e->heads_kv);
    const int64_t at = (h * e->len_q + i) * e->len_k + j;
    double sum = 0;

    for (int64_t c = 0; c < e->dim; c++)
        sum += fabs((double)(e->q[(h * e->len_q + i) * e->dim + c] *
                             e->k[(g * e->len_k + j) * e->dim + c]));
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
    double sum = 0;

    for (int64_t c = 0; c < e->dim_v; c++)
        sum += fabs((double)(e->d_o[(h * e->len_q + i) * e->dim_v + c] *
                             e->v[(g * e->len_k + j) * e->dim_v + c]));
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
        if (e->d_o)
            t.mean_a += (double)e->weights[at] * dp_terms(e, h, i, j);
    }
    if (e->sinks && isfinite((double)e->sinks[h]))
        t.s = fmax(t.s, fabs((double)e->sinks[h]));
    t.epsilon = 8 * n->u * (sqrt((double)e->dim + 2) * t.s + n->block);
    t.eta = 8 * n->u * (sqrt((double)e->dim_v + 2) + 4) + 2 * n->storage;
    for (int64_t c = 0; e->d_o && c < e->dim_v; c++)
        t.delta += rounding(e->p->desc.dtype, 0) *
                   fabs((double)e->d_o[(h * e->len_q + i) * e->dim_v + c]);
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

    for (int64_t c = 0; c < e->dim_v; c++) {
        const int64_t at = row_index(e, &like_o, e->q_start, h, i, c);
        double values = 0, largest = 0;

        for (int64_t j = 0; j < e->len_k; j++) {
            const int64_t pair = row * e->len_k + j;
            const double v = fabs(
                (double)e->v[(g * e->len_k + j) * e->dim_v + c]);

            if (!e->visible[pair])
                continue;
            values += (double)e->weights[pair] * v * dropped(e, pair);
            largest = fmax(largest, v);
        }
        add(o, at, e->o[row * e->dim_v + c],
            t->epsilon * values + tail * n->tiny * 2 * largest +
                rounding(o->got.dtype,
                         (double)e->o[row * e->dim_v + c]));
    }
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
    const real *const stages[] = {e->raw, e->softcapped, e->biased};

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
        const real score = unread ? 0 : stages[e->p->stage][pair];
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
        ds = rate * p * (dp_terms(e, h, i, j) + t->mean_a + dlse) +
             n->tiny * (dp_terms(e, h, i, j) + t->mean_a + dlse) +
             p * t->delta + 2 * n->least;
        weight = (rate * p + n->tiny) * dropped(e, pair);
        for (int64_t c = 0; c < e->dim; c++) {
            const int64_t key = (g * e->len_k + j) * e->dim + c;

            dq[c] += scale * ds * fabs((double)e->k[key]);
            keys->dk[key] +=
                scale * ds *
                fabs((double)e->q[row * e->dim + c]);
        }
        for (int64_t c = 0; c < e->dim_v; c++)
            keys->dv[(g * e->len_k + j) * e->dim_v + c] +=
                weight * fabs((double)e->d_o[row * e->dim_v + c]);
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
    }
}
