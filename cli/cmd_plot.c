/* SPDX-License-Identifier: Apache-2.0
 *
 * attn plot: heat maps of weights or scores, or curves of entropy, as PNG or
 * SVG. The numbers come from drawn.c, the figure from plot_sheet.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture_out.h"
#include "plot_sheet.h"

typedef struct plot_options {
    cli_plot look;
    bool has_stage;
    cli_indices heads; /* --heads: which, or of a layer, how many */
    cli_drawn drawn;
} plot_options;

/* ----------------------------------------------------------------- options */

static int set_output(void *target, const char *name, const char *value)
{
    if (!*value)
        return cli_fail(CLI_USAGE, "-%s: the name is empty", name);
    ((plot_options *)target)->look.output = value;
    return CLI_GO;
}

static int set_head(void *target, const char *name, const char *value)
{
    return cli_indices_parse(name, value,
                             &((plot_options *)target)->drawn.heads);
}

static int set_heads(void *target, const char *name, const char *value)
{
    return cli_indices_parse(name, value, &((plot_options *)target)->heads);
}

static int set_rows(void *target, const char *name, const char *value)
{
    return cli_indices_parse(name, value,
                             &((plot_options *)target)->drawn.rows);
}

static int set_batch(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 0, INT32_MAX,
                       &((plot_options *)target)->drawn.batch);
}

static int set_stage(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"raw", "softcapped", "biased",
                                        "probs"};
    plot_options *o = target;
    int choice = 0;
    const int code = cli_choice(name, value, words, 4, &choice);

    o->drawn.stage = (attn_stage)choice;
    o->has_stage = true;
    return code;
}

static int set_entropy(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((plot_options *)target)->drawn.entropy = true;
    return CLI_GO;
}

static int set_theme(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"light", "dark"};
    int choice = 0;
    const int code = cli_choice(name, value, words, 2, &choice);

    ((plot_options *)target)->look.theme = (attn_theme)choice;
    return code;
}

static int set_shades(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"linear", "log"};

    return cli_choice(name, value, words, 2,
                      &((plot_options *)target)->look.shades);
}

static int set_cell(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 512,
                       &((plot_options *)target)->look.cell);
}

static int set_density(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 4,
                       &((plot_options *)target)->look.density);
}

static int set_columns(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 4096,
                       &((plot_options *)target)->look.columns);
}

static int set_title(void *target, const char *name, const char *value)
{
    (void)name;
    ((plot_options *)target)->look.title = value;
    return CLI_GO;
}

static const cli_option options[] = {
    {"o", "=A.png|A.svg", "the picture", set_output},
    {"head", "=LIST", "which heads, such as 0,3 or 0-5; default all", set_head},
    {"heads", "=LIST", "the same; but of a layer, how many there are",
     set_heads},
    {"rows", "=LIST", "queries; default all", set_rows},
    {"batch", "=B", "default 0", set_batch},
    {"stage", "=STAGE",
     "raw, softcapped or biased scores instead of probs;\n"
     "those are weights", set_stage},
    {"entropy", NULL, "the entropy of each row, as curves", set_entropy},
    {"theme", "=light|dark", "default light", set_theme},
    {"shades", "=linear|log",
     "what colours show of weights; default log for more\n"
     "than 512 keys", set_shades},
    {"cell", "=PIXELS", "a cell's side; default what suits", set_cell},
    {"density", "=DOTS", "PNG: dots per pixel, 1 to 4; default 2",
     set_density},
    {"columns", "=N", "heads side by side", set_columns},
    {"title", "=TEXT", "default the file's name", set_title},
};

static const char about[] =
    "Draws who attends whom: a heat map for each head, queries down, keys\n"
    "across, with the tokens' names where there are `tokens`. Hidden keys are\n"
    "hatched, unlike those of weight zero.\n\n"
    "IN is as in attn run, a layer too, but v may be missing. Or it holds\n"
    "`weights` (and `entropy`) from elsewhere, (Lq, Lk), (H, Lq, Lk) or\n"
    "(B, H, Lq, Lk).\n";

static const char *const known[] = {CLI_ATTENTION_ARRAYS, CLI_LAYER_ARRAYS,
                                    "weights", "entropy", NULL};

static int check_options(const plot_options *o)
{
    int code;

    if (!o->look.output)
        return cli_fail(CLI_USAGE, "-o: is missing; say where to, as -o A.png "
                        "or -o A.svg");
    code = cli_picture_path("-o", o->look.output);
    if (code != CLI_GO)
        return code;
    if (o->drawn.entropy && o->has_stage)
        return cli_fail(CLI_USAGE, "--entropy: is of the probs; --stage can't "
                        "change it");
    return CLI_GO;
}

/* ------------------------------------------------------------------- input */

/* v is not needed for weights: one of no columns stands in for it. */
static int stand_in_for_v(cli_inputs *inputs)
{
    const attn_array *k = cli_input(inputs, "k");
    int64_t shape[ATTN_ARRAY_MAX_RANK];
    attn_array v;
    attn_diag diag;

    if (!k || k->rank < 1 || k->dtype == ATTN_NONE || cli_input(inputs, "v"))
        return CLI_GO;
    memcpy(shape, k->shape, sizeof shape);
    shape[k->rank - 1] = 0;
    if (attn_array_init(&v, "v", k->dtype, k->rank, shape, &diag) != ATTN_OK)
        return cli_refused(&diag);
    return cli_inputs_add(inputs, &v);
}

/* --heads, which means two things: of q it chooses, of x it counts. */
static int settle_heads(plot_options *o, bool is_layer, int64_t *count)
{
    if (!o->heads.at)
        return CLI_GO;
    if (is_layer && o->heads.n != 1)
        return cli_fail(CLI_USAGE, "--heads: of a layer it is the number of "
                        "heads; --head=LIST chooses some");
    if (is_layer) {
        *count = o->heads.at[0];
        return CLI_GO;
    }
    free(o->drawn.heads.at);
    o->drawn.heads = o->heads;
    o->heads = (cli_indices){NULL, 0};
    return CLI_GO;
}

static int take_given(plot_options *o, const cli_inputs *inputs,
                      const attn_array *given)
{
    if (cli_input(inputs, "q"))
        cli_note("%s: drawn as the file has it; q and k are not used",
                 given->name);
    if (o->has_stage && o->drawn.stage != ATTN_STAGE_PROBS)
        return cli_fail(CLI_USAGE, "--stage: the file holds weights alone; "
                        "scores need q and k");
    return cli_drawn_take(&o->drawn, given);
}

/* Where the numbers come from. */
typedef struct origin {
    cli_inputs inputs;
    cli_problem problem;
    cli_attention attention;
    cli_layer_options layer_options;
    cli_layer layer;
} origin;

static int get_numbers(plot_options *o, origin *from)
{
    const bool is_layer = cli_is_layer(&from->inputs, &from->layer_options);
    const attn_array *given =
        cli_input(&from->inputs, o->drawn.entropy ? "entropy" : "weights");
    cli_layer *layer = is_layer ? &from->layer : NULL;
    int code = settle_heads(o, is_layer && !given,
                            &from->layer_options.heads);

    if (code == CLI_GO && given)
        return take_given(o, &from->inputs, given);
    if (code == CLI_GO && layer)
        code = cli_layer_read(&from->inputs, &from->layer_options);
    if (code == CLI_GO && layer)
        code = cli_layer_init(layer, &from->problem, &from->inputs,
                              &from->attention, &from->layer_options);
    else if (code == CLI_GO && (code = stand_in_for_v(&from->inputs)) == CLI_GO)
        code = cli_problem_init(&from->problem, &from->inputs,
                                &from->attention);
    if (code == CLI_GO)
        code = cli_drawn_compute(&o->drawn, &from->problem, layer);
    return code;
}

/* The file's name of an operand, FILE or NAME=FILE, without its folders. */
static const char *name_of(const char *operand)
{
    const char *slash = strrchr(operand, '/'), *equals = strchr(operand, '=');

    return slash ? slash + 1 : equals ? equals + 1 : operand;
}

int cmd_plot(int argc, char **argv)
{
    plot_options o = {.look = {.shades = -1},
                      .drawn = {.stage = ATTN_STAGE_PROBS}};
    origin from = {.inputs = {NULL, 0, known}};
    cli_group groups[3] = {
        {"What is drawn:", options, sizeof options / sizeof options[0], &o}};
    const cli_usage usage = {"attn plot IN... -o A.png|A.svg [OPTION]...",
                             about, groups, 3};
    char name[256] = "";
    int operands, code;

    cli_attention_init(&from.attention);
    groups[1] = cli_layer_group(&from.layer_options);
    groups[2] = cli_attention_group(&from.attention);
    code = cli_parse(&usage, argc, argv, &operands);
    if (code == CLI_GO)
        code = check_options(&o);
    /* Before reading, which cuts operands to pieces. */
    if (code == CLI_GO && !o.look.title && operands > 0)
        snprintf(name, sizeof name, "%s", name_of(argv[0]));
    o.look.title = o.look.title ? o.look.title : name;
    if (code == CLI_GO)
        code = cli_inputs_read(&from.inputs, known, argv, operands);
    if (code == CLI_GO)
        code = get_numbers(&o, &from);
    if (code == CLI_GO)
        code = cli_plot_draw(&o.look, &o.drawn,
                             cli_input(&from.inputs, "tokens"));
    free(o.heads.at);
    cli_drawn_free(&o.drawn);
    cli_problem_free(&from.problem);
    cli_inputs_free(&from.inputs);
    return code == CLI_GO ? CLI_OK : code;
}
