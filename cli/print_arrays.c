/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables, values and JSON of arrays. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "print_arrays.h"

#define SMALL 64 /* elements of an array whose values are shown */
#define NUMBER 32

typedef struct summary {
    double least, most; /* NaN where there is nothing to compare */
    int64_t n_nan;
} summary;

static summary summarise(const attn_array *a)
{
    summary s = {NAN, NAN, 0};

    for (int64_t i = 0; i < a->count; i++) {
        const double x = attn_array_value(a, i);

        s.n_nan += isnan(x);
        s.least = fmin(s.least, x);
        s.most = fmax(s.most, x);
    }
    return s;
}

/* Six digits say enough to a person; integers are whole. */
static void number_text(const attn_array *a, double x, char *text)
{
    const bool is_whole = a->dtype == ATTN_I32 || a->dtype == ATTN_I64 ||
                          a->dtype == ATTN_BOOL;

    snprintf(text, NUMBER, is_whole ? "%.0f" : "%.6g", x);
}

void cli_shape_text(int32_t rank, const int64_t *shape, char *text,
                    size_t size)
{
    size_t n = (size_t)snprintf(text, size, "(");

    for (int32_t i = 0; i < rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%" PRId64,
                              i > 0 ? ", " : "", shape[i]);
    if (n < size)
        snprintf(text + n, size - n, rank == 1 ? ",)" : ")");
}

/* ----------------------------------------------------------------- values */

/* One row or more, "[[1 2]\n [3 4]]" from element *at, indented. */
static void print_nested(const attn_array *a, int32_t axis, int64_t *at,
                         int width)
{
    char text[NUMBER];

    if (axis == a->rank) {
        number_text(a, attn_array_value(a, (*at)++), text);
        printf("%*s", width, text);
        return;
    }
    putchar('[');
    for (int64_t i = 0; i < a->shape[axis]; i++) {
        if (i > 0 && axis == a->rank - 1)
            putchar(' ');
        else if (i > 0)
            printf("\n%*s", axis + 3, "");
        print_nested(a, axis + 1, at, width);
    }
    putchar(']');
}

static void print_values(const attn_array *a)
{
    char text[NUMBER];
    int width = 0;
    int64_t at = 0;

    for (int64_t i = 0; i < a->count; i++) {
        number_text(a, attn_array_value(a, i), text);
        width = (int)strlen(text) > width ? (int)strlen(text) : width;
    }
    printf("\n%s\n  ", a->name);
    print_nested(a, 0, &at, width);
    putchar('\n');
}

void cli_print_arrays(const attn_array *arrays, int n)
{
    bool any_nan = false;

    for (int i = 0; i < n; i++)
        any_nan = any_nan || summarise(&arrays[i]).n_nan > 0;
    printf("%-9s %-20s %-5s %12s %12s%s\n", "name", "shape", "dtype", "min",
           "max", any_nan ? "        nan" : "");
    for (int i = 0; i < n; i++) {
        const attn_array *a = &arrays[i];
        const summary s = summarise(a);
        char shape[128], least[NUMBER] = "-", most[NUMBER] = "-";

        cli_shape_text(a->rank, a->shape, shape, sizeof shape);
        if (a->count > s.n_nan) {
            number_text(a, s.least, least);
            number_text(a, s.most, most);
        }
        printf("%-9s %-20s %-5s %12s %12s", a->name, shape,
               attn_dtype_name(a->dtype), least, most);
        if (any_nan)
            printf(" %10" PRId64, s.n_nan);
        putchar('\n');
    }
    for (int i = 0; i < n; i++)
        if (arrays[i].count > 0 && arrays[i].count <= SMALL)
            print_values(&arrays[i]);
}

/* ------------------------------------------------------------------- JSON */

void cli_json_begin(const char *schema)
{
    printf("{\"schema\": \"attn-%s\"", schema);
}

void cli_json_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 0x20)
            printf("\\u%04x", c);
        else
            putchar(c);
    }
    putchar('"');
}

/* Enough digits to give the number back. */
static void json_number(const attn_array *a, double x)
{
    const int digits = a->dtype == ATTN_F64 ? 17 : 9;

    if (isnan(x))
        fputs("\"NaN\"", stdout);
    else if (isinf(x))
        fputs(x > 0 ? "\"Infinity\"" : "\"-Infinity\"", stdout);
    else
        printf("%.*g", digits, x);
}

static void json_nested(const attn_array *a, int32_t axis, int64_t *at)
{
    if (axis == a->rank) {
        json_number(a, attn_array_value(a, (*at)++));
        return;
    }
    putchar('[');
    for (int64_t i = 0; i < a->shape[axis]; i++) {
        if (i > 0)
            fputs(", ", stdout);
        json_nested(a, axis + 1, at);
    }
    putchar(']');
}

static void json_array(const attn_array *a)
{
    const summary s = summarise(a);
    int64_t at = 0;

    fputs("{\"name\": ", stdout);
    cli_json_string(a->name);
    fputs(", \"shape\": [", stdout);
    for (int32_t i = 0; i < a->rank; i++)
        printf("%s%" PRId64, i > 0 ? ", " : "", a->shape[i]);
    printf("], \"dtype\": \"%s\"", attn_dtype_name(a->dtype));
    if (a->count > s.n_nan) {
        fputs(", \"min\": ", stdout);
        json_number(a, s.least);
        fputs(", \"max\": ", stdout);
        json_number(a, s.most);
    }
    printf(", \"nan\": %" PRId64, s.n_nan);
    if (a->count <= SMALL) {
        fputs(", \"values\": ", stdout);
        json_nested(a, 0, &at);
    }
    putchar('}');
}

void cli_json_arrays(const attn_array *arrays, int n)
{
    putchar('[');
    for (int i = 0; i < n; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", stdout);
        json_array(&arrays[i]);
    }
    fputs(n > 0 ? "\n]" : "]", stdout);
}
