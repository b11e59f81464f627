/* SPDX-License-Identifier: Apache-2.0
 *
 * The system's own words, by the call that is safe between threads. */
#include "core/system.h"

#include <string.h>

#include "core/diag.h"

attn_status attn__system_error(attn_diag *diag, const char *what, int error)
{
    char text[96];

    if (strerror_r(error, text, sizeof text) != 0)
        text[0] = '\0';
    return attn__fail(diag, ATTN_E_IO, "file", "%s: %s", what, text);
}
