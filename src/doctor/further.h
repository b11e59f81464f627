/* SPDX-License-Identifier: Apache-2.0
 *
 * Further results: weights and log-sum-exp. */
#ifndef ATTN_DOCTOR_FURTHER_H
#define ATTN_DOCTOR_FURTHER_H

#include "doctor/exam.h"

/* Of a subject whose o is right. */
void attn__check_further(attn__exam *exam, const attn__attempt *attempt);

#endif
