/* SPDX-License-Identifier: Apache-2.0
 *
 * What a report keeps for a picture. */
#ifndef ATTN_DOCTOR_DRAWING_H
#define ATTN_DOCTOR_DRAWING_H

#include "doctor/exam.h"

/* The head that is most wrong, if there is anything to draw. */
void attn__keep_drawing(attn__exam *exam, attn__attempt *attempt);

#endif
