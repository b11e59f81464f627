/* SPDX-License-Identifier: Apache-2.0
 *
 * The arrays of a dump: by name, as numbers, in the doctor's layout. */
#include <string.h>

#include "core/half.h"
#include "doctor/exam.h"

const attn_input *attn__dump_find(const attn__dump *d, const char *names)
{
    char word[48];

    for (int32_t x = 0; x < d->n; x++) {
        attn__normalise(d->arrays[x].name, word, sizeof word);
        if (strstr(names, word))
            return &d->arrays[x].tensor;
    }
    return NULL;
}

static double element(const attn_input *t, int64_t at)
{
    switch (t->dtype) {
    case ATTN_F64:
        return ((const double *)t->data)[at];
    case ATTN_F32:
        return (double)((const float *)t->data)[at];
    case ATTN_F16:
        return (double)attn__f32_of_f16(((const uint16_t *)t->data)[at]);
    case ATTN_BF16:
        return (double)attn__f32_of_bf16(((const uint16_t *)t->data)[at]);
    case ATTN_I32:
        return (double)((const int32_t *)t->data)[at];
    case ATTN_I64:
        return (double)((const int64_t *)t->data)[at];
    default:
        return (double)((const unsigned char *)t->data)[at];
    }
}

int64_t attn__dump_count(const attn_input *t)
{
    int64_t n = 1;

    for (int32_t a = 0; a < t->rank; a++)
        n *= t->shape[a];
    return n;
}

/* Where element x of the row-major order lies. */
static int64_t offset_of(const attn_input *t, int64_t x)
{
    int64_t at = 0;

    for (int32_t a = t->rank - 1; a >= 0; a--) {
        at += x % t->shape[a] * t->stride[a];
        x /= t->shape[a];
    }
    return at;
}

double *attn__dump_numbers(const attn__dump *d, const attn_input *t)
{
    const int64_t n = attn__dump_count(t);
    double *x = attn__arena_doubles(&d->exam->arena, n + 1);

    for (int64_t e = 0; x && e < n; e++)
        x[e] = element(t, offset_of(t, e));
    return x;
}

bool attn__dump_sizes(const attn_input *t, attn__layout layout, int64_t n[4])
{
    const attn__layout_facts *f = attn__layout_facts_of(layout);
    int32_t at = 0;

    if (t->rank != 2 + f->batch + f->heads)
        return false;
    n[0] = f->batch ? t->shape[at++] : 1;
    n[1] = 1;
    if (f->heads && f->heads_first)
        n[1] = t->shape[at++];
    if (f->dim_first)
        n[3] = t->shape[at++];
    n[2] = t->shape[at++];
    if (f->heads && !f->heads_first)
        n[1] = t->shape[at++];
    if (!f->dim_first)
        n[3] = t->shape[at];
    return true;
}

double *attn__dump_arranged(const attn__dump *d, const attn_input *t,
                            attn__layout layout, const int64_t wanted[4])
{
    int64_t n[4];
    const double *x;
    double *y;

    if (!t || !attn__dump_sizes(t, layout, n) ||
        memcmp(n, wanted, sizeof n) != 0)
        return NULL;
    x = attn__dump_numbers(d, t);
    y = attn__arena_doubles(&d->exam->arena, attn__dump_count(t) + 1);
    for (int64_t e = 0; x && y && e < attn__dump_count(t); e++)
        y[e] = x[attn__layout_at(layout, n, e)];
    return y;
}

double *attn__dump_named(const attn__dump *d, const char *names,
                         attn__layout layout, const int64_t wanted[4])
{
    return attn__dump_arranged(d, attn__dump_find(d, names), layout, wanted);
}
