/* SPDX-License-Identifier: Apache-2.0
 *
 * Patterns of weights, by r = ln(P) - s: right weights have one r per row. */
#include <math.h>

#include "doctor/reading.h"
#include "doctor/wrong.h"

/* Weights too small to be compared. */
static const double least_weight = 1e-6;

static double p_at(const attn__reading *r, const attn__pairs *row, int64_t j)
{
    return r->p[row->index * r->work->n.len_k + j];
}

static double s_at(const attn__reading *r, const attn__pairs *row, int64_t j)
{
    return r->s[row->index * r->work->n.len_k + j];
}

static bool sees(const attn__reading *r, const attn__pairs *row, int64_t j)
{
    return r->visible[row->index * r->work->n.len_k + j];
}

static bool has_weight(const attn__reading *r, const attn__pairs *row,
                       int64_t j)
{
    return p_at(r, row, j) > least_weight;
}

static double ratio(const attn__reading *r, const attn__pairs *row, int64_t j)
{
    return log(p_at(r, row, j)) - s_at(r, row, j);
}

/* Weights are not negative: what is, is something else, in which a pattern
 * of weights would be chance. */
static bool are_weights(const attn__reading *r)
{
    for (int64_t x = 0; x < attn__count_pairs(&r->work->n); x++) {
        if (!(r->p[x] >= -r->close))
            return false;
    }
    return true;
}

/* An interval of numbers seen. */
typedef struct range {
    double low, high;
} range;

static const range nowhere = {INFINITY, -INFINITY};

static void include(range *x, double value)
{
    x->low = fmin(x->low, value);
    x->high = fmax(x->high, value);
}

static bool is_one(const range *x, double close)
{
    return x->low <= x->high && x->high - x->low <= close;
}

/* ------------------------------------------------------------------- sums */

static double sum_of(const attn__reading *r, const attn__pairs *row)
{
    double sum = 0;

    for (int64_t j = 0; j < r->work->n.len_k; j++)
        sum += p_at(r, row, j);
    return sum;
}

static bool rows_sum_to_one(const attn__reading *r)
{
    ATTN__FOR_ROWS(r->work, row) {
        if (!(fabs(sum_of(r, &row) - 1) < r->close))
            return false;
    }
    return true;
}

/* Over axis 1 (heads) or 2 (queries), wherever anything is seen at all. */
static bool axis_sums_to_one(const attn__reading *r, int axis)
{
    const attn__sizes *n = &r->work->n;
    const int64_t heads = n->heads_q, rows = n->len_q, keys = n->len_k;

    if ((axis == 1 ? heads : rows) < 2)
        return false;
    for (int64_t b = 0; b < n->batch; b++)
        for (int64_t x = 0; x < (axis == 1 ? rows : heads); x++)
            for (int64_t j = 0; j < keys; j++) {
                double sum = 0;

                for (int64_t y = 0; y < (axis == 1 ? heads : rows); y++) {
                    const int64_t h = axis == 1 ? y : x;
                    const int64_t i = axis == 1 ? x : y;

                    sum += r->p[((b * heads + h) * rows + i) * keys + j];
                }
                if (!(fabs(sum - 1) < r->close))
                    return false;
            }
    return true;
}

/* Of `group` consecutive rows together: of a head's, or of all. */
static bool groups_sum_to_one(const attn__reading *r, int64_t group)
{
    double sum = 0;

    if (group < 2)
        return false;
    ATTN__FOR_ROWS(r->work, row) {
        sum += sum_of(r, &row);
        if (row.index % group != group - 1)
            continue;
        if (!(fabs(sum - 1) < r->close))
            return false;
        sum = 0;
    }
    return true;
}

/* Of the heads of every query together. */
static bool heads_sum_to_one(const attn__reading *r)
{
    const attn__sizes *n = &r->work->n;

    for (int64_t b = 0; b < n->batch; b++)
        for (int64_t i = 0; i < n->len_q; i++) {
            double sum = 0;

            for (int64_t h = 0; h < n->heads_q; h++) {
                const attn__pairs row = attn__row(
                    r->work, (b * n->heads_q + h) * n->len_q + i);

                sum += sum_of(r, &row);
            }
            if (!(fabs(sum - 1) < r->close))
                return false;
        }
    return n->heads_q > 1;
}

static attn__pattern pattern_of_sums(const attn__reading *r)
{
    const attn__sizes *n = &r->work->n;

    if (rows_sum_to_one(r))
        return PATTERN_NONE;
    if (axis_sums_to_one(r, 2))
        return PATTERN_COLUMNS;
    if (axis_sums_to_one(r, 1))
        return PATTERN_HEADS;
    if (heads_sum_to_one(r) || groups_sum_to_one(r, n->len_q) ||
        groups_sum_to_one(r, n->len_q * n->heads_q))
        return PATTERN_JOINT;
    return PATTERN_NONE;
}

/* --------------------------------------------------------------- factors */

static bool is_right(const attn__reading *r)
{
    for (int64_t x = 0; x < attn__count_pairs(&r->work->n); x++) {
        if (!(fabs(r->p[x] - r->right[x]) <= r->close))
            return false;
    }
    return true;
}

/* 0 or P / (1 - p), with p about the share of zeros. */
static bool is_dropout(attn__exam *exam, const attn__reading *r,
                       const char **evidence)
{
    range factor = nowhere;
    int64_t zeros = 0, all = 0;

    for (int64_t x = 0; x < attn__count_pairs(&r->work->n); x++) {
        if (!(r->right[x] > least_weight))
            continue;
        all++;
        if (r->p[x] == 0)
            zeros++;
        else
            include(&factor, r->p[x] / r->right[x]);
    }
    if (zeros == 0 || all == 0 || !is_one(&factor, r->close * factor.high) ||
        !(factor.high > 1.001) ||
        !(fabs(1 - 1 / factor.high - (double)zeros / (double)all) < 0.15))
        return false;
    *evidence = attn__arena_text(
        &exam->report->arena,
        "%.0f %% of the weights are 0, the others are %.4g times the right "
        "ones",
        100 * (double)zeros / (double)all, factor.high);
    return true;
}

/* ln of a row's sum over what it rightly sees. */
static double lse_of(const attn__reading *r, const attn__pairs *row,
                     int64_t first, int64_t end)
{
    double max = -INFINITY, sum = 0;

    for (int64_t j = first; j < end; j++)
        max = sees(r, row, j) ? fmax(max, s_at(r, row, j)) : max;
    for (int64_t j = first; j < end; j++)
        sum += sees(r, row, j) ? exp(s_at(r, row, j) - max) : 0;
    return max + log(sum);
}

/* One r per row: what joins the sum, or is missing in it. */
static attn__pattern pattern_of_rows(attn__exam *exam, const attn__reading *r,
                                     const char **evidence)
{
    range mass = nowhere, of_max = nowhere, all = nowhere;
    const int64_t keys = r->work->n.len_k;

    ATTN__FOR_ROWS(r->work, row) {
        range own = nowhere;
        double max = -INFINITY, joins;

        for (int64_t j = 0; j < keys; j++) {
            if (sees(r, &row, j) != (p_at(r, &row, j) != 0) &&
                !(sees(r, &row, j) && s_at(r, &row, j) < -600))
                return PATTERN_NONE;
            if (!sees(r, &row, j))
                continue;
            if (has_weight(r, &row, j))
                include(&own, ratio(r, &row, j));
            max = fmax(max, s_at(r, &row, j));
        }
        if (max == -INFINITY)
            continue;
        if (!is_one(&own, r->close))
            return PATTERN_NONE;
        joins = exp(-own.low) - exp(lse_of(r, &row, 0, keys)) -
                exp(r->mass[row.index]);
        include(&mass, joins);
        include(&of_max, joins * exp(-max));
        include(&all, sum_of(r, &row));
    }
    *evidence = attn__arena_text(
        &exam->report->arena,
        "rows sum to %.6g ... %.6g; beside the keys %s joins the sum",
        all.low, all.high,
        is_one(&mass, 1e-6 * fabs(mass.high))
            ? attn__arena_text(&exam->report->arena, "%.6g", mass.high)
        : is_one(&of_max, 1e-6 * fabs(of_max.high))
            ? attn__arena_text(&exam->report->arena,
                               "%.6g times the largest term", of_max.high)
            : "something that differs by row");
    return mass.low >= 0 ? PATTERN_MASS : PATTERN_UNDIVIDED;
}

/* ---------------------------------------------------------------- blocks */

enum { MOST_KEYS = 256 };

/* To starts[]: keys at which r jumps in most rows; their number, key 0
 * included. 0 where it jumps in some rows only: that is no block. */
static int64_t find_blocks(const attn__reading *r, int64_t *starts)
{
    const int64_t keys = r->work->n.len_k;
    int64_t n = 1;

    starts[0] = 0;
    for (int64_t j = 1; j < keys && j < MOST_KEYS; j++) {
        int64_t jumps = 0, rows = 0;

        ATTN__FOR_ROWS(r->work, row) {
            if (!has_weight(r, &row, j) || !has_weight(r, &row, j - 1))
                continue;
            rows++;
            jumps += fabs(ratio(r, &row, j) - ratio(r, &row, j - 1)) >
                     r->close;
        }
        if (jumps > 0 && 2 * jumps < rows)
            return 0;
        if (jumps > 0)
            starts[n++] = j;
    }
    return n;
}

/* The slope of r against the block's log-sum-exp, if it is one number. */
static bool goes_with_lse(const attn__reading *r, const int64_t *starts,
                          int64_t n, double *slope)
{
    range slopes = nowhere;

    ATTN__FOR_ROWS(r->work, row) {
        const double r0 = ratio(r, &row, 0);
        const double lse0 = lse_of(r, &row, 0, starts[1]);

        for (int64_t t = 1; t < n; t++) {
            const int64_t end = t + 1 < n ? starts[t + 1] : r->work->n.len_k;
            const double d = lse_of(r, &row, starts[t], end) - lse0;

            if (!has_weight(r, &row, 0) || !has_weight(r, &row, starts[t]) ||
                fabs(d) < 0.05)
                continue;
            include(&slopes, (ratio(r, &row, starts[t]) - r0) / d);
        }
    }
    *slope = slopes.high;
    return is_one(&slopes, 1e-3);
}

static attn__pattern pattern_of_blocks(attn__exam *exam,
                                       const attn__reading *r,
                                       const char **evidence)
{
    const int64_t keys = r->work->n.len_k;
    int64_t starts[MOST_KEYS];
    const int64_t n = find_blocks(r, starts);
    const char *text = "";
    double slope;

    if (n < 2 || 2 * n > keys || keys > MOST_KEYS || !are_weights(r))
        return PATTERN_NONE;
    for (int64_t t = 1; t < n && t < 6; t++)
        text = attn__arena_text(&exam->report->arena, "%s%s%lld", text,
                                t > 1 ? ", " : "", (long long)starts[t]);
    *evidence = attn__arena_text(
        &exam->report->arena,
        "within blocks of keys the weights are right among themselves; "
        "blocks begin at key 0, %s of %lld",
        text, (long long)keys);
    if (!goes_with_lse(r, starts, n, &slope))
        return PATTERN_MERGE;
    *evidence = attn__arena_text(
        &exam->report->arena, "%s; a block has the weight exp(%.3g lse)",
        *evidence, slope + 1);
    return PATTERN_MERGE_LSE;
}

/* ------------------------------------------------------------- visibility */

/* Where j - p of a pair lies for keys that should be hidden and are not, and
 * the reverse. */
static void say_visible(attn__exam *exam, const attn__reading *r,
                        const char **evidence)
{
    int64_t extra = 0, missing = 0, ahead = 0;
    range off = nowhere;

    ATTN__FOR_ROWS(r->work, row) {
        for (int64_t j = 0; j < r->work->n.len_k; j++) {
            const bool weighs = p_at(r, &row, j) > 0;

            if (weighs == sees(r, &row, j))
                continue;
            *(weighs ? &extra : &missing) += 1;
            ahead += weighs && j > row.position;
            include(&off, (double)(j - row.position));
        }
    }
    *evidence = attn__arena_text(
        &exam->report->arena,
        "it is a softmax over other keys: %lld pairs too many (%lld of them "
        "in the future), %lld too few, at j - p from %g to %g",
        (long long)extra, (long long)ahead, (long long)missing, off.low,
        off.high);
}

/* One r per row over all that has weight, which is not what should have. */
static bool is_softmax_elsewhere(const attn__reading *r)
{
    bool differs = false;

    ATTN__FOR_ROWS(r->work, row) {
        range own = nowhere;

        for (int64_t j = 0; j < r->work->n.len_k; j++) {
            differs |= (p_at(r, &row, j) > 0) != sees(r, &row, j) &&
                       s_at(r, &row, j) > -20;
            if (has_weight(r, &row, j))
                include(&own, ratio(r, &row, j));
        }
        if (own.low <= own.high && !is_one(&own, r->close))
            return false;
        if (!(fabs(sum_of(r, &row) - 1) < r->close) && sum_of(r, &row) != 0)
            return false;
    }
    return differs;
}

/* Hidden pairs weigh as if their score were one number, or their own less
 * one number. */
static bool is_fill(attn__exam *exam, const attn__reading *r,
                    const char **evidence)
{
    range fill = nowhere, shift = nowhere;

    ATTN__FOR_ROWS(r->work, row) {
        range own = nowhere;

        for (int64_t j = 0; j < r->work->n.len_k; j++) {
            if (sees(r, &row, j) && has_weight(r, &row, j))
                include(&own, ratio(r, &row, j));
        }
        if (own.low <= own.high && !is_one(&own, r->close))
            return false;
        for (int64_t j = 0; own.low <= own.high && j < r->work->n.len_k;
             j++) {
            if (sees(r, &row, j) || !has_weight(r, &row, j))
                continue;
            include(&fill, log(p_at(r, &row, j)) - own.low);
            include(&shift, ratio(r, &row, j) - own.low);
        }
    }
    if (is_one(&fill, 1e-4))
        *evidence = attn__arena_text(&exam->report->arena,
                                     "hidden pairs weigh as with a score of "
                                     "%.6g",
                                     fill.high);
    else if (is_one(&shift, 1e-4))
        *evidence = attn__arena_text(&exam->report->arena,
                                     "hidden pairs weigh as with their score "
                                     "%+.6g",
                                     shift.high);
    else
        return false;
    return true;
}

/* ------------------------------------------------------- scale, distance */

/* ln(P_ij / P_i0) over q_i (k_j - k_0), if it is one number; NAN. */
static double fitted_scale(const attn__reading *r)
{
    range slopes = nowhere;
    const int64_t dim = r->work->n.dim_qk;

    ATTN__FOR_ROWS(r->work, row) {
        const double *q = attn__query(r->work, &row);
        const double base = attn__dot(q, attn__key(r->work, &row, 0), dim);

        for (int64_t j = 1; j < r->work->n.len_k; j++) {
            const double d =
                attn__dot(q, attn__key(r->work, &row, j), dim) - base;

            if (fabs(d) < 0.5 || !has_weight(r, &row, j) ||
                !has_weight(r, &row, 0))
                continue;
            include(&slopes,
                    log(p_at(r, &row, j) / p_at(r, &row, 0)) / d);
        }
    }
    return is_one(&slopes, 1e-4 * fabs(slopes.high)) ? slopes.high : NAN;
}

static bool is_other_scale(attn__exam *exam, const attn__reading *r,
                           const char **evidence)
{
    const double scale = fitted_scale(r);
    const double right = r->work->scale;

    if (!isfinite(scale) || !rows_sum_to_one(r) ||
        fabs(scale / right - 1) < 1e-4)
        return false;
    if (fabs(scale / right / log(2) - 1) < 1e-6) {
        *evidence = "they are powers of 2: the scores lack the factor log2(e)";
        return true;
    }
    *evidence = attn__arena_text(
        &exam->report->arena,
        "the weights fit a scale of %.9g, that is %.6g times the right one "
        "(head_dim is %lld)",
        scale, scale / right, (long long)r->work->n.dim_qk);
    return true;
}

/* r goes up and down with the distance alone, head by head. */
static bool goes_with_distance(const attn__reading *r)
{
    enum { MOST = 2 * MOST_KEYS };
    const attn__sizes *n = &r->work->n;
    bool bends = false;

    for (int64_t h = 0; h < n->heads_q && n->len_k < MOST_KEYS; h++) {
        double step[MOST];

        for (int x = 0; x < MOST; x++)
            step[x] = NAN;
        ATTN__FOR_ROWS(r->work, row) {
            for (int64_t j = 1; row.h == h && j < n->len_k; j++) {
                const int64_t at = j - row.i + n->len_q;
                double d;

                if (at < 0 || at >= MOST || !has_weight(r, &row, j) ||
                    !has_weight(r, &row, j - 1))
                    continue;
                d = ratio(r, &row, j) - ratio(r, &row, j - 1);
                if (isnan(step[at]))
                    step[at] = d;
                if (fabs(step[at] - d) > r->close)
                    return false;
                bends |= fabs(d) > 100 * r->close;
            }
        }
    }
    return bends;
}

/* ------------------------------------------------------------------ heads */

static void map_all_to(attn__work *w, double head)
{
    for (int64_t h = 0; h < w->n.heads_q; h++)
        w->kv_head[h] = (int64_t)head;
}

/* To map[]: the KV head with which each query head is right; false if some
 * is right with none. */
static bool find_map(attn__exam *exam, const attn__attempt *a,
                     const attn__reading *r, int64_t *map)
{
    const attn__sizes *n = &r->question->n;
    attn__work *w = &exam->work;
    attn__model right;

    for (int64_t h = 0; h < n->heads_q; h++)
        map[h] = -1;
    for (int64_t g = 0; g < n->heads_kv; g++) {
        attn__model model;

        attn__model_init(&model);
        model.step[SLOT_MAP] = map_all_to;
        model.param[SLOT_MAP] = (double)g;
        attn__predict(w, &model, &a->meaning, r->question);
        for (int64_t h = 0; h < n->heads_q; h++) {
            bool met = true;

            ATTN__FOR_ROWS(w, row) {
                for (int64_t j = 0; row.h == h && j < n->len_k; j++)
                    met &= fabs(row.p[j] - p_at(r, &row, j)) <= r->close;
            }
            map[h] = met && map[h] < 0 ? g : map[h];
        }
    }
    attn__model_init(&right);
    attn__predict(w, &right, &a->meaning, r->question); /* as it was */
    for (int64_t h = 0; h < n->heads_q; h++) {
        if (map[h] < 0)
            return false;
    }
    return true;
}

static bool is_map(attn__exam *exam, const attn__attempt *a,
                   const attn__reading *r, const char **evidence)
{
    const attn__sizes *n = &r->question->n;
    const char *text = "";
    int64_t map[64];

    if (n->heads_kv < 2 || n->heads_q > 64 || !find_map(exam, a, r, map))
        return false;
    for (int64_t h = 0; h < n->heads_q; h++)
        text = attn__arena_text(&exam->report->arena, "%s%s%lld", text,
                                h ? ", " : "", (long long)map[h]);
    *evidence = attn__arena_text(&exam->report->arena,
                                 "the query heads use the KV heads %s", text);
    return true;
}

/* -------------------------------------------------------------------- all */

attn__pattern attn__pattern_of(attn__exam *exam, attn__attempt *a,
                               const attn__reading *r, const char **evidence)
{
    attn__pattern found = PATTERN_NONE;

    *evidence = "";
    if (is_right(r))
        return PATTERN_RIGHT;
    if (is_dropout(exam, r, evidence))
        return PATTERN_DROPOUT;
    if (is_map(exam, a, r, evidence))
        return PATTERN_MAP;
    found = pattern_of_rows(exam, r, evidence);
    if (found == PATTERN_NONE)
        found = pattern_of_sums(r);
    if (found != PATTERN_NONE)
        return found;
    if (is_softmax_elsewhere(r)) {
        say_visible(exam, r, evidence);
        return PATTERN_VISIBLE;
    }
    if (is_fill(exam, r, evidence))
        return PATTERN_FILL;
    if (is_other_scale(exam, r, evidence))
        return PATTERN_SCALE;
    found = pattern_of_blocks(exam, r, evidence);
    if (found == PATTERN_NONE && are_weights(r) && goes_with_distance(r))
        found = PATTERN_DISTANCE;
    return found;
}
