/* SPDX-License-Identifier: Apache-2.0
 *
 * What every library that runs work asks of an attn_exec, and the memory of
 * the calls that bring none. */
#ifndef ATTN_CORE_EXEC_H
#define ATTN_CORE_EXEC_H

#include "attn.h"

attn_status attn__check_threads(int64_t threads, attn_diag *diag);

/* Everything but the workspace. */
attn_status attn__check_exec(const attn_exec *exec, attn_diag *diag);

/* The workspace of a checked exec, against what a run needs: its size and its
 * alignment. */
attn_status attn__check_workspace(const attn_exec *exec,
                                  const attn_workspace *need,
                                  attn_diag *diag);

/* A workspace for exec inside of *block, which is to be freed: the allocator
 * hook is malloc's interface and knows no alignment. */
attn_status attn__take_workspace(const attn_workspace *need, attn_exec *exec,
                                 void **block, attn_diag *diag);

#endif
