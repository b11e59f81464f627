/* SPDX-License-Identifier: Apache-2.0
 *
 * The problem and its rows: defaults, broadcasting, positions. */
#include <math.h>
#include <tgmath.h>

#include "ref/ref.h"

void attn_ref_problem_init(attn_ref_problem *problem, int64_t batch,
                           int64_t heads_q, int64_t heads_kv, int64_t len_q,
                           int64_t len_k, int64_t dim_qk, int64_t dim_v)
{
    *problem = (attn_ref_problem){
        .batch = batch,
        .heads_q = heads_q,
        .heads_kv = heads_kv,
        .len_q = len_q,
        .len_k = len_k,
        .dim_qk = dim_qk,
        .dim_v = dim_v,
        .scale = dim_qk > 0 ? 1 / sqrt((attn_ref_real)dim_qk) : 1,
        .window_left = -1,
        .window_right = -1,
    };
}

void attn_ref_broadcast(int64_t n, int64_t rank, const int64_t *shape,
                        int64_t *stride)
{
    int64_t step = 1;

    for (int64_t axis = n - 1; axis >= 0; axis--) {
        const int64_t own = axis - (n - rank);
        const int64_t length = own >= 0 ? shape[own] : 1;

        stride[axis] = length == 1 ? 0 : step;
        step *= length;
    }
}

int64_t attn_ref_q_offset(attn_causal causal, int64_t len_q, int64_t len_k,
                          int64_t k_length)
{
    if (causal == ATTN_CAUSAL_TOP_LEFT)
        return 0;
    if (causal == ATTN_CAUSAL_NONE && len_q == len_k)
        return 0; /* a padded batch stays on its diagonal */
    return k_length - len_q;
}

int64_t attn__ref_rows(const attn_ref_problem *problem)
{
    return problem->batch * problem->heads_q * problem->len_q;
}

attn__ref_row attn__ref_row_at(const attn_ref_problem *problem, int64_t r)
{
    const int64_t i = r % problem->len_q;
    const int64_t h = r / problem->len_q % problem->heads_q;
    const int64_t b = r / problem->len_q / problem->heads_q;
    const int64_t g = h / (problem->heads_q / problem->heads_kv);

    return (attn__ref_row){
        .index = r,
        .b = b,
        .h = h,
        .i = i,
        .position = i + (problem->q_offset ? problem->q_offset[b] : 0),
        .first_key = (b * problem->heads_kv + g) * problem->len_k,
    };
}

int64_t attn__ref_at(const int64_t stride[4], const attn__ref_row *row,
                     int64_t j)
{
    return row->b * stride[0] + row->h * stride[1] + row->i * stride[2] +
           j * stride[3];
}

bool attn__ref_has_sink(const attn_ref_problem *problem, int64_t h)
{
    return problem->sinks && problem->sinks[h] != -INFINITY;
}

bool attn__ref_row_is_empty(const attn_ref_problem *problem,
                            const attn__ref_row *row,
                            const unsigned char *visible)
{
    const unsigned char *pairs = visible + row->index * problem->len_k;

    for (int64_t j = 0; j < problem->len_k; j++) {
        if (pairs[j])
            return false;
    }
    return !attn__ref_has_sink(problem, row->h);
}

void attn__ref_fill(attn_ref_real *x, int64_t n, attn_ref_real value)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}

void attn__ref_clear(attn_ref_real *x, int64_t axes, const int64_t *length,
                     const int64_t *stride)
{
    int64_t count = 1;

    for (int64_t a = 0; a < axes; a++)
        count *= stride[a] == 0 ? 1 : length[a];
    for (int64_t n = 0; n < count; n++) {
        int64_t rest = n, at = 0;

        for (int64_t a = axes - 1; a >= 0; a--) {
            const int64_t own = stride[a] == 0 ? 1 : length[a];

            at += rest % own * stride[a];
            rest /= own;
        }
        x[at] = 0;
    }
}
