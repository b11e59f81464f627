/* SPDX-License-Identifier: Apache-2.0
 *
 * Putting a question and taking the answer back to (batch, heads, len, dim).
 * Nothing that comes back is trusted: shapes are checked, numbers are not. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "doctor/pass.h"

static bool has_shape(const attn_result *r, int32_t rank, const int64_t *shape)
{
    if (r->rank != rank || !r->data)
        return false;
    for (int32_t a = 0; a < rank; a++) {
        if (r->shape[a] != shape[a])
            return false;
    }
    return true;
}

/* (batch, heads, len, dim) out of the subject's layout, or NULL. */
static double *activation(const attn_result *r, attn__layout layout,
                          const int64_t n[4], attn__arena *arena)
{
    int64_t shape[4];
    const int32_t rank = attn__layout_shape(layout, n, shape);
    const int64_t count = n[0] * n[1] * n[2] * n[3];
    double *x;

    if (!has_shape(r, rank, shape))
        return NULL;
    x = attn__arena_doubles(arena, count + 1);
    for (int64_t e = 0; x && e < count; e++)
        x[e] = r->data[attn__layout_at(layout, n, e)];
    return x;
}

/* ------------------------------------------------------------- attention */

static const char *shape_text(attn__arena *arena, const attn_result *r)
{
    const char *text = "(";

    for (int32_t a = 0; a < r->rank; a++)
        text = attn__arena_text(arena, "%s%s%lld", text, a ? ", " : "",
                                (long long)r->shape[a]);
    return attn__arena_text(arena, "%s)", text);
}

/* The result with an axis of length 1 where the subject has none. */
static attn_result with_length(const attn__binding *b, const attn_result *r)
{
    const attn__layout_facts *f = attn__layout_facts_of(b->layout);
    const int32_t axis = f->batch + (f->heads && f->heads_first);
    attn_result longer = *r;

    if (r->rank >= ATTN_RESULT_MAX_RANK || axis > r->rank)
        return longer;
    for (int32_t a = r->rank; a > axis; a--)
        longer.shape[a] = r->shape[a - 1];
    longer.shape[axis] = 1;
    longer.rank++;
    return longer;
}

/* (.., heads dim, len) as (.., heads, dim, len), where the length is last. */
static attn_result with_heads(const attn__binding *b, const attn_result *r,
                              const attn__sizes *n)
{
    const attn__layout_facts *f = attn__layout_facts_of(b->layout);
    const int32_t axis = f->batch;
    attn_result split = *r;

    if (!f->dim_first || !f->heads || r->rank != axis + 2 ||
        r->shape[axis] != n->heads_q * n->dim_v)
        return split;
    split.shape[axis] = n->heads_q;
    split.shape[axis + 1] = n->dim_v;
    split.shape[axis + 2] = r->shape[axis + 1];
    split.rank++;
    return split;
}

/* (batch, heads, rows, last) out of (batch, rows, heads, last). */
static double *heads_in_front(const double *x, const attn__sizes *n,
                              int64_t last, attn__arena *arena)
{
    double *y = attn__arena_doubles(arena, attn__count_rows(n) * last + 1);

    for (int64_t e = 0; y && e < attn__count_rows(n) * last; e++) {
        const int64_t c = e % last, h = e / last % n->heads_q;
        const int64_t i = e / last / n->heads_q % n->len_q;
        const int64_t b = e / last / n->heads_q / n->len_q;

        y[((b * n->heads_q + h) * n->len_q + i) * last + c] = x[e];
    }
    return y;
}

/* (batch, heads, rows, ...) less the axes that q lacks; `flat`: without the
 * axis of rows; `turned`: the rows before the heads. */
static double *in_rows(const attn__binding *b, const attn_result *r,
                       const attn__sizes *n, int64_t last, bool flat,
                       bool turned, attn__arena *arena)
{
    const attn__layout_facts *f = attn__layout_facts_of(b->layout);
    int64_t shape[4], count = 1;
    int32_t rank = 0;

    if (f->batch)
        shape[rank++] = n->batch;
    if (turned)
        shape[rank++] = n->len_q;
    if (f->heads)
        shape[rank++] = n->heads_q;
    if (!flat && !turned)
        shape[rank++] = n->len_q;
    if (last > 0)
        shape[rank++] = last;
    if (!has_shape(r, rank, shape))
        return NULL;
    for (int32_t a = 0; a < rank; a++)
        count *= shape[a];
    return turned ? heads_in_front(r->data, n, last > 0 ? last : 1, arena)
                  : attn__arena_copy(arena, r->data, count, sizeof *r->data);
}

/* Where q has its heads after its rows, so may have what belongs to rows:
 * known by the first numbers of heads and rows that differ. */
static double *by_rows(attn__binding *b, const attn_result *r,
                       const attn__sizes *n, int64_t last, attn__arena *arena)
{
    const attn__layout_facts *f = attn__layout_facts_of(b->layout);
    const bool may_turn = f->heads && !f->heads_first;
    double *x = in_rows(b, r, n, last, false, may_turn && b->rows_turned,
                        arena);

    if (!x && may_turn && n->len_q != n->heads_q) {
        x = in_rows(b, r, n, last, false, !b->rows_turned, arena);
        b->rows_turned ^= x != NULL;
    }
    return !x && b->q_flat && n->len_q == 1
               ? in_rows(b, r, n, last, true, false, arena)
               : x;
}

/* The same layout with heads and dim in one axis, length before them; itself
 * where there is none. */
static attn__layout merged_of(attn__layout layout)
{
    switch (layout) {
    case LAYOUT_BHSD:
    case LAYOUT_BSHD:
        return LAYOUT_BSE;
    case LAYOUT_HSD:
    case LAYOUT_SHD:
        return LAYOUT_SE;
    case LAYOUT_SBHD:
        return LAYOUT_SBE;
    default:
        return layout;
    }
}

/* The same layout with heads and length exchanged; itself where it has not
 * both in axes of their own. */
static attn__layout exchanged(attn__layout layout)
{
    switch (layout) {
    case LAYOUT_BHSD:
        return LAYOUT_BSHD;
    case LAYOUT_BSHD:
        return LAYOUT_BHSD;
    case LAYOUT_HSD:
        return LAYOUT_SHD;
    case LAYOUT_SHD:
        return LAYOUT_HSD;
    default:
        return layout;
    }
}

/* o with heads and length exchanged: known by the first numbers of heads and
 * rows that differ. */
static double *exchanged_o(attn__binding *b, const attn_result *r,
                           const int64_t of[4], attn__arena *arena)
{
    double *o;

    if (exchanged(b->layout) == b->layout || (of[1] == of[2] && !b->o_turned))
        return NULL;
    o = activation(r, exchanged(b->layout), of, arena);
    b->o_turned |= o != NULL;
    return o;
}

/* Packed results of a 4-D subject count as well. */
static double *take_o(attn__binding *b, const attn_result *r,
                      const attn__sizes *n, attn__arena *arena)
{
    const int64_t of[4] = {n->batch, n->heads_q, n->len_q, n->dim_v};
    double *o;

    if (b->shared == NO_VALUES)
        return by_rows(b, r, n, n->len_k, arena);
    if (b->o_turned)
        return exchanged_o(b, r, of, arena);
    o = activation(r, b->layout, of, arena);
    if (!o && b->q_flat && n->len_q == 1) {
        const attn_result longer = with_length(b, r);

        return activation(&longer, b->layout, of, arena);
    }
    b->merged = false;
    if (!o) {
        const attn_result split = with_heads(b, r, n);

        o = activation(&split, b->layout, of, arena);
    }
    if (!o && merged_of(b->layout) != b->layout) {
        o = activation(r, merged_of(b->layout), of, arena);
        b->merged = o != NULL;
    }
    return o ? o : exchanged_o(b, r, of, arena);
}

/* y (batch, len, width), or without the batch. */
static double *take_y(const attn__binding *b, const attn_result *r,
                      const attn__question *q, int64_t width,
                      attn__arena *arena)
{
    const int64_t of[4] = {q->n.batch, 1, q->n.len_q, width};

    return activation(r, b->layout, of, arena);
}

/* Which results are gradients of what: dq, dk, dv in this order. */
static double *take_gradients(const attn__binding *b, const attn_answer *a,
                              const attn__sizes *n, attn__arena *arena)
{
    const int64_t of[3][4] = {
        {n->batch, n->heads_q, n->len_q, n->dim_qk},
        {n->batch, n->heads_kv, n->len_k, n->dim_qk},
        {n->batch, n->heads_kv, n->len_k, n->dim_v},
    };
    const int64_t count[3] = {attn__count_q(n), attn__count_k(n),
                              attn__count_v(n)};
    double *all = attn__arena_doubles(arena, count[0] + count[1] + count[2]);
    int64_t at = 0;

    for (int x = 0; x < 3; x++) {
        const double *g = a->n_results > x
                              ? activation(&a->results[x], b->layout, of[x],
                                           arena)
                              : NULL;

        if (!g || !all)
            return NULL;
        memcpy(all + at, g, (size_t)count[x] * sizeof *g);
        at += count[x];
    }
    return all;
}

/* o is where it was the last time, or the first result with its shape. */
static void find_o(attn__binding *b, attn__question *q, const attn_answer *a,
                   attn__arena *arena)
{
    if (b->o_at < a->n_results)
        q->answer = take_o(b, &a->results[b->o_at], &q->n, arena);
    for (int32_t x = 0; !q->answer && x < a->n_results; x++) {
        q->answer = take_o(b, &a->results[x], &q->n, arena);
        if (q->answer)
            b->o_at = x;
    }
}

static void take(attn__binding *b, attn__question *q, const attn_answer *a,
                 attn__arena *arena)
{
    const attn__sizes *n = &q->n;

    if (q->d_o) {
        q->answer = take_gradients(b, a, n, arena);
        q->n_answer =
            attn__count_q(n) + attn__count_k(n) + attn__count_v(n);
        return;
    }
    if (q->layer.x) {
        const int64_t width =
            q->layer.w_o ? q->layer.model : attn__width_o(n);

        if (a->n_results > 0)
            q->answer = take_y(b, &a->results[0], q, width, arena);
        q->n_answer = n->batch * n->len_q * width;
    } else {
        find_o(b, q, a, arena);
        q->n_answer = attn__count_o(n);
    }
    for (int32_t x = 0; x < a->n_results; x++) {
        if (x == b->o_at)
            continue;
        if (!q->weights)
            q->weights = by_rows(b, &a->results[x], n, n->len_k, arena);
        if (!q->lse && !q->weights)
            q->lse = by_rows(b, &a->results[x], n, 0, arena);
        else if (!q->lse && x > 1)
            q->lse = by_rows(b, &a->results[x], n, 0, arena);
    }
}

/* ------------------------------------------------------------------ ask */

static void free_results(attn_answer *answer)
{
    for (int32_t x = 0; x < answer->n_results; x++)
        attn__free(answer->results[x].data);
}

static void judge_shape(attn__question *q, const attn_answer *answer,
                        attn__arena *arena)
{
    if (q->answer)
        return;
    q->outcome = ATTN_RAISED;
    if (answer->n_results == 0)
        q->refusal = "it returned no array";
    else
        q->refusal = attn__arena_text(
            arena, "it returned %d array%s, the first of shape %s",
            (int)answer->n_results, answer->n_results == 1 ? "" : "s",
            shape_text(arena, &answer->results[0]));
    q->wrong_shape = true;
}

/* Where one array serves twice, others cannot be asked about. */
static bool is_shared(const attn__binding *b, const attn__question *q)
{
    attn__question shared = *q;

    attn__share(b, &shared);
    return shared.q == q->q && shared.v == q->v;
}

bool attn__ask(attn__binding *b, attn__question *q, attn__view view,
               attn__arena *arena)
{
    attn__arena own = {0};
    attn__call call = {
        .binding = b, .question = q, .view = view, .arena = &own};
    attn_answer answer = {0};

    q->answer = q->weights = q->lse = NULL;
    q->wrong_shape = false;
    if (!is_shared(b, q)) {
        q->outcome = ATTN_RAISED;
        q->refusal = "one array cannot hold q, k and v that differ";
        return !arena->failed;
    }
    attn__pass(&call);
    if (!own.failed) {
        q->outcome = b->subject->call(b->subject->ctx, call.values, call.n,
                                      &answer);
        q->mutated = 0;
        for (int x = 0; q->outcome == ATTN_ANSWERED && x < call.n; x++) {
            if (answer.mutated & UINT32_C(1) << (x & 31))
                q->mutated |= UINT32_C(1) << (call.values[x].parameter & 31);
        }
        q->seconds = answer.seconds;
        q->dtype = answer.n_results > 0 ? answer.results[0].dtype : ATTN_NONE;
        b->seconds += answer.seconds;
        q->number = b->calls++;
        for (int64_t x = 0; q->lengths && x < q->n.batch; x++)
            b->longest = attn__max_i64(b->longest, q->lengths[x]);
        q->longest = b->longest;
        q->refusal = attn__arena_text(arena, "%s", answer.message);
        if (q->outcome == ATTN_ANSWERED) {
            take(b, q, &answer, arena);
            judge_shape(q, &answer, arena);
        }
        free_results(&answer);
    }
    arena->failed |= own.failed;
    attn__arena_close(&own);
    return !arena->failed;
}
