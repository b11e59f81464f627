/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong steps of the backward pass. */
#include <math.h>
#include <string.h>

#include "doctor/wrong.h"

static const double *upstream(const attn__work *w, const attn__pairs *row)
{
    return w->given->d_o + row->index * w->n.dim_v;
}

static double *row_of(const attn__work *w, double *pairs,
                      const attn__pairs *row)
{
    return pairs + row->index * w->n.len_k;
}

/* -------------------------------------------------------------- softmax */

/* ds = p dp: delta missing. */
void attn__ds_no_delta(attn__work *w, double param)
{
    (void)param;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row_of(w, w->ds, &row)[j] =
                row.p[j] * row_of(w, w->dp, &row)[j];
    }
}

/* Sum over the queries i of p_ij dp_ij, of the row's head. */
static double over_queries(const attn__work *w, const attn__pairs *row,
                           int64_t j)
{
    double sum = 0;

    for (int64_t i = 0; i < w->n.len_q; i++) {
        const int64_t x = (row->index - row->i + i) * w->n.len_k + j;

        sum += w->p[x] * w->dp[x];
    }
    return sum;
}

/* Another delta. param 0: sum dp, 1: mean dp, 2: of dp p without p outside
 * (ds = dp - delta), 3: added instead of taken off, 4: over the queries,
 * 5: divided by the width of v. */
void attn__ds_delta(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;
    const int form = (int)param;

    ATTN__FOR_ROWS(w, row) {
        const double *dp = row_of(w, w->dp, &row);
        double sum = 0;
        double delta = attn__dot(row.p, dp, n);

        for (int64_t j = 0; j < n; j++)
            sum += dp[j];
        if (form == 0 || form == 1)
            delta = form == 0 ? sum : sum / (double)n;
        if (form == 3 || form == 5)
            delta *= form == 3 ? -1 : 1 / (double)w->n.dim_v;
        for (int64_t j = 0; j < n; j++) {
            if (form == 4)
                delta = over_queries(w, &row, j);
            row_of(w, w->ds, &row)[j] =
                form == 2 ? dp[j] - delta : row.p[j] * (dp[j] - delta);
        }
    }
}

/* ds = p (1 - p) dp: the diagonal of the Jacobian alone. */
void attn__ds_diagonal(attn__work *w, double param)
{
    (void)param;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row_of(w, w->ds, &row)[j] = row.p[j] * (1 - row.p[j]) *
                                        row_of(w, w->dp, &row)[j];
    }
}

/* ds = dp: softmax passed over. */
void attn__ds_is_dp(attn__work *w, double param)
{
    (void)param;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row_of(w, w->ds, &row)[j] =
                row.visible[j] ? row_of(w, w->dp, &row)[j] : 0;
    }
}

/* p recomputed as if every key were visible, for ds (param 1), dv (2), or
 * both (0). It happens at DV, the first backward step. */
static void unmask(attn__work *w)
{
    memset(w->visible, 1, (size_t)attn__count_pairs(&w->n));
    attn__right_dot(w, 0);
    attn__right_cap(w, 0);
    attn__right_bias(w, 0);
    attn__right_alibi(w, 0);
    attn__right_mass(w, 0);
    attn__right_softmax(w, 0);
}

void attn__dv_unmasked(attn__work *w, double param)
{
    if (param == 1)
        attn__right_dv(w, 0);
    unmask(w);
    if (param != 1)
        attn__right_dv(w, 0);
    if (param == 2) {
        attn__right_causal(w, 0);
        attn__right_window(w, 0);
        attn__right_mask(w, 0);
        attn__right_length(w, 0);
        attn__right_dot(w, 0);
        attn__right_cap(w, 0);
        attn__right_bias(w, 0);
        attn__right_alibi(w, 0);
        attn__right_hide(w, 0);
        attn__right_softmax(w, 0);
    }
}

/* dv = sum dp' ... : p taken without normalisation is not seen here; dv from
 * the scores instead of the weights. */
void attn__dv_from_scores(attn__work *w, double param)
{
    double *p = w->p;

    w->p = w->s;
    attn__right_dv(w, param);
    w->p = p;
}

/* dv = p d_o where p^T d_o was meant; square only. */
void attn__dv_untransposed(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;

    if (w->n.len_q != n) {
        attn__right_dv(w, param);
        return;
    }
    memcpy(w->spare, w->p, (size_t)attn__count_pairs(&w->n) * sizeof *w->p);
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < n; j++)
            row.p[j] = w->spare[(row.index - row.i + j) * n + row.i];
    }
    memset(w->aside, 1, (size_t)attn__count_pairs(&w->n));
    {
        unsigned char *visible = w->visible;

        w->visible = w->aside;
        attn__right_dv(w, param);
        w->visible = visible;
    }
    memcpy(w->p, w->spare, (size_t)attn__count_pairs(&w->n) * sizeof *w->p);
}

/* ----------------------------------------------------------- dq and dk */

static void times(double *x, int64_t n, double factor)
{
    for (int64_t c = 0; c < n; c++)
        x[c] *= factor;
}

/* The scale param times more often: -1 forgotten, 1 twice. */
void attn__dq_scale(attn__work *w, double param)
{
    attn__right_dq(w, 0);
    times(w->dq, attn__count_q(&w->n), pow(w->scale, param));
}

void attn__dk_scale(attn__work *w, double param)
{
    attn__right_dk(w, 0);
    times(w->answer + attn__count_q(&w->n), attn__count_k(&w->n),
          pow(w->scale, param));
}

/* In both. */
void attn__ds_scale(attn__work *w, double param)
{
    attn__right_ds(w, 0);
    times(w->ds, attn__count_pairs(&w->n), pow(w->scale, param));
}

void attn__dq_sign(attn__work *w, double param)
{
    (void)param;
    attn__right_dq(w, 0);
    times(w->dq, attn__count_q(&w->n), -1);
}

void attn__dk_sign(attn__work *w, double param)
{
    (void)param;
    attn__right_dk(w, 0);
    times(w->answer + attn__count_q(&w->n), attn__count_k(&w->n), -1);
}

/* ds k for ds^T q: dk_j = sum_i ds_ji q_i; square only. param 1: dq too. */
void attn__dk_untransposed(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;

    if (w->n.len_q == n) {
        memcpy(w->spare, w->ds,
               (size_t)attn__count_pairs(&w->n) * sizeof *w->ds);
        ATTN__FOR_ROWS(w, row) {
            for (int64_t j = 0; j < n; j++)
                row_of(w, w->ds, &row)[j] =
                    w->spare[(row.index - row.i + j) * n + row.i];
        }
    }
    attn__right_dk(w, param);
}

/* dq and dk exchanged; where they are as large. */
void attn__dk_exchanged(attn__work *w, double param)
{
    const int64_t n = attn__count_q(&w->n);

    attn__right_dk(w, param);
    if (n != attn__count_k(&w->n))
        return;
    memcpy(w->answer, w->dk, (size_t)n * sizeof *w->dk);
    memcpy(w->answer + n, w->dq, (size_t)n * sizeof *w->dq);
}

/* The derivative of the softcap forgotten. */
void attn__ds_no_cap(attn__work *w, double param)
{
    attn__right_ds(w, param);
    if (!(w->softcap > 0))
        return;
    w->softcap = 0; /* what DQ and DK look at */
}

/* --------------------------------------------------------------- groups */

/* Of the query heads of a group, only some reach dk or dv: all d_o of others
 * are taken for 0 there. param 0: the last head only, 1: the first only,
 * 2: the mean, 3: spread by h mod H_kv. */
static void group(attn__work *w, double param, double *x, int64_t n,
                  attn__step *right)
{
    const int64_t heads = w->n.heads_q, size = heads / w->n.heads_kv;
    double *p = w->p, *ds = w->ds;
    const size_t bytes = (size_t)attn__count_pairs(&w->n) * sizeof *p;

    if (param == 2) {
        right(w, 0);
        times(x, n, 1 / (double)size);
        return;
    }
    if (param == 3) {
        for (int64_t h = 0; h < heads; h++)
            w->kv_head[h] = h % w->n.heads_kv;
        right(w, 0);
        attn__right_map(w, 0);
        return;
    }
    memcpy(w->spare, p, bytes);
    memcpy(w->s, ds, bytes);
    ATTN__FOR_ROWS(w, row) {
        const bool counts = row.h % size == (param == 0 ? size - 1 : 0);

        for (int64_t j = 0; j < w->n.len_k && !counts; j++)
            row.p[j] = row_of(w, ds, &row)[j] = 0;
    }
    right(w, 0);
    memcpy(p, w->spare, bytes);
    memcpy(ds, w->s, bytes);
}

void attn__dv_group(attn__work *w, double param)
{
    group(w, param, w->dv, attn__count_v(&w->n), attn__right_dv);
}

void attn__dk_group(attn__work *w, double param)
{
    group(w, param, w->answer + attn__count_q(&w->n), attn__count_k(&w->n),
          attn__right_dk);
}

/* ------------------------------------------------------------------- dp */

/* dp = d_o v with v in place of its transpose; only where it fits. */
void attn__dp_transposed(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;

    if (w->n.dim_v != n) {
        attn__right_dp(w, param);
        return;
    }
    ATTN__FOR_ROWS(w, row) {
        const double *d_o = upstream(w, &row), *v = attn__value(w, &row, 0);

        for (int64_t j = 0; j < n; j++) {
            row_of(w, w->dp, &row)[j] = 0;
            for (int64_t c = 0; c < n; c++)
                row_of(w, w->dp, &row)[j] += d_o[c] * v[c * n + j];
        }
    }
}
