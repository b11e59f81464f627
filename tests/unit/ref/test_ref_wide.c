/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference in double against the same sources in long double, element by
 * element, within the bounds of ref_bounds.h. A bound that nothing can break
 * shows nothing: the same arithmetic with the scores rounded to float has to
 * break each. */
#include <math.h>
#include <stdlib.h>

#include "ref_bounds.h"
#include "ref_run.h"
#include "ref_table.h"
#include "unit.h"

#define SEED UINT64_C(141421356)

/* ----------------------------------------------------------- comparison */

typedef struct check {
    const long double *got, *wide, *bound;
    int64_t n;
} check;

enum { CHECKS = 10 };

static const char *const check_names[CHECKS] = {
    "weights", "lse", "entropy", "o",       "dq",
    "dk",      "dv",  "dbias",   "dslopes", "dsinks"};

static void list_checks(const ref_case *c, const ref_outputs *got,
                        const ref_outputs *wide, const ref_bounds *b,
                        check *list)
{
    const check all[CHECKS] = {
        {got->weights, wide->weights, b->weights, c->pairs},
        {got->lse, wide->lse, b->lse, c->rows},
        {got->entropy, wide->entropy, b->entropy, c->rows},
        {got->o, wide->o, b->o, c->n_o},
        {got->dq, wide->dq, b->dq, c->n_q},
        {got->dk, wide->dk, b->dk, c->n_k},
        {got->dv, wide->dv, b->dv, c->n_v},
        {got->dbias, wide->dbias, b->dbias, c->bias ? c->n_bias : 0},
        {got->dslopes, wide->dslopes, b->dslopes, c->slopes ? c->n_slopes : 0},
        {got->dsinks, wide->dsinks, b->dsinks, c->sinks ? c->f.heads_q : 0},
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
        ref_bounds b = ref_bounds_open(&c, &wide);
        check list[CHECKS];

        list_checks(&c, &got, &wide, &b, list);
        for (int k = 0; k < CHECKS; k++) {
            const long double ratio = worst(&list[k]);

            if (!stages && !(ratio <= 1))
                fail_msg("%s: %s is off by %Lg bounds", c.f.name,
                         check_names[k], ratio);
            most[k] = ratio > most[k] ? ratio : most[k];
        }
        ref_bounds_close(&b);
        ref_outputs_close(&got);
        ref_outputs_close(&wide);
        ref_inputs_close(&in);
        ref_case_close(&c);
    }
}

UNIT(double_is_within_its_bounds_of_long_double)
{
    long double most[CHECKS] = {0};

    if (!long_double_is_wide())
        skip();
    for (uint64_t round = 0; round < 10; round++)
        compare(NULL, SEED + 1000 * round, most);
    for (int k = 0; k < CHECKS; k++) {
        print_message("%s: at most %.3Lg bounds\n", check_names[k], most[k]);
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
