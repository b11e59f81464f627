/* SPDX-License-Identifier: Apache-2.0
 *
 * The built-in executor: threads that sleep until there are tasks. Tasks are
 * few (one per thread; they share out the units themselves), so they are
 * drawn under the lock.
 *
 * Waking a thread takes the system some 50 us, the time of a whole call for a
 * short sequence, and programs call again and again. So whoever waits first
 * looks for a while, then sleeps: SPIN bounds what an idle pool takes from
 * others. What is looked at is only a hint; what counts is under the lock. */
#include "attn.h"
#include "core/alloc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds: about two wake-ups, so looking at most triples their cost. */
#define SPIN 100000

struct attn_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, finished;
    pthread_t *threads;
    int64_t n_threads; /* that could be had; the caller is one more */
    bool stop;
    bool busy; /* a parallel_for is under way: a nested one runs by itself */
    bool spins; /* every thread may have a processor to look from */
    attn_task *task;
    void *arg;
    int64_t n, next, done; /* tasks; next >= n: none left to draw */
    int64_t asleep;        /* threads that only `work` can wake */
    /* Written under the lock, looked at without: how many parallel_for have
     * begun (and one more to stop), and how many have ended. */
    _Atomic int64_t begun, ended;
};

static int64_t nanoseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Tell the processor that this is a wait, so that its other thread goes on. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Look until `word` is above `value`, but not for long. */
static void look(const attn_pool *pool, const _Atomic int64_t *word,
                 int64_t value)
{
    const int64_t end = pool->spins ? nanoseconds() + SPIN : 0;

    while (atomic_load_explicit(word, memory_order_relaxed) <= value &&
           pool->spins && nanoseconds() < end)
        for (int k = 0; k < 8; k++)
            relax();
}

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
        if (++pool->done == pool->n) { /* one waits for that: the caller */
            atomic_store(&pool->ended, atomic_load(&pool->begun));
            pthread_cond_signal(&pool->finished);
        }
    }
}

/* The life of one thread. It never looks at which parallel_for it serves: all
 * that it needs is under the lock, so a thread that comes late to one simply
 * helps with the next. */
/* Until there may be tasks, or the end. The lock is held on entry and exit. */
static void wait_for_work(attn_pool *pool)
{
    const int64_t begun = atomic_load(&pool->begun);

    if (pool->stop)
        return;
    pthread_mutex_unlock(&pool->lock);
    look(pool, &pool->begun, begun);
    pthread_mutex_lock(&pool->lock);
    if (atomic_load(&pool->begun) != begun)
        return;
    pool->asleep++;
    pthread_cond_wait(&pool->work, &pool->lock);
    pool->asleep--;
}

static void *worker(void *arg)
{
    attn_pool *pool = arg;

    pthread_mutex_lock(&pool->lock);
    while (!pool->stop) {
        /* Before waiting: work may have come before this thread did. */
        run_tasks(pool);
        wait_for_work(pool);
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
        atomic_fetch_add(&pool->begun, 1);
        if (pool->asleep > 0)
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
    if (pool->done < pool->n) {
        pthread_mutex_unlock(&pool->lock);
        look(pool, &pool->ended, atomic_load(&pool->begun) - 1);
        pthread_mutex_lock(&pool->lock);
    }
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
    pool->spins = n <= sysconf(_SC_NPROCESSORS_ONLN);
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
    atomic_fetch_add(&pool->begun, 1); /* whoever looks, sees it */
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
