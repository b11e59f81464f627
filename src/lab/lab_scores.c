/* SPDX-License-Identifier: Apache-2.0
 *
 * Experiments on what the size of scores does, and on reading weights. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/workbench.h"

static double mean_entropy(const double *p, int64_t rows, int64_t keys)
{
    double sum = 0;

    for (int64_t i = 0; i < rows; i++)
        sum += attn__lab_entropy(p + i * keys, keys);
    return sum / (double)rows;
}

bool attn__lab_sharpen(lab *l)
{
    static const char *const columns[] = {
        "query", "max weight", "with 10 W_q", "entropy", "with 10 W_q", NULL};
    const rules plain = {.causal = false};
    attended before, after;
    scene s;
    double *q;
    int64_t n;

    if (!attn__lab_scene(l, 6, 8, &s))
        return false;
    n = s.len;
    q = attn__lab_numbers(l, n, s.dim);
    if (!q)
        return false;
    for (int64_t i = 0; i < n * s.dim; i++)
        q[i] = 10 * s.q[i];
    if (!attn__lab_attend(l, n, s.dim, s.dim_v, s.q, s.k, s.v, &plain,
                          &before) ||
        !attn__lab_attend(l, n, s.dim, s.dim_v, q, s.k, s.v, &plain, &after) ||
        !attn__lab_table(l, "Ten times W_q", columns, n))
        return false;
    for (int64_t i = 0; i < n; i++) {
        attn__lab_number(l, i, 0, (double)i);
        attn__lab_number(l, i, 1, attn__lab_largest(before.p + i * n, n));
        attn__lab_number(l, i, 2, attn__lab_largest(after.p + i * n, n));
        attn__lab_number(l, i, 3, attn__lab_entropy(before.p + i * n, n));
        attn__lab_number(l, i, 4, attn__lab_entropy(after.p + i * n, n));
    }
    attn__lab_draw(l, "W_q", n, n, before.p, NULL);
    attn__lab_draw(l, "10 W_q", n, n, after.p, NULL);
    l->result->conclusion = attn__lab_text(
        l, "Ten times W_q makes every score ten times as large: the mean "
        "entropy goes from %.3f to %.3f nats, and each row goes towards the "
        "one key with the largest score.", mean_entropy(before.p, n, n),
        mean_entropy(after.p, n, n));
    return l->result->conclusion != NULL;
}

/* ----------------------------------------------------------------- sqrt-d */

/* Rows `row` and row + 1: without and with 1/sqrt(dim). */
static bool both_scales(lab *l, const scene *s, int64_t row, double *largest)
{
    for (int with = 0; with < 2; with++) {
        const rules r = {.scale = with ? 0 : 1};
        const int64_t n = s->len;
        attended a;
        double least = 1;

        if (!attn__lab_attend(l, n, s->dim, s->dim_v, s->q, s->k, s->v, &r, &a))
            return false;
        for (int64_t i = 0; i < n * n; i++)
            least = fmin(least, a.p[i]);
        largest[row + with] = attn__lab_largest(a.p, n * n);
        attn__lab_number(l, row + with, 0, (double)s->dim);
        attn__lab_word(l, row + with, 1, with ? "1/sqrt(d)" : "1");
        attn__lab_number(l, row + with, 2, largest[row + with]);
        attn__lab_number(l, row + with, 3, least);
        attn__lab_number(l, row + with, 4, mean_entropy(a.p, n, n));
        attn__lab_draw(l, attn__lab_text(l, "d = %lld, scale %s",
                                         (long long)s->dim,
                                         with ? "1/sqrt(d)" : "1"),
                       n, n, a.p, NULL);
    }
    return l->status == ATTN_OK;
}

bool attn__lab_sqrt_d(lab *l)
{
    static const char *const columns[] = {"d", "scale", "max weight",
                                          "min weight", "mean entropy", NULL};
    const int64_t dims[2] = {4, 256};
    const attn_lab_data *d = l->data;
    const bool given = d->q.dtype != ATTN_NONE || d->x.dtype != ATTN_NONE ||
                       d->dim > 0;
    const int64_t cases = given ? 1 : 2;
    double largest[4] = {0};

    if (!attn__lab_table(l, "With and without 1/sqrt(d)", columns, 2 * cases))
        return false;
    for (int64_t c = 0; c < cases; c++) {
        scene s;

        if (!attn__lab_scene(l, 6, dims[c], &s) ||
            !both_scales(l, &s, 2 * c, largest))
            return false;
    }
    l->result->conclusion = attn__lab_text(
        l, "A dot product of d numbers of size 1 has the size sqrt(d). Without "
        "the division the largest weight here is %.4f, with it %.4f: the "
        "softmax no longer puts all weight on one key, where its gradient "
        "would vanish.", largest[2 * cases - 2], largest[2 * cases - 1]);
    return l->result->conclusion != NULL;
}

/* ------------------------------------------------------------------ above */

/* "0 (0.40), 2 (0.31)", or with names. */
static const char *list(lab *l, const double *p, int64_t n, double *sum,
                        int64_t *found)
{
    char text[400] = "";

    for (int64_t j = 0; j < n; j++) {
        char one[96];
        const size_t used = strlen(text);

        if (!(p[j] > 0.1))
            continue;
        if (l->data->tokens)
            snprintf(one, sizeof one, "%lld %.60s (%.2f)", (long long)j,
                     l->data->tokens[j], p[j]);
        else
            snprintf(one, sizeof one, "%lld (%.2f)", (long long)j, p[j]);
        if (used + strlen(one) + 3 < sizeof text)
            snprintf(text + used, sizeof text - used, "%s%s",
                     used > 0 ? ", " : "", one);
        *sum += p[j];
        ++*found;
    }
    return *found == 0 ? "none" : attn__lab_text(l, "%s", text);
}

bool attn__lab_above(lab *l)
{
    static const char *const columns[] = {
        "query", "keys above 0.1", "their sum", NULL};
    const rules plain = {.causal = false};
    int64_t found = 0;
    double sum = 0;
    attended a;
    scene s;

    if (!attn__lab_scene(l, 8, 8, &s) ||
        !attn__lab_attend(l, s.len, s.dim, s.dim_v, s.q, s.k, s.v, &plain,
                          &a) ||
        !attn__lab_table(l, "Who attends whom above 0.1", columns, s.len))
        return false;
    for (int64_t i = 0; i < s.len; i++) {
        int64_t here = 0;
        double part = 0;
        const char *text = list(l, a.p + i * s.len, s.len, &part, &here);

        if (!text)
            return false;
        attn__lab_number(l, i, 0, (double)i);
        attn__lab_word(l, i, 1, text);
        attn__lab_number(l, i, 2, part);
        sum += part;
        found += here;
    }
    attn__lab_draw(l, "weights", s.len, s.len, a.p, NULL);
    l->result->conclusion = attn__lab_text(
        l, "Of %lld weights %lld are above 0.1, and they hold %.0f %% of all "
        "weight; at most nine of a row can be.", (long long)(s.len * s.len),
        (long long)found, 100 * sum / (double)s.len);
    return l->result->conclusion != NULL;
}
