/* SPDX-License-Identifier: Apache-2.0
 *
 * attn bench: our kernels against the limits of this machine, a row at a
 * time. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attn_bench.h"
#include "print_arrays.h"
#include "progress.h"
#include "words.h"

typedef struct bench_options {
    int64_t threads;
    double seconds;
    attn_isa isa;
    const char *only; /* rows whose name holds this */
    bool json;
} bench_options;

static int set_threads(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 1024,
                       &((bench_options *)target)->threads);
}

static int set_seconds(void *target, const char *name, const char *value)
{
    bench_options *o = target;
    const int code = cli_number(name, value, &o->seconds);

    if (code == CLI_GO && !(o->seconds > 0 && o->seconds <= 3600))
        return cli_fail(CLI_USAGE, "--%s: %s: must be above 0, at most 3600",
                        name, value);
    return code;
}

static int set_isa(void *target, const char *name, const char *value)
{
    static const char *const levels[] = {"best", "scalar", "avx2", "avx512",
                                         "amx"};
    int chosen = 0;
    const int code = cli_choice(name, value, levels, 5, &chosen);

    ((bench_options *)target)->isa = (attn_isa)chosen;
    return code;
}

static int set_only(void *target, const char *name, const char *value)
{
    (void)name;
    ((bench_options *)target)->only = value;
    return CLI_GO;
}

static int set_json(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((bench_options *)target)->json = true;
    return CLI_GO;
}

static const cli_option options[] = {
    {"threads", "=N", "1 to 1024 (default: the processors)", set_threads},
    {"seconds", "=S", "time for a row (default 1)", set_seconds},
    {"isa", "=LEVEL", "at most scalar, avx2, avx512 or amx", set_isa},
    {"only", "=WORD", "rows whose name holds WORD", set_only},
    {"json", NULL, "as JSON", set_json}};

static const char about[] =
    "Each row takes turns with a loop that only multiplies and adds (or, for\n"
    "decode, reads K and V) at the same level on the same threads, and prints\n"
    "the median time of a call, its speed, and the fraction of the limit.\n"
    "Close other programs first.\n";

/* What the machine can do, apart from rows: the largest of a few tries. */
typedef struct limits {
    double fma_f32, fma_f64, tiles_bf16;
} limits;

static limits find_limits(const bench_options *o)
{
    attn_pool *pool = attn_pool_create(o->threads);
    const attn_isa isa = attn_cpu_isa();
    limits most = {0, 0, 0};

    for (int n = 0; pool && n < 20; n++) {
        const limits now = {
            attn_limit_fma(isa, ATTN_F32, pool, o->threads),
            attn_limit_fma(isa, ATTN_F64, pool, o->threads),
            attn_limit_fma(isa, ATTN_BF16, pool, o->threads)};

        most.fma_f32 = fmax(most.fma_f32, now.fma_f32);
        most.fma_f64 = fmax(most.fma_f64, now.fma_f64);
        most.tiles_bf16 = fmax(most.tiles_bf16, now.tiles_bf16);
    }
    attn_pool_destroy(pool);
    return most;
}

static void print_row(const attn_bench_row *row,
                      const attn_bench_result *r)
{
    printf("%-25s %-19s %10.1f us %9.1f %s %6.3f of %.1f\n", row->name,
           r->kernel, r->seconds * 1e6, r->operations * 1e-9,
           r->reads ? "GB/s  " : "GFLOP/s", r->fraction, r->limit * 1e-9);
    fflush(stdout);
}

static void json_row(const attn_bench_row *row, const attn_bench_result *r,
                     const char *separator)
{
    fputs(separator, stdout);
    fputs("{\"name\": ", stdout);
    cli_json_string(row->name);
    printf(", \"kernel\": \"%s\", \"seconds\": %.6g, \"per_second\": %.6g, "
           "\"limit\": %.6g, \"fraction\": %.4f, \"limit_of\": \"%s\"}",
           r->kernel, r->seconds, r->operations, r->limit, r->fraction,
           r->reads ? "bytes" : "operations");
}

static bool wanted(const bench_options *o, const attn_bench_row *row)
{
    return !o->only || strstr(row->name, o->only);
}

static int64_t count_wanted(const bench_options *o)
{
    int64_t n = 0;

    for (int64_t i = 0; i < attn_bench_count(); i++)
        n += wanted(o, attn_bench_row_at(i));
    return n;
}

static int run_rows(const bench_options *o)
{
    const char *separator = "\n  ";
    const int64_t n = count_wanted(o);
    int64_t at = 0;

    for (int64_t i = 0; i < attn_bench_count(); i++) {
        const attn_bench_row *row = attn_bench_row_at(i);
        attn_bench_result result;
        attn_diag diag;

        if (!wanted(o, row))
            continue;
        cli_progress("row", at++, n);
        if (attn_bench_run(row, o->isa, o->threads, o->seconds, &result,
                           &diag) != ATTN_OK)
            return cli_refused(&diag);
        cli_progress_end();
        if (o->json)
            json_row(row, &result, separator);
        else
            print_row(row, &result);
        separator = ",\n  ";
    }
    return CLI_OK;
}

int cmd_bench(int argc, char **argv)
{
    bench_options o = {0, 1, ATTN_ISA_BEST, NULL, false};
    const cli_group group = {"Options:", options, 5, &o};
    const cli_usage usage = {"attn bench [OPTION]...", about, &group, 1};
    char cpu[256];
    limits most;
    int code, n;

    o.threads = sysconf(_SC_NPROCESSORS_ONLN);
    code = cli_parse(&usage, argc, argv, &n);
    if (code != CLI_GO)
        return code;
    if (n > 0)
        return cli_fail(CLI_USAGE, "'%s': bench takes no file", argv[0]);
    if (count_wanted(&o) == 0)
        return cli_fail(CLI_USAGE, "--only: no row's name holds '%s'",
                        o.only);
    attn_cpu_describe(cpu, sizeof cpu);
    most = find_limits(&o);
    if (o.json) {
        cli_json_begin("bench-1");
        fputs(", \"cpu\": ", stdout);
        cli_json_string(cpu);
        printf(", \"threads\": %lld, \"fma_f32\": %.6g, \"fma_f64\": %.6g, "
               "\"tiles_bf16\": %.6g, \"rows\": [",
               (long long)o.threads, most.fma_f32, most.fma_f64,
               most.tiles_bf16);
    } else {
        printf("%s, %lld threads\n", cpu, (long long)o.threads);
        printf("multiply-adds: f32 %.1f, f64 %.1f, bf16 tiles %.1f GFLOP/s\n",
               most.fma_f32 * 1e-9, most.fma_f64 * 1e-9,
               most.tiles_bf16 * 1e-9);
    }
    code = run_rows(&o);
    if (o.json)
        puts("\n]}");
    return code;
}
