/* SPDX-License-Identifier: Apache-2.0
 *
 * Demonstrations: subjects with a bug that is chosen. */
#ifndef ATTN_DOCTOR_DEMO_H
#define ATTN_DOCTOR_DEMO_H

#include "doctor/question.h"

/* Everything that some demo takes. */
enum {
    DEMO_Q, DEMO_K, DEMO_V, DEMO_MASK, DEMO_BIAS, DEMO_SCALE, DEMO_CAUSAL,
    DEMO_WINDOW, DEMO_SOFTCAP, DEMO_SLOPES, DEMO_SINKS, DEMO_LENGTHS,
    DEMO_D_O, DEMO_CU_Q, DEMO_CU_K, DEMO_X, DEMO_W_QKV, DEMO_W_O, DEMO_HEADS,
    DEMO_POSITIONS,
    DEMO_N
};

extern const attn_parameter attn__demo_parameters[DEMO_N];

/* To *q: what a call asks. what[]: of each parameter. `dense`: strides are
 * ignored. False if it makes no sense, or memory is short. */
bool attn__demo_understand(const attn_value *list, int32_t n, const int *what,
                           bool dense, attn__question *q, attn__arena *arena);

#endif
