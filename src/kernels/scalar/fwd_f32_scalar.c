/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward and weights of f32, portable vectors, accumulated in f32. */
#define REAL_BITS 32
#define STORAGE STORAGE_F32
#define NAME f32_scalar
#include "kernels/simd/simd_scalar.h"
#include "kernels/tmpl/prelude_tmpl.h"

#include "kernels/tmpl/softmax_tmpl.h"

#include "kernels/tmpl/fwd_tmpl.h"

#include "kernels/tmpl/weights_tmpl.h"
