/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of one's own: parallel_for is any function that has run all tasks
 * when it returns. Here it starts threads for each call; a program with a pool
 * gives that the tasks. The result has the bits of one thread. */
#include <attn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { HEADS = 4, LEN = 300, DIM = 32, N = HEADS * LEN * DIM, THREADS = 3 };

typedef struct job {
    attn_task *task;
    void *arg;
    int64_t index;
} job;

static float x[N], o[2][N];
static _Alignas(64) unsigned char memory[1 << 22];

static void *work(void *arg)
{
    const job *j = arg;

    j->task(j->arg, j->index);
    return NULL;
}

/* n is at most exec.threads. Where no thread can be had, the caller works. */
static void parallel_for(void *ctx, int64_t n, attn_task *task, void *arg)
{
    job jobs[THREADS];
    pthread_t threads[THREADS];
    int started[THREADS];

    for (int64_t i = 0; i < n; i++) {
        jobs[i] = (job){task, arg, i};
        started[i] = !pthread_create(&threads[i], NULL, work, &jobs[i]);
        if (!started[i])
            work(&jobs[i]);
    }
    for (int64_t i = 0; i < n; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
    ++*(int *)ctx;
}

int main(void)
{
    int calls = 0;
    attn_desc desc;
    attn_plan plan;
    attn_args args;
    attn_exec exec;
    attn_workspace need;

    for (int c = 0; c < N; c++)
        x[c] = sinf((float)c);
    attn_desc_init(&desc, ATTN_F32, 1, HEADS, HEADS, LEN, LEN, DIM, DIM);
    attn_args_init(&args);
    args.q = attn_in_bhsd(x, ATTN_F32, 1, HEADS, LEN, DIM);
    args.kv.k = args.kv.v = args.q;
    attn_exec_init(&exec);
    exec.workspace = memory;
    exec.parallel_for = parallel_for;
    exec.ctx = &calls;
    for (int n = 0; n < 2; n++) {
        exec.threads = n ? THREADS : 1;
        args.o = attn_bhsd(o[n], ATTN_F32, 1, HEADS, LEN, DIM);
        if (attn_plan_init(&plan, &desc, NULL) ||
            attn_plan_workspace(&plan, ATTN_FORWARD, exec.threads, &need,
                                NULL) || need.size > sizeof memory)
            return 1;
        exec.workspace_size = sizeof memory;
        if (attn_forward(&plan, &args, &exec, NULL))
            return 1;
    }
    printf("parallel_for was called %d time(s)\n", calls);
    return memcmp(o[0], o[1], sizeof o[0]) != 0 || calls == 0;
}
