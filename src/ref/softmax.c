/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 3, softmax: scores become weights, row by row over visible keys.
 *
 *   m_i  = max_j s_ij                          (and the sink)
 *   l_i  = sum_j exp(s_ij - m_i)               (+ exp(sink_h - m_i))
 *   p_ij = exp(s_ij - m_i) / l_i,   lse_i = m_i + ln l_i
 *
 * A score of -inf hides its key, as a bias of -inf does; NaN is not -inf. A
 * score or sink of +inf makes inf - inf, so NaN, which is what the formula
 * says. The transpose is below: from dp and dlse to ds and dsinks. */
#include <math.h>
#include <tgmath.h>

#include "ref/ref.h"

static void hide_minus_infinity(const attn_ref_real *s, unsigned char *visible,
                                int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        if (visible[j] && s[j] == -INFINITY)
            visible[j] = 0;
    }
}

static attn_ref_real row_max(const attn_ref_real *s,
                             const unsigned char *visible, int64_t n,
                             attn_ref_real max)
{
    for (int64_t j = 0; j < n; j++) {
        if (visible[j])
            max = fmax(max, s[j]);
    }
    return max;
}

/* One row that is not empty; `sink` is -inf for none. Returns lse. */
static attn_ref_real softmax_row(const attn_ref_real *s,
                                 const unsigned char *visible, int64_t n,
                                 attn_ref_real sink, attn_ref_real *p)
{
    const attn_ref_real m = row_max(s, visible, n, sink);
    attn_ref_real l = sink == -INFINITY ? 0 : exp(sink - m);

    for (int64_t j = 0; j < n; j++) {
        p[j] = visible[j] ? exp(s[j] - m) : 0;
        if (visible[j])
            l += p[j];
    }
    for (int64_t j = 0; j < n; j++) {
        if (visible[j])
            p[j] /= l;
    }
    return m + log(l);
}

void attn_ref_softmax(const attn_ref_problem *problem, const attn_ref_real *s,
                      unsigned char *visible, attn_ref_real *p,
                      attn_ref_real *lse)
{
    const int64_t rows = attn__ref_rows(problem), n = problem->len_k;
    const bool nan = problem->empty_rows == ATTN_EMPTY_NAN;

    for (int64_t r = 0; r < rows; r++) {
        const attn__ref_row row = attn__ref_row_at(problem, r);
        const int64_t first = r * n;

        hide_minus_infinity(s + first, visible + first, n);
        if (attn__ref_row_is_empty(problem, &row, visible)) {
            attn__ref_fill(p + first, n, nan ? NAN : 0);
            lse[r] = nan ? NAN : -INFINITY;
            continue;
        }
        lse[r] = softmax_row(s + first, visible + first, n,
                             problem->sinks ? problem->sinks[row.h] : -INFINITY,
                             p + first);
    }
}

void attn_ref_entropy(const attn_ref_problem *problem,
                      const unsigned char *visible, const attn_ref_real *p,
                      attn_ref_real *entropy)
{
    const int64_t rows = attn__ref_rows(problem), n = problem->len_k;
    const bool nan = problem->empty_rows == ATTN_EMPTY_NAN;

    for (int64_t r = 0; r < rows; r++) {
        const attn__ref_row row = attn__ref_row_at(problem, r);
        attn_ref_real sum = 0;

        for (int64_t j = 0; j < n; j++) {
            const attn_ref_real p_ij = p[r * n + j];
            if (visible[r * n + j] && p_ij != 0) /* 0 ln 0 = 0 */
                sum -= p_ij * log(p_ij);
        }
        entropy[r] =
            nan && attn__ref_row_is_empty(problem, &row, visible) ? NAN : sum;
    }
}

/* ------------------------------------------------------------- transpose */

/* delta_i = sum_j p_ij dp_ij: what every weight of the row loses when one
 * gains. */
static attn_ref_real row_delta(const attn_ref_real *p, const attn_ref_real *dp,
                               const unsigned char *visible, int64_t n)
{
    attn_ref_real delta = 0;

    for (int64_t j = 0; j < n; j++) {
        if (visible[j])
            delta += p[j] * dp[j];
    }
    return delta;
}

void attn_ref_softmax_backward(const attn_ref_problem *problem,
                               const unsigned char *visible,
                               const attn_ref_real *p, const attn_ref_real *lse,
                               const attn_ref_real *dp,
                               const attn_ref_real *dlse, attn_ref_real *ds,
                               attn_ref_real *dsinks)
{
    const int64_t rows = attn__ref_rows(problem), n = problem->len_k;

    if (dsinks)
        attn__ref_fill(dsinks, problem->heads_q, 0);
    for (int64_t r = 0; r < rows; r++) {
        const attn__ref_row row = attn__ref_row_at(problem, r);
        const int64_t first = r * n;
        const attn_ref_real delta =
            row_delta(p + first, dp + first, visible + first, n);
        const attn_ref_real change = dlse ? dlse[r] - delta : -delta;

        for (int64_t j = first; j < first + n; j++)
            ds[j] = visible[j] ? p[j] * (dp[j] + change) : 0;
        if (dsinks && attn__ref_has_sink(problem, row.h))
            dsinks[row.h] += exp(problem->sinks[row.h] - lse[r]) * change;
    }
}
