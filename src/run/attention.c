/* SPDX-License-Identifier: Apache-2.0
 *
 * The one-call forms: plan, a workspace, a pool, run, and all freed again. */
#include "core/alloc.h"
#include "core/diag.h"
#include "core/exec.h"
#include "run/run.h"

typedef attn_status run_pass(const attn_plan *, const attn_args *,
                             const attn_exec *, attn_diag *);

/* What a program does that calls once: every step is a public call, and a
 * program that calls often does them itself and keeps plan, workspace and
 * pool. Whatever fails, all that was taken is given back. */
static attn_status run_once(const attn_desc *desc, const attn_args *args,
                            int64_t threads, attn_pass pass, run_pass *run,
                            attn_diag *diag)
{
    attn_plan plan;
    attn_workspace need;
    attn_exec exec;
    void *block = NULL;
    attn_pool *pool = NULL;
    attn_status status;

    attn_exec_init(&exec);
    exec.threads = threads;
    ATTN__TRY(attn_plan_init(&plan, desc, diag));
    ATTN__TRY(attn_plan_workspace(&plan, pass, threads, &need, diag));
    ATTN__TRY(attn__take_workspace(&need, &exec, &block, diag));
    /* The pool comes after the plan: a wrong descriptor starts no threads. */
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

attn_status attn_attention(const attn_desc *desc, const attn_args *args,
                           int64_t threads, attn_diag *diag)
{
    return run_once(desc, args, threads, ATTN_FORWARD, attn_forward, diag);
}

attn_status attn_attention_backward(const attn_desc *desc,
                                    const attn_args *args, int64_t threads,
                                    attn_diag *diag)
{
    return run_once(desc, args, threads, ATTN_BACKWARD, attn_backward, diag);
}
