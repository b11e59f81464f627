/* SPDX-License-Identifier: Apache-2.0
 *
 * Manners, whatever the formula. */
#ifndef ATTN_DOCTOR_HYGIENE_H
#define ATTN_DOCTOR_HYGIENE_H

#include "doctor/exam.h"

typedef enum attn__conduct {
    CONDUCT_FINE,
    CONDUCT_NAN,       /* nothing finite on plain questions */
    CONDUCT_CONSTANT,  /* one number, whatever the question */
    CONDUCT_REMEMBERS, /* the answer depends on earlier calls */
    CONDUCT_RANDOM     /* it differs every time */
} attn__conduct;

attn__conduct attn__observe(attn__attempt *attempt);

/* Which of q, k, v its answer does not depend on: bits 1, 2, 4. */
unsigned attn__ignored_inputs(attn__attempt *attempt);
/* Does it compute in 16 bits? A change of its inputs by less than such
 * rounding then mostly changes nothing. */
bool attn__is_coarse(attn__attempt *attempt);
/* Are the answers that are wrong right for older q, k, v or lengths? */
bool attn__is_memory(attn__exam *exam, const attn__attempt *attempt);
/* Are masks wrong only where some of their axes are broadcast, or where one of
 * that shape came before? Then adds the fault. */
bool attn__explain_by_mask(attn__exam *exam, attn__attempt *attempt);
/* The simplest question with so many keys that the right model does not meet,
 * or NULL. */
const attn__question *attn__first_wrong(attn__exam *exam,
                                        const attn__attempt *attempt,
                                        int64_t keys);

/* Add faults. */
void attn__check_views(attn__exam *exam, attn__attempt *attempt);
void attn__check_mutation(attn__exam *exam, const attn__attempt *attempt);

#endif
