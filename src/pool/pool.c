/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in executor: threads that sleep until there are tasks. Tasks are
 * few (one per thread; they share out the units themselves), so they are
 * drawn under the lock. */
#include "attn.h"
#include "core/alloc.h"

#include <pthread.h>
#include <stdbool.h>

struct attn_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    pthread_t *threads;
    int64_t n_threads; /* that could be had; the caller is one more */
    bool stop;
    bool busy; /* a parallel_for is under way: a nested one runs by itself */
    attn_task *task;
    void *arg;
    int64_t n, next, done; /* tasks; next >= n: none left to draw */
};

/* Draw and run tasks until none is left. The lock is held on entry and exit,
 * not while a task runs. */
static void run_tasks(attn_pool *pool)
{
    while (pool->next < pool->n) {
        const int64_t index = pool->next++;
        /* Copied: while this task runs unlocked, the others may finish, and
         * the next parallel_for put its own here. */
        attn_task *task = pool->task;
        void *arg = pool->arg;

        pthread_mutex_unlock(&pool->lock);
        task(arg, index);
        pthread_mutex_lock(&pool->lock);
        if (++pool->done == pool->n) /* one waits for that: the caller */
            pthread_cond_signal(&pool->finished);
    }
}

/* The life of one thread. It never looks at which parallel_for it serves: all
 * that it needs is under the lock, so a thread that comes late to one simply
 * helps with the next. */
static void *worker(void *arg)
{
    attn_pool *pool = arg;

    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        /* Look before waiting: work may have come before this thread did. */
        run_tasks(pool);
        if (!pool->stop)
            pthread_cond_wait(&pool->work, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Take the pool for one parallel_for; false if it is taken: by another thread
 * of the host, or by the very task that calls now. Waiting for it could be
 * waiting for oneself, so the caller does its own work instead. */
static bool begin(attn_pool *pool, int64_t n, attn_task *task, void *arg)
{
    bool taken;

    pthread_mutex_lock(&pool->lock);
    taken = pool->busy;
    if (!taken) {
        pool->busy = true;
        pool->task = task;
        pool->arg = arg;
        pool->n = n;
        pool->next = 0;
        pool->done = 0;
        pthread_cond_broadcast(&pool->work);
    }
    pthread_mutex_unlock(&pool->lock);
    return !taken;
}

/* The contract of attn_exec.parallel_for: returns when all n tasks have run,
 * and what they wrote is then visible to the caller, since each of them took
 * the lock after its writes and the caller took it last. Any number of host
 * threads may call it on one pool. */
void attn_pool_parallel_for(void *ctx, int64_t n, attn_task *task, void *arg)
{
    attn_pool *pool = ctx;

    if (n < 1)
        return;
    /* Tasks never wait for each other, so one thread can run them all. */
    if (n == 1 || pool->n_threads == 0 || !begin(pool, n, task, arg)) {
        for (int64_t i = 0; i < n; i++)
            task(arg, i);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    run_tasks(pool); /* the caller is one of the n threads */
    while (pool->done < pool->n)
        pthread_cond_wait(&pool->finished, &pool->lock);
    pool->busy = false;
    pthread_mutex_unlock(&pool->lock);
}

/* All three or none: a pool that could not be made leaves nothing behind. */
static bool init_primitives(attn_pool *pool)
{
    if (pthread_mutex_init(&pool->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&pool->work, NULL) == 0) {
        if (pthread_cond_init(&pool->finished, NULL) == 0)
            return true;
        pthread_cond_destroy(&pool->work);
    }
    pthread_mutex_destroy(&pool->lock);
    return false;
}

/* The caller owns the pool. NULL only for a bad n or without memory: a pool of
 * no threads of its own is one, whose caller does all the work. */
attn_pool *attn_pool_create(int64_t n)
{
    attn_pool *pool;

    if (n < 1 || n > 1024)
        return NULL;
    pool = attn__calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    pool->threads = attn__calloc((size_t)n, sizeof *pool->threads);
    if (!pool->threads || !init_primitives(pool)) {
        attn__free(pool->threads);
        attn__free(pool);
        return NULL;
    }
    /* Fewer threads than asked for are slower, not wrong. */
    while (pool->n_threads < n - 1 &&
           pthread_create(&pool->threads[pool->n_threads], NULL, worker,
                          pool) == 0)
        pool->n_threads++;
    return pool;
}

/* No parallel_for may be under way: threads end between tasks and are waited
 * for. A child after fork has the memory of a pool but none of its threads,
 * and must not come here (the Python package makes a new pool there). */
void attn_pool_destroy(attn_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int64_t i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    attn__free(pool->threads);
    attn__free(pool);
}
