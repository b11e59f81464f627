/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_gemm: checking a matrix product, choosing its kernel, and cutting c
 * into units. */
#include "core/checked.h"
#include "core/cpu.h"
#include "core/diag.h"
#include "core/exec.h"
#include "kernels/gemm.h"
#include "run/gemm_blas.h"
#include "run/run.h"

#include <string.h>

void attn_gemm_init(attn_gemm_args *args)
{
    memset(args, 0, sizeof *args);
    args->size = sizeof *args;
}

/* ---------------------------------------------------------------- checks */

/* (rows, columns) or a batch of them, of any strides, 0 and negative ones too.
 */
static attn_status check_matrix(const attn_input *t, const char *name,
                                attn_diag *diag)
{
    ATTN__REQUIRE(attn__given(t), diag, ATTN_E_ARG, name, "is absent");
    ATTN__TRY(attn__check_view(t, name, diag));
    ATTN__REQUIRE(attn__is_float(t->dtype), diag, ATTN_E_DTYPE, name,
                  "is %s, must be a float type", attn_dtype_name(t->dtype));
    ATTN__REQUIRE(t->rank == 2 || t->rank == 3, diag, ATTN_E_SHAPE, name,
                  "has rank %d, must be a matrix or a batch of them",
                  (int)t->rank);
    return ATTN_OK;
}

/* f64, f32 or the type of a: of 16-bit matrices the product may be kept in
 * f32, and a bias is often given so. */
static attn_status check_real(const attn_input *t, const char *name,
                              attn_dtype dtype, attn_diag *diag)
{
    ATTN__REQUIRE(t->dtype == ATTN_F64 || t->dtype == ATTN_F32 ||
                      t->dtype == dtype,
                  diag, ATTN_E_DTYPE, name,
                  "is %s, must be f64, f32 or the type of a, %s",
                  attn_dtype_name(t->dtype), attn_dtype_name(dtype));
    return ATTN_OK;
}

/* A matrix beside a batch serves every entry of it. */
static attn_status check_left_and_right(const attn_input *a,
                                        const attn_input *b, attn_diag *diag)
{
    ATTN__TRY(check_matrix(a, "a", diag));
    ATTN__TRY(check_matrix(b, "b", diag));
    ATTN__REQUIRE(b->dtype == a->dtype, diag, ATTN_E_DTYPE, "b",
                  "is %s, must be %s as a", attn_dtype_name(b->dtype),
                  attn_dtype_name(a->dtype));
    ATTN__REQUIRE(b->shape[b->rank - 2] == a->shape[a->rank - 1], diag,
                  ATTN_E_SHAPE, "b",
                  "has %lld rows, must have a's %lld columns",
                  (long long)b->shape[b->rank - 2],
                  (long long)a->shape[a->rank - 1]);
    ATTN__REQUIRE(a->rank == 2 || b->rank == 2 || a->shape[0] == b->shape[0],
                  diag, ATTN_E_SHAPE, "b",
                  "has a batch of %lld, must have a's %lld",
                  (long long)b->shape[0], (long long)a->shape[0]);
    return ATTN_OK;
}

/* c may be d element for element, and is apart from everything else. */
static attn_status check_apart(const attn_input *c, const attn_input *a,
                               const attn_input *b, const attn_input *d,
                               attn_diag *diag)
{
    ATTN__REQUIRE(!attn__self_overlaps(c), diag, ATTN_E_ARG, "c",
                  "is an output whose strides give elements one address");
    ATTN__REQUIRE(!attn__overlaps(c, a), diag, ATTN_E_ARG, "c",
                  "is an output that shares memory with a");
    ATTN__REQUIRE(!attn__overlaps(c, b), diag, ATTN_E_ARG, "c",
                  "is an output that shares memory with b");
    ATTN__REQUIRE(!attn__given(d) || attn__same_view(c, d) ||
                      !attn__overlaps(c, d),
                  diag, ATTN_E_ARG, "c",
                  "shares memory with d without being d");
    return ATTN_OK;
}

/* What does not depend on c: the struct itself, the level, a and b. */
static attn_status check_args(const attn_gemm_args *args, attn_diag *diag)
{
    ATTN__REQUIRE(args, diag, ATTN_E_ARG, "args", "must not be NULL");
    ATTN__REQUIRE(args->size == sizeof *args, diag, ATTN_E_ARG, "size",
                  "%u is not the size of attn_gemm_args; use attn_gemm_init",
                  (unsigned)args->size);
    ATTN__REQUIRE((unsigned)args->isa_limit <= ATTN_ISA_AMX, diag, ATTN_E_ARG,
                  "isa_limit", "%d is not a level (0 to %d)",
                  (int)args->isa_limit, (int)ATTN_ISA_AMX);
    return check_left_and_right(&args->a, &args->b, diag);
}

/* Batches of the product: a's or b's, or where neither has any, c's. */
static int64_t batches(const attn_gemm_args *g)
{
    if (g->a.rank == 3)
        return g->a.shape[0];
    if (g->b.rank == 3)
        return g->b.shape[0];
    return g->c.rank == 3 ? g->c.shape[0] : 1;
}

/* c with a batch has a product for each; a c of rank 2 has their sum, which is
 * how the gradient of a shared weight is formed. d is broadcast to c. */
static attn_status check_result(const attn_gemm_args *g, attn_diag *diag)
{
    const attn_input c = attn_in(g->c);
    const int64_t shape[3] = {batches(g), g->a.shape[g->a.rank - 2],
                              g->b.shape[g->b.rank - 1]};
    const int32_t rank = c.rank == 3 ? 3 : 2;

    if (attn__given(&g->d)) {
        ATTN__TRY(check_real(&g->d, "d", g->a.dtype, diag));
        ATTN__TRY(attn__check_broadcast(&g->d, "d", rank, shape + 3 - rank,
                                        diag));
    }
    ATTN__REQUIRE(attn__given(&c), diag, ATTN_E_ARG, "c", "is absent");
    ATTN__TRY(attn__check_shape(&c, "c", rank, shape + 3 - rank, diag));
    ATTN__TRY(check_real(&c, "c", g->a.dtype, diag));
    return check_apart(&c, &g->a, &g->b, &g->d, diag);
}

/* ------------------------------------------------------------------- run */

/* Whether batches of rows lie as one run of m rows each after the other. */
static bool follows(const int64_t *stride, int64_t m)
{
    int64_t length;

    return attn__mul_i64(m, stride[2], &length) && stride[1] == length;
}

/* One tall product in place of many with the same b: fuller units, and the
 * same sums. A sum over batches has its own order and stays as it is. */
static void join_batches(attn__gemm *g)
{
    if (g->sum == 1 && g->b.stride[1] == 0 && follows(g->a.stride, g->m) &&
        follows(g->c.stride, g->m) &&
        (!g->d.data || follows(g->d.stride, g->m))) {
        g->m *= g->batch;
        g->batch = 1;
    }
}

/* To views with strides, in which broadcast axes are strides of 0. */
static void resolve(const attn_gemm_args *g, attn__gemm *gemm)
{
    gemm->a = attn__view_of(&g->a, false);
    gemm->b = attn__view_of(&g->b, false);
    gemm->d = attn__view_of(&g->d, true);
    gemm->c = attn__target_of(&g->c);
    gemm->batch = g->c.rank == 3 ? batches(g) : 1;
    gemm->sum = g->c.rank == 3 ? 1 : batches(g);
    gemm->m = g->a.shape[g->a.rank - 2];
    gemm->n = g->b.shape[g->b.rank - 1];
    gemm->k = g->a.shape[g->a.rank - 1];
}

/* The last row of gemm.def that fits. Every type has a scalar one. */
static const attn__gemm_row *choose(attn_dtype dtype, attn_isa limit)
{
    const attn__gemm_row *best = NULL;

    for (size_t i = 0; i < attn__n_gemm_rows; i++) {
        const attn__gemm_row *row = &attn__gemm_rows[i];

        if (row->dtype == dtype && attn__cpu_runs(row->needs, row->isa, limit))
            best = row;
    }
    return best;
}

/* Units are blocks of c, numbered with columns fastest, so that threads that
 * run at the same time read the same rows of a. */
typedef struct gemm_run {
    attn__gemm gemm;
    attn__gemm_kernel *kernel;
    int64_t row_chunks, column_chunks;
} gemm_run;

/* One block of c, by one thread, whole sums: nothing is added up across units.
 */
static void run_unit(const void *of, int64_t number, void *slot)
{
    const gemm_run *run = of;
    const int64_t chunk = number / run->column_chunks;
    const int64_t row0 = chunk % run->row_chunks * ATTN__GEMM_ROWS;
    const int64_t column0 = number % run->column_chunks * ATTN__GEMM_COLUMNS;
    const attn__gemm_unit unit = {
        chunk / run->row_chunks, row0,
        attn__min_i64(row0 + ATTN__GEMM_ROWS, run->gemm.m), column0,
        attn__min_i64(column0 + ATTN__GEMM_COLUMNS, run->gemm.n)};

    run->kernel(&run->gemm, &unit, slot);
}

/* Packed panels of a and b for each thread. Of fixed size, whatever the
 * matrices: a caller can plan for a layer before it knows its input. */
static void workspace_of(attn_dtype dtype, int64_t threads,
                         attn_workspace *need)
{
    attn__arena arena = {NULL, 0, false};
    attn__gemm_slot unused;

    attn__gemm_take(&arena, &unused,
                    dtype == ATTN_F64 ? sizeof(double) : sizeof(float));
    *need = (attn_workspace){arena.used * (size_t)threads, ATTN__ALIGN, 0,
                             arena.used};
}

/* As attn_plan_workspace, for a call that needs no plan. */
attn_status attn_gemm_workspace(attn_dtype dtype, int64_t threads,
                                attn_workspace *workspace, attn_diag *diag)
{
    ATTN__REQUIRE(attn__is_float(dtype), diag, ATTN_E_DTYPE, "dtype",
                  "must be f64, f32, bf16 or f16, got %s",
                  attn_dtype_name(dtype));
    ATTN__TRY(attn__check_threads(threads, diag));
    ATTN__REQUIRE(workspace, diag, ATTN_E_ARG, "workspace",
                  "must not be NULL");
    workspace_of(dtype, threads, workspace);
    return attn__ok(diag);
}

/*     c = a b + d,   or   c = sum over the batch of a_b b_b + d
 *
 * c may be d. Blocks of k are summed in one order, so an element's bits are the
 * same for any threads, strides and size of the other axes. */
attn_status attn_gemm(const attn_gemm_args *args, const attn_exec *exec,
                      attn_diag *diag)
{
    attn_workspace need;
    attn__units units;
    attn_input c;
    gemm_run run;

    ATTN__TRY(check_args(args, diag));
    ATTN__TRY(check_result(args, diag));
    c = attn_in(args->c);
    ATTN__TRY(attn__check_exec(exec, diag));
    workspace_of(args->a.dtype, exec->threads, &need);
    ATTN__TRY(attn__check_workspace(exec, &need, diag));
    resolve(args, &run.gemm);
    /* Before anything is multiplied: sizes beside an empty axis may be any. */
    if (attn__is_empty(&c))
        return attn__ok(diag);
    join_batches(&run.gemm);
#ifdef ATTN_CBLAS
    if (attn__gemm_by_blas(&run.gemm))
        return attn__ok(diag);
#endif
    run.kernel = choose(args->a.dtype, args->isa_limit)->run;
    run.row_chunks = attn__ceil_div(run.gemm.m, ATTN__GEMM_ROWS);
    run.column_chunks = attn__ceil_div(run.gemm.n, ATTN__GEMM_COLUMNS);
    units = (attn__units){
        &run, run_unit,
        run.gemm.batch * run.row_chunks * run.column_chunks, exec->workspace,
        need.slot};
    attn__run_units(&units, exec);
    return attn__ok(diag);
}
