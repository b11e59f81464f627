/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward of few bf16 queries, AVX2 and FMA, accumulated in f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_BF16
#define NAME bf16_avx2
#define TILE_VECTORS 1
#include "kernels/simd/simd_avx2.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/softmax_tmpl.h"

#include "kernels/tmpl/decode_tmpl.h"
