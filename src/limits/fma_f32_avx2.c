/* SPDX-License-Identifier: Apache-2.0
 *
 * The multiply-add loop of fp32 at the avx2 level. */
#define REAL_BITS 32
#define NAME f32_avx2
#include "kernels/simd/simd_avx2.h"
#include "limits/fma_tmpl.h"
