/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls into bytes, bytes into answers. */
#include "subject/protocol.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"

/* ----------------------------------------------------------------- hello */

static bool take_parameter(attn__message *m, attn__hello *h)
{
    char *name = h->names[h->n], *fallback = h->defaults[h->n];
    unsigned char optional;

    if (!attn__take_text(m, name, sizeof h->names[0]) ||
        !attn__take(m, &optional, 1) ||
        !attn__take_text(m, fallback, sizeof h->defaults[0]))
        return false;
    h->parameters[h->n++] = (attn_parameter){
        .name = name,
        .optional = optional != 0,
        .fallback = optional ? fallback : NULL,
    };
    return true;
}

static bool take_hello(attn__message *m, attn__hello *h)
{
    uint32_t n;

    h->n = 0;
    if (!attn__take(m, &n, sizeof n) || n > ATTN__MOST_PARAMETERS)
        return false;
    while (n-- > 0) {
        if (!take_parameter(m, h))
            return false;
    }
    return attn__take_text(m, h->words, sizeof h->words);
}

bool attn__decode_hello(attn__message *m, attn__hello *h, char *message,
                        size_t size)
{
    char letter = '\0';

    attn__take(m, &letter, 1);
    if (letter == 'H' && take_hello(m, h))
        return true;
    if (letter != 'E' || !attn__take_text(m, message, size))
        snprintf(message, size, "it does not follow the protocol");
    return false;
}

void attn__set_hello(attn_subject *subject, const attn__hello *hello)
{
    subject->parameters = hello->parameters;
    subject->n_parameters = hello->n;
    subject->words = hello->words;
}

static bool encode_text(attn__message *m, const char *text)
{
    const uint32_t length = (uint32_t)strlen(text);

    return attn__append(m, &length, sizeof length) &&
           attn__append(m, text, length);
}

bool attn__encode_hello(attn__message *m, const attn_parameter *parameters,
                        int32_t n, const char *words)
{
    const uint32_t count = (uint32_t)n;
    bool ok = attn__append(m, "H", 1) && attn__append(m, &count, sizeof count);

    for (int32_t x = 0; ok && x < n; x++) {
        const attn_parameter *p = &parameters[x];
        const unsigned char optional = p->optional != 0;

        ok = encode_text(m, p->name) && attn__append(m, &optional, 1) &&
             encode_text(m, p->fallback ? p->fallback : "");
    }
    return ok && encode_text(m, words);
}

bool attn__encode_failure(attn__message *m, const char *why)
{
    return attn__append(m, "E", 1) && encode_text(m, why);
}

/* ------------------------------------------------------------------ call */

/* Elements from the tensor's first to its last, whatever its strides; the
 * doctor's views have none that are negative. */
static uint64_t extent(int32_t rank, const int64_t *shape,
                       const int64_t *stride)
{
    int64_t last = 0;

    /* Without elements the other lengths and strides may be anything. */
    for (int32_t a = 0; a < rank; a++)
        if (shape[a] == 0)
            return 0;
    for (int32_t a = 0; a < rank; a++)
        last += (shape[a] - 1) * stride[a];
    return (uint64_t)last + 1;
}

/* `fifth` > 0: the length of one more axis, before the others. */
static bool encode_tensor(attn__message *m, const attn_input *t,
                          int64_t fifth)
{
    const int32_t more = fifth > 0, rank = t->rank + more;
    const unsigned char head[2] = {(unsigned char)t->dtype,
                                   (unsigned char)rank};
    int64_t shape[5] = {fifth};
    int64_t stride[5] = {more ? t->shape[0] * t->stride[0] : 0};
    uint64_t count;

    memcpy(shape + more, t->shape, sizeof t->shape);
    memcpy(stride + more, t->stride, sizeof t->stride);
    count = extent(rank, shape, stride);
    return attn__append(m, head, 2) &&
           attn__append(m, shape, (size_t)rank * sizeof shape[0]) &&
           attn__append(m, stride, (size_t)rank * sizeof stride[0]) &&
           attn__append(m, &count, sizeof count) &&
           attn__append(m, t->data, count * attn_dtype_size(t->dtype));
}

static bool encode_value(attn__message *m, const attn_value *v)
{
    const unsigned char kind = (unsigned char)v->kind;
    const unsigned char yes = v->integer[0] != 0;

    if (!attn__append(m, &v->parameter, sizeof v->parameter) ||
        !attn__append(m, &kind, 1))
        return false;
    switch (v->kind) {
    case ATTN_VALUE_TENSOR:
        return encode_tensor(m, &v->tensor, v->integer[0]);
    case ATTN_VALUE_REAL:
        return attn__append(m, &v->real, sizeof v->real);
    case ATTN_VALUE_INTEGER:
        return attn__append(m, &v->integer[0], sizeof v->integer[0]);
    case ATTN_VALUE_BOOLEAN:
        return attn__append(m, &yes, 1);
    case ATTN_VALUE_PAIR:
        return attn__append(m, v->integer, sizeof v->integer);
    case ATTN_VALUE_TEXT:
        return encode_text(m, v->text);
    default:
        return true;
    }
}

bool attn__encode_call(attn__message *m, const attn_value *values, int32_t n)
{
    const uint32_t count = (uint32_t)n;
    bool ok;

    *m = (attn__message){0};
    ok = attn__append(m, &count, sizeof count);
    for (int32_t x = 0; ok && x < n; x++)
        ok = encode_value(m, &values[x]);
    if (!ok)
        attn__message_free(m);
    return ok;
}

/* Shape and strides of a tensor whose last element is within `count`. */
static bool decode_view(attn__message *m, attn_input *t, uint64_t *count)
{
    unsigned char head[2];
    int64_t last = 0, elements = 1;

    if (!attn__take(m, head, 2) || head[0] == ATTN_NONE ||
        head[0] > ATTN_I64 || head[1] > 4)
        return false;
    t->dtype = (attn_dtype)head[0];
    t->rank = head[1];
    if (!attn__take(m, t->shape, head[1] * sizeof t->shape[0]) ||
        !attn__take(m, t->stride, head[1] * sizeof t->stride[0]) ||
        !attn__take(m, count, sizeof *count))
        return false;
    for (int32_t a = 0; a < t->rank; a++) {
        int64_t step;

        if (t->shape[a] < 0 || t->stride[a] < 0 ||
            !attn__mul_i64(elements, t->shape[a], &elements) ||
            !attn__mul_i64(t->shape[a] - (t->shape[a] > 0), t->stride[a],
                           &step) ||
            !attn__add_i64(last, step, &last))
            return false;
    }
    return elements == 0 || (uint64_t)last < *count;
}

static bool decode_tensor(attn__message *m, attn_input *t)
{
    uint64_t count;
    size_t size;
    void *data;

    if (!decode_view(m, t, &count))
        return false;
    size = attn_dtype_size(t->dtype);
    if (count > (m->length - m->at) / size)
        return false;
    data = attn__alloc((size_t)count * size + 1);
    if (!data)
        return false;
    t->data = data;
    return attn__take(m, data, (size_t)count * size);
}

static bool decode_text(attn__message *m, const char **text)
{
    char own[256], *copy;

    if (!attn__take_text(m, own, sizeof own))
        return false;
    copy = attn__strdup(own);
    *text = copy;
    return copy != NULL;
}

static bool decode_value(attn__message *m, attn_value *v)
{
    unsigned char kind, yes;

    if (!attn__take(m, &v->parameter, sizeof v->parameter) ||
        !attn__take(m, &kind, 1) || kind > ATTN_VALUE_TEXT)
        return false;
    v->kind = (attn_value_kind)kind;
    switch (v->kind) {
    case ATTN_VALUE_TENSOR:
        return decode_tensor(m, &v->tensor);
    case ATTN_VALUE_REAL:
        return attn__take(m, &v->real, sizeof v->real);
    case ATTN_VALUE_INTEGER:
        return attn__take(m, &v->integer[0], sizeof v->integer[0]);
    case ATTN_VALUE_BOOLEAN:
        v->integer[0] = attn__take(m, &yes, 1) && yes;
        return true;
    case ATTN_VALUE_PAIR:
        return attn__take(m, v->integer, sizeof v->integer);
    case ATTN_VALUE_TEXT:
        return decode_text(m, &v->text);
    default:
        return true;
    }
}

int32_t attn__decode_call(attn__message *m, attn_value *values, int32_t most)
{
    uint32_t n;

    if (!attn__take(m, &n, sizeof n) || n > (uint32_t)most)
        return -1;
    for (uint32_t x = 0; x < n; x++) {
        values[x] = (attn_value){.kind = ATTN_VALUE_NONE};
        if (!decode_value(m, &values[x])) {
            attn__free_values(values, (int32_t)x + 1);
            return -1;
        }
    }
    return (int32_t)n;
}

void attn__free_values(attn_value *values, int32_t n)
{
    for (int32_t x = 0; x < n; x++) {
        attn__free((void *)(uintptr_t)values[x].tensor.data);
        attn__free((void *)(uintptr_t)values[x].text);
        values[x] = (attn_value){.kind = ATTN_VALUE_NONE};
    }
}

/* ---------------------------------------------------------------- answer */

static bool encode_result(attn__message *m, const attn_result *r)
{
    const unsigned char head[2] = {(unsigned char)r->dtype,
                                   (unsigned char)r->rank};

    return attn__append(m, head, 2) &&
           attn__append(m, r->shape, (size_t)r->rank * sizeof r->shape[0]) &&
           attn__append(m, r->data, (size_t)r->count * sizeof *r->data);
}

bool attn__encode_answer(attn__message *m, const attn_answer *a)
{
    const uint32_t n = (uint32_t)a->n_results;
    bool ok = attn__append(m, "A", 1) &&
              attn__append(m, &a->seconds, sizeof a->seconds) &&
              attn__append(m, &a->mutated, sizeof a->mutated) &&
              attn__append(m, &n, sizeof n);

    for (uint32_t x = 0; ok && x < n; x++)
        ok = encode_result(m, &a->results[x]);
    return ok;
}

bool attn__encode_refusal(attn__message *m, const char *why)
{
    return attn__append(m, "R", 1) && encode_text(m, why);
}

/* CRASHED where it does not follow the protocol, LOST where memory is short. */
static attn_outcome decode_result(attn__message *m, attn_result *r)
{
    unsigned char head[2];

    if (!attn__take(m, head, 2) || head[1] > ATTN_RESULT_MAX_RANK ||
        head[0] > ATTN_I64)
        return ATTN_CRASHED;
    r->dtype = (attn_dtype)head[0];
    r->rank = head[1];
    r->count = 1;
    for (int32_t a = 0; a < r->rank; a++) {
        if (!attn__take(m, &r->shape[a], sizeof r->shape[a]) ||
            r->shape[a] < 0 ||
            !attn__mul_i64(r->count, r->shape[a], &r->count))
            return ATTN_CRASHED;
    }
    if ((uint64_t)r->count > (m->length - m->at) / sizeof *r->data)
        return ATTN_CRASHED;
    r->data = attn__alloc((size_t)r->count * sizeof *r->data + 1);
    if (!r->data)
        return ATTN_LOST;
    return attn__take(m, r->data, (size_t)r->count * sizeof *r->data)
               ? ATTN_ANSWERED
               : ATTN_CRASHED;
}

static attn_outcome decode_results(attn__message *m, attn_answer *a)
{
    attn_outcome outcome = ATTN_ANSWERED;
    uint32_t n;

    if (!attn__take(m, &a->seconds, sizeof a->seconds) ||
        !attn__take(m, &a->mutated, sizeof a->mutated) ||
        !attn__take(m, &n, sizeof n) || n > ATTN_RESULTS_MAX)
        return ATTN_CRASHED;
    for (uint32_t x = 0; x < n && outcome == ATTN_ANSWERED; x++) {
        a->n_results++;
        outcome = decode_result(m, &a->results[x]);
    }
    if (!(a->seconds >= 0 && a->seconds < 1e6))
        a->seconds = 0;
    return outcome;
}

attn_outcome attn__decode_answer(attn__message *m, attn_answer *a)
{
    attn_outcome outcome = ATTN_CRASHED;
    char letter = '\0';

    attn__take(m, &letter, 1);
    if (letter == 'A')
        outcome = decode_results(m, a);
    if (outcome == ATTN_ANSWERED)
        return outcome;
    for (int32_t x = 0; x < a->n_results; x++)
        attn__free(a->results[x].data);
    a->n_results = 0;
    if (letter == 'R' &&
        attn__take_text(m, a->message, sizeof a->message))
        return ATTN_RAISED;
    snprintf(a->message, sizeof a->message, "%s",
             outcome == ATTN_LOST ? "out of memory"
                                  : "its answer does not follow the protocol");
    return outcome;
}
