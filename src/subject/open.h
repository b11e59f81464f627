/* SPDX-License-Identifier: Apache-2.0
 *
 * What the front ends have in common. */
#ifndef ATTN_SUBJECT_OPEN_H
#define ATTN_SUBJECT_OPEN_H

#include <stddef.h>

#include "attn_subject.h"

typedef struct attn__opened {
    attn_subject subject; /* first: attn_subject_close casts back */
    void (*close)(void *ctx);
} attn__opened;

/* what[colon] is the ':' before the function's name. */
attn_status attn__open_python(const char *what, size_t colon,
                              const attn_subject_options *options,
                              attn__opened *opened, attn_diag *diag);
attn_status attn__open_library(const char *what, size_t colon,
                               const attn_subject_options *options,
                               attn__opened *opened, attn_diag *diag);

#endif
