/* SPDX-License-Identifier: Apache-2.0
 *
 * What cmocka.h needs before it, once for all unit tests. */
#ifndef ATTN_TESTS_UNIT_H
#define ATTN_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* cmocka hands every test a state; ours keep none. */
#define UNIT(name) static void name(void **state __attribute__((unused)))

/* Whether long double is wider than double where the program runs: the type may
 * be, and valgrind still computes it in 64 bits (and loses its NaN in expl).
 * What is measured in long double then has nothing to be measured by. */
static inline bool long_double_is_wide(void)
{
    const volatile long double one = 1, tiny = 0x1p-60L;

    return one + tiny != one;
}

#endif
