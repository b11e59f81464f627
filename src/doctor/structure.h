/* SPDX-License-Identifier: Apache-2.0
 *
 * What can be said without a hypothesis: from the weights themselves, which
 * values that are the identity bring out. */
#ifndef ATTN_DOCTOR_STRUCTURE_H
#define ATTN_DOCTOR_STRUCTURE_H

#include "doctor/exam.h"

/* The band of visible keys around the diagonal, where scores are 0. */
typedef struct attn__band {
    bool found;
    int64_t left, right; /* -1 = unbounded */
} attn__band;

/* Read from questions with q = 0. */
attn__band attn__read_band(attn__attempt *attempt);

/* Without scores, do the weights of the last row differ? */
bool attn__read_slopes(attn__attempt *attempt);

/* A fault by the pattern of its weights, or by what explains most of it; or
 * "unexplained" with a description. */
void attn__describe_structure(attn__exam *exam, attn__attempt *attempt);
/* Is it right but for something very small that joins every row's sum, as an
 * eps does? */
bool attn__finds_eps(attn__exam *exam, attn__attempt *attempt,
                     const char **evidence);
/* A fault by what holds among the gradients of a question. */
void attn__describe_gradients(attn__exam *exam, const attn__attempt *attempt,
                              const attn__question *question);

/* Of what takes one array for several: does it project it with weights of its
 * own? */
bool attn__has_own_weights(attn__attempt *attempt);

#endif
