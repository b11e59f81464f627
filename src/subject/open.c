/* SPDX-License-Identifier: Apache-2.0
 *
 * Which front end a subject's words ask for. */
#include "subject/open.h"

#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"

void attn_subject_options_init(attn_subject_options *options)
{
    *options =
        (attn_subject_options){.size = sizeof *options, .timeout = 10};
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    const size_t n = strlen(end);

    return length >= n && memcmp(text + length - n, end, n) == 0;
}

static attn_status open_by_suffix(const char *what,
                                  const attn_subject_options *options,
                                  attn__opened *opened, attn_diag *diag)
{
    const char *colon = strrchr(what, ':');
    const size_t at = colon ? (size_t)(colon - what) : 0;

    ATTN__REQUIRE(colon && at > 0 && colon[1], diag, ATTN_E_ARG, "subject",
                  "'%s': FILE.py:FUNCTION or LIBRARY.so:SYMBOL", what);
    if (ends_with(what, at, ".py"))
        return attn__open_python(what, at, options, opened, diag);
    if (ends_with(what, at, ".so"))
        return attn__open_library(what, at, options, opened, diag);
    return attn__fail(diag, ATTN_E_ARG, "subject",
                      "'%s': the file must end in .py or .so", what);
}

attn_status attn_subject_open(const char *what,
                              const attn_subject_options *options,
                              attn_subject **subject, attn_diag *diag)
{
    attn__opened *opened = attn__calloc(1, sizeof *opened);
    attn_subject_options own = *options;
    attn_status status;

    *subject = NULL;
    if (!opened)
        return attn__fail(diag, ATTN_E_NOMEM, "subject", "out of memory");
    if (!(own.timeout > 0))
        own.timeout = 10;
    status = open_by_suffix(what, &own, opened, diag);
    if (status != ATTN_OK) {
        attn__free(opened);
        return status;
    }
    *subject = &opened->subject;
    return attn__ok(diag);
}

void attn_subject_close(attn_subject *subject)
{
    attn__opened *opened = (attn__opened *)(void *)subject;

    if (!opened)
        return;
    opened->close(opened->subject.ctx);
    attn__free(opened);
}
