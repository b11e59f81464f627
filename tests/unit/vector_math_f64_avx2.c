/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector functions of fp64 at the avx2 level. */
#define REAL_BITS 64
#define INSTANCE vector_math_f64_avx2
#include "kernels/simd/simd_avx2.h"
#include "vector_math_tmpl.h"
