/* SPDX-License-Identifier: Apache-2.0
 *
 * The multiply-add loop of fp64 at the scalar level. */
#define REAL_BITS 64
#define NAME f64_scalar
#include "kernels/simd/simd_scalar.h"
#include "limits/fma_tmpl.h"
