/* SPDX-License-Identifier: Apache-2.0
 *
 * The one-call forms: plan, a workspace, a pool, run, and all freed again. */
#include "core/alloc.h"
#include "layer/layer_steps.h"

typedef attn_status run_pass(const attn_layer_plan *, const attn_layer_args *,
                             const attn_exec *, attn_diag *);

static attn_status run_once(const attn_layer_desc *desc,
                            const attn_layer_args *args, int64_t threads,
                            attn_pass pass, run_pass *run, attn_diag *diag)
{
    attn_layer_plan plan;
    attn_workspace need;
    attn_exec exec;
    void *block = NULL;
    attn_pool *pool = NULL;
    attn_status status;

    attn_exec_init(&exec);
    exec.threads = threads;
    ATTN__TRY(attn_layer_plan_init(&plan, desc, diag));
    ATTN__TRY(attn_layer_workspace(&plan, pass, threads, &need, diag));
    ATTN__TRY(attn__take_workspace(&need, &exec, &block, diag));
    if (threads > 1) {
        pool = attn_pool_create(threads);
        exec.parallel_for = pool ? attn_pool_parallel_for : NULL;
        exec.ctx = pool;
    }
    status = threads > 1 && !pool
                 ? attn__fail(diag, ATTN_E_NOMEM, "threads",
                              "a pool of %lld threads could not be allocated",
                              (long long)threads)
                 : run(&plan, args, &exec, diag);
    attn_pool_destroy(pool);
    attn__free(block);
    return status;
}

attn_status attn_multi_head(const attn_layer_desc *desc,
                            const attn_layer_args *args, int64_t threads,
                            attn_diag *diag)
{
    return run_once(desc, args, threads, ATTN_FORWARD, attn_layer_forward,
                    diag);
}

attn_status attn_multi_head_backward(const attn_layer_desc *desc,
                                     const attn_layer_args *args,
                                     int64_t threads, attn_diag *diag)
{
    return run_once(desc, args, threads, ATTN_BACKWARD, attn_layer_backward,
                    diag);
}
