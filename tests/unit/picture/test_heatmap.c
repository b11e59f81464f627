/* SPDX-License-Identifier: Apache-2.0
 *
 * Folding by maximum, masks, NaN, and the range of colours. */
#include "picture/heatmap.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "core/half.h"

/* Codes of one row of units of a single matrix. */
typedef struct world {
    attn_figure figure;
    attn_panel panel;
    attn__heat heat;
    attn__range range;
} world;

static void begin(world *w, attn_input values, attn_input shown)
{
    memset(w, 0, sizeof *w);
    w->panel.values = values;
    w->panel.shown = shown;
    attn_figure_init(&w->figure, &w->panel, 1);
    assert_int_equal(attn__heat_init(&w->heat, &w->figure, NULL), ATTN_OK);
}

static void look(world *w)
{
    attn__range_of(&w->figure, &w->heat, &w->range);
}

static attn_input f32(const float *data, int64_t rows, int64_t columns)
{
    return attn_in_dense(data, ATTN_F32, 2, (int64_t[]){rows, columns});
}

static const attn_input none = {0};

UNIT(one_hot_cell_of_many_stays)
{
    enum { N = 4096, FOLD = 4 };
    static const int64_t places[][2] = {{0, 0},       {4095, 4095}, {0, 4095},
                                        {4095, 0},    {1234, 777},  {3, 4},
                                        {2047, 2048}, {4092, 4091}};
    float *values = calloc((size_t)N * N, sizeof *values);
    const attn__fit fit = {N, 1, FOLD};
    world w;

    assert_non_null(values);
    begin(&w, f32(values, N, N), none);
    for (size_t p = 0; p < COUNT(places); p++) {
        const int64_t i = places[p][0], j = places[p][1];
        int64_t hot = 0;

        values[i * N + j] = 1;
        look(&w);
        assert_true(w.range.low == 0 && w.range.high == 1);
        for (int64_t u = 0; u < attn__units(fit); u++) {
            attn__heat_row(&w.heat, &w.panel, fit, fit, &w.range, u);
            for (int64_t v = 0; v < attn__units(fit); v++)
                if (w.heat.code[v] != 0) {
                    assert_int_equal(u, i / FOLD);
                    assert_int_equal(v, j / FOLD);
                    assert_int_equal(w.heat.code[v], 255);
                    hot++;
                }
        }
        assert_int_equal(hot, 1);
        values[i * N + j] = 0;
    }
    attn__heat_free(&w.heat);
    free(values);
}

/* The last unit of an axis that the fold does not divide is smaller. */
UNIT(every_cell_is_in_one_unit)
{
    for (int64_t n = 1; n < 30; n++)
        for (int64_t fold = 1; fold <= n; fold++) {
            float values[30];
            const attn__fit columns = {n, 1, fold}, rows = {1, 1, 1};
            world w;

            for (int64_t j = 0; j < n; j++)
                values[j] = (float)j;
            begin(&w, f32(values, 1, n), none);
            look(&w);
            attn__heat_row(&w.heat, &w.panel, rows, columns, &w.range, 0);
            assert_int_equal(attn__units(columns), (n + fold - 1) / fold);
            for (int64_t u = 0; u < attn__units(columns); u++) {
                const int64_t last = (u + 1) * fold < n ? (u + 1) * fold : n;

                assert_true(w.heat.value[u] == (double)(last - 1));
            }
            attn__heat_free(&w.heat);
        }
}

UNIT(nan_shows_and_masked_cells_do_not)
{
    const float values[2][6] = {{1, NAN, 2, 9, 9, 9}, {0, 3, 1, 0.5f, 9, NAN}};
    const unsigned char shown[2][6] = {{1, 1, 1, 0, 0, 0}, {1, 1, 1, 1, 0, 0}};
    const attn__fit rows = {2, 1, 2}, columns = {6, 1, 2};
    world w;

    begin(&w, f32(values[0], 2, 6),
          attn_in_dense(shown, ATTN_BOOL, 2, (int64_t[]){2, 6}));
    look(&w);
    assert_true(w.range.any_masked && w.range.any_nan);
    assert_true(w.range.low == 0 && w.range.high == 3);
    attn__heat_row(&w.heat, &w.panel, rows, columns, &w.range, 0);
    assert_int_equal(w.heat.code[0], ATTN__NAN);
    /* 2, 1 and 0.5: the 9s are masked. */
    assert_true(w.heat.value[1] == 2);
    assert_int_equal(w.heat.code[2], ATTN__MASKED);
    attn__heat_free(&w.heat);
}

/* A masked NaN is no NaN of the picture. */
UNIT(what_is_masked_is_not_looked_at)
{
    const float values[4] = {1, NAN, INFINITY, 2};
    const unsigned char shown[4] = {1, 0, 0, 1};
    world w;

    begin(&w, f32(values, 2, 2),
          attn_in_dense(shown, ATTN_BOOL, 2, (int64_t[]){2, 2}));
    look(&w);
    assert_false(w.range.any_nan);
    assert_true(w.range.low == 1 && w.range.high == 2);
    attn__heat_free(&w.heat);
}

UNIT(infinities_have_the_colors_of_the_ends)
{
    const float values[4] = {-INFINITY, 1, 3, INFINITY};
    const attn__fit rows = {1, 1, 1}, columns = {4, 1, 1};
    world w;

    begin(&w, f32(values, 1, 4), none);
    look(&w);
    assert_true(w.range.low == 1 && w.range.high == 3);
    attn__heat_row(&w.heat, &w.panel, rows, columns, &w.range, 0);
    assert_int_equal(w.heat.code[0], 0);
    assert_int_equal(w.heat.code[1], 0);
    assert_int_equal(w.heat.code[2], 255);
    assert_int_equal(w.heat.code[3], 255);
    attn__heat_free(&w.heat);
}

static attn__range range_of(const double *values, int64_t n, double low,
                            double high, attn_shades shades)
{
    world w;

    begin(&w, attn_in_dense(values, ATTN_F64, 2, (int64_t[]){1, n}), none);
    w.figure.low = low;
    w.figure.high = high;
    w.figure.shades = shades;
    look(&w);
    attn__heat_free(&w.heat);
    assert_true(w.range.low < w.range.high);
    assert_true(isfinite(w.range.low) && isfinite(w.range.high));
    return w.range;
}

UNIT(a_range_is_never_empty)
{
    static const double cases[][2] = {
        {0, 0},      {5, 5},       {-3, -3},       {1e300, 1e300},
        {NAN, NAN},  {INFINITY, INFINITY}, {-1e308, 1e308}, {5e-324, 5e-324}};

    for (size_t i = 0; i < COUNT(cases); i++)
        for (int shades = 0; shades < 2; shades++) {
            const attn__range r = range_of(cases[i], 2, NAN, NAN,
                                           (attn_shades)shades);

            assert_true(attn__range_part(&r, r.low) == 0);
            assert_true(attn__range_part(&r, r.high) == 1);
        }
    assert_true(range_of((double[]){1, 2}, 2, 3, NAN, 0).low == 3);
    assert_true(range_of((double[]){1, 2}, 2, NAN, -5, 0).low < 0 ||
                range_of((double[]){1, 2}, 2, NAN, -5, 0).low == 1);
}

UNIT(a_given_range_is_kept)
{
    const attn__range r = range_of((double[]){1, 2}, 2, -1, 8, 0);

    assert_true(r.low == -1 && r.high == 8);
    assert_true(attn__range_part(&r, 3.5) == 0.5);
}

/* The largest doubles don't overflow on the way. */
UNIT(parts_of_a_huge_range)
{
    const attn__range r = range_of((double[]){-1.7e308, 1.7e308}, 2, NAN, NAN,
                                   0);

    assert_true(attn__range_part(&r, 0) == 0.5);
    assert_true(attn__range_part(&r, 1.7e308) == 1);
}

/* A span is made where there is none, and its ends stay finite. */
UNIT(ends_of_no_range)
{
    const double most[] = {DBL_MAX, DBL_MAX}, least[] = {5e-324, 5e-324};
    const attn__range far = range_of(most, 2, NAN, NAN, 0);
    const attn__range near = range_of(least, 2, NAN, NAN, ATTN_SHADES_LOG);
    const attn__range above = range_of(least, 2, 1e308, NAN, ATTN_SHADES_LOG);

    assert_true(far.low < far.high && far.high == DBL_MAX);
    assert_true(near.low == 5e-324 && near.high == 10 * 5e-324);
    assert_true(above.low < above.high && isfinite(above.high));
}

/* Half of the least double is 0. */
UNIT(parts_of_the_least_range)
{
    const attn__range r = {.low = 0, .high = 5e-324};
    const attn__range below = {.low = -5e-324, .high = 0};

    assert_true(attn__range_part(&r, 0) == 0);
    assert_true(attn__range_part(&r, 5e-324) == 1);
    assert_true(attn__range_part(&below, -5e-324) == 0);
    assert_true(attn__range_part(&below, 0) == 1);
}

UNIT(logarithms_have_five_decades_and_no_zero)
{
    const double values[] = {0, 1e-9, 0.01, 1, -4};
    const attn__range r = range_of(values, 5, NAN, NAN, ATTN_SHADES_LOG);

    assert_true(r.high == 1);
    assert_true(fabs(r.low - 1e-5) < 1e-20);
    assert_true(attn__range_part(&r, 0) == 0);
    assert_true(attn__range_part(&r, -4) == 0);
    assert_true(attn__range_part(&r, 1e-9) == 0);
    assert_true(fabs(attn__range_part(&r, 0.01) - 0.6) < 1e-12);
    /* Without anything positive there is still a range. */
    assert_true(range_of((double[]){-1, 0}, 2, NAN, NAN, ATTN_SHADES_LOG).high
                == 1);
}

/* The same numbers in every type and order of axes. */
UNIT(types_and_strides_make_no_difference)
{
    enum { R = 3, C = 5 };
    double wide[R * C], turned[C * R];
    float single[R * C];
    uint16_t b[R * C], h[R * C];
    attn_input inputs[6];
    world w;

    for (int k = 0; k < R * C; k++) {
        wide[k] = k * 0.25;
        turned[k % C * R + k / C] = wide[k];
        single[k] = (float)wide[k];
        b[k] = attn__bf16_of_f32(single[k]);
        h[k] = attn__f16_of_f32(single[k]);
    }
    inputs[0] = attn_in_dense(wide, ATTN_F64, 2, (int64_t[]){R, C});
    inputs[1] = f32(single, R, C);
    inputs[2] = attn_in_dense(b, ATTN_BF16, 2, (int64_t[]){R, C});
    inputs[3] = attn_in_dense(h, ATTN_F16, 2, (int64_t[]){R, C});
    inputs[4] = (attn_input){turned, ATTN_F64, 2, {R, C}, {1, R}};
    inputs[5] = (attn_input){wide + R * C - 1, ATTN_F64, 2, {R, C}, {-C, -1}};
    for (size_t i = 0; i < COUNT(inputs); i++) {
        const attn__fit rows = {R, 1, 1}, columns = {C, 1, 1};

        begin(&w, inputs[i], none);
        look(&w);
        for (int64_t r = 0; r < R; r++) {
            attn__heat_row(&w.heat, &w.panel, rows, columns, &w.range, r);
            for (int64_t c = 0; c < C; c++) {
                const int64_t k = r * C + c;

                assert_true(w.heat.value[c] ==
                            wide[i == 5 ? R * C - 1 - k : k]);
            }
        }
        attn__heat_free(&w.heat);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_hot_cell_of_many_stays),
        cmocka_unit_test(every_cell_is_in_one_unit),
        cmocka_unit_test(nan_shows_and_masked_cells_do_not),
        cmocka_unit_test(what_is_masked_is_not_looked_at),
        cmocka_unit_test(infinities_have_the_colors_of_the_ends),
        cmocka_unit_test(a_range_is_never_empty),
        cmocka_unit_test(a_given_range_is_kept),
        cmocka_unit_test(parts_of_a_huge_range),
        cmocka_unit_test(ends_of_no_range),
        cmocka_unit_test(parts_of_the_least_range),
        cmocka_unit_test(logarithms_have_five_decades_and_no_zero),
        cmocka_unit_test(types_and_strides_make_no_difference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
