/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference in double against the same sources in long double, element by
 * element, within bounds that follow from the operations. With u = 2^-53,
 * d = D, n = Lk and per row S = the largest sum of the sizes that make a score
 * (|scale| sum |q||k|, |bias|, |alibi|), to first order in u:
 *
 *   s      (d + 4) S u          d products and sums, scale, softcap, 2 adds
 *   p      E p, E = (4 (d + 4) S + 2 n + 16) u     exp of s - m, sum, division
 *   lse    ((d + 5) S + n + 8 + 2 |lse|) u
 *   o      (E + (n + 4) u) sum p f |v|
 *   dp     (dv + 3) u R         R_i = max over visible j of f sum |d_o||v|
 *   ds     C p (2 R + |dlse|),  C = 3 E + (2 dv + n + 16) u
 *   dr     adds (4 + 2 (d + 4) S / softcap) u p (2 R + |dlse|) with a softcap
 *   dq dk dbias dslopes         sums of N such terms: (C + cap + (N + 4) u)
 *                               sum p (2 R + |dlse|) |factor|
 *   dv     (E + (N + 4) u) sum p f |d_o|
 *   dsinks (C + lse's bound + (N + 4) u) sum p_sink (2 R + |dlse|)
 *
 * E counts s twice (in s and in what is subtracted), C counts p in ds, in
 * delta and in dp. A bound that nothing can break shows nothing: the same
 * arithmetic with one score rounded to float has to break each. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ref_run.h"
#include "ref_table.h"
#include "unit.h"

#define SEED UINT64_C(141421356)

static const long double u = DBL_EPSILON / 2;

/* ---------------------------------------------------------------- bounds */

typedef struct bounds {
    long double *weights, *lse, *o, *entropy;
    long double *dq, *dk, *dv, *dbias, *dslopes, *dsinks;
} bounds;

/* Row quantities of the case, all in long double. */
typedef struct row_sizes {
    int64_t r, b, h, i, key; /* key: row of k and v that is its key 0 */
    long double score;       /* S */
    long double error_p;     /* E */
    long double error_lse;
    long double gain;     /* 2 R + |dlse| */
    long double error_ds; /* C + cap */
} row_sizes;

static long double absolute_dot(const double *x, const double *y, int64_t n)
{
    long double sum = 0;

    for (int64_t c = 0; c < n; c++)
        sum += fabsl((long double)x[c] * y[c]);
    return sum;
}

static int64_t at(const int64_t *stride, const row_sizes *row, int64_t j)
{
    return row->b * stride[0] + row->h * stride[1] + row->i * stride[2] +
           j * stride[3];
}

static long double slope_at(const ref_case *c, const row_sizes *row)
{
    return c->slopes ? c->slopes[row->b * c->slopes_stride[0] +
                                 row->h * c->slopes_stride[1]]
                     : 0;
}

static long double distance(const ref_case *c, const row_sizes *row, int64_t j)
{
    return fabsl((long double)(row->i + c->q_offset[row->b] - j));
}

static long double score_size(const ref_case *c, const row_sizes *row,
                              int64_t j)
{
    const int64_t d = c->f.dim_qk;
    long double size =
        fabsl(c->scale) *
        absolute_dot(c->q + row->r * d, c->k + (row->key + j) * d, d);

    if (c->bias)
        size += fabsl(c->bias[at(c->bias_stride, row, j)]);
    return size + fabsl(slope_at(c, row)) * distance(c, row, j);
}

static long double factor(const ref_case *c, int64_t pair)
{
    return c->dropout ? c->dropout[pair] : 1;
}

static row_sizes sizes_of(const ref_case *c, const ref_outputs *wide, int64_t r)
{
    const ref_features *f = &c->f;
    const long double d = (long double)f->dim_qk, n = (long double)f->len_k;
    row_sizes row = {.r = r, .i = r % f->len_q};
    long double most = 0, cap = 0;

    row.h = r / f->len_q % f->heads_q;
    row.b = r / f->len_q / f->heads_q;
    row.key =
        (row.b * f->heads_kv + row.h / (f->heads_q / f->heads_kv)) * f->len_k;
    for (int64_t j = 0; j < f->len_k; j++) {
        const int64_t pair = r * f->len_k + j;

        if (!wide->visible[pair])
            continue;
        row.score = fmaxl(row.score, score_size(c, &row, j));
        most = fmaxl(most, factor(c, pair) *
                               absolute_dot(c->d_o + r * f->dim_v,
                                            c->v + (row.key + j) * f->dim_v,
                                            f->dim_v));
    }
    if (c->sinks)
        row.score = fmaxl(row.score, fabsl(c->sinks[row.h]));
    row.gain = 2 * most + (c->dlse ? fabsl(c->dlse[r]) : 0);
    row.error_p = (4 * (d + 4) * row.score + 2 * n + 16) * u;
    row.error_lse = ((d + 5) * row.score + n + 8) * u;
    if (isfinite(wide->lse[r]))
        row.error_lse += 2 * fabsl(wide->lse[r]) * u;
    if (f->softcap > 0)
        cap = (4 + 2 * (d + 4) * row.score / f->softcap) * u;
    row.error_ds =
        3 * row.error_p + (2 * (long double)f->dim_v + n + 16) * u + cap;
    return row;
}

static void bound_row(const ref_case *c, const ref_outputs *wide,
                      const row_sizes *row, bounds *b)
{
    const int64_t r = row->r, n = c->f.len_k;

    b->lse[r] = row->error_lse;
    for (int64_t j = 0; j < n; j++)
        b->weights[r * n + j] = row->error_p * wide->weights[r * n + j];
    for (int64_t j = 0; j < n; j++) { /* d(p ln p) = (ln p + 1) dp */
        const long double p = wide->weights[r * n + j];
        if (p > 0)
            b->entropy[r] += (row->error_p + (long double)(n + 4) * u) * p *
                             (1 + 2 * fabsl(logl(p)));
    }
    if (b->dsinks)
        b->dsinks[row->h] +=
            (row->error_ds + row->error_lse + (long double)(c->rows + 4) * u) *
            expl(c->sinks[row->h] - wide->lse[r]) * row->gain;
}

/* What the pair (row, j) adds to the bounds of sums. */
static void bound_pair(const ref_case *c, const ref_outputs *wide,
                       const row_sizes *row, int64_t j, bounds *b)
{
    const ref_features *f = &c->f;
    const int64_t pair = row->r * f->len_k + j, key = row->key + j;
    const long double terms = (long double)(c->pairs + 4) * u;
    const long double p = wide->weights[pair];
    const long double pf = p * factor(c, pair) * (row->error_p + terms);
    const long double ds = p * row->gain * (row->error_ds + terms);

    for (int64_t x = 0; x < f->dim_v; x++) {
        b->o[row->r * f->dim_v + x] += pf * fabsl(c->v[key * f->dim_v + x]);
        b->dv[key * f->dim_v + x] += pf * fabsl(c->d_o[row->r * f->dim_v + x]);
    }
    for (int64_t x = 0; x < f->dim_qk; x++) {
        const long double each = fabsl(c->scale) * ds;
        b->dq[row->r * f->dim_qk + x] +=
            each * fabsl(c->k[key * f->dim_qk + x]);
        b->dk[key * f->dim_qk + x] +=
            each * fabsl(c->q[row->r * f->dim_qk + x]);
    }
    if (b->dbias)
        b->dbias[at(c->bias_stride, row, j)] += ds;
    if (b->dslopes)
        b->dslopes[row->b * c->slopes_stride[0] +
                   row->h * c->slopes_stride[1]] += ds * distance(c, row, j);
}

static long double *zeros(int64_t n)
{
    long double *x = calloc((size_t)n + 1, sizeof *x);

    assert_non_null(x);
    return x;
}

static bounds bounds_of(const ref_case *c, const ref_outputs *wide)
{
    bounds b = {.weights = zeros(c->pairs),
                .lse = zeros(c->rows),
                .entropy = zeros(c->rows),
                .o = zeros(c->n_o),
                .dq = zeros(c->n_q),
                .dk = zeros(c->n_k),
                .dv = zeros(c->n_v),
                .dbias = c->bias ? zeros(c->n_bias) : NULL,
                .dslopes = c->slopes ? zeros(c->n_slopes) : NULL,
                .dsinks = c->sinks ? zeros(c->f.heads_q) : NULL};

    for (int64_t r = 0; r < c->rows; r++) {
        const row_sizes row = sizes_of(c, wide, r);

        bound_row(c, wide, &row, &b);
        for (int64_t j = 0; j < c->f.len_k; j++) {
            if (wide->visible[r * c->f.len_k + j])
                bound_pair(c, wide, &row, j, &b);
        }
    }
    return b;
}

static void close_bounds(bounds *b)
{
    long double *owned[] = {b->weights, b->lse,   b->entropy, b->o,
                            b->dq,      b->dk,    b->dv,      b->dbias,
                            b->dslopes, b->dsinks};

    for (size_t n = 0; n < COUNT(owned); n++)
        free(owned[n]);
}

/* ----------------------------------------------------------- comparison */

typedef struct check {
    const char *name;
    const long double *got, *wide, *bound;
    int64_t n;
} check;

enum { CHECKS = 10 };

static void list_checks(const ref_case *c, const ref_outputs *got,
                        const ref_outputs *wide, const bounds *b, check *list)
{
    const check all[CHECKS] = {
        {"weights", got->weights, wide->weights, b->weights, c->pairs},
        {"lse", got->lse, wide->lse, b->lse, c->rows},
        {"entropy", got->entropy, wide->entropy, b->entropy, c->rows},
        {"o", got->o, wide->o, b->o, c->n_o},
        {"dq", got->dq, wide->dq, b->dq, c->n_q},
        {"dk", got->dk, wide->dk, b->dk, c->n_k},
        {"dv", got->dv, wide->dv, b->dv, c->n_v},
        {"dbias", got->dbias, wide->dbias, b->dbias, c->bias ? c->n_bias : 0},
        {"dslopes", got->dslopes, wide->dslopes, b->dslopes,
         c->slopes ? c->n_slopes : 0},
        {"dsinks", got->dsinks, wide->dsinks, b->dsinks,
         c->sinks ? c->f.heads_q : 0},
    };

    for (int k = 0; k < CHECKS; k++)
        list[k] = all[k];
}

/* The largest error in units of its bound; an infinity must be the same. */
static long double worst(const check *k)
{
    long double most = 0;

    for (int64_t n = 0; n < k->n; n++) {
        const long double error = fabsl(k->got[n] - k->wide[n]);

        if (k->got[n] == k->wide[n])
            continue;
        if (!(error <= k->bound[n]) && k->bound[n] == 0)
            return INFINITY;
        most = error / k->bound[n] > most ? error / k->bound[n] : most;
        if (isnan(error))
            return INFINITY;
    }
    return most;
}

/* Scores as if once held in a float. */
static void scores_through_float(const attn_ref_problem *problem,
                                 attn_stage stage, const double *q,
                                 const double *k, double *s)
{
    const int64_t n =
        problem->batch * problem->heads_q * problem->len_q * problem->len_k;

    attn_ref_scores(problem, stage, q, k, s);
    for (int64_t x = 0; x < n; x++)
        s[x] = (double)(float)s[x];
}

static void compare(const attn_ref_stages *stages, uint64_t seed,
                    long double *most)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_case c = ref_case_open(&ref_table[n], seed + n);
        ref_inputs in = ref_inputs_open(&c);
        ref_outputs got = ref_run_with(stages, &c, &in);
        ref_outputs wide = ref_run_wide(&c);
        bounds b = bounds_of(&c, &wide);
        check list[CHECKS];

        list_checks(&c, &got, &wide, &b, list);
        for (int k = 0; k < CHECKS; k++) {
            const long double ratio = worst(&list[k]);

            if (!stages && !(ratio <= 1))
                fail_msg("%s: %s is off by %Lg bounds", c.f.name, list[k].name,
                         ratio);
            most[k] = ratio > most[k] ? ratio : most[k];
        }
        close_bounds(&b);
        ref_outputs_close(&got);
        ref_outputs_close(&wide);
        ref_inputs_close(&in);
        ref_case_close(&c);
    }
}

UNIT(double_is_within_its_bounds_of_long_double)
{
    long double most[CHECKS] = {0};

    if (LDBL_MANT_DIG <= DBL_MANT_DIG)
        skip(); /* long double is double here */
    for (uint64_t round = 0; round < 10; round++)
        compare(NULL, SEED + 1000 * round, most);
    for (int k = 0; k < CHECKS; k++) {
        print_message("largest error %d: %.3Lg bounds\n", k, most[k]);
        /* A bound a thousand times too wide would show nothing. */
        assert_true(most[k] > 1e-3L);
    }
}

UNIT(a_score_rounded_to_float_breaks_every_bound)
{
    long double most[CHECKS] = {0};
    attn_ref_stages stages;

    attn_ref_stages_init(&stages);
    stages.scores = scores_through_float;
    compare(&stages, SEED, most);
    for (int k = 0; k < CHECKS; k++) {
        /* dv, dq, ... all move: p changed by 2^-24 of the score. */
        assert_true(most[k] > 1);
    }
}

UNIT(visibility_is_the_same_in_both)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_case c = ref_case_open(&ref_table[n], SEED);
        ref_outputs got = ref_run(&c), wide = ref_run_wide(&c);

        assert_memory_equal(got.visible, wide.visible, (size_t)c.pairs);
        ref_outputs_close(&got);
        ref_outputs_close(&wide);
        ref_case_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double_is_within_its_bounds_of_long_double),
        cmocka_unit_test(a_score_rounded_to_float_breaks_every_bound),
        cmocka_unit_test(visibility_is_the_same_in_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
