/* SPDX-License-Identifier: Apache-2.0
 *
 * Which products a build with -Dblas leaves to the library: those of f64 and
 * f32 whose matrices are rows or columns, and no others. That what comes back
 * is right, test_gemm.c has seen. */
#include "run/gemm_blas.h"

#include "unit.h"

#include <string.h>

enum { M = 3, N = 4, K = 5, ROOM = 256 };

static double a_data[ROOM], b_data[ROOM], c_data[ROOM];

/* A row every 16 elements; or, transposed, a column. */
static void lay(int64_t *stride, bool transposed)
{
    memset(stride, 0, 4 * sizeof *stride);
    stride[2] = transposed ? 1 : 16;
    stride[3] = transposed ? 16 : 1;
}

static attn__gemm product(attn_dtype dtype, bool a, bool b, bool c)
{
    attn__gemm g = {.batch = 1, .sum = 1, .m = M, .n = N, .k = K};

    g.a = (attn__view){(const char *)a_data, dtype, {0}};
    g.b = (attn__view){(const char *)b_data, dtype, {0}};
    g.c = (attn__target){(char *)c_data, dtype, {0}};
    lay(g.a.stride, a);
    lay(g.b.stride, b);
    lay(g.c.stride, c);
    return g;
}

/* a[i][t] = i + t / 8, b[t][j] = t - j / 4: all sums are exact. */
UNIT(rows_and_columns_are_taken)
{
    for (int form = 0; form < 8; form++) {
        attn__gemm g = product(ATTN_F64, form & 1, form & 2, form & 4);

        memset(c_data, 0, sizeof c_data);
        for (int64_t t = 0; t < K; t++) {
            for (int64_t i = 0; i < M; i++)
                a_data[i * g.a.stride[2] + t * g.a.stride[3]] =
                    (double)i + (double)t / 8;
            for (int64_t j = 0; j < N; j++)
                b_data[t * g.b.stride[2] + j * g.b.stride[3]] =
                    (double)t - (double)j / 4;
        }
        assert_true(attn__gemm_by_blas(&g));
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < N; j++) {
                double sum = 0;

                for (int64_t t = 0; t < K; t++)
                    sum += ((double)i + (double)t / 8) *
                           ((double)t - (double)j / 4);
                assert_true(c_data[i * g.c.stride[2] + j * g.c.stride[3]] ==
                            sum);
            }
    }
}

UNIT(the_rest_is_left_to_us)
{
    attn__gemm g = product(ATTN_BF16, false, false, false);

    memset(c_data, 0xa5, sizeof c_data);
    assert_false(attn__gemm_by_blas(&g));
    g = product(ATTN_F32, false, false, false);
    g.c.dtype = ATTN_F64;
    assert_false(attn__gemm_by_blas(&g));
    g = product(ATTN_F32, false, false, false);
    g.a.stride[3] = 2;
    assert_false(attn__gemm_by_blas(&g));
    g = product(ATTN_F32, false, false, false);
    g.b.stride[2] = -16;
    assert_false(attn__gemm_by_blas(&g));
    g = product(ATTN_F32, false, false, false);
    g.b.stride[2] = N - 1; /* rows that overlap */
    assert_false(attn__gemm_by_blas(&g));
    g = product(ATTN_F32, false, false, false);
    g.c.stride[3] = 2;
    assert_false(attn__gemm_by_blas(&g));
    g = product(ATTN_F32, false, false, false);
    g.m = INT64_C(1) << 32;
    assert_false(attn__gemm_by_blas(&g));
    for (size_t i = 0; i < sizeof c_data; i++)
        assert_int_equal(((unsigned char *)c_data)[i], 0xa5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_and_columns_are_taken),
        cmocka_unit_test(the_rest_is_left_to_us),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
