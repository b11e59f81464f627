/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product of f32, AVX2 and FMA, accumulated in f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_F32
#define NAME f32_avx2
#include "kernels/simd/simd_avx2.h"
#include "kernels/tmpl/names_tmpl.h"

#include "kernels/tmpl/product_tmpl.h"

#include "kernels/tmpl/gemm_tmpl.h"
