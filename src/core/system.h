/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of the operating system, in words. */
#ifndef ATTN_CORE_SYSTEM_H
#define ATTN_CORE_SYSTEM_H

#include "attn.h"

/* E_IO with "<what>: <the system's text for `error`>". */
attn_status attn__system_error(attn_diag *diag, const char *what, int error);

#endif
