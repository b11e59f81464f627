/* SPDX-License-Identifier: Apache-2.0
 *
 * Instead of prototype.c where there is no libffi. */
#include <stdio.h>

#include "subject/library.h"

bool attn__has_prototypes(void)
{
    return false;
}

attn_outcome attn__call_by_signature(const attn__symbol *symbol,
                                     void (*function)(void),
                                     const attn_value *values, int32_t n,
                                     attn_answer *answer)
{
    (void)symbol;
    (void)function;
    (void)values;
    (void)n;
    snprintf(answer->message, sizeof answer->message, "no libffi");
    return ATTN_RAISED;
}
