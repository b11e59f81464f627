/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a problem through the library and holding every output against its
 * expectation: within the bound, NaN where NaN is due, every byte between the
 * elements as it was, and the same bytes on another number of threads. */
#include "kernelcheck.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool run_pass(const problem *p, const attn_plan *plan, attn_pass pass,
                     int64_t threads, attn_pool *pool)
{
    attn_workspace need;
    attn_exec exec;
    attn_diag diag = {ATTN_OK, "", ""};
    attn_status status;
    char *block;

    if (attn_plan_workspace(plan, pass, threads, &need, &diag) != ATTN_OK)
        return false;
    block = aligned_alloc(need.alignment, need.size + need.alignment);
    memset(block, 0xA5, need.size); /* a kernel that reads before it writes
                                       meets odd values */
    attn_exec_init(&exec);
    exec.workspace = block;
    exec.workspace_size = need.size;
    exec.threads = threads;
    exec.parallel_for = pool ? attn_pool_parallel_for : NULL;
    exec.ctx = pool;
    if (pass == ATTN_FORWARD)
        status = attn_forward(plan, &p->args, &exec, &diag);
    else if (pass == ATTN_BACKWARD)
        status = attn_backward(plan, &p->args, &exec, &diag);
    else
        status = attn_weights(plan, &p->args, p->stage, NULL, p->stage_out,
                              &exec, &diag);
    free(block);
    if (status != ATTN_OK)
        printf("  %s: %s: %s\n", attn_status_name(status), diag.field,
               diag.message);
    return status == ATTN_OK;
}

static bool run_all(const problem *p, int64_t threads)
{
    attn_diag diag = {ATTN_OK, "", ""};
    attn_pool *pool = threads > 1 ? attn_pool_create(threads) : NULL;
    attn_plan plan;
    bool ok = attn_plan_init(&plan, &p->desc, &diag) == ATTN_OK &&
              attn__plan_use_every_kernel(&plan, &diag) == ATTN_OK;

    if (!ok)
        printf("  plan: %s: %s\n", diag.field, diag.message);
    ok = ok && run_pass(p, &plan, ATTN_FORWARD, threads, pool) &&
         (!p->backward ||
          run_pass(p, &plan, ATTN_BACKWARD, threads, pool)) &&
         (!p->weights || run_pass(p, &plan, ATTN_WEIGHTS, threads, pool));
    attn_pool_destroy(pool);
    return ok;
}

/* -------------------------------------------------------------- compare */

/* Error in units of the bound; infinite where NaN or infinity do not meet. */
static double ratio(long double got, long double want, double bound)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : (double)INFINITY;
    if (isinf(want) || isinf(got))
        return want == got ? 0 : (double)INFINITY;
    /* A bound that is NaN comes of hidden values it does not concern. */
    if (!(bound >= 0) || isinf(bound))
        return 0;
    if (got == want)
        return 0;
    return bound > 0 ? (double)fabsl(got - want) / bound : (double)INFINITY;
}

/* 16-bit types cannot hold what overflows them: infinity is then right. */
static long double in_range(attn_dtype dtype, long double want)
{
    if (dtype == ATTN_F16 && fabsl(want) >= 65520)
        return want > 0 ? (long double)INFINITY : -(long double)INFINITY;
    return want;
}

static void judge_field(const problem *p, const field *f, double budget,
                        bool rounded, verdict *v)
{
    const attn_input view = attn_in(f->got);
    walk w = {{0}, 0};

    for (int64_t i = 0; i < f->n; i++, walk_on(&w, &view)) {
        const long double got = (long double)read_at(&view, w.offset);
        const long double want = in_range(f->got.dtype, f->want[i]);
        const double bound = f->bound[i] + (rounded ? f->rounded[i] : 0);
        const double r = ratio(got, want, bound);

        if (r > v->worst[f->pass])
            v->worst[f->pass] = r;
        if (r <= budget)
            continue;
        printf("FAIL seed %llu: %s\n  %s[%lld] is %.17Lg, must be %.17Lg "
               "within %.3g (%.3g times it, budget %.3g)\n",
               (unsigned long long)p->seed, p->text, f->name, (long long)i,
               got, want, bound, r, budget);
        v->failed = true;
        return;
    }
}

/* --------------------------------------------------------------- canaries */

/* The memory of an output. */
static const guarded *memory_of(const problem *p, const attn_tensor *t)
{
    for (int i = 0; i < p->memory.n; i++)
        if (p->memory.block[i].data == t->data)
            return &p->memory.block[i];
    abort();
}

/* Bytes of an output's memory that no element covers are still 0xA5. */
static bool canaries_stand(const problem *p, const attn_tensor *t)
{
    const attn_input view = attn_in(*t);
    const size_t element = attn_dtype_size(t->dtype);
    const guarded *g = memory_of(p, t);
    const int64_t n = count_of(&view);
    unsigned char *uncovered = malloc(g->size + 1);
    unsigned char changed = 0;
    walk w = {{0}, 0};

    memset(uncovered, 0xFF, g->size);
    for (int64_t i = 0; i < n; i++, walk_on(&w, &view))
        memset(uncovered + (size_t)w.offset * element, 0, element);
    for (size_t i = 0; i < g->size; i++)
        changed |= uncovered[i] & (g->data[i] ^ 0xA5);
    free(uncovered);
    return changed == 0;
}

/* ------------------------------------------------------------------ bits */

/* A copy of the memory of all outputs, one after the other. */
static unsigned char *copy_outputs(const expectation *e, const problem *p)
{
    size_t size = 1, at = 0;
    unsigned char *copy;

    for (int i = 0; i < e->n; i++)
        size += memory_of(p, &e->field[i].got)->size;
    copy = malloc(size);
    for (int i = 0; i < e->n; i++) {
        const guarded *g = memory_of(p, &e->field[i].got);

        memcpy(copy + at, g->data, g->size);
        at += g->size;
    }
    return copy;
}

static bool outputs_equal(const expectation *e, const problem *p,
                          const unsigned char *copy)
{
    for (int i = 0; i < e->n; i++) {
        const guarded *g = memory_of(p, &e->field[i].got);

        if (memcmp(copy, g->data, g->size) != 0)
            return false;
        copy += g->size;
    }
    return true;
}

/* Outputs hold 0xA5 again. */
static void reset_outputs(const expectation *e, problem *p)
{
    for (int i = 0; i < e->n; i++) {
        const guarded *g = memory_of(p, &e->field[i].got);

        memset(g->data, 0xA5, g->size);
    }
}

static void judge_bits(const expectation *e, problem *p, verdict *v)
{
    const int64_t threads[] = {2, 3, 7};
    const int64_t n = threads[p->seed % 3];
    unsigned char *once = copy_outputs(e, p);
    bool same;

    reset_outputs(e, p);
    same = run_all(p, n) && outputs_equal(e, p, once);
    free(once);
    if (same)
        return;
    printf("FAIL seed %llu: %s\n  other bits on %lld threads than on one\n",
           (unsigned long long)p->seed, p->text, (long long)n);
    v->failed = true;
}

void judge_problem(problem *p, const expectation *e,
                   const double budget[ATTN__N_PASSES], bool rounded,
                   verdict *v)
{
    reset_outputs(e, p);
    if (!run_all(p, 1)) {
        printf("FAIL seed %llu: %s\n", (unsigned long long)p->seed, p->text);
        v->failed = true;
        return;
    }
    for (int i = 0; i < e->n; i++) {
        judge_field(p, &e->field[i], budget[e->field[i].pass], rounded, v);
        if (!canaries_stand(p, &e->field[i].got)) {
            printf("FAIL seed %llu: %s\n  bytes between the elements of %s "
                   "were written\n",
                   (unsigned long long)p->seed, p->text, e->field[i].name);
            v->failed = true;
        }
    }
    if (!v->failed)
        judge_bits(e, p, v);
}
