/* SPDX-License-Identifier: Apache-2.0
 *
 * From numbers to a figure: names of rows and keys, titles, and the panels. */
#include "plot_sheet.h"
#include "picture_out.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINEAR_KEYS 512 /* more keys than that are shaded by logarithms */

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

static attn_figure make_figure(sheet *s, const cli_drawn *d, const cli_plot *o)
{
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

static int draw(const cli_drawn *d, const names *n, const cli_plot *o)
{
    sheet s = {.panels = NULL};
    int code = make_sheet(&s, d->heads.n);
    attn_figure figure;

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
        figure = make_figure(&s, d, o);
        cli_progress("drawing", 0, 1);
        code = cli_picture_write(&figure, o->output);
    }
    free_sheet(&s);
    return code;
}

int cli_plot_draw(const cli_plot *o, const cli_drawn *d,
                  const attn_array *tokens)
{
    names n = {NULL, NULL, NULL};
    int code = name_all(d, tokens, &n);

    if (code == CLI_GO)
        code = draw(d, &n, o);
    free_names(&n);
    return code;
}
