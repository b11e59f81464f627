/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's limits, measured: multiply-adds in registers, bytes read. */
#define _DEFAULT_SOURCE /* syscall */
#include "limits/limits.h"

#include <stdlib.h>
#include <time.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "attn_bench.h"

double attn__now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double attn__median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, rising);
    return values[n / 2];
}

/* ------------------------------------------------------- multiply-adds */

typedef double fma_loop(int64_t rounds);

#if ATTN__WITH_AMX
/* Whether the system lets this process use tiles: it has to be asked. */
static bool may_use_tiles(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* asm/prctl.h */

    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}
#endif

static fma_loop *loop_of_tiles(void)
{
#if ATTN__WITH_AMX
    if (may_use_tiles())
        return attn__tiles_bf16_amx;
#endif
    return NULL;
}

/* The loop of a level and type, or of the best level below it that is built;
 * NULL where this CPU has none. */
static fma_loop *loop_of(attn_isa isa, attn_dtype dtype)
{
    const bool wide = dtype == ATTN_F64;

    if (isa > attn_cpu_isa())
        return NULL;
    if (dtype == ATTN_BF16)
        return isa >= ATTN_ISA_AMX ? loop_of_tiles() : NULL;
#if ATTN__WITH_AVX512
    if (isa >= ATTN_ISA_AVX512)
        return wide ? attn__fma_f64_avx512 : attn__fma_f32_avx512;
#endif
#if ATTN__WITH_AVX2
    if (isa >= ATTN_ISA_AVX2)
        return wide ? attn__fma_f64_avx2 : attn__fma_f32_avx2;
#endif
    return wide ? attn__fma_f64_scalar : attn__fma_f32_scalar;
}

typedef struct fma_job {
    fma_loop *loop;
    int64_t rounds;
} fma_job;

static void fma_task(void *arg, int64_t index)
{
    const fma_job *job = arg;

    (void)index;
    job->loop(job->rounds);
}

static void run(attn_pool *pool, int64_t n, attn_task *task, void *arg)
{
    if (pool) {
        attn_pool_parallel_for(pool, n, task, arg);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        task(arg, i);
}

double attn_limit_fma(attn_isa isa, attn_dtype dtype, attn_pool *pool,
                      int64_t threads)
{
    fma_job job = {loop_of(isa, dtype), 100000};
    double start, seconds;

    if (!job.loop || threads < 1)
        return 0;
    start = attn__now();
    run(pool, threads, fma_task, &job);
    seconds = attn__now() - start;
    return job.loop(1) * (double)job.rounds * (double)threads / seconds;
}

/* --------------------------------------------------------------- bytes */

typedef struct read_job {
    const char *data;
    size_t size;
    int64_t parts;
    uint64_t *sums; /* one a part: what was read is not thrown away */
} read_job;

/* Eight running sums, so that loads and not additions set the pace. */
static void read_task(void *arg, int64_t index)
{
    const read_job *job = arg;
    const size_t part = job->size / (size_t)job->parts / 64 * 64;
    const uint64_t *at =
        (const uint64_t *)(const void *)(job->data + (size_t)index * part);
    uint64_t sums[8] = {0};

    for (size_t i = 0; i + 8 <= part / 8; i += 8)
        for (size_t k = 0; k < 8; k++)
            sums[k] += at[i + k];
    for (size_t k = 0; k < 8; k++)
        job->sums[index] += sums[k];
}

double attn_limit_read(const void *data, size_t size, attn_pool *pool,
                       int64_t threads)
{
    uint64_t sums[1024] = {0};
    read_job job = {data, size, threads, sums};
    double start, seconds;

    if (threads < 1 || threads > 1024 || size < 64 * (size_t)threads)
        return 0;
    start = attn__now();
    run(pool, threads, read_task, &job);
    seconds = attn__now() - start;
    return (double)size / seconds;
}
