/* SPDX-License-Identifier: Apache-2.0
 *
 * attn run: q, k and v in, o and lse out (or x and weights in, y out);
 * weights, entropy and gradients if asked for. */
#include <stdio.h>
#include <string.h>

#include "attends.h"
#include "layer.h"
#include "problem.h"
#include "print_arrays.h"
#include "progress.h"

typedef struct run_options {
    const char *output;
    bool grad, weights, half_square, plan, json;
    cli_shown shown;
} run_options;

static int set_output(void *target, const char *name, const char *value)
{
    if (!*value)
        return cli_fail(CLI_USAGE, "-%s: the name is empty", name);
    ((run_options *)target)->output = value;
    return CLI_GO;
}

static int set_weights(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((run_options *)target)->weights = true;
    return CLI_GO;
}

static int set_grad(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((run_options *)target)->grad = true;
    return CLI_GO;
}

static int set_loss(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"half-square"};
    int choice;

    ((run_options *)target)->half_square = true;
    return cli_choice(name, value, words, 1, &choice);
}

static int set_show(void *target, const char *name, const char *value)
{
    return cli_shown_parse(name, value, &((run_options *)target)->shown);
}

static int set_plan(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((run_options *)target)->plan = true;
    return CLI_GO;
}

static int set_json(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((run_options *)target)->json = true;
    return CLI_GO;
}

static const cli_option options[] = {
    {"o", "=OUT.npz", "write the results, instead of the table",
     set_output},
    {"weights", NULL,
     "also weights and entropy; with tokens, print\n"
     "who attends whom", set_weights},
    {"show", "=H,H,...", "heads to print; default those that vary most",
     set_show},
    {"grad", NULL, "also gradients, from do and dlse", set_grad},
    {"loss", "=half-square", "gradients of half the square of o, not from do",
     set_loss},
    {"plan", NULL, "also the kernels taken and why, and the memory", set_plan},
    {"json", NULL, "the table as JSON", set_json},
};

static const char about[] =
    "Computes attention on arrays from .npy and .npz files.\n\n"
    "IN is FILE, whose arrays go by their names (ignoring case; a .npy by the\n"
    "file's), or NAME=FILE[:KEY]. Needed: q, k and v, each (L, D), (H, L, D)\n"
    "or (B, H, L, D). Optional: mask bias alibi_slopes sinks k_lengths\n"
    "q_offset cu_seqlens_q cu_seqlens_k positions do dlse tokens.\n\n"
    "A layer: x, (L, D) or (B, L, D), optional x_kv; w_q w_k w_v w_o, "
    "matrices\n"
    "(in, out), optional b_q b_k b_v b_o, or --model; --heads. dy for do.\n\n"
    "Results: o and lse; with --weights also weights and entropy; with --grad\n"
    "also dq dk dv, and dbias dsinks dslopes of what is given. Of a layer y, "
    "and\n"
    "dx dw_q dw_k ... as its weights lie.\n";

static const char *const known[] = {CLI_ATTENTION_ARRAYS, CLI_LAYER_ARRAYS,
                                    NULL};

/* --------------------------------------------------------------- computing */

static int check_options(const run_options *r)
{
    if (r->half_square && !r->grad)
        return cli_fail(CLI_USAGE, "--loss: needs --grad");
    if (r->shown.n > 0 && !r->weights)
        return cli_fail(CLI_USAGE, "--show: needs --weights");
    if (r->shown.n > 0 && (r->output || r->json))
        return cli_fail(CLI_USAGE, "--show: prints, which %s replaces",
                        r->output ? "-o" : "--json");
    if (r->plan && (r->output || r->json))
        return cli_fail(CLI_USAGE, "--plan: prints, which %s replaces",
                        r->output ? "-o" : "--json");
    return CLI_GO;
}

/* The tokens, if who attends whom is to be printed. */
static const attn_array *tokens_to_print(const cli_problem *p,
                                         const run_options *r)
{
    return r->weights && !r->output && !r->json ? cli_input(p->inputs, "tokens")
                                                : NULL;
}

static int prepare(cli_problem *p, cli_layer *layer, const run_options *r)
{
    const attn_array *tokens = tokens_to_print(p, r);
    int code = layer ? cli_layer_forward_outputs(layer, r->weights)
                     : cli_forward_outputs(p, r->weights);

    if (code == CLI_GO && tokens)
        code = cli_check_attends(cli_output(p, "weights"), tokens, &r->shown);
    if (code == CLI_GO && r->grad)
        code = layer ? cli_layer_backward_outputs(layer, r->half_square)
                     : cli_backward_outputs(p, r->half_square);
    return code;
}

static int compute(cli_problem *p, const run_options *r)
{
    const int64_t threads = p->options->threads;
    attn_diag diag;
    int code = cli_rotate(p, false);

    if (code != CLI_GO)
        return code;
    cli_progress("forward", 0, 1);
    if (attn_attention(&p->desc, &p->args, threads, &diag) != ATTN_OK)
        return cli_refused(&diag);
    if (!r->grad)
        return CLI_GO;
    cli_progress("backward", 0, 1);
    if (attn_attention_backward(&p->desc, &p->args, threads, &diag) != ATTN_OK)
        return cli_refused(&diag);
    return cli_rotate(p, true);
}

/* --------------------------------------------------------------- reporting */

static int write_output(const cli_problem *p, const run_options *r)
{
    attn_diag diag;

    cli_progress("writing", 0, 1);
    if (attn_npz_write(r->output, p->outputs, p->n_outputs, &diag) == ATTN_OK)
        return CLI_OK;
    return cli_fail(CLI_INPUT, "%s: %s", r->output, diag.message);
}

static int print_plan(const attn_desc *desc)
{
    char text[2048];
    attn_plan plan;
    attn_diag diag;

    if (attn_plan_init(&plan, desc, &diag) != ATTN_OK)
        return cli_refused(&diag);
    attn_plan_describe(&plan, text, sizeof text);
    printf("\n%s", text);
    return CLI_GO;
}

static int report(cli_problem *p, const run_options *r)
{
    const attn_array *tokens = tokens_to_print(p, r);
    int code;

    if (r->output && write_output(p, r) != CLI_OK)
        return CLI_INPUT;
    cli_progress_end();
    if (r->json) {
        cli_json_begin("run-1");
        fputs(", \"arrays\": ", stdout);
        cli_json_arrays(p->outputs, p->n_outputs);
        puts("}");
        return CLI_OK;
    }
    if (r->output)
        return CLI_OK;
    cli_print_arrays(p->outputs, p->n_outputs);
    code = r->plan ? print_plan(&p->desc) : CLI_GO;
    if (code == CLI_GO && tokens)
        code = cli_print_attends(cli_output(p, "weights"), tokens, &r->shown);
    return code == CLI_GO ? CLI_OK : code;
}

int cmd_run(int argc, char **argv)
{
    run_options r = {0};
    cli_attention attention;
    cli_inputs inputs = {NULL, 0, known};
    cli_problem p = {.n_outputs = 0};
    cli_layer_options layer_options = {.heads = 0};
    cli_layer storage, *layer = NULL; /* NULL: q, k and v are given */
    cli_group groups[3] = {
        {"What comes out:", options, sizeof options / sizeof options[0], &r}};
    const cli_usage usage = {"attn run IN... [OPTION]...", about, groups, 3};
    int n, code;

    cli_attention_init(&attention);
    groups[1] = cli_layer_group(&layer_options);
    groups[2] = cli_attention_group(&attention);
    code = cli_parse(&usage, argc, argv, &n);
    if (code == CLI_GO)
        code = check_options(&r);
    if (code == CLI_GO)
        code = cli_inputs_read(&inputs, known, argv, n);
    if (code == CLI_GO && cli_is_layer(&inputs, &layer_options)) {
        layer = &storage;
        code = cli_layer_read(&inputs, &layer_options);
    }
    if (code == CLI_GO)
        code = layer ? cli_layer_init(layer, &p, &inputs, &attention,
                                      &layer_options)
                     : cli_problem_init(&p, &inputs, &attention);
    if (code == CLI_GO)
        code = prepare(&p, layer, &r);
    if (code == CLI_GO)
        code = layer ? cli_layer_compute(layer, r.grad) : compute(&p, &r);
    if (code == CLI_GO)
        code = report(&p, &r);
    cli_problem_free(&p);
    cli_inputs_free(&inputs);
    return code;
}
