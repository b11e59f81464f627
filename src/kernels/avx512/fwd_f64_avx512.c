/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward and weights of f64, AVX-512, accumulated in f64. */
#define REAL_BITS 64
#define STORAGE STORAGE_F64
#define NAME f64_avx512
#include "kernels/simd/simd_avx512.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/softmax_tmpl.h"

#include "kernels/tmpl/fwd_tmpl.h"

#include "kernels/tmpl/weights_tmpl.h"
