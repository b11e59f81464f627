/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward of few f32 queries, AVX2 and FMA, accumulated in f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_F32
#define NAME f32_avx2
#define TILE_VECTORS 1
#include "kernels/simd/simd_avx2.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/softmax_tmpl.h"

#include "kernels/tmpl/decode_tmpl.h"
