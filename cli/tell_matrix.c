/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices for a reader: all numbers of small ones, of large ones a summary. */
#include <math.h>
#include <stdio.h>

#include "lesson.h"

#define SMALL 8 /* rows and columns that are still read one by one */

bool cli_is_small(int64_t rows, int64_t columns)
{
    return rows <= SMALL && columns <= SMALL;
}

typedef struct extent {
    double least, most, sum; /* of the visible numbers that are no NaN */
    int64_t n, nan, hidden;
    bool whole; /* all are integers */
} extent;

static extent measure(const double *x, int64_t n, const unsigned char *visible)
{
    extent e = {INFINITY, -INFINITY, 0, 0, 0, 0, true};

    for (int64_t i = 0; i < n; i++) {
        if (visible && !visible[i]) {
            e.hidden++;
            continue;
        }
        if (isnan(x[i])) {
            e.nan++;
            continue;
        }
        e.n++;
        e.least = fmin(e.least, x[i]);
        e.most = fmax(e.most, x[i]);
        e.sum += x[i];
        e.whole = e.whole && x[i] == floor(x[i]);
    }
    return e;
}

/* Four decimals, unless the numbers are whole or too large or small for it. */
static const char *form(const extent *e)
{
    const double most = fmax(fabs(e->least), fabs(e->most));

    if (e->n == 0 || (e->whole && most < 1e6))
        return "%*.0f";
    return most < 1e4 && most >= 1e-2 ? "%*.4f" : "%*.4g";
}

static void print_rows(const double *x, int64_t rows, int64_t columns,
                       const unsigned char *visible, const extent *e)
{
    const char *const how = form(e);
    int width = 1;

    for (int64_t i = 0; i < rows * columns; i++) {
        char text[64];
        const int n = visible && !visible[i]
                          ? 1
                          : snprintf(text, sizeof text, how, 1, x[i]);

        width = n > width ? n : width;
    }
    for (int64_t i = 0; i < rows; i++) {
        fputs(i == 0 ? "     [" : "      ", stdout);
        for (int64_t j = 0; j < columns; j++) {
            const int64_t at = i * columns + j;

            fputs(j ? "  " : " ", stdout);
            if (visible && !visible[at])
                printf("%*s", width, ".");
            else
                printf(how, width, x[at]);
        }
        puts(i == rows - 1 ? " ]" : "");
    }
}

void cli_tell_step(cli_lesson *s, const char *title)
{
    s->step++;
    printf("%s%d. %s\n\n", s->step > 1 ? "\n" : "", s->step, title);
}

void cli_tell_matrix(const char *name, const char *meaning, const double *x,
                     int64_t rows, int64_t columns,
                     const unsigned char *visible)
{
    const extent e = measure(x, rows * columns, visible);

    printf("   %s (%lld, %lld): %s\n", name, (long long)rows,
           (long long)columns, meaning);
    if (rows * columns == 0)
        return;
    if (cli_is_small(rows, columns)) {
        print_rows(x, rows, columns, visible, &e);
        return;
    }
    fputs("     ", stdout);
    if (e.n > 0)
        printf("min %.4g, mean %.4g, max %.4g", e.least, e.sum / (double)e.n,
               e.most);
    if (e.nan > 0)
        printf("%s%lld NaN", e.n > 0 ? ", " : "", (long long)e.nan);
    if (e.hidden > 0)
        printf("%s%lld hidden", e.n + e.nan > 0 ? ", " : "",
               (long long)e.hidden);
    putchar('\n');
}

void cli_tell_qkv(const cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    cli_tell_matrix("Q", "a row for each query, what it looks for", s->q,
                    p->len_q, p->dim_qk, NULL);
    cli_tell_matrix("K", "a row for each key, what it can be found by", s->k,
                    p->len_k, p->dim_qk, NULL);
    cli_tell_matrix("V", "a row for each key, what it has to give", s->v,
                    p->len_k, p->dim_v, NULL);
}

void cli_tell_line(const double *x, int64_t rows, int64_t columns, int digits)
{
    putchar('[');
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            printf("%s%.*g", i + j == 0 ? "" : j == 0 ? "; " : " ", digits,
                   x[i * columns + j]);
    putchar(']');
}
