/* SPDX-License-Identifier: Apache-2.0
 *
 * Calling a C function by its own prototype, through libffi: arrays dense and
 * in their types, lengths out of the arrays, memory for what it writes. */
#include <ffi.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/element.h"
#include "subject/library.h"

/* Behind every output lie so many bytes that must stay as they are. */
enum { FENCE = 512, FENCE_BYTE = 0x5a };

typedef struct argument {
    void *pointer; /* what the argument is, if an array */
    int32_t i32;
    int64_t i64;
    double f64;
    float f32;
    unsigned char byte;
    int64_t count; /* elements of an array */
    int64_t shape[ATTN__MOST_LENGTHS];
    bool borrowed; /* the memory is that of a value */
} argument;

typedef struct calling {
    const attn__symbol *symbol;
    void (*function)(void);
    argument arguments[ATTN__MOST_ARGUMENTS];
    attn_answer *answer;
} calling;

bool attn__has_prototypes(void)
{
    return true;
}

static bool refuse(calling *c, const char *name, const char *rule)
{
    snprintf(c->answer->message, sizeof c->answer->message, "%s: %s", name,
             rule);
    return false;
}

/* --------------------------------------------------------------- elements */

static double element(const void *data, attn_dtype dtype, int64_t at)
{
    switch (dtype) {
    case ATTN_I64:
        return (double)((const int64_t *)data)[at];
    case ATTN_I32:
        return (double)((const int32_t *)data)[at];
    case ATTN_BOOL:
        return (double)((const unsigned char *)data)[at];
    default:
        return attn__read(data, dtype, at);
    }
}

static void store(void *data, attn_dtype dtype, int64_t at, double x)
{
    switch (dtype) {
    case ATTN_I64:
        ((int64_t *)data)[at] = (int64_t)x;
        break;
    case ATTN_I32:
        ((int32_t *)data)[at] = (int32_t)x;
        break;
    case ATTN_BOOL:
        ((unsigned char *)data)[at] = x != 0;
        break;
    default:
        attn__write(data, dtype, at, x);
    }
}

static void set_scalar(argument *a, double x)
{
    a->f64 = x;
    a->f32 = (float)x;
    a->i64 = (int64_t)x;
    a->i32 = (int32_t)x;
    a->byte = x != 0;
}

/* ----------------------------------------------------------------- inputs */

static bool is_dense(const attn_input *t)
{
    int64_t step = 1;

    for (int32_t a = t->rank - 1; a >= 0; a--) {
        if (t->stride[a] != step)
            return false;
        step *= t->shape[a];
    }
    return true;
}

/* A dense copy in the argument's type; the memory itself where it is that. */
static bool take_tensor(calling *c, int32_t at, const attn_input *t)
{
    const attn__argument *a = &c->symbol->signature.arguments[at];
    argument *to = &c->arguments[at];

    if (!a->is_array || t->rank != a->rank)
        return refuse(c, a->name, "has other axes than the signature");
    memcpy(to->shape, t->shape, sizeof to->shape);
    to->count = 1;
    for (int32_t x = 0; x < t->rank; x++)
        to->count *= t->shape[x];
    if (t->dtype == a->dtype && is_dense(t)) {
        to->pointer = (void *)(uintptr_t)t->data;
        to->borrowed = true;
        return true;
    }
    to->pointer = attn__calloc((size_t)to->count + 1, 8);
    for (int64_t e = 0; to->pointer && e < to->count; e++) {
        int64_t rest = e, from = 0;

        for (int32_t x = t->rank - 1; x >= 0; x--) {
            from += rest % t->shape[x] * t->stride[x];
            rest /= t->shape[x];
        }
        store(to->pointer, a->dtype, e, element(t->data, t->dtype, from));
    }
    return to->pointer || refuse(c, a->name, "out of memory");
}

static bool take_value(calling *c, const attn_value *v)
{
    int32_t at;

    if (v->parameter < 0 || v->parameter >= c->symbol->n_parameters)
        return refuse(c, "call", "broken message");
    at = c->symbol->argument[v->parameter];
    if (v->kind == ATTN_VALUE_TENSOR)
        return take_tensor(c, at, &v->tensor);
    if (v->kind == ATTN_VALUE_PAIR)
        return refuse(c, "call", "a pair cannot be passed to C");
    set_scalar(&c->arguments[at], v->kind == ATTN_VALUE_REAL
                                      ? v->real
                                      : (double)v->integer[0]);
    return true;
}

/* The length with this name, from the arrays that were given; -1. */
static int64_t length_of(const calling *c, const char *name)
{
    const attn__signature *s = &c->symbol->signature;

    for (int32_t x = 0; x < s->n; x++) {
        const attn__argument *a = &s->arguments[x];

        for (int32_t r = 0; !a->is_output && r < a->rank; r++) {
            if (c->arguments[x].pointer && strcmp(a->lengths[r], name) == 0)
                return c->arguments[x].shape[r];
        }
    }
    return -1;
}

/* Arguments of one length must agree. */
static bool lengths_agree(calling *c)
{
    const attn__signature *s = &c->symbol->signature;

    for (int32_t x = 0; x < s->n; x++) {
        const attn__argument *a = &s->arguments[x];

        for (int32_t r = 0; !a->is_output && c->arguments[x].pointer &&
                            r < a->rank; r++) {
            if (c->arguments[x].shape[r] != length_of(c, a->lengths[r]))
                return refuse(c, a->name,
                              "its lengths differ from the signature's");
        }
    }
    return true;
}

/* ---------------------------------------------------------------- outputs */

static size_t output_bytes(const calling *c, int32_t at)
{
    return (size_t)c->arguments[at].count *
           attn_dtype_size(c->symbol->signature.arguments[at].dtype);
}

static bool make_output(calling *c, int32_t at)
{
    const attn__argument *a = &c->symbol->signature.arguments[at];
    argument *to = &c->arguments[at];

    to->count = 1;
    for (int32_t r = 0; r < a->rank; r++) {
        to->shape[r] = length_of(c, a->lengths[r]);
        if (to->shape[r] < 0)
            return refuse(c, a->name, "a length is that of no input");
        to->count *= to->shape[r];
    }
    to->pointer = attn__alloc(output_bytes(c, at) + FENCE);
    if (!to->pointer)
        return refuse(c, a->name, "out of memory");
    for (int64_t e = 0; e < to->count; e++)
        store(to->pointer, a->dtype, e, NAN);
    memset((char *)to->pointer + output_bytes(c, at), FENCE_BYTE, FENCE);
    return true;
}

static bool fence_stands(const calling *c, int32_t at)
{
    const unsigned char *fence =
        (const unsigned char *)c->arguments[at].pointer + output_bytes(c, at);

    for (int x = 0; x < FENCE; x++) {
        if (fence[x] != FENCE_BYTE)
            return false;
    }
    return true;
}

static bool take_result(calling *c, int32_t at)
{
    const attn__argument *a = &c->symbol->signature.arguments[at];
    const argument *from = &c->arguments[at];
    attn_answer *answer = c->answer;
    attn_result *r = &answer->results[answer->n_results];

    if (!fence_stands(c, at))
        return refuse(c, a->name, "the function writes beyond its end");
    if (answer->n_results == ATTN_RESULTS_MAX)
        return true;
    *r = (attn_result){
        .dtype = a->dtype, .rank = a->rank, .count = from->count};
    memcpy(r->shape, from->shape, (size_t)a->rank * sizeof r->shape[0]);
    r->data = attn__alloc((size_t)from->count * sizeof *r->data + 1);
    if (!r->data)
        return refuse(c, a->name, "out of memory");
    for (int64_t e = 0; e < from->count; e++)
        r->data[e] = element(from->pointer, a->dtype, e);
    answer->n_results++;
    return true;
}

/* ------------------------------------------------------------------- call */

static bool complete(calling *c)
{
    const attn__signature *s = &c->symbol->signature;

    for (int32_t x = 0; x < s->n; x++) {
        const attn__argument *a = &s->arguments[x];

        if (a->is_output && !make_output(c, x))
            return false;
        if (a->is_length)
            set_scalar(&c->arguments[x], (double)length_of(c, a->name));
    }
    return lengths_agree(c);
}

static ffi_type *type_of(const attn__argument *a, argument *v, void **pointer)
{
    if (a->is_array) {
        *pointer = &v->pointer;
        return &ffi_type_pointer;
    }
    switch (a->dtype) {
    case ATTN_F64:
        *pointer = &v->f64;
        return &ffi_type_double;
    case ATTN_F32:
        *pointer = &v->f32;
        return &ffi_type_float;
    case ATTN_I64:
        *pointer = &v->i64;
        return &ffi_type_sint64;
    case ATTN_BOOL:
        *pointer = &v->byte;
        return &ffi_type_uint8;
    default:
        *pointer = &v->i32;
        return &ffi_type_sint32;
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool invoke(calling *c)
{
    const attn__signature *s = &c->symbol->signature;
    ffi_type *types[ATTN__MOST_ARGUMENTS];
    void *pointers[ATTN__MOST_ARGUMENTS];
    ffi_arg ignored;
    ffi_cif cif;
    double start;

    for (int32_t x = 0; x < s->n; x++)
        types[x] =
            type_of(&s->arguments[x], &c->arguments[x], &pointers[x]);
    if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, (unsigned)s->n, &ffi_type_sint,
                     types) != FFI_OK)
        return refuse(c, "signature", "libffi refuses it");
    start = now();
    ffi_call(&cif, c->function, &ignored, pointers);
    c->answer->seconds = now() - start;
    for (int32_t x = 0; x < s->n; x++) {
        if (s->arguments[x].is_output && !take_result(c, x))
            return false;
    }
    return true;
}

attn_outcome attn__call_by_signature(const attn__symbol *symbol,
                                     void (*function)(void),
                                     const attn_value *values, int32_t n,
                                     attn_answer *answer)
{
    calling c = {.symbol = symbol, .function = function, .answer = answer};
    bool ok = true;

    for (int32_t x = 0; ok && x < n; x++)
        ok = take_value(&c, &values[x]);
    ok = ok && complete(&c) && invoke(&c);
    for (int x = 0; x < ATTN__MOST_ARGUMENTS; x++) {
        if (!c.arguments[x].borrowed)
            attn__free(c.arguments[x].pointer);
    }
    return ok ? ATTN_ANSWERED : ATTN_RAISED;
}
