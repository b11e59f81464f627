/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector functions of fp64 at the scalar level. */
#define REAL_BITS 64
#define INSTANCE vector_math_f64_scalar
#include "kernels/simd/simd_scalar.h"
#include "vector_math_tmpl.h"
