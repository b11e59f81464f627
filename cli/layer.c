/* SPDX-License-Identifier: Apache-2.0
 *
 * From arrays to attn_layer_desc and attn_layer_args. Sizes of heads follow
 * from the columns of the weights; what the library checks is left to it. */
#include "layer.h"
#include "progress.h"

#include <string.h>

/* ---------------------------------------------------------------- options */

static int set_heads(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, INT32_MAX,
                       &((cli_layer_options *)target)->heads);
}

static int set_kv_heads(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, INT32_MAX,
                       &((cli_layer_options *)target)->kv_heads);
}

static int set_model(void *target, const char *name, const char *value)
{
    (void)name;
    ((cli_layer_options *)target)->model.path = value;
    return CLI_GO;
}

static int set_prefix(void *target, const char *name, const char *value)
{
    (void)name;
    ((cli_layer_options *)target)->model.prefix = value;
    return CLI_GO;
}

static int set_linear(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((cli_layer_options *)target)->model.linear = true;
    return CLI_GO;
}

static int set_map(void *target, const char *name, const char *value)
{
    return cli_map_parse(name, value, &((cli_layer_options *)target)->model);
}

static const cli_option options[] = {
    {"heads", "=N", "heads of q; needed for x", set_heads},
    {"kv-heads", "=N", "heads of k and v; default: by the columns of w_k",
     set_kv_heads},
    {"model", "=FILE", "take the weights from a model's file", set_model},
    {"prefix", "=P", "the layer in it, as encoder.layer.0.attention",
     set_prefix},
    {"linear", NULL,
     "weights are torch's (out, in); known for BERT,\n"
     "Llama, GPT-2 and nn.MultiheadAttention", set_linear},
    {"map", "=w_q=NAME", "the name of a weight, for other models",
     set_map},
};

cli_group cli_layer_group(cli_layer_options *target)
{
    return (cli_group){"A layer, from x:", options,
                       sizeof options / sizeof options[0], target};
}

bool cli_is_layer(const cli_inputs *inputs, const cli_layer_options *o)
{
    return o->heads > 0 || o->kv_heads > 0 || o->model.path ||
           o->model.prefix || o->model.linear || o->model.n_maps > 0 ||
           (cli_input(inputs, "x") && !cli_input(inputs, "q"));
}

/* ----------------------------------------------------------------- inputs */

/* Types: that of x, or --dtype. Parameters of a model follow x, as a model is
 * stored in the type that saves room. */
static int agree(const cli_layer *layer, attn_array *a, bool follows)
{
    const attn_dtype wanted = layer->p->options->dtype;
    const attn_dtype x = layer->x->dtype;
    attn_diag diag;

    if (wanted != ATTN_NONE || (follows && a->dtype != x)) {
        if (attn_array_convert(a, wanted != ATTN_NONE ? wanted : x, &diag) !=
            ATTN_OK)
            return cli_refused(&diag);
        return CLI_GO;
    }
    if (a->dtype < ATTN_F64 || a->dtype > ATTN_F16)
        return cli_fail(CLI_USAGE, "%s: has type %s; f64, f32, bf16 and f16 "
                        "are computed%s", a->name, cli_type_of(a),
                        a->dtype == ATTN_NONE ? "" : " (--dtype converts)");
    if (a->dtype != x)
        return cli_fail(CLI_USAGE, "%s: has type %s, but x has %s (--dtype "
                        "makes them agree)", a->name, cli_type_of(a),
                        attn_dtype_name(x));
    return CLI_GO;
}

static int take_x(cli_layer *layer)
{
    const cli_inputs *inputs = layer->p->inputs;
    int code;

    layer->x = cli_input(inputs, "x");
    layer->x_kv = cli_input(inputs, "x_kv");
    if (!layer->x)
        return cli_fail(CLI_USAGE, "x: is missing; a layer (--heads, --model) "
                        "begins with it");
    if (layer->x->rank != 2 && layer->x->rank != 3)
        return cli_fail(CLI_USAGE, "x: is %d-D; it must be 2-D (L, D) or 3-D "
                        "(B, L, D)", (int)layer->x->rank);
    if (layer->x_kv && layer->x_kv->rank != layer->x->rank)
        return cli_fail(CLI_USAGE, "x_kv: is %d-D, but x is %d-D",
                        (int)layer->x_kv->rank, (int)layer->x->rank);
    code = agree(layer, layer->x, false);
    return code == CLI_GO && layer->x_kv ? agree(layer, layer->x_kv, false)
                                         : code;
}

/* (B, L, D) of x, with a batch where it has none. */
static attn_input sequence(const attn_array *a)
{
    const int64_t *s = a->shape + a->rank - 2;

    return attn_in_dense(a->data, a->dtype, 3,
                         (int64_t[]){a->rank == 3 ? a->shape[0] : 1, s[0],
                                     s[1]});
}

/* A parameter as the layer sees it: (in, out), or (out). */
static attn_input parameter(const cli_layer *layer, const char *name)
{
    const attn_array *a = cli_input(layer->p->inputs, name);
    attn_input view = {0};

    if (a)
        view = attn_in_dense(a->data, a->dtype, a->rank, a->shape);
    return a && a->rank == 2 && layer->options->model.linear
               ? attn_layer_transposed(view)
               : view;
}

static int take_parameters(const cli_layer *layer)
{
    static const char *const names[] = {CLI_PARAMETERS};
    const bool follows = layer->options->model.path != NULL;
    int code = CLI_GO;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        attn_array *a = cli_input(layer->p->inputs, names[i]);
        const int rank = names[i][0] == 'w' ? 2 : 1;
        const bool fits = a && (a->rank == rank ||
                                (names[i][0] == 'g' && a->rank == 2));

        if (!a)
            continue;
        if (!fits)
            return cli_fail(CLI_USAGE, "%s: is %d-D; it must be %d-D", a->name,
                            (int)a->rank, rank);
        code = agree(layer, a, follows);
        if (code != CLI_GO)
            return code;
    }
    return CLI_GO;
}

/* ------------------------------------------------------------- descriptor */

typedef struct sizes {
    int64_t heads, kv_heads, dim_qk, dim_v;
} sizes;

/* `columns` of `name` as `parts` heads of *dim columns, or complain. */
static int divide(const char *name, int64_t columns, int64_t parts,
                  int64_t *dim)
{
    if (columns % parts != 0)
        return cli_fail(CLI_USAGE, "%s: has %lld columns, which %lld heads do "
                        "not divide", name, (long long)columns,
                        (long long)parts);
    *dim = columns / parts;
    return CLI_GO;
}

static int sizes_of_packed(const cli_layer *layer, sizes *s)
{
    const attn_input w = parameter(layer, "w_qkv");
    const int64_t given = layer->options->kv_heads;
    int code;

    s->kv_heads = given > 0 ? given : s->heads;
    code = divide("w_qkv", w.shape[1], s->heads + 2 * s->kv_heads, &s->dim_qk);
    s->dim_v = s->dim_qk;
    return code;
}

static int sizes_of_three(const cli_layer *layer, sizes *s)
{
    const char *const names[] = {"w_q", "w_k", "w_v"};
    int64_t columns[3], dim_k = 0;
    int code;

    for (int i = 0; i < 3; i++) {
        if (!cli_input(layer->p->inputs, names[i]))
            return cli_fail(CLI_USAGE, "%s: is missing; a layer needs w_q, w_k "
                            "and w_v (or w_qkv), or --model", names[i]);
        columns[i] = parameter(layer, names[i]).shape[1];
    }
    code = divide("w_q", columns[0], s->heads, &s->dim_qk);
    s->kv_heads = layer->options->kv_heads;
    if (s->kv_heads == 0)
        s->kv_heads = s->dim_qk > 0 && columns[1] >= s->dim_qk
                          ? columns[1] / s->dim_qk : s->heads;
    if (code == CLI_GO)
        code = divide("w_k", columns[1], s->kv_heads, &dim_k);
    if (code == CLI_GO)
        code = divide("w_v", columns[2], s->kv_heads, &s->dim_v);
    return code;
}

static int find_sizes(const cli_layer *layer, sizes *s)
{
    s->heads = layer->options->heads;
    if (s->heads == 0)
        return cli_fail(CLI_USAGE, "--heads: is missing; x does not tell it");
    if (layer->p->options->bshd)
        return cli_fail(CLI_USAGE, "--layout: x has no axis of heads");
    return cli_input(layer->p->inputs, "w_qkv") ? sizes_of_packed(layer, s)
                                                : sizes_of_three(layer, s);
}

static void describe(cli_layer *layer, const sizes *s)
{
    const attn_input x = sequence(layer->x);
    const attn_input x_kv = sequence(layer->x_kv ? layer->x_kv : layer->x);
    const attn_array *w_o = cli_input(layer->p->inputs, "w_o");
    attn_layer_desc *d = &layer->desc;
    cli_problem *p = layer->p;

    attn_layer_desc_init(d, x.dtype, x.shape[0], x.shape[1], x.shape[2],
                         s->heads, s->kv_heads);
    attn_desc_init(&p->desc, x.dtype, x.shape[0], s->heads, s->kv_heads,
                   x.shape[1], x_kv.shape[1], s->dim_qk, s->dim_v);
    cli_apply_options(p);
    d->dim_x_kv = layer->x_kv ? x_kv.shape[2] : 0;
    d->dim_y = w_o ? parameter(layer, "w_o").shape[1] : 0;
    d->qk_norm = cli_input(p->inputs, "g_q") || cli_input(p->inputs, "g_k");
    d->rotary = p->options->rope.given;
    if (d->rotary)
        d->rope = cli_rope_desc(&p->options->rope);
    p->dropped = 3 - layer->x->rank;
}

/* -------------------------------------------------------------- arguments */

static void take_three(cli_layer *layer)
{
    const attn_desc *d = &layer->p->desc;
    const int64_t n_q = d->heads_q * d->dim_qk, n_k = d->heads_kv * d->dim_qk;
    const int64_t n_v = d->heads_kv * d->dim_v;
    attn_layer_args *a = &layer->args;

    if (cli_input(layer->p->inputs, "w_qkv")) {
        const attn_input w = parameter(layer, "w_qkv");

        a->w_q = attn_layer_columns(w, 0, n_q);
        a->w_k = attn_layer_columns(w, n_q, n_k);
        a->w_v = attn_layer_columns(w, n_q + n_k, n_v);
    } else {
        a->w_q = parameter(layer, "w_q");
        a->w_k = parameter(layer, "w_k");
        a->w_v = parameter(layer, "w_v");
    }
    a->b_q = parameter(layer, "b_q");
    a->b_k = parameter(layer, "b_k");
    a->b_v = parameter(layer, "b_v");
    if (cli_input(layer->p->inputs, "b_qkv")) {
        const attn_input b = parameter(layer, "b_qkv");

        a->b_q = attn_layer_columns(b, 0, n_q);
        a->b_k = attn_layer_columns(b, n_q, n_k);
        a->b_v = attn_layer_columns(b, n_q + n_k, n_v);
    }
}

static void take_args(cli_layer *layer)
{
    const attn_array *positions = cli_input(layer->p->inputs, "positions");
    attn_layer_args *a = &layer->args;

    a->x = sequence(layer->x);
    if (layer->x_kv)
        a->x_kv = sequence(layer->x_kv);
    take_three(layer);
    a->w_o = parameter(layer, "w_o");
    a->b_o = parameter(layer, "b_o");
    if (cli_input(layer->p->inputs, "g_q"))
        a->g_q = parameter(layer, "g_q");
    if (cli_input(layer->p->inputs, "g_k"))
        a->g_k = parameter(layer, "g_k");
    if (positions && layer->desc.rotary)
        a->positions = attn_in_dense(positions->data, positions->dtype,
                                     positions->rank, positions->shape);
    else if (positions)
        cli_note("positions: unused without --rope");
}

static int check_alone(const cli_layer *layer)
{
    static const char *const qkv[] = {"q", "k", "v"};

    for (int i = 0; i < 3; i++)
        if (cli_input(layer->p->inputs, qkv[i]))
            cli_note("%s: ignored, a layer makes its own from x", qkv[i]);
    if (cli_input(layer->p->inputs, "cu_seqlens_q") ||
        cli_input(layer->p->inputs, "cu_seqlens_k"))
        return cli_fail(CLI_USAGE, "cu_seqlens_q: packed sequences are not for "
                        "layers; give (B, L, D) and k_lengths");
    return CLI_GO;
}

int cli_layer_read(cli_inputs *inputs, cli_layer_options *o)
{
    int code;

    if (!o->model.path && (o->model.prefix || o->model.n_maps > 0))
        return cli_fail(CLI_USAGE, "--%s: needs --model",
                        o->model.prefix ? "prefix" : "map");
    if (!o->model.path)
        return CLI_GO;
    cli_progress("reading the model", 0, 1);
    code = cli_model_read(&o->model, inputs);
    cli_progress_end();
    return code;
}

int cli_layer_init(cli_layer *layer, cli_problem *p, cli_inputs *inputs,
                   const cli_attention *attention, cli_layer_options *o)
{
    sizes s = {0, 0, 0, 0};
    int code;

    memset(layer, 0, sizeof *layer);
    memset(p, 0, sizeof *p);
    layer->options = o;
    layer->p = p;
    p->inputs = inputs;
    p->options = attention;
    attn_args_init(&p->args);
    attn_layer_args_init(&layer->args);
    code = check_alone(layer);
    if (code == CLI_GO)
        code = take_x(layer);
    if (code == CLI_GO)
        code = take_parameters(layer);
    if (code == CLI_GO)
        code = find_sizes(layer, &s);
    if (code != CLI_GO)
        return code;
    describe(layer, &s);
    code = cli_take_inputs(p);
    if (code == CLI_GO)
        code = cli_check_sequences(p);
    if (code == CLI_GO)
        code = cli_choose_causal(p);
    if (code == CLI_GO)
        take_args(layer);
    return code;
}
