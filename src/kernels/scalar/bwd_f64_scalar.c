/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward of f64 (dq, dk and dv, dbias), portable vectors, accumulated in
 * f64. */
#define REAL_BITS 64
#define STORAGE STORAGE_F64
#define NAME f64_scalar
#include "kernels/simd/simd_scalar.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/bwd_tmpl.h"
