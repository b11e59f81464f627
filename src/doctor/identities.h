/* SPDX-License-Identifier: Apache-2.0
 *
 * What gradients must satisfy among themselves, whatever the forward pass
 * was: no second implementation is needed. */
#ifndef ATTN_DOCTOR_IDENTITIES_H
#define ATTN_DOCTOR_IDENTITIES_H

#include "doctor/question.h"

/* Relative violations; NaN where the identity says nothing here.
 *
 *   keys     sum_j dk_j = 0                 (no sink, no softcap)
 *   values   sum_j dv_j = sum_i d_o_i       (no sink, no empty row)
 *   output   <dv, v> = <d_o, o>             (o must be known)
 *   product  <q, dq> = <k, dk>              always */
typedef struct attn__identities {
    double keys, values, output, product;
} attn__identities;

/* Of a backward question that was answered; q->o may be NULL. */
attn__identities attn__check_identities(const attn__question *question);

#endif
