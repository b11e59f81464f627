/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product of f64, AVX2 and FMA, accumulated in f64. */
#define REAL_BITS 64
#define STORAGE STORAGE_F64
#define NAME f64_avx2
#include "kernels/simd/simd_avx2.h"
#include "kernels/tmpl/names_tmpl.h"

#include "kernels/tmpl/product_tmpl.h"

#include "kernels/tmpl/gemm_tmpl.h"
