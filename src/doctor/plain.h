/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of subjects that are no attention: named tensors in, arrays out. */
#ifndef ATTN_DOCTOR_PLAIN_H
#define ATTN_DOCTOR_PLAIN_H

#include "doctor/exam.h"

typedef struct attn__plain_call {
    attn__exam *exam;
    attn__binding *binding;
    attn_value values[ATTN__MAX_PARAMETERS];
    int32_t n;
    attn_outcome outcome;
    attn_answer answer; /* freed by the next call, or attn__plain_end */
    uint32_t mutated;   /* of all calls; bits of parameters */
    const char *refusal;
} attn__plain_call;

/* Forget the values of the last call. */
void attn__plain_begin(attn__plain_call *call);
/* Give a value to the parameter with the role; false if there is none. */
bool attn__plain_tensor(attn__plain_call *call, attn__role role,
                        const double *x, int32_t rank, const int64_t *shape);
bool attn__plain_integers(attn__plain_call *call, attn__role role,
                          const int64_t *x, int32_t rank,
                          const int64_t *shape);
bool attn__plain_value(attn__plain_call *call, attn__role role,
                       attn_value value);
/* Call. True if it was answered. */
bool attn__plain_put(attn__plain_call *call);
/* Result x, if it has n elements; else NULL. */
const double *attn__plain_result(const attn__plain_call *call, int32_t x,
                                 int64_t n);
void attn__plain_end(attn__plain_call *call);

/* Add the fault if some call changed its inputs. */
void attn__plain_check_mutation(attn__plain_call *call);

/* Largest |x - y|; infinite where one is finite and the other is not, or
 * NaN stands against a number. Claims of NaN are passed over. */
double attn__farthest(const double *x, const double *claim, int64_t n);

#endif
