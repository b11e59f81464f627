/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_plan_describe: every choice is named, any buffer is safe. */
#include "kernels/gemm.h"
#include "plan/plan.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

static attn_plan some_plan(void)
{
    attn_desc desc;
    attn_plan plan;

    attn_desc_init(&desc, ATTN_BF16, 2, 8, 4, 16, 24, 128, 128);
    assert_int_equal(attn_plan_init(&plan, &desc, NULL), ATTN_OK);
    return plan;
}

UNIT(it_names_kernels_tiles_and_workspace)
{
    const attn_plan plan = some_plan();
    attn__plan body;
    attn_workspace w;
    char text[4096], bytes[64];

    assert_in_range(attn_plan_describe(&plan, text, sizeof text), 1,
                    sizeof text - 1);
    assert_int_equal(attn__plan_open(&plan, &body, NULL), ATTN_OK);
    for (int pass = 0; pass < ATTN__N_PASSES; pass++) {
        const bool other = /* a plan has one of these two */
            pass != (int)attn__forward_pass(&body.desc) &&
            (pass == ATTN__PASS_fwd || pass == ATTN__PASS_decode);

        assert_int_equal(
            strstr(text, attn__kernels[body.kernel[pass]].name) == NULL,
            other);
    }
    for (int pass = ATTN_FORWARD; pass <= ATTN_WEIGHTS; pass++) {
        attn_plan_workspace(&plan, (attn_pass)pass, 1, &w, NULL);
        snprintf(bytes, sizeof bytes, "%zu", w.slot);
        assert_non_null(strstr(text, bytes));
    }
}

UNIT(any_size_of_buffer_is_safe)
{
    const attn_plan plan = some_plan();
    char whole[4096], cut[4097];
    const size_t n = attn_plan_describe(&plan, whole, sizeof whole);

    assert_int_equal(strlen(whole), n);
    assert_int_equal(attn_plan_describe(&plan, NULL, 0), n);
    for (size_t size = 1; size <= n + 1; size++) {
        memset(cut, 'z', sizeof cut);
        assert_int_equal(attn_plan_describe(&plan, cut, size), n);
        assert_int_equal(strlen(cut), size - 1);
        assert_memory_equal(cut, whole, size - 1);
        assert_int_equal(cut[size], 'z');
    }
}

UNIT(every_kernel_is_listed_once)
{
    char text[16384];
    const size_t n = attn_kernels_describe(text, sizeof text);
    const char *at = text;

    assert_true(attn__n_kernels > 0);
    assert_in_range(n, 1, sizeof text - 1);
    assert_int_equal(strlen(text), n);
    assert_int_equal(attn_kernels_describe(NULL, 0), n);
    for (size_t i = 0; i < attn__n_kernels + attn__n_gemm_rows; i++) {
        const char *end = strchr(at, '\n');
        const char *name = i < attn__n_kernels
                               ? attn__kernels[i].name
                               : attn__gemm_rows[i - attn__n_kernels].name;

        assert_non_null(end);
        assert_memory_equal(at, name, strlen(name));
        at = end + 1;
    }
    assert_string_equal(at, "");
}

UNIT(what_is_no_plan_is_called_so)
{
    attn_plan plan;
    char text[64];

    memset(&plan, 0, sizeof plan);
    assert_in_range(attn_plan_describe(&plan, text, sizeof text), 1, 63);
    assert_string_equal(text, "not a plan\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_names_kernels_tiles_and_workspace),
        cmocka_unit_test(any_size_of_buffer_is_safe),
        cmocka_unit_test(every_kernel_is_listed_once),
        cmocka_unit_test(what_is_no_plan_is_called_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
