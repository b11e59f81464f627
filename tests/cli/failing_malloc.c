/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a program, makes its allocations fail: the FAIL_AT-th (from 1)
 * and, with FAIL_ONWARD set, all after it. With FAIL_COUNT=FD in place of it
 * writes the number of allocations to that descriptor at the end. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *malloc(size_t size);
void *calloc(size_t n, size_t size);
void *realloc(void *ptr, size_t size);

static atomic_long count;
static long fail_at;
static int onward, counter = -1;

/* Before that, while the program is being loaded, nothing fails. */
__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT"), *fd = getenv("FAIL_COUNT");

    onward = getenv("FAIL_ONWARD") != NULL;
    counter = fd ? atoi(fd) : -1;
    count = 0;
    fail_at = at ? atol(at) : 0;
}

__attribute__((destructor)) static void end(void)
{
    char text[32];
    const int n = snprintf(text, sizeof text, "%ld\n", (long)count);

    if (counter >= 0 && write(counter, text, (size_t)n) != n)
        _exit(99);
}

static int fails(void)
{
    const long k = ++count;

    if (fail_at == 0 || (k != fail_at && !(onward && k > fail_at)))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *ptr, size_t size)
{
    return fails() ? NULL : __libc_realloc(ptr, size);
}
