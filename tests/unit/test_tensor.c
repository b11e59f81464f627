/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensor views: what the helpers lay out, and every way in which a view can be
 * impossible. */
#include "core/tensor.h"

#include "unit.h"

#include <string.h>

static char bytes[64];

static void expect(attn_input t, int32_t rank, const int64_t *shape,
                   const int64_t *stride)
{
    assert_int_equal(t.rank, rank);
    for (int32_t a = 0; a < rank; a++) {
        assert_true(t.shape[a] == shape[a]);
        assert_true(t.stride[a] == stride[a]);
    }
    for (int32_t a = rank; a < 4; a++)
        assert_true(t.shape[a] == 0 && t.stride[a] == 0);
}

UNIT(helpers_lay_out_as_they_are_named)
{
    const int64_t shape[] = {2, 3, 5, 7};
    const int64_t bhsd[] = {105, 35, 7, 1}; /* 3*5*7, 5*7, 7, 1 */
    const int64_t bshd[] = {105, 7, 21, 1}; /* 5*3*7, 7, 3*7, 1 */
    const int64_t thd_shape[] = {9, 3, 7}, thd[] = {21, 7, 1};
    const attn_tensor t = attn_bshd(bytes, ATTN_F32, 2, 3, 5, 7);

    expect(attn_in_bhsd(bytes, ATTN_F32, 2, 3, 5, 7), 4, shape, bhsd);
    expect(attn_in_bshd(bytes, ATTN_F32, 2, 3, 5, 7), 4, shape, bshd);
    expect(attn_in_thd(bytes, ATTN_F32, 9, 3, 7), 3, thd_shape, thd);
    expect(attn_in_dense(bytes, ATTN_F32, 4, shape), 4, shape, bhsd);
    expect(attn_in(t), 4, shape, bshd);
    expect(attn_in(attn_bhsd(bytes, ATTN_F32, 2, 3, 5, 7)), 4, shape, bhsd);
    expect(attn_in(attn_thd(bytes, ATTN_F32, 9, 3, 7)), 3, thd_shape, thd);
    expect(attn_in(attn_dense(bytes, ATTN_F32, 0, NULL)), 0, NULL, NULL);
    assert_ptr_equal(t.data, bytes);
    assert_ptr_equal(attn_in(t).data, bytes);
    assert_int_equal(attn_in(t).dtype, ATTN_F32);
}

UNIT(sizes_of_zero_still_have_strides)
{
    const int64_t shape[] = {2, 0, 5, 0}, stride[] = {5, 5, 1, 1};

    expect(attn_in_bhsd(NULL, ATTN_F32, 2, 0, 5, 0), 4, shape, stride);
}

/* The helpers check nothing, but must not write outside of their result. */
UNIT(an_impossible_rank_is_kept_for_the_check_to_refuse)
{
    static const int64_t shape[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int32_t ranks[] = {-1, 5, 8, INT32_MIN};
    attn_diag diag;

    for (size_t r = 0; r < COUNT(ranks); r++) {
        const attn_input t = attn_in_dense(bytes, ATTN_F32, ranks[r], shape);

        assert_int_equal(t.rank, ranks[r]);
        assert_int_equal(attn__check_view(&t, "q", &diag), ATTN_E_SHAPE);
        assert_string_equal(diag.field, "q");
    }
}

UNIT(a_struct_of_zeros_is_absent)
{
    const attn_tensor t = {0};
    const attn_input in = {0};

    assert_false(attn__asked(&t));
    assert_false(attn__given(&in));
}

UNIT(every_impossible_view_is_refused)
{
    enum { BIG = 1 << 30 };
    static const struct {
        attn_input view;
        attn_status status;
    } rows[] = {
        {{bytes, ATTN_F32, 2, {2, 3}, {3, 1}}, ATTN_OK},
        {{bytes, ATTN_F32, 0, {0}, {0}}, ATTN_OK},
        {{bytes, ATTN_F32, 2, {2, 3}, {0, -1}}, ATTN_OK},
        {{NULL, ATTN_F32, 2, {2, 0}, {3, 1}}, ATTN_OK},
        /* no elements: strides are never used */
        {{NULL, ATTN_F32, 2, {0, 9}, {INT64_MAX, INT64_MIN}}, ATTN_OK},
        {{bytes, ATTN_NONE, 1, {2}, {1}}, ATTN_E_DTYPE},
        {{bytes, (attn_dtype)8, 1, {2}, {1}}, ATTN_E_DTYPE},
        {{bytes, (attn_dtype)-1, 1, {2}, {1}}, ATTN_E_DTYPE},
        {{bytes, ATTN_F32, 5, {1, 1, 1, 1}, {1, 1, 1, 1}}, ATTN_E_SHAPE},
        {{bytes, ATTN_F32, -1, {1}, {1}}, ATTN_E_SHAPE},
        {{bytes, ATTN_F32, 2, {2, -1}, {1, 1}}, ATTN_E_SHAPE},
        {{bytes, ATTN_F32, 2, {0, -1}, {1, 1}}, ATTN_E_SHAPE},
        {{bytes, ATTN_F32, 2, {3, 1}, {INT64_MAX, 1}}, ATTN_E_OVERFLOW},
        {{bytes, ATTN_F32, 2, {3, 1}, {INT64_MIN, 1}}, ATTN_E_OVERFLOW},
        {{bytes, ATTN_F32, 1, {INT64_MAX}, {2}}, ATTN_E_OVERFLOW},
        {{bytes, ATTN_F32, 2, {2, 2}, {INT64_MAX, 1}}, ATTN_E_OVERFLOW},
        {{bytes, ATTN_F64, 2, {2, 1}, {INT64_C(1) << 59, 1}},
         ATTN_E_OVERFLOW},
        {{bytes, ATTN_F64, 2, {2, 1}, {-(INT64_C(1) << 59), 1}},
         ATTN_E_OVERFLOW},
        {{bytes, ATTN_F32, 3, {BIG, BIG, 2}, {BIG, 1, 1}}, ATTN_E_OVERFLOW},
        {{NULL, ATTN_F32, 1, {1}, {1}}, ATTN_E_ARG},
        {{NULL, ATTN_F32, 0, {0}, {0}}, ATTN_E_ARG},
    };

    for (size_t r = 0; r < COUNT(rows); r++) {
        attn_diag diag = {0};

        assert_int_equal(attn__check_view(&rows[r].view, "bias", &diag),
                         rows[r].status);
        assert_int_equal(diag.status, rows[r].status);
        if (rows[r].status != ATTN_OK) {
            assert_string_equal(diag.field, "bias");
            assert_true(strlen(diag.message) > 0);
        }
    }
}

UNIT(empty_means_any_axis_of_no_length)
{
    const attn_input full = attn_in_bhsd(bytes, ATTN_F32, 1, 2, 3, 4);
    const attn_input empty = attn_in_bhsd(bytes, ATTN_F32, 1, 2, 0, 4);
    const attn_input scalar = attn_in_dense(bytes, ATTN_F32, 0, NULL);

    assert_false(attn__is_empty(&full));
    assert_true(attn__is_empty(&empty));
    assert_false(attn__is_empty(&scalar));
}

UNIT(kinds_of_types)
{
    for (int dtype = ATTN_NONE; dtype <= ATTN_I64; dtype++) {
        const attn_dtype d = (attn_dtype)dtype;

        assert_int_equal(attn__is_float(d), d == ATTN_F64 || d == ATTN_F32 ||
                                                d == ATTN_BF16 ||
                                                d == ATTN_F16);
        assert_int_equal(attn__is_index(d), d == ATTN_I32 || d == ATTN_I64);
    }
}

UNIT(an_index_is_read_at_any_alignment)
{
    const int32_t narrow[] = {1, -2, INT32_MIN};
    const int64_t wide[] = {1, -2, INT64_MIN};
    char shifted[1 + sizeof wide];

    for (int64_t i = 0; i < 3; i++) {
        assert_true(attn__load_index(narrow, ATTN_I32, i) == narrow[i]);
        assert_true(attn__load_index(wide, ATTN_I64, i) == wide[i]);
        memcpy(shifted + 1, wide, sizeof wide);
        assert_true(attn__load_index(shifted + 1, ATTN_I64, i) == wide[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(helpers_lay_out_as_they_are_named),
        cmocka_unit_test(sizes_of_zero_still_have_strides),
        cmocka_unit_test(an_impossible_rank_is_kept_for_the_check_to_refuse),
        cmocka_unit_test(a_struct_of_zeros_is_absent),
        cmocka_unit_test(every_impossible_view_is_refused),
        cmocka_unit_test(empty_means_any_axis_of_no_length),
        cmocka_unit_test(kinds_of_types),
        cmocka_unit_test(an_index_is_read_at_any_alignment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
