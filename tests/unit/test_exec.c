/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of attn_exec, and workspaces that are taken for a call. */
#include "core/exec.h"

#include "unit.h"

#include <stdlib.h>

UNIT(threads_are_1_to_1024)
{
    attn_diag diag;

    assert_int_equal(attn__check_threads(1, &diag), ATTN_OK);
    assert_int_equal(attn__check_threads(1024, &diag), ATTN_OK);
    assert_int_equal(attn__check_threads(0, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "threads");
    assert_string_equal(diag.message, "must be 1 to 1024, got 0");
    assert_int_equal(attn__check_threads(1025, &diag), ATTN_E_ARG);
}

UNIT(an_exec_is_there_and_of_this_version)
{
    attn_exec exec;
    attn_diag diag;

    attn_exec_init(&exec);
    assert_int_equal(attn__check_exec(&exec, &diag), ATTN_OK);
    assert_int_equal(attn__check_exec(NULL, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "exec");
    exec.size--;
    assert_int_equal(attn__check_exec(&exec, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "size");
    exec.size++;
    exec.threads = 0;
    assert_int_equal(attn__check_exec(&exec, &diag), ATTN_E_ARG);
    assert_string_equal(diag.field, "threads");
}

UNIT(a_workspace_is_large_enough_and_aligned)
{
    static _Alignas(64) char memory[256];
    const attn_workspace need = {128, 64, 0, 0}, nothing = {0, 64, 0, 0};
    attn_exec exec;
    attn_diag diag;

    attn_exec_init(&exec);
    exec.workspace = memory;
    exec.workspace_size = 128;
    assert_int_equal(attn__check_workspace(&exec, &need, &diag), ATTN_OK);
    exec.workspace_size = 127;
    assert_int_equal(attn__check_workspace(&exec, &need, &diag),
                     ATTN_E_WORKSPACE);
    assert_string_equal(diag.message, "has 127 bytes, needs 128");
    exec.workspace_size = 192;
    exec.workspace = memory + 32;
    assert_int_equal(attn__check_workspace(&exec, &need, &diag),
                     ATTN_E_WORKSPACE);
    assert_string_equal(diag.message, "must be aligned to 64 bytes");
    exec.workspace = NULL;
    assert_int_equal(attn__check_workspace(&exec, &need, &diag),
                     ATTN_E_WORKSPACE);
    assert_string_equal(diag.message, "must not be NULL");
    assert_int_equal(attn__check_workspace(&exec, &nothing, &diag), ATTN_OK);
}

static void *refuse(void *ptr, size_t size)
{
    (void)ptr;
    (void)size;
    return NULL;
}

UNIT(a_workspace_that_is_taken_passes)
{
    const attn_workspace need = {1000, 64, 0, 0};
    const attn_workspace endless = {SIZE_MAX - 8, 64, 0, 0};
    attn_exec exec;
    attn_diag diag;
    void *block = NULL;

    attn_exec_init(&exec);
    assert_int_equal(attn__take_workspace(&need, &exec, &block, &diag),
                     ATTN_OK);
    assert_int_equal(attn__check_workspace(&exec, &need, &diag), ATTN_OK);
    assert_true((char *)exec.workspace + need.size <=
                (char *)block + need.size + need.alignment);
    attn_free(block);
    assert_int_equal(attn__take_workspace(&endless, &exec, &block, &diag),
                     ATTN_E_OVERFLOW);
    attn_set_allocator(refuse, free);
    assert_int_equal(attn__take_workspace(&need, &exec, &block, &diag),
                     ATTN_E_NOMEM);
    attn_set_allocator(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_1_to_1024),
        cmocka_unit_test(an_exec_is_there_and_of_this_version),
        cmocka_unit_test(a_workspace_is_large_enough_and_aligned),
        cmocka_unit_test(a_workspace_that_is_taken_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
