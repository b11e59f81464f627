/* SPDX-License-Identifier: Apache-2.0
 *
 * faults: fails the k-th allocation, thread creation, or initialisation of a
 * mutex or condition of every scene, for every k. Linked with --wrap for those
 * and for malloc's family, so that an allocation past the hook is seen too.
 */
#include "faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One kind of operation that can fail. */
typedef struct fault {
    const char *name;
    int n;       /* operations so far */
    int at;      /* the one that fails; -1 = none */
    bool onward; /* and all after it */
} fault;

static fault allocation = {"allocation", 0, -1, false};
static fault creation = {"thread creation", 0, -1, false};
static fault primitive = {"mutex or condition", 0, -1, false};
static int live;             /* blocks not freed */
static atomic_int past_hook; /* calls of malloc and the like by the library */
static atomic_bool in_hook;

static bool fails(fault *f)
{
    const int k = f->n++;

    return f->at >= 0 && (k == f->at || (f->onward && k > f->at));
}

static void *hooked_realloc(void *ptr, size_t size)
{
    void *block;

    if (fails(&allocation))
        return NULL;
    in_hook = true;
    block = realloc(ptr, size);
    in_hook = false;
    live += block && !ptr;
    return block;
}

static void hooked_free(void *ptr)
{
    live--;
    free(ptr);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg);
int __real_pthread_mutex_init(pthread_mutex_t *mutex,
                              const pthread_mutexattr_t *attributes);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
                              const pthread_mutexattr_t *attributes);
int __real_pthread_cond_init(pthread_cond_t *condition,
                             const pthread_condattr_t *attributes);
int __wrap_pthread_cond_init(pthread_cond_t *condition,
                             const pthread_condattr_t *attributes);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*start)(void *), void *arg)
{
    if (fails(&creation))
        return EAGAIN;
    return __real_pthread_create(thread, attributes, start, arg);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex,
                              const pthread_mutexattr_t *attributes)
{
    return fails(&primitive) ? EAGAIN
                             : __real_pthread_mutex_init(mutex, attributes);
}

int __wrap_pthread_cond_init(pthread_cond_t *condition,
                             const pthread_condattr_t *attributes)
{
    return fails(&primitive) ? EAGAIN
                             : __real_pthread_cond_init(condition, attributes);
}

void *__wrap_malloc(size_t size)
{
    past_hook += !in_hook; /* compilers make malloc of realloc(NULL) */
    return __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    past_hook += !in_hook;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    past_hook += !in_hook;
    return __real_realloc(ptr, size);
}

static int passed, failed;

static void expect(bool ok, const scene *s, const char *what, const fault *f)
{
    passed += ok;
    failed += !ok;
    if (ok)
        return;
    printf("%s: %s", s->name, what);
    if (f)
        printf(" (%s %d fails%s)", f->name, f->at + 1,
               f->onward ? ", and all after it" : "");
    printf("\n");
}

static attn_status run(const scene *s, unsigned char *out)
{
    memset(out, 0xa5, OUT_BYTES);
    allocation.n = creation.n = primitive.n = live = 0;
    past_hook = 0;
    return s->run(out);
}

static bool untouched(const unsigned char *out)
{
    for (int i = 0; i < OUT_BYTES; i++)
        if (out[i] != 0xa5)
            return false;
    return true;
}

/* Fail the k-th operation for every k, until none is left to fail. */
static void fail_each(const scene *s, fault *f, const unsigned char *clean)
{
    static unsigned char out[OUT_BYTES];
    bool fired = true;

    for (f->at = 0; fired; f->at++) {
        const attn_status status = run(s, out);
        const bool same = memcmp(out, clean, OUT_BYTES) == 0;

        fired = f->n > f->at;
        expect(live == 0, s, "leaks", f);
        /* Threads can be done without, memory not always. */
        if (status == ATTN_OK)
            expect(same, s, "succeeds with other results", f);
        else
            expect(status == ATTN_E_NOMEM && f != &creation &&
                       untouched(out),
                   s, "fails with another status, or touched its output", f);
    }
    f->at = -1;
}

static void play(const scene *s)
{
    static unsigned char clean[OUT_BYTES];
    const attn_status status = run(s, clean);
    const int allocations = allocation.n, creations = creation.n;

    expect(status == ATTN_OK, s, attn_status_name(status), NULL);
    expect(!untouched(clean), s, "gives nothing", NULL);
    expect(live == 0, s, "leaks", NULL);
    expect(past_hook == 0, s, "allocates past the hook", NULL);
    expect((allocations > 0) == s->allocates, s,
           s->allocates ? "does not allocate" : "allocates", NULL);
    for (int onward = 0; onward < 2; onward++) {
        allocation.onward = creation.onward = primitive.onward = onward;
        fail_each(s, &allocation, clean);
        fail_each(s, &creation, clean);
        fail_each(s, &primitive, clean);
    }
    printf("%-26s %d allocations, %d threads\n", s->name, allocations,
           creations);
}

int main(void)
{
    attn_set_allocator(hooked_realloc, hooked_free);
    for (int i = 0; i < n_scenes; i++)
        play(&scenes[i]);
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
