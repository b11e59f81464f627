/* SPDX-License-Identifier: Apache-2.0
 *
 * A symbol of a shared library, and the child that calls it: by its own
 * prototype, or as a callback of attn_doctor.h. */
#ifndef ATTN_SUBJECT_LIBRARY_H
#define ATTN_SUBJECT_LIBRARY_H

#include "subject/child.h"
#include "subject/signature.h"

typedef struct attn__symbol {
    const char *file, *function;
    bool is_callback;
    attn__signature signature;
    int32_t n_parameters;
    int32_t argument[ATTN__MOST_ARGUMENTS]; /* of each parameter */
} attn__symbol;

/* The child's whole life, at its end of the socket. */
void attn__serve_symbol(const attn__symbol *symbol, int link);

/* Call a function by its prototype. What is wrong with a call (RAISED) is said
 * in the answer's message. */
attn_outcome attn__call_by_signature(const attn__symbol *symbol,
                                     void (*function)(void),
                                     const attn_value *values, int32_t n,
                                     attn_answer *answer);
/* Was this attn built with what that needs, libffi? */
bool attn__has_prototypes(void);

#endif
