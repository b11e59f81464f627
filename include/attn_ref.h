/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_ref.h: the definition of attention, as four stages that read like the
 * formula, and their transposes. Plain loops in fp64, rows contiguous, no
 * blocks, no SIMD; it shares no code with the fast path beyond statuses,
 * Philox and half conversion. Slow on purpose: use attn.h to compute.
 *
 * All arrays are dense and row-major in `attn_ref_real`, which is double
 * (the tests also compile it as long double).
 *
 *   scores   q, k            -> s        transpose: ds -> dq, dk
 *   visible  geometry, mask, bias, s -> visible (bool)
 *   softmax  s, visible      -> p, lse   transpose: dp, dlse -> ds
 *   output   p, v, dropout   -> o        transpose: do -> dp, dv
 *
 * Since 0.1. */
#ifndef ATTN_REF_H
#define ATTN_REF_H

#include "attn.h"

#ifndef ATTN_REF_REAL
#define ATTN_REF_REAL double
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef ATTN_REF_REAL attn_ref_real;

#ifdef __cplusplus
}
#endif

#endif
