/* SPDX-License-Identifier: Apache-2.0
 *
 * A lesson as JSON: every intermediate as attn run --json lists arrays, and
 * the rows in numbers. */
#include <math.h>
#include <stdio.h>

#include "lesson.h"
#include "print_arrays.h"

#define MAX_STEPS (24 + CLI_MAX_PARTS)

/* The lesson's own memory, seen as arrays. */
typedef struct steps {
    attn_array arrays[MAX_STEPS];
    int n;
} steps;

static void add(steps *to, const char *name, double *data, int64_t rows,
                int64_t columns)
{
    /* The name is only read. */
    if (data)
        to->arrays[to->n++] = (attn_array){
            .name = (char *)(uintptr_t)name, .dtype = ATTN_F64,
            .rank = columns < 0 ? 1 : 2, .shape = {rows, columns},
            .count = columns < 0 ? rows : rows * columns, .data = data};
}

static void collect(const cli_lesson *s, steps *to)
{
    const attn_ref_problem *p = &s->problem;
    const int64_t n = p->len_q, m = p->len_k, d = p->dim_qk, e = p->dim_v;

    for (int i = 0; i < s->n_parts; i++)
        add(to, s->parts[i].name, s->parts[i].x, s->parts[i].rows,
            s->parts[i].columns);
    add(to, "q", s->q, n, d);
    add(to, "k", s->k, m, d);
    add(to, "v", s->v, m, e);
    add(to, "dots", s->dots, n, m);
    add(to, "raw", s->raw, n, m);
    add(to, "softcapped", s->softcapped, n, m);
    add(to, "biased", s->biased, n, m);
    to->arrays[to->n++] = (attn_array){
        .name = (char *)(uintptr_t) "visible", .dtype = ATTN_BOOL, .rank = 2,
        .shape = {n, m}, .count = n * m, .data = s->visible};
    add(to, "weights", s->p, n, m);
    add(to, "lse", s->lse, n, -1);
    add(to, "entropy", s->entropy, n, -1);
    add(to, "o", s->o, n, e);
    add(to, "do", s->d_o, n, e);
    add(to, "dv", s->dv, m, e);
    add(to, "dweights", s->dp, n, m);
    add(to, "dscores", s->ds, n, m);
    add(to, "dq", s->dq, n, d);
    add(to, "dk", s->dk, m, d);
    add(to, "dbias", s->dbias, n, m);
    add(to, "dsinks", s->dsinks, 1, -1);
    add(to, "dslopes", s->dslopes, 1, -1);
}

static void number(double x)
{
    if (isfinite(x))
        printf("%.17g", x);
    else
        fputs(isnan(x) ? "\"NaN\"" : x > 0 ? "\"Infinity\"" : "\"-Infinity\"",
              stdout);
}

static void field(const char *name, double x)
{
    printf(", \"%s\": ", name);
    number(x);
}

static void one_row(const cli_lesson *s, int64_t i)
{
    const cli_row row = cli_lesson_row(s, i);
    int64_t keys[10]; /* no more can have a tenth of the weight */
    const int64_t n = cli_strongest(s, i, 0.1, keys, 10);
    char text[64];

    printf("{\"query\": %lld", (long long)i);
    if (s->tokens && s->problem.len_q == s->problem.len_k) {
        fputs(", \"token\": ", stdout);
        cli_json_string(cli_query_name(s, i, text, sizeof text));
    }
    printf(", \"visible\": %lld", (long long)row.n_visible);
    field("max", row.max);
    field("sum", row.sum);
    field("entropy", s->entropy[i]);
    field("effective_keys", row.effective);
    fputs(", \"attends\": [", stdout);
    for (int64_t a = 0; a < n; a++) {
        printf("%s{\"key\": %lld", a > 0 ? ", " : "", (long long)keys[a]);
        if (s->tokens) {
            fputs(", \"token\": ", stdout);
            cli_json_string(cli_key_name(s, keys[a], text, sizeof text));
        }
        field("weight", s->p[i * s->problem.len_k + keys[a]]);
        putchar('}');
    }
    fputs("]}", stdout);
}

int cli_lesson_json(const cli_lesson *s)
{
    steps all = {.n = 0};
    const int64_t first = s->one_row ? s->row : 0;
    const int64_t end = s->one_row ? s->row + 1 : s->problem.len_q;

    cli_json_begin("explain-1");
    printf(", \"batch\": %lld, \"head\": %lld, \"heads\": %lld, "
           "\"kv_head\": %lld", (long long)s->batch, (long long)s->head,
           (long long)s->n_heads, (long long)s->kv_head);
    field("scale", s->problem.scale);
    field("softcap", s->problem.softcap);
    fputs(",\n\"steps\": ", stdout);
    collect(s, &all);
    cli_json_arrays(all.arrays, all.n);
    fputs(",\n\"rows\": [", stdout);
    for (int64_t i = first; i < end; i++) {
        fputs(i > first ? ",\n  " : "\n  ", stdout);
        one_row(s, i);
    }
    puts("\n]}");
    return CLI_OK;
}
