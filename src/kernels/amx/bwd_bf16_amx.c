/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward of bf16, products by AMX tiles, the rest by AVX-512. */
#define REAL_BITS 32
#define STORAGE STORAGE_BF16
#define NAME bf16_amx
#define BY_TILES 1
#define TILE_PARTS 1
#include "kernels/simd/simd_avx512.h"
#include "kernels/simd/tiles_amx.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/bwd_tmpl.h"
