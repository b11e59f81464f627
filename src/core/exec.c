/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of attn_exec, once for attention, products and layers. */
#include "core/exec.h"

#include "core/alloc.h"
#include "core/diag.h"

/* 1024 threads are more than any socket has and keep slots * threads in range.
 */
attn_status attn__check_threads(int64_t threads, attn_diag *diag)
{
    ATTN__REQUIRE(threads >= 1 && threads <= 1024, diag, ATTN_E_ARG,
                  "threads", "must be 1 to 1024, got %lld",
                  (long long)threads);
    return ATTN_OK;
}

attn_status attn__check_exec(const attn_exec *exec, attn_diag *diag)
{
    ATTN__REQUIRE(exec, diag, ATTN_E_ARG, "exec", "must not be NULL");
    ATTN__REQUIRE(exec->size == sizeof *exec, diag, ATTN_E_ARG, "size",
                  "%u is not the size of attn_exec; use attn_exec_init",
                  (unsigned)exec->size);
    return attn__check_threads(exec->threads, diag);
}

attn_status attn__check_workspace(const attn_exec *exec,
                                  const attn_workspace *need, attn_diag *diag)
{
    ATTN__REQUIRE(exec->workspace_size >= need->size, diag, ATTN_E_WORKSPACE,
                  "workspace", "has %zu bytes, needs %zu",
                  exec->workspace_size, need->size);
    ATTN__REQUIRE(exec->workspace || need->size == 0, diag, ATTN_E_WORKSPACE,
                  "workspace", "must not be NULL");
    ATTN__REQUIRE((uintptr_t)exec->workspace % need->alignment == 0, diag,
                  ATTN_E_WORKSPACE, "workspace",
                  "must be aligned to %zu bytes", need->alignment);
    return ATTN_OK;
}

attn_status attn__take_workspace(const attn_workspace *need, attn_exec *exec,
                                 void **block, attn_diag *diag)
{
    size_t bytes;

    ATTN__REQUIRE(attn__add_size(need->size, need->alignment, &bytes), diag,
                  ATTN_E_OVERFLOW, "workspace", "its size overflows");
    *block = attn__alloc(bytes);
    ATTN__REQUIRE(*block, diag, ATTN_E_NOMEM, "workspace",
                  "%zu bytes could not be allocated", bytes);
    exec->workspace = (char *)*block + (need->alignment -
                                        (uintptr_t)*block % need->alignment);
    exec->workspace_size = need->size;
    return ATTN_OK;
}
