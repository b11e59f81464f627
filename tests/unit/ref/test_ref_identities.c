/* SPDX-License-Identifier: Apache-2.0
 *
 * Equations between an attention's own tensors, which need no second
 * implementation:
 *
 *   N1  sum_j dk_j = 0, per KV head                      no sink, softcap, dlse
 *   N2  sum_j dv_j = sum_i d_o_i over rows that see      no dropout, no sink
 *   N3  <dv, v> = <d_o, o>                               always
 *   N4  <q, dq> = <k, dk>                                always
 *   N5  o in the hull of v                               test_ref_invariants.c
 *   N6  v = identity: o is the weights                   no dropout
 *   N7  sum_j ds_ij = 0                                  no sink, no dlse
 *
 * Each tolerance is the sum of the bounds (ref_bounds.h) of what is added up.
 * Each equation is shown to reject the bugs that it is for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref_bounds.h"
#include "ref_run.h"
#include "ref_table.h"
#include "unit.h"

#define SEED UINT64_C(693147180)

/* A computed case and the bounds of its results. */
typedef struct run {
    ref_case c;
    ref_outputs out;
    ref_bounds b;
} run;

static run open_run(const ref_features *f, const attn_ref_stages *stages)
{
    run r = {.c = ref_case_open(f, SEED)};
    ref_inputs in = ref_inputs_open(&r.c);
    ref_outputs wide = ref_run_wide(&r.c);

    r.out = ref_run_with(stages, &r.c, &in);
    r.b = ref_bounds_open(&r.c, &wide);
    ref_outputs_close(&wide);
    ref_inputs_close(&in);
    return r;
}

static void close_run(run *r)
{
    ref_bounds_close(&r->b);
    ref_outputs_close(&r->out);
    ref_case_close(&r->c);
}

typedef bool identity(const run *r);

/* Is the sum of the terms 0 within the sum of their tolerances? */
typedef struct balance {
    long double sum, tolerance;
} balance;

static void add(balance *b, long double term, long double tolerance)
{
    b->sum += term;
    b->tolerance += tolerance;
}

static bool is_even(const balance *b)
{
    return fabsl(b->sum) <= b->tolerance;
}

static bool n1(const run *r)
{
    const ref_features *f = &r->c.f;

    for (int64_t g = 0; g < f->batch * f->heads_kv; g++) {
        for (int64_t d = 0; d < f->dim_qk; d++) {
            balance zero = {0};
            for (int64_t j = 0; j < f->len_k; j++) {
                const int64_t x = (g * f->len_k + j) * f->dim_qk + d;
                add(&zero, r->out.dk[x], r->b.dk[x]);
            }
            if (!is_even(&zero))
                return false;
        }
    }
    return true;
}

static bool n2(const run *r)
{
    const ref_features *f = &r->c.f;
    const int64_t group = f->heads_q / f->heads_kv * f->len_q;

    for (int64_t g = 0; g < f->batch * f->heads_kv; g++) {
        for (int64_t d = 0; d < f->dim_v; d++) {
            balance both = {0};
            for (int64_t j = 0; j < f->len_k; j++) {
                const int64_t x = (g * f->len_k + j) * f->dim_v + d;
                add(&both, r->out.dv[x], r->b.dv[x]);
            }
            for (int64_t i = g * group; i < (g + 1) * group; i++) {
                if (r->out.lse[i] != -INFINITY)
                    add(&both, -(long double)r->c.d_o[i * f->dim_v + d], 0);
            }
            if (!is_even(&both))
                return false;
        }
    }
    return true;
}

static bool n3(const run *r)
{
    balance both = {0};

    for (int64_t x = 0; x < r->c.n_v; x++)
        add(&both, r->out.dv[x] * r->c.v[x], r->b.dv[x] * fabs(r->c.v[x]));
    for (int64_t x = 0; x < r->c.n_o; x++)
        add(&both, -r->out.o[x] * r->c.d_o[x], r->b.o[x] * fabs(r->c.d_o[x]));
    return is_even(&both);
}

static bool n4(const run *r)
{
    balance both = {0};

    for (int64_t x = 0; x < r->c.n_q; x++)
        add(&both, r->out.dq[x] * r->c.q[x], r->b.dq[x] * fabs(r->c.q[x]));
    for (int64_t x = 0; x < r->c.n_k; x++)
        add(&both, -r->out.dk[x] * r->c.k[x], r->b.dk[x] * fabs(r->c.k[x]));
    return is_even(&both);
}

/* A full bias has ds for its gradient. */
static bool n7(const run *r)
{
    const int64_t n = r->c.f.len_k;

    for (int64_t i = 0; i < r->c.rows; i++) {
        balance zero = {0};
        for (int64_t x = i * n; x < (i + 1) * n; x++)
            add(&zero, r->out.dbias[x], r->b.dbias[x]);
        if (!is_even(&zero))
            return false;
    }
    return true;
}

static bool holds(identity *n, const ref_features *f,
                  const attn_ref_stages *stages)
{
    run r = open_run(f, stages);
    const bool yes = n(&r);

    close_run(&r);
    return yes;
}

static void check_all(const char *name, identity *n,
                      bool (*applies)(const ref_features *))
{
    int cases = 0;

    for (size_t f = 0; f < COUNT(ref_table); f++) {
        if (!applies(&ref_table[f]))
            continue;
        cases++;
        if (!holds(n, &ref_table[f], NULL))
            fail_msg("%s does not hold for %s", name, ref_table[f].name);
    }
    assert_true(cases > 2);
}

static bool n1_applies(const ref_features *f)
{
    return !f->sinks && f->softcap == 0 && !f->dlse;
}

static bool n2_applies(const ref_features *f)
{
    return !f->sinks && f->dropout == 0;
}

static bool always(const ref_features *f)
{
    return f->len_k > 0;
}

static bool n7_applies(const ref_features *f)
{
    return !f->sinks && !f->dlse && f->bias && strcmp(f->bias, "bhij") == 0;
}

/* N7 wants a full bias: the same table with one. */
static void check_n7(void)
{
    int cases = 0;

    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_features f = ref_table[n];

        f.bias = "bhij";
        if (!n7_applies(&f))
            continue;
        cases++;
        if (!holds(n7, &f, NULL))
            fail_msg("N7 does not hold for %s", f.name);
    }
    assert_true(cases > 2);
}

UNIT(the_identities_hold_where_they_apply)
{
    if (!long_double_is_wide())
        skip(); /* no bounds */
    check_all("N1", n1, n1_applies);
    check_all("N2", n2, n2_applies);
    check_all("N3", n3, always);
    check_all("N4", n4, always);
    check_n7();
}

/* N6: with v the identity, o_ij = p_ij exactly: all other terms are 0. */
UNIT(with_the_identity_for_values_the_output_is_the_weights)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_features f = ref_table[n];
        ref_case c;
        ref_outputs out;

        f.dim_v = f.len_k;
        f.dropout = 0;
        c = ref_case_open(&f, SEED);
        for (int64_t x = 0; x < c.n_v; x++)
            c.v[x] = x / f.dim_v % f.len_k == x % f.dim_v;
        out = ref_run(&c);
        for (int64_t x = 0; x < c.n_o; x++) {
            assert_true(out.o[x] == out.weights[x]);
            assert_true(out.visible[x] || out.o[x] == 0);
        }
        ref_outputs_close(&out);
        ref_case_close(&c);
    }
}

/* ---------------------------------------------------------------- mutants */

static void without_delta(const attn_ref_problem *problem,
                          const unsigned char *visible, const double *p,
                          const double *lse, const double *dp,
                          const double *dlse, double *ds, double *dsinks)
{
    const int64_t pairs =
        problem->batch * problem->heads_q * problem->len_q * problem->len_k;

    attn_ref_softmax_backward(problem, visible, p, lse, dp, dlse, ds, dsinks);
    for (int64_t x = 0; x < pairs; x++)
        ds[x] = p[x] * dp[x];
}

/* Only the last query head of a group reaches its KV head. */
static void group_not_summed(const attn_ref_problem *problem,
                             const unsigned char *visible, const double *p,
                             const double *v, const double *d_o, double *dp,
                             double *dv)
{
    const int64_t group = problem->heads_q / problem->heads_kv;
    const int64_t n = problem->len_q * problem->len_k;
    const int64_t pairs = problem->batch * problem->heads_q * n;
    unsigned char *seen = malloc((size_t)pairs);

    for (int64_t x = 0; x < pairs; x++)
        seen[x] = visible[x] && x / n % group == group - 1;
    attn_ref_output_backward(problem, visible, p, v, d_o, dp, NULL);
    attn_ref_output_backward(problem, seen, p, v, d_o, NULL, dv);
    free(seen);
}

static void without_dropout(const attn_ref_problem *problem,
                            const unsigned char *visible, const double *p,
                            const double *v, const double *d_o, double *dp,
                            double *dv)
{
    attn_ref_problem all_kept = *problem;

    all_kept.dropout = NULL;
    attn_ref_output_backward(&all_kept, visible, p, v, d_o, dp, dv);
}

static void scale_in_dq_only(const attn_ref_problem *problem, const double *q,
                             const double *k, const unsigned char *visible,
                             const double *ds, double *dq, double *dk,
                             double *dbias, double *dslopes)
{
    const int64_t n =
        problem->batch * problem->heads_kv * problem->len_k * problem->dim_qk;

    attn_ref_scores_backward(problem, q, k, visible, ds, dq, dk, dbias,
                             dslopes);
    for (int64_t x = 0; x < n; x++)
        dk[x] /= problem->scale;
}

UNIT(each_identity_rejects_what_it_is_for)
{
    const ref_features gqa = {"gqa", B_H_HKV_LQ_LK_D_DV(2, 6, 2, 3, 5, 4, 7),
                              .bias = "bhij"};
    ref_features dropped = gqa;
    attn_ref_stages right;
    attn_ref_stages_init(&right);
    attn_ref_stages delta = right, group = right, kept = right, scale = right;

    dropped.dropout = 0.4;
    delta.softmax_backward = without_delta;
    group.output_backward = group_not_summed;
    kept.output_backward = without_dropout;
    scale.scores_backward = scale_in_dq_only;
    assert_true(holds(n1, &gqa, &right));
    assert_false(holds(n1, &gqa, &delta));
    assert_false(holds(n7, &gqa, &delta));
    assert_false(holds(n2, &gqa, &group));
    assert_false(holds(n3, &gqa, &group));
    assert_true(holds(n3, &dropped, &right));
    assert_false(holds(n3, &dropped, &kept));
    assert_true(holds(n4, &gqa, &right));
    assert_false(holds(n4, &gqa, &scale));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_identities_hold_where_they_apply),
        cmocka_unit_test(
            with_the_identity_for_values_the_output_is_the_weights),
        cmocka_unit_test(each_identity_rejects_what_it_is_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
