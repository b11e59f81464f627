/* SPDX-License-Identifier: Apache-2.0
 *
 * Random attention problems: see ref_case.h. */
#include "ref_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/philox.h"
#include "unit.h"

static uint32_t word(uint64_t seed, uint64_t at)
{
    return attn__philox4x32(
               (attn__philox){{(uint32_t)at, (uint32_t)(at >> 32), 0, 0}}, seed)
        .word[0];
}

/* Sum of 12 uniform numbers less 6: mean 0, variance 1, |x| < 6. */
double ref_normal(uint64_t seed, uint64_t at)
{
    double sum = -6;

    for (uint64_t n = 0; n < 12; n++)
        sum += ((double)word(seed, at * 12 + n) + 0.5) * 0x1p-32;
    return sum;
}

int64_t ref_below(uint64_t seed, uint64_t at, int64_t n)
{
    return (int64_t)(word(~seed, at) % (uint64_t)n);
}

static void *room(int64_t n, size_t size)
{
    void *memory = calloc(n > 0 ? (size_t)n : 1, size);

    assert_non_null(memory);
    return memory;
}

/* Arrays draw from streams of their own, so that one more feature leaves the
 * other numbers as they were. */
static double *normals(uint64_t seed, uint64_t stream, int64_t n, double size)
{
    double *x = room(n, sizeof *x);

    for (int64_t i = 0; i < n; i++)
        x[i] = size * ref_normal(seed, (stream << 32) + (uint64_t)i);
    return x;
}

/* Dense strides over the axes that `has` names, 0 on the others; the number of
 * elements. */
static int64_t spread(const char *axes, const char *has, const int64_t *length,
                      int64_t *stride)
{
    int64_t step = 1;

    for (int64_t a = (int64_t)strlen(axes) - 1; a >= 0; a--) {
        const bool own = strchr(has, axes[a]) != NULL;

        stride[a] = own ? step : 0;
        step *= own ? length[a] : 1;
    }
    return step;
}

static void open_mask(ref_case *c, const int64_t *length, uint64_t seed)
{
    const int64_t n = spread("bhij", c->f.mask, length, c->mask_stride);

    c->mask = room(n, 1);
    for (int64_t x = 0; x < n; x++)
        c->mask[x] = ref_below(seed, (uint64_t)x, 3) > 0;
    /* Query 0 of every mask that has an axis of queries. */
    for (int64_t x = 0; c->f.empty_row && x < n; x++) {
        if (x / c->mask_stride[2] % c->f.len_q == 0)
            c->mask[x] = 0;
    }
}

static void open_bias(ref_case *c, const int64_t *length, uint64_t seed)
{
    c->n_bias = spread("bhij", c->f.bias, length, c->bias_stride);
    c->bias = normals(seed, 5, c->n_bias, 1);
    for (int64_t x = 0; c->f.bias_hides && x < c->n_bias; x++) {
        if (ref_below(seed, (uint64_t)x + 1000000, 3) == 0)
            c->bias[x] = -INFINITY;
    }
}

static void open_geometry(ref_case *c, uint64_t seed)
{
    const ref_features *f = &c->f;

    c->q_offset = room(f->batch, sizeof *c->q_offset);
    if (f->k_lengths)
        c->k_lengths = room(f->batch, sizeof *c->k_lengths);
    for (int64_t b = 0; b < f->batch; b++) {
        if (f->k_lengths)
            c->k_lengths[b] =
                1 + ref_below(seed, 2000000 + (uint64_t)b, f->len_k);
        if (f->q_offset)
            c->q_offset[b] =
                ref_below(seed, 3000000 + (uint64_t)b, f->len_k) - 1;
        else if (f->causal == ATTN_CAUSAL_BOTTOM_RIGHT)
            c->q_offset[b] =
                (f->k_lengths ? c->k_lengths[b] : f->len_k) - f->len_q;
    }
}

static void open_dropout(ref_case *c, uint64_t seed)
{
    c->dropout = room(c->pairs, sizeof *c->dropout);
    for (int64_t x = 0; x < c->pairs; x++) {
        const double at =
            (double)word(seed, (UINT64_C(9) << 32) + (uint64_t)x) * 0x1p-32;
        c->dropout[x] = at >= c->f.dropout ? 1 / (1 - c->f.dropout) : 0;
    }
}

static void count(ref_case *c)
{
    const ref_features *f = &c->f;

    c->rows = f->batch * f->heads_q * f->len_q;
    c->pairs = c->rows * f->len_k;
    c->n_q = c->rows * f->dim_qk;
    c->n_o = c->rows * f->dim_v;
    c->n_k = f->batch * f->heads_kv * f->len_k * f->dim_qk;
    c->n_v = f->batch * f->heads_kv * f->len_k * f->dim_v;
}

ref_case ref_case_open(const ref_features *f, uint64_t seed)
{
    const int64_t length[] = {f->batch, f->heads_q, f->len_q, f->len_k};
    ref_case c = {.f = *f};

    count(&c);
    c.scale = f->scale_is_zero ? 0
              : f->scale != 0  ? f->scale
              : f->dim_qk > 0  ? 1 / sqrt((double)f->dim_qk)
                               : 1;
    c.q = normals(seed, 1, c.n_q, 1.5);
    c.k = normals(seed, 2, c.n_k, 1.5);
    c.v = normals(seed, 3, c.n_v, 1);
    c.d_o = normals(seed, 4, c.n_o, 1);
    if (f->dlse)
        c.dlse = normals(seed, 6, c.rows, 1);
    if (f->mask)
        open_mask(&c, length, seed);
    if (f->bias)
        open_bias(&c, length, seed);
    if (f->slopes) {
        c.n_slopes = spread("bh", f->slopes, length, c.slopes_stride);
        c.slopes = normals(seed, 7, c.n_slopes, 0.3);
    }
    if (f->sinks)
        c.sinks = normals(seed, 8, f->heads_q, 1);
    if (f->dropout > 0)
        open_dropout(&c, seed);
    open_geometry(&c, seed);
    return c;
}

void ref_case_close(ref_case *c)
{
    void *owned[] = {c->q,       c->k,    c->v,        c->d_o,
                     c->dlse,    c->bias, c->slopes,   c->sinks,
                     c->dropout, c->mask, c->q_offset, c->k_lengths};

    for (size_t n = 0; n < COUNT(owned); n++)
        free(owned[n]);
    *c = (ref_case){0};
}

void ref_outputs_close(ref_outputs *out)
{
    void *owned[] = {out->o,       out->lse,    out->entropy, out->weights,
                     out->dq,      out->dk,     out->dv,      out->dbias,
                     out->dslopes, out->dsinks, out->visible, out->softcapped};

    for (size_t n = 0; n < COUNT(owned); n++)
        free(owned[n]);
    *out = (ref_outputs){0};
}
