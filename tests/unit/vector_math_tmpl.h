/* SPDX-License-Identifier: Apache-2.0
 *
 * One instance of vector_math: included after a SIMD header, with INSTANCE
 * the name of the struct. */
#include "vector_math.h"

#include <math.h>
#include <string.h>

#include "kernels/tmpl/exp_tmpl.h"

#define INSTANCE_TEXT_(name) #name
#define INSTANCE_TEXT(name) INSTANCE_TEXT_(name)

static void all_exp(const void *x, void *y, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i += LANES)
        v_store((REAL *)y + i, v_exp(v_load((const REAL *)x + i)));
}

static void all_tanh(const void *x, void *y, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i += LANES)
        v_store((REAL *)y + i, v_tanh(v_load((const REAL *)x + i)));
}

static void all_tanh_slope(const void *x, void *y, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i += LANES)
        v_store((REAL *)y + i, v_tanh_slope(v_load((const REAL *)x + i)));
}

const vector_math INSTANCE = {INSTANCE_TEXT(INSTANCE), REAL_BITS, all_exp,
                              all_tanh, all_tanh_slope};
