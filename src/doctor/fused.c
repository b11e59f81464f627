/* SPDX-License-Identifier: Apache-2.0
 *
 * q, k and v, or k and v, in one array: beside an axis of the layout stands
 * one of three or two, by itself or in one with others. Whatever of these, the
 * memory is the same: for every index of the axes before it a piece of q, one
 * of k, one of v. */
#include "doctor/fused.h"

#include <ctype.h>
#include <string.h>

typedef struct part {
    const double *x; /* (batch, heads, len, dim) */
    int64_t n[4];
    int64_t shape[4]; /* in the layout */
    int64_t piece;    /* elements that stand together */
} part;

/* Without q? Then the second of the parts is the first. */
static int first_part(const attn__binding *b)
{
    return attn__parameter_of(b, ROLE_QKV) < 0;
}

static void describe_parts(const attn__question *q, const attn__binding *b,
                           part parts[3])
{
    const attn__sizes *n = &q->n;
    const double *const x[3] = {q->q, q->k, q->v};
    const int64_t heads[3] = {n->heads_q, n->heads_kv, n->heads_kv};
    const int64_t lens[3] = {n->len_q, n->len_k, n->len_k};
    const int64_t dims[3] = {n->dim_qk, n->dim_qk, n->dim_v};

    for (int p = 0; p < 3; p++) {
        const int64_t of[4] = {n->batch, heads[p], lens[p], dims[p]};
        int32_t rank;

        parts[p].x = x[p];
        memcpy(parts[p].n, of, sizeof of);
        rank = attn__layout_shape(b->layout, of, parts[p].shape);
        parts[p].piece = 1;
        for (int32_t a = b->fusion_axis; a < rank; a++)
            parts[p].piece *= parts[p].shape[a];
    }
}

/* Groups have a place only where three stands before all of them. */
static bool fits(const attn__question *q, const attn__binding *b)
{
    const attn__sizes *n = &q->n;
    const attn__layout_facts *f = attn__layout_facts_of(b->layout);
    const bool before = b->fusion == FUSION_FLAT &&
                        b->fusion_axis == f->batch + !f->heads_first;

    return n->dim_qk == n->dim_v &&
           (first_part(b) == 1 ||
            (n->len_q == n->len_k && (n->heads_q == n->heads_kv || before)));
}

/* The shape of the whole; returns the rank. */
static int32_t whole_shape(const attn__binding *b, const part parts[3],
                           int64_t shape[5])
{
    const attn__layout_facts *f = attn__layout_facts_of(b->layout);
    const int32_t rank = 2 + f->batch + f->heads;
    const bool flat = b->fusion == FUSION_FLAT;
    const int32_t at = flat ? f->batch + !f->heads_first : b->fusion_axis;
    const int32_t next = flat ? at + 2 : at + (b->fusion == FUSION_JOINED);
    const int first = first_part(b);
    int32_t n = 0;

    for (int32_t a = 0; a < at; a++)
        shape[n++] = parts[2].shape[a];
    shape[n] = b->fusion == FUSION_STACKED ? 3 - first : 0;
    for (int p = first; p < 3 && b->fusion != FUSION_STACKED; p++)
        shape[n] += parts[p].shape[at] * (flat ? parts[p].shape[at + 1] : 1);
    n++;
    for (int32_t a = next; a < rank; a++)
        shape[n++] = parts[2].shape[a];
    return n;
}

/* The parts in the memory of the layout, piece by piece. */
static double *whole(const attn__call *c, const part parts[3])
{
    const attn__question *q = c->question;
    const int64_t all =
        attn__count_q(&q->n) + attn__count_k(&q->n) + attn__count_v(&q->n);
    const int first = first_part(c->binding);
    double *y = attn__arena_doubles(c->arena, all + 1);
    int64_t before = 0, width = 0;

    for (int p = first; p < 3; p++)
        width += parts[p].piece;
    for (int p = first; y && p < 3; p++) {
        const int64_t *n = parts[p].n, piece = parts[p].piece;

        for (int64_t e = 0; e < n[0] * n[1] * n[2] * n[3]; e++) {
            const int64_t at = attn__layout_at(c->binding->layout, n, e);

            y[at / piece * width + before + at % piece] = parts[p].x[e];
        }
        before += piece;
    }
    return y;
}

attn_value attn__fused_value(const attn__call *c)
{
    attn_value v = {.kind = ATTN_VALUE_NONE};
    part parts[3];
    int64_t shape[5];
    int32_t rank;
    const double *y;

    if (!fits(c->question, c->binding))
        return v;
    describe_parts(c->question, c->binding, parts);
    rank = whole_shape(c->binding, parts, shape);
    y = whole(c, parts);
    if (!y)
        return v;
    v.kind = ATTN_VALUE_TENSOR;
    if (rank == 5)
        v.integer[0] = shape[0];
    v.tensor = attn__tensor(c, y, rank, shape);
    return v;
}

/* ----------------------------------------------------------------- words */

int32_t attn__fused_rank(attn__layout layout, attn__fusion fusion)
{
    const attn__layout_facts *f = attn__layout_facts_of(layout);

    return 2 + f->batch + f->heads + (fusion == FUSION_STACKED) -
           (fusion == FUSION_FLAT);
}

/* Are these two neighbours one axis? */
static bool is_one_axis(attn__fusion fusion, char left, char right)
{
    if (fusion == FUSION_JOINED)
        return left == '3' || left == '2';
    return fusion == FUSION_FLAT && strchr("23HD", left) &&
           strchr("23HD", right);
}

const char *attn__fused_words(const attn__binding *b, attn__arena *arena)
{
    const char *name = attn__layout_facts_of(b->layout)->name;
    const char *text = "(";
    char letters[8] = "";
    int32_t n = 0;

    for (int32_t a = 0; name[a] || a == b->fusion_axis; a++) {
        if (a == b->fusion_axis)
            letters[n++] = first_part(b) == 1 ? '2' : '3';
        if (!name[a])
            break;
        letters[n++] = name[a] == 's' ? 'L' : (char)toupper(name[a]);
    }
    for (int32_t x = 0; x < n; x++)
        text = attn__arena_text(
            arena, "%s%c%s", text, letters[x],
            x + 1 == n                                             ? ")"
            : is_one_axis(b->fusion, letters[x], letters[x + 1]) ? " "
                                                                   : ", ");
    return text;
}
