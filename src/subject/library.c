/* SPDX-License-Identifier: Apache-2.0
 *
 * A symbol of a shared library as a subject: called in a child that is forked
 * from this process, so that it may crash or hang. The calling process should
 * have one thread. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "subject/library.h"
#include "subject/open.h"
#include "subject/protocol.h"

/* One head, rows contiguous, what a first version looks like. */
static const char usual[] = "q f64[n,d], k f64[m,d], v f64[m,e], out f64[n,e],"
                            "n i64, m i64, d i64, e i64";

typedef struct library {
    attn_subject subject;
    attn__symbol symbol;
    attn__hello hello; /* of a callback */
    attn_parameter parameters[ATTN__MOST_ARGUMENTS];
    char *name, *file, *function;
    double timeout;
    attn__child child;
    int ends;
} library;

static attn_status start(library *l, char *message, size_t size)
{
    attn__message m = {0};
    attn_outcome outcome;
    bool ok = false;

    snprintf(message, size, "a child process cannot be started");
    if (!attn__child_fork(&l->child))
        return ATTN_E_IO;
    if (l->child.pid == 0) {
        attn__serve_symbol(&l->symbol, l->child.link);
        attn__child_leave();
    }
    outcome = attn__child_receive(&l->child, &m, l->timeout);
    if (outcome == ATTN_ANSWERED)
        ok = attn__decode_hello(&m, &l->hello, message, size);
    attn__message_free(&m);
    if (outcome == ATTN_LOST)
        snprintf(message, size, "out of memory");
    if (!ok)
        attn__child_end(&l->child,
                        outcome == ATTN_ANSWERED || outcome == ATTN_LOST
                            ? NULL
                            : message,
                        size);
    return ok                     ? ATTN_OK
           : outcome == ATTN_LOST ? ATTN_E_NOMEM
                                  : ATTN_E_IO;
}

static attn_outcome call(void *ctx, const attn_value *values, int32_t n,
                         attn_answer *a)
{
    library *l = ctx;

    if (l->ends >= ATTN__MOST_ENDS) {
        snprintf(a->message, sizeof a->message,
                 "it crashed or hung too often");
        return ATTN_LOST;
    }
    if (l->child.pid <= 0 &&
        start(l, a->message, sizeof a->message) != ATTN_OK)
        return ATTN_LOST;
    return attn__converse(&l->child, values, n, l->timeout, &l->ends, a);
}

static void close_library(void *ctx)
{
    library *l = ctx;

    attn__child_end(&l->child, NULL, 0);
    attn__free(l->name);
    attn__free(l->file);
    attn__free(l->function);
    attn__free(l);
}

/* What the doctor is to see: inputs and options, not lengths and outputs. */
static void list_parameters(library *l)
{
    for (int32_t x = 0; x < l->symbol.signature.n; x++) {
        const attn__argument *a = &l->symbol.signature.arguments[x];
        const int32_t at = l->subject.n_parameters;

        if (a->is_output || a->is_length)
            continue;
        l->parameters[at] =
            (attn_parameter){.name = a->name, .rank = a->rank};
        l->symbol.argument[at] = x;
        l->subject.n_parameters++;
    }
    l->symbol.n_parameters = l->subject.n_parameters;
    l->subject.parameters = l->parameters;
}

/* The type of its arrays of numbers. */
static attn_dtype dtype_of(const attn__signature *s)
{
    for (int32_t x = 0; x < s->n; x++) {
        if (s->arguments[x].is_output)
            return s->arguments[x].dtype;
    }
    return s->n > 0 ? ATTN_F64 : ATTN_NONE;
}

/* By which prototype it is called. */
static attn_status choose_prototype(library *l, const char *signature,
                                    attn_diag *diag)
{
    l->symbol.is_callback = signature && strcmp(signature, "callback") == 0;
    if (l->symbol.is_callback)
        return ATTN_OK;
    ATTN__REQUIRE(attn__has_prototypes(), diag, ATTN_E_UNSUPPORTED,
                  "signature",
                  "this attn was built without libffi, which calls C "
                  "functions by their prototypes; 'callback' needs none");
    return attn__signature_parse(&l->symbol.signature,
                                 signature ? signature : usual, diag);
}

/* The file before the colon. A name without a folder is one of this folder, if
 * it has it: else dlopen would look in the system's alone. */
static char *file_of(const char *what, size_t colon)
{
    char *file = attn__calloc(1, colon + 3);

    if (!file)
        return NULL;
    memcpy(file, what, colon);
    if (memchr(what, '/', colon) || access(file, F_OK) != 0)
        return file;
    memmove(file + 2, file, colon);
    memcpy(file, "./", 2);
    return file;
}

attn_status attn__open_library(const char *what, size_t colon,
                               const attn_subject_options *options,
                               attn__opened *opened, attn_diag *diag)
{
    library *l = attn__calloc(1, sizeof *l);
    char message[160];
    attn_status status;

    if (!l)
        return attn__fail(diag, ATTN_E_NOMEM, "subject", "out of memory");
    l->name = attn__strdup(what);
    l->file = file_of(what, colon);
    l->function = attn__strdup(what + colon + 1);
    l->timeout = options->timeout;
    status = !l->name || !l->file || !l->function
                 ? attn__fail(diag, ATTN_E_NOMEM, "subject", "out of memory")
                 : choose_prototype(l, options->signature, diag);
    if (status != ATTN_OK) {
        close_library(l);
        return status;
    }
    l->symbol.file = l->file;
    l->symbol.function = l->function;
    l->subject = (attn_subject){.name = l->name,
                                .dtype = dtype_of(&l->symbol.signature),
                                .ctx = l,
                                .call = call};
    if (!l->symbol.is_callback)
        list_parameters(l);
    status = start(l, message, sizeof message);
    if (status != ATTN_OK) {
        attn__fail(diag, status, "subject", "%.100s", message);
        close_library(l);
        return status;
    }
    if (l->symbol.is_callback)
        attn__set_hello(&l->subject, &l->hello);
    *opened = (attn__opened){.subject = l->subject, .close = close_library};
    return ATTN_OK;
}
