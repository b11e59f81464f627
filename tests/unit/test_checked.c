/* SPDX-License-Identifier: Apache-2.0
 *
 * Checked arithmetic at its edges, against the same sum in 128 bits. */
#include "core/checked.h"

#include "unit.h"

__extension__ typedef __int128 wide;

static const int64_t edges[] = {
    0, 1, -1, 2, -2, 3, 7, 1000, INT32_MAX, INT32_MIN, INT64_C(1) << 31,
    INT64_C(1) << 32, INT64_C(3037000499), INT64_C(3037000500),
    INT64_C(1) << 62, -(INT64_C(1) << 62), INT64_MAX, INT64_MAX - 1,
    INT64_MIN, INT64_MIN + 1};

static bool fits(wide value)
{
    return value >= INT64_MIN && value <= INT64_MAX;
}

UNIT(signed_sums_and_products_are_right_or_refused)
{
    for (size_t i = 0; i < COUNT(edges); i++)
        for (size_t k = 0; k < COUNT(edges); k++) {
            const wide sum = (wide)edges[i] + edges[k];
            const wide product = (wide)edges[i] * edges[k];
            int64_t got = 0;

            assert_int_equal(attn__add_i64(edges[i], edges[k], &got),
                             fits(sum));
            if (fits(sum))
                assert_true(got == (int64_t)sum);
            assert_int_equal(attn__mul_i64(edges[i], edges[k], &got),
                             fits(product));
            if (fits(product))
                assert_true(got == (int64_t)product);
        }
}

UNIT(a_saturating_sum_stops_at_the_ends)
{
    for (size_t i = 0; i < COUNT(edges); i++)
        for (size_t k = 0; k < COUNT(edges); k++) {
            const wide sum = (wide)edges[i] + edges[k];
            const int64_t held = sum > INT64_MAX   ? INT64_MAX
                                 : sum < INT64_MIN ? INT64_MIN
                                                   : (int64_t)sum;

            assert_true(attn__saturating_add(edges[i], edges[k]) == held);
        }
}

UNIT(sizes_are_right_or_refused)
{
    size_t got = 0;

    assert_true(attn__add_size(SIZE_MAX - 1, 1, &got));
    assert_true(got == SIZE_MAX);
    assert_false(attn__add_size(SIZE_MAX, 1, &got));
    assert_true(attn__mul_size(SIZE_MAX / 3, 3, &got));
    assert_true(got == SIZE_MAX / 3 * 3);
    assert_false(attn__mul_size(SIZE_MAX / 3 + 1, 3, &got));
    assert_true(attn__mul_size(SIZE_MAX, 0, &got));
    assert_true(got == 0);
}

/* Files have been let in by a guard whose own product wrapped to 4. */
UNIT(a_product_that_wraps_to_something_small_is_refused)
{
    int64_t elements = 1;
    bool ok = true;
    static const int64_t shape[] = {4194305, 4194305, 211106198978564};

    for (size_t axis = 0; axis < COUNT(shape); axis++)
        ok = ok && attn__mul_i64(elements, shape[axis], &elements);
    assert_false(ok);
}

UNIT(alignment_goes_up_and_never_round_to_zero)
{
    static const struct {
        size_t size, alignment, up;
    } rows[] = {{0, 64, 0},     {1, 64, 64},  {63, 64, 64}, {64, 64, 64},
                {65, 64, 128},  {5, 1, 5},    {7, 8, 8},    {9, 8, 16},
                {SIZE_MAX - 63, 64, SIZE_MAX - 63}};
    size_t up = 0;

    for (size_t r = 0; r < COUNT(rows); r++) {
        assert_true(attn__align_size(rows[r].size, rows[r].alignment, &up));
        assert_true(up == rows[r].up);
    }
    assert_false(attn__align_size(SIZE_MAX - 62, 64, &up));
    assert_false(attn__align_size(SIZE_MAX, 2, &up));
}

UNIT(small_helpers)
{
    assert_true(attn__min_i64(-3, 2) == -3 && attn__min_i64(2, -3) == -3);
    assert_true(attn__max_i64(-3, 2) == 2 && attn__max_i64(2, -3) == 2);
    assert_true(attn__ceil_div(0, 4) == 0);
    assert_true(attn__ceil_div(1, 4) == 1);
    assert_true(attn__ceil_div(4, 4) == 1);
    assert_true(attn__ceil_div(5, 4) == 2);
    assert_true(attn__ceil_div(INT64_MAX, 2) == INT64_MAX / 2 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signed_sums_and_products_are_right_or_refused),
        cmocka_unit_test(a_saturating_sum_stops_at_the_ends),
        cmocka_unit_test(sizes_are_right_or_refused),
        cmocka_unit_test(a_product_that_wraps_to_something_small_is_refused),
        cmocka_unit_test(alignment_goes_up_and_never_round_to_zero),
        cmocka_unit_test(small_helpers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
