/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector functions of fp32 at the avx512 level. */
#define REAL_BITS 32
#define INSTANCE vector_math_f32_avx512
#include "kernels/simd/simd_avx512.h"
#include "vector_math_tmpl.h"
