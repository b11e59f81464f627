/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary embedding: what it must do to lengths and to scores, its transpose,
 * and each scaling at points where the formula gives a number by hand. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_ref.h"
#include "ref_case.h"
#include "unit.h"

enum { B = 2, H = 3, LEN = 5, DIM = 14, N = B * H * LEN * DIM };

static const double u = DBL_EPSILON / 2;

typedef struct tables {
    double inv_freq[DIM / 2], factor;
    double cosines[B * LEN * DIM / 2], sines[B * LEN * DIM / 2];
    int64_t half;
} tables;

static attn_rope_desc desc_of(attn_rope_scaling scaling)
{
    static const double short_factor[6] = {1, 1.5, 2, 3, 4, 5};
    static const double long_factor[6] = {1, 2, 4, 8, 16, 32};

    return (attn_rope_desc){.size = sizeof(attn_rope_desc),
                            .scaling = scaling,
                            .rotary_dim = 12,
                            .base = 1000,
                            .factor = 8,
                            .original_max_position = 64,
                            .max_position = 512,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4,
                            .short_factor = short_factor,
                            .long_factor = long_factor,
                            .n_factors = 6};
}

static tables tables_of(const attn_rope_desc *d, const int64_t *positions)
{
    tables t;

    assert_int_equal(
        attn_ref_rope_frequencies(d, DIM, 1000, t.inv_freq, &t.factor),
        ATTN_OK);
    t.half = (d->rotary_dim ? d->rotary_dim : DIM) / 2;
    attn_ref_rope_angles(B * LEN, positions, t.half, t.inv_freq, t.factor,
                         t.cosines, t.sines);
    return t;
}

static void fill(double *x, uint64_t stream)
{
    for (int64_t n = 0; n < N; n++)
        x[n] = ref_normal(1618033, (stream << 32) + (uint64_t)n);
}

static const int64_t positions[B * LEN] = {0, 1, 2, 3, 100, 7, 9, 6, 5, 131071};

/* ---------------------------------------------------------------- turning */

/* Each pair keeps its length, times attention_factor; the rest is the same. */
UNIT(a_turn_keeps_lengths)
{
    double x[N], y[N];

    fill(x, 1);
    for (int scaling = ATTN_ROPE_PLAIN; scaling <= ATTN_ROPE_LLAMA3;
         scaling++) {
        const attn_rope_desc d = desc_of((attn_rope_scaling)scaling);
        const tables t = tables_of(&d, positions);

        attn_ref_rope(B, H, LEN, DIM, t.half, scaling % 2, t.cosines, t.sines,
                      x, y);
        for (int64_t r = 0; r < B * H * LEN; r++) {
            for (int64_t m = 0; m < t.half; m++) {
                const int64_t a = r * DIM + (scaling % 2 ? 2 * m : m);
                const int64_t b = a + (scaling % 2 ? 1 : t.half);
                const double before = hypot(x[a], x[b]) * t.factor;

                assert_true(fabs(hypot(y[a], y[b]) - before) <=
                            12 * u * before);
            }
            for (int64_t c = 2 * t.half; c < DIM; c++)
                assert_true(y[r * DIM + c] == x[r * DIM + c]);
        }
    }
}

/* <R(p) q, R(t) k> depends on p - t alone: what rotary embedding is for. Two
 * angles of up to 1000 are each off by u times that. */
UNIT(scores_depend_on_the_distance_only)
{
    const attn_rope_desc d = desc_of(ATTN_ROPE_PLAIN);
    double q[N], k[N], far_q[N], far_k[N];
    int64_t near[B * LEN], shifted[B * LEN];
    tables here, there;

    fill(q, 1);
    fill(k, 2);
    memcpy(far_q, q, sizeof q);
    memcpy(far_k, k, sizeof k);
    for (int64_t n = 0; n < B * LEN; n++) {
        near[n] = n;
        shifted[n] = n + 1000;
    }
    here = tables_of(&d, near);
    there = tables_of(&d, shifted);
    attn_ref_rope(B, H, LEN, DIM, here.half, 0, here.cosines, here.sines, q,
                  q); /* y may be x */
    attn_ref_rope(B, H, LEN, DIM, here.half, 0, here.cosines, here.sines, k, k);
    attn_ref_rope(B, H, LEN, DIM, there.half, 0, there.cosines, there.sines,
                  far_q, far_q);
    attn_ref_rope(B, H, LEN, DIM, there.half, 0, there.cosines, there.sines,
                  far_k, far_k);
    for (int64_t i = 0; i < LEN; i++) {
        for (int64_t j = 0; j < LEN; j++) {
            double s = 0, far_s = 0, size = 0;

            for (int64_t c = 0; c < DIM; c++) {
                s += q[i * DIM + c] * k[j * DIM + c];
                far_s += far_q[i * DIM + c] * far_k[j * DIM + c];
                size += fabs(q[i * DIM + c]) + fabs(k[j * DIM + c]);
            }
            assert_true(fabs(s - far_s) <= 4 * 1010 * u * size * size);
        }
    }
    assert_true(q[0] != far_q[0]);
}

/* <rope(x), dy> = <x, rope_backward(dy)>. Both sides are sums of N products
 * of three factors. */
UNIT(backward_is_the_transpose)
{
    double x[N], dy[N], y[N], dx[N];

    fill(x, 1);
    fill(dy, 2);
    for (int scaling = ATTN_ROPE_PLAIN; scaling <= ATTN_ROPE_LLAMA3;
         scaling++) {
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            const attn_rope_desc d = desc_of((attn_rope_scaling)scaling);
            const tables t = tables_of(&d, positions);
            long double left = 0, right = 0, size = 0;

            attn_ref_rope(B, H, LEN, DIM, t.half, interleaved, t.cosines,
                          t.sines, x, y);
            attn_ref_rope_backward(B, H, LEN, DIM, t.half, interleaved,
                                   t.cosines, t.sines, dy, dx);
            for (int64_t n = 0; n < N; n++) {
                left += (long double)y[n] * dy[n];
                right += (long double)x[n] * dx[n];
                size += fabsl((long double)y[n] * dy[n]) +
                        fabsl((long double)x[n] * dx[n]);
            }
            assert_true(fabsl(left - right) <= 4 * u * size);
            /* turning forwards is not turning back */
            right = 0;
            attn_ref_rope(B, H, LEN, DIM, t.half, interleaved, t.cosines,
                          t.sines, dy, dx);
            for (int64_t n = 0; n < N; n++)
                right += (long double)x[n] * dx[n];
            assert_false(fabsl(left - right) <= 4 * u * size);
        }
    }
}

/* Central differences of a linear map are exact but for rounding. */
UNIT(backward_is_the_slope_of_forward)
{
    const attn_rope_desc d = desc_of(ATTN_ROPE_YARN);
    const tables t = tables_of(&d, positions);
    double x[N], dy[N], y[N], dx[N];

    fill(x, 1);
    fill(dy, 2);
    attn_ref_rope_backward(B, H, LEN, DIM, t.half, 1, t.cosines, t.sines, dy,
                           dx);
    for (int64_t n = 0; n < N; n += 7) {
        const double before = x[n];
        long double slope = 0;

        for (int side = -1; side <= 1; side += 2) {
            x[n] = before + side;
            attn_ref_rope(B, H, LEN, DIM, t.half, 1, t.cosines, t.sines, x, y);
            for (int64_t m = 0; m < N; m++)
                slope += side * (long double)y[m] * dy[m] / 2;
        }
        x[n] = before;
        /* Two components of two vectors: values up to 2 * 7, factor below 2. */
        assert_true(fabsl(slope - dx[n]) <= 16 * u * 2 * 7 * 2);
    }
}

/* --------------------------------------------------------------- scalings */

static double frequency(const attn_rope_desc *d, int64_t m, int64_t seq_len)
{
    double inv_freq[DIM / 2], factor;

    assert_int_equal(
        attn_ref_rope_frequencies(d, DIM, seq_len, inv_freq, &factor), ATTN_OK);
    return inv_freq[m];
}

static double attention(const attn_rope_desc *d)
{
    double inv_freq[DIM / 2], factor;

    attn_ref_rope_frequencies(d, DIM, 10, inv_freq, &factor);
    return factor;
}

/* pow and log are within an ulp or two; a few operations follow. */
static bool close_to(double got, double expected)
{
    return fabs(got - expected) <= 32 * u * fabs(expected);
}

/* 1000^(-m/6): m = 2 gives 1/10, m = 4 gives 1/100. */
UNIT(plain_and_linear)
{
    attn_rope_desc d = desc_of(ATTN_ROPE_PLAIN);

    assert_true(frequency(&d, 0, 10) == 1);
    assert_true(close_to(frequency(&d, 2, 10), 0.1));
    assert_true(close_to(frequency(&d, 4, 10), 0.01));
    d.scaling = ATTN_ROPE_LINEAR;
    assert_true(frequency(&d, 0, 10) == 0.125);
    assert_true(close_to(frequency(&d, 4, 10), 0.00125));
    assert_true(attention(&d) == 1);
}

/* base' = base f^(12/10): the last pair, m = 5, slows by f^(12/10 * 5/6) = f
 * exactly, the first not at all. */
UNIT(ntk_slows_the_last_pair_by_the_factor)
{
    attn_rope_desc d = desc_of(ATTN_ROPE_NTK), plain = d;

    plain.scaling = ATTN_ROPE_PLAIN;
    assert_true(frequency(&d, 0, 10) == 1);
    assert_true(close_to(frequency(&d, 5, 10), frequency(&plain, 5, 10) / 8));
}

/* The stretch is f L / M - (f - 1): 1 up to M, then it grows. */
UNIT(dynamic_starts_beyond_max_position)
{
    attn_rope_desc d = desc_of(ATTN_ROPE_DYNAMIC), plain = d;

    plain.scaling = ATTN_ROPE_PLAIN;
    for (int64_t m = 0; m < 6; m++)
        assert_true(frequency(&d, m, 512) == frequency(&plain, m, 512));
    /* 8 * 1024 / 512 - 7 = 9 */
    assert_true(close_to(frequency(&d, 5, 1024), frequency(&plain, 5, 10) / 9));
    d.seq_len = 1536; /* goes before: 8 * 3 - 7 = 17 */
    assert_true(close_to(frequency(&d, 5, 10), frequency(&plain, 5, 10) / 17));
}

/* c(32) = 12 ln(64 / 64 pi) / (2 ln 1000) < 0, so low = 0; c(1) = 12 ln(64 /
 * 2 pi) / (2 ln 1000) = 2.016 so high = 3: ramp 0, 1/3, 2/3, 1, 1, 1. */
UNIT(yarn_leads_over_from_one_end_to_the_other)
{
    attn_rope_desc d = desc_of(ATTN_ROPE_YARN), plain = d;
    double ramp[6] = {0, 1.0 / 3, 2.0 / 3, 1, 1, 1};

    plain.scaling = ATTN_ROPE_PLAIN;
    for (int64_t m = 0; m < 6; m++)
        assert_true(
            close_to(frequency(&d, m, 10),
                     frequency(&plain, m, 10) * (ramp[m] / 8 + 1 - ramp[m])));
    d.no_truncate = 1; /* high is c(1) itself */
    ramp[1] = 1 / (6 * log(64 / (2 * acos(-1))) / log(1000));
    assert_true(
        close_to(frequency(&d, 1, 10),
                 frequency(&plain, 1, 10) * (ramp[1] / 8 + 1 - ramp[1])));
    assert_true(close_to(attention(&d), 0.1 * log(8) + 1));
    d.mscale = 2; /* alone it says nothing */
    assert_true(close_to(attention(&d), 0.1 * log(8) + 1));
    d.mscale_all_dim = 0.5;
    assert_true(
        close_to(attention(&d), (0.2 * log(8) + 1) / (0.05 * log(8) + 1)));
    d.attention_factor = 1.25;
    assert_true(attention(&d) == 1.25);
    d.attention_factor = d.mscale = 0;
    d.factor = 0.5; /* no stretching: 1 */
    assert_true(attention(&d) == 1);
}

/* Equal ends of the ramp are moved apart by 0.001: a step at 0. */
UNIT(yarn_survives_equal_ends)
{
    attn_rope_desc d = desc_of(ATTN_ROPE_YARN);

    d.original_max_position = 4; /* -1 < c(1) < 0: low = high = 0 */
    assert_true(frequency(&d, 0, 10) == 1);
    assert_true(close_to(frequency(&d, 2, 10), 0.1 / 8));
}

UNIT(longrope_has_two_sets_of_factors)
{
    attn_rope_desc d = desc_of(ATTN_ROPE_LONGROPE);

    assert_true(close_to(frequency(&d, 2, 64), 0.1 / 2)); /* short up to 64 */
    assert_true(close_to(frequency(&d, 2, 65), 0.1 / 4)); /* then long */
    d.seq_len = 65;
    assert_true(close_to(frequency(&d, 4, 3), 0.01 / 16));
    /* sqrt(1 + ln 8 / ln 64) = sqrt(1.5) */
    assert_true(close_to(attention(&d), sqrt(1.5)));
    d.factor = 0; /* 512 / 64 = 8 as well */
    assert_true(close_to(attention(&d), sqrt(1.5)));
    d.factor = 1;
    assert_true(attention(&d) == 1);
    d.attention_factor = 1.75;
    assert_true(attention(&d) == 1.75);
}

/* Waves 2 pi / inv_freq = 6.28, 19.9, 62.8, 199, ...; N = 64: below N / 4 as
 * they were, above N / 1 divided by 8, between: t = (64 / w - 1) / 3. */
UNIT(llama3_changes_long_waves_only)
{
    attn_rope_desc d = desc_of(ATTN_ROPE_LLAMA3), plain = d;
    const double w = 20 * acos(-1), t = (64 / w - 1) / 3;

    plain.scaling = ATTN_ROPE_PLAIN;
    assert_true(frequency(&d, 0, 10) == 1);
    assert_true(close_to(frequency(&d, 2, 10), (1 - t) * 0.1 / 8 + t * 0.1));
    for (int64_t m = 3; m < 6; m++)
        assert_true(
            close_to(frequency(&d, m, 10), frequency(&plain, m, 10) / 8));
    assert_true(attention(&d) == 1);
}

UNIT(a_scaling_without_its_numbers_is_refused)
{
    double inv_freq[DIM / 2], factor;

    attn_rope_desc d[12];

    for (size_t row = 0; row < COUNT(d); row++)
        d[row] = desc_of(ATTN_ROPE_PLAIN);
    d[0].scaling = ATTN_ROPE_LINEAR;
    d[0].factor = 0;
    d[1].scaling = ATTN_ROPE_NTK;
    d[1].factor = -1;
    d[2].scaling = ATTN_ROPE_DYNAMIC;
    d[2].max_position = 0;
    d[3].scaling = ATTN_ROPE_YARN;
    d[3].original_max_position = 0;
    d[4].scaling = ATTN_ROPE_YARN;
    d[4].factor = 0;
    d[5].scaling = ATTN_ROPE_LONGROPE;
    d[5].long_factor = NULL;
    d[6].scaling = ATTN_ROPE_LONGROPE;
    d[6].n_factors = 5;
    d[7].scaling = ATTN_ROPE_LLAMA3;
    d[7].low_freq_factor = 0;
    d[8].scaling = ATTN_ROPE_LLAMA3;
    d[8].high_freq_factor = 1;
    d[9].rotary_dim = 3;
    d[10].rotary_dim = DIM + 2;
    d[11].scaling = (attn_rope_scaling)99;
    for (size_t row = 0; row < COUNT(d); row++)
        assert_int_equal(
            attn_ref_rope_frequencies(&d[row], DIM, 10, inv_freq, &factor),
            ATTN_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_keeps_lengths),
        cmocka_unit_test(scores_depend_on_the_distance_only),
        cmocka_unit_test(backward_is_the_transpose),
        cmocka_unit_test(backward_is_the_slope_of_forward),
        cmocka_unit_test(plain_and_linear),
        cmocka_unit_test(ntk_slows_the_last_pair_by_the_factor),
        cmocka_unit_test(dynamic_starts_beyond_max_position),
        cmocka_unit_test(yarn_leads_over_from_one_end_to_the_other),
        cmocka_unit_test(yarn_survives_equal_ends),
        cmocka_unit_test(longrope_has_two_sets_of_factors),
        cmocka_unit_test(llama3_changes_long_waves_only),
        cmocka_unit_test(a_scaling_without_its_numbers_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
