/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward of few f16 queries, AVX-512, accumulated in f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_F16
#define NAME f16_avx512
#define TILE_VECTORS 1
#include "kernels/simd/simd_avx512.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/softmax_tmpl.h"

#include "kernels/tmpl/decode_tmpl.h"
