/* SPDX-License-Identifier: Apache-2.0
 *
 * A Python function as a subject: `python3 -c child.py FILE FUNCTION`. After
 * a crash or a timeout the next call starts a new child, until there were too
 * many. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "subject/child.h"
#include "subject/open.h"
#include "subject/protocol.h"

#include "subject/child_py.h"

typedef struct python {
    attn_subject subject;
    attn__hello hello;
    char *file, *function, *python, *name;
    double timeout;
    attn__child child;
    int ends; /* see ATTN__MOST_ENDS */
} python;

/* ----------------------------------------------------------------- start */

/* Start the child and hear its hello. On failure `message` has the reason. */
static attn_status start(python *p, char *message, size_t size)
{
    char *argv[] = {p->python, "-c", (char *)attn__child_py, p->file,
                    p->function, NULL};
    attn__message m;
    attn_outcome outcome;
    bool ok;

    snprintf(message, size, "%s cannot be started", p->python);
    if (!attn__child_start(&p->child, argv))
        return ATTN_E_IO;
    snprintf(message, size, "%s did not answer", p->python);
    outcome = attn__child_receive(&p->child, &m, p->timeout + 20);
    if (outcome == ATTN_LOST)
        snprintf(message, size, "out of memory");
    if (outcome != ATTN_ANSWERED) {
        attn__child_end(&p->child, outcome == ATTN_LOST ? NULL : message,
                        size);
        return outcome == ATTN_LOST ? ATTN_E_NOMEM : ATTN_E_IO;
    }
    ok = attn__decode_hello(&m, &p->hello, message, size);
    attn__message_free(&m);
    if (!ok)
        attn__child_end(&p->child, NULL, 0);
    return ok ? ATTN_OK : ATTN_E_IO;
}

/* ------------------------------------------------------------------ call */

static attn_outcome call(void *ctx, const attn_value *values, int32_t n,
                         attn_answer *answer)
{
    python *p = ctx;

    if (p->ends >= ATTN__MOST_ENDS) {
        snprintf(answer->message, sizeof answer->message,
                 "it crashed or hung too often");
        return ATTN_LOST;
    }
    if (p->child.pid <= 0 &&
        start(p, answer->message, sizeof answer->message) != ATTN_OK)
        return ATTN_LOST;
    return attn__converse(&p->child, values, n, p->timeout, &p->ends, answer);
}

/* ------------------------------------------------------------ open, close */

static void close_python(void *ctx)
{
    python *p = ctx;

    attn__child_end(&p->child, NULL, 0);
    attn__free(p->file);
    attn__free(p->function);
    attn__free(p->python);
    attn__free(p->name);
    attn__free(p);
}

attn_status attn__open_python(const char *what, size_t colon,
                              const attn_subject_options *options,
                              attn__opened *opened, attn_diag *diag)
{
    python *p = attn__calloc(1, sizeof *p);
    attn_status status;
    char message[160];

    if (!p)
        return attn__fail(diag, ATTN_E_NOMEM, "subject", "out of memory");
    p->name = attn__strdup(what);
    p->file = attn__strdup(what);
    p->function = attn__strdup(what + colon + 1);
    p->python = attn__strdup(options->python ? options->python : "python3");
    p->timeout = options->timeout;
    if (!p->name || !p->file || !p->function || !p->python) {
        close_python(p);
        return attn__fail(diag, ATTN_E_NOMEM, "subject", "out of memory");
    }
    p->file[colon] = '\0';
    p->subject = (attn_subject){.name = p->name, .ctx = p, .call = call};
    status = start(p, message, sizeof message);
    if (status != ATTN_OK) {
        attn__fail(diag, status, "subject", "%s: %s", what, message);
        close_python(p);
        return status;
    }
    attn__set_hello(&p->subject, &p->hello);
    *opened = (attn__opened){.subject = p->subject, .close = close_python};
    return ATTN_OK;
}
