/* SPDX-License-Identifier: Apache-2.0
 *
 * Letters: that all are there, stay in their place, and that no text hurts. */
#include "picture/font.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

static const attn__pen pen = {.right_x = 1, .scale = 0.5, .radius = 0.5};

static attn__strokes strokes_of(const char *text)
{
    attn__strokes s = {NULL, 0, 0};

    assert_int_equal(attn__text_strokes(text, pen, &s), ATTN_OK);
    return s;
}

static bool same(const char *a, const char *b)
{
    attn__strokes x = strokes_of(a), y = strokes_of(b);
    const bool equal =
        x.n == y.n && memcmp(x.at, y.at, x.n * sizeof *x.at) == 0;

    attn__strokes_free(&x);
    attn__strokes_free(&y);
    return equal;
}

UNIT(every_printable_character_has_its_own_glyph)
{
    for (int c = ' '; c < 127; c++)
        for (int d = ' '; d < c; d++) {
            const char a[2] = {(char)c, 0}, b[2] = {(char)d, 0};

            assert_false(same(a, b));
        }
    for (int c = '!'; c < 127; c++)
        assert_false(same((const char[]){(char)c, 0}, "\xef\xbf\xbd"));
}

/* Between the lines, and within the advance. */
UNIT(glyphs_stay_in_their_place)
{
    for (int i = 0; i < attn__n_glyphs; i++) {
        const attn__glyph *g = &attn__glyphs[i];
        char text[5] = {0};
        attn__strokes s;

        if (g->point >= 0x80)
            continue;
        text[0] = (char)g->point;
        s = strokes_of(text);
        for (size_t k = 0; k < s.n; k++) {
            assert_true(fmin(s.at[k].x0, s.at[k].x1) >= -0.5);
            assert_true(fmax(s.at[k].x0, s.at[k].x1) <= g->advance / 2.0 - 1.5);
            assert_true(fmin(s.at[k].y0, s.at[k].y1) >= -9);
            assert_true(fmax(s.at[k].y0, s.at[k].y1) <= 3);
        }
        attn__strokes_free(&s);
    }
}

UNIT(glyphs_and_letters_are_listed_once)
{
    for (int i = 1; i < attn__n_glyphs; i++)
        assert_true(attn__glyphs[i - 1].point < attn__glyphs[i].point);
    for (int i = 1; i < attn__n_accented; i++)
        assert_true(attn__accented_letters[i - 1].point <
                    attn__accented_letters[i].point);
    for (int i = 1; i < attn__n_folded; i++)
        assert_true(attn__folded_letters[i - 1].point <
                    attn__folded_letters[i].point);
}

UNIT(letters_are_told_from_their_accented_kin)
{
    assert_false(same("e", "\xc3\xa9"));         /* e with acute */
    assert_false(same("\xc3\xa8", "\xc3\xa9"));  /* grave and acute */
    assert_false(same("G", "\xc4\xa0"));         /* GPT-2's space */
    assert_true(attn__text_width("e", 12) ==
                attn__text_width("\xc3\xa9", 12));
    assert_true(same("ss", "\xc3\x9f"));         /* written with others */
    assert_true(same("\"", "\xe2\x80\x9c"));
}

UNIT(what_has_no_glyph_is_a_box)
{
    static const char *const boxes[] = {
        "\xe6\x97\xa5", /* U+65E5 */
        "\xf0\x9f\x98\x80", /* U+1F600 */
        "\xff", "\x80", "\xc3", "\n", "\x1b", "\x7f", &"\xed\xa0\x80"[2]};

    for (size_t i = 0; i < COUNT(boxes); i++)
        assert_true(same(boxes[i], "\xef\xbf\xbd"));
    /* Each byte of what is not UTF-8 is one. */
    assert_true(same("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"));
    /* Marks and joiners take no room. */
    assert_true(same("ab", "a\xcc\x81\xe2\x80\x8d" "b"));
}

UNIT(width_is_that_of_the_strokes)
{
    static const char *const texts[] = {"o", "animal", "HHH", "0.25", "|"};

    for (size_t i = 0; i < COUNT(texts); i++) {
        attn__strokes s = strokes_of(texts[i]);
        double right = 0;

        for (size_t k = 0; k < s.n; k++)
            right = fmax(right, fmax(s.at[k].x0, s.at[k].x1));
        /* Advances are even, ends of letters may be odd: two units. */
        assert_true(fabs(attn__text_width(texts[i], 12) - right) <= 1);
        assert_true(fabs(attn__text_width(texts[i], 24) -
                         2 * attn__text_width(texts[i], 12)) < 1e-9);
        attn__strokes_free(&s);
    }
    assert_true(attn__text_width("", 12) == 0);
}

/* Linear in its length: quadratic would take minutes. */
UNIT(a_megabyte_is_measured_at_once)
{
    const size_t n = 1 << 20;
    char *text = malloc(n + 1);

    assert_non_null(text);
    memset(text, 'm', n);
    text[n] = '\0';
    assert_true(attn__text_width(text, 12) > 9e6);
    free(text);
}

UNIT(turned_text_runs_upwards)
{
    const attn__pen up = {.right_y = -1, .scale = 0.5, .radius = 0.5};
    attn__strokes s = {NULL, 0, 0};

    assert_int_equal(attn__text_strokes("l", up, &s), ATTN_OK);
    assert_int_equal(s.n, 1);
    /* The stem of the l lies on its side, to the left. */
    assert_true(s.at[0].y0 == 0 && s.at[0].y1 == 0);
    assert_true(fmin(s.at[0].x0, s.at[0].x1) == -8);
    attn__strokes_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_printable_character_has_its_own_glyph),
        cmocka_unit_test(glyphs_stay_in_their_place),
        cmocka_unit_test(glyphs_and_letters_are_listed_once),
        cmocka_unit_test(letters_are_told_from_their_accented_kin),
        cmocka_unit_test(what_has_no_glyph_is_a_box),
        cmocka_unit_test(width_is_that_of_the_strokes),
        cmocka_unit_test(a_megabyte_is_measured_at_once),
        cmocka_unit_test(turned_text_runs_upwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
