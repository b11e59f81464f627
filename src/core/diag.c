/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling the caller's attn_diag. */
#include "core/diag.h"

#include <stdarg.h>
#include <stdio.h>

attn_status attn__fail(attn_diag *diag, attn_status status, const char *field,
                       const char *format, ...)
{
    if (diag) {
        va_list args;

        diag->status = status;
        snprintf(diag->field, sizeof diag->field, "%s", field);
        va_start(args, format);
        vsnprintf(diag->message, sizeof diag->message, format, args);
        va_end(args);
    }
    return status;
}

attn_status attn__ok(attn_diag *diag)
{
    if (diag) {
        diag->status = ATTN_OK;
        diag->field[0] = '\0';
        diag->message[0] = '\0';
    }
    return ATTN_OK;
}
