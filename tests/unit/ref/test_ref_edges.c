/* SPDX-License-Identifier: Apache-2.0
 *
 * The edges: rows that see nothing, sinks and scores that are infinite, sizes
 * that are 0, and what the helpers give for each. Expected values follow from
 * the formula by hand. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_ref.h"
#include "core/philox.h"
#include "unit.h"

/* One query, two keys, D = 1, Dv = 1: small enough to do by hand. */
typedef struct small {
    attn_ref_problem problem;
    double q[1], k[2], v[2], d_o[1];
    double o[1], lse[1], entropy[1], weights[2], biased[2];
    double dq[1], dk[2], dv[2], dsinks[1];
    unsigned char visible[2];
} small;

static small two_keys(double s0, double s1)
{
    small s = {.q = {1}, .k = {s0, s1}, .v = {3, 7}, .d_o = {1}};

    attn_ref_problem_init(&s.problem, 1, 1, 1, 1, 2, 1, 1);
    return s;
}

static void run(small *s)
{
    const attn_ref_results results = {.o = s->o,
                                      .lse = s->lse,
                                      .entropy = s->entropy,
                                      .weights = s->weights,
                                      .biased = s->biased,
                                      .visible = s->visible};
    const attn_ref_gradients gradients = {.dq = s->dq,
                                          .dk = s->dk,
                                          .dv = s->dv,
                                          .dsinks = s->problem.sinks ? s->dsinks
                                                                     : NULL};

    assert_int_equal(
        attn_ref_forward(NULL, &s->problem, s->q, s->k, s->v, &results),
        ATTN_OK);
    if (s->problem.empty_rows == ATTN_EMPTY_NAN)
        return;
    assert_int_equal(attn_ref_backward(NULL, &s->problem, s->q, s->k, s->v,
                                       s->d_o, NULL, &gradients),
                     ATTN_OK);
}

static void expect_empty(const small *s)
{
    assert_true(s->o[0] == 0 && s->entropy[0] == 0);
    assert_true(s->weights[0] == 0 && s->weights[1] == 0);
    assert_true(s->lse[0] == -INFINITY);
    assert_true(s->dq[0] == 0 && s->dk[0] == 0 && s->dv[1] == 0);
}

static void expect_nan(const small *s)
{
    assert_true(isnan(s->o[0]) && isnan(s->lse[0]) && isnan(s->entropy[0]));
    assert_true(isnan(s->weights[0]) && isnan(s->weights[1]));
}

/* ------------------------------------------------------------- empty rows */

UNIT(an_empty_row_is_zero_or_nan_as_asked)
{
    static const unsigned char none[2] = {0, 0};
    small s = two_keys(1, 2);

    s.problem.mask = none;
    s.problem.mask_stride[3] = 1;
    run(&s);
    expect_empty(&s);
    s.problem.empty_rows = ATTN_EMPTY_NAN;
    run(&s);
    expect_nan(&s);
    assert_int_equal(attn_ref_backward(NULL, &s.problem, s.q, s.k, s.v, s.d_o,
                                       NULL, &(attn_ref_gradients){0}),
                     ATTN_E_UNSUPPORTED);
}

UNIT(a_score_of_minus_infinity_hides_its_key)
{
    small s = two_keys(-INFINITY, 0.5);

    s.v[0] = NAN;
    run(&s);
    assert_true(s.visible[0] == 0 && s.visible[1] == 1);
    assert_true(s.o[0] == 7 && s.weights[0] == 0 && s.weights[1] == 1);
    assert_true(s.lse[0] == 0.5 && s.entropy[0] == 0);
    assert_true(s.dk[0] == 0 && s.dv[0] == 0 && s.dv[1] == 1);
    s = two_keys(-INFINITY, -INFINITY);
    run(&s);
    expect_empty(&s);
}

UNIT(a_score_of_plus_infinity_or_nan_makes_the_row_nan)
{
    small s = two_keys(INFINITY, 0.5);

    run(&s);
    expect_nan(&s);
    s = two_keys(NAN, 0.5);
    run(&s);
    expect_nan(&s);
    s = two_keys(NAN, -INFINITY); /* NaN is not -inf */
    run(&s);
    assert_true(isnan(s.o[0]) && isnan(s.lse[0]) && s.weights[1] == 0);
    s = two_keys(INFINITY, -INFINITY); /* but a softcap makes both finite */
    s.problem.softcap = 2;
    run(&s);
    assert_true(s.visible[0] && s.visible[1] && isfinite(s.o[0]));
    assert_true(fabs(s.lse[0] - log(exp(2) + exp(-2))) <= 4 * DBL_EPSILON);
}

UNIT(a_bias_of_minus_infinity_hides_even_a_nan_score)
{
    double bias[2] = {-INFINITY, 0.25};
    small s = two_keys(NAN, 0.5);

    s.problem.bias = bias;
    s.problem.bias_stride[3] = 1;
    run(&s);
    assert_true(s.o[0] == 7 && s.lse[0] == 0.75);
    assert_true(s.biased[0] == -INFINITY && s.biased[1] == 0.75);
    bias[0] = -DBL_MAX; /* a finite minimum is no mask: it is seen, at 0 */
    s = two_keys(0.5, 0.5);
    s.problem.bias = bias;
    s.problem.bias_stride[3] = 1;
    run(&s);
    assert_true(s.visible[0] && s.weights[0] == 0 && s.o[0] == 7);
}

/* A weight that underflows still multiplies its value. */
UNIT(a_nan_value_under_a_vanishing_weight_shows)
{
    small s = two_keys(-1e6, 0);

    s.v[0] = NAN;
    run(&s);
    assert_true(s.weights[0] == 0 && isnan(s.o[0]));
}

/* ------------------------------------------------------------------ sinks */

UNIT(a_sink_takes_its_share)
{
    double sink[1] = {1};
    small s = two_keys(1, 1);

    s.problem.sinks = sink;
    run(&s); /* three equal logits */
    assert_true(fabs(s.weights[0] - 1.0 / 3) <= DBL_EPSILON);
    assert_true(fabs(s.o[0] - 10.0 / 3) <= 8 * DBL_EPSILON);
    assert_true(fabs(s.lse[0] - (1 + log(3))) <= 4 * DBL_EPSILON);
    /* - p_sink delta, delta = o d_o */
    assert_true(fabs(s.dsinks[0] + 10.0 / 9) <= 8 * DBL_EPSILON);
}

UNIT(with_a_sink_no_row_is_empty)
{
    static const unsigned char none[2] = {0, 0};
    double sink[1] = {1.5};
    small s = two_keys(1, 1);

    s.problem.sinks = sink;
    s.problem.mask = none;
    s.problem.empty_rows = ATTN_EMPTY_NAN; /* has nothing to say here */
    run(&s);
    assert_true(s.o[0] == 0 && s.lse[0] == 1.5 && s.entropy[0] == 0);
    assert_true(s.weights[0] == 0 && s.weights[1] == 0);
}

UNIT(a_sink_of_minus_infinity_is_none)
{
    static const unsigned char none[2] = {0, 0};
    double sink[1] = {-INFINITY};
    small with = two_keys(1, 2), without = two_keys(1, 2);

    with.problem.sinks = sink;
    run(&with);
    run(&without);
    assert_true(with.o[0] == without.o[0] && with.lse[0] == without.lse[0]);
    assert_true(with.dq[0] == without.dq[0] && with.dsinks[0] == 0);
    with.problem.mask = none;
    run(&with);
    expect_empty(&with);
    assert_true(with.dsinks[0] == 0);
    with.problem.empty_rows = ATTN_EMPTY_NAN;
    run(&with);
    expect_nan(&with);
}

/* inf - inf in the formula. */
UNIT(a_sink_of_plus_infinity_makes_the_row_nan)
{
    static const unsigned char none[2] = {0, 0};
    double sink[1] = {INFINITY};
    small s = two_keys(1, 2);

    s.problem.sinks = sink;
    run(&s);
    expect_nan(&s);
    s.problem.mask = none; /* also where there is nothing else */
    run(&s);
    assert_true(isnan(s.o[0]) && isnan(s.lse[0]));
    assert_true(s.weights[0] == 0 && s.weights[1] == 0 && s.entropy[0] == 0);
}

/* ------------------------------------------------------- scale and sizes */

UNIT(without_dimensions_every_score_is_zero)
{
    attn_ref_problem p;
    double v[3] = {1, 2, 6}, o[1], lse[1], raw[3];
    const attn_ref_results results = {.o = o, .lse = lse, .raw = raw};

    attn_ref_problem_init(&p, 1, 1, 1, 1, 3, 0, 1);
    assert_true(p.scale == 1);
    p.scale = INFINITY; /* no 0 * inf */
    assert_int_equal(attn_ref_forward(NULL, &p, v, v, v, &results), ATTN_OK);
    assert_true(raw[0] == 0 && raw[1] == 0 && raw[2] == 0);
    assert_true(fabs(o[0] - 3) <= 4 * DBL_EPSILON);
    assert_true(fabs(lse[0] - log(3)) <= 2 * DBL_EPSILON);
}

UNIT(scale_may_be_zero_or_negative)
{
    small s = two_keys(5, -5);

    s.problem.scale = 0;
    run(&s);
    assert_true(s.weights[0] == 0.5 && s.o[0] == 5 && s.dq[0] == 0);
    s.problem.scale = -100;
    run(&s);
    assert_true(s.weights[1] == 1 && s.o[0] == 7);
}

/* Every axis of length 0 in turn: nothing is touched that is not there. */
UNIT(any_size_may_be_zero)
{
    for (int axis = 0; axis < 7; axis++) {
        int64_t n[7] = {2, 2, 2, 3, 3, 2, 2};
        double in[64] = {0}, o[64], lse[64], dq[64], dk[64], dv[64];
        const attn_ref_results results = {.o = o, .lse = lse};
        const attn_ref_gradients gradients = {.dq = dq, .dk = dk, .dv = dv};
        attn_ref_problem p;

        n[axis] = 0;
        if (axis == 2) /* KV heads divide query heads: both */
            n[1] = 0;
        if (axis == 1)
            n[2] = 0;
        attn_ref_problem_init(&p, n[0], n[1], n[2], n[3], n[4], n[5], n[6]);
        for (int x = 0; x < 64; x++)
            o[x] = lse[x] = dq[x] = 9;
        assert_int_equal(attn_ref_forward(NULL, &p, in, in, in, &results),
                         ATTN_OK);
        assert_int_equal(
            attn_ref_backward(NULL, &p, in, in, in, in, NULL, &gradients),
            ATTN_OK);
        for (int64_t r = 0; r < n[0] * n[1] * n[3]; r++) {
            if (n[4] == 0)
                assert_true(lse[r] == -INFINITY && o[r * n[6]] == 0);
            else
                assert_true(fabs(lse[r] - log(3)) <= 2 * DBL_EPSILON);
        }
        assert_true(o[n[0] * n[1] * n[3] * n[6]] == 9);
        assert_true(lse[n[0] * n[1] * n[3]] == 9);
        assert_true(dq[n[0] * n[1] * n[3] * n[5]] == 9);
    }
}

/* Without queries, keys or batches a broadcast gradient is still there. */
UNIT(gradients_of_nothing_are_zero)
{
    for (int axis = 0; axis < 3; axis++) {
        const int64_t sizes[3] = {axis != 0, axis != 1, axis != 2};
        double in[4] = {0}, dbias[1] = {9}, dsinks[2] = {9, 9};
        double dslopes[2] = {9, 9};
        const attn_ref_gradients gradients = {
            .dbias = dbias, .dsinks = dsinks, .dslopes = dslopes};
        attn_ref_problem p;

        attn_ref_problem_init(&p, sizes[0], 2, 1, sizes[1], sizes[2], 1, 1);
        p.bias = p.sinks = p.alibi_slopes = in;
        p.slopes_stride[1] = 1;
        assert_int_equal(
            attn_ref_backward(NULL, &p, in, in, in, in, NULL, &gradients),
            ATTN_OK);
        assert_true(dbias[0] == 0 && dsinks[0] == 0 && dsinks[1] == 0);
        assert_true(dslopes[0] == 0 && dslopes[1] == 0);
    }
}

UNIT(a_size_beyond_memory_is_refused)
{
    attn_ref_problem p;

    attn_ref_problem_init(&p, 1, 1, 1, INT64_MAX / 2, 3, 0, 0);
    assert_int_equal(
        attn_ref_forward(NULL, &p, NULL, NULL, NULL, &(attn_ref_results){0}),
        ATTN_E_OVERFLOW);
    attn_ref_problem_init(&p, INT64_C(1) << 40, INT64_C(1) << 30, 1, 1, 1, 0,
                          0);
    assert_int_equal(attn_ref_backward(NULL, &p, NULL, NULL, NULL, NULL, NULL,
                                       &(attn_ref_gradients){0}),
                     ATTN_E_OVERFLOW);
}

/* ---------------------------------------------------------------- helpers */

UNIT(broadcast_strides_are_those_of_trailing_axes)
{
    static const struct {
        int64_t rank, shape[4], stride[4];
    } rows[] = {
        {4, {2, 3, 5, 7}, {105, 35, 7, 1}},
        {4, {2, 1, 1, 7}, {7, 0, 0, 1}},
        {3, {3, 5, 7}, {0, 35, 7, 1}},
        {2, {5, 1}, {0, 0, 1, 0}},
        {1, {7}, {0, 0, 0, 1}},
        {0, {0}, {0, 0, 0, 0}},
    };

    for (size_t r = 0; r < COUNT(rows); r++) {
        int64_t stride[4];

        attn_ref_broadcast(4, rows[r].rank, rows[r].shape, stride);
        assert_memory_equal(stride, rows[r].stride, sizeof stride);
    }
}

UNIT(the_default_offset_is_that_of_the_contract)
{
    static const struct {
        attn_causal causal;
        int64_t len_q, len_k, k_length, offset;
    } rows[] = {
        {ATTN_CAUSAL_TOP_LEFT, 3, 7, 7, 0},
        {ATTN_CAUSAL_TOP_LEFT, 3, 7, 5, 0},
        {ATTN_CAUSAL_BOTTOM_RIGHT, 3, 7, 7, 4},
        {ATTN_CAUSAL_BOTTOM_RIGHT, 3, 7, 5, 2},
        {ATTN_CAUSAL_BOTTOM_RIGHT, 7, 3, 3, -4},
        {ATTN_CAUSAL_BOTTOM_RIGHT, 7, 7, 5, -2},
        {ATTN_CAUSAL_NONE, 7, 7, 7, 0},
        {ATTN_CAUSAL_NONE, 7, 7, 5, 0}, /* a padded batch keeps its diagonal */
        {ATTN_CAUSAL_NONE, 3, 7, 7, 4},
        {ATTN_CAUSAL_NONE, 3, 7, 5, 2},
    };

    for (size_t r = 0; r < COUNT(rows); r++)
        assert_int_equal(attn_ref_q_offset(rows[r].causal, rows[r].len_q,
                                           rows[r].len_k, rows[r].k_length),
                         rows[r].offset);
}

UNIT(dropout_factors_are_those_of_the_mask)
{
    const attn__dropout d = attn__dropout_of(0.3, 42, 5);
    const int64_t start[2] = {100, 1000};
    double factors[2 * 3 * 4 * 9], part[3 * 2 * 4];
    int64_t kept = 0;

    attn_ref_dropout(2, 3, 4, 9, 0.3, 42, 5, 7, NULL, factors);
    for (int64_t x = 0; x < 2 * 3 * 4 * 9; x++) {
        const int64_t j = x % 9, i = x / 9 % 4, head = 7 * 3 + x / 36;
        const bool keeps = attn__dropout_keeps(&d, (uint32_t)head, i, j);

        assert_true(factors[x] == (keeps ? 1 / (1 - 0.3) : 0));
        kept += keeps;
    }
    assert_in_range(kept, 100, 200); /* 216 at 0.7: 151 +- 7 */
    attn_ref_dropout(1, 3, 2, 4, 0.3, 42, 5, 0, start, part);
    for (int64_t x = 0; x < 3 * 2 * 4; x++)
        assert_true((part[x] != 0) == attn__dropout_keeps(&d, (uint32_t)(x / 8),
                                                          100 + x / 4 % 2,
                                                          1000 + x % 4));
    attn_ref_dropout(1, 3, 2, 4, 1.0, 42, 5, 0, NULL, part);
    for (int64_t x = 0; x < 3 * 2 * 4; x++)
        assert_true(part[x] == 0);
}

/* p_drop = 1: o = 0, but lse and weights are before dropout. */
UNIT(everything_dropped_gives_zero)
{
    static const double dropped[2] = {0, 0};
    small s = two_keys(1, 1);

    s.problem.dropout = dropped;
    run(&s);
    assert_true(s.o[0] == 0 && s.weights[0] == 0.5);
    assert_true(fabs(s.lse[0] - (1 + log(2))) <= 2 * DBL_EPSILON);
    assert_true(s.dq[0] == 0 && s.dv[0] == 0);
}

/* Distances are integers before they are reals. */
UNIT(alibi_counts_in_integers)
{
    const double slope[1] = {1};
    const int64_t far = INT64_C(1) << 60;
    small s = two_keys(0, 0);

    s.problem.alibi_slopes = slope;
    s.problem.q_offset = &far;
    run(&s); /* both distances round to 2^60: even */
    assert_true(s.weights[0] == 0.5 && s.weights[1] == 0.5);
    assert_true(s.lse[0] == -0x1p60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_row_is_zero_or_nan_as_asked),
        cmocka_unit_test(a_score_of_minus_infinity_hides_its_key),
        cmocka_unit_test(a_score_of_plus_infinity_or_nan_makes_the_row_nan),
        cmocka_unit_test(a_bias_of_minus_infinity_hides_even_a_nan_score),
        cmocka_unit_test(a_nan_value_under_a_vanishing_weight_shows),
        cmocka_unit_test(a_sink_takes_its_share),
        cmocka_unit_test(with_a_sink_no_row_is_empty),
        cmocka_unit_test(a_sink_of_minus_infinity_is_none),
        cmocka_unit_test(a_sink_of_plus_infinity_makes_the_row_nan),
        cmocka_unit_test(without_dimensions_every_score_is_zero),
        cmocka_unit_test(scale_may_be_zero_or_negative),
        cmocka_unit_test(any_size_may_be_zero),
        cmocka_unit_test(gradients_of_nothing_are_zero),
        cmocka_unit_test(a_size_beyond_memory_is_refused),
        cmocka_unit_test(broadcast_strides_are_those_of_trailing_axes),
        cmocka_unit_test(the_default_offset_is_that_of_the_contract),
        cmocka_unit_test(dropout_factors_are_those_of_the_mask),
        cmocka_unit_test(everything_dropped_gives_zero),
        cmocka_unit_test(alibi_counts_in_integers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
