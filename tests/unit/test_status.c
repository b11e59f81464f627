/* SPDX-License-Identifier: Apache-2.0
 *
 * Statuses, element types and the version, as attn.h promises them. */
#include "attn.h"

#include "unit.h"

#include <string.h>

/* The numbers are the ABI: they never change. */
UNIT(statuses_keep_their_numbers)
{
    static const struct {
        attn_status status;
        int value;
        const char *name;
    } rows[] = {
        {ATTN_OK, 0, "OK"},
        {ATTN_E_ARG, 1, "E_ARG"},
        {ATTN_E_SHAPE, 2, "E_SHAPE"},
        {ATTN_E_DTYPE, 3, "E_DTYPE"},
        {ATTN_E_UNSUPPORTED, 4, "E_UNSUPPORTED"},
        {ATTN_E_NOMEM, 5, "E_NOMEM"},
        {ATTN_E_WORKSPACE, 6, "E_WORKSPACE"},
        {ATTN_E_OVERFLOW, 7, "E_OVERFLOW"},
        {ATTN_E_FORMAT, 8, "E_FORMAT"},
        {ATTN_E_TRUNCATED, 9, "E_TRUNCATED"},
        {ATTN_E_LIMIT, 10, "E_LIMIT"},
        {ATTN_E_DUPLICATE, 11, "E_DUPLICATE"},
        {ATTN_E_MISMATCH, 12, "E_MISMATCH"},
        {ATTN_E_IO, 13, "E_IO"},
    };

    for (size_t r = 0; r < COUNT(rows); r++) {
        assert_int_equal(rows[r].status, rows[r].value);
        assert_string_equal(attn_status_name(rows[r].status), rows[r].name);
        assert_true(strlen(attn_status_text(rows[r].status)) > 0);
    }
}

UNIT(a_number_that_is_no_status_has_a_name_too)
{
    assert_string_equal(attn_status_name((attn_status)-1), "unknown");
    assert_string_equal(attn_status_name((attn_status)14), "unknown");
    assert_non_null(attn_status_text((attn_status)14));
}

UNIT(the_version_is_the_headers)
{
    assert_int_equal(attn_version(), ATTN_VERSION_MAJOR << 16 |
                                         ATTN_VERSION_MINOR << 8 |
                                         ATTN_VERSION_PATCH);
}

UNIT(element_types_have_sizes_and_names)
{
    static const struct {
        attn_dtype dtype;
        int value;
        size_t size;
        const char *name;
    } rows[] = {
        {ATTN_NONE, 0, 0, "none"}, {ATTN_F64, 1, 8, "f64"},
        {ATTN_F32, 2, 4, "f32"},   {ATTN_BF16, 3, 2, "bf16"},
        {ATTN_F16, 4, 2, "f16"},   {ATTN_BOOL, 5, 1, "bool"},
        {ATTN_I32, 6, 4, "i32"},   {ATTN_I64, 7, 8, "i64"},
        {(attn_dtype)8, 8, 0, "unknown"},
    };

    for (size_t r = 0; r < COUNT(rows); r++) {
        assert_int_equal(rows[r].dtype, rows[r].value);
        assert_int_equal(attn_dtype_size(rows[r].dtype), rows[r].size);
        assert_string_equal(attn_dtype_name(rows[r].dtype), rows[r].name);
    }
    assert_string_equal(attn_dtype_name((attn_dtype)-1), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_keep_their_numbers),
        cmocka_unit_test(a_number_that_is_no_status_has_a_name_too),
        cmocka_unit_test(the_version_is_the_headers),
        cmocka_unit_test(element_types_have_sizes_and_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
