/* SPDX-License-Identifier: Apache-2.0
 *
 * Experiments on what is hidden: empty rows, windows, causal masks, order. */
#include <math.h>
#include <string.h>

#include "lab/workbench.h"

static bool attend(lab *l, const scene *s, const rules *r, attended *to)
{
    return attn__lab_attend(l, s->len, s->dim, s->dim_v, s->q, s->k, s->v, r,
                            to);
}

/* -------------------------------------------------------------- empty-row */

/* The textbook's softmax of a row of -inf, each step as it is computed. */
static void empty_steps(lab *l, int64_t n)
{
    static const char *const steps[] = {
        "score of a hidden key", "row maximum", "score - maximum",
        "exponential", "sum", "weight"};
    volatile double score = -INFINITY, most = -INFINITY;
    double value[6], sum = 0;

    value[0] = score;
    value[1] = most;
    value[2] = score - most;
    value[3] = exp(value[2]);
    for (int64_t j = 0; j < n; j++)
        sum += value[3];
    value[4] = sum;
    value[5] = value[3] / sum;
    for (int64_t i = 0; i < 6; i++) {
        attn__lab_word(l, i, 0, steps[i]);
        attn__lab_number(l, i, 1, value[i]);
        attn__lab_word(l, i, 2, i < 2 ? "-inf" : "skipped");
    }
    attn__lab_number(l, 5, 2, 0);
}

bool attn__lab_empty_row(lab *l)
{
    static const char *const columns[] = {"step", "textbook", "empty row = 0",
                                          NULL};
    attended nan, zero;
    unsigned char *mask;
    int64_t n, row;
    scene s;

    if (!attn__lab_scene(l, 6, 4, &s))
        return false;
    n = s.len;
    row = n / 2;
    mask = attn__lab_memory(l, n * n + 1, 1);
    if (!mask)
        return false;
    for (int64_t i = 0; i < n * n; i++)
        mask[i] = i / n != row;
    if (!attend(l, &s, &(rules){.mask = mask, .nan = true}, &nan) ||
        !attend(l, &s, &(rules){.mask = mask}, &zero) ||
        !attn__lab_table(l, "A query that sees no key", columns, 8))
        return false;
    empty_steps(l, n);
    attn__lab_word(l, 6, 0, "output of the row");
    attn__lab_number(l, 6, 1, nan.o[row * s.dim_v]);
    attn__lab_number(l, 6, 2, zero.o[row * s.dim_v]);
    attn__lab_word(l, 7, 0, "largest weight elsewhere");
    attn__lab_number(l, 7, 1, attn__lab_largest(nan.p, n * n));
    attn__lab_number(l, 7, 2, attn__lab_largest(zero.p, n * n));
    attn__lab_draw(l, "empty row = NaN", n, n, nan.p, mask);
    attn__lab_draw(l, "empty row = 0", n, n, zero.p, mask);
    l->result->conclusion = attn__lab_text(
        l, "Query %lld sees no key, so its maximum is -inf, and -inf - (-inf) "
        "is NaN before any division: the mask is wrong, or the row is padding. "
        "The convention 0 keeps it out of everything; other rows are the same "
        "either way.", (long long)row);
    return l->result->conclusion != NULL;
}

/* ------------------------------------------------------------------ window */

bool attn__lab_window(lab *l)
{
    static const char *const columns[] = {"query", "first key", "last key",
                                          "keys", "weight outside",
                                          "outside, all keys", NULL};
    double lost = 0;
    attended band, all;
    scene s;

    if (!attn__lab_scene(l, 8, 8, &s) ||
        !attend(l, &s, &(rules){.width = 3}, &band) ||
        !attend(l, &s, &(rules){.causal = true}, &all) ||
        !attn__lab_table(l, "A causal window of width 3", columns, s.len))
        return false;
    for (int64_t i = 0; i < s.len; i++) {
        const int64_t first = i < 2 ? 0 : i - 2;
        double outside = 0, before = 0;

        for (int64_t j = 0; j < s.len; j++)
            if (j < first || j > i) {
                outside += band.p[i * s.len + j];
                before += all.p[i * s.len + j];
            }
        attn__lab_number(l, i, 0, (double)i);
        attn__lab_number(l, i, 1, (double)first);
        attn__lab_number(l, i, 2, (double)i);
        attn__lab_number(l, i, 3, (double)(i - first + 1));
        attn__lab_number(l, i, 4, outside);
        attn__lab_number(l, i, 5, before);
        lost += before;
    }
    attn__lab_draw(l, "window of 3", s.len, s.len, band.p, band.shown);
    attn__lab_draw(l, "causal", s.len, s.len, all.p, all.shown);
    l->result->conclusion = attn__lab_text(
        l, "Query i sees keys i - 2 to i, a band of width 3; the causal mask "
        "without it puts %.0f %% of its weight further back, which the window "
        "gives to the three keys that stay.", 100 * lost / (double)s.len);
    return l->result->conclusion != NULL;
}

/* ----------------------------------------------------------------- permute */

/* Rows of x in the order of `from`. */
static double *reorder(lab *l, const double *x, const int64_t *from, int64_t n,
                       int64_t width)
{
    double *y = attn__lab_numbers(l, n, width);

    for (int64_t i = 0; y && i < n; i++)
        memcpy(y + i * width, x + from[i] * width,
               (size_t)width * sizeof *y);
    return y;
}

/* The largest difference of Y(P x) and P Y(x); -1 if memory is short. */
static double equivariance(lab *l, const scene *s, const int64_t *from,
                           const rules *r)
{
    scene t = *s;
    attended whole, mixed;
    double *moved;

    t.q = reorder(l, s->q, from, s->len, s->dim);
    t.k = reorder(l, s->k, from, s->len, s->dim);
    t.v = reorder(l, s->v, from, s->len, s->dim_v);
    if (!t.q || !t.k || !t.v || !attend(l, s, r, &whole) ||
        !attend(l, &t, r, &mixed))
        return -1;
    moved = reorder(l, whole.o, from, s->len, s->dim_v);
    if (!moved)
        return -1;
    attn__lab_draw(l, r->causal ? "causal, reversed" : "no mask, reversed",
                   s->len, s->len, mixed.p, mixed.shown);
    return attn__lab_apart(moved, mixed.o, s->len * s->dim_v);
}

bool attn__lab_permute(lab *l)
{
    static const char *const columns[] = {
        "attention", "largest |Y(P x) - P Y(x)|", NULL};
    double free_of_order, causal;
    int64_t *from;
    scene s;

    if (!attn__lab_scene(l, 6, 8, &s) ||
        !attn__lab_table(l, "Tokens in reverse order", columns, 2))
        return false;
    from = attn__lab_memory(l, s.len, sizeof *from);
    if (!from)
        return false;
    for (int64_t i = 0; i < s.len; i++)
        from[i] = s.len - 1 - i;
    free_of_order = equivariance(l, &s, from, &(rules){.causal = false});
    if (free_of_order < 0)
        return false;
    causal = equivariance(l, &s, from, &(rules){.causal = true});
    if (causal < 0)
        return false;
    attn__lab_word(l, 0, 0, "no mask");
    attn__lab_number(l, 0, 1, free_of_order);
    attn__lab_word(l, 1, 0, "causal");
    attn__lab_number(l, 1, 1, causal);
    l->result->conclusion =
        "Without a mask attention is equivariant: reordered tokens give the "
        "same outputs, reordered, up to rounding, so it does not know the "
        "order. The causal mask breaks that, as does any code of positions.";
    return true;
}

/* ------------------------------------------------------------------ prefix */

bool attn__lab_prefix(lab *l)
{
    static const char *const columns[] = {"tokens kept", "change, causal",
                                          "change, no mask", NULL};
    double most[2] = {0, 0};
    attended whole[2];
    scene s;

    if (!attn__lab_scene(l, 6, 8, &s))
        return false;
    for (int c = 0; c < 2; c++)
        if (!attend(l, &s, &(rules){.causal = c == 0}, &whole[c]))
            return false;
    if (!attn__lab_table(l, "Later tokens cut off", columns, s.len))
        return false;
    for (int64_t n = 1; n <= s.len; n++) {
        attn__lab_number(l, n - 1, 0, (double)n);
        for (int c = 0; c < 2; c++) {
            scene part = s;
            attended a;
            double change;

            part.len = n;
            if (!attend(l, &part, &(rules){.causal = c == 0}, &a))
                return false;
            change = attn__lab_apart(a.o, whole[c].o, n * s.dim_v);
            most[c] = fmax(most[c], change);
            attn__lab_number(l, n - 1, c + 1, change);
        }
    }
    attn__lab_draw(l, "causal", s.len, s.len, whole[0].p, whole[0].shown);
    attn__lab_draw(l, "no mask", s.len, s.len, whole[1].p, NULL);
    l->result->conclusion = attn__lab_text(
        l, "Under the causal mask an output depends on its own token and those "
        "before it: cutting off the later ones changes earlier outputs by %s. "
        "Without a mask they change by up to %.3g. This is what lets a decoder "
        "keep keys and values.", most[0] == 0 ? "nothing, not one bit"
                                              : "rounding alone", most[1]);
    return l->result->conclusion != NULL;
}

/* ------------------------------------------------------------- first-token */

bool attn__lab_first_token(lab *l)
{
    static const char *const columns[] = {"component", "V[0]", "Y[0], causal",
                                          "Y[0], no mask", NULL};
    attended causal, all;
    scene s;

    if (!attn__lab_scene(l, 6, 8, &s) ||
        !attend(l, &s, &(rules){.causal = true}, &causal) ||
        !attend(l, &s, &(rules){.causal = false}, &all) ||
        !attn__lab_table(l, "The first output", columns, s.dim_v))
        return false;
    for (int64_t c = 0; c < s.dim_v; c++) {
        attn__lab_number(l, c, 0, (double)c);
        attn__lab_number(l, c, 1, s.v[c]);
        attn__lab_number(l, c, 2, causal.o[c]);
        attn__lab_number(l, c, 3, all.o[c]);
    }
    attn__lab_draw(l, "causal", s.len, s.len, causal.p, causal.shown);
    l->result->conclusion = attn__lab_text(
        l, "Under the causal mask the first query sees one key, its own, with "
        "weight 1, so Y[0] = V[0] whatever the scores (largest difference "
        "%.1g). If it does not, the mask is shifted or transposed.",
        attn__lab_apart(causal.o, s.v, s.dim_v));
    return l->result->conclusion != NULL;
}
