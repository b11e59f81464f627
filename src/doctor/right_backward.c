/* SPDX-License-Identifier: Apache-2.0
 *
 * The right steps of the backward pass, after those of the forward pass have
 * left p (0 where hidden) in w->p. */
#include <math.h>
#include <string.h>

#include "doctor/model.h"

static void clear(double *x, int64_t n)
{
    memset(x, 0, (size_t)n * sizeof *x);
}

static const double *upstream(const attn__work *w, const attn__pairs *row)
{
    return w->given->d_o + row->index * w->n.dim_v;
}

/* dv_j = sum over the group's rows of p_ij d_o_i. */
void attn__right_dv(attn__work *w, double param)
{
    (void)param;
    clear(w->dv, attn__count_v(&w->n));
    ATTN__FOR_ROWS(w, row) {
        const double *d_o = upstream(w, &row);

        for (int64_t j = 0; j < w->n.len_k; j++) {
            double *dv = w->dv + (attn__value(w, &row, j) - w->v);

            for (int64_t c = 0; row.visible[j] && c < w->n.dim_v; c++)
                dv[c] += row.p[j] * d_o[c];
        }
    }
}

void attn__right_dp(attn__work *w, double param)
{
    (void)param;
    ATTN__FOR_ROWS(w, row) {
        double *dp = w->dp + row.index * w->n.len_k;

        for (int64_t j = 0; j < w->n.len_k; j++)
            dp[j] = attn__dot(upstream(w, &row), attn__value(w, &row, j),
                              w->n.dim_v);
    }
}

/* ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij). */
void attn__right_ds(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;

    (void)param;
    ATTN__FOR_ROWS(w, row) {
        const double *dp = w->dp + row.index * n;
        double *ds = w->ds + row.index * n;
        const double delta = attn__dot(row.p, dp, n);

        for (int64_t j = 0; j < n; j++)
            ds[j] = row.visible[j] ? row.p[j] * (dp[j] - delta) : 0;
    }
}

/* dr = ds dc/dr, r being the raw score: 1 - tanh^2(r / softcap). */
static double raw_gradient(const attn__work *w, const attn__pairs *row,
                           int64_t j)
{
    const double ds = w->ds[row->index * w->n.len_k + j];
    double t;

    if (!(w->softcap > 0))
        return ds;
    t = tanh(w->scale *
             attn__dot(attn__query(w, row), attn__key(w, row, j),
                       w->n.dim_qk) /
             w->softcap);
    return ds * (1 - t * t);
}

void attn__right_dq(attn__work *w, double param)
{
    (void)param;
    clear(w->dq, attn__count_q(&w->n));
    ATTN__FOR_ROWS(w, row) {
        double *dq = w->dq + row.index * w->n.dim_qk;

        for (int64_t j = 0; j < w->n.len_k; j++) {
            const double *k = attn__key(w, &row, j);
            const double dr = w->scale * raw_gradient(w, &row, j);

            for (int64_t c = 0; c < w->n.dim_qk; c++)
                dq[c] += dr * k[c];
        }
    }
}

/* Also puts the answer together: it is the last step. */
void attn__right_dk(attn__work *w, double param)
{
    const int64_t n_q = attn__count_q(&w->n), n_k = attn__count_k(&w->n);
    const int64_t n_v = attn__count_v(&w->n);

    (void)param;
    clear(w->dk, n_k);
    ATTN__FOR_ROWS(w, row) {
        const double *q = attn__query(w, &row);

        for (int64_t j = 0; j < w->n.len_k; j++) {
            double *dk = w->dk + (attn__key(w, &row, j) - w->k);
            const double dr = w->scale * raw_gradient(w, &row, j);

            for (int64_t c = 0; c < w->n.dim_qk; c++)
                dk[c] += dr * q[c];
        }
    }
    memcpy(w->answer, w->dq, (size_t)n_q * sizeof *w->dq);
    memcpy(w->answer + n_q, w->dk, (size_t)n_k * sizeof *w->dk);
    memcpy(w->answer + n_q + n_k, w->dv, (size_t)n_v * sizeof *w->dv);
    w->n_answer = n_q + n_k + n_v;
}
