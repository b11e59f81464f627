/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector functions of src/kernels/tmpl/exp_tmpl.h at one level, as
 * functions on arrays: each instance file makes one of these. A new level is
 * two instance files and two lines in test_vector_math.c. */
#ifndef ATTN_TESTS_VECTOR_MATH_H
#define ATTN_TESTS_VECTOR_MATH_H

#include <stddef.h>

/* Arrays are aligned to 64 bytes and have a multiple of 16 elements. */
typedef void vector_function(const void *x, void *y, ptrdiff_t n);

typedef struct vector_math {
    const char *name;
    int bits; /* of an element: 32 or 64 */
    vector_function *exp, *exp_negative, *tanh, *tanh_slope;
} vector_math;

extern const vector_math vector_math_f32_scalar, vector_math_f64_scalar;
#ifdef __x86_64__
extern const vector_math vector_math_f32_avx2, vector_math_f64_avx2;
extern const vector_math vector_math_f32_avx512, vector_math_f64_avx512;
#endif

#endif
