/* SPDX-License-Identifier: Apache-2.0
 *
 * What ordinary questions do not show: asked of a subject that is right on
 * all of them. */
#ifndef ATTN_DOCTOR_STRESS_H
#define ATTN_DOCTOR_STRESS_H

#include "doctor/exam.h"

/* Each adds faults, limits and facts to the report. */
void attn__stress_shift(attn__exam *exam, attn__attempt *attempt);
void attn__stress_sentinel(attn__exam *exam, attn__attempt *attempt);
void attn__stress_empty_rows(attn__exam *exam, attn__attempt *attempt);
void attn__stress_hidden_nan(attn__exam *exam, attn__attempt *attempt);
void attn__stress_sums(attn__exam *exam, attn__attempt *attempt);

/* With the wrong steps that are known already. */
void attn__known_model(const attn__attempt *attempt, attn__model *model);
/* Does the answer meet the prediction, with the bugs that are known? */
bool attn__is_met(attn__exam *exam, const attn__attempt *attempt,
                  const attn__question *question);
/* Put a question that is not kept on the list; false if it is refused. */
bool attn__put_aside(attn__attempt *attempt, attn__question *question);
/* A plain question that it answers, with options; not yet put. */
attn__question *attn__aside(attn__attempt *attempt, attn__sizes sizes,
                            uint32_t asked);

#endif
