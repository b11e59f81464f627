/* SPDX-License-Identifier: Apache-2.0
 *
 * attn plot: heat maps of weights or scores, or curves of entropy, as PNG or
 * SVG. The numbers come from drawn.c; here they become a figure. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "attn_picture.h"
#include "drawn.h"

#define LINEAR_KEYS 512 /* more keys than that are shaded by logarithms */

typedef struct plot_options {
    const char *output, *title;
    attn_theme theme;
    int shades; /* an attn_shades; -1: by the number of keys */
    int64_t cell, density, columns;
    bool has_stage;
    cli_drawn drawn;
} plot_options;

/* ----------------------------------------------------------------- options */

static int set_output(void *target, const char *name, const char *value)
{
    if (!*value)
        return cli_fail(CLI_USAGE, "-%s: the name is empty", name);
    ((plot_options *)target)->output = value;
    return CLI_GO;
}

static int set_heads(void *target, const char *name, const char *value)
{
    return cli_indices_parse(name, value,
                             &((plot_options *)target)->drawn.heads);
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

    ((plot_options *)target)->theme = (attn_theme)choice;
    return code;
}

static int set_shades(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"linear", "log"};

    return cli_choice(name, value, words, 2,
                      &((plot_options *)target)->shades);
}

static int set_cell(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 512,
                       &((plot_options *)target)->cell);
}

static int set_density(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 4,
                       &((plot_options *)target)->density);
}

static int set_columns(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 4096,
                       &((plot_options *)target)->columns);
}

static int set_title(void *target, const char *name, const char *value)
{
    (void)name;
    ((plot_options *)target)->title = value;
    return CLI_GO;
}

static const cli_option options[] = {
    {"o", "=A.png|A.svg", "the picture", set_output},
    {"heads", "=LIST", "such as 0,3 or 0-5; default all", set_heads},
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
    "IN is as in attn run, but v may be missing. Or it holds `weights` (and\n"
    "`entropy`) from elsewhere, (Lq, Lk), (H, Lq, Lk) or (B, H, Lq, Lk).\n";

static const char *const known[] = {CLI_ATTENTION_ARRAYS, "weights", "entropy",
                                    NULL};

static int check_options(const plot_options *o)
{
    const char *dot = o->output ? strrchr(o->output, '.') : NULL;

    if (!o->output)
        return cli_fail(CLI_USAGE, "-o: is missing; say where to, as -o A.png "
                        "or -o A.svg");
    if (!dot || (strcasecmp(dot, ".png") != 0 && strcasecmp(dot, ".svg") != 0))
        return cli_fail(CLI_USAGE, "-o: '%s' ends neither in .png nor in .svg",
                        o->output);
    if (o->drawn.entropy && o->has_stage)
        return cli_fail(CLI_USAGE, "--entropy: is of the probs; --stage can't "
                        "change it");
    return CLI_GO;
}

/* ------------------------------------------------------------------ labels */

/* Names of rows and keys; NULL: numbers. */
typedef struct names {
    const char **rows, **keys;
    char (*numbers)[24]; /* of rows that do not follow each other */
} names;

static bool is_run(const cli_indices *rows)
{
    for (int64_t i = 0; i < rows->n; i++)
        if (rows->at[i] != rows->at[0] + i)
            return false;
    return true;
}

static int check_tokens(const attn_array *tokens, const cli_drawn *d,
                        int64_t len)
{
    if (tokens->dtype != ATTN_NONE)
        return cli_fail(CLI_USAGE, "tokens: has type %s; it must be text",
                        attn_dtype_name(tokens->dtype));
    if (tokens->rank < 1 || tokens->rank > 2 ||
        tokens->shape[tokens->rank - 1] != len ||
        (tokens->rank == 2 && tokens->shape[0] != d->n_batch))
        return cli_fail(CLI_USAGE, "tokens: must have one string for each of "
                        "the %lld %s", (long long)len,
                        d->entropy ? "queries" : "keys");
    return CLI_GO;
}

static int number_rows(const cli_drawn *d, names *to)
{
    to->numbers = calloc((size_t)d->rows.n, sizeof *to->numbers);
    to->rows = calloc((size_t)d->rows.n, sizeof *to->rows);
    if (!to->numbers || !to->rows)
        return cli_no_memory();
    for (int64_t i = 0; i < d->rows.n; i++) {
        snprintf(to->numbers[i], sizeof to->numbers[i], "%lld",
                 (long long)d->rows.at[i]);
        to->rows[i] = to->numbers[i];
    }
    return CLI_GO;
}

/* Tokens name the keys, and where there are as many queries, these too. */
static int name_all(const cli_drawn *d, const attn_array *tokens, names *to)
{
    const int64_t len = d->entropy ? d->len_q : d->len_k;
    char **text;

    if (!tokens)
        return is_run(&d->rows) ? CLI_GO : number_rows(d, to);
    if (check_tokens(tokens, d, len) != CLI_GO)
        return CLI_USAGE;
    text = tokens->text + (tokens->rank == 2 ? d->batch * len : 0);
    to->keys = calloc((size_t)len + 1, sizeof *to->keys);
    if (!to->keys)
        return cli_no_memory();
    for (int64_t j = 0; j < len; j++)
        to->keys[j] = text[j];
    if (d->len_q != len)
        return is_run(&d->rows) ? CLI_GO : number_rows(d, to);
    to->rows = calloc((size_t)d->rows.n, sizeof *to->rows);
    if (!to->rows)
        return cli_no_memory();
    for (int64_t i = 0; i < d->rows.n; i++)
        to->rows[i] = text[d->rows.at[i]];
    return CLI_GO;
}

static void free_names(names *n)
{
    free(n->rows);
    free(n->keys);
    free(n->numbers);
}

/* ------------------------------------------------------------------ figure */

/* Panels or curves of the heads, and the strings they refer to. */
typedef struct sheet {
    attn_panel *panels;
    attn_curve *curves;
    char (*titles)[32];
    char note[256];
} sheet;

static int make_sheet(sheet *s, int64_t heads)
{
    s->panels = calloc((size_t)heads, sizeof *s->panels);
    s->curves = calloc((size_t)heads, sizeof *s->curves);
    s->titles = calloc((size_t)heads, sizeof *s->titles);
    return s->panels && s->curves && s->titles ? CLI_GO : cli_no_memory();
}

static void free_sheet(sheet *s)
{
    free(s->panels);
    free(s->curves);
    free(s->titles);
}

static void fill_maps(sheet *s, const cli_drawn *d, const names *n)
{
    const int64_t shape[2] = {d->rows.n, d->len_k};
    const size_t cells = (size_t)d->rows.n * (size_t)d->len_k;
    const size_t size = attn_dtype_size(d->dtype);

    for (int64_t h = 0; h < d->heads.n; h++) {
        const size_t from = (size_t)h * cells;
        attn_panel *p = &s->panels[h];

        p->title = s->titles[h];
        p->values = attn_in_dense((const char *)d->values + from * size,
                                  d->dtype, 2, shape);
        if (d->shown)
            p->shown = attn_in_dense(d->shown + from, ATTN_BOOL, 2, shape);
        p->row_labels = n->rows;
        p->column_labels = n->keys;
        p->first_row = is_run(&d->rows) ? d->rows.at[0] : 0;
    }
}

static void fill_curves(sheet *s, const cli_drawn *d, const names *n)
{
    for (int64_t h = 0; h < d->heads.n; h++) {
        s->curves[h].label = s->titles[h];
        s->curves[h].values =
            attn_in_dense((const double *)d->values + h * d->rows.n, d->dtype,
                          1, &d->rows.n);
    }
    s->panels[0].curves = s->curves;
    s->panels[0].n_curves = d->heads.n;
    s->panels[0].column_labels = n->rows;
    s->panels[0].first_column = is_run(&d->rows) ? d->rows.at[0] : 0;
}

/* What is seen, in a line. */
static void describe(sheet *s, const cli_drawn *d)
{
    static const char *const stages[] = {"raw scores", "softcapped scores",
                                         "biased scores", "weights"};
    char batch[48] = "", what[64];

    if (d->n_batch > 1)
        snprintf(batch, sizeof batch, ", batch %lld", (long long)d->batch);
    if (d->entropy)
        snprintf(what, sizeof what, "entropy of %lld queries in nats",
                 (long long)d->rows.n);
    else
        snprintf(what, sizeof what, "%s of %lld queries and %lld keys",
                 stages[d->stage], (long long)d->rows.n, (long long)d->len_k);
    if (d->heads.n == 1)
        snprintf(s->note, sizeof s->note, "%s, head %lld of %lld%s", what,
                 (long long)d->heads.at[0], (long long)d->n_heads, batch);
    else if (d->heads.n == d->n_heads)
        snprintf(s->note, sizeof s->note, "%s in %lld heads%s", what,
                 (long long)d->n_heads, batch);
    else
        snprintf(s->note, sizeof s->note, "%s, %lld of %lld heads%s", what,
                 (long long)d->heads.n, (long long)d->n_heads, batch);
}

static attn_figure make_figure(sheet *s, const plot_options *o)
{
    const cli_drawn *d = &o->drawn;
    const bool weights = d->stage == ATTN_STAGE_PROBS;
    attn_figure f;

    attn_figure_init(&f, s->panels, d->entropy ? 1 : d->heads.n);
    f.theme = o->theme;
    f.cell = o->cell;
    f.density = o->density;
    f.columns = o->columns;
    f.title = o->title && *o->title ? o->title : NULL;
    f.note = s->note;
    f.row_axis = d->entropy ? NULL : "query";
    f.column_axis = d->entropy ? "query" : "key";
    f.value = weights ? "weight" : "score";
    if (weights)
        f.shades = o->shades >= 0            ? (attn_shades)o->shades
                   : d->len_k > LINEAR_KEYS ? ATTN_SHADES_LOG
                                             : ATTN_SHADES_LINEAR;
    if (weights && f.shades == ATTN_SHADES_LINEAR)
        f.low = 0;
    return f;
}

static int draw(const plot_options *o, const names *n)
{
    const cli_drawn *d = &o->drawn;
    const bool png = strcasecmp(strrchr(o->output, '.'), ".png") == 0;
    sheet s = {0};
    int code = make_sheet(&s, d->heads.n);
    attn_figure figure;
    attn_diag diag;

    for (int64_t h = 0; h < d->heads.n && code == CLI_GO; h++)
        snprintf(s.titles[h], sizeof s.titles[h], "head %lld",
                 (long long)d->heads.at[h]);
    if (code == CLI_GO) {
        describe(&s, d);
        if (d->entropy)
            fill_curves(&s, d, n);
        else
            fill_maps(&s, d, n);
        if (d->heads.n == 1)
            s.panels[0].title = NULL; /* the note says it */
        figure = make_figure(&s, o);
        if ((png ? attn_figure_write_png : attn_figure_write_svg)(
                &figure, o->output, &diag) != ATTN_OK)
            code = diag.status == ATTN_E_IO
                       ? cli_fail(CLI_INPUT, "%s: %s", o->output, diag.message)
                       : cli_refused(&diag);
    }
    free_sheet(&s);
    return code;
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

static int get_numbers(plot_options *o, cli_inputs *inputs, cli_problem *p,
                       const cli_attention *attention)
{
    const char *name = o->drawn.entropy ? "entropy" : "weights";
    const attn_array *given = cli_input(inputs, name);
    int code;

    if (given && cli_input(inputs, "q"))
        cli_note("%s: drawn as the file has it; q and k are not used", name);
    if (given && o->has_stage && o->drawn.stage != ATTN_STAGE_PROBS)
        return cli_fail(CLI_USAGE, "--stage: the file holds weights alone; "
                        "scores need q and k");
    if (given)
        return cli_drawn_take(&o->drawn, given);
    code = stand_in_for_v(inputs);
    if (code == CLI_GO)
        code = cli_problem_init(p, inputs, attention);
    if (code == CLI_GO)
        code = cli_drawn_compute(&o->drawn, p);
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
    plot_options o = {.shades = -1, .drawn = {.stage = ATTN_STAGE_PROBS}};
    cli_attention attention;
    cli_inputs inputs = {NULL, 0, known};
    cli_problem p = {.n_outputs = 0};
    names n = {NULL, NULL, NULL};
    cli_group groups[2] = {
        {"What is drawn:", options, sizeof options / sizeof options[0], &o}};
    const cli_usage usage = {"attn plot IN... -o A.png|A.svg [OPTION]...",
                             about, groups, 2};
    char name[256] = "";
    int operands, code;

    cli_attention_init(&attention);
    groups[1] = cli_attention_group(&attention);
    code = cli_parse(&usage, argc, argv, &operands);
    if (code == CLI_GO)
        code = check_options(&o);
    /* Before reading, which cuts operands to pieces. */
    if (code == CLI_GO && !o.title && operands > 0)
        snprintf(name, sizeof name, "%s", name_of(argv[0]));
    o.title = o.title ? o.title : name;
    if (code == CLI_GO)
        code = cli_inputs_read(&inputs, known, argv, operands);
    if (code == CLI_GO)
        code = get_numbers(&o, &inputs, &p, &attention);
    if (code == CLI_GO)
        code = name_all(&o.drawn, cli_input(&inputs, "tokens"), &n);
    if (code == CLI_GO)
        code = draw(&o, &n);
    free_names(&n);
    cli_drawn_free(&o.drawn);
    cli_problem_free(&p);
    cli_inputs_free(&inputs);
    return code == CLI_GO ? CLI_OK : code;
}
