/* SPDX-License-Identifier: Apache-2.0
 *
 * A symbol of a shared library, and the child that calls it. */
#ifndef ATTN_SUBJECT_LIBRARY_H
#define ATTN_SUBJECT_LIBRARY_H

#include "subject/child.h"
#include "subject/signature.h"

typedef struct attn__symbol {
    const char *file, *function;
    attn__signature signature;
    int32_t n_parameters;
    int32_t argument[ATTN__MOST_ARGUMENTS]; /* of each parameter */
} attn__symbol;

/* The child's whole life, at its end of the socket. */
void attn__serve_symbol(const attn__symbol *symbol, int link);

#endif
