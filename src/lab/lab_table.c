/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of an experiment while it grows, and measures of weights. */
#include <math.h>
#include <string.h>

#include "lab/workbench.h"

#define MAX_PICTURES 8

bool attn__lab_table(lab *l, const char *title, const char *const *columns,
                     int64_t rows)
{
    attn_lab_result *r = l->result;
    int64_t n = 0;

    while (columns[n])
        n++;
    r->title = title;
    r->columns = columns;
    r->n_columns = n;
    r->n_rows = rows;
    r->cells = attn__lab_memory(l, rows * n + 1, sizeof *r->cells);
    r->matrices = attn__lab_memory(l, MAX_PICTURES, sizeof *r->matrices);
    r->curves = attn__lab_memory(l, MAX_PICTURES, sizeof *r->curves);
    return r->cells && r->matrices && r->curves;
}

/* The result shows its memory as const; it is ours until it is handed over. */
static attn_lab_cell *cell(lab *l, int64_t row, int64_t column)
{
    return (attn_lab_cell *)(uintptr_t)l->result->cells +
           row * l->result->n_columns + column;
}

void attn__lab_number(lab *l, int64_t row, int64_t column, double number)
{
    cell(l, row, column)->number = number;
}

void attn__lab_word(lab *l, int64_t row, int64_t column, const char *text)
{
    cell(l, row, column)->text = text;
    cell(l, row, column)->number = NAN;
}

bool attn__lab_draw(lab *l, const char *title, int64_t rows, int64_t columns,
                    const double *values, const unsigned char *shown)
{
    attn_lab_result *r = l->result;
    attn_lab_matrix *m = (attn_lab_matrix *)(uintptr_t)r->matrices;

    m[r->n_matrices++] =
        (attn_lab_matrix){title, rows, columns, values, shown};
    return title != NULL;
}

bool attn__lab_curve(lab *l, const char *title, int64_t n,
                     const double *values)
{
    attn_lab_result *r = l->result;
    attn_lab_curve *c = (attn_lab_curve *)(uintptr_t)r->curves;

    c[r->n_curves++] = (attn_lab_curve){title, n, values};
    return title != NULL;
}

/* --------------------------------------------------------------- measuring */

double attn__lab_entropy(const double *p, int64_t n)
{
    double sum = 0;

    for (int64_t j = 0; j < n; j++)
        if (p[j] > 0)
            sum -= p[j] * log(p[j]);
    return sum;
}

double attn__lab_largest(const double *p, int64_t n)
{
    double most = 0;

    for (int64_t j = 0; j < n; j++)
        most = fmax(most, p[j]);
    return most;
}

double attn__lab_apart(const double *a, const double *b, int64_t n)
{
    double most = 0;

    for (int64_t i = 0; i < n; i++) {
        if (isnan(a[i]) != isnan(b[i]))
            return INFINITY;
        most = fmax(most, fabs(a[i] - b[i]));
    }
    return most;
}
