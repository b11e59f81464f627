/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward of few f64 queries, portable vectors, accumulated in f64. */
#define REAL_BITS 64
#define STORAGE STORAGE_F64
#define NAME f64_scalar
#define TILE_VECTORS 1
#include "kernels/simd/simd_scalar.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/softmax_tmpl.h"

#include "kernels/tmpl/decode_tmpl.h"
