/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of an experiment for people, for programs, and as a picture. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab_verb.h"
#include "picture_out.h"
#include "print_arrays.h"

#define PAGE 80

/* Whether a column counts: integers in it are whole. */
static bool counts(const attn_lab_result *r, int64_t column)
{
    for (int64_t i = 0; i < r->n_rows; i++) {
        const double x = r->cells[i * r->n_columns + column].number;

        if (isfinite(x) && x != floor(x))
            return false;
    }
    return true;
}

/* Four decimals, or of very small and large numbers their size. A zero is
 * exactly that. */
static void cell_text(const attn_lab_result *r, int64_t row, int64_t column,
                      char *text, size_t size)
{
    const attn_lab_cell *c = &r->cells[row * r->n_columns + column];

    if (c->text)
        snprintf(text, size, "%s", c->text);
    else if (isnan(c->number))
        snprintf(text, size, "nan");
    else if (isinf(c->number) || c->number == 0 ||
             (counts(r, column) && fabs(c->number) < 1e6))
        snprintf(text, size, "%.0f", c->number);
    else if (fabs(c->number) < 1e-3 || fabs(c->number) >= 1e5)
        snprintf(text, size, "%.0e", c->number);
    else
        snprintf(text, size, "%.4f", c->number);
}

static bool is_text(const attn_lab_result *r, int64_t column)
{
    return r->n_rows > 0 && r->cells[column].text != NULL;
}

static int width_of(const attn_lab_result *r, int64_t column)
{
    size_t width = strlen(r->columns[column]);

    for (int64_t i = 0; i < r->n_rows; i++) {
        char text[512];

        cell_text(r, i, column, text, sizeof text);
        width = strlen(text) > width ? strlen(text) : width;
    }
    return (int)width;
}

/* Words to the left, numbers to the right; no spaces at the end. */
static void put(const char *text, int width, bool left, bool last)
{
    if (left && last)
        fputs(text, stdout);
    else
        printf("%*s", left ? -width : width, text);
    fputs(last ? "\n" : "  ", stdout);
}

/* A paragraph, broken between words. */
static void print_wrapped(const char *text)
{
    size_t at = 0;

    while (*text) {
        const size_t word = strcspn(text, " ");

        if (at > 0 && at + 1 + word > PAGE) {
            putchar('\n');
            at = 0;
        }
        if (at > 0)
            putchar(' ');
        printf("%.*s", (int)word, text);
        at += word + (at > 0);
        text += word + (text[word] == ' ');
    }
    putchar('\n');
}

void cli_lab_print(const attn_lab_result *r)
{
    printf("%s\n\n", r->title);
    for (int64_t j = 0; j < r->n_columns; j++)
        put(r->columns[j], width_of(r, j), is_text(r, j),
            j == r->n_columns - 1);
    for (int64_t i = 0; i < r->n_rows; i++)
        for (int64_t j = 0; j < r->n_columns; j++) {
            char text[512];

            cell_text(r, i, j, text, sizeof text);
            put(text, width_of(r, j), is_text(r, j), j == r->n_columns - 1);
        }
    putchar('\n');
    print_wrapped(r->conclusion);
}

/* -------------------------------------------------------------------- JSON */

static void json_cell(const attn_lab_cell *c)
{
    if (c->text)
        cli_json_string(c->text);
    else if (isfinite(c->number))
        printf("%.17g", c->number);
    else
        fputs(isnan(c->number)  ? "\"NaN\""
              : c->number > 0 ? "\"Infinity\""
                              : "\"-Infinity\"", stdout);
}

void cli_lab_json(const char *name, const attn_lab_result *r)
{
    cli_json_begin("lab-1");
    fputs(", \"name\": ", stdout);
    cli_json_string(name);
    fputs(", \"title\": ", stdout);
    cli_json_string(r->title);
    fputs(",\n\"columns\": [", stdout);
    for (int64_t j = 0; j < r->n_columns; j++) {
        fputs(j > 0 ? ", " : "", stdout);
        cli_json_string(r->columns[j]);
    }
    fputs("],\n\"rows\": [", stdout);
    for (int64_t i = 0; i < r->n_rows; i++) {
        fputs(i > 0 ? ",\n  [" : "\n  [", stdout);
        for (int64_t j = 0; j < r->n_columns; j++) {
            fputs(j > 0 ? ", " : "", stdout);
            json_cell(&r->cells[i * r->n_columns + j]);
        }
        putchar(']');
    }
    fputs("],\n\"conclusion\": ", stdout);
    cli_json_string(r->conclusion);
    puts("}");
}

/* ----------------------------------------------------------------- picture */

static void fill_maps(const attn_lab_result *r, const char *const *tokens,
                      attn_panel *panels)
{
    for (int64_t i = 0; i < r->n_matrices; i++) {
        const attn_lab_matrix *m = &r->matrices[i];
        const int64_t shape[2] = {m->rows, m->columns};

        panels[i].title = m->title;
        panels[i].values = attn_in_dense(m->values, ATTN_F64, 2, shape);
        if (m->shown)
            panels[i].shown = attn_in_dense(m->shown, ATTN_BOOL, 2, shape);
        panels[i].row_labels = panels[i].column_labels = tokens;
    }
}

static void fill_curves(const attn_lab_result *r, attn_curve *curves,
                        attn_panel *panel)
{
    for (int64_t i = 0; i < r->n_curves; i++) {
        curves[i].label = r->curves[i].title;
        curves[i].values = attn_in_dense(r->curves[i].values, ATTN_F64, 1,
                                         &r->curves[i].n);
    }
    panel->curves = curves;
    panel->n_curves = r->n_curves;
}

int cli_lab_plot(const attn_lab_result *r, const char *path,
                 const char *const *tokens)
{
    const int64_t n = r->n_curves > 0 ? 1 : r->n_matrices;
    attn_panel *panels = calloc((size_t)n + 1, sizeof *panels);
    attn_curve *curves = calloc((size_t)r->n_curves + 1, sizeof *curves);
    attn_figure f;
    int code;

    if (!panels || !curves) {
        code = cli_no_memory();
    } else {
        if (r->n_curves > 0)
            fill_curves(r, curves, panels);
        else
            fill_maps(r, tokens, panels);
        attn_figure_init(&f, panels, n);
        f.title = r->title;
        f.row_axis = r->n_curves > 0 ? NULL : "query";
        f.column_axis = r->n_curves > 0 ? "step" : "key";
        f.value = r->n_curves > 0 ? r->curves[0].title : r->value;
        if (r->n_curves == 0 && strcmp(r->value, "weight") == 0)
            f.low = 0;
        code = cli_picture_write(&f, path);
    }
    free(panels);
    free(curves);
    return code;
}
