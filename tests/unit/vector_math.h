/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector functions of src/kernels/tmpl/exp_tmpl.h at one level, as
 * functions on arrays: each instance file makes one of these. A new level is
 * an instance file and a line in vector_math_instances. */
#ifndef ATTN_TESTS_VECTOR_MATH_H
#define ATTN_TESTS_VECTOR_MATH_H

#include <stddef.h>

/* Arrays are aligned to 64 bytes and have a multiple of 16 elements. */
typedef struct vector_math {
    const char *name;
    int bits; /* of an element: 32 or 64 */
    void (*exp)(const void *x, void *y, ptrdiff_t n);
    void (*tanh)(const void *x, void *y, ptrdiff_t n);
    void (*tanh_slope)(const void *x, void *y, ptrdiff_t n);
} vector_math;

extern const vector_math vector_math_f32_scalar, vector_math_f64_scalar;

#endif
