/* SPDX-License-Identifier: Apache-2.0
 *
 * Checking what a call brings against its plan: presence, types, shapes,
 * contents of the index arrays, and that outputs share no memory. Field names
 * are those of attn.h. */
#include "run/checker.h"

#include "core/diag.h"

/* A type that must be exactly that: the plan has chosen its kernels by it. */
static attn_status check_dtype(const attn_input *t, const char *name,
                               attn_dtype dtype, attn_diag *diag)
{
    ATTN__REQUIRE(t->dtype == dtype, diag, ATTN_E_DTYPE, name,
                  "is %s, must be %s", attn_dtype_name(t->dtype),
                  attn_dtype_name(dtype));
    return ATTN_OK;
}

/* f64, f32 or the type of q: what shapes scores is often made in f32 for a
 * model of 16 bits, and is small beside q, k and v, so it needs no copy. */
static attn_status check_real(const checker *c, const attn_input *t,
                              const char *name)
{
    ATTN__REQUIRE(t->dtype == ATTN_F64 || t->dtype == ATTN_F32 ||
                      t->dtype == c->desc->dtype,
                  c->diag, ATTN_E_DTYPE, name,
                  "is %s, must be f64, f32 or the type of q, %s",
                  attn_dtype_name(t->dtype), attn_dtype_name(c->desc->dtype));
    return ATTN_OK;
}

/* Broadcasting from the right to (B, H, Lq, Lk), as in NumPy; Lk is that of
 * this call, not the capacity. */
static attn_status check_broadcast(const checker *c, const attn_input *t,
                                   const char *name)
{
    const int64_t scores[4] = {c->desc->batch, c->desc->heads_q,
                               c->desc->len_q, c->len_k};

    return attn__check_broadcast(t, name, 4, scores, c->diag);
}

/* ------------------------------------------------------- inputs by field */

/* The plan has chosen kernels and memory for what it was told of: neither a
 * surprise nor a gap is silently put up with. */
static attn_status check_presence(const checker *c)
{
    const attn_args *a = c->args;
    const struct {
        uint32_t bit;
        const attn_input *t;
        const char *name;
    } optional[] = {
        {ATTN_WITH_MASK, &a->mask, "mask"},
        {ATTN_WITH_BIAS, &a->bias, "bias"},
        {ATTN_WITH_ALIBI, &a->alibi_slopes, "alibi_slopes"},
        {ATTN_WITH_SINKS, &a->sinks, "sinks"},
        {ATTN_WITH_K_LENGTHS, &a->kv.k_lengths, "k_lengths"},
        {ATTN_WITH_Q_OFFSET, &a->q_offset, "q_offset"},
        {ATTN_WITH_VARLEN, &a->cu_seqlens_q, "cu_seqlens_q"},
        {ATTN_WITH_PAGES, &a->kv.block_table, "block_table"}};
    const bool packed_k = (c->desc->inputs & ATTN_WITH_VARLEN) &&
                          !(c->desc->inputs & ATTN_WITH_PAGES);

    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        const bool planned = c->desc->inputs & optional[i].bit;

        ATTN__REQUIRE(attn__given(optional[i].t) == planned, c->diag,
                      ATTN_E_MISMATCH, optional[i].name,
                      planned ? "was planned (desc.inputs) but is absent"
                              : "is given but was not planned (desc.inputs)");
    }
    ATTN__REQUIRE(attn__given(&a->cu_seqlens_k) == packed_k, c->diag,
                  ATTN_E_MISMATCH, "cu_seqlens_k",
                  packed_k ? "is required with cu_seqlens_q"
                           : "is given without packed keys");
    return ATTN_OK;
}

/* (B, Hq, Lq, D), or packed (T, Hq, D) with at most as many rows as the plan
 * has counted memory for: a plan serves any batch of sequences within its
 * total. */
static attn_status check_q(const checker *c)
{
    const attn_desc *d = c->desc;
    const attn_input *q = &c->args->q;

    ATTN__REQUIRE(attn__given(q), c->diag, ATTN_E_ARG, "q", "is absent");
    ATTN__TRY(check_dtype(q, "q", d->dtype, c->diag));
    if (c->varlen) {
        const int64_t shape[3] = {q->shape[0], d->heads_q, d->dim_qk};

        ATTN__TRY(attn__check_shape(q, "q", 3, shape, c->diag));
        ATTN__REQUIRE(q->shape[0] <= attn__rows_per_head(d), c->diag,
                      ATTN_E_SHAPE, "q", "has %lld rows, more than total_q = "
                      "%lld", (long long)q->shape[0],
                      (long long)attn__rows_per_head(d));
        return ATTN_OK;
    }
    return attn__check_shape(
        q, "q", 4, (int64_t[]){d->batch, d->heads_q, d->len_q, d->dim_qk},
        c->diag);
}

/* k or v: dense, packed or paged. The first axes and the length are k's own,
 * which the plan only bounds: a cache grows, and its plan stays. */
static attn_status check_keys(const checker *c, const attn_input *t,
                              const char *name, int64_t dim)
{
    const attn_desc *d = c->desc;
    const attn_input *k = &c->args->kv.k;

    ATTN__REQUIRE(attn__given(t), c->diag, ATTN_E_ARG, name, "is absent");
    ATTN__TRY(check_dtype(t, name, d->kv_dtype, c->diag));
    if (c->paged)
        return attn__check_shape(
            t, name, 4,
            (int64_t[]){k->shape[0], d->heads_kv, k->shape[2], dim}, c->diag);
    if (c->varlen)
        return attn__check_shape(
            t, name, 3, (int64_t[]){k->shape[0], d->heads_kv, dim}, c->diag);
    return attn__check_shape(
        t, name, 4, (int64_t[]){d->batch, d->heads_kv, k->shape[2], dim},
        c->diag);
}

/* The length of the key axis, from k or from the block table. Not from
 * k_lengths: masks and bias keep the whole axis, of which a batch entry may use
 * the front. */
static attn_status find_len_k(checker *c)
{
    const attn_input *k = &c->args->kv.k;
    const attn_input *table = &c->args->kv.block_table;

    if (c->varlen && !c->paged) {
        c->len_k = c->desc->len_k; /* bounds each sequence */
        return ATTN_OK;
    }
    c->len_k = k->shape[2];
    if (c->paged) {
        const int64_t shape[2] = {c->desc->batch, table->shape[1]};

        ATTN__TRY(check_dtype(table, "block_table", ATTN_I32, c->diag));
        ATTN__TRY(attn__check_shape(table, "block_table", 2, shape, c->diag));
        ATTN__REQUIRE(k->shape[2] > 0 || table->shape[1] == 0, c->diag,
                      ATTN_E_SHAPE, "k", "has pages of no rows");
        ATTN__REQUIRE(attn__mul_i64(k->shape[2], table->shape[1], &c->len_k),
                      c->diag, ATTN_E_OVERFLOW, "block_table",
                      "pages times page size overflows");
        return ATTN_OK;
    }
    ATTN__REQUIRE(c->len_k <= c->desc->len_k, c->diag, ATTN_E_SHAPE, "k",
                  "has %lld keys, more than the plan's len_k = %lld",
                  (long long)c->len_k, (long long)c->desc->len_k);
    return ATTN_OK;
}

/* k before v, since v's shape is judged by k's. Weights alone need no v, but a
 * v that is there must be right. */
static attn_status check_kv(checker *c)
{
    const attn_kv *kv = &c->args->kv;

    ATTN__TRY(check_keys(c, &kv->k, "k", c->desc->dim_qk));
    if (c->pass != ATTN_WEIGHTS || attn__given(&kv->v))
        ATTN__TRY(check_keys(c, &kv->v, "v", c->desc->dim_v));
    return find_len_k(c);
}

/* What changes scores without being q or k. Slopes may differ between batch
 * entries, (B, Hq); sinks belong to the model, (Hq). */
static attn_status check_shapers(const checker *c)
{
    const attn_args *a = c->args;
    const attn_desc *d = c->desc;
    const int64_t heads[2] = {d->batch, d->heads_q};
    const int32_t rank = a->alibi_slopes.rank == 2 ? 2 : 1;

    if (attn__given(&a->mask)) {
        ATTN__TRY(check_dtype(&a->mask, "mask", ATTN_BOOL, c->diag));
        ATTN__TRY(check_broadcast(c, &a->mask, "mask"));
    }
    if (attn__given(&a->bias)) {
        ATTN__TRY(check_real(c, &a->bias, "bias"));
        ATTN__TRY(check_broadcast(c, &a->bias, "bias"));
    }
    if (attn__given(&a->alibi_slopes)) {
        ATTN__TRY(check_real(c, &a->alibi_slopes, "alibi_slopes"));
        ATTN__TRY(attn__check_shape(&a->alibi_slopes, "alibi_slopes", rank,
                                    heads + 2 - rank, c->diag));
    }
    if (attn__given(&a->sinks)) {
        ATTN__TRY(check_real(c, &a->sinks, "sinks"));
        ATTN__TRY(
            attn__check_shape(&a->sinks, "sinks", 1, heads + 1, c->diag));
    }
    return ATTN_OK;
}

/* --------------------------------------------------------- index arrays
 *
 * Their contents are read here, once and before anything is written: kernels
 * take them as they are. Shapes come first, so that reading is safe. */

static attn_status check_index(const checker *c, const attn_input *t,
                               const char *name, int64_t n)
{
    ATTN__REQUIRE(attn__is_index(t->dtype), c->diag, ATTN_E_DTYPE, name,
                  "is %s, must be i32 or i64", attn_dtype_name(t->dtype));
    return attn__check_shape(t, name, 1, &n, c->diag);
}

/* Element i of an index array whose shape has been checked. */
static int64_t index_at(const attn_input *t, int64_t i)
{
    return attn__load_index(t->data, t->dtype, i * t->stride[0]);
}

/* cu_seqlens start at 0, never fall, end at the total; no sequence is longer
 * than the plan's. */
static attn_status check_cu_seqlens(const checker *c, const attn_input *cu,
                                    const char *name, int64_t total,
                                    int64_t longest)
{
    const int64_t n = c->desc->batch;

    ATTN__TRY(check_index(c, cu, name, n + 1));
    ATTN__REQUIRE(index_at(cu, 0) == 0, c->diag, ATTN_E_ARG, name,
                  "starts at %lld, must start at 0",
                  (long long)index_at(cu, 0));
    for (int64_t b = 0; b < n; b++) {
        const int64_t from = index_at(cu, b), to = index_at(cu, b + 1);

        ATTN__REQUIRE(from <= to, c->diag, ATTN_E_ARG, name,
                      "falls from %lld to %lld at %lld, must not decrease",
                      (long long)from, (long long)to, (long long)b + 1);
        ATTN__REQUIRE(to - from <= longest, c->diag, ATTN_E_SHAPE, name,
                      "sequence %lld has %lld rows, more than the plan's %lld",
                      (long long)b, (long long)(to - from),
                      (long long)longest);
    }
    ATTN__REQUIRE(index_at(cu, n) == total, c->diag, ATTN_E_ARG, name,
                  "ends at %lld, must end at the total of %lld rows",
                  (long long)index_at(cu, n), (long long)total);
    return ATTN_OK;
}

/* The most keys that batch entry b has room for. */
static int64_t key_room(const checker *c, int64_t b)
{
    const attn_input *cu = &c->args->cu_seqlens_k;

    if (attn__given(cu))
        return index_at(cu, b + 1) - index_at(cu, b);
    return attn__min_i64(c->len_k, c->desc->len_k);
}

/* 0 to the room of each batch entry: a length of 0 is a sequence that has no
 * keys yet, whose rows are empty. */
static attn_status check_k_lengths(const checker *c)
{
    const attn_input *lengths = &c->args->kv.k_lengths;

    ATTN__TRY(check_index(c, lengths, "k_lengths", c->desc->batch));
    for (int64_t b = 0; b < c->desc->batch; b++) {
        const int64_t length = index_at(lengths, b);

        ATTN__REQUIRE(length >= 0 && length <= key_room(c, b), c->diag,
                      ATTN_E_ARG, "k_lengths",
                      "[%lld] is %lld, must be 0 to %lld", (long long)b,
                      (long long)length, (long long)key_room(c, b));
    }
    return ATTN_OK;
}

/* Within 2^62, so that position = offset + i and its window stay within 63
 * bits. Below 0 is legal: such a query stands before every key. */
static attn_status check_q_offset(const checker *c)
{
    const attn_input *offset = &c->args->q_offset;
    const int64_t limit = INT64_C(1) << 62;

    ATTN__TRY(check_index(c, offset, "q_offset", c->desc->batch));
    for (int64_t b = 0; b < c->desc->batch; b++) {
        const int64_t value = index_at(offset, b);

        ATTN__REQUIRE(value >= -limit && value <= limit, c->diag, ATTN_E_ARG,
                      "q_offset", "[%lld] is %lld, beyond 2^62", (long long)b,
                      (long long)value);
    }
    return ATTN_OK;
}

/* Entries that a length uses name a page; the rest may hold anything, as tables
 * do whose pages have been given back. */
static attn_status check_block_table(const checker *c)
{
    const attn_input *table = &c->args->kv.block_table;
    const int64_t pages = c->args->kv.k.shape[0];
    const int64_t page_size = c->args->kv.k.shape[2];

    for (int64_t b = 0; b < c->desc->batch; b++) {
        const int64_t length = index_at(&c->args->kv.k_lengths, b);

        for (int64_t t = 0; t * page_size < length; t++) {
            const int64_t page =
                attn__load_index(table->data, table->dtype,
                                 b * table->stride[0] + t * table->stride[1]);

            ATTN__REQUIRE(page >= 0 && page < pages, c->diag, ATTN_E_ARG,
                          "block_table",
                          "[%lld, %lld] is %lld, must be 0 to %lld",
                          (long long)b, (long long)t, (long long)page,
                          (long long)pages - 1);
        }
    }
    return ATTN_OK;
}

/* In this order: k_lengths is bounded by cu_seqlens_k, the table by k_lengths.
 */
static attn_status check_indices(const checker *c)
{
    const attn_args *a = c->args;

    if (c->varlen)
        ATTN__TRY(check_cu_seqlens(c, &a->cu_seqlens_q, "cu_seqlens_q",
                                   a->q.shape[0], c->desc->len_q));
    if (attn__given(&a->cu_seqlens_k))
        ATTN__TRY(check_cu_seqlens(c, &a->cu_seqlens_k, "cu_seqlens_k",
                                   a->kv.k.shape[0], c->desc->len_k));
    if (attn__given(&a->kv.k_lengths))
        ATTN__TRY(check_k_lengths(c));
    if (attn__given(&a->q_offset))
        ATTN__TRY(check_q_offset(c));
    return c->paged ? check_block_table(c) : ATTN_OK;
}

/* -------------------------------------------------------------- dropout */

/* Each index is 32 bits of a counter: two pairs must not share one. */
static attn_status check_dropout(const checker *c)
{
    const int64_t limit = INT64_C(1) << 32;
    const int64_t *start = c->args->dropout_start;

    if (!(c->desc->dropout_p > 0))
        return ATTN_OK;
    for (int axis = 0; axis < 2; axis++) {
        const int64_t len = axis ? c->len_k : c->desc->len_q;

        ATTN__REQUIRE(start[axis] >= 0 && start[axis] <= limit - len,
                      c->diag, ATTN_E_OVERFLOW, "dropout_start",
                      "%lld plus %lld indices leaves 0 to 2^32",
                      (long long)start[axis], (long long)len);
    }
    return ATTN_OK;
}

/* -------------------------------------------------- d_o, o, lse, outputs */

/* o, d_o: rows and type of q, with `dim` columns. */
static attn_status check_like_q(const checker *c, const attn_input *t,
                                const char *name, int64_t dim)
{
    const attn_desc *d = c->desc;

    ATTN__TRY(check_dtype(t, name, d->dtype, c->diag));
    if (c->varlen)
        return attn__check_shape(
            t, name, 3,
            (int64_t[]){c->args->q.shape[0], d->heads_q, dim}, c->diag);
    return attn__check_shape(
        t, name, 4, (int64_t[]){d->batch, d->heads_q, d->len_q, dim},
        c->diag);
}

/* lse, dlse, entropy: (batch, heads, len) or (heads, total). Never 16 bits: an
 * lse of 8 bits of mantissa would cost backward every digit of its weights. */
static attn_status check_stats(const checker *c, const attn_input *t,
                               const char *name)
{
    const attn_desc *d = c->desc;

    ATTN__REQUIRE(t->dtype == ATTN_F64 || t->dtype == ATTN_F32, c->diag,
                  ATTN_E_DTYPE, name, "is %s, must be f64 or f32",
                  attn_dtype_name(t->dtype));
    if (c->varlen)
        return attn__check_shape(
            t, name, 2, (int64_t[]){d->heads_q, c->args->q.shape[0]},
            c->diag);
    return attn__check_shape(
        t, name, 3, (int64_t[]){d->batch, d->heads_q, d->len_q}, c->diag);
}

/* A gradient has the shape of what it is the gradient of, its strides are its
 * own. */
static attn_status check_like(const checker *c, const attn_tensor *t,
                              const attn_input *model, const char *name)
{
    const attn_input view = attn_in(*t);

    ATTN__REQUIRE(attn__given(model), c->diag, ATTN_E_MISMATCH, name,
                  "is asked for, but its input is absent");
    return attn__check_shape(&view, name, model->rank, model->shape, c->diag);
}

/* (B, heads, rows, Lk), all heads and rows or the chosen ones. Packed
 * sequences would need a ragged array, which no tensor is. */
static attn_status check_weights(const checker *c, const attn_tensor *t,
                                 const char *name, int64_t heads,
                                 int64_t rows)
{
    const attn_input view = attn_in(*t);

    ATTN__REQUIRE(!c->varlen, c->diag, ATTN_E_UNSUPPORTED, name,
                  "weights cannot be had of packed sequences");
    ATTN__TRY(check_real(c, &view, name));
    return attn__check_shape(
        &view, name, 4, (int64_t[]){c->desc->batch, heads, rows, c->len_k},
        c->diag);
}

static attn_status check_output_stats(const checker *c, const attn_tensor *t,
                                      const char *name)
{
    if (!attn__asked(t))
        return ATTN_OK;
    const attn_input view = attn_in(*t);

    return check_stats(c, &view, name);
}

/* Any of the four outputs, alone or together; a call for none is a mistake. */
static attn_status check_forward(const checker *c)
{
    const attn_args *a = c->args;

    ATTN__REQUIRE(attn__asked(&a->o) || attn__asked(&a->lse) ||
                      attn__asked(&a->weights) || attn__asked(&a->entropy),
                  c->diag, ATTN_E_ARG, "o", "no output is asked for");
    if (attn__asked(&a->o)) {
        const attn_input o = attn_in(a->o);

        ATTN__TRY(check_like_q(c, &o, "o", c->desc->dim_v));
    }
    ATTN__TRY(check_output_stats(c, &a->lse, "lse"));
    ATTN__TRY(check_output_stats(c, &a->entropy, "entropy"));
    if (attn__asked(&a->weights))
        ATTN__TRY(check_weights(c, &a->weights, "weights", c->desc->heads_q,
                                c->desc->len_q));
    return ATTN_OK;
}

/* dsinks, dslopes: sums over all rows of a head, which 16 bits would ruin. */
static attn_status check_small_gradient(const checker *c, const attn_tensor *t,
                                        const attn_input *model,
                                        const char *name)
{
    if (!attn__asked(t))
        return ATTN_OK;
    ATTN__REQUIRE(t->dtype == ATTN_F64 || t->dtype == ATTN_F32, c->diag,
                  ATTN_E_DTYPE, name, "is %s, must be f64 or f32",
                  attn_dtype_name(t->dtype));
    return check_like(c, t, model, name);
}

/* dq, dk, dv, dbias: the type of their input. */
static attn_status check_gradient(const checker *c, const attn_tensor *t,
                                  const attn_input *model, const char *name)
{
    const attn_input view = attn_in(*t);

    if (!attn__asked(t))
        return ATTN_OK;
    ATTN__TRY(check_like(c, t, model, name));
    return check_dtype(&view, name, model->dtype, c->diag);
}

/* o and lse are inputs here: those of the forward with the same plan and
 * arguments. That they are cannot be checked without doing it again; the vjp
 * of the Python package keeps them together. */
static attn_status check_backward(const checker *c)
{
    const attn_args *a = c->args;
    const attn_input o = attn_in(a->o), lse = attn_in(a->lse);

    ATTN__REQUIRE(c->desc->empty_rows == ATTN_EMPTY_ZERO, c->diag,
                  ATTN_E_UNSUPPORTED, "empty_rows",
                  "nan has no gradient; use zero");
    ATTN__REQUIRE(attn__asked(&a->o), c->diag, ATTN_E_ARG, "o", "is absent");
    ATTN__REQUIRE(attn__asked(&a->lse), c->diag, ATTN_E_ARG, "lse",
                  "is absent");
    ATTN__REQUIRE(attn__given(&a->d_o), c->diag, ATTN_E_ARG, "d_o",
                  "is absent");
    ATTN__TRY(check_like_q(c, &o, "o", c->desc->dim_v));
    ATTN__TRY(check_stats(c, &lse, "lse"));
    ATTN__TRY(check_like_q(c, &a->d_o, "d_o", c->desc->dim_v));
    if (attn__given(&a->dlse))
        ATTN__TRY(check_stats(c, &a->dlse, "dlse"));
    ATTN__TRY(check_gradient(c, &a->dq, &a->q, "dq"));
    ATTN__TRY(check_gradient(c, &a->dk, &a->kv.k, "dk"));
    ATTN__TRY(check_gradient(c, &a->dv, &a->kv.v, "dv"));
    ATTN__TRY(check_gradient(c, &a->dbias, &a->bias, "dbias"));
    ATTN__TRY(check_small_gradient(c, &a->dsinks, &a->sinks, "dsinks"));
    return check_small_gradient(c, &a->dslopes, &a->alibi_slopes, "dslopes");
}

/* Chosen heads and rows exist. */
static attn_status check_chosen(const checker *c, const int64_t *chosen,
                                int64_t n, int64_t size, const char *name)
{
    if (!chosen)
        return ATTN_OK;
    ATTN__REQUIRE(n >= 0, c->diag, ATTN_E_ARG, name,
                  "has the negative count %lld", (long long)n);
    for (int64_t i = 0; i < n; i++)
        ATTN__REQUIRE(chosen[i] >= 0 && chosen[i] < size, c->diag, ATTN_E_ARG,
                      name, "[%lld] is %lld, must be 0 to %lld", (long long)i,
                      (long long)chosen[i], (long long)size - 1);
    return ATTN_OK;
}

/* What attn_weights takes besides: NULL for all rows and heads, or lists, in
 * any order and with repetitions. */
static attn_status check_rows(const checker *c, const attn_tensor *out,
                              const attn_rows *rows)
{
    const attn_desc *d = c->desc;
    const bool heads = rows && rows->heads, some = rows && rows->rows;

    if (rows) {
        ATTN__TRY(check_chosen(c, rows->heads, rows->n_heads, d->heads_q,
                               "heads"));
        ATTN__TRY(
            check_chosen(c, rows->rows, rows->n_rows, d->len_q, "rows"));
    }
    ATTN__REQUIRE(attn__asked(out), c->diag, ATTN_E_ARG, "out", "is absent");
    return check_weights(c, out, "out", heads ? rows->n_heads : d->heads_q,
                         some ? rows->n_rows : d->len_q);
}

attn_status attn__check_call(checker *c, const attn_tensor *out,
                             const attn_rows *rows)
{
    ATTN__REQUIRE(c->args, c->diag, ATTN_E_ARG, "args", "must not be NULL");
    ATTN__REQUIRE(c->args->size == sizeof *c->args, c->diag, ATTN_E_ARG,
                  "size", "%u is not the size of attn_args; use "
                  "attn_args_init", (unsigned)c->args->size);
    c->varlen = c->desc->inputs & ATTN_WITH_VARLEN;
    c->paged = c->desc->inputs & ATTN_WITH_PAGES;
    /* In the order of the fields, except that lengths and tables need k. */
    ATTN__TRY(check_presence(c));
    ATTN__TRY(check_q(c));
    ATTN__TRY(check_kv(c));
    ATTN__TRY(check_shapers(c));
    ATTN__TRY(check_indices(c));
    ATTN__TRY(check_dropout(c));
    if (c->pass == ATTN_FORWARD)
        ATTN__TRY(check_forward(c));
    else if (c->pass == ATTN_BACKWARD)
        ATTN__TRY(check_backward(c));
    else
        ATTN__TRY(check_rows(c, out, rows));
    return attn__check_apart(c, out);
}
