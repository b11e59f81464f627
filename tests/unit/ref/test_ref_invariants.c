/* SPDX-License-Identifier: Apache-2.0
 *
 * What is true of attention whatever the numbers are: weights are a
 * distribution, outputs lie in the hull of the values, the future and the
 * other heads do not matter, order does not matter. Where the same operations
 * happen in the same order, the bits have to be the same. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ref_bounds.h"
#include "ref_run.h"
#include "ref_table.h"
#include "unit.h"

#define SEED UINT64_C(577215664)

static const long double u = DBL_EPSILON / 2;

static bool same(const long double *a, const long double *b, int64_t n)
{
    for (int64_t x = 0; x < n; x++) {
        if (!(a[x] == b[x] || (isnan(a[x]) && isnan(b[x]))))
            return false;
    }
    return true;
}

static int64_t key_row(const ref_case *c, int64_t r)
{
    const int64_t h = r / c->f.len_q % c->f.heads_q;
    const int64_t b = r / c->f.len_q / c->f.heads_q;

    return (b * c->f.heads_kv + h / (c->f.heads_q / c->f.heads_kv)) *
           c->f.len_k;
}

/* ---------------------------------------------------------- distribution */

/* sum_j p_ij + exp(sink - lse) = 1. In double a weight is off by one division
 * and its share of the sum's n additions, so (n + 3) u of 1 in all; the sink's
 * weight by lse's error (ref_bounds.h). */
UNIT(weights_of_a_row_sum_to_one)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_case c = ref_case_open(&ref_table[n], SEED + n);
        ref_outputs out = ref_run(&c), wide = ref_run_wide(&c);
        ref_bounds b = ref_bounds_open(&c, &wide);

        for (int64_t r = 0; r < c.rows; r++) {
            const int64_t h = r / c.f.len_q % c.f.heads_q;
            long double sum = 0, tolerance = (c.f.len_k + 3) * u;

            for (int64_t j = 0; j < c.f.len_k; j++) {
                const int64_t x = r * c.f.len_k + j;
                assert_true(out.weights[x] >= 0 && out.weights[x] <= 1);
                assert_true(out.visible[x] || out.weights[x] == 0);
                sum += out.weights[x];
            }
            if (c.sinks) {
                sum += expl(c.sinks[h] - out.lse[r]);
                tolerance += b.lse[r] + c.f.len_k * u;
            }
            if (out.lse[r] == -INFINITY)
                assert_true(sum == 0);
            else
                assert_true(fabsl(sum - 1) <= tolerance);
        }
        ref_bounds_close(&b);
        ref_outputs_close(&out);
        ref_outputs_close(&wide);
        ref_case_close(&c);
    }
}

/* Entropy of a row lies between 0 and ln of the number of its keys. */
UNIT(entropy_is_between_zero_and_that_of_even_weights)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_case c = ref_case_open(&ref_table[n], SEED + n);
        ref_outputs out = ref_run(&c);

        for (int64_t r = 0; r < c.rows; r++) {
            long double keys = c.sinks ? 1 : 0;

            for (int64_t j = 0; j < c.f.len_k; j++)
                keys += out.visible[r * c.f.len_k + j];
            assert_true(out.entropy[r] >= -2 * u);
            if (keys > 0)
                assert_true(out.entropy[r] <=
                            logl(keys) * (1 + (keys + 8) * u) + 4 * u);
            else
                assert_true(out.entropy[r] == 0);
        }
        ref_outputs_close(&out);
        ref_case_close(&c);
    }
}

/* o_ic is a mean of visible v_jc (and 0, if some weight went to a sink): n + 4
 * roundings of terms that sum to no more than the largest |v|. */
UNIT(an_output_lies_in_the_hull_of_what_it_sees)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_case c = ref_case_open(&ref_table[n], SEED + n);
        ref_outputs out = ref_run(&c);

        for (int64_t x = 0; !c.dropout && x < c.n_o; x++) {
            const int64_t r = x / c.f.dim_v, d = x % c.f.dim_v;
            const int64_t key = key_row(&c, r);
            long double low = c.sinks ? 0 : INFINITY;
            long double high = c.sinks ? 0 : -INFINITY, most = 0;

            for (int64_t j = 0; j < c.f.len_k; j++) {
                const double v = c.v[(key + j) * c.f.dim_v + d];
                if (!out.visible[r * c.f.len_k + j])
                    continue;
                low = fminl(low, v);
                high = fmaxl(high, v);
                most = fmaxl(most, fabs(v));
            }
            if (low > high) { /* an empty row */
                assert_true(out.o[x] == 0);
                continue;
            }
            most *= (2 * c.f.len_k + 8) * u;
            assert_true(out.o[x] >= low - most && out.o[x] <= high + most);
        }
        ref_outputs_close(&out);
        ref_case_close(&c);
    }
}

/* -------------------------------------------------------------- causality */

static const ref_features causal = {
    "causal", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 5, 5, 4, 7),
    .causal = ATTN_CAUSAL_TOP_LEFT, .bias = "hij"};

/* Ruin everything at and after key t, then rows before t are as they were,
 * bit for bit, and so are their gradients. */
UNIT(the_future_changes_nothing_even_where_it_is_nan)
{
    for (int64_t t = 1; t < causal.len_k; t++) {
        ref_case c = ref_case_open(&causal, SEED);
        ref_outputs before = ref_run(&c), after;

        for (int64_t x = 0; x < c.n_k; x++)
            c.k[x] = x / causal.dim_qk % causal.len_k >= t ? NAN : c.k[x];
        for (int64_t x = 0; x < c.n_v; x++)
            c.v[x] = x / causal.dim_v % causal.len_k >= t ? NAN : c.v[x];
        after = ref_run(&c);
        for (int64_t r = 0; r < c.rows; r++) {
            if (r % causal.len_q >= t) { /* and this is seen to matter */
                assert_true(isnan(after.lse[r]));
                continue;
            }
            assert_true(before.lse[r] == after.lse[r]);
            assert_true(before.entropy[r] == after.entropy[r]);
            assert_true(same(before.o + r * causal.dim_v,
                             after.o + r * causal.dim_v, causal.dim_v));
            assert_true(same(before.weights + r * causal.len_k,
                             after.weights + r * causal.len_k, causal.len_k));
            assert_true(same(before.dq + r * causal.dim_qk,
                             after.dq + r * causal.dim_qk, causal.dim_qk));
        }
        ref_outputs_close(&before);
        ref_outputs_close(&after);
        ref_case_close(&c);
    }
}

UNIT(the_first_token_gets_its_own_value)
{
    ref_case c = ref_case_open(&causal, SEED);
    ref_outputs out = ref_run(&c);

    for (int64_t r = 0; r < c.rows; r += causal.len_q) {
        for (int64_t d = 0; d < causal.dim_v; d++)
            assert_true(out.o[r * causal.dim_v + d] ==
                        c.v[key_row(&c, r) * causal.dim_v + d]);
    }
    ref_outputs_close(&out);
    ref_case_close(&c);
}

/* The first `m` tokens alone give what they give in the whole. */
UNIT(a_prefix_gives_the_same_bits)
{
    const ref_features whole = {"prefix",
                                B_H_HKV_LQ_LK_D_DV(1, 1, 1, 7, 7, 4, 5),
                                .causal = ATTN_CAUSAL_TOP_LEFT,
                                .left = 4,
                                .softcap = 3,
                                .slopes = "h",
                                .sinks = true};
    ref_case c = ref_case_open(&whole, SEED);
    ref_outputs all = ref_run(&c);

    for (int64_t m = 1; m < whole.len_q; m++) {
        ref_case part = c;
        ref_outputs some;

        part.f.len_q = part.f.len_k = part.rows = m;
        part.pairs = m * m;
        part.n_q = part.n_k = m * whole.dim_qk;
        part.n_v = part.n_o = m * whole.dim_v;
        some = ref_run(&part);
        assert_true(same(some.o, all.o, part.n_o));
        assert_true(same(some.lse, all.lse, m));
        assert_true(same(some.dq, all.dq, part.n_q));
        ref_outputs_close(&some);
    }
    ref_outputs_close(&all);
    ref_case_close(&c);
}

/* ------------------------------------------------------------------ order */

static void swap_rows(double *x, int64_t a, int64_t b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double t = x[a * n + i];
        x[a * n + i] = x[b * n + i];
        x[b * n + i] = t;
    }
}

static const ref_features plain = {"order",
                                   B_H_HKV_LQ_LK_D_DV(2, 3, 3, 4, 5, 2, 7)};

UNIT(queries_do_not_see_each_other)
{
    ref_case c = ref_case_open(&plain, SEED);
    ref_outputs before = ref_run(&c), after;
    const int64_t dv = plain.dim_v;

    swap_rows(c.q, 1, 2, plain.dim_qk); /* of batch 0, head 0 */
    after = ref_run(&c);
    assert_true(same(before.o + 1 * dv, after.o + 2 * dv, dv));
    assert_true(same(before.o + 2 * dv, after.o + 1 * dv, dv));
    assert_true(same(before.o + 3 * dv, after.o + 3 * dv, c.n_o - 3 * dv));
    assert_false(same(before.o, after.o, c.n_o));
    ref_outputs_close(&before);
    ref_outputs_close(&after);
    ref_case_close(&c);
}

UNIT(heads_and_batches_do_not_see_each_other)
{
    ref_case c = ref_case_open(&plain, SEED);
    ref_outputs before = ref_run(&c), after;
    const int64_t q = plain.len_q * plain.dim_qk;
    const int64_t k = plain.len_k * plain.dim_qk;
    const int64_t v = plain.len_k * plain.dim_v;
    const int64_t o = plain.len_q * plain.dim_v;

    /* Slice 1 is (batch 0, head 1), slice 5 is (batch 1, head 2). */
    swap_rows(c.q, 1, 5, q);
    swap_rows(c.k, 1, 5, k);
    swap_rows(c.v, 1, 5, v);
    swap_rows(c.d_o, 1, 5, o);
    after = ref_run(&c);
    assert_true(same(before.o + 1 * o, after.o + 5 * o, o));
    assert_true(same(before.o + 5 * o, after.o + 1 * o, o));
    assert_true(same(before.o + 2 * o, after.o + 2 * o, 3 * o));
    assert_true(same(before.dk + 1 * k, after.dk + 5 * k, k));
    assert_true(same(before.dv + 2 * v, after.dv + 2 * v, 3 * v));
    ref_outputs_close(&before);
    ref_outputs_close(&after);
    ref_case_close(&c);
}

/* Keys in another order: other sums, the same result within both bounds. */
UNIT(keys_may_come_in_any_order)
{
    ref_case c = ref_case_open(&plain, SEED);
    ref_outputs before = ref_run(&c), wide = ref_run_wide(&c), after;
    ref_bounds b = ref_bounds_open(&c, &wide);
    bool moved = false;

    for (int64_t g = 0; g < plain.batch * plain.heads_kv; g++) {
        swap_rows(c.k + g * plain.len_k * plain.dim_qk, 0, 3, plain.dim_qk);
        swap_rows(c.v + g * plain.len_k * plain.dim_v, 0, 3, plain.dim_v);
    }
    after = ref_run(&c);
    for (int64_t x = 0; x < c.n_o; x++) {
        assert_true(fabsl(before.o[x] - after.o[x]) <= 2 * b.o[x]);
        moved = moved || before.o[x] != after.o[x];
    }
    assert_true(moved); /* so the order was in fact another */
    ref_bounds_close(&b);
    ref_outputs_close(&before);
    ref_outputs_close(&wide);
    ref_outputs_close(&after);
    ref_case_close(&c);
}

/* A group of query heads is as if each had a copy of the shared head. */
UNIT(a_shared_head_is_as_good_as_copies)
{
    const ref_features shared = {"shared",
                                 B_H_HKV_LQ_LK_D_DV(1, 6, 2, 4, 5, 3, 7)};
    ref_case c = ref_case_open(&shared, SEED), copies = c;
    ref_outputs one = ref_run(&c), many;
    const int64_t k = shared.len_k * shared.dim_qk;
    const int64_t v = shared.len_k * shared.dim_v;

    copies.f.heads_kv = 6;
    copies.n_k *= 3;
    copies.n_v *= 3;
    copies.k = malloc((size_t)copies.n_k * sizeof(double));
    copies.v = malloc((size_t)copies.n_v * sizeof(double));
    for (int64_t h = 0; h < 6; h++) {
        memcpy(copies.k + h * k, c.k + h / 3 * k, (size_t)k * sizeof(double));
        memcpy(copies.v + h * v, c.v + h / 3 * v, (size_t)v * sizeof(double));
    }
    many = ref_run(&copies);
    assert_true(same(one.o, many.o, c.n_o));
    assert_true(same(one.dq, many.dq, c.n_q));
    for (int64_t x = 0; x < c.n_v; x++) { /* the first head's is a first part */
        const int64_t at = x / v * 3 * v + x % v;
        const long double sum =
            many.dv[at] + many.dv[at + v] + many.dv[at + 2 * v];
        const long double size = fabsl(many.dv[at]) + fabsl(many.dv[at + v]) +
                                 fabsl(many.dv[at + 2 * v]);
        /* Each part and the whole sum up to 12 terms of both signs, all below
         * 6 in size (ref_normal), with weights up to 1. */
        assert_true(fabsl(one.dv[x] - sum) <= 16 * u * (size + 12 * 6));
    }
    free(copies.k);
    free(copies.v);
    ref_outputs_close(&one);
    ref_outputs_close(&many);
    ref_case_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_of_a_row_sum_to_one),
        cmocka_unit_test(entropy_is_between_zero_and_that_of_even_weights),
        cmocka_unit_test(an_output_lies_in_the_hull_of_what_it_sees),
        cmocka_unit_test(the_future_changes_nothing_even_where_it_is_nan),
        cmocka_unit_test(the_first_token_gets_its_own_value),
        cmocka_unit_test(a_prefix_gives_the_same_bits),
        cmocka_unit_test(queries_do_not_see_each_other),
        cmocka_unit_test(heads_and_batches_do_not_see_each_other),
        cmocka_unit_test(keys_may_come_in_any_order),
        cmocka_unit_test(a_shared_head_is_as_good_as_copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
