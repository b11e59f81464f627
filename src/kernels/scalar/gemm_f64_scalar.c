/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product of f64, portable vectors, accumulated in f64. */
#define REAL_BITS 64
#define STORAGE STORAGE_F64
#define NAME f64_scalar
#include "kernels/simd/simd_scalar.h"
#include "kernels/tmpl/names_tmpl.h"

#include "kernels/tmpl/product_tmpl.h"

#include "kernels/tmpl/gemm_tmpl.h"
