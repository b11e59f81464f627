/* SPDX-License-Identifier: Apache-2.0
 *
 * Colours: even steps, one direction of lightness, and enough contrast. */
#include "picture/colormap.h"

#include <math.h>

#include "../unit.h"

static const attn_theme themes[] = {ATTN_THEME_LIGHT, ATTN_THEME_DARK};

/* The relative luminance of WCAG 2. */
static double luminance(uint32_t color)
{
    static const double share[] = {0.2126, 0.7152, 0.0722};
    double sum = 0;

    for (int i = 0; i < 3; i++) {
        const double c = (double)(color >> (16 - 8 * i) & 0xff) / 255;

        sum += share[i] *
               (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast(uint32_t a, uint32_t b)
{
    const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;

    return x > y ? x / y : y / x;
}

/* How far in Oklab a colour may lie from where it was meant to be: half a step
 * of each of its bytes. */
static double rounding(uint32_t color)
{
    double sum = 0;

    for (int shift = 0; shift < 24; shift += 8) {
        const uint32_t byte = color >> shift & 0xff;
        const uint32_t other = byte < 255 ? color + (UINT32_C(1) << shift)
                                          : color - (UINT32_C(1) << shift);

        sum += 0.5 * attn__color_distance(color, other);
    }
    return sum;
}

UNIT(known_colors_have_their_lightness)
{
    /* Oklab's own white and black, and the red of Ottosson's table. */
    assert_true(fabs(attn__lightness(0xffffff) - 1) < 1e-4);
    assert_true(fabs(attn__lightness(0x000000)) < 1e-4);
    assert_true(fabs(attn__lightness(0xff0000) - 0.628) < 1e-3);
}

UNIT(lightness_runs_one_way)
{
    for (size_t t = 0; t < COUNT(themes); t++) {
        const double sign = themes[t] == ATTN_THEME_LIGHT ? -1 : 1;
        attn__colors c;

        attn__colors_of(themes[t], &c);
        for (int i = 2; i < ATTN__LEVELS; i++)
            assert_true(sign * (attn__lightness(c.level[i]) -
                                attn__lightness(c.level[i - 2])) > 0);
    }
}

/* Eight levels are longer than the rounding of their ends to bytes. */
UNIT(steps_are_even)
{
    for (size_t t = 0; t < COUNT(themes); t++) {
        double mean = 0;
        attn__colors c;

        attn__colors_of(themes[t], &c);
        for (int i = 0; i + 8 < ATTN__LEVELS; i++)
            mean += attn__color_distance(c.level[i], c.level[i + 8]) /
                    (ATTN__LEVELS - 8);
        for (int i = 0; i + 8 < ATTN__LEVELS; i++) {
            const double step = attn__color_distance(c.level[i],
                                                     c.level[i + 8]);
            /* A chord is shorter than its path: 1 - angle^2 / 24 of it, and in
             * eight levels hue turns by 6 degrees. The path is cut into 1024
             * pieces, so a level may lie one piece, a quarter level, off. */
            const double slack = rounding(c.level[i]) +
                                 rounding(c.level[i + 8]) +
                                 mean * (0.001 + 2 * 0.25 / 8);

            assert_true(fabs(step - mean) <= slack);
        }
    }
}

UNIT(zero_is_the_page_and_one_is_not)
{
    for (size_t t = 0; t < COUNT(themes); t++) {
        attn__colors c;

        attn__colors_of(themes[t], &c);
        assert_true(attn__color_distance(c.page, c.level[0]) < 0.06);
        assert_true(attn__color_distance(c.page, c.level[255]) > 0.6);
    }
}

/* 0.02 is what the eye just tells apart. */
UNIT(what_is_no_number_is_no_level)
{
    for (size_t t = 0; t < COUNT(themes); t++) {
        attn__colors c;

        attn__colors_of(themes[t], &c);
        for (int i = 0; i < ATTN__LEVELS; i++) {
            assert_true(attn__color_distance(c.nan, c.level[i]) > 0.1);
            assert_true(attn__color_distance(c.hatch, c.level[i]) > 0.02);
            assert_true(attn__color_distance(c.masked, c.level[i]) > 0.01);
        }
        assert_true(attn__color_distance(c.masked, c.hatch) > 0.05);
    }
}

/* WCAG: 7 for text, 4.5 for what explains it. */
UNIT(text_can_be_read)
{
    for (size_t t = 0; t < COUNT(themes); t++) {
        attn__colors c;

        attn__colors_of(themes[t], &c);
        assert_true(contrast(c.page, c.ink) > 7);
        assert_true(contrast(c.page, c.faint) > 4.5);
        for (int i = 0; i < ATTN__LEVELS; i++)
            assert_true(contrast(c.level[i], attn__ink_on(c.level[i])) > 4.5);
        assert_true(contrast(c.nan, attn__ink_on(c.nan)) > 4.5);
    }
}

UNIT(curves_are_told_apart)
{
    for (size_t t = 0; t < COUNT(themes); t++)
        for (int n = 1; n <= 12; n++)
            for (int i = 0; i < n; i++)
                for (int j = 0; j < i; j++)
                    assert_true(attn__color_distance(
                                    attn__curve_color(themes[t], i, n),
                                    attn__curve_color(themes[t], j, n)) >
                                0.08);
}

UNIT(blending_runs_from_one_to_the_other)
{
    assert_int_equal(attn__blend(0x102030, 0xffeedd, 0), 0x102030);
    assert_int_equal(attn__blend(0x102030, 0xffeedd, 1), 0xffeedd);
    assert_int_equal(attn__blend(0x000000, 0xff8040, 0.5f), 0x804020);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_colors_have_their_lightness),
        cmocka_unit_test(lightness_runs_one_way),
        cmocka_unit_test(steps_are_even),
        cmocka_unit_test(zero_is_the_page_and_one_is_not),
        cmocka_unit_test(what_is_no_number_is_no_level),
        cmocka_unit_test(text_can_be_read),
        cmocka_unit_test(curves_are_told_apart),
        cmocka_unit_test(blending_runs_from_one_to_the_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
