/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_forward and attn_weights: check, resolve, run the phases. */
#include "core/diag.h"
#include "run/run.h"

static void run_forward(const attn__plan *plan, const attn__problem *problem,
                        const attn_exec *exec, size_t slot_size)
{
    const attn__phase phase = {
        .problem = problem,
        .kernel = attn__kernels[plan->kernel[ATTN__PASS_fwd]].run,
        .make = attn__make_row_unit,
        .n_units = attn__row_units(problem, problem->macro_rows),
        .rows_per_unit = problem->macro_rows,
        .slots = exec->workspace,
        .slot_size = slot_size};

    attn__run_phase(&phase, exec);
}

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
        attn__problem forward = problem;

        if (!problem.out_o.data)
            forward.v = (attn__view){0};
        run_forward(&body, &forward, exec, need.slot);
    }
    if (problem.weights.data || problem.entropy.data)
        attn__run_weights(&body, &problem, NULL, exec, exec->workspace,
                          need.slot);
    return attn__ok(diag);
}

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
