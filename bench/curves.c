/* SPDX-License-Identifier: Apache-2.0
 *
 * curves: draws what compare.py measured, by attn_picture.h. Reads lines of
 * fields between tabs: `title` and `note` with a text, `points` with the names
 * below, `curve` with a label and as many numbers; writes the files named. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn_picture.h"

enum { MOST_CURVES = 16, MOST_POINTS = 64, LINE = 4096 };

typedef struct drawing {
    char text[MOST_CURVES + 3][LINE]; /* the lines; all else points into them */
    size_t n_lines;
    char *title, *note;
    const char *points[MOST_POINTS];
    int64_t n_points;
    attn_curve curves[MOST_CURVES];
    double values[MOST_CURVES][MOST_POINTS];
    int64_t n_curves;
} drawing;

/* The text up to the next tab, which becomes its end; NULL after the last. */
static char *field(char **at)
{
    char *start = *at, *tab;

    if (!start)
        return NULL;
    tab = strpbrk(start, "\t\n");
    *at = tab && *tab == '\t' ? tab + 1 : NULL;
    if (tab)
        *tab = '\0';
    return start;
}

static void read_points(drawing *d, char *rest)
{
    for (char *name; d->n_points < MOST_POINTS && (name = field(&rest));)
        d->points[d->n_points++] = name;
}

static void read_curve(drawing *d, char *rest)
{
    double *values = d->values[d->n_curves];
    attn_curve *curve = &d->curves[d->n_curves++];
    int64_t n = 0;

    curve->label = field(&rest);
    for (char *word; n < MOST_POINTS && (word = field(&rest));)
        values[n++] = strtod(word, NULL);
    curve->values = attn_in_dense(values, ATTN_F64, 1, &n);
}

/* Whether the line could be taken in. */
static int read_line(drawing *d, char *line)
{
    char *rest = line;
    const char *kind = field(&rest);

    if (strcmp(kind, "title") == 0)
        d->title = rest ? field(&rest) : NULL;
    else if (strcmp(kind, "note") == 0)
        d->note = rest ? field(&rest) : NULL;
    else if (strcmp(kind, "points") == 0)
        read_points(d, rest);
    else if (strcmp(kind, "curve") == 0 && d->n_curves < MOST_CURVES)
        read_curve(d, rest);
    else
        return 0;
    return 1;
}

static attn_status write(const drawing *d, const char *path, attn_diag *diag)
{
    const char *dot = strrchr(path, '.');
    const attn_panel panel = {.column_labels = d->points,
                              .curves = d->curves,
                              .n_curves = d->n_curves};
    attn_figure figure;

    attn_figure_init(&figure, &panel, 1);
    figure.title = d->title;
    figure.note = d->note;
    return dot && strcmp(dot, ".svg") == 0
               ? attn_figure_write_svg(&figure, path, diag)
               : attn_figure_write_png(&figure, path, diag);
}

int main(int argc, char **argv)
{
    drawing *d = calloc(1, sizeof *d);
    attn_diag diag;
    int code = 0;

    if (!d)
        return 1;
    while (d->n_lines < MOST_CURVES + 3 &&
           fgets(d->text[d->n_lines], LINE, stdin))
        if (!read_line(d, d->text[d->n_lines++])) {
            fprintf(stderr, "curves: line %zu is not one\n", d->n_lines);
            code = 2;
        }
    for (int i = 1; i < argc && code == 0; i++)
        if (write(d, argv[i], &diag) != ATTN_OK) {
            fprintf(stderr, "%s: %s: %s\n", argv[i], diag.field,
                    diag.message);
            code = 1;
        }
    free(d);
    return code;
}
