/* SPDX-License-Identifier: Apache-2.0
 *
 * Putting a refusal into words: which field, its value, the rule. One
 * statement per rule; the sentence goes to the caller's attn_diag. */
#ifndef ATTN_CORE_DIAG_H
#define ATTN_CORE_DIAG_H

#include "attn.h"

#if defined(__GNUC__)
#define ATTN__PRINTF(format_index, first_arg)                                 \
    __attribute__((format(printf, format_index, first_arg)))
#else
#define ATTN__PRINTF(format_index, first_arg)
#endif

/* Fill `diag` (may be NULL) and return `status`. Text that does not fit is
 * cut. */
attn_status attn__fail(attn_diag *diag, attn_status status, const char *field,
                       const char *format, ...) ATTN__PRINTF(4, 5);

/* Fill `diag` with success and return OK. */
attn_status attn__ok(attn_diag *diag);

/* Unless `condition` holds, fail with the given field and sentence. */
#define ATTN__REQUIRE(condition, diag, status, field, ...)                    \
    do {                                                                      \
        if (!(condition))                                                     \
            return attn__fail((diag), (status), (field), __VA_ARGS__);        \
    } while (0)

/* Return the status of `call` if it is not OK; its diag is already filled. */
#define ATTN__TRY(call)                                                       \
    do {                                                                      \
        const attn_status attn__try_status = (call);                          \
        if (attn__try_status != ATTN_OK)                                      \
            return attn__try_status;                                          \
    } while (0)

#endif
