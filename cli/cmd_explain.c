/* SPDX-License-Identifier: Apache-2.0
 *
 * attn explain: the computation of one head, step by step. The numbers come
 * from lesson.c, the words from tell_forward.c and tell_backward.c. */
#include <string.h>

#include "lesson.h"
#include "progress.h"

typedef struct explain_options {
    int64_t head, batch, row; /* row -1: not chosen */
    bool grad, json, is_example;
} explain_options;

static int set_head(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 0, INT32_MAX,
                       &((explain_options *)target)->head);
}

static int set_row(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 0, INT32_MAX,
                       &((explain_options *)target)->row);
}

static int set_batch(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 0, INT32_MAX,
                       &((explain_options *)target)->batch);
}

static int set_grad(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((explain_options *)target)->grad = true;
    return CLI_GO;
}

static int set_json(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((explain_options *)target)->json = true;
    return CLI_GO;
}

static const cli_option options[] = {
    {"head", "=H", "which head; default 0", set_head},
    {"row", "=R", "one query; default all of them", set_row},
    {"batch", "=B", "default 0", set_batch},
    {"grad", NULL,
     "also the backward pass, from do, or without it of\n"
     "half the square of o (of a layer, dy and y)", set_grad},
    {"json", NULL, "every intermediate as JSON", set_json},
};

static const char about[] =
    "Tells the computation step by step: shapes, scores, scale, mask, softmax\n"
    "and output, every number of small inputs and of large ones who attends\n"
    "whom. Without an IN it tells a worked example of three tokens.\n\n"
    "IN is as in attn run, a layer too. All is computed in fp64, from what\n"
    "--dtype rounds first; memory is a few times queries times keys of one "
    "head.\n";

static const char *const known[] = {CLI_ATTENTION_ARRAYS, CLI_LAYER_ARRAYS,
                                    NULL};

/* ----------------------------------------------------------------- example */

static int add_example(cli_inputs *inputs, const char *name,
                       const double *values)
{
    const int64_t shape[2] = {3, 2};
    attn_array a;
    attn_diag diag;

    if (attn_array_init(&a, name, ATTN_F64, 2, shape, &diag) != ATTN_OK)
        return cli_refused(&diag);
    memcpy(a.data, values, 6 * sizeof *values);
    return cli_inputs_add(inputs, &a);
}

static int make_example(cli_inputs *inputs)
{
    static const double q[] = {1, 0, 0, 1, 1, 1}, v[] = {10, 0, 0, 10, 5, 5};
    int code = add_example(inputs, "q", q);

    if (code == CLI_GO)
        code = add_example(inputs, "k", q);
    return code == CLI_GO ? add_example(inputs, "v", v) : code;
}

/* ---------------------------------------------------------------- checking */

static int below(const char *name, int64_t value, int64_t limit,
                 const char *what)
{
    if (limit == 0)
        return cli_fail(CLI_USAGE, "there are no %s to explain", what);
    if (value >= limit)
        return cli_fail(CLI_USAGE, "--%s: %lld is not below the %lld %s", name,
                        (long long)value, (long long)limit, what);
    return CLI_GO;
}

static int check_tokens(const cli_problem *p, const attn_array *t)
{
    const int64_t len = p->desc.len_k;

    if (t && t->dtype != ATTN_NONE)
        return cli_fail(CLI_USAGE, "tokens: has type %s; it must be text",
                        attn_dtype_name(t->dtype));
    if (t && (t->rank < 1 || t->rank > 2 || t->shape[t->rank - 1] != len ||
              (t->rank == 2 && t->shape[0] != p->desc.batch)))
        return cli_fail(CLI_USAGE, "tokens: must have one string for each of "
                        "the %lld keys", (long long)len);
    return CLI_GO;
}

static int check(const cli_problem *p, const explain_options *o)
{
    int code = CLI_GO;

    if (p->packed)
        return cli_fail(CLI_USAGE, "cu_seqlens_q: packed sequences have no "
                        "matrix of weights; give one sequence");
    code = below("batch", o->batch, p->desc.batch, "batches");
    if (code == CLI_GO)
        code = below("head", o->head, p->desc.heads_q, "heads");
    if (code == CLI_GO)
        code = below("row", o->row, p->desc.len_q, "queries");
    if (code == CLI_GO && o->grad && p->desc.empty_rows == ATTN_EMPTY_NAN)
        code = cli_fail(CLI_USAGE, "--grad: --empty-rows=nan has no gradient");
    return code == CLI_GO ? check_tokens(p, cli_input(p->inputs, "tokens"))
                          : code;
}

/* What the lesson is made of. */
typedef struct material {
    cli_attention attention;
    cli_inputs inputs;
    cli_problem problem;
    cli_layer_options layer_options;
    cli_layer storage, *layer; /* NULL: q, k and v are given */
} material;

static int get(material *m, char **operands, int n)
{
    int code = n > 0 ? cli_inputs_read(&m->inputs, known, operands, n)
                     : CLI_GO;
    bool is_layer;

    if (code != CLI_GO)
        return code;
    is_layer = cli_is_layer(&m->inputs, &m->layer_options);
    if (n == 0 && !is_layer)
        code = make_example(&m->inputs);
    if (is_layer) {
        m->layer = &m->storage;
        code = cli_layer_read(&m->inputs, &m->layer_options);
    }
    if (code == CLI_GO)
        code = cli_lesson_widen(&m->inputs, &m->attention);
    if (code != CLI_GO)
        return code;
    return is_layer ? cli_layer_init(m->layer, &m->problem, &m->inputs,
                                     &m->attention, &m->layer_options)
                    : cli_problem_init(&m->problem, &m->inputs, &m->attention);
}

/* The library's own run, which judges every input. */
static int run(cli_problem *p, bool grad)
{
    const int64_t threads = p->options->threads;
    attn_diag diag;
    int code = cli_forward_outputs(p, false);

    if (code == CLI_GO && grad)
        code = cli_backward_outputs(p, !cli_input(p->inputs, "do"));
    if (code == CLI_GO)
        code = cli_rotate(p, false);
    cli_progress("computing", 0, 1);
    if (code == CLI_GO &&
        attn_attention(&p->desc, &p->args, threads, &diag) != ATTN_OK)
        code = cli_refused(&diag);
    if (code == CLI_GO && grad &&
        attn_attention_backward(&p->desc, &p->args, threads, &diag) != ATTN_OK)
        code = cli_refused(&diag);
    return code;
}

/* The same of a layer; the problem then has its q, k and v. */
static int run_layer(cli_layer *layer, bool grad)
{
    const cli_inputs *inputs = layer->p->inputs;
    attn_args *args = &layer->p->args;
    int code = cli_layer_forward_outputs(layer, false);

    if (code == CLI_GO)
        code = cli_layer_keep(layer, "qkv");
    if (code == CLI_GO && grad)
        code = cli_layer_backward_outputs(layer, !cli_input(inputs, "dy") &&
                                                     !cli_input(inputs, "do"));
    if (code == CLI_GO)
        code = cli_layer_compute(layer, grad);
    args->q = attn_in(layer->args.q);
    args->kv.k = attn_in(layer->args.k);
    args->kv.v = attn_in(layer->args.v);
    return code;
}

/* ------------------------------------------------------------------- verb */

static int explain(const material *m, const explain_options *o)
{
    const cli_inputs *inputs = &m->inputs;
    cli_lesson lesson = {.options = &m->attention, .layer = m->layer,
                         .tokens = cli_input(inputs, "tokens"),
                         .batch = o->batch, .head = o->head,
                         .row = o->row < 0 ? 0 : o->row,
                         .one_row = o->row >= 0, .grad = o->grad,
                         .has_do = cli_input(inputs, "do") ||
                                   (m->layer && cli_input(inputs, "dy")),
                         .is_example = o->is_example};
    int code = cli_lesson_learn(&lesson, &m->problem);

    cli_progress_end();
    if (code == CLI_GO && o->json)
        code = cli_lesson_json(&lesson);
    else if (code == CLI_GO) {
        cli_tell_forward(&lesson);
        if (o->grad)
            cli_tell_backward(&lesson);
        code = CLI_OK;
    }
    cli_lesson_free(&lesson);
    return code;
}

int cmd_explain(int argc, char **argv)
{
    explain_options o = {.row = -1};
    material m = {.inputs = {NULL, 0, known}};
    cli_group groups[3] = {
        {"What is told:", options, sizeof options / sizeof options[0], &o}};
    const cli_usage usage = {"attn explain [IN]... [OPTION]...", about, groups,
                             3};
    int n, code;

    cli_attention_init(&m.attention);
    groups[1] = cli_layer_group(&m.layer_options);
    groups[2] = cli_attention_group(&m.attention);
    code = cli_parse(&usage, argc, argv, &n);
    if (code == CLI_GO)
        code = get(&m, argv, n);
    if (code == CLI_GO)
        code = check(&m.problem, &o);
    if (code == CLI_GO)
        code = m.layer ? run_layer(m.layer, o.grad) : run(&m.problem, o.grad);
    o.is_example = n == 0;
    if (code == CLI_GO)
        code = explain(&m, &o);
    cli_problem_free(&m.problem);
    cli_inputs_free(&m.inputs);
    return code;
}
