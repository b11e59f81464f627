/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong steps from scores to weights: axes, missing or double softmax, what
 * joins the sum, online softmax. */
#include <math.h>
#include <string.h>

#include "doctor/wrong.h"

static double larger(double x, double y)
{
    return x > y ? x : y;
}

/* -------------------------------------------------------- which elements */

/* The axes over which a wrong softmax normalises: bit x for axis x of
 * (batch, head, query, key). */
enum { BATCH = 1, HEAD = 2, QUERY = 4, KEY = 8 };

static int64_t group_of(const attn__work *w, const attn__pairs *row, int64_t j,
                        int axes)
{
    int64_t at = axes & BATCH ? 0 : row->b;

    at = at * w->n.heads_q + (axes & HEAD ? 0 : row->h);
    at = at * w->n.len_q + (axes & QUERY ? 0 : row->i);
    return at * w->n.len_k + (axes & KEY ? 0 : j);
}

/* p = exp(s - max of its group) / sum of its group, for groups of their own.
 * `dp` and `ds` hold both, by group. */
static void softmax_mixed(attn__work *w, int max_axes, int axes)
{
    const int64_t pairs = attn__count_pairs(&w->n), n = w->n.len_k;
    double *max = w->dp, *sum = w->ds;

    for (int64_t x = 0; x < pairs; x++) {
        max[x] = -INFINITY;
        sum[x] = 0;
    }
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < n; j++) {
            const int64_t g = group_of(w, &row, j, max_axes);

            max[g] = larger(max[g], row.s[j]);
        }
    }
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < n; j++) {
            row.p[j] =
                exp(row.s[j] - max[group_of(w, &row, j, max_axes)]);
            sum[group_of(w, &row, j, axes)] += row.p[j];
        }
    }
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < n; j++)
            row.p[j] /= sum[group_of(w, &row, j, axes)];
    }
}

static void softmax_over(attn__work *w, int axes)
{
    softmax_mixed(w, axes, axes);
}

/* The maximum is that of the row, the sum that of others: param 0 batch, 1
 * heads, 2 queries, 3 queries and keys, 4 all four axes. */
void attn__softmax_mixed(attn__work *w, double param)
{
    static const int axes[] = {BATCH, HEAD, QUERY, QUERY | KEY,
                               BATCH | HEAD | QUERY | KEY};

    softmax_mixed(w, KEY, axes[(int)param]);
}

/* param: the axis, 0 batch, 1 heads, 2 queries. */
void attn__softmax_axis(attn__work *w, double param)
{
    softmax_over(w, 1 << (int)param);
}

/* param: 0 heads x keys, 1 queries x keys, 2 the last three, 3 all four. */
void attn__softmax_joint(attn__work *w, double param)
{
    static const int axes[] = {HEAD | KEY, QUERY | KEY, HEAD | QUERY | KEY,
                               BATCH | HEAD | QUERY | KEY, BATCH | KEY};

    softmax_over(w, axes[(int)param]);
}

/* ------------------------------------------------------- none, or double */

void attn__softmax_twice(attn__work *w, double param)
{
    attn__right_softmax(w, param);
    memcpy(w->s, w->p, (size_t)attn__count_pairs(&w->n) * sizeof *w->s);
    softmax_over(w, KEY);
}

/* p = s; param 0: hidden ones are 0, 1: no claim. */
void attn__softmax_none(attn__work *w, double param)
{
    const int64_t pairs = attn__count_pairs(&w->n);

    for (int64_t x = 0; x < pairs; x++) {
        w->p[x] = w->s[x];
        if (w->s[x] == -INFINITY)
            w->p[x] = param > 0 ? NAN : 0;
    }
}

/* s / sum s, or param 1: exp s, not normalised, 2: sigmoid, 3: exp (s - max),
 * 4: s - lse; of what is hidden that makes no claim. */
void attn__softmax_other(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;

    ATTN__FOR_ROWS(w, row) {
        double sum = 0, max = -INFINITY, all = 0;

        for (int64_t j = 0; j < n; j++) {
            sum += row.s[j] == -INFINITY ? 0 : row.s[j];
            max = larger(max, row.s[j]);
        }
        for (int64_t j = 0; param == 4 && j < n; j++)
            all += exp(row.s[j] - max);
        for (int64_t j = 0; j < n; j++) {
            const double s = row.s[j] == -INFINITY ? 0 : row.s[j];

            row.p[j] = param == 0   ? s / sum
                       : param == 1 ? exp(row.s[j])
                       : param == 2 ? 1 / (1 + exp(-row.s[j]))
                       : param == 3 ? exp(row.s[j] - max)
                       : row.s[j] == -INFINITY
                           ? NAN
                           : row.s[j] - max - log(all);
        }
    }
}

/* The scale comes after the softmax instead of before it. */
void attn__softmax_then_scale(attn__work *w, double param)
{
    const double scale = w->scale;

    if (scale == 0)
        return;
    for (int64_t x = 0; x < attn__count_pairs(&w->n); x++)
        w->s[x] /= scale;
    attn__right_softmax(w, param);
    for (int64_t x = 0; x < attn__count_pairs(&w->n); x++)
        w->p[x] *= scale;
}

/* ------------------------------------------------------ keepdims forgotten */

/* Where a (batch, heads, len_q) array lands that is broadcast from the right
 * onto (batch, heads, len_q, len_k). */
static int64_t shifted(const attn__work *w, const attn__pairs *row, int64_t j)
{
    const attn__sizes *n = &w->n;
    const int64_t b = n->batch == 1 ? 0 : row->h;
    const int64_t h = n->heads_q == 1 ? 0 : row->i;

    return (b * n->heads_q + h) * n->len_q + (n->len_q == 1 ? 0 : j);
}

static bool is_silent(const attn__sizes *n)
{
    return (n->batch == 1 || n->batch == n->heads_q) &&
           (n->heads_q == 1 || n->heads_q == n->len_q) &&
           (n->len_q == 1 || n->len_q == n->len_k);
}

/* param: bit 0, the sum is misplaced; bit 1, the maximum; bit 2, no maximum
 * is taken off, or one for all. */
void attn__softmax_keepdims(attn__work *w, double param)
{
    const int bits = (int)param;
    double *max = w->dp, *sum = w->ds;

    if (!is_silent(&w->n)) {
        attn__right_softmax(w, 0);
        return;
    }
    ATTN__FOR_ROWS(w, row) {
        max[row.index] = -INFINITY;
        for (int64_t j = 0; j < w->n.len_k; j++)
            max[row.index] = larger(max[row.index], row.s[j]);
    }
    ATTN__FOR_ROWS(w, row) {
        sum[row.index] = 0;
        for (int64_t j = 0; j < w->n.len_k; j++) {
            const int64_t at = bits & 2 ? shifted(w, &row, j) : row.index;

            sum[row.index] += row.p[j] =
                exp(row.s[j] - (bits & 4 ? 0 : max[at]));
        }
    }
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.p[j] /= sum[bits & 1 ? shifted(w, &row, j) : row.index];
    }
}

/* ------------------------------------------------- what joins the sum */

static double row_max(const attn__work *w, const attn__pairs *row)
{
    double max = -INFINITY;

    for (int64_t j = 0; j < w->n.len_k; j++)
        max = larger(max, row->s[j]);
    return max;
}

static double log_add(double x, double y)
{
    const double max = larger(x, y);

    return max == -INFINITY ? max : max + log(exp(x - max) + exp(y - max));
}

/* Adds `mass` to what rightly joins. */
static void add_mass(attn__work *w, const attn__pairs *row, double mass)
{
    w->mass[row->index] = log_add(w->mass[row->index], mass);
}

/* e^param beside the keys: softmax-one for 0. */
void attn__mass_constant(attn__work *w, double param)
{
    attn__right_mass(w, 0);
    ATTN__FOR_ROWS(w, row)
        add_mass(w, &row, param);
}

/* param times the largest term, the sink's included: 1 after the maximum was
 * taken off, or eps. */
void attn__mass_of_max(attn__work *w, double param)
{
    attn__right_mass(w, 0);
    ATTN__FOR_ROWS(w, row) {
        const double max = larger(row_max(w, &row), w->mass[row.index]);

        add_mass(w, &row, max + log(param));
    }
}

/* The sink param times over. */
void attn__mass_sink_times(attn__work *w, double param)
{
    attn__right_mass(w, 0);
    ATTN__FOR_ROWS(w, row)
        w->mass[row.index] += log(param);
}

void attn__mass_none(attn__work *w, double param)
{
    (void)param;
    ATTN__FOR_ROWS(w, row)
        w->mass[row.index] = -INFINITY;
}

/* The sink goes through the scale too. */
void attn__mass_sink_scaled(attn__work *w, double param)
{
    (void)param;
    ATTN__FOR_ROWS(w, row)
        w->mass[row.index] =
            w->sinks ? w->scale * w->sinks[row.h] : -INFINITY;
}

/* The sink is not lowered by the maximum as the scores are. */
void attn__mass_sink_unshifted(attn__work *w, double param)
{
    attn__right_mass(w, param);
    ATTN__FOR_ROWS(w, row) {
        const double sink = w->mass[row.index];

        w->mass[row.index] += row_max(w, &row);
        if (sink == -INFINITY)
            w->mass[row.index] = sink;
    }
}

void attn__mass_sink_negative(attn__work *w, double param)
{
    (void)param;
    ATTN__FOR_ROWS(w, row)
        w->mass[row.index] = w->sinks ? -w->sinks[row.h] : -INFINITY;
}

/* A sink of param, whatever was given. */
void attn__mass_sink_is(attn__work *w, double param)
{
    ATTN__FOR_ROWS(w, row)
        w->mass[row.index] = w->sinks ? param : -INFINITY;
}

/* param 1: the sink of the next head, 0: of head 0. */
void attn__mass_sink_next(attn__work *w, double param)
{
    ATTN__FOR_ROWS(w, row) {
        const int64_t h = param > 0 ? (row.h + 1) % w->n.heads_q : 0;

        w->mass[row.index] = w->sinks ? w->sinks[h] : -INFINITY;
    }
}

/* sum exp(s - max) + sink. A sum below 0 makes no claim. */
void attn__mass_sink_log(attn__work *w, double param)
{
    attn__right_mass(w, param);
    ATTN__FOR_ROWS(w, row) {
        const double sink = w->mass[row.index];

        if (sink != -INFINITY)
            w->mass[row.index] = row_max(w, &row) + log(sink);
    }
}

/* Every tile of param keys adds the sink. */
void attn__mass_sink_per_tile(attn__work *w, double param)
{
    const double tiles = ceil((double)w->n.len_k / param);

    attn__right_mass(w, 0);
    ATTN__FOR_ROWS(w, row)
        w->mass[row.index] += log(tiles);
}

/* Keys beyond the last one, up to a whole tile of param, score 0. */
void attn__mass_tail(attn__work *w, double param)
{
    const int64_t tile = (int64_t)param;
    const int64_t extra = (tile - w->n.len_k % tile) % tile;

    attn__right_mass(w, 0);
    ATTN__FOR_ROWS(w, row) {
        if (extra > 0)
            add_mass(w, &row, log((double)extra));
    }
}

/* Like keys that score 0 but for ALiBi, and that causality and windows may
 * hide. */
void attn__mass_tail_placed(attn__work *w, double param)
{
    const int64_t tile = (int64_t)param, n = w->n.len_k;
    const int64_t end = n + (tile - n % tile) % tile;

    attn__right_mass(w, 0);
    ATTN__FOR_ROWS(w, row) {
        const int64_t at = row.i + w->place[row.b] + w->shift[row.i];

        for (int64_t j = n; j < end; j++) {
            const bool late =
                (w->causal != ATTN_CAUSAL_NONE && j > row.position) ||
                (w->window[1] >= 0 && j > at + w->window[1]) ||
                (w->window[0] >= 0 && j < at - w->window[0]);
            const double far = fabs((double)(row.position - j));

            if (!late)
                add_mass(w, &row, w->slopes ? -w->slopes[row.h] * far : 0);
        }
    }
}

/* The same, having gone through the softcap with the mask: they score -cap. */
void attn__mass_tail_capped(attn__work *w, double param)
{
    const int64_t tile = (int64_t)param;
    const int64_t extra = (tile - w->n.len_k % tile) % tile;

    attn__right_mass(w, 0);
    ATTN__FOR_ROWS(w, row) {
        if (extra > 0 && w->softcap > 0)
            add_mass(w, &row, log((double)extra) - w->softcap);
    }
}

/* The last key stands there as often as it takes to fill a tile of param. */
void attn__softmax_tail_copied(attn__work *w, double param)
{
    const int64_t tile = (int64_t)param;
    const int64_t extra = (tile - w->n.len_k % tile) % tile;

    ATTN__FOR_ROWS(w, row)
        row.s[w->n.len_k - 1] += log((double)(1 + extra));
    attn__right_softmax(w, 0);
}

/* ---------------------------------------------------------------- online */

/* What an online softmax over tiles forgets to rescale. */
enum { ACC = 1, SUM = 2, LOCAL = 4 };

/* To then[0..n): the maximum that each key's term was taken off: of all keys
 * up to the end of its tile or, LOCAL, of its tile alone. Returns that of
 * all. */
static double running_max(const double *s, int64_t n, int64_t tile, bool local,
                          double *then)
{
    double all = -INFINITY;

    for (int64_t first = 0; first < n; first += tile) {
        const int64_t end = first + tile < n ? first + tile : n;
        double max = local ? -INFINITY : all;

        for (int64_t j = first; j < end; j++)
            max = larger(max, s[j]);
        for (int64_t j = first; j < end; j++)
            then[j] = max;
        all = larger(all, max);
    }
    return all;
}

static double term(double s, double max)
{
    return s == -INFINITY ? 0 : exp(s - max);
}

static void online(attn__work *w, int64_t tile, int forgets)
{
    const int64_t n = w->n.len_k;
    double *then = w->spare;

    ATTN__FOR_ROWS(w, row) {
        const double last =
            running_max(row.s, n, tile, forgets & LOCAL, then);
        double sum = 0;

        for (int64_t j = 0; j < n; j++) {
            sum += term(row.s[j], forgets & SUM ? then[j] : last);
            row.p[j] = term(row.s[j], forgets & ACC ? then[j] : last);
        }
        for (int64_t j = 0; j < n; j++)
            row.p[j] /= sum;
    }
}

void attn__online_acc(attn__work *w, double param)
{
    online(w, (int64_t)param, ACC);
}

void attn__online_sum(attn__work *w, double param)
{
    online(w, (int64_t)param, SUM);
}

void attn__online_neither(attn__work *w, double param)
{
    online(w, (int64_t)param, ACC | SUM);
}

/* exp(new - old) where exp(old - new) is right: each earlier term is off by
 * the square of that. */
void attn__online_inverse(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;
    double *then = w->spare;

    ATTN__FOR_ROWS(w, row) {
        const double last =
            running_max(row.s, n, (int64_t)param, false, then);
        double sum = 0;

        for (int64_t j = 0; j < n; j++)
            sum += row.p[j] = term(row.s[j], 2 * then[j] - last);
        for (int64_t j = 0; j < n; j++)
            row.p[j] /= sum;
    }
}

void attn__online_local(attn__work *w, double param)
{
    online(w, (int64_t)param, ACC | SUM | LOCAL);
}

/* --------------------------------------------------------------- weights */

/* The weight of the sink goes to the first value (param 0), to the last one
 * (1), or to all by their own (2). */
void attn__output_sink(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;

    ATTN__FOR_ROWS(w, row) {
        double left = 1;

        for (int64_t j = 0; j < n; j++)
            left -= row.p[j];
        if (!w->sinks)
            break;
        if (param < 2)
            row.p[param > 0 ? n - 1 : 0] += left;
        for (int64_t j = 0; param == 2 && j < n; j++)
            row.p[j] /= 1 - left;
    }
    attn__right_output(w, 0);
}

/* o aggregated over queries: p transposed. */
void attn__weigh_transposed(attn__work *w, double param)
{
    const int64_t n = w->n.len_k;

    attn__right_weigh(w, param);
    if (w->n.len_q != n)
        return;
    memcpy(w->spare, w->p, (size_t)attn__count_pairs(&w->n) * sizeof *w->p);
    ATTN__FOR_ROWS(w, row) {
        const double *p = w->spare + (row.index - row.i) * n;

        for (int64_t j = 0; j < n; j++)
            row.p[j] = p[j * n + row.i];
    }
}
