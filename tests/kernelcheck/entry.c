/* SPDX-License-Identifier: Apache-2.0
 *
 * From the tensors of a problem, of any strides and layout, to the dense arrays
 * of one batch entry, and through the reference. */
#include "entry.h"

#include "ref/compose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void *zeros(int64_t n, size_t size)
{
    void *ptr = calloc(n > 0 ? (size_t)n : 1, size);

    if (!ptr)
        abort();
    return ptr;
}

real *reals(int64_t n)
{
    return zeros(n, sizeof(real));
}

/* ------------------------------------------------- the entry's own arrays */

static bool varlen(const problem *p)
{
    return p->desc.inputs & ATTN_WITH_VARLEN;
}

bool paged(const problem *p)
{
    return p->desc.inputs & ATTN_WITH_PAGES;
}

static int64_t index_at(const attn_input *t, int64_t i)
{
    return (int64_t)read_logical(t, i);
}

int64_t row_index(const entry *e, const attn_input *t, int64_t start,
                         int64_t h, int64_t i, int64_t c)
{
    if (t->rank == 3)
        return ((start + i) * t->shape[1] + h) * t->shape[2] + c;
    return ((e->b * t->shape[1] + h) * t->shape[2] + i) * t->shape[3] + c;
}

int64_t key_index(const entry *e, const attn_input *t, int64_t h,
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

int64_t stats_index(const entry *e, const attn_input *t, int64_t h,
                           int64_t i)
{
    if (t->rank == 2)
        return h * t->shape[1] + e->q_start + i;
    return (e->b * t->shape[1] + h) * t->shape[2] + i;
}

int64_t pair_index(const entry *e, const attn_input *t, int64_t h,
                          int64_t i, int64_t j)
{
    const int64_t at[4] = {e->b, h, i, j};
    int64_t index = 0;

    for (int32_t a = 0; a < t->rank; a++)
        index = index * t->shape[a] +
                (t->shape[a] == 1 ? 0 : at[4 - t->rank + a]);
    return index;
}

int64_t slope_index(const entry *e, const attn_input *t, int64_t h)
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

static double *sizes_of(const real *x, int64_t n)
{
    double *size = zeros(n, sizeof *size);

    for (int64_t i = 0; x && i < n; i++)
        size[i] = fabs((double)x[i]);
    return size;
}

static void load_abs(entry *e)
{
    const int64_t rows = e->heads_q * e->len_q;
    const int64_t keys = e->heads_kv * e->len_k;

    e->q_size = sizes_of(e->q, rows * e->dim);
    e->k_size = sizes_of(e->k, keys * e->dim);
    e->v_size = sizes_of(e->v, keys * e->dim_v);
    e->d_o_size = sizes_of(e->d_o, rows * e->dim_v);
}

void entry_load(entry *e, const problem *p, int64_t b)
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
    load_abs(e);
}

/* Where the reference puts a stage of the scores: only one is asked for. */
static real *chosen_stage(const entry *e, attn_stage stage)
{
    return e->p->stage == stage ? e->stage : NULL;
}

/* Forward, and from what it leaves in the scratch, backward: weights are the
 * most expensive part, and both have the same. */
static void entry_run(entry *e, attn__ref_scratch *scratch,
                      const attn_ref_stages *stages)
{
    const int64_t rows = e->heads_q * e->len_q, pairs = rows * e->len_k;
    const int64_t keys = e->heads_kv * e->len_k;

    e->o = reals(rows * e->dim_v);
    e->lse = reals(rows);
    e->entropy = reals(rows);
    e->weights = reals(pairs);
    if (e->p->weights)
        e->stage = reals(pairs);
    e->visible = zeros(pairs, 1);
    const attn_ref_results results = {
        e->o,       e->lse, e->entropy,
        e->weights, chosen_stage(e, ATTN_STAGE_RAW),
        chosen_stage(e, ATTN_STAGE_SOFTCAPPED),
        chosen_stage(e, ATTN_STAGE_BIASED), e->visible};
    attn__ref_forward_in(scratch, stages, &e->ref, e->q, e->k, e->v, &results);
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
    attn__ref_gradients_in(scratch, stages, &e->ref, e->q, e->k, e->v, e->d_o,
                           e->dlse, &gradients);
}

void entry_compute(entry *e)
{
    const int64_t rows = e->heads_q * e->len_q;
    attn__ref_scratch scratch;
    attn_ref_stages stages;

    attn_ref_stages_init(&stages);
    if (attn__ref_scratch_open(&scratch, rows, rows * e->len_k) != ATTN_OK)
        abort();
    entry_run(e, &scratch, &stages);
    attn__ref_scratch_close(&scratch);
}

void entry_free(entry *e)
{
    void *const all[] = {e->q,       e->k,     e->v,       e->d_o,
                         e->dlse,    e->bias,  e->slopes,  e->sinks,
                         e->dropout, e->mask,  e->o,       e->lse,
                         e->entropy, e->weights, e->stage, e->visible,
                         e->dq,      e->dk,    e->dv,      e->dbias,
                         e->dsinks,  e->dslopes, e->q_size, e->k_size,
                         e->v_size,  e->d_o_size};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}
