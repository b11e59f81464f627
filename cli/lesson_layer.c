/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lesson about a layer has besides that about its head: the parts of x,
 * of the weights and of y that belong to the head, and their gradients. All
 * are copies out of what the library's own run was given and gave. */
#include "lesson.h"

#include <string.h>

const cli_part *cli_part_of(const cli_lesson *s, const char *name)
{
    for (int i = 0; i < s->n_parts; i++)
        if (strcmp(s->parts[i].name, name) == 0)
            return &s->parts[i];
    return NULL;
}

static cli_part *add(cli_lesson *s, const char *name, int64_t rows,
                     int64_t columns)
{
    cli_part *part = &s->parts[s->n_parts];

    *part = (cli_part){name, rows, columns, cli_numbers(rows, columns)};
    s->n_parts += part->x != NULL;
    return part->x ? part : NULL;
}

/* Rows and columns of the last two axes of `t` (a vector is one row), from
 * (row, column) on, of batch b if it has batches. An absent t has no part. */
static bool take(cli_lesson *s, const char *name, attn_input t, int64_t b,
                 int64_t row, int64_t column, int64_t rows, int64_t columns)
{
    const int64_t down = t.rank > 1 ? t.stride[t.rank - 2] : 0;
    const int64_t right = t.rank > 0 ? t.stride[t.rank - 1] : 0;
    const double *from = (const double *)t.data;
    cli_part *part;

    if (t.dtype == ATTN_NONE)
        return true;
    part = add(s, name, rows, columns);
    if (!part)
        return false;
    if (t.rank > 2)
        from += b * t.stride[0];
    from += row * down + column * right;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            part->x[i * columns + j] = from[i * down + j * right];
    return true;
}

/* The columns of a head of w_q, w_k or w_v, and of its bias. */
static bool take_columns(cli_lesson *s, const char *w_name, attn_input w,
                         const char *b_name, attn_input b, int64_t head,
                         int64_t dim)
{
    return take(s, w_name, w, 0, 0, head * dim, w.shape[0], dim) &&
           take(s, b_name, b, 0, 0, head * dim, 1, dim);
}

/* Y's columns: those of W_O or, without it, this head's. */
static bool take_y(cli_lesson *s, const char *name, attn_input y)
{
    const int64_t dim = s->problem.dim_v;
    const bool mixed = s->layer->desc.dim_y > 0;

    return take(s, name, y, s->batch, 0, mixed ? 0 : s->head * dim,
                s->problem.len_q, mixed ? s->layer->desc.dim_y : dim);
}

/* What this head adds to Y: O W_O, its rows. */
static bool add_share(cli_lesson *s)
{
    const cli_part *w = cli_part_of(s, "w_o");
    const cli_part *share = w ? add(s, "share", s->problem.len_q, w->columns)
                              : NULL;

    if (!w)
        return true;
    for (int64_t i = 0; share && i < share->rows; i++)
        for (int64_t c = 0; c < w->rows; c++)
            for (int64_t j = 0; j < w->columns; j++)
                share->x[i * w->columns + j] +=
                    s->o[i * w->rows + c] * w->x[c * w->columns + j];
    return share != NULL;
}

bool cli_lesson_take_layer(cli_lesson *s)
{
    const attn_layer_args *a = &s->layer->args;
    const attn_layer_desc *d = &s->layer->desc;
    const int64_t dim = s->problem.dim_qk, dim_v = s->problem.dim_v;

    return take(s, "x", a->x, s->batch, 0, 0, s->problem.len_q, d->dim_x) &&
           take(s, "x_kv", a->x_kv, s->batch, 0, 0, s->problem.len_k,
                d->dim_x_kv) &&
           take_columns(s, "w_q", a->w_q, "b_q", a->b_q, s->head, dim) &&
           take_columns(s, "w_k", a->w_k, "b_k", a->b_k, s->kv_head, dim) &&
           take_columns(s, "w_v", a->w_v, "b_v", a->b_v, s->kv_head, dim_v) &&
           take(s, "w_o", a->w_o, 0, s->head * dim_v, 0, dim_v, d->dim_y) &&
           take(s, "b_o", a->b_o, 0, 0, 0, 1, d->dim_y) &&
           take_y(s, "y", attn_in(a->y)) && add_share(s);
}

/* --------------------------------------------------------------- gradients */

/* dO = dY W_O^T, this head's columns. */
static void form_d_o(cli_lesson *s)
{
    const cli_part *w = cli_part_of(s, "w_o"), *d_y = cli_part_of(s, "dy");
    const int64_t dim = s->problem.dim_v;

    for (int64_t i = 0; i < d_y->rows; i++)
        for (int64_t c = 0; c < dim; c++) {
            double *to = &s->d_o[i * dim + c];

            if (!w)
                *to = d_y->x[i * dim + c];
            for (int64_t j = 0; w && j < w->columns; j++)
                *to += d_y->x[i * w->columns + j] * w->x[c * w->columns + j];
        }
}

bool cli_lesson_take_layer_grad(cli_lesson *s)
{
    const attn_layer_args *a = &s->layer->args;
    const attn_layer_desc *d = &s->layer->desc;
    const int64_t dim = s->problem.dim_qk, dim_v = s->problem.dim_v;

    if (!take_y(s, "dy", a->d_y))
        return false;
    form_d_o(s);
    return take_columns(s, "dw_q", attn_in(a->dw_q), "db_q", attn_in(a->db_q),
                        s->head, dim) &&
           take_columns(s, "dw_k", attn_in(a->dw_k), "db_k", attn_in(a->db_k),
                        s->kv_head, dim) &&
           take_columns(s, "dw_v", attn_in(a->dw_v), "db_v", attn_in(a->db_v),
                        s->kv_head, dim_v) &&
           take(s, "dw_o", attn_in(a->dw_o), 0, s->head * dim_v, 0, dim_v,
                d->dim_y) &&
           take(s, "dx", attn_in(a->dx), s->batch, 0, 0, s->problem.len_q,
                d->dim_x) &&
           take(s, "dx_kv", attn_in(a->dx_kv), s->batch, 0, 0,
                s->problem.len_k, d->dim_x_kv);
}
