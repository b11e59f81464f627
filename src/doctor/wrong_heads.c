/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong steps around heads and layout: which KV head, how heads are cut out
 * of a packed axis and put back, which array is which. */
#include <string.h>

#include "doctor/wrong.h"

/* ------------------------------------------------------ query to KV head */

void attn__map_modulo(attn__work *w, double param)
{
    (void)param;
    for (int64_t h = 0; h < w->n.heads_q; h++)
        w->kv_head[h] = h % w->n.heads_kv;
}

void attn__map_first(attn__work *w, double param)
{
    (void)param;
    for (int64_t h = 0; h < w->n.heads_q; h++)
        w->kv_head[h] = 0;
}

/* h div H_kv instead of h div (H / H_kv), kept in range by param: 0 clamp,
 * 1 modulo. */
void attn__map_divisor(attn__work *w, double param)
{
    const int64_t n = w->n.heads_kv;

    for (int64_t h = 0; h < w->n.heads_q; h++) {
        const int64_t g = h / n;

        w->kv_head[h] = g < n ? g : param > 0 ? g % n : n - 1;
    }
}

void attn__map_reversed(attn__work *w, double param)
{
    attn__right_map(w, param);
    for (int64_t h = 0; h < w->n.heads_q; h++)
        w->kv_head[h] = w->n.heads_kv - 1 - w->kv_head[h];
}

/* For one of K and V alone, param 0: h mod H_kv, 1: KV head 0. */
static void with_other_map(attn__work *w, double param, attn__step *right)
{
    if (param > 0)
        attn__map_first(w, 0);
    else
        attn__map_modulo(w, 0);
    right(w, 0);
    attn__right_map(w, 0);
}

void attn__output_map(attn__work *w, double param)
{
    with_other_map(w, param, attn__right_output);
}

void attn__dot_map(attn__work *w, double param)
{
    with_other_map(w, param, attn__right_dot);
}

/* ------------------------------------------------------- cutting heads */

/* q, k, v packed, of a layer or of a question that has them apart. */
static void pack_all(attn__work *w)
{
    const attn__sizes *n = &w->n;

    if (w->given->layer.x)
        return;
    attn__pack(w->q, w->packed_q, n->batch, n->heads_q, n->len_q, n->dim_qk);
    attn__pack(w->k, w->packed_k, n->batch, n->heads_kv, n->len_k, n->dim_qk);
    attn__pack(w->v, w->packed_v, n->batch, n->heads_kv, n->len_k, n->dim_v);
}

/* (batch, len, heads dim) viewed as (batch, heads, len, dim). */
void attn__split_reshaped(attn__work *w, double param)
{
    (void)param;
    pack_all(w);
    w->q = w->packed_q;
    w->k = w->packed_k;
    w->v = w->packed_v;
}

/* x (batch, heads, len, dim) from packed (batch, len, dim, heads). */
static void cut_dim_first(const double *packed, double *x, int64_t batch,
                          int64_t heads, int64_t len, int64_t dim)
{
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < len; i++)
                for (int64_t c = 0; c < dim; c++)
                    *x++ = packed[((b * len + i) * dim + c) * heads + h];
}

/* The packed axis read as (dim, heads). */
void attn__split_dim_order(attn__work *w, double param)
{
    const attn__sizes *n = &w->n;

    (void)param;
    pack_all(w);
    cut_dim_first(w->packed_q, w->own_q, n->batch, n->heads_q, n->len_q,
                  n->dim_qk);
    cut_dim_first(w->packed_k, w->own_k, n->batch, n->heads_kv, n->len_k,
                  n->dim_qk);
    cut_dim_first(w->packed_v, w->own_v, n->batch, n->heads_kv, n->len_k,
                  n->dim_v);
    w->q = w->own_q;
    w->k = w->own_k;
    w->v = w->own_v;
}

/* y (batch, heads_q, len, dim): the KV heads of x repeated along the sequence
 * and reshaped to more heads. */
static void repeat_along_sequence(const attn__sizes *n, const double *x,
                                  double *y, int64_t dim)
{
    const int64_t group = n->heads_q / n->heads_kv;

    for (int64_t b = 0; b < n->batch; b++)
        for (int64_t h = 0; h < n->heads_q; h++)
            for (int64_t j = 0; j < n->len_k; j++) {
                const int64_t g = h / group;
                const int64_t from = (h % group * n->len_k + j) / group;

                memcpy(y, x + ((b * n->heads_kv + g) * n->len_k + from) * dim,
                       (size_t)dim * sizeof *y);
                y += dim;
            }
}

/* Repeated on the sequence axis instead of the heads'. */
void attn__split_repeated(attn__work *w, double param)
{
    attn__right_split(w, param);
    repeat_along_sequence(&w->n, w->k, w->packed_k, w->n.dim_qk);
    repeat_along_sequence(&w->n, w->v, w->packed_v, w->n.dim_v);
    w->k = w->packed_k;
    w->v = w->packed_v;
    w->n.heads_kv = w->n.heads_q;
}

/* ------------------------------------------------------- merging heads */

/* (batch, heads, len, dim) reshaped to (batch, len, heads dim). */
void attn__merge_reshaped(attn__work *w, double param)
{
    const attn__sizes *n = &w->n;

    (void)param;
    attn__unpack(w->o, w->packed_q, n->batch, n->heads_q, n->len_q, n->dim_v);
    memcpy(w->o, w->packed_q, (size_t)attn__count_o(n) * sizeof *w->o);
}

/* Put back as (dim, heads). */
void attn__merge_dim_order(attn__work *w, double param)
{
    const attn__sizes *n = &w->n;
    double *to = w->packed_q;

    (void)param;
    for (int64_t b = 0; b < n->batch; b++)
        for (int64_t i = 0; i < n->len_q; i++)
            for (int64_t c = 0; c < n->dim_v; c++)
                for (int64_t h = 0; h < n->heads_q; h++)
                    *to++ = w->o[((b * n->heads_q + h) * n->len_q + i) *
                                     n->dim_v + c];
    attn__unpack(w->packed_q, w->o, n->batch, n->heads_q, n->len_q, n->dim_v);
}

/* ------------------------------------------------------- which is which */

/* param 0: k serves as v, 1: q does. */
void attn__value_is(attn__work *w, double param)
{
    const attn__sizes *n = &w->n;

    attn__right_split(w, 0);
    if (n->dim_v != n->dim_qk)
        return;
    if (param < 1)
        w->v = w->k;
    else if (n->len_q == n->len_k && n->heads_q == n->heads_kv)
        w->v = w->q;
}

/* The answer is an input: 0 q, 1 k, 2 v. */
void attn__output_is(attn__work *w, double param)
{
    const attn__sizes *n = &w->n;
    const double *inputs[] = {w->q, w->k, w->v};

    attn__right_output(w, 0);
    if (n->dim_v == n->dim_qk && n->len_q == n->len_k &&
        n->heads_q == n->heads_kv)
        memcpy(w->o, inputs[(int)param],
               (size_t)attn__count_o(n) * sizeof *w->o);
}

/* x (a, b, c, d) to (c, b, a, d), or with `heads` to (a, c, b, d). */
static void swap_axes(const double *x, double *y, const int64_t shape[4],
                      bool heads)
{
    for (int64_t a = 0; a < shape[0]; a++)
        for (int64_t b = 0; b < shape[1]; b++)
            for (int64_t c = 0; c < shape[2]; c++) {
                const int64_t to =
                    heads ? (a * shape[2] + c) * shape[1] + b
                          : (c * shape[1] + b) * shape[0] + a;

                memcpy(y + to * shape[3], x, (size_t)shape[3] * sizeof *x);
                x += shape[3];
            }
}

/* Its own inverse. Lengths are equal where this is called. */
static void exchange_sizes(attn__sizes *n, bool heads)
{
    const attn__sizes old = *n;

    if (heads) {
        n->len_q = old.heads_q;
        n->len_k = old.heads_kv;
        n->heads_q = old.len_q;
        n->heads_kv = old.len_k;
    } else {
        n->len_q = n->len_k = old.batch;
        n->batch = old.len_q;
    }
}

/* From the right roles to the exchanged ones; with w->exchanged set, back. */
void attn__exchange(attn__work *w, int axes)
{
    const bool heads = axes == 2;
    int64_t shape_q[4] = {w->n.batch, w->n.heads_q, w->n.len_q, w->n.dim_qk};
    int64_t shape_v[4] = {w->n.batch, w->n.heads_q, w->n.len_q, w->n.dim_v};

    if (w->exchanged) {
        swap_axes(w->o, w->own_q, shape_v, heads);
        exchange_sizes(&w->n, heads);
        memcpy(w->o, w->own_q, (size_t)attn__count_o(&w->n) * sizeof *w->o);
        return;
    }
    swap_axes(w->q, w->packed_q, shape_q, heads);
    shape_q[1] = shape_v[1] = w->n.heads_kv;
    swap_axes(w->k, w->packed_k, shape_q, heads);
    swap_axes(w->v, w->packed_v, shape_v, heads);
    w->q = w->packed_q;
    w->k = w->packed_k;
    w->v = w->packed_v;
    exchange_sizes(&w->n, heads);
    w->exchanged = axes;
}

/* Attention across the batch (param 1) or across heads (param 2), where the
 * sizes and the options let it pass in silence. */
void attn__axes_exchanged(attn__work *w, double param)
{
    const uint32_t refuses = ASK_CROSS | ASK_MASK | ASK_BIAS | ASK_LENGTHS |
                             ASK_OFFSET | ASK_ALIBI | ASK_SINKS;

    attn__right_split(w, 0);
    if (w->given->asked & refuses)
        return;
    attn__exchange(w, (int)param);
    for (int64_t b = 0; b < w->n.batch; b++)
        w->position[b] = 0;
}
