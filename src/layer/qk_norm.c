/* SPDX-License-Identifier: Apache-2.0
 *
 * Root-mean-square norm of each head's q or k, in fp64, and its transpose:
 *
 *   r = 1 / sqrt(mean(x^2) + eps)          y_c = g_c x_c r
 *   dx_c = r (g_c dy_c - x_c r^2 mean(g x dy))
 *   dg_c = sum over rows of dy_c x_c r
 *
 * (Zhang and Sennrich 2019; over q and k: Henry et al. 2020.) Rows are few
 * beside the products around them, so plain loops on one thread do. */
#include "core/element.h"
#include "layer/layer_steps.h"

#include <math.h>
#include <string.h>

/* One row of one head: where its first element is, and that of its gain. */
typedef struct norm_row {
    const attn_input *x, *g;
    int64_t x_at, g_at;
    int64_t dim;
    double r;
} norm_row;

static double x_of(const norm_row *row, int64_t c)
{
    return attn__read(row->x->data, row->x->dtype,
                      row->x_at + c * row->x->stride[3]);
}

static int64_t gain_at(const attn_input *g, int64_t h, int64_t c)
{
    return g->rank == 2 ? h * g->stride[0] + c * g->stride[1]
                        : c * g->stride[0];
}

static double g_of(const norm_row *row, int64_t c)
{
    return attn__given(row->g)
               ? attn__read(row->g->data, row->g->dtype,
                            row->g_at + gain_at(row->g, 0, c))
               : 1;
}

static int64_t row_at(const int64_t *stride, int64_t b, int64_t h, int64_t i)
{
    return b * stride[0] + h * stride[1] + i * stride[2];
}

static norm_row make_row(const attn_input *x, const attn_input *g, double eps,
                         int64_t b, int64_t h, int64_t i)
{
    norm_row row = {x, g, row_at(x->stride, b, h, i), 0, x->shape[3], 0};
    double sum = 0;

    if (attn__given(g))
        row.g_at = gain_at(g, h, 0);
    for (int64_t c = 0; c < row.dim; c++)
        sum += x_of(&row, c) * x_of(&row, c);
    row.r = 1 / sqrt(sum / (double)row.dim + eps);
    return row;
}

void attn__qk_norm(attn_input x, attn_input g, double eps, attn_tensor y)
{
    for (int64_t b = 0; b < x.shape[0]; b++)
        for (int64_t i = 0; i < x.shape[2]; i++)
            for (int64_t h = 0; h < x.shape[1]; h++) {
                const norm_row row = make_row(&x, &g, eps, b, h, i);
                const int64_t y_at = row_at(y.stride, b, h, i);

                for (int64_t c = 0; c < row.dim; c++)
                    attn__write(y.data, y.dtype, y_at + c * y.stride[3],
                                x_of(&row, c) * row.r * g_of(&row, c));
            }
}

/* Of one row: its terms of dg into sums (dim), then dx over dy. */
static void row_backward(const norm_row *row, const attn_tensor *dy,
                         int64_t at, double *sums)
{
    double mean = 0;

    for (int64_t c = 0; c < row->dim; c++) {
        const double d =
            attn__read(dy->data, dy->dtype, at + c * dy->stride[3]);

        sums[c] += d * x_of(row, c) * row->r;
        mean += d * g_of(row, c) * x_of(row, c);
    }
    mean /= (double)row->dim;
    for (int64_t c = 0; c < row->dim; c++) {
        const int64_t here = at + c * dy->stride[3];
        const double d = attn__read(dy->data, dy->dtype, here) * g_of(row, c);

        attn__write(dy->data, dy->dtype, here,
                    row->r * (d - x_of(row, c) * row->r * row->r * mean));
    }
}

/* (dim): of all heads, ascending; (heads, dim): each its own. */
static void store_gains(const attn_tensor *dg, const double *sums,
                        int64_t heads, int64_t dim)
{
    for (int64_t c = 0; c < dim; c++) {
        double total = 0;

        for (int64_t h = 0; h < heads; h++) {
            const double sum = sums[h * dim + c];

            if (dg->rank == 2)
                attn__write(dg->data, dg->dtype,
                            h * dg->stride[0] + c * dg->stride[1], sum);
            total += sum;
        }
        if (dg->rank == 1)
            attn__write(dg->data, dg->dtype, c * dg->stride[0], total);
    }
}

void attn__qk_norm_backward(attn_input x, attn_input g, double eps,
                            attn_tensor dy_dx, attn_tensor dg, double *sums)
{
    const int64_t heads = x.shape[1], dim = x.shape[3];

    memset(sums, 0, (size_t)(heads * dim) * sizeof *sums);
    for (int64_t b = 0; b < x.shape[0]; b++)
        for (int64_t i = 0; i < x.shape[2]; i++)
            for (int64_t h = 0; h < heads; h++) {
                const norm_row row = make_row(&x, &g, eps, b, h, i);

                row_backward(&row, &dy_dx, row_at(dy_dx.stride, b, h, i),
                             sums + h * dim);
            }
    if (attn__asked(&dg))
        store_gains(&dg, sums, heads, dim);
}
