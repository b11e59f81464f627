/* SPDX-License-Identifier: Apache-2.0
 *
 * The child's side of a C symbol: loads the library, and answers messages. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "subject/library.h"
#include "subject/protocol.h"

typedef void function(void);
typedef attn_outcome callback(void *ctx, const attn_value *values, int32_t n,
                              attn_answer *answer);

/* What the function prints is not for us. */
static void silence(void)
{
    const int nowhere = open("/dev/null", O_RDWR);

    if (nowhere >= 0) {
        dup2(nowhere, 1);
        dup2(nowhere, 2);
    }
}

/* ------------------------------------------------------------------ hello */

static function *function_of(void *handle, const char *name)
{
    void *symbol = handle ? dlsym(handle, name) : NULL;
    function *found = NULL;

    if (symbol)
        memcpy(&found, &symbol, sizeof found);
    return found;
}

/* A callback's parameters: the array NAME_parameters, up to one without a
 * name. */
static bool greet_as_callback(void *handle, const char *name,
                              attn__message *m)
{
    static const attn_parameter usual[] = {
        {.name = "q"}, {.name = "k"}, {.name = "v"}, {.name = NULL}};
    char own[256];
    const attn_parameter *parameters;
    int32_t n = 0;

    snprintf(own, sizeof own, "%s_parameters", name);
    parameters = dlsym(handle, own);
    if (!parameters)
        parameters = usual;
    while (n < ATTN__MOST_PARAMETERS && parameters[n].name)
        n++;
    return attn__encode_hello(m, parameters, n, "");
}

/* ----------------------------------------------------------------- answer */

/* Bits of the values that the call has written to. */
static uint32_t changed(const attn_value *values, const attn_value *before,
                        int32_t n)
{
    uint32_t bits = 0;

    for (int32_t x = 0; x < n && x < 32; x++) {
        const attn_input *t = &values[x].tensor;
        size_t count = 1;

        for (int32_t a = 0; a < t->rank; a++)
            count = t->shape[a] ? count + (size_t)((t->shape[a] - 1) *
                                                   t->stride[a])
                                : 0;
        if (values[x].kind == ATTN_VALUE_TENSOR && count > 0 &&
            memcmp(t->data, before[x].tensor.data,
                   count * attn_dtype_size(t->dtype)) != 0)
            bits |= UINT32_C(1) << x;
    }
    return bits;
}

static attn_outcome call(const attn__symbol *s, function *f,
                         const attn_value *values, int32_t n,
                         attn_answer *answer)
{
    callback *c;

    if (!s->is_callback)
        return attn__call_by_signature(s, f, values, n, answer);
    memcpy(&c, &f, sizeof c);
    return c(NULL, values, n, answer);
}

/* Reads a call twice: the second copy shows what has changed. */
static bool answer(const attn__symbol *s, function *f, attn__message *m,
                   attn__message *reply)
{
    attn_value values[ATTN__MOST_PARAMETERS], before[ATTN__MOST_PARAMETERS];
    attn__message again = *m;
    attn_answer a = {0};
    const int32_t n = attn__decode_call(m, values, ATTN__MOST_PARAMETERS);
    const int32_t same =
        attn__decode_call(&again, before, ATTN__MOST_PARAMETERS);
    bool ok;

    if (n >= 0 && n == same) {
        const attn_outcome outcome = call(s, f, values, n, &a);

        a.mutated = changed(values, before, n);
        ok = outcome == ATTN_ANSWERED && a.n_results >= 0 &&
                     a.n_results <= ATTN_RESULTS_MAX
                 ? attn__encode_answer(reply, &a)
                 : attn__encode_refusal(reply, a.message);
    } else {
        ok = attn__encode_refusal(reply, "broken message");
    }
    for (int32_t x = 0; x < a.n_results && x < ATTN_RESULTS_MAX; x++)
        attn__free(a.results[x].data);
    attn__free_values(values, n);
    attn__free_values(before, same);
    return ok;
}

/* ------------------------------------------------------------------ serve */

void attn__serve_symbol(const attn__symbol *s, int link)
{
    attn__child parent = {.pid = 1, .link = link};
    void *handle = dlopen(s->file, RTLD_NOW | RTLD_LOCAL);
    function *f = function_of(handle, s->function);
    const char *error = f ? NULL : dlerror();
    attn__message m, reply = {0};
    bool ok;

    silence();
    ok = !f ? attn__encode_failure(&reply, error ? error : "no such symbol")
         : s->is_callback ? greet_as_callback(handle, s->function, &reply)
                          : attn__encode_hello(&reply, NULL, 0, "");
    if (!ok || attn__child_send(&parent, &reply, 60) != ATTN_ANSWERED)
        return;
    while (f && attn__child_receive(&parent, &m, 3600) == ATTN_ANSWERED) {
        reply.length = 0;
        ok = answer(s, f, &m, &reply);
        attn__message_free(&m);
        if (!ok || attn__child_send(&parent, &reply, 60) != ATTN_ANSWERED)
            return;
    }
}
