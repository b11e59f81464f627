/* SPDX-License-Identifier: Apache-2.0
 *
 * The wrong steps: their prototypes come from hypotheses.def, which says
 * which bug each of them is. `param` chooses among the members of a family. */
#ifndef ATTN_DOCTOR_WRONG_H
#define ATTN_DOCTOR_WRONG_H

#include "doctor/model.h"

#define ATTN__WRONG(id, slot, step, param, needs, detail) attn__step step;
#include "doctor/hypotheses.def"
#undef ATTN__WRONG

#endif
