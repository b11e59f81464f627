/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals in words: what attn__fail and its two macros put into a diag. */
#include "core/diag.h"

#include "unit.h"

#include <string.h>

UNIT(a_failure_says_field_value_and_rule)
{
    attn_diag diag;

    memset(&diag, 0xa5, sizeof diag);
    assert_int_equal(attn__fail(&diag, ATTN_E_SHAPE, "heads_kv",
                                "%d does not divide %d", 3, 8),
                     ATTN_E_SHAPE);
    assert_int_equal(diag.status, ATTN_E_SHAPE);
    assert_string_equal(diag.field, "heads_kv");
    assert_string_equal(diag.message, "3 does not divide 8");
}

UNIT(nobody_has_to_bring_a_diag)
{
    assert_int_equal(attn__fail(NULL, ATTN_E_ARG, "x", "%s", "y"), ATTN_E_ARG);
    assert_int_equal(attn__ok(NULL), ATTN_OK);
}

UNIT(text_that_does_not_fit_is_cut_and_terminated)
{
    struct {
        attn_diag diag;
        char after[8];
    } guarded;
    char longer[400];

    memset(longer, 'm', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    memset(&guarded, 0xa5, sizeof guarded);
    attn__fail(&guarded.diag, ATTN_E_ARG, longer, "%s", longer);
    assert_int_equal(strlen(guarded.diag.field), 31);
    assert_int_equal(strlen(guarded.diag.message), 159);
    for (size_t i = 0; i < sizeof guarded.after; i++)
        assert_int_equal((unsigned char)guarded.after[i], 0xa5);
}

UNIT(success_clears_what_an_earlier_failure_left)
{
    attn_diag diag;

    attn__fail(&diag, ATTN_E_ARG, "scale", "is NaN");
    assert_int_equal(attn__ok(&diag), ATTN_OK);
    assert_int_equal(diag.status, ATTN_OK);
    assert_string_equal(diag.field, "");
    assert_string_equal(diag.message, "");
}

static attn_status require(int value, attn_diag *diag)
{
    ATTN__REQUIRE(value > 0, diag, ATTN_E_SHAPE, "value", "is %d", value);
    return ATTN_OK;
}

static attn_status try_require(int value, int *reached, attn_diag *diag)
{
    ATTN__TRY(require(value, diag));
    *reached = 1;
    return ATTN_OK;
}

UNIT(require_returns_at_the_first_broken_rule)
{
    attn_diag diag;
    int reached = 0;

    assert_int_equal(try_require(0, &reached, &diag), ATTN_E_SHAPE);
    assert_int_equal(reached, 0);
    assert_string_equal(diag.message, "is 0");
    assert_int_equal(try_require(1, &reached, &diag), ATTN_OK);
    assert_int_equal(reached, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_says_field_value_and_rule),
        cmocka_unit_test(nobody_has_to_bring_a_diag),
        cmocka_unit_test(text_that_does_not_fit_is_cut_and_terminated),
        cmocka_unit_test(success_clears_what_an_earlier_failure_left),
        cmocka_unit_test(require_returns_at_the_first_broken_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
