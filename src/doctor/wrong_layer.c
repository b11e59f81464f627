/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong steps of a layer's projections. */
#include <string.h>

#include "doctor/wrong.h"

/* Where the array of `which` (0 q, 1 k, 2 v) begins in a row, in heads, if it
 * is read as [K|Q|V] (0), [Q|V|K], [V|K|Q], [K|V|Q], [V|Q|K]. */
static int64_t first_head(const attn__sizes *n, int order, int64_t which)
{
    static const int place[][3] = {
        {1, 0, 2}, {0, 2, 1}, {2, 1, 0}, {2, 0, 1}, {1, 2, 0}};
    int64_t heads = 0;

    for (int other = 0; other < 3; other++) {
        if (place[order][other] < place[order][which])
            heads += other ? n->heads_kv : n->heads_q;
    }
    return heads;
}

/* Column of [Q | K | V] that a wrong reading takes for element (which, head,
 * c): which 0, 1, 2 is q, k, v. */
static int64_t column(const attn__sizes *n, int reading, int64_t which,
                      int64_t h, int64_t c)
{
    const int64_t d = n->dim_qk, group = n->heads_q / n->heads_kv;

    if (reading == 0) /* per group: its queries, k, v */
        return which == 0 ? (h / group * (group + 2) + h % group) * d + c
                          : (h * (group + 2) + group + which - 1) * d + c;
    if (reading == 1) /* (heads, dim, 3) */
        return (h * d + c) * 3 + which;
    if (reading == 2) /* (dim, heads, 3) */
        return (c * n->heads_q + h) * 3 + which;
    if (reading == 3) /* (3, dim, heads) */
        return (which * d + c) * n->heads_q + h;
    return (first_head(n, reading - 4, which) + h) * d + c;
}

/* One column of x @ [w_q | w_k | w_v] + its bias. */
static double projected(const attn__work *w, const double *x, int64_t col)
{
    const attn__projections *l = &w->given->layer;
    const int64_t widths[3] = {attn__width_q(&w->n), attn__width_k(&w->n),
                               attn__width_v(&w->n)};
    const double *matrices[3] = {l->w_q, l->w_k, l->w_v};
    const double *biases[3] = {l->b_q, l->b_k, l->b_v};
    double sum;
    int part = 0;

    while (part < 2 && col >= widths[part])
        col -= widths[part++];
    sum = biases[part] ? biases[part][col] : 0;
    for (int64_t d = 0; d < l->model; d++)
        sum += x[d] * matrices[part][d * widths[part] + col];
    return sum;
}

static bool is_readable(const attn__work *w, int reading)
{
    return w->given->layer.x && w->n.dim_qk == w->n.dim_v &&
           (reading == 0 || reading >= 4 || w->n.heads_q == w->n.heads_kv);
}

/* The packed projection read in another order; param: see column(). */
void attn__project_reading(attn__work *w, double param)
{
    const attn__projections *l = &w->given->layer;
    const int64_t tokens = w->n.batch * w->n.len_q, d = w->n.dim_qk;
    double *const to[3] = {w->packed_q, w->packed_k, w->packed_v};

    if (!is_readable(w, (int)param)) {
        attn__right_project(w, 0);
        return;
    }
    for (int which = 0; which < 3; which++) {
        const int64_t heads = which ? w->n.heads_kv : w->n.heads_q;

        for (int64_t e = 0; e < tokens * heads * d; e++) {
            const int64_t h = e / d % heads, t = e / d / heads;

            to[which][e] =
                projected(w, l->x + t * l->model,
                          column(&w->n, (int)param, which, h, e % d));
        }
    }
}

/* Element (token, head, c) of the rows [q | k | v] that were put together. */
static double fused(const attn__work *w, int64_t token, int64_t col)
{
    const double *const from[3] = {w->packed_q, w->packed_k, w->packed_v};
    const int64_t widths[3] = {attn__width_q(&w->n), attn__width_k(&w->n),
                               attn__width_v(&w->n)};
    int part = 0;

    while (part < 2 && col >= widths[part])
        col -= widths[part++];
    return from[part][token * widths[part] + col];
}

/* The array that holds q, k and v read in another order; param: see column().
 */
void attn__split_reading(attn__work *w, double param)
{
    const attn__sizes *n = &w->n;
    double *const to[3] = {w->own_q, w->own_k, w->own_v};

    if (w->given->layer.x || n->dim_qk != n->dim_v || n->len_q != n->len_k) {
        attn__right_split(w, 0);
        return;
    }
    attn__pack(w->q, w->packed_q, n->batch, n->heads_q, n->len_q, n->dim_qk);
    attn__pack(w->k, w->packed_k, n->batch, n->heads_kv, n->len_k, n->dim_qk);
    attn__pack(w->v, w->packed_v, n->batch, n->heads_kv, n->len_k, n->dim_v);
    for (int which = 0; which < 3; which++) {
        const int64_t heads = which ? n->heads_kv : n->heads_q;
        double *x = to[which];

        for (int64_t b = 0; b < n->batch; b++)
            for (int64_t h = 0; h < heads; h++)
                for (int64_t i = 0; i < n->len_q; i++)
                    for (int64_t c = 0; c < n->dim_qk; c++)
                        *x++ = fused(w, b * n->len_q + i,
                                     column(n, (int)param, which, h, c));
    }
    w->q = w->own_q;
    w->k = w->own_k;
    w->v = w->own_v;
}

/* k and v, in one array, have changed places. */
void attn__split_exchanged(attn__work *w, double param)
{
    const double *k = w->k;

    if (w->given->layer.x || w->n.dim_qk != w->n.dim_v) {
        attn__right_split(w, param);
        return;
    }
    w->k = w->v;
    w->v = k;
}

/* The output projection left out, where that fits. */
void attn__finish_unprojected(attn__work *w, double param)
{
    const int64_t n = attn__count_o(&w->n);

    attn__right_finish(w, param);
    if (w->given->layer.w_o && w->n_answer == n)
        attn__pack(w->o, w->answer, w->n.batch, w->n.heads_q, w->n.len_q,
                   w->n.dim_v);
}

/* ---------------------------------------------------- other projections */

/* Run `right` with other projections than the given ones. */
static void with_layer(attn__work *w, const attn__projections *other,
                       attn__step *right)
{
    const attn__question *given = w->given;
    attn__question changed = *given;

    changed.layer = *other;
    w->given = &changed;
    right(w, 0);
    w->given = given;
}

/* A square matrix transposed into `to`; any other as it is. */
static const double *turned(const double *matrix, int64_t rows, int64_t cols,
                            double *to)
{
    if (!matrix || rows != cols)
        return matrix;
    for (int64_t e = 0; e < rows * cols; e++)
        to[e % cols * rows + e / cols] = matrix[e];
    return to;
}

/* param: 1 W_q, 2 W_k, 4 W_v; `p`, `ds`, `dp` are free at this step, and hold
 * them where they have room. */
void attn__project_transposed(attn__work *w, double param)
{
    const int bits = (int)param;
    const int64_t model = w->given->layer.model;
    attn__projections l = w->given->layer;

    if (!l.x || model * model > w->n_spare) {
        attn__right_project(w, 0);
        return;
    }
    if (bits & 1)
        l.w_q = turned(l.w_q, model, attn__width_q(&w->n), w->p);
    if (bits & 2)
        l.w_k = turned(l.w_k, model, attn__width_k(&w->n), w->ds);
    if (bits & 4)
        l.w_v = turned(l.w_v, model, attn__width_v(&w->n), w->dp);
    with_layer(w, &l, attn__right_project);
}

void attn__finish_transposed(attn__work *w, double param)
{
    attn__projections l = w->given->layer;

    if (!l.x || l.model * l.model > w->n_spare) {
        attn__right_finish(w, param);
        return;
    }
    l.w_o = turned(l.w_o, attn__width_o(&w->n), l.model, w->ds);
    with_layer(w, &l, attn__right_finish);
}

/* param 0: W_q serves for W_k, 1: W_k for W_v, where they are as wide. */
void attn__project_other(attn__work *w, double param)
{
    const attn__sizes *n = &w->n;
    attn__projections l = w->given->layer;

    if (param < 1 && attn__width_q(n) == attn__width_k(n))
        l.w_k = l.w_q;
    else if (param > 0 && attn__width_k(n) == attn__width_v(n))
        l.w_v = l.w_k;
    with_layer(w, &l, attn__right_project);
}

void attn__project_biasless(attn__work *w, double param)
{
    attn__projections l = w->given->layer;

    (void)param;
    l.b_q = l.b_k = l.b_v = NULL;
    with_layer(w, &l, attn__right_project);
}

void attn__finish_biasless(attn__work *w, double param)
{
    attn__projections l = w->given->layer;

    (void)param;
    l.b_o = NULL;
    with_layer(w, &l, attn__right_finish);
}
