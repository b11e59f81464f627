/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward of f64 (dq, dk and dv, dbias), AVX2 and FMA, accumulated in
 * f64. */
#define REAL_BITS 64
#define STORAGE STORAGE_F64
#define NAME f64_avx2
#include "kernels/simd/simd_avx2.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/bwd_tmpl.h"
