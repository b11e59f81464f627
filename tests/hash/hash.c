/* SPDX-License-Identifier: Apache-2.0
 *
 * hash: the outputs of every kernel over a fixed corpus, as one number each.
 *
 *   hash FILE            compare with the numbers of a file
 *   hash --update FILE   write those of this CPU's kernels into it
 *
 * A NaN counts as NaN, whatever its sign and payload. */
#include "kernels/gemm.h"
#include "kernels/kernels.h"
#include "plan/plan.h"

#include "scene.h"
#include "scene_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MAX_LINES 256

/* ------------------------------------------------------------------- file */

typedef struct line {
    char name[48];
    uint64_t hash;
} line;

typedef struct lines {
    line at[MAX_LINES];
    size_t n;
} lines;

static uint64_t *find(lines *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->at[i].name, name) == 0)
            return &all->at[i].hash;
    return NULL;
}

static bool read_lines(lines *all, const char *path)
{
    FILE *file = fopen(path, "r");
    unsigned long long hash;

    if (!file)
        return false;
    while (all->n < MAX_LINES && fscanf(file, "%47s %llx",
                                        all->at[all->n].name, &hash) == 2)
        all->at[all->n++].hash = hash;
    fclose(file);
    return true;
}

static bool write_lines(const lines *all, const char *path)
{
    FILE *file = fopen(path, "w");

    if (!file)
        return false;
    for (size_t i = 0; i < all->n; i++)
        fprintf(file, "%-20s %016llx\n", all->at[i].name,
                (unsigned long long)all->at[i].hash);
    return fclose(file) == 0;
}

static void put(lines *all, const char *name, uint64_t hash)
{
    uint64_t *at = find(all, name);

    if (!at && all->n < MAX_LINES) {
        snprintf(all->at[all->n].name, sizeof all->at[0].name, "%s", name);
        at = &all->at[all->n++].hash;
    }
    if (at)
        *at = hash;
}

/* ------------------------------------------------------------------- hash */

/* FNV-1a over the bytes of each element, low byte first, read as fp64. */
static uint64_t hash_tensor(uint64_t hash, const attn_tensor *t)
{
    const attn_input view = attn_in(*t);

    for (int64_t i = 0; t->dtype != ATTN_NONE && i < scene_count(&view);
         i++) {
        const double value = scene_read(&view, i);
        uint64_t bits = UINT64_C(0x7ff8000000000000);

        if (!isnan(value))
            memcpy(&bits, &value, sizeof bits);
        for (int byte = 0; byte < 8; byte++)
            hash = (hash ^ (bits >> 8 * byte & 0xff)) *
                   UINT64_C(0x100000001b3);
    }
    return hash;
}

/* What a kernel of each pass writes, as numbers of scene_output. */
static const int written[ATTN__N_PASSES][3] = {
    [ATTN__PASS_fwd] = {0, 1, -1},
    [ATTN__PASS_decode] = {0, 1, -1},
    [ATTN__PASS_weights] = {2, 3, 4},
    [ATTN__PASS_dq] = {5, 9, 10},
    [ATTN__PASS_dkv] = {6, 7, -1},
    [ATTN__PASS_dbias] = {8, -1, -1}};

/* The whole corpus at a level; hash[pass]. */
static void run_corpus(attn_dtype dtype, attn_isa isa,
                       uint64_t hash[ATTN__N_PASSES])
{
    for (int pass = 0; pass < ATTN__N_PASSES; pass++)
        hash[pass] = UINT64_C(0xcbf29ce484222325);
    for (size_t n = 0; n < COUNT(scene_table); n++) {
        scene s;

        scene_open(&s, &scene_table[n], dtype, 2 * n + 1);
        s.desc.isa_limit = isa;
        scene_clear(&s);
        scene_run(&s, 1);
        for (int pass = 0; pass < ATTN__N_PASSES; pass++) {
            if (written[pass][0] == 0 &&
                pass != (int)attn__forward_pass(&s.desc))
                continue; /* the other one wrote o */
            for (int k = 0; k < 3 && written[pass][k] >= 0; k++)
                hash[pass] =
                    hash_tensor(hash[pass],
                                scene_output(&s, written[pass][k]));
        }
        scene_close(&s);
    }
}

static void fill(attn_tensor *t, uint64_t seed)
{
    const attn_input view = attn_in(*t);

    for (int64_t i = 0; i < scene_count(&view); i++)
        scene_write(t, i, scene_normal(seed, (uint64_t)i));
}

/* One product of the corpus: (m, k) times (k, n), with a summand. */
static attn_tensor run_product(scene *s, attn_dtype dtype, attn_isa isa,
                               const int64_t size[3])
{
    attn_tensor a = scene_dense(s, dtype, 2, (int64_t[]){size[0], size[1]});
    attn_tensor b = scene_dense(s, dtype, 2, (int64_t[]){size[1], size[2]});
    attn_tensor d = scene_dense(s, dtype, 1, (int64_t[]){size[2]});
    attn_tensor c = scene_dense(s, dtype, 2, (int64_t[]){size[0], size[2]});
    attn_workspace need;
    attn_gemm_args args;
    attn_exec exec;
    void *memory;

    fill(&a, 1);
    fill(&b, 2);
    fill(&d, 3);
    attn_gemm_init(&args);
    args.isa_limit = isa;
    args.a = attn_in(a);
    args.b = attn_in(b);
    args.d = attn_in(d);
    args.c = c;
    attn_exec_init(&exec);
    if (attn_gemm_workspace(dtype, 1, &need, NULL) != ATTN_OK)
        abort();
    memory = aligned_alloc(need.alignment, need.size);
    exec.workspace = memory;
    exec.workspace_size = need.size;
    if (attn_gemm(&args, &exec, NULL) != ATTN_OK)
        abort();
    free(memory);
    return c;
}

static uint64_t run_products(attn_dtype dtype, attn_isa isa)
{
    static const int64_t sizes[][3] = {
        {1, 1, 1}, {7, 64, 5}, {33, 200, 49}, {130, 65, 140}, {3, 0, 4}};
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t n = 0; n < COUNT(sizes); n++) {
        scene s = {.n_memory = 0};
        const attn_tensor c = run_product(&s, dtype, isa, sizes[n]);

        hash = hash_tensor(hash, &c);
        scene_close(&s);
    }
    return hash;
}

/* ------------------------------------------------------------------ kernels */

static bool runs_here(unsigned needs, attn_isa isa)
{
    return attn__cpu_runs(needs, isa, ATTN_ISA_BEST);
}

/* Whether a plan of this level takes the row: no later one shadows it. */
static bool is_chosen(const attn__kernel_row *row)
{
    for (size_t i = (size_t)(row - attn__kernels) + 1; i < attn__n_kernels;
         i++) {
        const attn__kernel_row *later = &attn__kernels[i];

        if (later->pass == row->pass && later->dtype == row->dtype &&
            later->isa <= row->isa && runs_here(later->needs, later->isa))
            return false;
    }
    return true;
}

/* All kernels that this CPU runs. */
static void measure(lines *found)
{
    for (int isa = ATTN_ISA_SCALAR; isa <= (int)attn_cpu_isa(); isa++)
        for (int dtype = ATTN_F64; dtype <= ATTN_F16; dtype++) {
            uint64_t hash[ATTN__N_PASSES];
            bool ran = false;

            for (size_t i = 0; i < attn__n_kernels; i++) {
                const attn__kernel_row *row = &attn__kernels[i];

                if (row->isa != (attn_isa)isa ||
                    row->dtype != (attn_dtype)dtype ||
                    !runs_here(row->needs, row->isa) || !is_chosen(row))
                    continue;
                if (!ran)
                    run_corpus(row->dtype, row->isa, hash);
                ran = true;
                put(found, row->name, hash[row->pass]);
            }
        }
    for (size_t i = 0; i < attn__n_gemm_rows; i++)
        if (runs_here(attn__gemm_rows[i].needs, attn__gemm_rows[i].isa))
            put(found, attn__gemm_rows[i].name,
                run_products(attn__gemm_rows[i].dtype,
                             attn__gemm_rows[i].isa));
}

static int compare(lines *found, lines *expected)
{
    int passed = 0, failed = 0, skipped = 0;

    for (size_t i = 0; i < found->n; i++) {
        const line *got = &found->at[i];
        const uint64_t *want = find(expected, got->name);
        const bool same = want && *want == got->hash;

        printf("%-20s %016llx%s\n", got->name, (unsigned long long)got->hash,
               same     ? ""
               : !want  ? " FAILED: not in the file"
                        : " FAILED: other bits");
        *(same ? &passed : &failed) += 1;
    }
    for (size_t i = 0; i < expected->n; i++)
        if (!find(found, expected->at[i].name)) {
            printf("%-20s skipped: not on this CPU\n", expected->at[i].name);
            skipped++;
        }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0 || passed == 0;
}

int main(int argc, char **argv)
{
    static lines found, expected;
    const bool update = argc == 3 && strcmp(argv[1], "--update") == 0;
    const char *path = argv[argc - 1];

    if (argc != 2 && !update) {
        fprintf(stderr, "usage: hash [--update] FILE\n");
        return 2;
    }
    if (!read_lines(&expected, path) && !update) {
        perror(path);
        return 3;
    }
    measure(&found);
    if (!update)
        return compare(&found, &expected);
    for (size_t i = 0; i < found.n; i++)
        put(&expected, found.at[i].name, found.at[i].hash);
    if (!write_lines(&expected, path)) {
        perror(path);
        return 3;
    }
    return 0;
}
