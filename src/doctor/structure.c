/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the weights out: with v = identity, o is P. */
#include "doctor/structure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/stress.h"

/* ---------------------------------------------------------------- reading */

/* A plain question with v = identity; dims and lengths coincide only as far
 * as the subject forces them to. Scores are 0 with `flat`. */
static attn__question *reading(attn__attempt *a, int64_t len, bool flat)
{
    attn__interview *in = a->interview;
    attn__sizes n = attn__sizes_general(in);
    attn__question *q;
    double *v, *zeros;

    n.dim_v = n.len_k = len;
    if (!(in->sizes & ASK_DIMS))
        n.dim_qk = len;
    if (flat || !(in->sizes & ASK_CROSS))
        n.len_q = len;
    n.batch = n.batch > 2 ? 2 : n.batch;
    q = attn__aside(a, n, 0);
    v = attn__arena_doubles(in->arena, attn__count_v(&n));
    zeros = attn__arena_doubles(in->arena, attn__count_q(&n));
    if (!q || !v || !zeros)
        return NULL;
    for (int64_t x = 0; x < attn__count_v(&n); x++)
        v[x] = x / len % len == x % len;
    q->v = v;
    if (flat)
        q->q = zeros;
    return attn__put_aside(a, q) ? q : NULL;
}

/* Offsets j - i at which some pair of the first head has weight. */
attn__band attn__read_band(attn__attempt *a)
{
    const attn__question *q = reading(a, 9, true);
    int64_t low = INT64_MAX, high = INT64_MIN;
    attn__band band = {0};

    if (!q || q->n.len_q != q->n.len_k)
        return band;
    for (int64_t i = 0; i < 9; i++) {
        for (int64_t j = 0; j < 9; j++) {
            if (!(fabs(q->answer[i * 9 + j]) > 1e-12))
                continue;
            low = j - i < low ? j - i : low;
            high = j - i > high ? j - i : high;
        }
    }
    band.found = low <= 0 && high >= 0 && (low > -8 || high < 8);
    band.left = low <= -8 ? -1 : -low;
    band.right = high >= 8 ? -1 : high;
    return band;
}

bool attn__read_slopes(attn__attempt *a)
{
    const attn__question *q = reading(a, 9, true);
    const double *p;

    if (!q || q->n.len_q != 9)
        return false;
    p = q->answer + 8 * 9; /* the last row of the first head */
    return p[8] > 0 && p[7] > 0 && fabs(p[7] / p[8] - 1) > 1e-6;
}

/* -------------------------------------------------------------- patterns */

typedef struct ratio {
    double least, most, dropped; /* of P / right P; the share of zeros */
    bool sums_to_one;
} ratio;

/* P against the right one, over pairs that rightly have weight. */
static ratio compare_weights(attn__exam *exam, const attn__attempt *a,
                             const attn__question *q)
{
    const attn__work *w = &exam->work;
    ratio r = {.least = INFINITY, .sums_to_one = true};
    int64_t zeros = 0, all = 0;

    attn__is_met(exam, a, q);
    ATTN__FOR_ROWS(w, row) {
        const double *p = q->answer + row.index * q->n.dim_v;
        double sum = 0;

        for (int64_t j = 0; j < w->n.len_k; j++) {
            sum += p[j];
            if (!(row.p[j] > 1e-9))
                continue;
            all++;
            if (p[j] == 0) {
                zeros++;
                continue;
            }
            r.least = fmin(r.least, p[j] / row.p[j]);
            r.most = fmax(r.most, p[j] / row.p[j]);
        }
        r.sums_to_one &= fabs(sum - 1) < 1e-5;
    }
    r.dropped = all ? (double)zeros / (double)all : 0;
    return r;
}

/* 0 or P / (1 - p), with p about the share of zeros. */
static bool is_dropout(const ratio *r)
{
    return r->dropped > 0.01 && r->dropped < 0.95 && r->most > 1.001 &&
           r->most - r->least < 1e-6 * r->most &&
           fabs(1 - 1 / r->most - r->dropped) < 0.12;
}

/* One factor for all pairs of a row, and rows do not sum to 1. */
static bool is_extra_mass(attn__exam *exam, const attn__question *q)
{
    const attn__work *w = &exam->work;

    ATTN__FOR_ROWS(w, row) {
        const double *p = q->answer + row.index * q->n.dim_v;
        double least = INFINITY, most = 0;

        for (int64_t j = 0; j < w->n.len_k; j++) {
            if (!(row.p[j] > 1e-9))
                continue;
            least = fmin(least, p[j] / row.p[j]);
            most = fmax(most, p[j] / row.p[j]);
        }
        if (!(most < 1) || most - least > 1e-9)
            return false;
    }
    return true;
}

/* The slope of log(P_ij / P_i0) against the product q k, if one fits all. */
static double fitted_scale(const attn__exam *exam, const attn__question *q)
{
    const attn__work *w = &exam->work;
    double least = INFINITY, most = -INFINITY;

    ATTN__FOR_ROWS(w, row) {
        const double *p = q->answer + row.index * q->n.dim_v;
        const double *x = attn__query(w, &row);
        const double base =
            attn__dot(x, attn__key(w, &row, 0), w->n.dim_qk);

        for (int64_t j = 1; j < w->n.len_k; j++) {
            const double d =
                attn__dot(x, attn__key(w, &row, j), w->n.dim_qk) - base;
            const double slope = log(p[j] / p[0]) / d;

            if (fabs(d) < 0.5 || !(p[j] > 1e-8) || !(p[0] > 1e-8))
                continue;
            least = fmin(least, slope);
            most = fmax(most, slope);
        }
    }
    return most - least < 1e-5 * fabs(most) ? most : NAN;
}

/* Is every entry of o either 0 or the right one times one factor? */
static void describe_scale(attn__exam *exam, const attn__question *q,
                           double scale)
{
    attn_report *r = exam->report;
    const double right = 1 / sqrt((double)q->n.dim_qk);
    attn_finding *f = attn__add_fault(
        r, scale < right ? "scale-d-model" : "scale-missing", "");

    f->evidence = attn__arena_text(
        &r->arena,
        "the weights fit a scale of %.9g, that is %.6g / sqrt(head_dim), "
        "head_dim being %lld",
        scale, scale / right, (long long)q->n.dim_qk);
}

/* ------------------------------------------------------------ description */

/* Which part of the answers is off. */
static const char *describe_region(attn__exam *exam, const attn__attempt *a,
                                   const attn__question *q)
{
    const attn__work *w = &exam->work;
    int64_t future = 0, past = 0, first_head = 0, other_heads = 0;

    attn__is_met(exam, a, q);
    ATTN__FOR_ROWS(w, row) {
        const double *p = q->answer + row.index * q->n.dim_v;

        for (int64_t j = 0; j < w->n.len_k; j++) {
            if (fabs(p[j] - row.p[j]) < 1e-6)
                continue;
            *(j > row.position ? &future : &past) += 1;
            *(row.h == 0 ? &first_head : &other_heads) += 1;
        }
    }
    if (future + past == 0)
        return "plain weights are right; it is an option or a size";
    if (past == 0)
        return "only weights of future keys differ";
    if (first_head == 0)
        return "head 0 is right, other heads differ";
    if (future == 0)
        return "only weights of past keys and the diagonal differ";
    return "weights differ everywhere";
}

void attn__describe_structure(attn__exam *exam, attn__attempt *a)
{
    attn_report *r = exam->report;
    const attn__question *q = reading(a, 7, false);
    ratio pattern;
    double scale;

    if (!q || q->d_o || q->layer.x) {
        attn__add_fault(r, "unexplained", "");
        return;
    }
    pattern = compare_weights(exam, a, q);
    scale = fitted_scale(exam, q);
    if (is_dropout(&pattern)) {
        attn__add_fault(r, "dropout-not-off", "")->evidence =
            attn__arena_text(&r->arena,
                             "%.0f %% of the weights are 0, the others are "
                             "%.4g times the right ones",
                             100 * pattern.dropped, pattern.most);
    } else if (is_extra_mass(exam, q)) {
        attn__add_fault(r, "softmax-extra-mass", "")->evidence =
            "every row is the right one times a factor below 1";
    } else if (pattern.sums_to_one && isfinite(scale) &&
               fabs(scale * sqrt((double)q->n.dim_qk) - 1) > 1e-4) {
        describe_scale(exam, q, scale);
    } else {
        attn__add_fault(r, "unexplained", "")->evidence =
            describe_region(exam, a, q);
    }
}
