/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward of f32 (dq, dk and dv, dbias), AVX2 and FMA, accumulated in
 * f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_F32
#define NAME f32_avx2
#include "kernels/simd/simd_avx2.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/bwd_tmpl.h"
