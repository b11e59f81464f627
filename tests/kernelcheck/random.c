/* SPDX-License-Identifier: Apache-2.0
 *
 * The problem of a seed: sizes around the edges of tiles and blocks, features
 * in every combination, values that hurt (ties, huge, tiny, one-hot), hidden
 * keys full of NaN, odd strides. */
#include "kernelcheck.h"

#include "core/half.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t rng_next(rng *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int64_t rng_below(rng *r, int64_t n)
{
    return (int64_t)(rng_next(r) % (uint64_t)n);
}

bool rng_one_in(rng *r, int64_t n)
{
    return rng_below(r, n) == 0;
}

static double rng_unit(rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

double rng_normal(rng *r)
{
    const double radius = sqrt(-2 * log(1 - rng_unit(r)));

    return radius * cos(6.283185307179586 * rng_unit(r));
}

/* ------------------------------------------------------------- elements */

static int64_t offset_of(const attn_input *t, int64_t index)
{
    int64_t offset = 0;

    for (int32_t a = t->rank - 1; a >= 0; a--) {
        offset += index % t->shape[a] * t->stride[a];
        index /= t->shape[a];
    }
    return offset;
}

int64_t count_of(const attn_input *t)
{
    int64_t n = 1;

    for (int32_t a = 0; a < t->rank; a++)
        n *= t->shape[a];
    return n;
}

double read_at(const attn_input *t, int64_t at)
{
    switch (t->dtype) {
    case ATTN_F64:
        return ((const double *)t->data)[at];
    case ATTN_F32:
        return (double)((const float *)t->data)[at];
    case ATTN_BF16:
        return (double)attn__f32_of_bf16(((const uint16_t *)t->data)[at]);
    case ATTN_F16:
        return (double)attn__f32_of_f16(((const uint16_t *)t->data)[at]);
    case ATTN_BOOL:
        return (double)((const unsigned char *)t->data)[at];
    default:
        return (double)attn__load_index(t->data, t->dtype, at);
    }
}

double read_logical(const attn_input *t, int64_t index)
{
    return read_at(t, offset_of(t, index));
}

static void write_at(attn_tensor *t, int64_t at, double value)
{
    switch (t->dtype) {
    case ATTN_F64:
        ((double *)t->data)[at] = value;
        return;
    case ATTN_F32:
        ((float *)t->data)[at] = (float)value;
        return;
    case ATTN_BF16:
        ((uint16_t *)t->data)[at] = attn__bf16_of_f64(value);
        return;
    case ATTN_F16:
        ((uint16_t *)t->data)[at] = attn__f16_of_f64(value);
        return;
    case ATTN_BOOL:
        ((unsigned char *)t->data)[at] = (unsigned char)value;
        return;
    case ATTN_I32:
        ((int32_t *)t->data)[at] = (int32_t)value;
        return;
    default:
        ((int64_t *)t->data)[at] = (int64_t)value;
        return;
    }
}

void write_logical(attn_tensor *t, int64_t index, double value)
{
    const attn_input view = attn_in(*t);

    write_at(t, offset_of(&view, index), value);
}

/* A tensor whose axes lie in memory in a random order, some rows padded. */
static attn_tensor make_tensor(problem *p, rng *r, attn_dtype dtype,
                               int32_t rank, const int64_t *shape)
{
    attn_tensor t = attn_dense(NULL, dtype, rank, shape);
    int32_t order[4] = {0, 1, 2, 3};
    const bool shuffled = rng_one_in(r, 2);
    int64_t stride = 1;

    for (int32_t a = rank - 1; a > 0 && shuffled; a--) {
        const int32_t other = (int32_t)rng_below(r, a + 1), kept = order[a];

        order[a] = order[other];
        order[other] = kept;
    }
    for (int32_t a = rank - 1; a >= 0; a--) {
        t.stride[order[a]] = stride;
        stride *= shape[order[a]] > 0 ? shape[order[a]] : 1;
        if (rng_one_in(r, 6))
            stride += 1 + rng_below(r, 3);
    }
    t.data = guard_alloc(&p->memory, r,
                         (size_t)stride * attn_dtype_size(dtype),
                         attn_dtype_size(dtype));
    return t;
}

/* --------------------------------------------------------------- values */

typedef enum pattern {
    NORMAL,
    UNIFORM,
    TIES,
    SPREAD,
    TINY,
    LARGE,
    N_PATTERNS
} pattern;

static double draw(rng *r, pattern how, attn_dtype dtype)
{
    switch (how) {
    case UNIFORM:
        return rng_unit(r);
    case TIES:
        return (double)rng_below(r, 3) - 1;
    case SPREAD:
        return 4 * rng_normal(r);
    case TINY:
        return rng_normal(r) * (dtype == ATTN_F64 ? 1e-200 : 1e-6);
    case LARGE:
        return rng_normal(r) * (dtype == ATTN_F16 ? 10 : 1e4);
    default:
        return rng_normal(r);
    }
}

static void fill(attn_tensor *t, rng *r, pattern how)
{
    const attn_input view = attn_in(*t);
    const int64_t n = count_of(&view);
    walk w = {{0}, 0};

    for (int64_t i = 0; i < n; i++, walk_on(&w, &view))
        write_at(t, w.offset, draw(r, how, t->dtype));
}

static attn_input make_input(problem *p, rng *r, attn_dtype dtype,
                             int32_t rank, const int64_t *shape, pattern how)
{
    attn_tensor t = make_tensor(p, r, dtype, rank, shape);

    fill(&t, r, how);
    return attn_in(t);
}

/* A writable twin of an input of this program's own making. */
static attn_tensor writable(const problem *p, const attn_input *t)
{
    attn_tensor w = attn_dense(NULL, t->dtype, t->rank, t->shape);

    memcpy(w.stride, t->stride, sizeof w.stride);
    for (int i = 0; i < p->memory.n; i++)
        if ((const unsigned char *)t->data == p->memory.block[i].data)
            w.data = p->memory.block[i].data;
    return w;
}

/* ---------------------------------------------------------------- sizes */

static int64_t draw_length(rng *r, int64_t most)
{
    static const int64_t edges[] = {0, 1, 2, 15, 16, 17, 31, 33, 63, 64, 65};

    if (rng_one_in(r, 2))
        return 1 + rng_below(r, most);
    return edges[rng_below(r, sizeof edges / sizeof edges[0])];
}

static int64_t draw_dim(rng *r)
{
    static const int64_t dims[] = {1, 2, 3, 5, 7, 8, 12, 16, 17, 24, 32, 33};

    if (rng_one_in(r, 25))
        return 0;
    if (rng_one_in(r, 25))
        return 64 + rng_below(r, 3) * 8;
    return dims[rng_below(r, sizeof dims / sizeof dims[0])];
}

static void draw_desc(problem *p, rng *r, attn_dtype dtype)
{
    const int64_t heads_kv = 1 + rng_below(r, rng_one_in(r, 3) ? 3 : 1);
    attn_desc *d = &p->desc;

    attn_desc_init(d, dtype, 1 + rng_below(r, 3),
                   heads_kv * (1 + rng_below(r, 3)), heads_kv,
                   draw_length(r, 40), draw_length(r, 150), draw_dim(r),
                   draw_dim(r));
    if (rng_one_in(r, 2))
        d->causal = (attn_causal)(1 + rng_below(r, 2));
    if (rng_one_in(r, 3))
        d->window_left = rng_below(r, 80);
    if (rng_one_in(r, 4))
        d->window_right = rng_below(r, 60);
    if (rng_one_in(r, 4))
        d->softcap = 1 + 30 * rng_unit(r);
    if (rng_one_in(r, 6))
        d->scale = rng_normal(r);
    if (rng_one_in(r, 5))
        d->dropout_p = rng_one_in(r, 6) ? 1 : rng_unit(r) * 0.9;
    for (uint32_t bit = ATTN_WITH_MASK; bit <= ATTN_WITH_Q_OFFSET; bit *= 2)
        if (rng_one_in(r, 5))
            d->inputs |= bit;
    if (rng_one_in(r, 6))
        d->inputs |= ATTN_WITH_PAGES | ATTN_WITH_K_LENGTHS;
    if (rng_one_in(r, 6)) {
        d->inputs |= ATTN_WITH_VARLEN;
        d->inputs &= ~(uint32_t)(ATTN_WITH_MASK | ATTN_WITH_BIAS);
    }
    if (rng_one_in(r, 8))
        d->empty_rows = ATTN_EMPTY_NAN;
    p->backward = d->empty_rows == ATTN_EMPTY_ZERO;
    p->weights = !(d->inputs & ATTN_WITH_VARLEN);
}

static void narrow_desc(problem *p, rng *r)
{
    attn_desc *d = &p->desc;

    if (p->kind == KIND_ANY)
        return;
    p->weights = false;
    p->backward = p->kind == KIND_DBIAS;
    if (p->kind == KIND_DECODE) {
        d->len_q = 1 + rng_below(r, ATTN__DECODE_QUERIES);
        if (rng_one_in(r, 16))
            d->len_k = ATTN__SEGMENT_KEYS - 1 +
                       rng_below(r, ATTN__SEGMENT_KEYS + 3);
    } else {
        d->batch = 1;
        d->len_k = attn__min_i64(d->len_k, 70);
        d->inputs |= ATTN_WITH_BIAS;
        d->inputs &= ~(uint32_t)ATTN_WITH_VARLEN;
        d->empty_rows = ATTN_EMPTY_ZERO;
    }
}

/* --------------------------------------------------------------- inputs */

static attn_input make_indices(problem *p, rng *r, int64_t n, int64_t from,
                               int64_t to)
{
    attn_tensor t = make_tensor(p, r, rng_one_in(r, 2) ? ATTN_I32 : ATTN_I64,
                                1, &n);

    for (int64_t i = 0; i < n; i++)
        write_logical(&t, i, (double)(from + rng_below(r, to - from + 1)));
    return attn_in(t);
}

/* batch sequences, each of at most `most` rows; returns the total. */
static int64_t make_cu_seqlens(problem *p, rng *r, int64_t most,
                               attn_input *cu)
{
    const int64_t n = p->desc.batch + 1;
    attn_tensor t = make_tensor(p, r, ATTN_I32, 1, &n);
    int64_t total = 0;

    for (int64_t i = 0; i < n; i++) {
        write_logical(&t, i, (double)total);
        if (i + 1 < n)
            total += rng_below(r, most + 1);
    }
    *cu = attn_in(t);
    return total;
}

static void make_q(problem *p, rng *r, pattern how)
{
    const attn_desc *d = &p->desc;
    attn_args *a = &p->args;

    if (d->inputs & ATTN_WITH_VARLEN) {
        const int64_t total =
            make_cu_seqlens(p, r, d->len_q, &a->cu_seqlens_q);

        a->q = make_input(p, r, d->dtype, 3,
                          (int64_t[]){total, d->heads_q, d->dim_qk}, how);
        return;
    }
    a->q = make_input(
        p, r, d->dtype, 4,
        (int64_t[]){d->batch, d->heads_q, d->len_q, d->dim_qk}, how);
}

/* Each batch entry's pages are its own, in random order; a table may have room
 * for more than the plan. */
static void make_pages(problem *p, rng *r, pattern how)
{
    const attn_desc *d = &p->desc;
    const int64_t page_size = 1 + rng_below(r, 70);
    const int64_t spare = rng_one_in(r, 8) ? rng_below(r, 40) : 0;
    const int64_t columns = (d->len_k + page_size - 1) / page_size + spare;
    const int64_t pages = d->batch * columns + 1;
    attn_tensor table = make_tensor(p, r, ATTN_I32, 2,
                                    (int64_t[]){d->batch, columns});
    const int64_t shift = rng_below(r, pages);

    for (int64_t i = 0; i < d->batch * columns; i++)
        write_logical(&table, i, (double)((i + shift) % pages));
    p->args.kv.block_table = attn_in(table);
    p->args.kv.k = make_input(
        p, r, d->dtype, 4,
        (int64_t[]){pages, d->heads_kv, page_size, d->dim_qk}, how);
    p->args.kv.v = make_input(
        p, r, d->dtype, 4,
        (int64_t[]){pages, d->heads_kv, page_size, d->dim_v}, how);
    p->len_k = columns * page_size;
}

static void make_kv(problem *p, rng *r, pattern how)
{
    const attn_desc *d = &p->desc;
    attn_args *a = &p->args;

    p->len_k = d->len_k;
    if (d->inputs & ATTN_WITH_PAGES) {
        make_pages(p, r, how);
    } else if (d->inputs & ATTN_WITH_VARLEN) {
        const int64_t total =
            make_cu_seqlens(p, r, d->len_k, &a->cu_seqlens_k);

        a->kv.k = make_input(p, r, d->dtype, 3,
                             (int64_t[]){total, d->heads_kv, d->dim_qk}, how);
        a->kv.v = make_input(p, r, d->dtype, 3,
                             (int64_t[]){total, d->heads_kv, d->dim_v}, how);
    } else {
        if (rng_one_in(r, 4)) /* less than the plan's capacity */
            p->len_k = rng_below(r, d->len_k + 1);
        a->kv.k = make_input(
            p, r, d->dtype, 4,
            (int64_t[]){d->batch, d->heads_kv, p->len_k, d->dim_qk}, how);
        a->kv.v = make_input(
            p, r, d->dtype, 4,
            (int64_t[]){d->batch, d->heads_kv, p->len_k, d->dim_v}, how);
    }
}

/* The scores' axes from the right, some broadcast, leading ones cut. */
static int32_t broadcast_shape(const problem *p, rng *r, int64_t *shape)
{
    const int64_t full[4] = {p->desc.batch, p->desc.heads_q, p->desc.len_q,
                             p->len_k};
    const int32_t rank = rng_one_in(r, 2) ? 4 : 1 + (int32_t)rng_below(r, 4);

    for (int32_t a = 0; a < rank; a++)
        shape[a] = rng_one_in(r, 3) ? 1 : full[4 - rank + a];
    return rank;
}

static attn_dtype small_type(const problem *p, rng *r)
{
    const attn_dtype types[] = {ATTN_F64, ATTN_F32, p->desc.dtype};

    return types[rng_below(r, 3)];
}

static void make_shapers(problem *p, rng *r)
{
    const attn_desc *d = &p->desc;
    attn_args *a = &p->args;
    int64_t shape[4];

    if (d->inputs & ATTN_WITH_MASK) {
        const int32_t rank = broadcast_shape(p, r, shape);
        attn_tensor t = make_tensor(p, r, ATTN_BOOL, rank, shape);
        const attn_input view = attn_in(t);
        const int64_t odds = 1 + rng_below(r, 6);

        for (int64_t i = 0; i < count_of(&view); i++)
            write_logical(&t, i, rng_below(r, odds + 1) != 0);
        a->mask = attn_in(t);
    }
    if (d->inputs & ATTN_WITH_BIAS) {
        const int32_t rank = broadcast_shape(p, r, shape);
        attn_tensor t = make_tensor(p, r, small_type(p, r), rank, shape);
        const attn_input view = attn_in(t);

        fill(&t, r, NORMAL);
        for (int64_t i = 0; i < count_of(&view); i++)
            if (rng_one_in(r, 9))
                write_logical(&t, i, -(double)INFINITY);
        a->bias = attn_in(t);
    }
    if (d->inputs & ATTN_WITH_ALIBI) {
        const int32_t rank = 1 + (int32_t)rng_below(r, 2);
        const int64_t heads[2] = {d->batch, d->heads_q};

        a->alibi_slopes = make_input(p, r, small_type(p, r), rank,
                                     heads + 2 - rank, UNIFORM);
    }
    if (d->inputs & ATTN_WITH_SINKS) {
        attn_tensor t = make_tensor(p, r, small_type(p, r), 1, &d->heads_q);

        fill(&t, r, SPREAD);
        if (rng_one_in(r, 3))
            write_logical(&t, 0, -(double)INFINITY);
        a->sinks = attn_in(t);
    }
}

static void make_lengths(problem *p, rng *r)
{
    const attn_desc *d = &p->desc;
    attn_args *a = &p->args;

    if (d->inputs & ATTN_WITH_K_LENGTHS) {
        int64_t room = p->len_k < d->len_k ? p->len_k : d->len_k;

        if (attn__given(&a->cu_seqlens_k)) { /* the shortest sequence's */
            for (int64_t b = 0; b < d->batch; b++) {
                const int64_t len =
                    (int64_t)(read_logical(&a->cu_seqlens_k, b + 1) -
                              read_logical(&a->cu_seqlens_k, b));

                room = len < room ? len : room;
            }
        }
        a->kv.k_lengths = make_indices(p, r, d->batch, 0, room);
    }
    if (d->inputs & ATTN_WITH_Q_OFFSET)
        a->q_offset = make_indices(p, r, d->batch, -20, 100);
}

/* -------------------------------------------------------------- outputs */

static attn_tensor make_like(problem *p, rng *r, const attn_input *t,
                             attn_dtype dtype)
{
    return make_tensor(p, r, dtype, t->rank, t->shape);
}

static attn_dtype stats_type(rng *r)
{
    return rng_one_in(r, 4) ? ATTN_F32 : ATTN_F64;
}

static void make_forward_outputs(problem *p, rng *r)
{
    const attn_desc *d = &p->desc;
    attn_args *a = &p->args;
    int64_t shape[4];

    memcpy(shape, a->q.shape, sizeof shape);
    shape[a->q.rank - 1] = d->dim_v;
    a->o = make_tensor(p, r, d->dtype, a->q.rank, shape);
    if (a->q.rank == 3) {
        a->lse = make_tensor(p, r, ATTN_F64, 2,
                             (int64_t[]){d->heads_q, a->q.shape[0]});
    } else {
        a->lse = make_tensor(p, r, ATTN_F64, 3, a->q.shape);
        a->entropy = make_tensor(p, r, stats_type(r), 3, a->q.shape);
    }
    if (p->weights) {
        memcpy(shape, a->q.shape, sizeof shape);
        shape[3] = p->len_k;
        a->weights = make_tensor(p, r, small_type(p, r), 4, shape);
        p->stage = (attn_stage)rng_below(r, 3);
        p->stage_out = make_tensor(p, r, small_type(p, r), 4, shape);
    }
}

static void make_backward(problem *p, rng *r)
{
    attn_args *a = &p->args;
    attn_input like_o = attn_in(a->o), like_lse = attn_in(a->lse);

    a->d_o = make_input(p, r, p->desc.dtype, like_o.rank, like_o.shape,
                        NORMAL);
    if (rng_one_in(r, 3))
        a->dlse = make_input(p, r, stats_type(r), like_lse.rank,
                             like_lse.shape, NORMAL);
    if (attn__given(&a->bias))
        a->dbias = make_like(p, r, &a->bias, a->bias.dtype);
    if (p->kind == KIND_DBIAS)
        return;
    a->dq = make_like(p, r, &a->q, p->desc.dtype);
    a->dk = make_like(p, r, &a->kv.k, p->desc.dtype);
    a->dv = make_like(p, r, &a->kv.v, p->desc.dtype);
    if (attn__given(&a->sinks))
        a->dsinks = make_like(p, r, &a->sinks, stats_type(r));
    if (attn__given(&a->alibi_slopes))
        a->dslopes = make_like(p, r, &a->alibi_slopes, stats_type(r));
}

/* One NaN somewhere in k or v (or nowhere): the reference says who may see
 * it. Keys past a length hold NaN and infinities in any case. */
static void poison(problem *p, rng *r)
{
    attn_tensor k = writable(p, &p->args.kv.k);
    attn_tensor v = writable(p, &p->args.kv.v);
    attn_tensor *t = rng_one_in(r, 2) ? &k : &v;
    const attn_input view = attn_in(*t);

    if (rng_one_in(r, 3) && count_of(&view) > 0)
        write_logical(t, rng_below(r, count_of(&view)), (double)NAN);
    if (!attn__given(&p->args.kv.k_lengths) || k.rank != 4 ||
        attn__given(&p->args.kv.block_table))
        return;
    for (int64_t b = 0; b < p->desc.batch; b++)
        for (int64_t j = (int64_t)read_logical(&p->args.kv.k_lengths, b);
             j < p->len_k; j++)
            for (int64_t h = 0; h < p->desc.heads_kv; h++) {
                const int64_t row = (b * p->desc.heads_kv + h) * p->len_k + j;

                for (int64_t c = 0; c < p->desc.dim_qk; c++)
                    write_logical(&k, row * p->desc.dim_qk + c, (double)NAN);
                for (int64_t c = 0; c < p->desc.dim_v; c++)
                    write_logical(&v, row * p->desc.dim_v + c,
                                  rng_one_in(r, 2) ? (double)INFINITY
                                                   : (double)NAN);
            }
}

static void describe(problem *p, pattern how)
{
    static const char *const patterns[] = {"normal", "uniform", "ties",
                                           "spread", "tiny",    "large"};
    const attn_desc *d = &p->desc;

    snprintf(p->text, sizeof p->text,
             "%s B=%lld H=%lld/%lld Lq=%lld Lk=%lld(%lld) D=%lld Dv=%lld "
             "causal=%d window=%lld,%lld scale=%g softcap=%g dropout=%g "
             "inputs=0x%x empty=%d %s",
             attn_dtype_name(d->dtype), (long long)d->batch,
             (long long)d->heads_q, (long long)d->heads_kv,
             (long long)d->len_q, (long long)p->len_k, (long long)d->len_k,
             (long long)d->dim_qk, (long long)d->dim_v, (int)d->causal,
             (long long)d->window_left, (long long)d->window_right, d->scale,
             d->softcap, d->dropout_p, (unsigned)d->inputs,
             (int)d->empty_rows, patterns[how]);
}

void problem_make(problem *p, attn_dtype dtype, problem_kind kind,
                  uint64_t seed)
{
    rng r = {seed};
    pattern how;

    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->kind = kind;
    attn_args_init(&p->args);
    draw_desc(p, &r, dtype);
    narrow_desc(p, &r);
    if (seed % 4 == 3)
        p->desc.precision = ATTN_PRECISION_HIGH;
    how = rng_one_in(&r, 2) ? NORMAL : (pattern)rng_below(&r, N_PATTERNS);
    make_q(p, &r, how);
    make_kv(p, &r, how);
    make_shapers(p, &r);
    make_lengths(p, &r);
    make_forward_outputs(p, &r);
    if (p->backward)
        make_backward(p, &r);
    poison(p, &r);
    p->args.seed = rng_next(&r);
    p->args.offset = (uint32_t)rng_next(&r);
    p->args.dropout_start[0] = rng_below(&r, 100);
    p->args.dropout_start[1] = rng_below(&r, 100);
    describe(p, how);
}

void problem_free(problem *p)
{
    guard_free(&p->memory);
}
