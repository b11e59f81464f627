/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of views beyond test_tensor.c: shapes, broadcasting, sameness,
 * and how shapes read in a sentence. */
#include "core/tensor.h"

#include "unit.h"

#include <string.h>

static float data[64];

static attn_input view(int32_t rank, const int64_t *shape)
{
    return attn_in_dense(data, ATTN_F32, rank, shape);
}

#define VIEW(...)                                                             \
    view((int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),       \
         (int64_t[]){__VA_ARGS__})

UNIT(shapes_read_as_tuples)
{
    const int64_t shape[] = {2, 8, -1, INT64_MAX};
    char text[64];

    assert_string_equal(attn__shape_text(text, sizeof text, 0, shape), "()");
    assert_string_equal(attn__shape_text(text, sizeof text, 1, shape), "(2)");
    assert_string_equal(attn__shape_text(text, sizeof text, 4, shape),
                        "(2, 8, -1, 9223372036854775807)");
    for (size_t size = 2; size < 10; size++) {
        memset(text, 'z', sizeof text);
        attn__shape_text(text, size, 4, shape);
        assert_true(strlen(text) < size);
        assert_int_equal(text[size], 'z');
    }
}

UNIT(a_shape_is_exact)
{
    const int64_t shape[] = {2, 3};
    const attn_input fits = VIEW(2, 3), longer = VIEW(2, 4);
    const attn_input more = VIEW(1, 2, 3);
    attn_diag diag;

    assert_int_equal(attn__check_shape(&fits, "t", 2, shape, &diag), ATTN_OK);
    assert_int_equal(attn__check_shape(&longer, "t", 2, shape, &diag),
                     ATTN_E_SHAPE);
    assert_string_equal(diag.field, "t");
    assert_string_equal(diag.message, "has shape (2, 4), must be (2, 3)");
    assert_int_equal(attn__check_shape(&more, "t", 2, shape, &diag),
                     ATTN_E_SHAPE);
}

UNIT(broadcasting_is_from_the_right)
{
    const int64_t shape[] = {2, 3, 4};
    const attn_input good[] = {VIEW(2, 3, 4), VIEW(1, 3, 1), VIEW(4),
                               VIEW(1), VIEW(3, 4)};
    const attn_input bad[] = {VIEW(2, 3), VIEW(3), VIEW(1, 2, 3, 4),
                              VIEW(2, 1, 5), VIEW(0)};
    const attn_input scalar = view(0, NULL);

    for (size_t i = 0; i < COUNT(good); i++)
        assert_int_equal(
            attn__check_broadcast(&good[i], "t", 3, shape, NULL), ATTN_OK);
    assert_int_equal(attn__check_broadcast(&scalar, "t", 3, shape, NULL),
                     ATTN_OK);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(attn__check_broadcast(&bad[i], "t", 3, shape, NULL),
                         ATTN_E_SHAPE);
}

UNIT(the_same_view)
{
    const attn_input t = VIEW(2, 1, 3);
    attn_input other = t;

    assert_true(attn__same_view(&t, &other));
    other.stride[1] = 77; /* of an axis with one element */
    assert_true(attn__same_view(&t, &other));
    other.stride[0]++;
    assert_false(attn__same_view(&t, &other));
    other = t;
    other.data = data + 1;
    assert_false(attn__same_view(&t, &other));
    other = t;
    other.dtype = ATTN_I32;
    assert_false(attn__same_view(&t, &other));
    other = VIEW(2, 3);
    assert_false(attn__same_view(&t, &other));
    other = VIEW(2, 1, 2);
    other.stride[0] = 3;
    assert_false(attn__same_view(&t, &other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_read_as_tuples),
        cmocka_unit_test(a_shape_is_exact),
        cmocka_unit_test(broadcasting_is_from_the_right),
        cmocka_unit_test(the_same_view),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
