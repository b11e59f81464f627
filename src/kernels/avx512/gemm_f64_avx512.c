/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product of f64, AVX-512, accumulated in f64. */
#define REAL_BITS 64
#define STORAGE STORAGE_F64
#define NAME f64_avx512
#include "kernels/simd/simd_avx512.h"
#include "kernels/tmpl/names_tmpl.h"

#include "kernels/tmpl/product_tmpl.h"

#include "kernels/tmpl/gemm_tmpl.h"
