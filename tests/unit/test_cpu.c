/* SPDX-License-Identifier: Apache-2.0
 *
 * CPU facts: the names of levels, what ATTN_ISA does, and that describing is
 * safe for any size. ATTN_ISA is read once a process, so each value is tried
 * in a child. */
#include "core/cpu.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

UNIT(levels_have_names)
{
    assert_string_equal(attn_isa_name(ATTN_ISA_BEST), "best");
    assert_string_equal(attn_isa_name(ATTN_ISA_SCALAR), "scalar");
    assert_string_equal(attn_isa_name(ATTN_ISA_AVX2), "avx2");
    assert_string_equal(attn_isa_name(ATTN_ISA_AVX512), "avx512");
    assert_string_equal(attn_isa_name(ATTN_ISA_AMX), "amx");
    assert_string_equal(attn_isa_name((attn_isa)5), "unknown");
    assert_string_equal(attn_isa_name((attn_isa)-1), "unknown");
}

UNIT(names_are_levels_and_nothing_else_is)
{
    static const char *const wrong[] = {NULL,    "",      "AVX2",    "avx",
                                        "avx2 ", " avx2", "avx5122", "best",
                                        "0",     "sse2"};

    for (int isa = ATTN_ISA_SCALAR; isa <= ATTN_ISA_AMX; isa++)
        assert_int_equal(attn__isa_from_name(attn_isa_name((attn_isa)isa)),
                         isa);
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(attn__isa_from_name(wrong[i]), ATTN_ISA_BEST);
}

/* The level that a fresh process finds under ATTN_ISA = value. */
static int level_under(const char *value)
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        if (value)
            setenv("ATTN_ISA", value, 1);
        else
            unsetenv("ATTN_ISA");
        _exit((int)attn_cpu_isa());
    }
    assert_true(child > 0);
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

UNIT(the_environment_only_lowers_the_level)
{
    const int best = level_under(NULL);

    assert_in_range(best, ATTN_ISA_SCALAR, ATTN_ISA_AMX);
    for (int isa = ATTN_ISA_SCALAR; isa <= ATTN_ISA_AMX; isa++)
        assert_int_equal(level_under(attn_isa_name((attn_isa)isa)),
                         isa < best ? isa : best);
    assert_int_equal(level_under(""), best);
    assert_int_equal(level_under("fastest"), best);
}

UNIT(a_level_needs_the_one_below)
{
    const unsigned features = attn__cpu_facts()->features;

    if (features & ATTN__CPU_AMX_BF16)
        assert_true(features & ATTN__CPU_AVX512);
    if (features & ATTN__CPU_AVX512)
        assert_true(features & ATTN__CPU_AVX2_FMA);
    assert_true(strlen(attn__cpu_facts()->model) > 0);
}

UNIT(describing_fits_any_size)
{
    const size_t whole = attn_cpu_describe(NULL, 0);
    char text[512], cut[512];

    assert_in_range(whole, 1, sizeof text - 1);
    assert_int_equal(attn_cpu_describe(text, sizeof text), whole);
    assert_int_equal(strlen(text), whole);
    assert_non_null(strstr(text, attn_isa_name(attn_cpu_isa())));
    for (size_t size = 1; size <= whole + 1; size++) {
        memset(cut, 'z', sizeof cut);
        assert_int_equal(attn_cpu_describe(cut, size), whole);
        assert_int_equal(strlen(cut), size - 1);
        assert_memory_equal(cut, text, size - 1);
        assert_int_equal(cut[size], 'z');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_only_lowers_the_level),
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(names_are_levels_and_nothing_else_is),
        cmocka_unit_test(a_level_needs_the_one_below),
        cmocka_unit_test(describing_fits_any_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
