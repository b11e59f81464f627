/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector functions of fp32 at the scalar level. */
#define REAL_BITS 32
#define INSTANCE vector_math_f32_scalar
#include "kernels/simd/simd_scalar.h"
#include "vector_math_tmpl.h"
