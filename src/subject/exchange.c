/* SPDX-License-Identifier: Apache-2.0
 *
 * A function that exchanges messages as a subject: what a child does, in this
 * process. For other languages, whose side is child.py or like it. */
#include <stdio.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "subject/open.h"
#include "subject/protocol.h"

typedef struct link {
    attn_subject subject;
    attn__hello hello;
    attn_exchange *exchange;
    void *ctx;
    char *name;
} link;

static attn_outcome call(void *ctx, const attn_value *values, int32_t n,
                         attn_answer *answer)
{
    link *l = ctx;
    attn__message out, in = {0};
    attn_outcome outcome = ATTN_LOST;
    const void *reply = NULL;

    if (!attn__encode_call(&out, values, n)) {
        snprintf(answer->message, sizeof answer->message, "out of memory");
        return ATTN_LOST;
    }
    if (l->exchange(l->ctx, out.data, out.length, &reply, &in.length)) {
        in.data = (unsigned char *)(uintptr_t)reply; /* only read */
        outcome = attn__decode_answer(&in, answer);
    } else {
        snprintf(answer->message, sizeof answer->message, "it was given up");
    }
    attn__message_free(&out);
    return outcome;
}

static void close_link(void *ctx)
{
    link *l = ctx;

    attn__free(l->name);
    attn__free(l);
}

static attn_status fill_link(link *l, const char *name, const void *hello,
                             size_t n_hello, attn_diag *diag)
{
    attn__message m = {.data = (unsigned char *)(uintptr_t)hello,
                       .length = n_hello};
    char message[160];

    l->name = attn__strdup(name);
    ATTN__REQUIRE(l->name, diag, ATTN_E_NOMEM, "subject", "out of memory");
    ATTN__REQUIRE(attn__decode_hello(&m, &l->hello, message, sizeof message),
                  diag, ATTN_E_ARG, "hello", "%s", message);
    l->subject = (attn_subject){.name = l->name, .ctx = l, .call = call};
    attn__set_hello(&l->subject, &l->hello);
    return ATTN_OK;
}

attn_status attn_subject_open_exchange(const char *name, const void *hello,
                                       size_t n_hello,
                                       attn_exchange *exchange, void *ctx,
                                       attn_subject **subject,
                                       attn_diag *diag)
{
    attn__opened *opened = attn__calloc(1, sizeof *opened);
    link *l = attn__calloc(1, sizeof *l);
    attn_status status =
        opened && l
            ? fill_link(l, name, hello, n_hello, diag)
            : attn__fail(diag, ATTN_E_NOMEM, "subject", "out of memory");

    *subject = NULL;
    if (status != ATTN_OK) {
        if (l)
            close_link(l);
        attn__free(opened);
        return status;
    }
    l->exchange = exchange;
    l->ctx = ctx;
    *opened = (attn__opened){.subject = l->subject, .close = close_link};
    *subject = &opened->subject;
    return attn__ok(diag);
}
