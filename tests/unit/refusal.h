/* SPDX-License-Identifier: Apache-2.0
 *
 * What every refusal owes: the status, the field by its name, a sentence, and
 * outputs as they were. `change` is what was made wrong, for the message. */
#ifndef ATTN_TESTS_REFUSAL_H
#define ATTN_TESTS_REFUSAL_H

#include "attn.h"

#include "unit.h"

#include <string.h>

/* Bytes that outputs hold before a call. */
#define UNTOUCHED 0xa5

static inline void expect_refused(attn_status got, const attn_diag *diag,
                                  attn_status status, const char *field,
                                  const char *change)
{
    if (got != status || diag->status != status ||
        strcmp(diag->field, field) != 0 || strlen(diag->message) < 5)
        fail_msg("%s: %s of %s: %s", change, attn_status_name(got),
                 diag->field, diag->message);
}

static inline void expect_untouched(const void *output, size_t size,
                                    const char *change)
{
    const unsigned char *bytes = output;

    for (size_t i = 0; i < size; i++)
        if (bytes[i] != UNTOUCHED)
            fail_msg("%s: wrote byte %zu of the outputs", change, i);
}

static inline void expect_accepted(attn_status got, const attn_diag *diag,
                                   const char *change)
{
    if (got != ATTN_OK)
        fail_msg("%s: %s of %s: %s", change, attn_status_name(got),
                 diag->field, diag->message);
}

#endif
