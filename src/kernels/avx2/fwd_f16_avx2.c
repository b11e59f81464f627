/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward and weights of f16, AVX2 and FMA, accumulated in f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_F16
#define NAME f16_avx2
#include "kernels/simd/simd_avx2.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/softmax_tmpl.h"

#include "kernels/tmpl/fwd_tmpl.h"

#include "kernels/tmpl/weights_tmpl.h"
