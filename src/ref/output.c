/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 4, output: the average of the values, weighted.
 *
 *   o_i = sum_j p_ij f_ij v_j        f: dropout factors, 1 where there are none
 *
 * over visible keys. A weight that underflowed to 0, or was dropped, still
 * multiplies its v. The transpose is below, and the helper that makes the
 * factors. */
#include <math.h>

#include "core/philox.h"
#include "ref/ref.h"

static attn_ref_real factor(const attn_ref_problem *problem, int64_t pair)
{
    return problem->dropout ? problem->dropout[pair] : 1;
}

/* What a row is before any key: 0, which is also what a sink adds, unless its
 * own weight is NaN (a sink of +inf or NaN); an empty row as asked for. */
static attn_ref_real row_start(const attn_ref_problem *problem,
                               const attn__ref_row *row,
                               const unsigned char *visible)
{
    if (attn__ref_has_sink(problem, row->h))
        return isfinite(problem->sinks[row->h]) ? 0 : NAN;
    if (problem->empty_rows == ATTN_EMPTY_NAN &&
        attn__ref_row_is_empty(problem, row, visible))
        return NAN;
    return 0;
}

void attn_ref_output(const attn_ref_problem *problem,
                     const unsigned char *visible, const attn_ref_real *p,
                     const attn_ref_real *v, attn_ref_real *o)
{
    const int64_t rows = attn__ref_rows(problem), n = problem->len_k;
    const int64_t dim = problem->dim_v;

    for (int64_t r = 0; r < rows; r++) {
        const attn__ref_row row = attn__ref_row_at(problem, r);

        attn__ref_fill(o + r * dim, dim, row_start(problem, &row, visible));
        for (int64_t j = 0; j < n; j++) {
            const int64_t pair = r * n + j;
            const attn_ref_real *v_j = v + (row.first_key + j) * dim;
            const attn_ref_real weight = p[pair] * factor(problem, pair);

            if (!visible[pair])
                continue;
            for (int64_t c = 0; c < dim; c++)
                o[r * dim + c] += weight * v_j[c];
        }
    }
}

/* dp_ij = f_ij <d_o_i, v_j> */
static attn_ref_real dp_of(const attn_ref_problem *problem, int64_t pair,
                           const attn_ref_real *d_o_i, const attn_ref_real *v_j)
{
    attn_ref_real sum = 0;

    for (int64_t c = 0; c < problem->dim_v; c++)
        sum += d_o_i[c] * v_j[c];
    return factor(problem, pair) * sum;
}

void attn_ref_output_backward(const attn_ref_problem *problem,
                              const unsigned char *visible,
                              const attn_ref_real *p, const attn_ref_real *v,
                              const attn_ref_real *d_o, attn_ref_real *dp,
                              attn_ref_real *dv)
{
    const int64_t rows = attn__ref_rows(problem), n = problem->len_k;
    const int64_t dim = problem->dim_v;

    if (dp)
        attn__ref_fill(dp, rows * n, 0);
    if (dv)
        attn__ref_fill(dv, problem->batch * problem->heads_kv * n * dim, 0);
    for (int64_t r = 0; r < rows; r++) {
        const attn__ref_row row = attn__ref_row_at(problem, r);
        const attn_ref_real *d_o_i = d_o + r * dim;

        for (int64_t j = 0; j < n; j++) {
            const int64_t pair = r * n + j, key = (row.first_key + j) * dim;
            const attn_ref_real weight = p[pair] * factor(problem, pair);

            if (!visible[pair])
                continue;
            if (dp)
                dp[pair] = dp_of(problem, pair, d_o_i, v + key);
            for (int64_t c = 0; dv && c < dim; c++)
                dv[key + c] += weight * d_o_i[c];
        }
    }
}

void attn_ref_dropout(int64_t batch, int64_t heads, int64_t len_q,
                      int64_t len_k, double p_drop, uint64_t seed,
                      uint32_t offset, int64_t batch_start,
                      const int64_t *start, attn_ref_real *factors)
{
    const attn__dropout dropout = attn__dropout_of(p_drop, seed, offset);
    const int64_t i0 = start ? start[0] : 0, j0 = start ? start[1] : 0;
    const attn_ref_real kept = p_drop < 1 ? 1 / (1 - (attn_ref_real)p_drop) : 0;

    for (int64_t r = 0; r < batch * heads * len_q; r++) {
        const int64_t head = batch_start * heads + r / len_q;

        for (int64_t j = 0; j < len_k; j++)
            factors[r * len_k + j] =
                attn__dropout_keeps(&dropout, (uint32_t)head, i0 + r % len_q,
                                    j0 + j)
                    ? kept
                    : 0;
    }
}
