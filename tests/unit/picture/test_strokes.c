/* SPDX-License-Identifier: Apache-2.0
 *
 * Coverage of dots by lines with round ends. */
#include "picture/strokes.h"

#include <math.h>
#include <string.h>

#include "../unit.h"

enum { WIDTH = 40, HEIGHT = 30 };

/* The sum of the coverage of every dot, which is the area that is inked. */
static double area(attn__stroke s, float picture[HEIGHT][WIDTH])
{
    double sum = 0;

    for (int64_t y = 0; y < HEIGHT; y++) {
        int64_t from = WIDTH, to = 0;

        memset(picture[y], 0, sizeof picture[y]);
        attn__stroke_cover(&s, y, WIDTH, picture[y], &from, &to);
        for (int64_t x = 0; x < WIDTH; x++) {
            assert_true(picture[y][x] >= 0 && picture[y][x] <= 1);
            if (picture[y][x] > 0)
                assert_true(x >= from && x < to);
            sum += (double)picture[y][x];
        }
    }
    return sum;
}

UNIT(a_bar_of_one_dot_fills_its_row)
{
    const attn__stroke bar = {5.5f, 10.5f, 20.5f, 10.5f, 0.5f};
    float p[HEIGHT][WIDTH];

    /* 15 long, one thick, and two half discs whose dots are all or nothing. */
    assert_true(area(bar, p) == 16);
    for (int x = 5; x <= 20; x++)
        assert_true(p[10][x] == 1);
    assert_true(p[9][10] == 0 && p[11][10] == 0);
}

UNIT(a_disc_has_its_area)
{
    for (int r = 2; r < 12; r++) {
        const attn__stroke disc = {20.2f, 15.3f, 20.2f, 15.3f, (float)r};
        float p[HEIGHT][WIDTH];
        /* On each of the 2 pi r dots of the edge the distance stands for the
         * area, which errs by at most 1/8 at the worst angle. */
        const double most = 2 * 3.14159265 * r / 8;

        assert_true(fabs(area(disc, p) - 3.14159265 * r * r) < most);
    }
}

UNIT(a_slanted_line_has_its_area)
{
    const attn__stroke line = {8, 5, 30, 22, 2};
    const double length = sqrt(22 * 22 + 17 * 17);
    float p[HEIGHT][WIDTH];
    const double want = 4 * length + 3.14159265 * 4;

    assert_true(fabs(area(line, p) - want) < 2 * length / 8);
}

UNIT(nothing_is_written_beside_the_row)
{
    static const attn__stroke beyond[] = {
        {-9, 4, -3, 4, 1},    {50, 4, 60, 4, 1},  {-5, 4, 60, 4, 1},
        {3, -20, 3, -10, 2},  {3, 90, 3, 91, 2},  {-1e9f, 3, 1e9f, 3, 1},
        {39.9f, 4, 39.9f, 4, 1}, {0, 0, 0, 0, 1},
    };

    for (size_t i = 0; i < COUNT(beyond); i++)
        for (int64_t y = 0; y < HEIGHT; y++) {
            float row[WIDTH + 2] = {0};
            int64_t from = WIDTH, to = 0;

            row[0] = row[WIDTH + 1] = -1;
            attn__stroke_cover(&beyond[i], y, WIDTH, row + 1, &from, &to);
            assert_true(row[0] == -1 && row[WIDTH + 1] == -1);
            assert_true(from >= 0 && to <= WIDTH);
        }
}

UNIT(coverage_is_the_most_of_all_strokes)
{
    const attn__stroke one = {5.5f, 0.5f, 9.5f, 0.5f, 0.5f};
    float row[WIDTH] = {0};
    int64_t from = WIDTH, to = 0;

    attn__stroke_cover(&one, 0, WIDTH, row, &from, &to);
    attn__stroke_cover(&one, 0, WIDTH, row, &from, &to);
    assert_true(row[7] == 1);
    assert_int_equal(from <= 5, 1);
    assert_int_equal(to >= 10, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bar_of_one_dot_fills_its_row),
        cmocka_unit_test(a_disc_has_its_area),
        cmocka_unit_test(a_slanted_line_has_its_area),
        cmocka_unit_test(nothing_is_written_beside_the_row),
        cmocka_unit_test(coverage_is_the_most_of_all_strokes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
