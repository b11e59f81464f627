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

#define ALL(name, function)                                                    \
    static void name(const void *x, void *y, ptrdiff_t n)                      \
    {                                                                          \
        for (ptrdiff_t i = 0; i < n; i += LANES)                               \
            v_store((REAL *)y + i, function(v_load((const REAL *)x + i)));     \
    }

static inline V exp_any(V x)
{
    return v_exp_sum(x, v_set1(0));
}

ALL(all_exp, exp_any)
ALL(all_exp_negative, v_exp_negative)
ALL(all_tanh, v_tanh)
ALL(all_tanh_slope, v_tanh_slope)

const vector_math INSTANCE = {INSTANCE_TEXT(INSTANCE), REAL_BITS, all_exp,
                              all_exp_negative, all_tanh, all_tanh_slope};
