/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector functions of fp64 at the avx512 level. */
#define REAL_BITS 64
#define INSTANCE vector_math_f64_avx512
#include "kernels/simd/simd_avx512.h"
#include "vector_math_tmpl.h"
