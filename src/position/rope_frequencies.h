/* SPDX-License-Identifier: Apache-2.0
 *
 * The angles of rotary embedding. */
#ifndef ATTN_POSITION_ROPE_FREQUENCIES_H
#define ATTN_POSITION_ROPE_FREQUENCIES_H

#include "attn.h"

/* Check `desc` for rows of `dim`; *rotary_dim receives the width rotated. */
attn_status attn__rope_check(const attn_rope_desc *desc, int64_t dim,
                             int64_t *rotary_dim, attn_diag *diag);

/* Inverse frequency of pair m of a checked descriptor, for sequences of up to
 * seq_len positions. */
double attn__rope_inv_freq(const attn_rope_desc *desc, int64_t rotary_dim,
                           int64_t seq_len, int64_t m);

/* The factor on cos and sin. */
double attn__rope_attention_factor(const attn_rope_desc *desc);

#endif
