/* SPDX-License-Identifier: Apache-2.0
 *
 * The right steps of the forward pass. Each line of the formula is one. */
#include <math.h>
#include <string.h>

#include "doctor/model.h"

/* ------------------------------------------------------------ the layer */

/* y (rows, n_out) = x (rows, n_in) @ w + bias. */
static void project(const double *x, const double *w, const double *bias,
                    int64_t rows, int64_t n_in, int64_t n_out, double *y)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < n_out; c++) {
            double sum = bias ? bias[c] : 0;

            for (int64_t d = 0; d < n_in; d++)
                sum += x[r * n_in + d] * w[d * n_out + c];
            y[r * n_out + c] = sum;
        }
    }
}

void attn__right_project(attn__work *w, double param)
{
    const attn__projections *l = &w->given->layer;
    const attn__sizes *n = &w->n;

    (void)param;
    if (!l->x)
        return;
    project(l->x, l->w_q, l->b_q, n->batch * n->len_q, l->model,
            n->heads_q * n->dim_qk, w->packed_q);
    project(l->x, l->w_k, l->b_k, n->batch * n->len_k, l->model,
            n->heads_kv * n->dim_qk, w->packed_k);
    project(l->x, l->w_v, l->b_v, n->batch * n->len_k, l->model,
            n->heads_kv * n->dim_v, w->packed_v);
}

void attn__right_split(attn__work *w, double param)
{
    const attn__sizes *n = &w->n;

    (void)param;
    if (!w->given->layer.x)
        return;
    attn__unpack(w->packed_q, w->own_q, n->batch, n->heads_q, n->len_q,
                 n->dim_qk);
    attn__unpack(w->packed_k, w->own_k, n->batch, n->heads_kv, n->len_k,
                 n->dim_qk);
    attn__unpack(w->packed_v, w->own_v, n->batch, n->heads_kv, n->len_k,
                 n->dim_v);
    w->q = w->own_q;
    w->k = w->own_k;
    w->v = w->own_v;
}

void attn__right_map(attn__work *w, double param)
{
    const int64_t group = w->n.heads_q / w->n.heads_kv;

    (void)param;
    for (int64_t h = 0; h < w->n.heads_q; h++)
        w->kv_head[h] = h / group;
}

/* -------------------------------------------------------------- scores */

void attn__right_scale(attn__work *w, double param)
{
    (void)param;
    if (w->given->asked & ASK_SCALE)
        w->scale = w->given->scale;
    else if (w->meaning->has_scale)
        w->scale = w->meaning->scale;
    else
        w->scale = w->n.dim_qk > 0 ? 1 / sqrt((double)w->n.dim_qk) : 1;
}

void attn__right_dot(attn__work *w, double param)
{
    (void)param;
    ATTN__FOR_ROWS(w, row) {
        const double *q = attn__query(w, &row);

        for (int64_t j = 0; j < w->n.len_k; j++)
            row.s[j] =
                w->scale * attn__dot(q, attn__key(w, &row, j), w->n.dim_qk);
    }
}

void attn__cap(attn__work *w)
{
    const int64_t pairs = attn__count_pairs(&w->n);

    for (int64_t x = 0; w->softcap > 0 && x < pairs; x++)
        w->s[x] = w->softcap * tanh(w->s[x] / w->softcap);
}

void attn__right_cap(attn__work *w, double param)
{
    (void)param;
    attn__cap(w);
}

void attn__right_bias(attn__work *w, double param)
{
    const attn__question *a = w->given;

    (void)param;
    if (!a->bias)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.s[j] +=
                a->bias[attn__at(a->bias_shape, row.b, row.h, row.i, j)];
    }
}

void attn__right_alibi(attn__work *w, double param)
{
    (void)param;
    if (!w->slopes)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.s[j] -=
                w->slopes[row.h] * fabs((double)(row.position - j));
    }
}

/* ------------------------------------------------------------ visibility */

/* Where windows count from: the positions. */
void attn__right_place(attn__work *w, double param)
{
    (void)param;
    memcpy(w->place, w->position, (size_t)w->n.batch * sizeof *w->place);
}

void attn__right_causal(attn__work *w, double param)
{
    (void)param;
    if (w->causal == ATTN_CAUSAL_NONE)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= j <= row.position;
    }
}

void attn__right_mask(attn__work *w, double param)
{
    const attn__question *a = w->given;

    (void)param;
    if (!a->mask)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &=
                a->mask[attn__at(a->mask_shape, row.b, row.h, row.i, j)] !=
                w->meaning->mask_hides;
    }
}

void attn__right_length(attn__work *w, double param)
{
    (void)param;
    if (!w->given->lengths)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= j < w->given->lengths[row.b];
    }
}

static int64_t sequence_of(const int64_t *cu, int64_t n, int64_t x)
{
    int64_t s = 0;

    while (s + 1 < n && x >= cu[s + 1])
        s++;
    return s;
}

void attn__right_sequence(attn__work *w, double param)
{
    const attn__question *a = w->given;

    (void)param;
    if (!a->cu_q)
        return;
    ATTN__FOR_ROWS(w, row) {
        const int64_t s = sequence_of(a->cu_q, a->n_sequences, row.i);

        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= sequence_of(a->cu_k, a->n_sequences, j) == s;
    }
}

void attn__right_hide(attn__work *w, double param)
{
    const int64_t pairs = attn__count_pairs(&w->n);

    (void)param;
    for (int64_t x = 0; x < pairs; x++) {
        if (!w->visible[x])
            w->s[x] = -INFINITY;
    }
    if (w->cap_late)
        attn__cap(w);
}

/* --------------------------------------------------------------- softmax */

void attn__right_mass(attn__work *w, double param)
{
    (void)param;
    ATTN__FOR_ROWS(w, row)
        w->mass[row.index] = w->sinks ? w->sinks[row.h] : -INFINITY;
}

static double largest(const double *s, int64_t n, double start)
{
    double max = start;

    for (int64_t j = 0; j < n; j++)
        max = s[j] > max ? s[j] : max;
    return max;
}

/* With nothing to attend to there is no claim: NaN. */
void attn__right_softmax(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;

    (void)param;
    ATTN__FOR_ROWS(w, row) {
        const double extra = w->mass[row.index];
        const double max = largest(row.s, n, extra);
        double sum = exp(extra - max);

        for (int64_t j = 0; j < n; j++)
            sum += row.p[j] = exp(row.s[j] - max);
        for (int64_t j = 0; j < n; j++)
            row.p[j] /= sum;
        w->lse[row.index] = max + log(sum);
    }
}

/* A mask that came too late meets the weights instead of the scores. */
void attn__right_weigh(attn__work *w, double param)
{
    const int64_t pairs = attn__count_pairs(&w->n);

    (void)param;
    for (int64_t x = 0; w->mask_late && x < pairs; x++)
        w->p[x] = w->visible[x] ? w->p[x] : 0;
}

void attn__right_output(attn__work *w, double param)
{
    const int64_t dim = w->n.dim_v;

    (void)param;
    ATTN__FOR_ROWS(w, row) {
        double *o = w->o + row.index * dim;

        memset(o, 0, (size_t)dim * sizeof *o);
        for (int64_t j = 0; j < w->n.len_k; j++) {
            const double *v = attn__value(w, &row, j);

            for (int64_t c = 0; c < dim; c++)
                o[c] += row.p[j] * v[c];
        }
    }
}

void attn__right_finish(attn__work *w, double param)
{
    const attn__projections *l = &w->given->layer;
    const attn__sizes *n = &w->n;

    (void)param;
    if (w->exchanged)
        attn__exchange(w, w->exchanged);
    w->n_answer = attn__count_o(n);
    if (!l->x) {
        memcpy(w->answer, w->o, (size_t)w->n_answer * sizeof *w->o);
        return;
    }
    attn__pack(w->o, w->packed_q, n->batch, n->heads_q, n->len_q, n->dim_v);
    if (!l->w_o) {
        memcpy(w->answer, w->packed_q, (size_t)w->n_answer * sizeof *w->o);
        return;
    }
    project(w->packed_q, l->w_o, l->b_o, n->batch * n->len_q,
            attn__width_o(n), l->model, w->answer);
    w->n_answer = n->batch * n->len_q * l->model;
}
