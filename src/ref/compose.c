/* SPDX-License-Identifier: Apache-2.0
 *
 * The four stages composed: forward down, backward up. The only part of the
 * reference that allocates (three numbers a pair); the stages do not. */
#include "ref/compose.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"

void attn_ref_stages_init(attn_ref_stages *stages)
{
    *stages = (attn_ref_stages){
        .scores = attn_ref_scores,
        .visible = attn_ref_visible,
        .softmax = attn_ref_softmax,
        .output = attn_ref_output,
        .output_backward = attn_ref_output_backward,
        .softmax_backward = attn_ref_softmax_backward,
        .scores_backward = attn_ref_scores_backward,
    };
}

/* --------------------------------------------------------------- scratch */

attn_status attn__ref_count(const attn_ref_problem *problem, int64_t *rows,
                            int64_t *pairs)
{
    if (!attn__mul_i64(problem->batch, problem->heads_q, rows) ||
        !attn__mul_i64(*rows, problem->len_q, rows) ||
        !attn__mul_i64(*rows, problem->len_k, pairs))
        return ATTN_E_OVERFLOW;
    return ATTN_OK;
}

attn_status attn__ref_scratch_open(attn__ref_scratch *scratch, int64_t rows,
                                   int64_t pairs)
{
    int64_t numbers;

    *scratch = (attn__ref_scratch){0};
    if (!attn__mul_i64(pairs, 3, &numbers) ||
        !attn__add_i64(numbers, rows, &numbers))
        return ATTN_E_OVERFLOW;
    scratch->s = attn__calloc((size_t)numbers, sizeof *scratch->s);
    scratch->visible = attn__calloc((size_t)pairs, 1);
    if (!scratch->s || !scratch->visible) {
        attn__ref_scratch_close(scratch);
        return ATTN_E_NOMEM;
    }
    scratch->p = scratch->s + pairs;
    scratch->dp = scratch->p + pairs;
    scratch->lse = scratch->dp + pairs;
    return ATTN_OK;
}

void attn__ref_scratch_close(attn__ref_scratch *scratch)
{
    attn__free(scratch->s);
    attn__free(scratch->visible);
    *scratch = (attn__ref_scratch){0};
}

/* --------------------------------------------------------------- compose */

static void copy(attn_ref_real *to, const attn_ref_real *from, int64_t n)
{
    if (to && n > 0)
        memcpy(to, from, (size_t)n * sizeof *to);
}

/* q, k -> visible, p, lse: what both passes begin with. */
static void weigh(attn__ref_scratch *scratch, const attn_ref_stages *stages,
                  const attn_ref_problem *problem, const attn_ref_real *q,
                  const attn_ref_real *k)
{
    stages->scores(problem, ATTN_STAGE_BIASED, q, k, scratch->s);
    stages->visible(problem, scratch->visible);
    stages->softmax(problem, scratch->s, scratch->visible, scratch->p,
                    scratch->lse);
}

void attn__ref_forward_in(attn__ref_scratch *scratch,
                          const attn_ref_stages *stages,
                          const attn_ref_problem *problem,
                          const attn_ref_real *q, const attn_ref_real *k,
                          const attn_ref_real *v,
                          const attn_ref_results *results)
{
    const int64_t rows = attn__ref_rows(problem);
    const int64_t pairs = rows * problem->len_k;

    weigh(scratch, stages, problem, q, k);
    copy(results->weights, scratch->p, pairs);
    copy(results->lse, scratch->lse, rows);
    if (results->o)
        stages->output(problem, scratch->visible, scratch->p, v, results->o);
    if (results->entropy)
        attn_ref_entropy(problem, scratch->visible, scratch->p,
                         results->entropy);
    if (results->raw)
        stages->scores(problem, ATTN_STAGE_RAW, q, k, results->raw);
    if (results->softcapped)
        stages->scores(problem, ATTN_STAGE_SOFTCAPPED, q, k,
                       results->softcapped);
    for (int64_t x = 0; results->biased && x < pairs; x++)
        results->biased[x] = scratch->visible[x] ? scratch->s[x] : -INFINITY;
    if (results->visible && pairs > 0)
        memcpy(results->visible, scratch->visible, (size_t)pairs);
}

void attn__ref_gradients_in(attn__ref_scratch *scratch,
                            const attn_ref_stages *stages,
                            const attn_ref_problem *problem,
                            const attn_ref_real *q, const attn_ref_real *k,
                            const attn_ref_real *v, const attn_ref_real *d_o,
                            const attn_ref_real *dlse,
                            const attn_ref_gradients *gradients)
{
    attn_ref_real *ds = scratch->s; /* s is not needed any more by then */

    stages->output_backward(problem, scratch->visible, scratch->p, v, d_o,
                            scratch->dp, gradients->dv);
    stages->softmax_backward(problem, scratch->visible, scratch->p,
                             scratch->lse, scratch->dp, dlse, ds,
                             gradients->dsinks);
    stages->scores_backward(problem, q, k, scratch->visible, ds, gradients->dq,
                            gradients->dk, gradients->dbias,
                            gradients->dslopes);
}

void attn__ref_backward_in(attn__ref_scratch *scratch,
                           const attn_ref_stages *stages,
                           const attn_ref_problem *problem,
                           const attn_ref_real *q, const attn_ref_real *k,
                           const attn_ref_real *v, const attn_ref_real *d_o,
                           const attn_ref_real *dlse,
                           const attn_ref_gradients *gradients)
{
    weigh(scratch, stages, problem, q, k);
    attn__ref_gradients_in(scratch, stages, problem, q, k, v, d_o, dlse,
                           gradients);
}

/* ----------------------------------------------------------- one problem */

static attn_status open_for(attn__ref_scratch *scratch,
                            const attn_ref_problem *problem)
{
    int64_t rows, pairs;
    const attn_status status = attn__ref_count(problem, &rows, &pairs);

    return status ? status : attn__ref_scratch_open(scratch, rows, pairs);
}

attn_status attn_ref_forward(const attn_ref_stages *stages,
                             const attn_ref_problem *problem,
                             const attn_ref_real *q, const attn_ref_real *k,
                             const attn_ref_real *v,
                             const attn_ref_results *results)
{
    attn_ref_stages right;
    attn__ref_scratch scratch;
    const attn_status status = open_for(&scratch, problem);

    if (status)
        return status;
    attn_ref_stages_init(&right);
    attn__ref_forward_in(&scratch, stages ? stages : &right, problem, q, k, v,
                         results);
    attn__ref_scratch_close(&scratch);
    return ATTN_OK;
}

attn_status attn_ref_backward(const attn_ref_stages *stages,
                              const attn_ref_problem *problem,
                              const attn_ref_real *q, const attn_ref_real *k,
                              const attn_ref_real *v, const attn_ref_real *d_o,
                              const attn_ref_real *dlse,
                              const attn_ref_gradients *gradients)
{
    attn_ref_stages right;
    attn__ref_scratch scratch;
    attn_status status;

    if (problem->empty_rows == ATTN_EMPTY_NAN)
        return ATTN_E_UNSUPPORTED;
    status = open_for(&scratch, problem);
    if (status)
        return status;
    attn_ref_stages_init(&right);
    attn__ref_backward_in(&scratch, stages ? stages : &right, problem, q, k, v,
                          d_o, dlse, gradients);
    attn__ref_scratch_close(&scratch);
    return ATTN_OK;
}
