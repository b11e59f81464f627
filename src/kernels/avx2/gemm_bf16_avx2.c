/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product of bf16, AVX2 and FMA, accumulated in f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_BF16
#define NAME bf16_avx2
#include "kernels/simd/simd_avx2.h"
#include "kernels/tmpl/names_tmpl.h"

#include "kernels/tmpl/product_tmpl.h"

#include "kernels/tmpl/gemm_tmpl.h"
