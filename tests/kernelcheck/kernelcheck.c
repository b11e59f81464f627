/* SPDX-License-Identifier: Apache-2.0
 *
 * kernelcheck: random problems for every type at every level that this CPU
 * runs. Ends with `N passed, N failed, N skipped`, counting kernels.
 *
 *   kernelcheck [--cases N] [--seed S] [--dtype T] [--isa L] [--kind K]
 *
 * Problems are drawn until every kernel has computed N of them; with --kind, N
 * problems of that kind, so that --seed with --cases 1 repeats a failure. */
#include "kernelcheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    int64_t cases;
    uint64_t seed;
    const char *dtype, *isa, *kind;
} options;

/* Kinds by name, and the kernel whose cases tell when there are enough. */
static const struct {
    const char *name;
    attn__pass pass;
} kinds[N_KINDS] = {[KIND_ANY] = {"any", ATTN__PASS_dq},
                    [KIND_DECODE] = {"decode", ATTN__PASS_decode},
                    [KIND_DBIAS] = {"dbias", ATTN__PASS_dbias}};

static bool parse(int argc, char **argv, options *o)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--cases") == 0)
            o->cases = atoll(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            o->seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--dtype") == 0)
            o->dtype = argv[i + 1];
        else if (strcmp(argv[i], "--isa") == 0)
            o->isa = argv[i + 1];
        else if (strcmp(argv[i], "--kind") == 0)
            o->kind = argv[i + 1];
        else
            return false;
    }
    return argc % 2 == 1 && o->cases > 0;
}

/* The kernel that a plan for this type and level takes for a pass. */
static const attn__kernel_row *chosen(attn__pass pass, attn_dtype dtype,
                                      attn_isa isa)
{
    const attn__kernel_row *best = NULL;
    const unsigned features = attn__cpu_facts()->features;

    for (size_t i = 0; i < attn__n_kernels; i++) {
        const attn__kernel_row *row = &attn__kernels[i];

        if (row->pass == pass && row->dtype == dtype && row->isa <= isa &&
            row->isa <= attn_cpu_isa() && !(row->needs & ~features))
            best = row;
    }
    return best;
}

/* Whether some kernel of this type belongs to exactly this level. */
static bool level_has_kernels(attn_dtype dtype, attn_isa isa)
{
    for (int pass = 0; pass < ATTN__N_PASSES; pass++) {
        const attn__kernel_row *row = chosen((attn__pass)pass, dtype, isa);

        if (row && row->isa == isa)
            return true;
    }
    return false;
}

/* One level's standing in the run of a type. */
typedef struct level {
    attn_isa isa;
    double budget[ATTN__N_PASSES];
    bool rounds_weights;           /* at standard precision: one part each */
    int64_t cases[ATTN__N_PASSES]; /* that the kernel computed */
    verdict verdict;
    int failures;
} level;

static int wanted_levels(const options *o, attn_dtype dtype, level *levels)
{
    int n = 0;

    for (int isa = ATTN_ISA_SCALAR; isa <= (int)attn_cpu_isa(); isa++) {
        level *l = &levels[n];

        if ((o->isa && strcmp(o->isa, attn_isa_name((attn_isa)isa)) != 0) ||
            !level_has_kernels(dtype, (attn_isa)isa))
            continue;
        memset(l, 0, sizeof *l);
        l->isa = (attn_isa)isa;
        l->rounds_weights =
            chosen(ATTN__PASS_fwd, dtype, l->isa)->tile.parts == 1;
        for (int pass = 0; pass < ATTN__N_PASSES; pass++)
            l->budget[pass] =
                chosen((attn__pass)pass, dtype, l->isa)->budget;
        n++;
    }
    return n;
}

static void count_case(const expectation *e, level *l)
{
    for (int pass = 0; pass < ATTN__N_PASSES; pass++)
        for (int i = 0; i < e->n; i++)
            if (e->field[i].pass == (attn__pass)pass) {
                l->cases[pass]++;
                break;
            }
}

static void check_case(attn_dtype dtype, problem_kind kind, uint64_t seed,
                       level *levels, int n)
{
    expectation e;
    problem p;

    problem_make(&p, dtype, kind, seed);
    expect_make(&e, &p);
    for (int k = 0; k < n; k++) {
        level *l = &levels[k];

        count_case(&e, l);
        if (l->failures == 5)
            continue;
        l->verdict.failed = false;
        p.desc.isa_limit = l->isa;
        judge_problem(&p, &e, l->budget,
                      l->rounds_weights &&
                          p.desc.precision == ATTN_PRECISION_STANDARD,
                      &l->verdict);
        if (l->verdict.failed)
            printf("  again: kernelcheck --cases 1 --seed %llu --dtype %s "
                   "--isa %s --kind %s\n",
                   (unsigned long long)seed, attn_dtype_name(dtype),
                   attn_isa_name(l->isa), kinds[kind].name);
        l->failures += l->verdict.failed;
    }
    expect_free(&e);
    problem_free(&p);
}

static void check_kind(const options *o, attn_dtype dtype, problem_kind kind,
                       level *levels, int n)
{
    const bool all = !o->kind;

    if (n == 0 || (o->kind && strcmp(o->kind, kinds[kind].name) != 0))
        return;
    for (int64_t k = 0;
         all ? levels[0].cases[kinds[kind].pass] < o->cases : k < o->cases;
         k++)
        check_case(dtype, kind, o->seed + (uint64_t)k, levels, n);
}

static void report(attn_dtype dtype, const level *l)
{
    for (int pass = 0; pass < ATTN__N_PASSES; pass++) {
        const attn__kernel_row *row =
            chosen((attn__pass)pass, dtype, l->isa);

        if (row->isa == l->isa)
            printf("%-20s worst error %.3f of its bound, budget %.2f, %lld "
                   "cases%s\n",
                   row->name, l->verdict.worst[pass], l->budget[pass],
                   (long long)l->cases[pass], l->failures ? ", FAILED" : "");
    }
}

/* Kernels of exactly this level. */
static int count_kernels(attn_dtype dtype, attn_isa isa)
{
    int n = 0;

    for (int pass = 0; pass < ATTN__N_PASSES; pass++)
        n += chosen((attn__pass)pass, dtype, isa)->isa == isa;
    return n;
}

static int count_skipped(void)
{
    const unsigned features = attn__cpu_facts()->features;
    int skipped = 0;

    for (size_t i = 0; i < attn__n_kernels; i++)
        if ((attn__kernels[i].needs & ~features) ||
            attn__kernels[i].isa > attn_cpu_isa()) {
            printf("%-20s skipped: this CPU or ATTN_ISA is below it\n",
                   attn__kernels[i].name);
            skipped++;
        }
    return skipped;
}

int main(int argc, char **argv)
{
    options o = {1000, 1, NULL, NULL, NULL};
    int passed = 0, failed = 0, skipped;

    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: kernelcheck [--cases N] [--seed S] "
                        "[--dtype T] [--isa L] [--kind K]\n");
        return 2;
    }
    printf("seed %llu\n", (unsigned long long)o.seed);
    for (int dtype = ATTN_F64; dtype <= ATTN_F16; dtype++) {
        level levels[ATTN_ISA_AMX];
        int n;

        if (o.dtype &&
            strcmp(o.dtype, attn_dtype_name((attn_dtype)dtype)) != 0)
            continue;
        n = wanted_levels(&o, (attn_dtype)dtype, levels);
        for (int kind = 0; kind < N_KINDS; kind++)
            check_kind(&o, (attn_dtype)dtype, (problem_kind)kind, levels, n);
        for (int k = 0; k < n; k++) {
            report((attn_dtype)dtype, &levels[k]);
            *(levels[k].failures ? &failed : &passed) +=
                count_kernels((attn_dtype)dtype, levels[k].isa);
        }
    }
    skipped = count_skipped();
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0 || passed == 0;
}
