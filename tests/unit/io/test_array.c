/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays that own their memory: made, read as numbers, converted. */
#include <math.h>
#include <string.h>

#include "../unit.h"
#include "attn_io.h"

UNIT(a_new_array_is_zero_and_named)
{
    const int64_t shape[] = {2, 3};
    attn_array a;

    assert_int_equal(attn_array_init(&a, "q", ATTN_F32, 2, shape, NULL),
                     ATTN_OK);
    assert_string_equal(a.name, "q");
    assert_int_equal(a.count, 6);
    for (int i = 0; i < 6; i++)
        assert_true(attn_array_value(&a, i) == 0);
    attn_array_free(&a);
    assert_null(a.data);
    assert_null(a.name);
}

UNIT(impossible_arrays_are_refused)
{
    static const struct {
        attn_dtype dtype;
        int32_t rank;
        int64_t shape[2];
        attn_status status;
    } cases[] = {
        {ATTN_NONE, 1, {3}, ATTN_E_DTYPE},
        {(attn_dtype)42, 1, {3}, ATTN_E_DTYPE},
        {ATTN_F32, -1, {3}, ATTN_E_SHAPE},
        {ATTN_F32, 9, {3}, ATTN_E_SHAPE},
        {ATTN_F32, 1, {-3}, ATTN_E_SHAPE},
        {ATTN_F32, 2, {INT64_MAX, 2}, ATTN_E_OVERFLOW},
        {ATTN_F64, 2, {INT64_MAX / 2, 2}, ATTN_E_NOMEM},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        attn_array a;
        attn_diag diag;

        memset(&a, 0x55, sizeof a);
        assert_int_equal(attn_array_init(&a, "q", cases[i].dtype,
                                         cases[i].rank, cases[i].shape, &diag),
                         cases[i].status);
        assert_null(a.data);
        assert_null(a.name);
    }
    assert_int_equal(attn_array_init(NULL, "q", ATTN_F32, 0, NULL, NULL),
                     ATTN_E_ARG);
}

static attn_array vector(attn_dtype dtype, int64_t n)
{
    attn_array a;

    assert_int_equal(attn_array_init(&a, "x", dtype, 1, &n, NULL), ATTN_OK);
    return a;
}

/* 1 + 2^-11 + 2^-30 lies above the middle of two numbers of f16; by way of f32
 * it would come to lie on it, and round to the even one below. */
UNIT(numbers_are_rounded_once)
{
    attn_array a = vector(ATTN_F64, 4);
    double *x = a.data;

    x[0] = 1 + 0x1p-11 + 0x1p-30;
    x[1] = 1 + 0x1p-8 + 0x1p-40; /* the same for bf16 */
    x[2] = INFINITY;
    x[3] = NAN;
    assert_int_equal(attn_array_convert(&a, ATTN_F16, NULL), ATTN_OK);
    assert_true(attn_array_value(&a, 0) == 1 + 0x1p-10);
    assert_true(attn_array_value(&a, 2) == INFINITY);
    assert_true(isnan(attn_array_value(&a, 3)));
    attn_array_free(&a);
    a = vector(ATTN_F64, 1);
    *(double *)a.data = 1 + 0x1p-8 + 0x1p-40;
    assert_int_equal(attn_array_convert(&a, ATTN_BF16, NULL), ATTN_OK);
    assert_true(attn_array_value(&a, 0) == 1 + 0x1p-7);
    attn_array_free(&a);
}

UNIT(integers_and_truth_become_numbers)
{
    static const attn_dtype from[] = {ATTN_I64, ATTN_I32, ATTN_BOOL};

    for (size_t i = 0; i < COUNT(from); i++) {
        attn_array a = vector(from[i], 2);

        ((unsigned char *)a.data)[0] = 1;
        assert_int_equal(attn_array_convert(&a, ATTN_F32, NULL), ATTN_OK);
        assert_int_equal(a.dtype, ATTN_F32);
        assert_true(((float *)a.data)[0] == 1);
        assert_true(((float *)a.data)[1] == 0);
        attn_array_free(&a);
    }
}

UNIT(text_and_integer_targets_are_refused)
{
    char *one[] = {"x"};
    attn_array text = {.name = "t", .count = 1, .text = one};
    attn_array a = vector(ATTN_F32, 1);

    assert_int_equal(attn_array_convert(&text, ATTN_F32, NULL), ATTN_E_DTYPE);
    assert_true(isnan(attn_array_value(&text, 0)));
    assert_int_equal(attn_array_convert(&a, ATTN_I64, NULL), ATTN_E_DTYPE);
    assert_int_equal(attn_array_convert(&a, ATTN_NONE, NULL), ATTN_E_DTYPE);
    assert_int_equal(a.dtype, ATTN_F32);
    assert_int_equal(attn_array_convert(NULL, ATTN_F32, NULL), ATTN_E_ARG);
    attn_array_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_array_is_zero_and_named),
        cmocka_unit_test(impossible_arrays_are_refused),
        cmocka_unit_test(numbers_are_rounded_once),
        cmocka_unit_test(integers_and_truth_become_numbers),
        cmocka_unit_test(text_and_integer_targets_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
