/* SPDX-License-Identifier: Apache-2.0
 *
 * Printing who attends whom. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attends.h"
#include "print_arrays.h"
#include "words.h"

#define LEAST 0.1    /* weights below it are noise to the eye */
#define CHOSEN 2     /* heads shown if none are asked for */
#define INK "\033[1m"
#define PLAIN "\033[0m"

typedef struct matrix {
    const attn_array *weights, *tokens;
    int64_t batch, heads, len_q, len_k;
    int width; /* of the longest token, in columns */
    bool colour;
} matrix;

int cli_shown_parse(const char *name, const char *text, cli_shown *shown)
{
    char copy[512], *parts[CLI_MAX_SHOWN];
    int n;

    if (strlen(text) >= sizeof copy)
        return cli_fail(CLI_USAGE, "--%s: the list is too long", name);
    strcpy(copy, text);
    n = cli_split(copy, ',', parts, CLI_MAX_SHOWN);
    if (n > CLI_MAX_SHOWN)
        return cli_fail(CLI_USAGE, "--%s: more than %d heads", name,
                        CLI_MAX_SHOWN);
    for (int i = 0; i < n; i++)
        if (cli_integer(name, parts[i], 0, INT64_MAX, &shown->heads[i]) !=
            CLI_GO)
            return CLI_USAGE;
    shown->n = n;
    return CLI_GO;
}

/* Columns of a UTF-8 string on a terminal, one for each code point. */
static int columns(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static const char *token(const matrix *m, int64_t b, int64_t j)
{
    return m->tokens->text[m->tokens->rank > 1 ? b * m->len_k + j : j];
}

static void pad(const char *text, int width)
{
    printf("%s%*s", text, width - columns(text), "");
}

/* The keys of one row, largest weight first. */
static void print_row(const matrix *m, int64_t b, int64_t row)
{
    double above = 2; /* weights from here up are printed already */
    int64_t printed = 0, last = -1;

    for (;;) {
        double best = -1;
        int64_t at = -1;

        for (int64_t j = 0; j < m->len_k; j++) {
            const double w = attn_array_value(m->weights, row * m->len_k + j);

            /* Equal weights come in the order of their keys. */
            if ((w < above || (w == above && j > last)) && w > best) {
                best = w;
                at = j;
            }
        }
        if (at < 0 || best < LEAST)
            break;
        printf("  %s", m->colour && printed == 0 ? INK : "");
        printf("%s %.2f%s", token(m, b, at), best,
               m->colour && printed == 0 ? PLAIN : "");
        above = best;
        last = at;
        printed++;
    }
    puts(printed ? "" : "  (spread out)");
}

static void print_head(const matrix *m, int64_t b, int64_t h)
{
    if (m->batch > 1)
        printf("\nbatch %lld, head %lld\n", (long long)b, (long long)h);
    else
        printf("\nhead %lld\n", (long long)h);
    for (int64_t i = 0; i < m->len_q; i++) {
        char number[32];

        snprintf(number, sizeof number, "query %lld", (long long)i);
        printf("  ");
        pad(m->len_q == m->len_k ? token(m, b, i) : number, m->width);
        print_row(m, b, (b * m->heads + h) * m->len_q + i);
    }
}

/* How much the rows of a head differ: the mean over queries of the largest
 * excess of a weight over its key's mean. A head whose rows all look at one
 * token, as many do at the first, has none. */
static double contrast(const matrix *m, int64_t b, int64_t h)
{
    const int64_t first = (b * m->heads + h) * m->len_q;
    double *mean = calloc((size_t)m->len_k + 1, sizeof *mean), sum = 0;

    for (int64_t i = 0; mean && i < m->len_q; i++)
        for (int64_t j = 0; j < m->len_k; j++)
            mean[j] += attn_array_value(m->weights,
                                        (first + i) * m->len_k + j) /
                       (double)m->len_q;
    for (int64_t i = 0; mean && i < m->len_q; i++) {
        double most = 0;

        for (int64_t j = 0; j < m->len_k; j++)
            most = fmax(most, attn_array_value(m->weights,
                                               (first + i) * m->len_k + j) -
                                  mean[j]);
        sum += most;
    }
    free(mean);
    return sum;
}

/* The heads of batch b with the most contrast, ascending. */
static int choose(const matrix *m, int64_t b, cli_shown *shown)
{
    double *value = calloc((size_t)m->heads + 1, sizeof *value);

    if (!value)
        return cli_no_memory();
    for (int64_t h = 0; h < m->heads; h++)
        value[h] = contrast(m, b, h);
    shown->n = 0;
    for (int64_t h = 0; h < m->heads; h++) {
        int above = 0;

        for (int64_t g = 0; g < m->heads; g++)
            above += value[g] > value[h] || (value[g] == value[h] && g < h);
        if (above < CHOSEN)
            shown->heads[shown->n++] = h;
    }
    free(value);
    return CLI_GO;
}

/* The axes of the weights and of the tokens. */
static int measure(matrix *m)
{
    const attn_array *w = m->weights, *t = m->tokens;
    const int64_t *last = w->shape + w->rank;
    char shape[128];

    m->len_k = last[-1];
    m->len_q = last[-2];
    m->heads = w->rank > 2 ? last[-3] : 1;
    m->batch = w->rank > 3 ? last[-4] : 1;
    if (t->dtype != ATTN_NONE)
        return cli_fail(CLI_USAGE, "tokens: has type %s; it must be text",
                        attn_dtype_name(t->dtype));
    cli_shape_text(t->rank, t->shape, shape, sizeof shape);
    if (t->rank < 1 || t->rank > 2 || t->shape[t->rank - 1] != m->len_k ||
        (t->rank == 2 && t->shape[0] != m->batch))
        return cli_fail(CLI_USAGE, "tokens: has shape %s, must be (%lld,) or "
                        "(%lld, %lld), one string for each key", shape,
                        (long long)m->len_k, (long long)m->batch,
                        (long long)m->len_k);
    for (int64_t i = 0; i < t->count; i++)
        if (columns(t->text[i]) > m->width)
            m->width = columns(t->text[i]);
    if (m->len_q != m->len_k && m->width < 10)
        m->width = 10;
    return CLI_GO;
}

int cli_check_attends(const attn_array *weights, const attn_array *tokens,
                      const cli_shown *shown)
{
    matrix m = {.weights = weights, .tokens = tokens};

    if (measure(&m) != CLI_GO)
        return CLI_USAGE;
    for (int i = 0; i < shown->n; i++)
        if (shown->heads[i] >= m.heads)
            return cli_fail(CLI_USAGE, "--show: %lld is not in 0 to %lld, the "
                            "heads of q", (long long)shown->heads[i],
                            (long long)m.heads - 1);
    return CLI_GO;
}

int cli_print_attends(const attn_array *weights, const attn_array *tokens,
                      const cli_shown *shown)
{
    matrix m = {.weights = weights, .tokens = tokens, .colour = cli_colour()};
    cli_shown chosen = *shown;

    if (measure(&m) != CLI_GO)
        return CLI_USAGE;
    printf("\nwho attends whom (weights of %.1f and more", LEAST);
    if (shown->n == 0 && m.heads > CHOSEN)
        printf("; %d of %lld heads, --show=H,H,... for others", CHOSEN,
               (long long)m.heads);
    puts(")");
    for (int64_t b = 0; b < m.batch; b++) {
        if (shown->n == 0 && choose(&m, b, &chosen) != CLI_GO)
            return CLI_INPUT;
        for (int i = 0; i < chosen.n; i++)
            print_head(&m, b, chosen.heads[i]);
    }
    return CLI_GO;
}
