/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong steps of a layer's projections. */
#include <string.h>

#include "doctor/wrong.h"

/* Column of [Q | K | V] that a wrong reading takes for element (which, head,
 * c): which 0, 1, 2 is q, k, v. */
static int64_t column(const attn__sizes *n, int reading, int64_t which,
                      int64_t h, int64_t c)
{
    static const int64_t orders[][3] = {
        {1, 0, 2}, {0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
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
    return (orders[reading - 4][which] * n->heads_q + h) * d + c;
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
           (reading == 0 || w->n.heads_q == w->n.heads_kv);
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
