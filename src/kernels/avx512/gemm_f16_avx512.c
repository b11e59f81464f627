/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product of f16, AVX-512, accumulated in f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_F16
#define NAME f16_avx512
#include "kernels/simd/simd_avx512.h"
#include "kernels/tmpl/names_tmpl.h"

#include "kernels/tmpl/product_tmpl.h"

#include "kernels/tmpl/gemm_tmpl.h"
