/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 1, scores: how well query i matches key j.
 *
 *   raw     r_ij = scale <q_i, k_j>
 *   capped  c_ij = softcap tanh(r_ij / softcap)           if softcap > 0
 *   biased  s_ij = c_ij + bias_ij - slope_h |p - j|
 *
 * Nothing is hidden here: that is `visible`, by selection. Below, the
 * transpose: from ds to dq, dk, dbias and dslopes. */
#include <math.h>
#include <tgmath.h>

#include "ref/ref.h"

static attn_ref_real dot(const attn_ref_real *x, const attn_ref_real *y,
                         int64_t n)
{
    attn_ref_real sum = 0;

    for (int64_t c = 0; c < n; c++)
        sum += x[c] * y[c];
    return sum;
}

/* With D = 0 there is nothing to match: every score is 0, whatever scale. */
static attn_ref_real raw_score(const attn_ref_problem *problem,
                               const attn_ref_real *q_i,
                               const attn_ref_real *k_j)
{
    if (problem->dim_qk == 0)
        return 0;
    return problem->scale * dot(q_i, k_j, problem->dim_qk);
}

static attn_ref_real cap(attn_ref_real softcap, attn_ref_real r)
{
    return softcap > 0 ? softcap * tanh(r / softcap) : r;
}

/* dc/dr = 1 - tanh^2(r / softcap), softcap > 0. */
static attn_ref_real cap_slope(attn_ref_real softcap, attn_ref_real r)
{
    const attn_ref_real t = tanh(r / softcap);

    return 1 - t * t;
}

static attn_ref_real slope_of(const attn_ref_problem *problem,
                              const attn__ref_row *row)
{
    return problem->alibi_slopes[row->b * problem->slopes_stride[0] +
                                 row->h * problem->slopes_stride[1]];
}

static attn_ref_real distance(const attn__ref_row *row, int64_t j)
{
    const int64_t d = row->position - j;

    return (attn_ref_real)(d < 0 ? -d : d);
}

static attn_ref_real add_bias(const attn_ref_problem *problem,
                              const attn__ref_row *row, int64_t j,
                              attn_ref_real s)
{
    if (problem->bias)
        s += problem->bias[attn__ref_at(problem->bias_stride, row, j)];
    if (problem->alibi_slopes)
        s -= slope_of(problem, row) * distance(row, j);
    return s;
}

void attn_ref_scores(const attn_ref_problem *problem, attn_stage stage,
                     const attn_ref_real *q, const attn_ref_real *k,
                     attn_ref_real *s)
{
    const int64_t rows = attn__ref_rows(problem), n = problem->len_k;
    const int64_t dim = problem->dim_qk;

    for (int64_t r = 0; r < rows; r++) {
        const attn__ref_row row = attn__ref_row_at(problem, r);

        for (int64_t j = 0; j < n; j++) {
            attn_ref_real x =
                raw_score(problem, q + r * dim, k + (row.first_key + j) * dim);
            if (stage >= ATTN_STAGE_SOFTCAPPED)
                x = cap(problem->softcap, x);
            if (stage >= ATTN_STAGE_BIASED)
                x = add_bias(problem, &row, j, x);
            s[r * n + j] = x;
        }
    }
}

/* ------------------------------------------------------------- transpose */

/* dq_i = scale sum_j dr_ij k_j,  dk_j = scale sum_i dr_ij q_i,
 * dr_ij = ds_ij dc/dr, which is ds_ij without a cap. */
static void add_dq_dk(const attn_ref_problem *problem, const attn_ref_real *q_i,
                      const attn_ref_real *k_j, attn_ref_real ds,
                      attn_ref_real *dq_i, attn_ref_real *dk_j)
{
    const attn_ref_real slope =
        problem->softcap > 0
            ? cap_slope(problem->softcap, raw_score(problem, q_i, k_j))
            : 1;
    const attn_ref_real scaled = problem->scale * (ds * slope);

    for (int64_t c = 0; dq_i && c < problem->dim_qk; c++)
        dq_i[c] += scaled * k_j[c];
    for (int64_t c = 0; dk_j && c < problem->dim_qk; c++)
        dk_j[c] += scaled * q_i[c];
}

/* dbias = ds, summed over broadcast axes; dslope = - sum ds |p - j|. */
static void add_dbias_dslopes(const attn_ref_problem *problem,
                              const attn__ref_row *row, int64_t j,
                              attn_ref_real ds, attn_ref_real *dbias,
                              attn_ref_real *dslopes)
{
    if (dbias)
        dbias[attn__ref_at(problem->bias_stride, row, j)] += ds;
    if (dslopes)
        dslopes[row->b * problem->slopes_stride[0] +
                row->h * problem->slopes_stride[1]] -= ds * distance(row, j);
}

/* Zeros wherever a gradient will be added to. */
static void clear(const attn_ref_problem *problem, attn_ref_real *dq,
                  attn_ref_real *dk, attn_ref_real *dbias,
                  attn_ref_real *dslopes)
{
    const int64_t pairs[] = {problem->batch, problem->heads_q, problem->len_q,
                             problem->len_k};
    const int64_t rows = attn__ref_rows(problem), n = problem->len_k;

    if (dq)
        attn__ref_fill(dq, rows * problem->dim_qk, 0);
    if (dk)
        attn__ref_fill(
            dk, problem->batch * problem->heads_kv * n * problem->dim_qk, 0);
    if (dbias)
        attn__ref_clear(dbias, 4, pairs, problem->bias_stride);
    if (dslopes)
        attn__ref_clear(dslopes, 2, pairs, problem->slopes_stride);
}

void attn_ref_scores_backward(const attn_ref_problem *problem,
                              const attn_ref_real *q, const attn_ref_real *k,
                              const unsigned char *visible,
                              const attn_ref_real *ds, attn_ref_real *dq,
                              attn_ref_real *dk, attn_ref_real *dbias,
                              attn_ref_real *dslopes)
{
    const int64_t rows = attn__ref_rows(problem), n = problem->len_k;
    const int64_t dim = problem->dim_qk;

    clear(problem, dq, dk, dbias, dslopes);
    for (int64_t r = 0; r < rows; r++) {
        const attn__ref_row row = attn__ref_row_at(problem, r);

        for (int64_t j = 0; j < n; j++) {
            const int64_t pair = r * n + j, key = (row.first_key + j) * dim;

            if (!visible[pair])
                continue;
            add_dq_dk(problem, q + r * dim, k + key, ds[pair],
                      dq ? dq + r * dim : NULL, dk ? dk + key : NULL);
            add_dbias_dslopes(problem, &row, j, ds[pair], dbias, dslopes);
        }
    }
}
