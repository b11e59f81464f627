/* SPDX-License-Identifier: Apache-2.0
 *
 * The one-call forms: plan, a workspace, a pool, run, and all freed again. */
#include "core/alloc.h"
#include "core/diag.h"
#include "run/run.h"

typedef attn_status run_pass(const attn_plan *, const attn_args *,
                             const attn_exec *, attn_diag *);

/* Aligned memory inside a larger block, which is what is freed: the allocator
 * hook is malloc's interface and knows no alignment. */
static attn_status with_memory(const attn_plan *plan, attn_exec *exec,
                               attn_pass pass, void **block, attn_diag *diag)
{
    attn_workspace need;
    size_t bytes;

    ATTN__TRY(attn_plan_workspace(plan, pass, exec->threads, &need, diag));
    ATTN__REQUIRE(attn__add_size(need.size, need.alignment, &bytes), diag,
                  ATTN_E_OVERFLOW, "workspace", "its size overflows");
    *block = attn__alloc(bytes);
    ATTN__REQUIRE(*block, diag, ATTN_E_NOMEM, "workspace",
                  "%zu bytes could not be allocated", bytes);
    exec->workspace = (char *)*block + (need.alignment -
                                        (uintptr_t)*block % need.alignment);
    exec->workspace_size = need.size;
    return ATTN_OK;
}

/* What a program does that calls once: every step is a public call, and a
 * program that calls often does them itself and keeps plan, workspace and
 * pool. Whatever fails, all that was taken is given back. */
static attn_status run_once(const attn_desc *desc, const attn_args *args,
                            int64_t threads, attn_pass pass, run_pass *run,
                            attn_diag *diag)
{
    attn_plan plan;
    attn_exec exec;
    void *block = NULL;
    attn_pool *pool = NULL;
    attn_status status;

    attn_exec_init(&exec);
    exec.threads = threads;
    ATTN__TRY(attn_plan_init(&plan, desc, diag));
    ATTN__TRY(with_memory(&plan, &exec, pass, &block, diag));
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
