/* SPDX-License-Identifier: Apache-2.0
 *
 * What cmocka.h needs before it, once for all unit tests. */
#ifndef ATTN_TESTS_UNIT_H
#define ATTN_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* cmocka hands every test a state; ours keep none. */
#define UNIT(name) static void name(void **state __attribute__((unused)))

#endif
