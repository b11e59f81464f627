/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays for the results. o and the gradients have the type, rank and layout
 * of what they belong to; lse, entropy and weights are (B, H, Lq[, Lk]) in
 * every layout, less the axes that q lacks. */
#include <string.h>

#include "problem.h"
#include "print_arrays.h"

attn_array *cli_output(cli_problem *p, const char *name)
{
    for (int i = 0; i < p->n_outputs; i++)
        if (strcmp(p->outputs[i].name, name) == 0)
            return &p->outputs[i];
    return NULL;
}

attn_array *cli_add_output(cli_problem *p, const char *name, attn_dtype dtype,
                           int32_t rank, const int64_t *shape)
{
    attn_array *a = &p->outputs[p->n_outputs];
    attn_diag diag;

    if (attn_array_init(a, name, dtype, rank, shape, &diag) != ATTN_OK) {
        cli_refused(&diag);
        return NULL;
    }
    p->n_outputs++;
    return a;
}

/* A view to write through, of the same place as `view`. */
static attn_tensor writable(attn_input view, attn_array *array)
{
    attn_tensor t = {array->data, view.dtype, view.rank, {0}, {0}};

    memcpy(t.shape, view.shape, sizeof t.shape);
    memcpy(t.stride, view.stride, sizeof t.stride);
    return t;
}

/* An output shaped like q, k or v. */
static int add_like(cli_problem *p, const char *name, const attn_array *like,
                    int64_t dim, attn_tensor *to)
{
    int64_t shape[ATTN_ARRAY_MAX_RANK];
    attn_array *a;

    memcpy(shape, like->shape, sizeof shape);
    shape[like->rank - 1] = dim;
    a = cli_add_output(p, name, p->desc.dtype, like->rank, shape);
    if (!a)
        return CLI_INPUT;
    *to = writable(cli_view(p, a), a);
    return CLI_GO;
}

/* An output per query: (B, H, Lq), or packed (H, total); with `keys` also an
 * axis of keys. */
int cli_add_rows(cli_problem *p, const char *name, attn_dtype dtype, bool keys,
                 attn_tensor *to)
{
    const attn_desc *d = &p->desc;
    const int64_t full[4] = {d->batch, d->heads_q, d->len_q, d->len_k};
    const int64_t packed[2] = {d->heads_q, d->total_q};
    const int32_t rank = keys ? 4 : 3;
    attn_array *a;

    a = p->packed ? cli_add_output(p, name, dtype, 2, packed)
                  : cli_add_output(p, name, dtype, rank - p->dropped,
                                   full + p->dropped);
    if (!a)
        return CLI_INPUT;
    *to = p->packed ? attn_dense(a->data, dtype, 2, packed)
                    : attn_dense(a->data, dtype, rank, full);
    return CLI_GO;
}

static attn_dtype wide(const cli_problem *p)
{
    const bool is_wide = p->desc.dtype == ATTN_F64 || p->desc.dtype == ATTN_F32;

    return is_wide ? ATTN_F64 : ATTN_F32;
}

static attn_dtype at_least_f32(const cli_problem *p)
{
    return p->desc.dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
}

int cli_row_outputs(cli_problem *p, bool weights)
{
    attn_args *args = &p->args;
    int code = cli_add_rows(p, "lse", wide(p), false, &args->lse);

    if (code == CLI_GO && weights)
        code = cli_add_rows(p, "weights", at_least_f32(p), true,
                            &args->weights);
    if (code == CLI_GO && weights)
        code = cli_add_rows(p, "entropy", wide(p), false, &args->entropy);
    return code;
}

int cli_forward_outputs(cli_problem *p, bool weights)
{
    int code;

    if (weights && p->packed)
        return cli_fail(CLI_USAGE, "--weights: packed sequences have no matrix "
                        "of weights");
    code = add_like(p, "o", p->q, p->desc.dim_v, &p->args.o);
    return code == CLI_GO ? cli_row_outputs(p, weights) : code;
}

/* ------------------------------------------------------------- gradients */

int cli_check_same_shape(const attn_array *a, const attn_array *b)
{
    bool same = a->rank == b->rank;
    char got[128], want[128];

    for (int32_t i = 0; same && i < a->rank; i++)
        same = a->shape[i] == b->shape[i];
    if (same)
        return CLI_GO;
    cli_shape_text(a->rank, a->shape, got, sizeof got);
    cli_shape_text(b->rank, b->shape, want, sizeof want);
    return cli_fail(CLI_USAGE, "%s: has shape %s, must be %s as %s", a->name,
                    got, want, b->name);
}

int cli_take_dlse(cli_problem *p)
{
    const attn_array *dlse = cli_input(p->inputs, "dlse");
    const attn_tensor *lse = &p->args.lse;

    if (!dlse)
        return CLI_GO;
    if (cli_check_same_shape(dlse, cli_output(p, "lse")) != CLI_GO)
        return CLI_USAGE;
    p->args.dlse = attn_in_dense(dlse->data, dlse->dtype, lse->rank,
                                 lse->shape);
    return CLI_GO;
}

/* do and dlse, shaped like o and lse. */
static int take_gradients(cli_problem *p, bool half_square)
{
    attn_array *d_o = cli_input(p->inputs, "do");
    attn_diag diag;

    if (!half_square && !d_o)
        return cli_fail(CLI_USAGE, "do: is missing; --grad needs it, or "
                        "--loss=half-square");
    if (half_square && d_o)
        cli_note("do: ignored, the loss is half the square of o");
    if (half_square) {
        p->args.d_o = attn_in(p->args.o);
    } else {
        if (p->options->dtype != ATTN_NONE &&
            attn_array_convert(d_o, p->options->dtype, &diag) != ATTN_OK)
            return cli_refused(&diag);
        if (cli_check_same_shape(d_o, cli_output(p, "o")) != CLI_GO)
            return CLI_USAGE;
        p->args.d_o = cli_view(p, d_o);
    }
    return cli_take_dlse(p);
}

/* The gradient of an optional input, if that is given: a bias has as many
 * elements as weights and keeps its type, the others are few. */
static int add_optional(cli_problem *p, const char *name, const char *of,
                        const attn_input *input, attn_tensor *to)
{
    const attn_array *like = cli_input(p->inputs, of);
    attn_array *a;

    if (!like)
        return CLI_GO;
    a = cli_add_output(p, name, input == &p->args.bias ? like->dtype
                                                       : at_least_f32(p),
                       like->rank, like->shape);
    if (!a)
        return CLI_INPUT;
    *to = attn_dense(a->data, a->dtype, input->rank, input->shape);
    return CLI_GO;
}

int cli_optional_outputs(cli_problem *p)
{
    attn_args *a = &p->args;
    int code = add_optional(p, "dbias", "bias", &a->bias, &a->dbias);

    if (code == CLI_GO)
        code = add_optional(p, "dsinks", "sinks", &a->sinks, &a->dsinks);
    if (code == CLI_GO)
        code = add_optional(p, "dslopes", "alibi_slopes", &a->alibi_slopes,
                            &a->dslopes);
    return code;
}

int cli_backward_outputs(cli_problem *p, bool half_square)
{
    attn_args *a = &p->args;
    int code = take_gradients(p, half_square);

    if (code == CLI_GO)
        code = add_like(p, "dq", p->q, p->desc.dim_qk, &a->dq);
    if (code == CLI_GO)
        code = add_like(p, "dk", p->k, p->k->shape[p->k->rank - 1], &a->dk);
    if (code == CLI_GO)
        code = add_like(p, "dv", p->v, p->desc.dim_v, &a->dv);
    return code == CLI_GO ? cli_optional_outputs(p) : code;
}
