/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread pool: every task once, whatever else happens: nested calls, two
 * callers at a time, threads that the system refuses, memory that is short.
 * Linked with --wrap=pthread_create, so that the k-th creation can fail. */
#include "attn.h"

#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1000 };

static int creations, fail_from = -1, fail_once = -1;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg)
{
    const int k = creations++;

    if (k == fail_once || (fail_from >= 0 && k >= fail_from))
        return EAGAIN;
    return __real_pthread_create(thread, attributes, start, arg);
}

/* Each task adds 1 to its own plain int: a race or a task run twice shows in
 * the sum, and under TSan at once. */
static void count(void *arg, int64_t index)
{
    ((int *)arg)[index]++;
}

static void run_and_check(attn_pool *pool, int64_t n)
{
    int hits[MOST + 1] = {0};

    attn_pool_parallel_for(pool, n, count, hits);
    for (int64_t i = 0; i <= MOST; i++)
        assert_int_equal(hits[i], i < n ? 1 : 0);
}

UNIT(every_task_runs_once_on_any_number_of_threads)
{
    static const int64_t threads[] = {1, 2, 3, 7, 16};
    static const int64_t tasks[] = {0, 1, 2, 3, 15, 16, 17, MOST};

    for (size_t t = 0; t < COUNT(threads); t++) {
        attn_pool *pool = attn_pool_create(threads[t]);

        assert_non_null(pool);
        for (size_t n = 0; n < COUNT(tasks); n++)
            run_and_check(pool, tasks[n]);
        attn_pool_destroy(pool);
    }
}

UNIT(a_number_of_threads_has_limits)
{
    static const int64_t wrong[] = {0, -1, 1025, INT64_MIN, INT64_MAX};
    attn_pool *pool;

    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_null(attn_pool_create(wrong[i]));
    pool = attn_pool_create(1024);
    assert_non_null(pool);
    run_and_check(pool, MOST);
    attn_pool_destroy(pool);
    attn_pool_destroy(NULL);
}

/* Wake-ups that get lost show in the long run, as a hang. */
UNIT(ten_thousand_calls_in_a_row)
{
    attn_pool *pool = attn_pool_create(3);
    int hits[4] = {0};

    for (int round = 0; round < 10000; round++)
        attn_pool_parallel_for(pool, 4, count, hits);
    for (int i = 0; i < 4; i++)
        assert_int_equal(hits[i], 10000);
    attn_pool_destroy(pool);
}

/* Calls that come while threads look for work, while they fall asleep, and when
 * they sleep: about 100 us is what they look for. */
UNIT(calls_come_early_and_late)
{
    for (int threads = 2; threads <= 3; threads++) {
        attn_pool *pool = attn_pool_create(threads);
        int hits[4] = {0};

        for (int round = 0; round < 600; round++) {
            const struct timespec pause = {0, round % 30 * 10000};

            nanosleep(&pause, NULL);
            attn_pool_parallel_for(pool, 4, count, hits);
        }
        for (int i = 0; i < 4; i++)
            assert_int_equal(hits[i], 600);
        attn_pool_destroy(pool);
    }
}

typedef struct nest {
    attn_pool *pool;
    int hits[8][16];
} nest;

static void nested(void *arg, int64_t index)
{
    nest *n = arg;

    attn_pool_parallel_for(n->pool, 16, count, n->hits[index]);
}

UNIT(a_task_may_call_the_pool_that_runs_it)
{
    nest n = {attn_pool_create(3), {{0}}};

    attn_pool_parallel_for(n.pool, 8, nested, &n);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 16; k++)
            assert_int_equal(n.hits[i][k], 1);
    attn_pool_destroy(n.pool);
}

typedef struct caller {
    attn_pool *pool;
    int hits[64];
} caller;

static void *call_often(void *arg)
{
    caller *c = arg;

    for (int round = 0; round < 500; round++)
        attn_pool_parallel_for(c->pool, 64, count, c->hits);
    return NULL;
}

UNIT(two_callers_share_a_pool)
{
    caller callers[2];
    pthread_t threads[2];
    attn_pool *pool = attn_pool_create(3);

    memset(callers, 0, sizeof callers);
    for (int i = 0; i < 2; i++) {
        callers[i].pool = pool;
        assert_int_equal(__real_pthread_create(&threads[i], NULL, call_often,
                                               &callers[i]),
                         0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        for (int k = 0; k < 64; k++)
            assert_int_equal(callers[i].hits[k], 500);
    }
    attn_pool_destroy(pool);
}

/* The k-th creation fails, once and from then on, until none is left to. */
UNIT(threads_that_cannot_be_had_are_done_without)
{
    enum { THREADS = 5 };

    for (int persistent = 0; persistent < 2; persistent++) {
        for (int k = 0; k < THREADS; k++) {
            attn_pool *pool;

            creations = 0;
            fail_once = persistent ? -1 : k;
            fail_from = persistent ? k : -1;
            pool = attn_pool_create(THREADS);
            assert_non_null(pool);
            assert_in_range(creations, 1, THREADS - 1);
            run_and_check(pool, MOST);
            attn_pool_destroy(pool);
        }
    }
    fail_once = fail_from = -1;
}

static int allocations, fail_allocation, live;

static void *failing_realloc(void *ptr, size_t size)
{
    void *block;

    if (allocations++ == fail_allocation)
        return NULL;
    block = realloc(ptr, size);
    live += block && !ptr;
    return block;
}

static void counting_free(void *ptr)
{
    live--;
    free(ptr);
}

UNIT(short_memory_gives_null_and_no_leak)
{
    attn_pool *pool = NULL;

    attn_set_allocator(failing_realloc, counting_free);
    for (int k = 0; !pool; k++) {
        allocations = 0;
        fail_allocation = k;
        pool = attn_pool_create(4);
        assert_true(pool || live == 0);
        assert_in_range(k, 0, 100);
    }
    assert_true(fail_allocation > 0); /* something was allocated */
    run_and_check(pool, MOST);
    attn_pool_destroy(pool);
    assert_int_equal(live, 0);
    attn_set_allocator(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_runs_once_on_any_number_of_threads),
        cmocka_unit_test(a_number_of_threads_has_limits),
        cmocka_unit_test(ten_thousand_calls_in_a_row),
        cmocka_unit_test(calls_come_early_and_late),
        cmocka_unit_test(a_task_may_call_the_pool_that_runs_it),
        cmocka_unit_test(two_callers_share_a_pool),
        cmocka_unit_test(threads_that_cannot_be_had_are_done_without),
        cmocka_unit_test(short_memory_gives_null_and_no_leak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
