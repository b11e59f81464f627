/* SPDX-License-Identifier: Apache-2.0
 *
 * The workspace: what attn_plan_workspace promises about its numbers, and the
 * rules of its arguments. */
#include "plan/plan.h"

#include "unit.h"

#include <string.h>

static attn_plan plan_of(uint32_t inputs, int64_t len)
{
    attn_desc desc;
    attn_plan plan;

    attn_desc_init(&desc, ATTN_F32, 2, 8, 4, len, len, 64, 32);
    desc.inputs = inputs;
    assert_int_equal(attn_plan_init(&plan, &desc, NULL), ATTN_OK);
    return plan;
}

static attn_workspace ask(const attn_plan *plan, int pass, int64_t threads)
{
    attn_workspace w;

    memset(&w, 0xa5, sizeof w);
    assert_int_equal(attn_plan_workspace(plan, (attn_pass)pass, threads, &w,
                                         NULL),
                     ATTN_OK);
    return w;
}

UNIT(the_size_is_shared_and_a_slot_per_thread)
{
    static const int64_t threads[] = {1, 2, 7, 1024};
    const attn_plan plan = plan_of(ATTN_WITH_SINKS | ATTN_WITH_ALIBI, 100);

    for (int pass = ATTN_FORWARD; pass <= ATTN_WEIGHTS; pass++) {
        const attn_workspace one = ask(&plan, pass, 1);

        assert_true(one.slot > 0);
        assert_true(one.alignment && !(one.alignment & (one.alignment - 1)));
        assert_true(one.slot % one.alignment == 0);
        assert_true(one.shared % one.alignment == 0);
        for (size_t t = 0; t < COUNT(threads); t++) {
            const attn_workspace w = ask(&plan, pass, threads[t]);

            assert_true(w.shared == one.shared && w.slot == one.slot);
            assert_true(w.size ==
                        w.shared + (size_t)threads[t] * w.slot);
        }
    }
}

/* O(L), and for forward not even that. */
UNIT(it_never_grows_with_the_square_of_the_length)
{
    const attn_plan small = plan_of(0xff & ~ATTN_WITH_VARLEN, 1 << 10);
    const attn_plan large = plan_of(0xff & ~ATTN_WITH_VARLEN, 1 << 20);

    for (int pass = ATTN_FORWARD; pass <= ATTN_WEIGHTS; pass++) {
        const attn_workspace s = ask(&small, pass, 1);
        const attn_workspace l = ask(&large, pass, 1);

        assert_true(l.slot == s.slot);
        assert_true(l.shared <= s.shared << 10);
    }
}

UNIT(arguments)
{
    const attn_plan plan = plan_of(0, 16);
    static const struct {
        attn_pass pass;
        int64_t threads;
        const char *field;
    } rows[] = {
        {(attn_pass)3, 1, "pass"},     {(attn_pass)-1, 1, "pass"},
        {ATTN_FORWARD, 0, "threads"},  {ATTN_FORWARD, -1, "threads"},
        {ATTN_FORWARD, 1025, "threads"}, {ATTN_FORWARD, INT64_MAX, "threads"},
    };
    attn_workspace w;
    attn_diag diag;

    for (size_t r = 0; r < COUNT(rows); r++) {
        assert_int_equal(attn_plan_workspace(&plan, rows[r].pass,
                                             rows[r].threads, &w, &diag),
                         ATTN_E_ARG);
        assert_string_equal(diag.field, rows[r].field);
    }
    assert_int_equal(attn_plan_workspace(&plan, ATTN_FORWARD, 1, NULL, &diag),
                     ATTN_E_ARG);
    assert_string_equal(diag.field, "workspace");
}

/* A slot of most of the memory, times 1024. */
UNIT(a_size_that_does_not_fit_is_refused)
{
    attn_desc desc;
    attn_plan plan;
    attn_workspace w;
    attn_diag diag;

    attn_desc_init(&desc, ATTN_F64, 1, 1, 1, 1, 1, INT64_C(1) << 48, 1);
    assert_int_equal(attn_plan_init(&plan, &desc, &diag), ATTN_OK);
    assert_int_equal(attn_plan_workspace(&plan, ATTN_FORWARD, 1, &w, &diag),
                     ATTN_OK);
    assert_int_equal(attn_plan_workspace(&plan, ATTN_FORWARD, 1024, &w,
                                         &diag),
                     ATTN_E_OVERFLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_size_is_shared_and_a_slot_per_thread),
        cmocka_unit_test(it_never_grows_with_the_square_of_the_length),
        cmocka_unit_test(arguments),
        cmocka_unit_test(a_size_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
