/* SPDX-License-Identifier: Apache-2.0
 *
 * The lesson in words, from Q, K and V to the output. */
#include <math.h>
#include <stdio.h>

#include "lesson.h"

#define LEAST 0.1     /* weights below it are noise to the eye */
#define ROWS_SHOWN 32 /* lines of a table of rows */
#define KEYS_SHOWN 8  /* keys in the arithmetic of one row */
#define NAME 64

/* ------------------------------------------------------------------ inputs */

static void tell_sizes(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    if (s->is_example)
        puts("No file is given, so this is the worked example: three tokens, "
             "each with\na query, a key and a value of two numbers.\n");
    if (s->n_heads > 1 || s->n_batch > 1)
        printf("Head %lld of %lld", (long long)s->head,
               (long long)s->n_heads);
    if (s->n_batch > 1)
        printf(" in batch %lld of %lld", (long long)s->batch,
               (long long)s->n_batch);
    if (s->n_kv != s->n_heads)
        printf(", which shares key-value head %lld of %lld",
               (long long)s->kv_head, (long long)s->n_kv);
    if (s->n_heads > 1 || s->n_batch > 1)
        puts(". Each head does this alone; --head=H tells\nabout another.\n");
    if (s->layer) {
        cli_tell_layer_inputs(s);
        return;
    }
    cli_tell_step(s, "Inputs");
    printf("   %lld queries look at %lld keys. All numbers are fp64.\n",
           (long long)p->len_q, (long long)p->len_k);
    if (s->options->rope.given)
        puts("   Q and K are shown after RoPE has turned them by their "
             "places.");
    cli_tell_qkv(s);
}

/* ------------------------------------------------------------------ scores */

static double spread(const double *x, int64_t n)
{
    double mean = 0, sum = 0;

    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return n > 0 ? sqrt(sum / (double)n) : 0;
}

static void tell_scores(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;
    const int64_t n = p->len_q * p->len_k;
    const double usual = p->dim_qk > 0 ? 1 / sqrt((double)p->dim_qk) : 1;

    cli_tell_step(s, "Scores: how well each query fits each key");
    cli_tell_matrix("Q K^T", "the dot product of every query with every key",
                    s->dots, p->len_q, p->len_k, NULL);
    cli_tell_step(s, "Scale");
    if (p->scale == usual)
        printf("   times 1/sqrt(D) = 1/sqrt(%lld) = %.4g", (long long)p->dim_qk,
               p->scale);
    else
        printf("   times %.4g, not 1/sqrt(D) = %.4g", p->scale, usual);
    printf(", so their standard deviation goes\n   from %.4g to %.4g. A dot "
           "product is a sum of D = %lld products and grows like\n   sqrt(D);"
           " dividing by that keeps the softmax from being all or nothing.\n",
           spread(s->dots, n), spread(s->raw, n), (long long)p->dim_qk);
    cli_tell_matrix("S", "scaled scores, also called logits", s->raw, p->len_q,
                    p->len_k, NULL);
    if (p->softcap > 0) {
        printf("\n   Softcap: %.4g tanh(S / %.4g) keeps scores within "
               "%.4g.\n", p->softcap, p->softcap, p->softcap);
        cli_tell_matrix("S", "after the softcap", s->softcapped, p->len_q,
                        p->len_k, NULL);
    }
    if (p->bias || p->alibi_slopes) {
        printf("\n   Added to the scores: %s%s%s.\n", p->bias ? "the bias" : "",
               p->bias && p->alibi_slopes ? " and " : "",
               p->alibi_slopes ? "ALiBi's -slope |p - j|" : "");
        if (p->alibi_slopes)
            printf("   The slope of this head is %.4g; p = i + %lld is where "
                   "query i stands.\n", *s->slope, (long long)s->q_offset);
        cli_tell_matrix("S", "after that", s->biased, p->len_q, p->len_k, NULL);
    }
}

/* -------------------------------------------------------------------- mask */

static void tell_rules(const cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    if (p->causal != ATTN_CAUSAL_NONE && s->q_offset == 0)
        puts("   causal: query i sees keys j <= i, not what comes later.");
    else if (p->causal != ATTN_CAUSAL_NONE)
        printf("   causal: query i stands at p = i %+lld and sees keys "
               "j <= p.\n", (long long)s->q_offset);
    if (p->window_left >= 0)
        printf("   window: no key more than %lld before the query.\n",
               (long long)p->window_left);
    if (p->window_right >= 0)
        printf("   window: no key more than %lld behind the query.\n",
               (long long)p->window_right);
    if (p->k_lengths)
        printf("   padding: keys from %lld on are not there.\n",
               (long long)s->k_length);
    if (p->mask)
        puts("   mask: only where it is true.");
    if (p->bias)
        puts("   bias: a bias of -inf hides its key.");
}

static void tell_mask(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;
    const int64_t n = p->len_q * p->len_k;
    int64_t hidden = 0, empty = 0;

    for (int64_t i = 0; i < n; i++)
        hidden += !s->visible[i];
    for (int64_t i = 0; i < p->len_q; i++)
        empty += cli_lesson_row(s, i).n_visible == 0;
    cli_tell_step(s, "Mask");
    tell_rules(s);
    if (hidden == 0) {
        puts("   Nothing is hidden: every query sees every key.");
        return;
    }
    printf("   %lld of %lld pairs are hidden. A mask acts on the logits, before"
           " the softmax\n   normalises: a hidden score counts as -inf, its "
           "exponential as 0, and the\n   visible weights of a row still sum "
           "to 1. (Zeroing weights afterwards would\n   leave rows that sum "
           "to less.)\n", (long long)hidden, (long long)n);
    cli_tell_matrix("S", "what is left, a dot where a key is hidden", s->biased,
                    p->len_q, p->len_k, s->visible);
    if (empty > 0)
        printf("   %lld quer%s no key at all: 0/0 in the softmax. %s\n",
               (long long)empty, empty == 1 ? "y sees" : "ies see",
               p->sinks ? "The sink takes all\n   the weight, the output is 0."
               : p->empty_rows == ATTN_EMPTY_NAN
                   ? "--empty-rows=nan\n   keeps the NaN."
                   : "Their output\n   is 0 here (--empty-rows=nan shows the "
                     "NaN).");
}

/* ----------------------------------------------------------------- softmax */

/* One row of a small head, all of its numbers in three lines. */
static void tell_short_row(const cli_lesson *s, int64_t i)
{
    const int64_t m = s->problem.len_k;
    const cli_row row = cli_lesson_row(s, i);
    char name[NAME];

    printf("   row %lld%s%s: ", (long long)i, s->tokens ? ", " : "",
           s->tokens ? cli_query_name(s, i, name, sizeof name) : "");
    if (row.n_visible == 0) {
        puts("no key is visible");
        return;
    }
    printf("max %.4f", row.max);
    fputs("\n     exp(S - max)  ", stdout);
    for (int64_t j = 0; j < m; j++)
        if (s->visible[i * m + j])
            printf(" %7.4f", exp(s->biased[i * m + j] - row.max));
        else
            printf(" %7s", ".");
    if (s->sink)
        printf("  and %.4f for the sink", exp(*s->sink - row.max));
    printf("   sum %.4f\n     over the sum  ", row.sum);
    for (int64_t j = 0; j < m; j++)
        if (s->visible[i * m + j])
            printf(" %7.4f", s->p[i * m + j]);
        else
            printf(" %7s", ".");
    putchar('\n');
}

/* Who row i attends to, in words. */
static void tell_attended(const cli_lesson *s, int64_t i)
{
    int64_t keys[KEYS_SHOWN];
    const int64_t n = cli_strongest(s, i, LEAST, keys, KEYS_SHOWN);

    for (int64_t a = 0; a < n; a++) {
        char name[NAME];

        printf("  %s %.2f", cli_key_name(s, keys[a], name, sizeof name),
               s->p[i * s->problem.len_k + keys[a]]);
    }
    puts(n > 0 ? "" : cli_lesson_row(s, i).n_visible > 0 ? "  (spread out)"
                                                         : "  (no key)");
}

/* Columns of UTF-8 text, one for each code point. */
static int columns_of(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static int name_width(const cli_lesson *s, int64_t n)
{
    int width = 5;

    for (int64_t i = 0; i < n; i++) {
        char text[NAME];
        const int w = columns_of(cli_query_name(s, i, text, sizeof text));

        width = w > width ? w : width;
    }
    return width;
}

static void tell_rows(const cli_lesson *s)
{
    const int64_t n = s->problem.len_q < ROWS_SHOWN ? s->problem.len_q
                                                    : ROWS_SHOWN;
    const int width = name_width(s, n);

    printf("\n   %-*s   max S  entropy  effective keys  attends to (%.1f and "
           "more)\n", width, "query", LEAST);
    for (int64_t i = 0; i < n; i++) {
        const cli_row row = cli_lesson_row(s, i);
        char text[NAME];
        const char *name = cli_query_name(s, i, text, sizeof text);

        printf("   %s%*s %7.3f %8.3f %7.1f of %-4lld", name,
               width - columns_of(name), "", row.max, s->entropy[i],
               row.effective, (long long)row.n_visible);
        tell_attended(s, i);
    }
    if (n < s->problem.len_q)
        printf("   ... and %lld more; --row=R tells about one\n",
               (long long)(s->problem.len_q - n));
}

/* The arithmetic of one row, its strongest keys. */
static void tell_long_row(const cli_lesson *s, int64_t i)
{
    const int64_t m = s->problem.len_k;
    const cli_row row = cli_lesson_row(s, i);
    int64_t keys[KEYS_SHOWN];
    const int64_t n = cli_strongest(s, i, 0, keys, KEYS_SHOWN);
    char text[NAME];
    double rest = 1;

    printf("\n   Row %lld in full, %s%s:\n", (long long)i,
           cli_query_name(s, i, text, sizeof text),
           s->one_row ? "" : " (the one furthest from equal weights)");
    if (row.n_visible == 0) {
        puts("     it sees no key");
        return;
    }
    printf("     max %.4f; sum of exp(S - max) over %lld keys%s %.4f\n",
           row.max, (long long)row.n_visible, s->sink ? " and the sink" : "",
           row.sum);
    printf("     %-16s %9s %9s %13s %8s\n", "key", "q.k", "S",
           "exp(S - max)", "weight");
    for (int64_t a = 0; a < n; a++) {
        const int64_t at = i * m + keys[a];
        const char *name = cli_key_name(s, keys[a], text, sizeof text);

        printf("     %s%*s %9.4f %9.4f %13.4f %8.4f\n", name,
               16 - columns_of(name) > 0 ? 16 - columns_of(name) : 0, "",
               s->dots[at], s->biased[at], exp(s->biased[at] - row.max),
               s->p[at]);
        rest -= s->p[at];
    }
    if (row.n_visible > n)
        printf("     %-16s %9s %9s %13s %8.4f\n", "the others", "", "", "",
               s->sink ? rest - exp(*s->sink - row.max) / row.sum : rest);
    if (s->sink)
        printf("     %-16s %9s %9.4f %13.4f %8.4f\n", "the sink", "", *s->sink,
               exp(*s->sink - row.max), exp(*s->sink - row.max) / row.sum);
}

static void tell_softmax(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    cli_tell_step(s, "Softmax, row by row");
    puts("   A row's largest score is subtracted (which changes nothing but "
         "keeps exp\n   from overflowing), then exponentials are divided by "
         "their sum.");
    if (s->sink)
        printf("   The sink, a logit of %.4g, joins the sum and gets weight, "
               "but has no value.\n", *s->sink);
    putchar('\n');
    if (cli_is_small(p->len_q, p->len_k)) {
        for (int64_t i = 0; i < p->len_q; i++)
            if (!s->one_row || i == s->row)
                tell_short_row(s, i);
        putchar('\n');
    }
    cli_tell_matrix("A", s->sink ? "the weights; with the sink's, a row sums "
                                   "to 1"
                                 : "the weights; each row sums to 1", s->p,
                    p->len_q, p->len_k, s->visible);
    if (cli_is_small(p->len_q, p->len_k)) {
        puts("\n   Entropy says how spread a row is; exp(entropy) is how many "
             "keys it\n   effectively looks at.");
        tell_rows(s);
        return;
    }
    puts("\n   Entropy says how spread a row is, in nats; exp(entropy) is how "
         "many keys\n   it effectively looks at.");
    if (!s->one_row)
        tell_rows(s);
    tell_long_row(s, s->row);
}

/* ------------------------------------------------------------------ output */

/* Whether each number of o lies between the least and the largest of its
 * column of V, or with a part of the weight missing between those and 0. */
static bool is_in_hull(const cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    for (int64_t i = 0; i < p->len_q; i++)
        for (int64_t c = 0; c < p->dim_v; c++) {
            const double o = s->o[i * p->dim_v + c];
            double least = INFINITY, most = -INFINITY, slack = 0;

            for (int64_t j = 0; j < p->len_k; j++)
                if (s->visible[i * p->len_k + j]) {
                    const double v = s->v[j * p->dim_v + c];

                    least = fmin(least, v);
                    most = fmax(most, v);
                    slack += fabs(v) * 0x1p-50;
                }
            if (least <= most && !(o >= least - slack && o <= most + slack))
                return false;
        }
    return true;
}

static void tell_sum(const cli_lesson *s, int64_t i)
{
    const attn_ref_problem *p = &s->problem;

    if (cli_lesson_row(s, i).n_visible == 0)
        return;
    printf("   O[%lld] =", (long long)i);
    for (int64_t j = 0, n = 0; j < p->len_k; j++)
        if (s->visible[i * p->len_k + j])
            printf("%s%.4f V[%lld]", n++ > 0 ? " + " : " ",
                   s->p[i * p->len_k + j] *
                       (s->dropout ? s->dropout[i * p->len_k + j] : 1),
                   (long long)j);
    if (p->dim_v <= 4) {
        fputs(" = ", stdout);
        cli_tell_line(s->o + i * p->dim_v, 1, p->dim_v, 4);
    }
    putchar('\n');
}

static void tell_output(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    cli_tell_step(s, "Output: the weighted average of the values");
    if (s->dropout)
        puts("   Dropout sets some weights to 0 and enlarges the others, so "
             "that the\n   expectation stays.");
    if (cli_is_small(p->len_q, p->len_k)) {
        for (int64_t i = 0; i < p->len_q; i++)
            if (!s->one_row || i == s->row)
                tell_sum(s, i);
        putchar('\n');
    }
    cli_tell_matrix("O = A V", "a row for each query", s->o, p->len_q, p->dim_v,
                    NULL);
    if (s->dropout || s->sink)
        printf("   %s, an output row need not be an average of values.\n",
               s->dropout ? "Under dropout" : "With a sink");
    else if (is_in_hull(s))
        puts("   The weights are not negative and sum to 1, so each output row "
             "is an average:\n   it stays inside the hull of the values that "
             "it sees, each number between the\n   least and the largest of its"
             " column.");
    else
        puts("   NaN or infinity has reached the output: look for it in Q, K "
             "and V above.");
    if (cli_is_small(p->len_q, p->len_k) && p->dim_v <= 4) {
        fputs("\nIn short: A = ", stdout);
        cli_tell_line(s->p, p->len_q, p->len_k, 4);
        fputs("\n          A V = ", stdout);
        cli_tell_line(s->o, p->len_q, p->dim_v, 3);
        putchar('\n');
    }
}

void cli_tell_forward(cli_lesson *s)
{
    tell_sizes(s);
    tell_scores(s);
    tell_mask(s);
    tell_softmax(s);
    tell_output(s);
    if (s->layer)
        cli_tell_layer_output(s);
}
