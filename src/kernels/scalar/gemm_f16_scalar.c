/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product of f16, portable vectors, accumulated in f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_F16
#define NAME f16_scalar
#include "kernels/simd/simd_scalar.h"
#include "kernels/tmpl/names_tmpl.h"

#include "kernels/tmpl/product_tmpl.h"

#include "kernels/tmpl/gemm_tmpl.h"
