/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of one call. */
#ifndef ATTN_DOCTOR_PASS_H
#define ATTN_DOCTOR_PASS_H

#include "doctor/binding.h"

typedef struct attn__call {
    const attn__binding *binding;
    const attn__question *question;
    attn__view view;
    attn__arena *arena;
    attn_value values[ATTN__MAX_PARAMETERS];
    int32_t n;
} attn__call;

/* n numbers of `x` in the subject's type and the call's view: up to four axes,
 * or five, of which the first is only counted (attn_value says where). */
attn_input attn__tensor(const attn__call *call, const double *x, int32_t rank,
                        const int64_t *shape);
/* How much is dropped where nobody says how much; 0 where nothing is. */
double attn__default_dropout(const attn__binding *binding);
/* Fill the values for every parameter that has one. What memory was short for
 * shows in the arena. */
void attn__pass(attn__call *call);

#endif
