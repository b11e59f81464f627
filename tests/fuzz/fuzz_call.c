/* SPDX-License-Identifier: Apache-2.0
 *
 * Descriptors and arguments: whatever they say, a call that is refused leaves
 * its outputs alone and says why, and a call that succeeds has the same bits
 * whether one task does it or three, backwards. */
#include "fuzz_call.h"

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static void backwards(void *ctx, int64_t n, attn_task *task, void *arg)
{
    (void)ctx;
    for (int64_t i = n - 1; i >= 0; i--)
        task(arg, i);
}

typedef attn_status run(const attn_plan *plan, const attn_args *args,
                        const attn_exec *exec, attn_diag *diag);

static void blank_outputs(const fuzz_call *c)
{
    for (int i = 0; i < c->n_blocks; i++)
        if (c->blocks[i].output)
            memset(c->blocks[i].data, 0xa5, c->blocks[i].size);
}

static void check_untouched(const fuzz_call *c)
{
    for (int i = 0; i < c->n_blocks; i++)
        for (size_t k = 0; c->blocks[i].output && k < c->blocks[i].size; k++)
            PROPERTY(c->blocks[i].data[k] == 0xa5);
}

static attn_status run_on(const fuzz_call *c, run *pass, attn_pass which,
                          const attn_plan *plan, int64_t threads)
{
    attn_workspace need;
    attn_exec exec;
    attn_diag diag;
    attn_status status;

    PROPERTY(attn_plan_workspace(plan, which, threads, &need, NULL) ==
             ATTN_OK);
    attn_exec_init(&exec);
    exec.threads = threads;
    exec.parallel_for = backwards;
    exec.workspace_size = need.size;
    exec.workspace = need.size < (64u << 20)
                         ? aligned_alloc(need.alignment, need.size)
                         : NULL;
    blank_outputs(c);
    status = pass(plan, &c->args, &exec, &diag);
    free(exec.workspace);
    PROPERTY(diag.status == status);
    if (status != ATTN_OK) {
        PROPERTY(diag.field[0] != '\0' && diag.message[0] != '\0');
        check_untouched(c);
    }
    return status;
}

/* One thread and three: the same status, the same bytes. */
static attn_status run_twice(const fuzz_call *c, run *pass, attn_pass which,
                             const attn_plan *plan)
{
    const attn_status status = run_on(c, pass, which, plan, 1);
    unsigned char *first[FUZZ_MAX_BLOCKS] = {0};

    if (status != ATTN_OK)
        return status;
    for (int i = 0; i < c->n_blocks; i++)
        if (c->blocks[i].output) {
            first[i] = malloc(c->blocks[i].size + 1);
            PROPERTY(first[i]);
            memcpy(first[i], c->blocks[i].data, c->blocks[i].size);
        }
    PROPERTY(run_on(c, pass, which, plan, 3) == ATTN_OK);
    for (int i = 0; i < c->n_blocks; i++)
        if (c->blocks[i].output) {
            PROPERTY(memcmp(first[i], c->blocks[i].data,
                            c->blocks[i].size) == 0);
            free(first[i]);
        }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_call c;
    attn_plan plan;
    attn_diag diag;
    attn_status status;
    char text[64];

    fuzz_make_forward(&c, data, size);
    status = attn_plan_init(&plan, &c.desc, &diag);
    PROPERTY(diag.status == status);
    if (status != ATTN_OK) {
        PROPERTY(diag.field[0] != '\0' && diag.message[0] != '\0');
    } else {
        PROPERTY(attn_plan_describe(&plan, text, sizeof text) > 0);
        PROPERTY(memchr(text, '\0', sizeof text));
        if (run_twice(&c, attn_forward, ATTN_FORWARD, &plan) == ATTN_OK) {
            fuzz_make_backward(&c);
            run_twice(&c, attn_backward, ATTN_BACKWARD, &plan);
        }
    }
    fuzz_free(&c);
    return 0;
}
