/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_forward and attn_weights: check, resolve, run the phases. */
#include "core/diag.h"
#include "run/run.h"

/* One segment of a unit of rows, or all of them to be joined. Units are
 * numbered with segments fastest. A sequence that ends before a segment begins
 * leaves it without work; segment 0 always runs, since a row without keys has a
 * result too. */
static bool make_decode_unit(const attn__phase *phase, int64_t index,
                             attn__unit *unit)
{
    const int64_t segments = attn__max_i64(phase->segments, 1);
    const attn__problem *p = phase->problem;
    attn__phase rows = *phase;
    int64_t len_k, row;

    rows.n_units /= segments;
    if (!attn__make_row_unit(&rows, index / segments, unit))
        return false;
    len_k = attn__sequence_of(p, unit->b).len_k;
    unit->segment = phase->segments ? index % segments : -1;
    unit->key0 = attn__max_i64(unit->segment, 0) * ATTN__SEGMENT_KEYS;
    unit->key1 = attn__min_i64(unit->key0 + ATTN__SEGMENT_KEYS, len_k);
    if (phase->states) {
        row = (unit->b * p->heads_kv + unit->kv_head) * p->group * p->len_q +
              unit->row0;
        unit->states = phase->states + (size_t)row * phase->state_size;
    }
    return unit->segment <= 0 || unit->key0 < len_k;
}

/* Few queries: units are segments of the keys, whose states a second phase
 * joins, in the order of the keys. With one query there is no other way to keep
 * several threads busy, and segments have a fixed length, so that neither the
 * threads nor the capacity of the cache shows in the bits. Sequences shorter
 * than a segment go the same way. */
static void run_decode(const attn__plan *plan, attn__phase phase,
                       const attn_exec *exec, const attn_workspace *need)
{
    const attn__problem *p = phase.problem;
    const attn__kernel_row *row =
        &attn__kernels[plan->kernel[ATTN__PASS_decode]];
    const int64_t rows = phase.n_units;

    phase.make = make_decode_unit;
    /* A table of pages may have room for more keys than the plan, which no
     * sequence has, and for whose states no memory was counted. */
    phase.segments =
        attn__segments(attn__min_i64(p->len_k, plan->desc.len_k));
    phase.n_units = rows * phase.segments;
    if (phase.segments > 1) {
        phase.states = exec->workspace;
        phase.state_size = (size_t)phase.segments *
                           ((size_t)p->dim_v + 2) * row->tile.real_size;
        phase.slots += need->shared;
    }
    attn__run_phase(&phase, exec);
    if (phase.segments > 1) {
        phase.segments = 0;
        phase.n_units = rows;
        attn__run_phase(&phase, exec);
    }
}

/* o, lse or both, by the general kernel or that of few queries. */
static void run_forward(const attn__plan *plan, const attn__problem *problem,
                        const attn_exec *exec, const attn_workspace *need)
{
    const attn__pass pass = attn__forward_pass(&plan->desc);
    const attn__kernel_row *row = &attn__kernels[plan->kernel[pass]];
    attn__phase phase = {.problem = problem,
                         .kernel = row->run,
                         .make = attn__make_row_unit,
                         .rows_per_unit = problem->macro_rows,
                         .slots = exec->workspace,
                         .slot_size = need->slot};

    if (pass != ATTN__PASS_decode)
        phase.rows_per_unit = attn__rows_per_unit(problem, row->tile, exec);
    phase.n_units = attn__row_units(problem, phase.rows_per_unit);
    if (pass == ATTN__PASS_decode)
        run_decode(plan, phase, exec, need);
    else
        attn__run_phase(&phase, exec);
}

/*      O = softmax(scale Q K^T + bias) V,   lse_i = ln sum_j e^(s_ij)
 *
 * and weights and entropy where they have memory. All of diag's reasons come
 * before the first phase; after it nothing can fail. */
attn_status attn_forward(const attn_plan *plan, const attn_args *args,
                         const attn_exec *exec, attn_diag *diag)
{
    attn__plan body;
    attn__problem problem;
    attn_workspace need;

    ATTN__TRY(attn__plan_open(plan, &body, diag));
    ATTN__TRY(attn__exec_check(&body, ATTN_FORWARD, exec, &need, diag));
    ATTN__TRY(attn__args_check(&body, args, ATTN_FORWARD, NULL, NULL,
                               &problem, diag));
    if (problem.out_o.data || problem.out_lse.data) {
        const attn__view v = problem.v;

        /* lse alone needs no values, and its bits are the same. */
        if (!problem.out_o.data)
            problem.v = (attn__view){0};
        run_forward(&body, &problem, exec, &need);
        problem.v = v;
    }
    /* A pass of its own, which leaves o the bits it has without weights. */
    if (problem.weights.data || problem.entropy.data)
        attn__run_weights(&body, &problem, NULL, exec, exec->workspace,
                          need.slot);
    return attn__ok(diag);
}

/* (B, heads, rows, Lk) of one stage: raw scores, capped, biased, or the
 * weights. A hidden key's score is -inf from `biased` on, its weight 0. */
attn_status attn_weights(const attn_plan *plan, const attn_args *args,
                         attn_stage stage, const attn_rows *rows,
                         attn_tensor out, const attn_exec *exec,
                         attn_diag *diag)
{
    attn__plan body;
    attn__problem problem;
    attn_workspace need;

    ATTN__TRY(attn__plan_open(plan, &body, diag));
    ATTN__REQUIRE((unsigned)stage <= ATTN_STAGE_PROBS, diag, ATTN_E_ARG,
                  "stage", "%d is not raw (0) to probs (3)", (int)stage);
    ATTN__TRY(attn__exec_check(&body, ATTN_WEIGHTS, exec, &need, diag));
    ATTN__TRY(attn__args_check(&body, args, ATTN_WEIGHTS, &out, rows,
                               &problem, diag));
    problem.stage = stage;
    attn__run_weights(&body, &problem, rows, exec, exec->workspace,
                      need.slot);
    return attn__ok(diag);
}
