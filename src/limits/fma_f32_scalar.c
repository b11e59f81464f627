/* SPDX-License-Identifier: Apache-2.0
 *
 * The multiply-add loop of fp32 at the scalar level. */
#define REAL_BITS 32
#define NAME f32_scalar
#include "kernels/simd/simd_scalar.h"
#include "limits/fma_tmpl.h"
