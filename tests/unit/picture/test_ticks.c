/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as text, and round numbers on any axis. */
#include "picture/ticks.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

UNIT(numbers_are_written_with_a_point)
{
    static const struct {
        double value;
        int decimals;
        const char *text;
    } cases[] = {
        {0, 0, "0"},          {0, 2, "0.00"},      {1, 0, "1"},
        {-1, 0, "-1"},        {0.5, 2, "0.50"},    {-0.5, 1, "-0.5"},
        {0.05, 2, "0.05"},    {0.995, 2, "1.00"},  {-0.001, 2, "0.00"},
        {-0.0, 1, "0.0"},     {12345.678, 1, "12345.7"}, {1e6, 0, "1000000"},
        {3e-7, -1, "3e-7"},   {1.5e-7, -1, "1.5e-7"}, {-2e10, -1, "-2e10"},
        {9.99e5, -1, "1e6"},  {1e300, 2, "1e300"}, {0, -1, "0"},
        {5e-324, -1, "4.9e-324"}, {DBL_MAX, 3, "1.8e308"},
        {NAN, 2, "NaN"},      {INFINITY, 2, "inf"}, {-INFINITY, 0, "-inf"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[ATTN__NUMBER_SIZE];

        attn__format(text, cases[i].value, cases[i].decimals);
        assert_string_equal(text, cases[i].text);
    }
}

/* Against the C library, whose locale here has a point. */
UNIT(fixed_numbers_are_those_of_printf)
{
    for (int i = -2000; i < 2000; i++)
        for (int decimals = 0; decimals < 5; decimals++) {
            /* Odd 64ths are never halfway between two short decimals, but for
             * few decimals some are: there both roundings are right. */
            const double value = i * 0.37 + 0.001953125;
            char ours[ATTN__NUMBER_SIZE], theirs[64];

            attn__format(ours, value, decimals);
            snprintf(theirs, sizeof theirs, "%.*f", decimals, value);
            if (strcmp(theirs + (*theirs == '-'), "0") == 0 ||
                strtod(theirs, NULL) == 0)
                continue;
            assert_string_equal(ours, theirs);
        }
}

UNIT(known_ticks)
{
    const attn__ticks t = attn__ticks_of(0, 1, 7);

    assert_int_equal(t.first, 0);
    assert_int_equal(t.n, 6);
    assert_true(fabs(t.step - 0.2) < 1e-12);
    assert_int_equal(t.decimals, 1);
    assert_int_equal(attn__ticks_of(-4.4, 5.5, 7).first, -2);
    assert_int_equal(attn__ticks_of(0, 0.1, 6).decimals, 2);
    assert_int_equal(attn__ticks_of(0, 1e9, 6).decimals, -1);
}

static void check_ticks(double low, double high, int most)
{
    const attn__ticks t = attn__ticks_of(low, high, most);
    const double power = pow(10, floor(log10(t.step) + 1e-9));
    const double lead = t.step / power;

    assert_true(t.n >= 0 && t.n <= most);
    assert_true(fabs(lead - 1) < 1e-6 || fabs(lead - 2) < 1e-6 ||
                fabs(lead - 5) < 1e-6);
    if (t.n > 0) {
        assert_true((double)t.first * t.step >= low - 1e-6 * t.step);
        assert_true((double)(t.first + t.n - 1) * t.step <=
                    high + 1e-6 * t.step);
    }
}

UNIT(ticks_are_round_few_and_inside)
{
    uint32_t seed = 7;

    for (int i = 0; i < 20000; i++) {
        double low, span;

        seed = seed * 1664525u + 1013904223u;
        low = ((double)(seed >> 8) / 0x1p24 - 0.5) * pow(10, seed % 9);
        seed = seed * 1664525u + 1013904223u;
        span = (0.01 + (double)(seed >> 8) / 0x1p24) * pow(10, seed % 9 - 4.0);
        check_ticks(low, low + span, 2 + (int)(seed % 9));
    }
}

UNIT(ticks_of_extreme_ranges_end)
{
    check_ticks(-DBL_MAX, DBL_MAX, 7);
    check_ticks(0, DBL_MIN, 7);
    check_ticks(0, 5e-324, 7);
    check_ticks(1e300, 1.0000001e300, 7);
    check_ticks(1, nextafter(1, 2), 7);
    check_ticks(1e17, 1e17 + 64, 5);
}

UNIT(steps_of_indices_are_round)
{
    static const struct {
        double least;
        int64_t step;
    } cases[] = {{0, 1},     {1, 1},     {1.1, 2},   {2, 2},
                 {2.5, 5},   {5.1, 10},  {99, 100},  {100, 100},
                 {101, 200}, {1e9, 1000000000}};

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(attn__round_step(cases[i].least), cases[i].step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_with_a_point),
        cmocka_unit_test(fixed_numbers_are_those_of_printf),
        cmocka_unit_test(known_ticks),
        cmocka_unit_test(ticks_are_round_few_and_inside),
        cmocka_unit_test(ticks_of_extreme_ranges_end),
        cmocka_unit_test(steps_of_indices_are_round),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
