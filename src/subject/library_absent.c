/* SPDX-License-Identifier: Apache-2.0
 *
 * Instead of library.c where there is no libffi. */
#include "core/diag.h"
#include "subject/open.h"

attn_status attn__open_library(const char *what, size_t colon,
                               const attn_subject_options *options,
                               attn__opened *opened, attn_diag *diag)
{
    (void)colon;
    (void)options;
    (void)opened;
    return attn__fail(diag, ATTN_E_UNSUPPORTED, "subject",
                      "%.100s: this attn was built without libffi, which "
                      "calls C functions",
                      what);
}
