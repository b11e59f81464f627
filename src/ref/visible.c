/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 2, visible: which keys query i, at position p, may look at.
 *
 *   j <= p                        if causal
 *   p - left <= j <= p + right    if windowed, -1 being unbounded
 *   j < k_length                  if there are lengths
 *   mask_ij                       if there is a mask
 *   bias_ij is not -inf           if there is a bias
 *
 * All of those given must hold. What fails is hidden: left out, not weighed
 * by 0. */
#include <math.h>

#include "ref/ref.h"

/* |p| and the window are at most 2^62, so the sums stay in range. */
static bool in_geometry(const attn_ref_problem *problem,
                        const attn__ref_row *row, int64_t j)
{
    const int64_t p = row->position;

    if (problem->causal != ATTN_CAUSAL_NONE && j > p)
        return false;
    if (problem->window_left >= 0 && j < p - problem->window_left)
        return false;
    if (problem->window_right >= 0 && j > p + problem->window_right)
        return false;
    return !problem->k_lengths || j < problem->k_lengths[row->b];
}

static bool in_mask(const attn_ref_problem *problem, const attn__ref_row *row,
                    int64_t j)
{
    return !problem->mask ||
           problem->mask[attn__ref_at(problem->mask_stride, row, j)];
}

static bool in_bias(const attn_ref_problem *problem, const attn__ref_row *row,
                    int64_t j)
{
    return !problem->bias ||
           problem->bias[attn__ref_at(problem->bias_stride, row, j)] !=
               -INFINITY;
}

void attn_ref_visible(const attn_ref_problem *problem, unsigned char *visible)
{
    const int64_t rows = attn__ref_rows(problem), n = problem->len_k;

    for (int64_t r = 0; r < rows; r++) {
        const attn__ref_row row = attn__ref_row_at(problem, r);

        for (int64_t j = 0; j < n; j++)
            visible[r * n + j] = in_geometry(problem, &row, j) &&
                                 in_mask(problem, &row, j) &&
                                 in_bias(problem, &row, j);
    }
}
