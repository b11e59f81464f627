/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to a call. One byte in seven or so makes something wrong. */
#include "fuzz_call.h"

#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- choices */

static unsigned next(fuzz_call *c)
{
    return c->at < c->end ? *c->at++ : 0;
}

static int64_t below(fuzz_call *c, int64_t n)
{
    return next(c) % n;
}

/* A number that people get wrong. */
static int64_t odd_number(fuzz_call *c)
{
    static const int64_t odd[] = {
        -1, 0, 1, 2, -2, 63, 64, 65, 1 << 20, INT32_MAX, INT64_C(1) << 32,
        INT64_C(1) << 59, INT64_C(1) << 62, INT64_MAX, INT64_MIN};

    return odd[below(c, sizeof odd / sizeof odd[0])];
}

static uint64_t draw(fuzz_call *c)
{
    c->random ^= c->random >> 12;
    c->random ^= c->random << 25;
    c->random ^= c->random >> 27;
    return c->random * UINT64_C(0x2545F4914F6CDD1D) >> 16;
}

/* ---------------------------------------------------------------- tensors */

/* Numbers around 1; a NaN or infinity now and then. */
static void fill(fuzz_call *c, unsigned char *at, attn_dtype dtype, size_t n)
{
    const size_t size = attn_dtype_size(dtype);

    for (size_t i = 0; i < n; i++) {
        const uint64_t r = draw(c);
        const bool special = (r >> 20 & 0xff) == 0;
        const double value =
            special ? (r & 1 ? (double)NAN : -(double)INFINITY)
                    : (double)(int8_t)r / 32;
        const float narrow = (float)value;
        uint64_t bits = r & 1;

        if (dtype == ATTN_F64)
            memcpy(&bits, &value, sizeof value);
        else if (dtype == ATTN_F32)
            memcpy(&bits, &narrow, sizeof narrow);
        else if (dtype == ATTN_F16 || dtype == ATTN_BF16)
            bits = special ? 0x7fff : (r & 0x8000) | (0x3a00 + (r & 0x7ff));
        memcpy(at + i * size, &bits, size);
    }
}

/* Wrong types, shapes and ranks, before memory is taken for them. */
static void spoil_shape(fuzz_call *c, attn_tensor *t)
{
    const unsigned how = next(c);
    const int axis = (int)below(c, 4);

    if (how == 1)
        t->dtype = (attn_dtype)below(c, 9);
    else if (how == 2 && t->rank > 0)
        t->shape[axis % t->rank] += below(c, 3) - 1;
    else if (how == 3 && t->rank > 0)
        t->shape[axis % t->rank] = 1;
    else if (how == 4)
        t->rank = (int32_t)below(c, 5);
    for (int32_t a = 0; a < t->rank; a++)
        if (t->shape[a] < 0 || t->shape[a] > 512)
            t->shape[a] = 1;
}

/* Dense, backwards, or with two axes exchanged in memory. */
static void lay_out(fuzz_call *c, attn_tensor *t, unsigned char *data)
{
    const int64_t layout = below(c, 4), size =
        (int64_t)attn_dtype_size(t->dtype);
    int64_t stride = 1;

    t->data = data;
    for (int32_t a = t->rank - 1; a >= 0; a--) {
        t->stride[a] = stride;
        stride *= t->shape[a];
    }
    if (layout == 1 && t->rank > 0 && stride > 0) {
        t->data = data + (t->shape[0] - 1) * t->stride[0] * size;
        t->stride[0] = -t->stride[0];
    } else if (layout == 2 && t->rank >= 3) {
        t->stride[t->rank - 2] = t->stride[t->rank - 1] *
                                 t->shape[t->rank - 1] *
                                 t->shape[t->rank - 3];
        t->stride[t->rank - 3] =
            t->stride[t->rank - 1] * t->shape[t->rank - 1];
    }
}

/* Strides that repeat elements, or that cannot be. */
static void spoil_strides(fuzz_call *c, attn_tensor *t)
{
    const unsigned how = next(c);
    const int axis = t->rank > 0 ? (int)below(c, t->rank) : 0;

    if (how == 1)
        t->stride[axis] = 0;
    else if (how == 2)
        t->stride[axis] = next(c) & 1 ? INT64_MAX : INT64_MIN;
    else if (how == 3)
        t->data = NULL;
    else if (how == 4)
        t->rank = next(c) & 1 ? 5 : -1;
}

static attn_tensor make(fuzz_call *c, bool output, attn_dtype dtype,
                        int32_t rank, const int64_t *shape)
{
    attn_tensor t = {NULL, dtype, rank, {0}, {0}};
    fuzz_block *block = &c->blocks[c->n_blocks++];
    size_t n = 1;

    PROPERTY(c->n_blocks <= FUZZ_MAX_BLOCKS);
    memcpy(t.shape, shape, (size_t)rank * sizeof *shape);
    spoil_shape(c, &t);
    for (int32_t a = 0; a < t.rank; a++)
        n *= (size_t)t.shape[a];
    *block = (fuzz_block){NULL, n * attn_dtype_size(t.dtype), output};
    block->data = malloc(block->size ? block->size : 1);
    PROPERTY(block->data);
    if (!output)
        fill(c, block->data, t.dtype, n);
    lay_out(c, &t, block->data);
    spoil_strides(c, &t);
    return t;
}

#define SHAPE(...)                                                            \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),            \
        (int64_t[]){__VA_ARGS__}

static attn_input in(fuzz_call *c, attn_dtype dtype, int32_t rank,
                     const int64_t *shape)
{
    return attn_in(make(c, false, dtype, rank, shape));
}

/* n indices into a block of their own; the values as they come. */
static attn_input indices(fuzz_call *c, int64_t n, const int64_t *values)
{
    const attn_dtype dtype = next(c) & 1 ? ATTN_I32 : ATTN_I64;
    attn_tensor t = make(c, false, dtype, 1, &n);
    const fuzz_block *block = &c->blocks[c->n_blocks - 1];
    const size_t size = t.dtype == ATTN_I32 ? 4 : 8;

    if (t.dtype != ATTN_I32 && t.dtype != ATTN_I64)
        return attn_in(t);
    for (size_t i = 0; i < (size_t)n && i < block->size / size; i++) {
        const int32_t narrow = (int32_t)values[i];

        memcpy(block->data + i * size,
               size == 4 ? (const void *)&narrow : &values[i], size);
    }
    return attn_in(t);
}

/* ------------------------------------------------------------ descriptors */

static void make_desc(fuzz_call *c)
{
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_F64, ATTN_BF16,
                                        ATTN_F16};
    attn_desc *d = &c->desc;
    const attn_dtype dtype = dtypes[below(c, 4)];
    const int64_t kv = 1 + below(c, 2), group = 1 + below(c, 2);
    const int64_t batch = below(c, 3);
    /* Around the edges of tiles (8, 16) and blocks (64), mostly small. */
    const int64_t len_q = below(c, 8) == 7 ? below(c, 70) : below(c, 20);
    const int64_t len_k = below(c, 8) == 7 ? below(c, 140) : below(c, 20);
    const int64_t dim_qk = below(c, 10), dim_v = below(c, 10);

    attn_desc_init(d, dtype, batch, kv * group, kv, len_q, len_k, dim_qk,
                   dim_v);
    d->inputs = next(c);
    d->causal = (attn_causal)below(c, 3);
    d->empty_rows = (attn_empty_rows)(below(c, 8) == 7);
    d->precision = (attn_precision)below(c, 2);
    d->isa_limit = (attn_isa)below(c, 5);
    if (next(c) & 1) {
        d->window_left = below(c, 100) - 1;
        d->window_right = below(c, 100) - 1;
    }
    if (next(c) & 1)
        d->softcap = (double)below(c, 40) / 4;
    if (next(c) & 1)
        d->dropout_p = (double)below(c, 5) / 4;
    /* The sums of two axes' lengths are what varlen calls bring. */
    if ((d->inputs & ATTN_WITH_VARLEN) && (next(c) & 7))
        d->inputs &= ~(ATTN_WITH_MASK | ATTN_WITH_BIAS);
    if ((d->inputs & ATTN_WITH_PAGES) && (next(c) & 7))
        d->inputs |= ATTN_WITH_K_LENGTHS;
}

/* Any field with any number. */
static void spoil_desc(fuzz_call *c)
{
    attn_desc *d = &c->desc;
    int64_t *const sizes[] = {&d->batch, &d->heads_q, &d->heads_kv,
                              &d->len_q, &d->len_k, &d->dim_qk, &d->dim_v,
                              &d->total_q, &d->window_left,
                              &d->window_right};
    double *const numbers[] = {&d->scale, &d->softcap, &d->dropout_p};

    switch (next(c)) {
    case 1:
        *sizes[below(c, sizeof sizes / sizeof sizes[0])] = odd_number(c);
        break;
    case 2:
        memcpy(numbers[below(c, 3)], &c->random, sizeof(double));
        break;
    case 3:
        d->inputs = (uint32_t)odd_number(c);
        break;
    case 4:
        d->dtype = (attn_dtype)(below(c, 12) - 2);
        break;
    case 5:
        d->size = next(c);
        break;
    case 6:
        d->causal = (attn_causal)odd_number(c);
        d->isa_limit = (attn_isa)odd_number(c);
        break;
    default:
        break;
    }
}

/* -------------------------------------------------------------- arguments */

/* Rows of packed sequences: batch + 1 ascending numbers and their end. */
static int64_t make_cu_seqlens(fuzz_call *c, attn_input *t, int64_t longest)
{
    int64_t values[8] = {0};
    const int64_t n = c->desc.batch;

    for (int64_t b = 0; b < n; b++)
        values[b + 1] = values[b] + below(c, longest + 1);
    if (next(c) == 1)
        values[below(c, n + 1)] = odd_number(c);
    *t = indices(c, n + 1, values);
    return values[n] < 0 || values[n] > 512 ? 0 : values[n];
}

static void make_lengths(fuzz_call *c, attn_input *t, int64_t longest)
{
    int64_t values[8];

    for (int64_t b = 0; b < c->desc.batch; b++)
        values[b] = next(c) == 1 ? odd_number(c) : below(c, longest + 1);
    *t = indices(c, c->desc.batch, values);
}

static void make_keys(fuzz_call *c)
{
    const attn_desc *d = &c->desc;
    attn_kv *kv = &c->args.kv;

    if (d->inputs & ATTN_WITH_PAGES) {
        const int64_t page = 1 + below(c, 70), n = d->len_k / page + 1;
        const int64_t pages = d->batch * n + below(c, 2);
        attn_tensor table = make(c, false, ATTN_I32, SHAPE(d->batch, n));
        const fuzz_block *block = &c->blocks[c->n_blocks - 1];

        for (size_t i = 0; i < block->size / 4; i++) {
            const int32_t entry = next(c) == 1 ? (int32_t)odd_number(c)
                                               : (int32_t)i;
            memcpy(block->data + 4 * i, &entry, 4);
        }
        kv->block_table = attn_in(table);
        kv->k = in(c, d->dtype, SHAPE(pages, d->heads_kv, page, d->dim_qk));
        kv->v = in(c, d->dtype, SHAPE(pages, d->heads_kv, page, d->dim_v));
    } else if (d->inputs & ATTN_WITH_VARLEN) {
        const int64_t total =
            make_cu_seqlens(c, &c->args.cu_seqlens_k, d->len_k);

        kv->k = in(c, d->dtype, SHAPE(total, d->heads_kv, d->dim_qk));
        kv->v = in(c, d->dtype, SHAPE(total, d->heads_kv, d->dim_v));
    } else {
        const int64_t len = d->len_k - (below(c, 4) == 3 && d->len_k > 0);

        kv->k =
            in(c, d->dtype, SHAPE(d->batch, d->heads_kv, len, d->dim_qk));
        kv->v = in(c, d->dtype, SHAPE(d->batch, d->heads_kv, len, d->dim_v));
    }
    if (d->inputs & ATTN_WITH_K_LENGTHS)
        make_lengths(c, &kv->k_lengths, d->len_k);
}

/* One of the shapes that broadcast to the scores. */
static attn_input make_scores(fuzz_call *c, attn_dtype dtype)
{
    const attn_desc *d = &c->desc;
    const int64_t full[4] = {d->batch, d->heads_q, d->len_q, d->len_k};
    const int32_t rank = (int32_t)below(c, 5);
    const unsigned ones = next(c);
    int64_t shape[4];

    for (int32_t a = 0; a < rank; a++)
        shape[a] = ones >> a & 1 ? 1 : full[4 - rank + a];
    return in(c, dtype, rank, shape);
}

static void make_rest(fuzz_call *c)
{
    const attn_desc *d = &c->desc;
    attn_args *a = &c->args;

    if (d->inputs & ATTN_WITH_MASK)
        a->mask = make_scores(c, ATTN_BOOL);
    if (d->inputs & ATTN_WITH_BIAS)
        a->bias = make_scores(c, next(c) & 1 ? d->dtype : ATTN_F32);
    if (d->inputs & ATTN_WITH_ALIBI)
        a->alibi_slopes = next(c) & 1
                              ? in(c, ATTN_F32, SHAPE(d->heads_q))
                              : in(c, ATTN_F64, SHAPE(d->batch, d->heads_q));
    if (d->inputs & ATTN_WITH_SINKS)
        a->sinks = in(c, ATTN_F64, SHAPE(d->heads_q));
    if (d->inputs & ATTN_WITH_Q_OFFSET)
        make_lengths(c, &a->q_offset, 200);
    a->seed = c->random;
    if (next(c) == 1)
        a->dropout_start[next(c) & 1] = odd_number(c);
}

static attn_dtype stats_dtype(fuzz_call *c)
{
    return next(c) & 1 ? ATTN_F32 : ATTN_F64;
}

/* (batch, heads, len) or (heads, total). */
static attn_tensor make_stats(fuzz_call *c, bool output)
{
    const attn_desc *d = &c->desc;
    const attn_dtype dtype = stats_dtype(c);

    if (d->inputs & ATTN_WITH_VARLEN)
        return make(c, output, dtype,
                    SHAPE(d->heads_q, c->args.q.shape[0]));
    return make(c, output, dtype, SHAPE(d->batch, d->heads_q, d->len_q));
}

/* As q, with another last axis. */
static attn_tensor make_rows(fuzz_call *c, bool output, int64_t dim)
{
    const attn_desc *d = &c->desc;

    if (d->inputs & ATTN_WITH_VARLEN)
        return make(c, output, d->dtype,
                    SHAPE(c->args.q.shape[0], d->heads_q, dim));
    return make(c, output, d->dtype,
                SHAPE(d->batch, d->heads_q, d->len_q, dim));
}

void fuzz_make_forward(fuzz_call *c, const uint8_t *data, size_t size)
{
    const attn_desc *d = &c->desc;
    attn_args *a = &c->args;
    unsigned wanted;

    memset(c, 0, sizeof *c);
    c->at = data;
    c->end = data + size;
    c->random = UINT64_C(0x9E3779B97F4A7C15) + next(c);
    make_desc(c);
    attn_args_init(a);
    if (d->inputs & ATTN_WITH_VARLEN) {
        const int64_t total = make_cu_seqlens(c, &a->cu_seqlens_q, d->len_q);

        a->q = in(c, d->dtype, SHAPE(total, d->heads_q, d->dim_qk));
    } else {
        a->q = in(c, d->dtype,
                  SHAPE(d->batch, d->heads_q, d->len_q, d->dim_qk));
    }
    make_keys(c);
    make_rest(c);
    wanted = next(c);
    if (!(wanted & 1))
        a->o = make_rows(c, true, d->dim_v);
    if (!(wanted & 2))
        a->lse = make_stats(c, true);
    if (wanted & 4)
        a->entropy = make_stats(c, true);
    if (wanted & 8)
        a->weights = make(c, true, stats_dtype(c),
                          SHAPE(d->batch, d->heads_q, d->len_q,
                                a->kv.k.shape[2]));
    spoil_desc(c);
}

static attn_tensor make_like(fuzz_call *c, const attn_input *model,
                             attn_dtype dtype)
{
    if (model->dtype == ATTN_NONE || next(c) == 1 || model->rank < 0 ||
        model->rank > 4)
        return (attn_tensor){0};
    return make(c, true, dtype, model->rank, model->shape);
}

void fuzz_make_backward(fuzz_call *c)
{
    attn_args *a = &c->args;

    for (int i = 0; i < c->n_blocks; i++)
        c->blocks[i].output = false;
    a->d_o = attn_in(make_rows(c, false, c->desc.dim_v));
    if (next(c) & 1)
        a->dlse = attn_in(make_stats(c, false));
    a->dq = make_like(c, &a->q, c->desc.dtype);
    a->dk = make_like(c, &a->kv.k, c->desc.dtype);
    a->dv = make_like(c, &a->kv.v, c->desc.dtype);
    a->dbias = make_like(c, &a->bias, a->bias.dtype);
    a->dsinks = make_like(c, &a->sinks, ATTN_F32);
    a->dslopes = make_like(c, &a->alibi_slopes, ATTN_F64);
}

void fuzz_free(fuzz_call *c)
{
    for (int i = 0; i < c->n_blocks; i++)
        free(c->blocks[i].data);
}
