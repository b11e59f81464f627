/* SPDX-License-Identifier: Apache-2.0
 *
 * q, k and v, or k and v, in one array, as a projection leaves them. */
#ifndef ATTN_DOCTOR_FUSED_H
#define ATTN_DOCTOR_FUSED_H

#include "doctor/pass.h"

/* The one array; None where those of the question do not fit into one. */
attn_value attn__fused_value(const attn__call *call);
/* Its shape in letters: "(B, L, 3, H, D)". */
const char *attn__fused_words(const attn__binding *binding,
                              attn__arena *arena);
/* Its rank. */
int32_t attn__fused_rank(attn__layout layout, attn__fusion fusion);

#endif
