/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_gemm against long double, in units of the bound
 *
 *   4 u sqrt(min(k, 64) + blocks + 2) sum |a| |b| + |d|   + half an ulp of c,
 *
 * u being the unit roundoff of the sums: a block of 64 is summed, then blocks,
 * then d joins, and rounding errors add up like a random walk (the factor 4
 * makes a violation a matter of 4 standard deviations). And: bits depend on
 * nothing that the header excludes, nothing outside c is written, every rule
 * has its sentence. */
#include "core/cpu.h"
#include "core/element.h"
#include "kernels/gemm.h"

#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY = 0xa5, MARGIN = 64 };

/* How the elements of a matrix lie in memory. */
typedef enum layout { DENSE, TRANSPOSED, PADDED, BACKWARD, N_LAYOUTS } layout;

/* A matrix or batch of them in a buffer of its own, canaries all around. */
typedef struct matrix {
    attn_tensor view;
    unsigned char *buffer;
    size_t bytes;
} matrix;

static uint32_t seed = 1;

/* In [-1, 1), a few of them zeros. */
static double number(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed % 31 == 0 ? 0 : (double)(int32_t)seed * 0x1p-31;
}

static int64_t place(const attn_tensor *t, int64_t s, int64_t i, int64_t j)
{
    const int64_t *stride = t->stride + t->rank - 2;

    return (t->rank == 3 ? s * t->stride[0] : 0) + i * stride[0] +
           j * stride[1];
}

static matrix make(attn_dtype dtype, layout how, int32_t rank, int64_t batch,
                   int64_t rows, int64_t columns)
{
    const int64_t shape[3] = {batch, rows, columns};
    const int64_t pad = how == PADDED ? 3 : 0;
    const int64_t wide = how == TRANSPOSED ? rows + 1 : 2 * columns + pad;
    const int64_t one = (how == TRANSPOSED ? columns : rows) * wide + pad;
    const size_t size = attn_dtype_size(dtype);
    matrix m;

    m.bytes = (size_t)(batch * one + 2 * MARGIN) * size;
    m.buffer = malloc(m.bytes);
    memset(m.buffer, CANARY, m.bytes);
    m.view = attn_dense(m.buffer + MARGIN * size, dtype, rank,
                        shape + 3 - rank);
    m.view.stride[0] = one;
    m.view.stride[rank - 2] = how == TRANSPOSED ? 1 : wide;
    m.view.stride[rank - 1] = how == TRANSPOSED ? wide : how == PADDED ? 2 : 1;
    if (how == BACKWARD && rows > 0) {
        m.view.data = (char *)m.view.data + (rows - 1) * wide * (int64_t)size;
        m.view.stride[rank - 2] = -wide;
    }
    return m;
}

static int64_t batch_of(const attn_tensor *t)
{
    return t->rank == 3 ? t->shape[0] : 1;
}

static matrix filled(attn_dtype dtype, layout how, int32_t rank, int64_t batch,
                     int64_t rows, int64_t columns)
{
    matrix m = make(dtype, how, rank, batch, rows, columns);

    for (int64_t s = 0; s < batch_of(&m.view); s++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++)
                attn__write(m.view.data, dtype, place(&m.view, s, i, j),
                            number());
    return m;
}

static double at(const attn_tensor *t, int64_t s, int64_t i, int64_t j)
{
    return attn__read(t->data, t->dtype, place(t, s, i, j));
}

/* ------------------------------------------------------------------- run */

static attn_status run(const attn_gemm_args *args, int64_t threads,
                       attn_pool *pool, attn_diag *diag)
{
    attn_workspace need;
    attn_exec exec;
    unsigned char *memory;
    attn_status status;

    assert_int_equal(attn_gemm_workspace(args->a.dtype, threads, &need, NULL),
                     ATTN_OK);
    memory = aligned_alloc(need.alignment, need.size + need.alignment);
    memset(memory, CANARY, need.size + need.alignment);
    attn_exec_init(&exec);
    exec.threads = threads;
    exec.workspace = memory;
    exec.workspace_size = need.size;
    exec.parallel_for = pool ? attn_pool_parallel_for : NULL;
    exec.ctx = pool;
    status = attn_gemm(args, &exec, diag);
    for (size_t i = 0; i < need.alignment; i++)
        assert_int_equal(memory[need.size + i], CANARY);
    free(memory);
    return status;
}

static attn_gemm_args args_of(const matrix *a, const matrix *b,
                              const matrix *d, const matrix *c)
{
    attn_gemm_args args;

    attn_gemm_init(&args);
    args.a = attn_in(a->view);
    args.b = attn_in(b->view);
    if (d)
        args.d = attn_in(d->view);
    args.c = c->view;
    return args;
}

/* Unit roundoff of the sums and half an ulp of c at x. */
static double unit_roundoff(attn_dtype dtype)
{
    return dtype == ATTN_F64 ? DBL_EPSILON / 2 : (double)FLT_EPSILON / 2;
}

static double half_ulp(attn_dtype dtype, double x)
{
    const int bits = dtype == ATTN_F64    ? 53
                     : dtype == ATTN_F32  ? 24
                     : dtype == ATTN_BF16 ? 8
                                          : 11;
    int exponent;

    frexp(x, &exponent);
    if (dtype == ATTN_F16 && exponent < -13) /* denormals */
        exponent = -13;
    return ldexp(0.5, exponent - bits);
}

static double d_at(const attn_gemm_args *g, int64_t s, int64_t i, int64_t j)
{
    const attn_input *d = &g->d;
    const int64_t index[3] = {s, i, j};
    int64_t place = 0;

    if (d->dtype == ATTN_NONE)
        return 0;
    for (int32_t axis = 0; axis < d->rank; axis++)
        place += d->shape[axis] == 1
                     ? 0
                     : index[3 - d->rank + axis] * d->stride[axis];
    return attn__read(d->data, d->dtype, place);
}

/* The largest error of c in units of its bound. `from` and `to` are the terms
 * that the reference sums: all of them, unless a mutant is wanted. */
static double worst_error(const attn_gemm_args *g, const matrix *a,
                          const matrix *b, const matrix *before, int64_t to)
{
    const attn_tensor *c = &g->c;
    const int64_t k = a->view.shape[a->view.rank - 1];
    const int64_t batch = a->view.rank == 3 ? a->view.shape[0]
                                            : batch_of(&b->view);
    const int64_t summed = c->rank == 3 ? 1 : batch;
    const double blocks = (double)(summed * ((k + 63) / 64));
    const double u = unit_roundoff(a->view.dtype);
    double worst = 0;

    for (int64_t s = 0; s < batch_of(c); s++)
        for (int64_t i = 0; i < c->shape[c->rank - 2]; i++)
            for (int64_t j = 0; j < c->shape[c->rank - 1]; j++) {
                const double d = before ? at(&before->view, s, i, j)
                                        : d_at(g, s, i, j);
                long double sum = (long double)d;
                double size = fabs(d), bound;

                for (int64_t p = 0; p < summed; p++)
                    for (int64_t t = 0; t < to; t++) {
                        const double x = at(&a->view, s + p, i, t);
                        const double y = at(&b->view, s + p, t, j);

                        sum += (long double)x * (long double)y;
                        size += fabs(x * y);
                    }
                bound = 4 * u * sqrt(fmin((double)k, 64) + blocks + 2) * size +
                        half_ulp(c->dtype, (double)sum);
                if (bound > 0)
                    worst = fmax(
                        worst,
                        fabs((double)((long double)at(c, s, i, j) - sum)) /
                            bound);
                else
                    assert_true(at(c, s, i, j) == 0);
            }
    return worst;
}

/* Every byte of c's buffer that is not one of its elements. */
static void assert_canaries(const matrix *c)
{
    const size_t size = attn_dtype_size(c->view.dtype);
    const ptrdiff_t first = (unsigned char *)c->view.data - c->buffer;
    unsigned char *seen = calloc(1, c->bytes);

    for (int64_t s = 0; s < batch_of(&c->view); s++)
        for (int64_t i = 0; i < c->view.shape[c->view.rank - 2]; i++)
            for (int64_t j = 0; j < c->view.shape[c->view.rank - 1]; j++)
                memset(seen + first +
                           place(&c->view, s, i, j) * (int64_t)size,
                       1, size);
    for (size_t i = 0; i < c->bytes; i++)
        assert_true(seen[i] || c->buffer[i] == CANARY);
    free(seen);
}

static void forget(const matrix *m)
{
    free(m->buffer);
}

/* ----------------------------------------------------------------- tests */

static const attn_dtype dtypes[] = {ATTN_F64, ATTN_F32, ATTN_BF16, ATTN_F16};

/* The budget of the row that a limit chooses. */
static double budget_of(attn_dtype dtype, attn_isa limit)
{
    double budget = 0;

    for (size_t i = 0; i < attn__n_gemm_rows; i++) {
        const attn__gemm_row *row = &attn__gemm_rows[i];

        if (row->dtype == dtype && attn__cpu_runs(row->needs, row->isa, limit))
            budget = row->budget;
    }
    return budget;
}

static void check_one(attn_dtype dtype, attn_isa limit, const int64_t *size,
                      layout how_a, layout how_b, layout how_c)
{
    const matrix a = filled(dtype, how_a, 2, 1, size[0], size[2]);
    const matrix b = filled(dtype, how_b, 2, 1, size[2], size[1]);
    const matrix c = make(dtype, how_c, 2, 1, size[0], size[1]);
    attn_gemm_args args = args_of(&a, &b, NULL, &c);
    double worst;

    args.isa_limit = limit;
    assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
    worst = worst_error(&args, &a, &b, NULL, size[2]);
    if (worst > budget_of(dtype, limit))
        fail_msg("%s %s %lldx%lldx%lld: %g bounds", attn_dtype_name(dtype),
                 attn_isa_name(limit), (long long)size[0], (long long)size[1],
                 (long long)size[2], worst);
    assert_canaries(&c);
    forget(&a);
    forget(&b);
    forget(&c);
}

static const int64_t sizes[][3] = {
    {0, 3, 4},    {3, 0, 4},    {3, 4, 0},    {1, 1, 1},    {1, 40, 70},
    {40, 1, 70},  {5, 16, 64},  {6, 8, 63},   {7, 9, 65},   {17, 33, 128},
    {120, 128, 3}, {121, 129, 5}, {2, 300, 190}, {250, 2, 130}};

UNIT(every_shape_type_level_and_layout)
{
    for (size_t t = 0; t < COUNT(dtypes); t++)
        for (int limit = ATTN_ISA_SCALAR; limit <= ATTN_ISA_AMX; limit++)
            for (size_t n = 0; n < COUNT(sizes); n++)
                for (int how = 0; how < N_LAYOUTS; how++)
                    check_one(dtypes[t], (attn_isa)limit, sizes[n],
                              (layout)how, (layout)((how + n) % N_LAYOUTS),
                              (layout)((how + n / 4) % N_LAYOUTS));
}

/* A later row of a type is of a higher level, so that each row that this CPU
 * can run is the choice of the limit of its level. */
UNIT(every_row_is_some_limits_choice)
{
    for (size_t i = 0; i < attn__n_gemm_rows; i++)
        for (size_t k = i + 1; k < attn__n_gemm_rows; k++)
            assert_false(attn__gemm_rows[k].dtype == attn__gemm_rows[i].dtype &&
                         attn__gemm_rows[k].isa <= attn__gemm_rows[i].isa);
}

/* Without these the bound would be a number that nothing has to keep. */
UNIT(the_bound_rejects_mutants)
{
    for (size_t t = 0; t < COUNT(dtypes); t++) {
        const matrix a = filled(dtypes[t], DENSE, 2, 1, 9, 130);
        const matrix b = filled(dtypes[t], DENSE, 2, 1, 130, 20);
        const matrix c = make(ATTN_F64, DENSE, 2, 1, 9, 20);
        attn_gemm_args args = args_of(&a, &b, NULL, &c);

        assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
        assert_true(worst_error(&args, &a, &b, NULL, 130) <= 1);
        /* A lost last term. */
        assert_true(worst_error(&args, &a, &b, NULL, 129) > 100);
        /* Sums that went through 16 bits once, or 32 in place of 64. */
        for (int64_t i = 0; i < 9; i++)
            for (int64_t j = 0; j < 20; j++) {
                double *x = (double *)c.view.data + place(&c.view, 0, i, j);

                *x = dtypes[t] == ATTN_F64
                         ? (double)(float)*x
                         : (double)attn__f32_of_bf16(attn__bf16_of_f64(*x));
            }
        assert_true(worst_error(&args, &a, &b, NULL, 130) > 1);
        forget(&a);
        forget(&b);
        forget(&c);
    }
}

/* d of each rank; c may be d. */
UNIT(something_is_added)
{
    for (size_t t = 0; t < COUNT(dtypes); t++) {
        const matrix a = filled(dtypes[t], DENSE, 2, 1, 33, 70);
        const matrix b = filled(dtypes[t], TRANSPOSED, 2, 1, 70, 20);
        const matrix d = filled(ATTN_F64, PADDED, 2, 1, 33, 20);
        const matrix c = filled(dtypes[t], PADDED, 2, 1, 33, 20);
        matrix before = make(dtypes[t], PADDED, 2, 1, 33, 20);
        attn_gemm_args args = args_of(&a, &b, &d, &c);

        memcpy(before.buffer, c.buffer, c.bytes);
        args.d = attn_in(c.view); /* c += a b */
        assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
        assert_true(worst_error(&args, &a, &b, &before, 70) <= 1);
        assert_canaries(&c);
        args.d = attn_in(d.view);
        assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
        assert_true(worst_error(&args, &a, &b, NULL, 70) <= 1);
        args.d.rank = 1; /* a bias: one number a column */
        args.d.shape[0] = 20;
        args.d.stride[0] = args.d.stride[1];
        assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
        assert_true(worst_error(&args, &a, &b, NULL, 70) <= 1);
        args.d.shape[0] = 1;
        assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
        assert_true(worst_error(&args, &a, &b, NULL, 70) <= 1);
        forget(&a);
        forget(&b);
        forget(&c);
        forget(&d);
        forget(&before);
    }
}

/* One product a batch, or their sum; either side may be the same for all. */
UNIT(batches_are_kept_or_summed)
{
    for (size_t t = 0; t < COUNT(dtypes); t++)
        for (int32_t form = 1; form < 8; form++) {
            const int32_t rank[3] = {2 + (form & 1), 2 + (form >> 1 & 1),
                                     2 + (form >> 2 & 1)};
            const matrix a = filled(dtypes[t], PADDED, rank[0], 3, 7, 70);
            const matrix b = filled(dtypes[t], DENSE, rank[1], 3, 70, 20);
            const matrix c = make(ATTN_F32, BACKWARD, rank[2], 3, 7, 20);
            attn_gemm_args args = args_of(&a, &b, NULL, &c);

            assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
            assert_true(worst_error(&args, &a, &b, NULL, 70) <= 1);
            assert_canaries(&c);
            forget(&a);
            forget(&b);
            forget(&c);
        }
}

/* An empty sum is d, or 0. */
UNIT(no_terms)
{
    const matrix a = filled(ATTN_F32, DENSE, 3, 0, 4, 5);
    const matrix b = filled(ATTN_F32, DENSE, 3, 0, 5, 6);
    const matrix d = filled(ATTN_F32, DENSE, 2, 1, 4, 6);
    const matrix c = make(ATTN_F32, DENSE, 2, 1, 4, 6);
    attn_gemm_args args = args_of(&a, &b, &d, &c);

    assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 6; j++)
            assert_true(at(&c.view, 0, i, j) == at(&d.view, 0, i, j));
    args.d = (attn_input){0};
    assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 6; j++)
            assert_true(at(&c.view, 0, i, j) == 0);
    forget(&a);
    forget(&b);
    forget(&c);
    forget(&d);
}

/* ------------------------------------------------------------------ bits */

/* Whether the products of a type are ours, and so their bits. */
static bool ours(attn_dtype dtype)
{
#ifdef ATTN_CBLAS
    return dtype != ATTN_F64 && dtype != ATTN_F32;
#else
    return dtype != ATTN_NONE;
#endif
}

static void assert_same_bits(const attn_tensor *x, const attn_tensor *y)
{
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t j = 0; j < x->shape[1]; j++) {
            const double p = at(x, 0, i, j), q = at(y, 0, i, j);

            assert_memory_equal(&p, &q, sizeof p);
        }
}

/* The same numbers in another layout. */
static matrix copied(const matrix *from, layout how)
{
    const attn_tensor *t = &from->view;
    matrix to = make(t->dtype, how, 2, 1, t->shape[0], t->shape[1]);

    for (int64_t i = 0; i < t->shape[0]; i++)
        for (int64_t j = 0; j < t->shape[1]; j++)
            attn__write(to.view.data, t->dtype, place(&to.view, 0, i, j),
                        at(t, 0, i, j));
    return to;
}

UNIT(bits_do_not_depend_on_threads_or_strides)
{
    static const int64_t threads[] = {1, 2, 3, 7};

    for (size_t t = 0; t < COUNT(dtypes); t++) {
        if (!ours(dtypes[t]))
            continue;
        const matrix a = filled(dtypes[t], DENSE, 2, 1, 251, 150);
        const matrix b = filled(dtypes[t], DENSE, 2, 1, 150, 261);
        const matrix c = make(dtypes[t], DENSE, 2, 1, 251, 261);
        const attn_gemm_args args = args_of(&a, &b, NULL, &c);

        assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
        for (size_t n = 0; n < COUNT(threads); n++) {
            const matrix a2 = copied(&a, (layout)n);
            const matrix b2 = copied(&b, (layout)((n + 1) % N_LAYOUTS));
            const matrix c2 = make(dtypes[t], (layout)n, 2, 1, 251, 261);
            const attn_gemm_args again = args_of(&a2, &b2, NULL, &c2);
            attn_pool *pool = attn_pool_create(threads[n]);

            assert_non_null(pool);
            assert_int_equal(run(&again, threads[n], pool, NULL), ATTN_OK);
            assert_same_bits(&c.view, &c2.view);
            attn_pool_destroy(pool);
            forget(&a2);
            forget(&b2);
            forget(&c2);
        }
        forget(&a);
        forget(&b);
        forget(&c);
    }
}

static attn_tensor block(attn_tensor t, int64_t i0, int64_t m, int64_t j0,
                         int64_t n)
{
    t.data = (char *)t.data + (i0 * t.stride[0] + j0 * t.stride[1]) *
                                  (int64_t)attn_dtype_size(t.dtype);
    t.shape[0] = m;
    t.shape[1] = n;
    return t;
}

/* Any block of c computed alone is that block of the whole. */
UNIT(bits_do_not_depend_on_other_rows_and_columns)
{
    static const int64_t blocks[][4] = {
        {0, 1, 0, 1}, {3, 1, 0, 40}, {0, 30, 7, 1}, {11, 13, 5, 17}};

    for (size_t t = 0; t < COUNT(dtypes); t++) {
        if (!ours(dtypes[t]))
            continue;
        const matrix a = filled(dtypes[t], DENSE, 2, 1, 30, 150);
        const matrix b = filled(dtypes[t], DENSE, 2, 1, 150, 40);
        const matrix c = make(dtypes[t], DENSE, 2, 1, 30, 40);
        const attn_gemm_args args = args_of(&a, &b, NULL, &c);

        assert_int_equal(run(&args, 1, NULL, NULL), ATTN_OK);
        for (size_t n = 0; n < COUNT(blocks); n++) {
            const int64_t *at = blocks[n];
            const matrix part = make(dtypes[t], PADDED, 2, 1, at[1], at[3]);
            const attn_tensor whole =
                block(c.view, at[0], at[1], at[2], at[3]);
            attn_gemm_args one = args_of(&a, &b, NULL, &part);

            one.a = attn_in(block(a.view, at[0], at[1], 0, 150));
            one.b = attn_in(block(b.view, 0, 150, at[2], at[3]));
            assert_int_equal(run(&one, 1, NULL, NULL), ATTN_OK);
            assert_same_bits(&whole, &part.view);
            forget(&part);
        }
        forget(&a);
        forget(&b);
        forget(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_type_level_and_layout),
        cmocka_unit_test(every_row_is_some_limits_choice),
        cmocka_unit_test(the_bound_rejects_mutants),
        cmocka_unit_test(something_is_added),
        cmocka_unit_test(batches_are_kept_or_summed),
        cmocka_unit_test(no_terms),
        cmocka_unit_test(bits_do_not_depend_on_threads_or_strides),
        cmocka_unit_test(bits_do_not_depend_on_other_rows_and_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
