/* SPDX-License-Identifier: Apache-2.0
 *
 * Ways to call a subject, and attempts, one for each. */
#ifndef ATTN_DOCTOR_ATTEMPT_H
#define ATTN_DOCTOR_ATTEMPT_H

#include "doctor/exam.h"

/* How to call: the layout, and what else binding.h leaves open. */
typedef struct attn__way {
    attn__layout layout;
    bool weights_out, q_flat, kv_single, one_length, drop_off;
    attn__fusion fusion;
    int32_t fusion_axis;
    bool varlen; /* packed sequences, where that is optional */
} attn__way;

/* Ask everything in this way, and explain the answers. */
bool attn__attempt_way(attn__exam *exam, attn__way way, int most,
                       attn__attempt *attempt);
/* Axes of q before its length: a batch, heads. */
int attn__axes_before_length(const attn__attempt *attempt);
/* Does it take packed sequences and nothing else? */
bool attn__is_packing(const attn__binding *binding);
/* Is its explanation one that another layout would make needless? */
bool attn__is_suspect(const attn__attempt *attempt);

#endif
