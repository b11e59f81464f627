/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward of f16 (dq, dk and dv, dbias), AVX-512, accumulated in
 * f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_F16
#define NAME f16_avx512
#include "kernels/simd/simd_avx512.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/bwd_tmpl.h"
