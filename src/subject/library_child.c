/* SPDX-License-Identifier: Apache-2.0
 *
 * The child's side of a C symbol: loads the library, and calls the symbol by
 * libffi with what the messages say. */
#include <dlfcn.h>
#include <fcntl.h>
#include <ffi.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/half.h"
#include "subject/library.h"
#include "subject/protocol.h"

/* Behind every output lie so many bytes that must stay as they are. */
enum { FENCE = 512, FENCE_BYTE = 0x5a };

typedef struct value {
    void *pointer; /* what the argument is, if an array */
    void *before;  /* a copy of an input */
    int32_t i32;
    int64_t i64;
    double f64;
    float f32;
    unsigned char byte;
    int64_t count; /* elements of an array */
    int64_t shape[ATTN__MOST_LENGTHS];
} value;

typedef struct calling {
    const attn__symbol *l;
    void (*function)(void);
    value values[ATTN__MOST_ARGUMENTS];
    char *problem; /* what to refuse with, char[256] */
    int32_t order[ATTN__MOST_ARGUMENTS]; /* argument of each value */
    uint32_t n;
} calling;

static double element(const void *data, attn_dtype dtype, uint64_t at)
{
    switch (dtype) {
    case ATTN_F64:
        return ((const double *)data)[at];
    case ATTN_F32:
        return (double)((const float *)data)[at];
    case ATTN_F16:
        return (double)attn__f32_of_f16(((const uint16_t *)data)[at]);
    case ATTN_I64:
        return (double)((const int64_t *)data)[at];
    case ATTN_I32:
        return (double)((const int32_t *)data)[at];
    default:
        return (double)((const unsigned char *)data)[at];
    }
}

static void store(void *data, attn_dtype dtype, int64_t at, double x)
{
    switch (dtype) {
    case ATTN_F64:
        ((double *)data)[at] = x;
        break;
    case ATTN_F32:
        ((float *)data)[at] = (float)x;
        break;
    case ATTN_F16:
        ((uint16_t *)data)[at] = attn__f16_of_f64(x);
        break;
    case ATTN_I64:
        ((int64_t *)data)[at] = (int64_t)x;
        break;
    case ATTN_I32:
        ((int32_t *)data)[at] = (int32_t)x;
        break;
    default:
        ((unsigned char *)data)[at] = x != 0;
    }
}

static void set_scalar(value *v, attn_dtype dtype, double x)
{
    store(&v->f64, ATTN_F64, 0, x);
    v->f32 = (float)x;
    v->i64 = (int64_t)x;
    v->i32 = (int32_t)x;
    v->byte = x != 0;
    (void)dtype;
}

static bool refuse(calling *c, const char *name, const char *rule)
{
    snprintf(c->problem, 256, "%s: %s", name, rule);
    return false;
}

/* A tensor of the message, dense and in the argument's type. */
static bool take_tensor(calling *c, attn__message *m, int32_t at)
{
    const attn__argument *a = &c->l->signature.arguments[at];
    value *v = &c->values[at];
    unsigned char head[2];
    int64_t shape[4], stride[4];
    uint64_t stored;
    size_t size;
    char rule[64];

    if (!attn__take(m, head, 2) || head[1] > 4 ||
        !attn__take(m, shape, head[1] * sizeof shape[0]) ||
        !attn__take(m, stride, head[1] * sizeof stride[0]) ||
        !attn__take(m, &stored, sizeof stored))
        return refuse(c, a->name, "broken message");
    size = attn_dtype_size((attn_dtype)head[0]);
    v->count = 1;
    for (int x = 0; x < head[1]; x++)
        v->count *= shape[x];
    v->pointer = attn__calloc((size_t)v->count + 1, 8);
    for (int64_t e = 0; v->pointer && e < v->count; e++) {
        int64_t rest = e, from = 0;

        for (int x = head[1] - 1; x >= 0; x--) {
            from += rest % shape[x] * stride[x];
            rest /= shape[x];
        }
        store(v->pointer, a->dtype, e,
              element(m->data + m->at, (attn_dtype)head[0], (uint64_t)from));
    }
    m->at += stored * size;
    if (!a->is_array || head[1] != a->rank) {
        snprintf(rule, sizeof rule, "has rank %d, the signature wants %d",
                 head[1], (int)a->rank);
        return refuse(c, a->name, rule);
    }
    memcpy(v->shape, shape, sizeof shape);
    v->before = attn__alloc((size_t)v->count * 8 + 8);
    if (!v->pointer || !v->before)
        return refuse(c, a->name, "out of memory");
    memcpy(v->before, v->pointer, (size_t)v->count * 8);
    return true;
}

static bool take_value(calling *c, attn__message *m)
{
    int32_t parameter;
    unsigned char kind, yes;
    double real = 0;
    int64_t integers[2] = {0, 0};
    value *v;

    if (!attn__take(m, &parameter, sizeof parameter) ||
        !attn__take(m, &kind, 1) || parameter < 0 ||
        parameter >= c->l->n_parameters)
        return refuse(c, "call", "broken message");
    v = &c->values[c->l->argument[parameter]];
    c->order[c->n++] = c->l->argument[parameter];
    if (kind == ATTN_VALUE_TENSOR)
        return take_tensor(c, m, c->l->argument[parameter]);
    if (kind == ATTN_VALUE_REAL)
        attn__take(m, &real, sizeof real);
    else if (kind == ATTN_VALUE_INTEGER)
        attn__take(m, integers, sizeof integers[0]);
    else if (kind == ATTN_VALUE_BOOLEAN && attn__take(m, &yes, 1))
        integers[0] = yes;
    else if (kind == ATTN_VALUE_PAIR)
        return refuse(c, "call", "a pair cannot be passed to C");
    set_scalar(v, ATTN_F64,
               kind == ATTN_VALUE_REAL ? real : (double)integers[0]);
    return true;
}

/* The length with this name, from the arrays that were given; -1. */
static int64_t length_of(const calling *c, const char *name)
{
    const attn__signature *s = &c->l->signature;

    for (int32_t x = 0; x < s->n; x++) {
        const attn__argument *a = &s->arguments[x];

        for (int32_t r = 0; !a->is_output && r < a->rank; r++) {
            if (c->values[x].pointer && strcmp(a->lengths[r], name) == 0)
                return c->values[x].shape[r];
        }
    }
    return -1;
}

static bool make_output(calling *c, int32_t at)
{
    const attn__argument *a = &c->l->signature.arguments[at];
    value *v = &c->values[at];
    const size_t size = attn_dtype_size(a->dtype);

    v->count = 1;
    for (int32_t r = 0; r < a->rank; r++) {
        v->shape[r] = length_of(c, a->lengths[r]);
        if (v->shape[r] < 0)
            return refuse(c, a->name, "a length is that of no input");
        v->count *= v->shape[r];
    }
    v->pointer = attn__alloc((size_t)v->count * size + FENCE);
    if (!v->pointer)
        return refuse(c, a->name, "out of memory");
    for (int64_t e = 0; e < v->count; e++)
        store(v->pointer, a->dtype, e, NAN);
    memset((char *)v->pointer + (size_t)v->count * size, FENCE_BYTE, FENCE);
    return true;
}

static bool fence_stands(const attn__argument *a, const value *v)
{
    const unsigned char *fence = (const unsigned char *)v->pointer +
                                 (size_t)v->count * attn_dtype_size(a->dtype);

    for (int x = 0; x < FENCE; x++) {
        if (fence[x] != FENCE_BYTE)
            return false;
    }
    return true;
}

/* Arguments of one length must agree. */
static bool lengths_agree(calling *c)
{
    const attn__signature *s = &c->l->signature;

    for (int32_t x = 0; x < s->n; x++) {
        const attn__argument *a = &s->arguments[x];

        for (int32_t r = 0; !a->is_output && c->values[x].pointer &&
                            r < a->rank; r++) {
            if (c->values[x].shape[r] != length_of(c, a->lengths[r]))
                return refuse(c, a->name,
                              "its lengths differ from the signature's");
        }
    }
    return true;
}

static bool complete(calling *c)
{
    const attn__signature *s = &c->l->signature;

    for (int32_t x = 0; x < s->n; x++) {
        const attn__argument *a = &s->arguments[x];

        if (a->is_output && !make_output(c, x))
            return false;
        if (a->is_length)
            set_scalar(&c->values[x], a->dtype,
                       (double)length_of(c, a->name));
    }
    return lengths_agree(c);
}

static ffi_type *type_of(const attn__argument *a, value *v, void **pointer)
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

static bool invoke(calling *c, double *seconds)
{
    const attn__signature *s = &c->l->signature;
    ffi_type *types[ATTN__MOST_ARGUMENTS];
    void *pointers[ATTN__MOST_ARGUMENTS];
    struct timespec start, end;
    ffi_arg ignored;
    ffi_cif cif;

    for (int32_t x = 0; x < s->n; x++)
        types[x] = type_of(&s->arguments[x], &c->values[x], &pointers[x]);
    if (ffi_prep_cif(&cif, FFI_DEFAULT_ABI, (unsigned)s->n, &ffi_type_sint,
                     types) != FFI_OK)
        return refuse(c, "signature", "libffi refuses it");
    clock_gettime(CLOCK_MONOTONIC, &start);
    ffi_call(&cif, c->function, &ignored, pointers);
    clock_gettime(CLOCK_MONOTONIC, &end);
    *seconds = (double)(end.tv_sec - start.tv_sec) +
               1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    for (int32_t x = 0; x < s->n; x++) {
        if (s->arguments[x].is_output &&
            !fence_stands(&s->arguments[x], &c->values[x]))
            return refuse(c, s->arguments[x].name,
                          "the function writes beyond its end");
    }
    return true;
}

static bool write_result(attn__message *m, const attn__argument *a,
                         const value *v)
{
    const unsigned char head[2] = {(unsigned char)a->dtype,
                                   (unsigned char)a->rank};
    bool ok = attn__append(m, head, 2) &&
              attn__append(m, v->shape, (size_t)a->rank * sizeof v->shape[0]);

    for (int64_t e = 0; ok && e < v->count; e++) {
        const double x = element(v->pointer, a->dtype, (uint64_t)e);

        ok = attn__append(m, &x, sizeof x);
    }
    return ok;
}

/* Bits of the values that the call has written to. */
static uint32_t changed(const calling *c)
{
    uint32_t bits = 0;

    for (uint32_t x = 0; x < c->n && x < 32; x++) {
        const value *v = &c->values[c->order[x]];

        if (v->before &&
            memcmp(v->before, v->pointer, (size_t)v->count * 8) != 0)
            bits |= UINT32_C(1) << x;
    }
    return bits;
}

static bool write_answer(const calling *c, double seconds, attn__message *m)
{
    const attn__signature *s = &c->l->signature;
    const uint32_t mutated = changed(c);
    uint32_t n = 0;
    bool ok;

    for (int32_t x = 0; x < s->n; x++)
        n += s->arguments[x].is_output;
    ok = attn__append(m, "A", 1) &&
         attn__append(m, &seconds, sizeof seconds) &&
         attn__append(m, &mutated, sizeof mutated) &&
         attn__append(m, &n, sizeof n);
    for (int32_t x = 0; ok && x < s->n; x++) {
        if (s->arguments[x].is_output)
            ok = write_result(m, &s->arguments[x], &c->values[x]);
    }
    return ok;
}

static void write_refusal(const char *problem, attn__message *m)
{
    const uint32_t length = (uint32_t)strlen(problem);

    m->length = 0;
    if (!attn__append(m, "R", 1) ||
        !attn__append(m, &length, sizeof length) ||
        !attn__append(m, problem, length))
        m->length = 0;
}

static void answer(const attn__symbol *l, void (*function)(void),
                   attn__message *m, attn__message *reply)
{
    char problem[256] = "broken message";
    calling c = {.l = l, .function = function, .problem = problem};
    double seconds = 0;
    uint32_t n;
    bool ok = attn__take(m, &n, sizeof n);

    ok = ok && n <= ATTN__MOST_ARGUMENTS;
    for (uint32_t x = 0; ok && x < n; x++)
        ok = take_value(&c, m);
    ok = ok && complete(&c) && invoke(&c, &seconds) &&
         write_answer(&c, seconds, reply);
    if (!ok)
        write_refusal(problem, reply);
    for (int x = 0; x < ATTN__MOST_ARGUMENTS; x++) {
        attn__free(c.values[x].pointer);
        attn__free(c.values[x].before);
    }
}

/* What the function prints is not for us. */
static void silence(void)
{
    const int nowhere = open("/dev/null", O_RDWR);

    if (nowhere >= 0) {
        dup2(nowhere, 1);
        dup2(nowhere, 2);
    }
}

/* The child's whole life. */
void attn__serve_symbol(const attn__symbol *l, int link)
{
    attn__child parent = {.pid = 1, .link = link};
    void *handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, l->function) : NULL;
    const char *error = symbol ? NULL : dlerror();
    attn__message m, reply = {0};
    void (*function)(void) = NULL;

    silence();
    if (symbol)
        memcpy(&function, &symbol, sizeof function);
    if (error)
        write_refusal(error, &reply);
    else if (!attn__append(&reply, "H", 1))
        return;
    attn__child_send(&parent, &reply, 60);
    while (!error &&
           attn__child_receive(&parent, &m, 3600) == ATTN_ANSWERED) {
        reply.length = 0;
        answer(l, function, &m, &reply);
        attn__message_free(&m);
        if (attn__child_send(&parent, &reply, 60) != ATTN_ANSWERED)
            return;
    }
}
