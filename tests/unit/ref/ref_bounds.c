/* SPDX-License-Identifier: Apache-2.0
 *
 * The bounds of ref_bounds.h, summed up pair by pair. */
#include "ref_bounds.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "unit.h"

static const long double u = DBL_EPSILON / 2;

/* Row quantities of the case, all in long double. */
typedef struct row_sizes {
    int64_t r, b, h, i, key; /* key: row of k and v that is its key 0 */
    long double score;       /* S */
    long double error_p;     /* E */
    long double error_lse;
    long double gain;     /* 2 R + |dlse| */
    long double error_ds; /* C + cap */
} row_sizes;

static long double absolute_dot(const double *x, const double *y, int64_t n)
{
    long double sum = 0;

    for (int64_t c = 0; c < n; c++)
        sum += fabsl((long double)x[c] * y[c]);
    return sum;
}

static int64_t at(const int64_t *stride, const row_sizes *row, int64_t j)
{
    return row->b * stride[0] + row->h * stride[1] + row->i * stride[2] +
           j * stride[3];
}

static long double slope_at(const ref_case *c, const row_sizes *row)
{
    return c->slopes ? c->slopes[row->b * c->slopes_stride[0] +
                                 row->h * c->slopes_stride[1]]
                     : 0;
}

static long double distance(const ref_case *c, const row_sizes *row, int64_t j)
{
    return fabsl((long double)(row->i + c->q_offset[row->b] - j));
}

static long double score_size(const ref_case *c, const row_sizes *row,
                              int64_t j)
{
    const int64_t d = c->f.dim_qk;
    long double size =
        fabsl(c->scale) *
        absolute_dot(c->q + row->r * d, c->k + (row->key + j) * d, d);

    if (c->bias)
        size += fabsl(c->bias[at(c->bias_stride, row, j)]);
    return size + fabsl(slope_at(c, row)) * distance(c, row, j);
}

static long double factor(const ref_case *c, int64_t pair)
{
    return c->dropout ? c->dropout[pair] : 1;
}

static row_sizes sizes_of(const ref_case *c, const ref_outputs *exact,
                          int64_t r)
{
    const ref_features *f = &c->f;
    const long double d = (long double)f->dim_qk, n = (long double)f->len_k;
    row_sizes row = {.r = r, .i = r % f->len_q};
    long double most = 0, cap = 0;

    row.h = r / f->len_q % f->heads_q;
    row.b = r / f->len_q / f->heads_q;
    row.key =
        (row.b * f->heads_kv + row.h / (f->heads_q / f->heads_kv)) * f->len_k;
    for (int64_t j = 0; j < f->len_k; j++) {
        const int64_t pair = r * f->len_k + j;

        if (!exact->visible[pair])
            continue;
        row.score = fmaxl(row.score, score_size(c, &row, j));
        most = fmaxl(most, factor(c, pair) *
                               absolute_dot(c->d_o + r * f->dim_v,
                                            c->v + (row.key + j) * f->dim_v,
                                            f->dim_v));
    }
    if (c->sinks && isfinite(c->sinks[row.h]))
        row.score = fmaxl(row.score, fabsl(c->sinks[row.h]));
    row.gain = 2 * most + (c->dlse ? fabsl(c->dlse[r]) : 0);
    row.error_p = (4 * (d + 4) * row.score + 2 * n + 16) * u;
    row.error_lse = ((d + 5) * row.score + n + 8) * u;
    if (isfinite(exact->lse[r]))
        row.error_lse += 2 * fabsl(exact->lse[r]) * u;
    if (f->softcap > 0)
        cap = (4 + 2 * (d + 4) * row.score / f->softcap) * u;
    row.error_ds =
        3 * row.error_p + (2 * (long double)f->dim_v + n + 16) * u + cap;
    return row;
}

static void bound_row(const ref_case *c, const ref_outputs *exact,
                      const row_sizes *row, ref_bounds *b)
{
    const int64_t r = row->r, n = c->f.len_k;

    b->lse[r] = row->error_lse;
    for (int64_t j = 0; j < n; j++)
        b->weights[r * n + j] = row->error_p * exact->weights[r * n + j];
    for (int64_t j = 0; j < n; j++) { /* d(p ln p) = (ln p + 1) dp */
        const long double p = exact->weights[r * n + j];
        if (p > 0)
            b->entropy[r] += (row->error_p + (long double)(n + 4) * u) * p *
                             (1 + 2 * fabsl(logl(p)));
    }
    if (b->dsinks)
        b->dsinks[row->h] +=
            (row->error_ds + row->error_lse + (long double)(c->rows + 4) * u) *
            expl(c->sinks[row->h] - exact->lse[r]) * row->gain;
}

/* What the pair (row, j) adds to the bounds of sums. */
static void bound_pair(const ref_case *c, const ref_outputs *exact,
                       const row_sizes *row, int64_t j, ref_bounds *b)
{
    const ref_features *f = &c->f;
    const int64_t pair = row->r * f->len_k + j, key = row->key + j;
    const long double terms = (long double)(c->pairs + 4) * u;
    const long double p = exact->weights[pair];
    const long double pf = p * factor(c, pair) * (row->error_p + terms);
    const long double ds = p * row->gain * (row->error_ds + terms);

    for (int64_t x = 0; x < f->dim_v; x++) {
        b->o[row->r * f->dim_v + x] += pf * fabsl(c->v[key * f->dim_v + x]);
        b->dv[key * f->dim_v + x] += pf * fabsl(c->d_o[row->r * f->dim_v + x]);
    }
    for (int64_t x = 0; x < f->dim_qk; x++) {
        const long double each = fabsl(c->scale) * ds;
        b->dq[row->r * f->dim_qk + x] +=
            each * fabsl(c->k[key * f->dim_qk + x]);
        b->dk[key * f->dim_qk + x] +=
            each * fabsl(c->q[row->r * f->dim_qk + x]);
    }
    if (b->dbias)
        b->dbias[at(c->bias_stride, row, j)] += ds;
    if (b->dslopes)
        b->dslopes[row->b * c->slopes_stride[0] +
                   row->h * c->slopes_stride[1]] += ds * distance(c, row, j);
}

static long double *zeros(int64_t n)
{
    long double *x = calloc((size_t)n + 1, sizeof *x);

    assert_non_null(x);
    return x;
}

ref_bounds ref_bounds_open(const ref_case *c, const ref_outputs *exact)
{
    ref_bounds b = {.weights = zeros(c->pairs),
                    .lse = zeros(c->rows),
                    .entropy = zeros(c->rows),
                    .o = zeros(c->n_o),
                    .dq = zeros(c->n_q),
                    .dk = zeros(c->n_k),
                    .dv = zeros(c->n_v),
                    .dbias = c->bias ? zeros(c->n_bias) : NULL,
                    .dslopes = c->slopes ? zeros(c->n_slopes) : NULL,
                    .dsinks = c->sinks ? zeros(c->f.heads_q) : NULL};

    for (int64_t r = 0; r < c->rows; r++) {
        const row_sizes row = sizes_of(c, exact, r);

        bound_row(c, exact, &row, &b);
        for (int64_t j = 0; j < c->f.len_k; j++) {
            if (exact->visible[r * c->f.len_k + j])
                bound_pair(c, exact, &row, j, &b);
        }
    }
    return b;
}

void ref_bounds_close(ref_bounds *b)
{
    long double *owned[] = {b->weights, b->lse,   b->entropy, b->o,
                            b->dq,      b->dk,    b->dv,      b->dbias,
                            b->dslopes, b->dsinks};

    for (size_t n = 0; n < COUNT(owned); n++)
        free(owned[n]);
    *b = (ref_bounds){0};
}
