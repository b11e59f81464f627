/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory, random numbers, the data as matrices, and attention on them. */
#include "lab/workbench.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ memory */

bool attn__lab_refuse(lab *l, attn_status status, const char *field,
                      const char *sentence)
{
    if (l->status != ATTN_OK)
        return false;
    l->status = status;
    l->diag->status = status;
    snprintf(l->diag->field, sizeof l->diag->field, "%s", field);
    snprintf(l->diag->message, sizeof l->diag->message, "%s", sentence);
    return false;
}

/* Blocks are chained: each begins with the address of the one before, in a
 * space that keeps what follows aligned. */
void *attn__lab_memory(lab *l, int64_t n, size_t size)
{
    const size_t head = 16, bytes = (size_t)n * size;
    unsigned char *block = attn_realloc(NULL, head + bytes);

    if (!block) {
        attn__lab_refuse(l, ATTN_E_NOMEM, "memory", "is short");
        return NULL;
    }
    memcpy(block, &l->result->memory, sizeof l->result->memory);
    l->result->memory = block;
    memset(block + head, 0, bytes);
    return block + head;
}

double *attn__lab_numbers(lab *l, int64_t rows, int64_t columns)
{
    return attn__lab_memory(l, rows * columns + 1, sizeof(double));
}

const char *attn__lab_text(lab *l, const char *format, ...)
{
    char text[512], *copy;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    copy = attn__lab_memory(l, (int64_t)strlen(text) + 1, 1);
    if (copy)
        memcpy(copy, text, strlen(text) + 1);
    return copy;
}

/* ------------------------------------------------------------------ random */

/* SplitMix64: uniform in (0, 1). */
static double uniform(lab *l)
{
    uint64_t z = l->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) * 0x1p-53;
}

double *attn__lab_normal(lab *l, int64_t rows, int64_t columns, double factor)
{
    double *x = attn__lab_numbers(l, rows, columns);

    /* Box and Muller. */
    for (int64_t i = 0; x && i < rows * columns; i++) {
        const double radius = sqrt(-2 * log(uniform(l)));

        x[i] = factor * radius * cos(2 * 3.14159265358979323846 * uniform(l));
    }
    return x;
}

/* -------------------------------------------------------------------- data */

static bool is_given(const attn_input *in)
{
    return in->dtype != ATTN_NONE;
}

double *attn__lab_take(lab *l, const attn_input *in, const char *name,
                       int64_t rows, int64_t columns)
{
    double *x;

    if (in->dtype != ATTN_F64 && in->dtype != ATTN_F32) {
        attn__lab_refuse(l, ATTN_E_DTYPE, name, "must be f64 or f32");
        return NULL;
    }
    if (in->rank != 2 || in->shape[0] != rows || in->shape[1] != columns) {
        attn__lab_refuse(l, ATTN_E_SHAPE, name,
                         "must be 2-D and fit the other arrays");
        return NULL;
    }
    x = attn__lab_numbers(l, rows, columns);
    for (int64_t i = 0; x && i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const int64_t at = i * in->stride[0] + j * in->stride[1];

            x[i * columns + j] = in->dtype == ATTN_F64
                                     ? ((const double *)in->data)[at]
                                     : (double)((const float *)in->data)[at];
        }
    return x;
}

double *attn__lab_product(lab *l, const double *a, const double *b, int64_t m,
                          int64_t k, int64_t n)
{
    double *c = attn__lab_numbers(l, m, n);

    for (int64_t i = 0; c && i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t t = 0; t < k; t++)
                c[i * n + j] += a[i * k + t] * b[t * n + j];
    return c;
}

static bool is_legal(lab *l, const attn_input *in, const char *name)
{
    if (in->rank != 2)
        return attn__lab_refuse(l, ATTN_E_SHAPE, name, "must be 2-D");
    if (in->shape[0] < 1 || in->shape[1] < 1)
        return attn__lab_refuse(l, ATTN_E_SHAPE, name, "is empty");
    if (in->shape[0] > 4096 || in->shape[1] > 1024)
        return attn__lab_refuse(l, ATTN_E_LIMIT, name, "is larger than "
                                "(4096, 1024)");
    return true;
}

/* q, k and v as they are; x is the identity. */
static bool take_given(lab *l, scene *s)
{
    const attn_lab_data *d = l->data;

    if (!is_given(&d->q) || !is_given(&d->k) || !is_given(&d->v))
        return attn__lab_refuse(l, ATTN_E_ARG, "q", "comes with k and v, or "
                                "not at all");
    if (is_given(&d->x))
        return attn__lab_refuse(l, ATTN_E_ARG, "x", "can't come with q, k and "
                                "v");
    if (!is_legal(l, &d->q, "q") || !is_legal(l, &d->v, "v"))
        return false;
    s->given_q = true;
    s->len = s->width = d->q.shape[0];
    s->dim = d->q.shape[1];
    s->dim_v = d->v.shape[1];
    s->q = attn__lab_take(l, &d->q, "q", s->len, s->dim);
    s->k = attn__lab_take(l, &d->k, "k", s->len, s->dim);
    s->v = attn__lab_take(l, &d->v, "v", s->len, s->dim_v);
    s->x = attn__lab_numbers(l, s->len, s->len);
    if (!s->q || !s->k || !s->v || !s->x)
        return false;
    for (int64_t i = 0; i < s->len; i++)
        s->x[i * s->len + i] = 1;
    s->w_q = s->q;
    s->w_k = s->k;
    s->w_v = s->v;
    return true;
}

/* A weight (width, dim): given, or random of a size that keeps q at 1. */
static double *take_weight(lab *l, const attn_input *in, const char *name,
                           int64_t width, int64_t dim)
{
    return is_given(in)
               ? attn__lab_take(l, in, name, width, dim)
               : attn__lab_normal(l, width, dim, 1 / sqrt((double)width));
}

static bool take_sizes(lab *l, int64_t len, int64_t dim, scene *s)
{
    const attn_lab_data *d = l->data;

    s->len = d->len > 0 ? d->len : len;
    s->dim = d->dim > 0 ? d->dim : dim;
    s->width = s->dim;
    if (is_given(&d->x)) {
        if (!is_legal(l, &d->x, "x"))
            return false;
        s->len = d->x.shape[0];
        s->width = d->x.shape[1];
        s->dim = s->width;
    } else if (is_given(&d->w_q) || is_given(&d->w_k) || is_given(&d->w_v)) {
        return attn__lab_refuse(l, ATTN_E_ARG, "x", "is missing; w_q, w_k and "
                                "w_v act on it");
    }
    if (is_given(&d->w_q) && !is_legal(l, &d->w_q, "w_q"))
        return false;
    if (is_given(&d->w_k) && !is_legal(l, &d->w_k, "w_k"))
        return false;
    if (is_given(&d->w_v) && !is_legal(l, &d->w_v, "w_v"))
        return false;
    if (is_given(&d->w_q))
        s->dim = d->w_q.shape[1];
    else if (is_given(&d->w_k))
        s->dim = d->w_k.shape[1];
    s->dim_v = is_given(&d->w_v) ? d->w_v.shape[1] : s->dim;
    return true;
}

bool attn__lab_scene(lab *l, int64_t len, int64_t dim, scene *s)
{
    const attn_lab_data *d = l->data;

    memset(s, 0, sizeof *s);
    if (is_given(&d->q) || is_given(&d->k) || is_given(&d->v))
        return take_given(l, s);
    if (!take_sizes(l, len, dim, s))
        return false;
    s->x = is_given(&d->x) ? attn__lab_take(l, &d->x, "x", s->len, s->width)
                           : attn__lab_normal(l, s->len, s->width, 1);
    s->w_q = take_weight(l, &d->w_q, "w_q", s->width, s->dim);
    s->w_k = take_weight(l, &d->w_k, "w_k", s->width, s->dim);
    s->w_v = take_weight(l, &d->w_v, "w_v", s->width, s->dim_v);
    if (!s->x || !s->w_q || !s->w_k || !s->w_v)
        return false;
    s->q = attn__lab_product(l, s->x, s->w_q, s->len, s->width, s->dim);
    s->k = attn__lab_product(l, s->x, s->w_k, s->len, s->width, s->dim);
    s->v = attn__lab_product(l, s->x, s->w_v, s->len, s->width, s->dim_v);
    return s->q && s->k && s->v;
}

/* --------------------------------------------------------------- attention */

static void show(const rules *r, int64_t len, unsigned char *shown)
{
    for (int64_t i = 0; i < len; i++)
        for (int64_t j = 0; j < len; j++) {
            const bool late = (r->causal || r->width > 0) && j > i;
            const bool early = r->width > 0 && j <= i - r->width;

            shown[i * len + j] = !late && !early &&
                                 (!r->mask || r->mask[i * len + j]);
        }
}

bool attn__lab_attend(lab *l, int64_t len, int64_t dim, int64_t dim_v,
                      const double *q, const double *k, const double *v,
                      const rules *r, attended *to)
{
    const int64_t square[2] = {len, len};
    attn_desc desc;
    attn_args args;

    to->p = attn__lab_numbers(l, len, len);
    to->o = attn__lab_numbers(l, len, dim_v);
    to->shown = attn__lab_memory(l, len * len + 1, 1);
    if (!to->p || !to->o || !to->shown)
        return false;
    show(r, len, to->shown);
    attn_desc_init(&desc, ATTN_F64, 1, 1, 1, len, len, dim, dim_v);
    if (r->scale != 0)
        desc.scale = r->scale;
    if (r->causal || r->width > 0)
        desc.causal = ATTN_CAUSAL_TOP_LEFT;
    if (r->width > 0)
        desc.window_left = r->width - 1;
    desc.empty_rows = r->nan ? ATTN_EMPTY_NAN : ATTN_EMPTY_ZERO;
    attn_args_init(&args);
    args.q = attn_in_bhsd(q, ATTN_F64, 1, 1, len, dim);
    args.kv.k = attn_in_bhsd(k, ATTN_F64, 1, 1, len, dim);
    args.kv.v = attn_in_bhsd(v, ATTN_F64, 1, 1, len, dim_v);
    if (r->mask) {
        desc.inputs = ATTN_WITH_MASK;
        args.mask = attn_in_dense(r->mask, ATTN_BOOL, 2, square);
    }
    args.o = attn_bhsd(to->o, ATTN_F64, 1, 1, len, dim_v);
    args.weights = attn_bhsd(to->p, ATTN_F64, 1, 1, len, len);
    l->status = attn_attention(&desc, &args, 1, l->diag);
    return l->status == ATTN_OK;
}
