/* SPDX-License-Identifier: Apache-2.0
 *
 * long_sequence [LEN [THREADS]]: causal attention of one head over 131072
 * tokens, D = 64, fp32. Peak memory must stay below 300 MB (the four arrays
 * are 134 MB, a matrix of weights would be 68 GB), time below 10 minutes, and
 * chosen rows within their error bound of fp64. */
#include "attn.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { DIM = 64, BLOCK = 64 /* keys that are summed at a time */ };

/* xorshift64*, uniform in [-1, 1). */
static float draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (float)(int32_t)((*state * UINT64_C(0x2545F4914F6CDD1D)) >> 32) *
           0x1p-31f;
}

static float *random_rows(int64_t len, uint64_t seed, float size)
{
    float *rows = malloc((size_t)len * DIM * sizeof *rows);

    for (int64_t x = 0; rows && x < len * DIM; x++)
        rows[x] = size * draw(&seed);
    return rows;
}

/* Row i in fp64, textbook, and the bound of docs/numerics.md on the error of
 * its fp32 evaluation; the largest ratio of the two over the components. */
static double check_row(const float *q, const float *k, const float *v,
                        const float *o, int64_t i)
{
    const double u = FLT_EPSILON / 2, n = (double)i + 1;
    double *p = malloc((size_t)(i + 1) * sizeof *p);
    double max = -INFINITY, sum = 0, size = 0, worst = 0;

    if (!p)
        return INFINITY;
    for (int64_t j = 0; j <= i; j++) {
        double s = 0, terms = 0;

        for (int64_t c = 0; c < DIM; c++) {
            const double term =
                (double)q[i * DIM + c] * (double)k[j * DIM + c] / 8;
            s += term;
            terms += fabs(term);
        }
        p[j] = s;
        max = fmax(max, s);
        size = fmax(size, terms);
    }
    for (int64_t j = 0; j <= i; j++)
        sum += p[j] = exp(p[j] - max);
    for (int64_t c = 0; c < DIM; c++) {
        double exact = 0, magnitude = 0, bound;

        for (int64_t j = 0; j <= i; j++) {
            exact += p[j] / sum * (double)v[j * DIM + c];
            magnitude += p[j] / sum * fabs((double)v[j * DIM + c]);
        }
        bound = 4 * 2 * u * magnitude *
                (sqrt(DIM + 2) * size + sqrt(BLOCK) + sqrt(n / BLOCK) + 8);
        worst = fmax(worst, fabs((double)o[i * DIM + c] - exact) / bound);
    }
    free(p);
    return worst;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int expect(const char *what, double value, double limit)
{
    printf("%-40s %10.3g (limit %g)\n", what, value, limit);
    return value <= limit ? 0 : 1; /* NaN fails */
}

static int check(const float *q, const float *k, const float *v,
                 const float *o, int64_t len, double time)
{
    const int64_t rows[] = {0, len / 3, len / 2, len - 1};
    struct rusage usage;
    int failed = 0;

    getrusage(RUSAGE_SELF, &usage);
    failed += expect("seconds", time, 600);
    failed += expect("peak memory, MB", (double)usage.ru_maxrss / 1e3, 300);
    for (int r = 0; r < 4; r++) {
        char what[64];

        snprintf(what, sizeof what, "error of row %lld / its bound",
                 (long long)rows[r]);
        failed += expect(what, check_row(q, k, v, o, rows[r]), 1);
    }
    return failed;
}

int main(int argc, char **argv)
{
    const int64_t len = argc > 1 ? atoll(argv[1]) : 131072;
    const int64_t threads = argc > 2 ? atoll(argv[2]) : 2;
    float *q = random_rows(len, 1, 4), *k = random_rows(len, 2, 1);
    float *v = random_rows(len, 3, 1), *o = random_rows(len, 4, 0);
    attn_desc desc;
    attn_args args;
    attn_diag diag;
    double start;
    int failed;

    if (!q || !k || !v || !o)
        return 1;
    attn_desc_init(&desc, ATTN_F32, 1, 1, 1, len, len, DIM, DIM);
    desc.causal = ATTN_CAUSAL_TOP_LEFT;
    attn_args_init(&args);
    args.q = attn_in_bhsd(q, ATTN_F32, 1, 1, len, DIM);
    args.kv.k = attn_in_bhsd(k, ATTN_F32, 1, 1, len, DIM);
    args.kv.v = attn_in_bhsd(v, ATTN_F32, 1, 1, len, DIM);
    args.o = attn_bhsd(o, ATTN_F32, 1, 1, len, DIM);
    start = seconds();
    if (attn_attention(&desc, &args, threads, &diag) != ATTN_OK) {
        printf("%s: %s\n", diag.field, diag.message);
        return 1;
    }
    failed = check(q, k, v, o, len, seconds() - start);
    free(q);
    free(k);
    free(v);
    free(o);
    printf("%d passed, %d failed\n", 6 - failed, failed);
    return failed ? 1 : 0;
}
