/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator hook: who is called, with how much, and what a failure
 * leaves. */
#include "core/alloc.h"

#include "attn.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static int n_realloc, n_free, live;
static size_t last_size;
static int refuse; /* every request is refused while this is set */

static void *counting_realloc(void *ptr, size_t size)
{
    n_realloc++;
    last_size = size;
    if (refuse)
        return NULL;
    live += ptr == NULL;
    return realloc(ptr, size);
}

static void counting_free(void *ptr)
{
    n_free++;
    live--;
    free(ptr);
}

static int hook(void **state)
{
    (void)state;
    n_realloc = n_free = live = refuse = 0;
    attn_set_allocator(counting_realloc, counting_free);
    return 0;
}

static int unhook(void **state)
{
    (void)state;
    attn_set_allocator(NULL, NULL);
    return live; /* a leak fails the test that made it */
}

UNIT(every_request_goes_to_the_hook)
{
    char *text = attn__strdup("attention");
    int *zeros = attn__calloc(5, sizeof *zeros);
    void *some = attn__alloc(100);

    assert_int_equal(n_realloc, 3);
    assert_int_equal(last_size, 100);
    assert_string_equal(text, "attention");
    for (int i = 0; i < 5; i++)
        assert_int_equal(zeros[i], 0);
    some = attn__realloc_array(some, 30, 10);
    assert_int_equal(last_size, 300);
    attn__free(text);
    attn__free(zeros);
    attn__free(some);
    assert_int_equal(n_free, 3);
}

UNIT(zero_bytes_give_a_pointer)
{
    void *alloc = attn__alloc(0), *calloc = attn__calloc(0, 8);
    void *array = attn__realloc_array(NULL, 0, 8);

    assert_non_null(alloc);
    assert_non_null(calloc);
    assert_non_null(array);
    attn__free(alloc);
    attn__free(calloc);
    attn__free(array);
}

UNIT(freeing_null_calls_nobody)
{
    attn__free(NULL);
    assert_int_equal(n_free, 0);
}

UNIT(sizes_that_overflow_never_reach_the_hook)
{
    void *some = attn__alloc(8);

    assert_null(attn__calloc(SIZE_MAX / 2, 3));
    assert_null(attn__realloc_array(some, SIZE_MAX / 2, 3));
    assert_int_equal(n_realloc, 1);
    attn__free(some);
}

UNIT(on_refusal_the_old_block_stands)
{
    char *some = attn__alloc(8);

    memcpy(some, "1234567", 8);
    refuse = 1;
    assert_null(attn__alloc(8));
    assert_null(attn__calloc(8, 8));
    assert_null(attn__strdup("x"));
    assert_null(attn__realloc_array(some, 4, 4));
    assert_string_equal(some, "1234567");
    attn__free(some);
}

UNIT(null_restores_the_c_library)
{
    void *some;

    attn_set_allocator(NULL, NULL);
    some = attn__alloc(8);
    assert_non_null(some);
    assert_int_equal(n_realloc, 0);
    attn__free(some);
    assert_int_equal(n_free, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_request_goes_to_the_hook, hook,
                                        unhook),
        cmocka_unit_test_setup_teardown(zero_bytes_give_a_pointer, hook,
                                        unhook),
        cmocka_unit_test_setup_teardown(freeing_null_calls_nobody, hook,
                                        unhook),
        cmocka_unit_test_setup_teardown(
            sizes_that_overflow_never_reach_the_hook, hook, unhook),
        cmocka_unit_test_setup_teardown(on_refusal_the_old_block_stands, hook,
                                        unhook),
        cmocka_unit_test_setup_teardown(null_restores_the_c_library, hook,
                                        unhook),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
