/* SPDX-License-Identifier: Apache-2.0
 *
 * call_overhead: the nanoseconds of the smallest calls, for
 * python_overhead.py: plan, workspace and forward of (1, 1, 8, 4) on one
 * thread, as the Python package does them. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "attn.h"

static double seconds(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void)
{
    enum { CALLS = 500, REPEATS = 400 };
    float q[32], o[32];
    attn_desc desc;
    attn_args args;
    attn_exec exec;
    attn_workspace need;
    attn_plan plan;
    double best = 1e9;

    for (int i = 0; i < 32; i++)
        q[i] = (float)(i % 7) / 7;
    attn_desc_init(&desc, ATTN_F32, 1, 1, 1, 8, 8, 4, 4);
    attn_args_init(&args);
    args.q = args.kv.k = args.kv.v =
        attn_in_bhsd(q, ATTN_F32, 1, 1, 8, 4);
    args.o = attn_bhsd(o, ATTN_F32, 1, 1, 8, 4);
    attn_exec_init(&exec);
    if (attn_plan_init(&plan, &desc, NULL) != ATTN_OK ||
        attn_plan_workspace(&plan, ATTN_FORWARD, 1, &need, NULL) != ATTN_OK)
        return 1;
    exec.workspace_size = need.size;
    exec.workspace = aligned_alloc(
        need.alignment, (need.size / need.alignment + 1) * need.alignment);
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        const double start = seconds();

        for (int i = 0; i < CALLS; i++) {
            attn_plan_init(&plan, &desc, NULL);
            attn_plan_workspace(&plan, ATTN_FORWARD, 1, &need, NULL);
            if (attn_forward(&plan, &args, &exec, NULL) != ATTN_OK)
                return 1;
        }
        if ((seconds() - start) / CALLS < best)
            best = (seconds() - start) / CALLS;
    }
    free(exec.workspace);
    printf("%.0f\n", 1e9 * best);
    return 0;
}
