/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays for the results of a layer: y and its rows, and gradients of the
 * shape and orientation that the user's parameters have. */
#include <string.h>

#include "layer.h"
#include "progress.h"

/* (B, L, columns), or less the batch that x lacks. */
static int add_sequence(cli_layer *layer, const char *name,
                        const attn_array *like, int64_t columns,
                        attn_tensor *to)
{
    int64_t shape[3] = {1, 0, 0};
    attn_array *a;

    memcpy(shape + 3 - like->rank, like->shape,
           (size_t)like->rank * sizeof *shape);
    shape[2] = columns;
    a = cli_add_output(layer->p, name, like->dtype, like->rank,
                       shape + 3 - like->rank);
    if (!a)
        return CLI_INPUT;
    *to = attn_dense(a->data, a->dtype, 3, shape);
    return CLI_GO;
}

int cli_layer_forward_outputs(cli_layer *layer, bool weights)
{
    const attn_desc *d = &layer->p->desc;
    const int64_t dim_y = layer->desc.dim_y > 0 ? layer->desc.dim_y
                                                : d->heads_q * d->dim_v;
    const int code = add_sequence(layer, "y", layer->x, dim_y, &layer->args.y);

    return code == CLI_GO ? cli_row_outputs(layer->p, weights) : code;
}

int cli_layer_keep(cli_layer *layer, const char *names)
{
    const attn_desc *d = &layer->p->desc;
    attn_layer_args *a = &layer->args;
    const struct {
        const char *name;
        attn_tensor *to;
        int64_t heads, len, dim;
    } rows[] = {{"q", &a->q, d->heads_q, d->len_q, d->dim_qk},
                {"k", &a->k, d->heads_kv, d->len_k, d->dim_qk},
                {"v", &a->v, d->heads_kv, d->len_k, d->dim_v},
                {"o", &a->o, d->heads_q, d->len_q, d->dim_v}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int64_t shape[4] = {d->batch, rows[i].heads, rows[i].len,
                                  rows[i].dim};
        attn_array *array;

        if (!strstr(names, rows[i].name))
            continue;
        array = cli_add_output(layer->p, rows[i].name, d->dtype, 4, shape);
        if (!array)
            return CLI_INPUT;
        *rows[i].to = attn_dense(array->data, d->dtype, 4, shape);
    }
    return CLI_GO;
}

/* -------------------------------------------------------------- gradients */

/* The gradient of a parameter, if that is there, as the layer sees it; 16-bit
 * ones are summed up to f32. */
static int add_parameter(cli_layer *layer, const char *name, attn_tensor *to)
{
    const attn_array *of = cli_input(layer->p->inputs, name);
    char gradient[16] = "d";
    attn_array *a;

    if (!of)
        return CLI_GO;
    strcat(gradient, name);
    a = cli_add_output(layer->p, gradient,
                       of->dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32, of->rank,
                       of->shape);
    if (!a)
        return CLI_INPUT;
    *to = attn_dense(a->data, a->dtype, a->rank, a->shape);
    if (a->rank == 2 && name[0] == 'w' && layer->options->model.linear)
        *to = attn_layer_grad_transposed(*to);
    return CLI_GO;
}

static int add_packed(cli_layer *layer, const char *name, attn_tensor *q,
                      attn_tensor *k, attn_tensor *v)
{
    const attn_desc *d = &layer->p->desc;
    const int64_t n_q = d->heads_q * d->dim_qk, n_k = d->heads_kv * d->dim_qk;
    attn_tensor all;

    if (!cli_input(layer->p->inputs, name))
        return CLI_GO;
    if (add_parameter(layer, name, &all) != CLI_GO)
        return CLI_INPUT;
    *q = attn_layer_grad_columns(all, 0, n_q);
    *k = attn_layer_grad_columns(all, n_q, n_k);
    *v = attn_layer_grad_columns(all, n_q + n_k, d->heads_kv * d->dim_v);
    return CLI_GO;
}

/* Packed arrays come last in their row: where they are, the three are not. */
static int add_parameters(cli_layer *layer)
{
    attn_layer_args *a = &layer->args;
    const struct {
        const char *name;
        attn_tensor *to;
    } rows[] = {{"w_q", &a->dw_q}, {"w_k", &a->dw_k}, {"w_v", &a->dw_v},
                {"w_o", &a->dw_o}, {"b_q", &a->db_q}, {"b_k", &a->db_k},
                {"b_v", &a->db_v}, {"b_o", &a->db_o}, {"g_q", &a->dg_q},
                {"g_k", &a->dg_k}};
    int code = add_packed(layer, "w_qkv", &a->dw_q, &a->dw_k, &a->dw_v);

    if (code == CLI_GO)
        code = add_packed(layer, "b_qkv", &a->db_q, &a->db_k, &a->db_v);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && code == CLI_GO; i++)
        code = add_parameter(layer, rows[i].name, rows[i].to);
    return code;
}

/* dy (or do) and dlse, shaped like y and lse. */
static int take_gradients(cli_layer *layer, bool half_square)
{
    cli_problem *p = layer->p;
    attn_array *d_y = cli_input(p->inputs, "dy");
    attn_tensor *y = &layer->args.y;
    attn_diag diag;

    if (!d_y)
        d_y = cli_input(p->inputs, "do");
    if (!half_square && !d_y)
        return cli_fail(CLI_USAGE, "dy: is missing; --grad needs it, or "
                        "--loss=half-square");
    if (half_square) {
        if (d_y)
            cli_note("%s: ignored, the loss is half the square of y",
                     d_y->name);
        layer->args.d_y = attn_in(*y);
        return cli_take_dlse(p);
    }
    if (p->options->dtype != ATTN_NONE &&
        attn_array_convert(d_y, p->options->dtype, &diag) != ATTN_OK)
        return cli_refused(&diag);
    if (cli_check_same_shape(d_y, cli_output(p, "y")) != CLI_GO)
        return CLI_USAGE;
    layer->args.d_y = attn_in_dense(d_y->data, d_y->dtype, 3, y->shape);
    return cli_take_dlse(p);
}

int cli_layer_backward_outputs(cli_layer *layer, bool half_square)
{
    attn_layer_args *a = &layer->args;
    int code = take_gradients(layer, half_square);

    if (code == CLI_GO)
        code = add_sequence(layer, "dx", layer->x, layer->desc.dim_x, &a->dx);
    if (code == CLI_GO && layer->x_kv)
        code = add_sequence(layer, "dx_kv", layer->x_kv,
                            layer->desc.dim_x_kv, &a->dx_kv);
    if (code == CLI_GO)
        code = add_parameters(layer);
    return code == CLI_GO ? cli_optional_outputs(layer->p) : code;
}

int cli_layer_compute(cli_layer *layer, bool backward)
{
    const int64_t threads = layer->p->options->threads;
    attn_diag diag;

    layer->desc.attention = layer->p->desc;
    layer->args.attention = layer->p->args;
    cli_progress("forward", 0, 1);
    if (attn_multi_head(&layer->desc, &layer->args, threads, &diag) != ATTN_OK)
        return cli_refused(&diag);
    if (backward)
        cli_progress("backward", 0, 1);
    if (backward && attn_multi_head_backward(&layer->desc, &layer->args,
                                             threads, &diag) != ATTN_OK)
        return cli_refused(&diag);
    return CLI_GO;
}
