/* SPDX-License-Identifier: Apache-2.0
 *
 * The library through attn.h against the reference in long double, feature by
 * feature: what no vector of tests/vectors reaches (slopes per batch, D = 0,
 * lengths without causal but with ALiBi, dropout by Philox, longrope, ...).
 *
 * The bounds are those of ref_bounds.h: they are first order in u, so in f32
 * they are 2^29 as wide, and hold for any order of summation. The kernels' p
 * is exp(s - lse), whose lse is off by less than what E allows for m and the
 * sum. A scale off by a little must break them. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_ref.h"
#include "ref_bounds.h"
#include "ref_library.h"
#include "ref_run.h"
#include "ref_table.h"
#include "unit.h"

#define SEED UINT64_C(1202056903)

/* ---------------------------------------------------------- comparison */

/* The largest error in units of its bound. */
static long double ratio(const long double *got, const long double *exact,
                         const long double *bound, int64_t n, long double widen)
{
    long double most = 0;

    for (int64_t x = 0; bound && x < n; x++) {
        const long double error = fabsl(got[x] - exact[x]);
        /* tiny results may be flushed: the smallest normal number */
        const long double limit = widen * bound[x] + FLT_MIN * (widen > 1);

        if (got[x] == exact[x])
            continue;
        if (!(error <= limit))
            return isfinite(error / limit) ? error / limit : INFINITY;
        most = fmaxl(most, error / limit);
    }
    return most;
}

static long double worst(const ref_case *c, const ref_outputs *got,
                         const ref_outputs *exact, attn_dtype dtype)
{
    ref_bounds b = ref_bounds_open(c, exact);
    const long double widen = dtype == ATTN_F32 ? 0x1p29L : 1;
    const long double each[] = {
        ratio(got->o, exact->o, b.o, c->n_o, widen),
        ratio(got->lse, exact->lse, b.lse, c->rows, widen),
        ratio(got->entropy, exact->entropy, b.entropy, c->rows, widen),
        ratio(got->weights, exact->weights, b.weights, c->pairs, widen),
        ratio(got->dq, exact->dq, b.dq, c->n_q, widen),
        ratio(got->dk, exact->dk, b.dk, c->n_k, widen),
        ratio(got->dv, exact->dv, b.dv, c->n_v, widen),
        ratio(got->dbias, exact->dbias, b.dbias, c->n_bias, widen),
        ratio(got->dslopes, exact->dslopes, b.dslopes, c->n_slopes, widen),
        ratio(got->dsinks, exact->dsinks, b.dsinks, c->f.heads_q, widen)};
    long double most = 0;

    for (size_t k = 0; k < COUNT(each); k++)
        most = fmaxl(most, each[k]);
    ref_bounds_close(&b);
    return most;
}

static void check(const ref_features *f, attn_dtype dtype, uint64_t seed)
{
    ref_case c = ref_library_case(f, seed);
    ref_outputs exact = ref_run_wide(&c);
    ref_outputs got = ref_library(&c, dtype, 0);
    ref_outputs off =
        ref_library(&c, dtype, dtype == ATTN_F32 ? 0x1p-4 : 0x1p-33);
    const long double right = worst(&c, &got, &exact, dtype);
    const long double wrong = worst(&c, &off, &exact, dtype);

    if (!(right <= 1))
        fail_msg("%s: off by %Lg bounds", f->name, right);
    /* Where scores are not all alike, a scale that is off shows. */
    if (f->dim_qk > 0 && f->len_k > 1 && c.scale != 0 && !(wrong > 1))
        fail_msg("%s: a wrong scale passes, %Lg", f->name, wrong);
    ref_outputs_close(&exact);
    ref_outputs_close(&got);
    ref_outputs_close(&off);
    ref_case_close(&c);
}

UNIT(the_library_in_f64_is_within_the_bounds)
{
    for (size_t n = 0; n < COUNT(ref_table); n++)
        check(&ref_table[n], ATTN_F64, SEED + n);
}

UNIT(the_library_in_f32_is_within_the_bounds)
{
    for (size_t n = 0; n < COUNT(ref_table); n++)
        check(&ref_table[n], ATTN_F32, SEED + n);
}

/* ------------------------------------------------------------------- edges */

static bool same(const long double *a, const long double *b, int64_t n)
{
    for (int64_t x = 0; a && x < n; x++) {
        if (!(a[x] == b[x] || (isnan(a[x]) && isnan(b[x]))))
            return false;
    }
    return true;
}

static void ruin(double *x, int64_t row, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[row * n + i] = NAN;
}

/* NaN in keys that no query sees, in queries that see no key and in their
 * gradients. */
static void ruin_unseen(ref_case *c)
{
    const ref_features *f = &c->f;
    const int64_t all = f->batch * f->heads_kv * f->len_k;
    ref_outputs out = ref_run(c);
    unsigned char *keys = calloc((size_t)all + 1, 1),
                  *rows = calloc((size_t)c->rows + 1, 1);

    for (int64_t x = 0; x < c->pairs; x++) {
        const int64_t r = x / f->len_k, h = r / f->len_q % f->heads_q;
        const int64_t b = r / f->len_q / f->heads_q;
        const int64_t g = h / (f->heads_q / f->heads_kv);

        rows[r] |= out.visible[x];
        keys[(b * f->heads_kv + g) * f->len_k + x % f->len_k] |= out.visible[x];
    }
    for (int64_t k = 0; k < all; k++) {
        if (!keys[k]) {
            ruin(c->k, k, f->dim_qk);
            ruin(c->v, k, f->dim_v);
        }
    }
    for (int64_t r = 0; r < c->rows; r++) {
        if (!rows[r]) {
            ruin(c->q, r, f->dim_qk);
            ruin(c->d_o, r, f->dim_v);
        }
    }
    free(keys);
    free(rows);
    ref_outputs_close(&out);
}

UNIT(what_nobody_sees_changes_no_bit_of_the_library)
{
    for (int row = 0; row < 2 * (int)COUNT(ref_table); row++) {
        const attn_dtype dtype = row % 2 ? ATTN_F32 : ATTN_F64;
        ref_case c = ref_library_case(&ref_table[row / 2], SEED);
        ref_outputs before = ref_library(&c, dtype, 0), after;

        ruin_unseen(&c);
        after = ref_library(&c, dtype, 0);
        assert_true(same(before.o, after.o, c.n_o));
        assert_true(same(before.lse, after.lse, c.rows));
        assert_true(same(before.entropy, after.entropy, c.rows));
        assert_true(same(before.weights, after.weights, c.pairs));
        assert_true(same(before.dq, after.dq, c.n_q));
        assert_true(same(before.dk, after.dk, c.n_k));
        assert_true(same(before.dv, after.dv, c.n_v));
        assert_true(same(before.dbias, after.dbias, c.n_bias));
        assert_true(same(before.dsinks, after.dsinks, c.f.heads_q));
        assert_true(same(before.dslopes, after.dslopes, c.n_slopes));
        ref_outputs_close(&before);
        ref_outputs_close(&after);
        ref_case_close(&c);
    }
}

/* Equal, or both NaN, or within the bound. */
static bool agrees(const long double *got, const long double *exact,
                   const long double *bound, int64_t n)
{
    for (int64_t x = 0; x < n; x++) {
        if (!(got[x] == exact[x] || (isnan(got[x]) && isnan(exact[x])) ||
              fabsl(got[x] - exact[x]) <= bound[x])) {
            print_error("element %d: %Lg, not %Lg +- %Lg\n", (int)x, got[x],
                        exact[x], bound[x]);
            return false;
        }
    }
    return true;
}

/* Head 0 has no sink, head 1 one of +inf, head 2 an ordinary one. */
UNIT(infinite_sinks_are_none_or_nan)
{
    if (!long_double_is_wide())
        skip(); /* the reference would lose the NaN */
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_features f = ref_table[n];
        ref_case c;
        ref_outputs got, exact;
        ref_bounds b;

        f.sinks = true;
        c = ref_library_case(&f, SEED);
        c.sinks[0] = -INFINITY;
        if (f.heads_q > 1)
            c.sinks[1] = INFINITY;
        got = ref_library(&c, ATTN_F64, 0);
        exact = ref_run_wide(&c);
        b = ref_bounds_open(&c, &exact);
        assert_true(agrees(got.o, exact.o, b.o, c.n_o));
        assert_true(agrees(got.lse, exact.lse, b.lse, c.rows));
        assert_true(agrees(got.dsinks, exact.dsinks, b.dsinks, f.heads_q));
        assert_true(got.dsinks[0] == 0);
        if (f.heads_q > 1)
            assert_true(isnan(got.lse[f.len_q]));
        ref_bounds_close(&b);
        ref_outputs_close(&got);
        ref_outputs_close(&exact);
        ref_case_close(&c);
    }
}

UNIT(everything_dropped_gives_zero)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_features f = ref_table[n];
        ref_case c;
        ref_outputs kept, dropped;

        f.dropout = 0;
        c = ref_library_case(&f, SEED);
        kept = ref_library(&c, ATTN_F64, 0);
        c.f.dropout = 1;
        dropped = ref_library(&c, ATTN_F64, 0);
        assert_true(same(dropped.lse, kept.lse, c.rows));
        assert_true(same(dropped.weights, kept.weights, c.pairs));
        for (int64_t x = 0; x < c.n_o; x++)
            assert_true(dropped.o[x] == 0);
        for (int64_t x = 0; x < c.n_v; x++)
            assert_true(dropped.dv[x] == 0);
        ref_outputs_close(&kept);
        ref_outputs_close(&dropped);
        ref_case_close(&c);
    }
}

/* One axis of every case has length 0: all results are the reference's. */
UNIT(any_size_may_be_zero)
{
    for (int row = 0; row < 5 * (int)COUNT(ref_table); row++) {
        ref_features f = ref_table[row / 5];
        int64_t *axes[] = {&f.batch, &f.len_q, &f.len_k, &f.dim_qk, &f.dim_v};
        ref_case c;
        ref_outputs got, exact;
        ref_bounds b;

        *axes[row % 5] = 0;
        f.q_offset = f.k_lengths = f.empty_row = false;
        c = ref_library_case(&f, SEED);
        got = ref_library(&c, ATTN_F64, 0);
        exact = ref_run_wide(&c);
        b = ref_bounds_open(&c, &exact);
        assert_true(agrees(got.o, exact.o, b.o, c.n_o));
        assert_true(agrees(got.lse, exact.lse, b.lse, c.rows));
        assert_true(agrees(got.dk, exact.dk, b.dk, c.n_k));
        assert_true(agrees(got.dv, exact.dv, b.dv, c.n_v));
        if (c.bias)
            assert_true(agrees(got.dbias, exact.dbias, b.dbias, c.n_bias));
        if (c.sinks)
            assert_true(agrees(got.dsinks, exact.dsinks, b.dsinks, f.heads_q));
        ref_bounds_close(&b);
        ref_outputs_close(&got);
        ref_outputs_close(&exact);
        ref_case_close(&c);
    }
}

/* -------------------------------------------------------------------- rope */

enum { B = 2, H = 3, LEN = 5, DIM = 14, HALF = 6, N = B * H * LEN * DIM };

static const int64_t positions[B * LEN] = {0, 1,  2, 3, 100,
                                           7, 90, 6, 5, 131071};

static attn_rope_desc rope_desc(attn_rope_scaling scaling, int interleaved)
{
    static const double short_factor[HALF] = {1, 1.5, 2, 3, 4, 5};
    static const double long_factor[HALF] = {1, 2, 4, 8, 16, 32};
    attn_rope_desc d;

    attn_rope_init(&d);
    d.scaling = scaling;
    d.interleaved = interleaved;
    d.rotary_dim = 2 * HALF;
    d.base = 5000;
    d.factor = 8;
    d.original_max_position = 64;
    d.max_position = 512;
    d.low_freq_factor = 1;
    d.high_freq_factor = 4;
    if (scaling == ATTN_ROPE_LONGROPE) {
        d.short_factor = short_factor;
        d.long_factor = long_factor;
        d.n_factors = HALF;
    }
    return d;
}

/* Both ways round, y and dx, by the reference. */
static void rope_reference(const attn_rope_desc *d, const double *x, double *y,
                           double *dx, double *size)
{
    double inv_freq[HALF], factor, cosines[B * LEN * HALF],
        sines[B * LEN * HALF];

    assert_int_equal(
        attn_ref_rope_frequencies(d, DIM, 131072, inv_freq, &factor), ATTN_OK);
    attn_ref_rope_angles(B * LEN, positions, HALF, inv_freq, factor, cosines,
                         sines);
    attn_ref_rope(B, H, LEN, DIM, HALF, d->interleaved, cosines, sines, x, y);
    attn_ref_rope_backward(B, H, LEN, DIM, HALF, d->interleaved, cosines, sines,
                           x, dx);
    /* inv_freq is off by a few u, so the angle by that times its size, and cos
     * and sin too; then two products and a sum of values below 6 in size. */
    for (int64_t n = 0; n < N; n++) {
        const int64_t i = n / DIM / LEN / H * LEN + n / DIM % LEN;
        *size = fmax(*size, (double)positions[i] * inv_freq[0]);
    }
    *size = 6 * factor * (16 * *size + 8) * DBL_EPSILON;
}

UNIT(rope_with_every_scaling_is_that_of_the_reference)
{
    const int64_t at[] = {B, LEN};
    double x[N], y[N], dx[N], ref_y[N], ref_dx[N];
    attn_diag diag;

    for (int64_t n = 0; n < N; n++)
        x[n] = ref_normal(SEED, (uint64_t)n);
    for (int row = 0; row < 14; row++) {
        const attn_rope_desc d =
            rope_desc((attn_rope_scaling)(row / 2), row % 2);
        double size = 0;

        rope_reference(&d, x, ref_y, ref_dx, &size);
        assert_int_equal(
            attn_rope(&d, attn_in_bhsd(x, ATTN_F64, B, H, LEN, DIM),
                      attn_in_dense(positions, ATTN_I64, 2, at),
                      attn_bhsd(y, ATTN_F64, B, H, LEN, DIM), &diag),
            ATTN_OK);
        assert_int_equal(
            attn_rope_backward(&d, attn_in_bhsd(x, ATTN_F64, B, H, LEN, DIM),
                               attn_in_dense(positions, ATTN_I64, 2, at),
                               attn_bhsd(dx, ATTN_F64, B, H, LEN, DIM), &diag),
            ATTN_OK);
        for (int64_t n = 0; n < N; n++) {
            assert_true(fabs(y[n] - ref_y[n]) <= size);
            assert_true(fabs(dx[n] - ref_dx[n]) <= size);
        }
        assert_true(size < 1e-8); /* float angles would be off by 1e-2 */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_in_f64_is_within_the_bounds),
        cmocka_unit_test(the_library_in_f32_is_within_the_bounds),
        cmocka_unit_test(what_nobody_sees_changes_no_bit_of_the_library),
        cmocka_unit_test(infinite_sinks_are_none_or_nan),
        cmocka_unit_test(everything_dropped_gives_zero),
        cmocka_unit_test(any_size_may_be_zero),
        cmocka_unit_test(rope_with_every_scaling_is_that_of_the_reference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
