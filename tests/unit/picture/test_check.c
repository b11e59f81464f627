/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rule of a figure, broken one at a time. */
#include "picture/check.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../unit.h"

static float values[12];
static unsigned char bools[12];
static const char *labels[4] = {"a", "b", "c", "d"};
static const char *holes[4] = {"a", NULL, "c", "d"};

/* A figure of one map and one plot, to be broken. */
typedef struct case_of {
    attn_figure figure;
    attn_panel panels[2];
    attn_curve curve;
} case_of;

static void make(case_of *c)
{
    const int64_t n = 4;

    memset(c, 0, sizeof *c);
    c->panels[0].values = attn_in_dense(values, ATTN_F32, 2,
                                        (int64_t[]){3, 4});
    c->curve.values = attn_in_dense(values, ATTN_F32, 1, &n);
    c->panels[1].curves = &c->curve;
    c->panels[1].n_curves = 1;
    attn_figure_init(&c->figure, c->panels, 2);
}

#define BREAK(name, change)                                                   \
    static void name(case_of *c)                                              \
    {                                                                         \
        change;                                                               \
    }
#define SHAPE(...) (int64_t[]){__VA_ARGS__}

BREAK(size, c->figure.size = 8)
BREAK(theme, *(int *)&c->figure.theme = 7)
BREAK(shades, *(int *)&c->figure.shades = 7)
BREAK(no_panels, c->figure.n_panels = 0)
BREAK(negative_panels, c->figure.n_panels = -1)
BREAK(many_panels, c->figure.n_panels = 4097)
BREAK(null_panels, c->figure.panels = NULL)
BREAK(columns, c->figure.columns = -1)
BREAK(cell_negative, c->figure.cell = -1)
BREAK(cell_large, c->figure.cell = 513)
BREAK(density, c->figure.density = 5)
BREAK(low_infinite, c->figure.low = -INFINITY)
BREAK(high_infinite, c->figure.high = INFINITY)
BREAK(high_below, (c->figure.low = 1, c->figure.high = 1))
BREAK(log_low, (c->figure.shades = ATTN_SHADES_LOG, c->figure.low = 0))
BREAK(log_high, (c->figure.shades = ATTN_SHADES_LOG, c->figure.high = -1))
BREAK(first_row, c->panels[0].first_row = INT64_MAX)
BREAK(first_column, c->panels[0].first_column = INT64_MIN)
BREAK(n_curves, c->panels[0].n_curves = -1)
BREAK(no_curves, c->panels[1].curves = NULL)
BREAK(absent, c->panels[0].values.dtype = ATTN_NONE)
BREAK(integers, c->panels[0].values.dtype = ATTN_I32)
BREAK(vector, c->panels[0].values.rank = 1)
BREAK(no_rows, c->panels[0].values.shape[0] = 0)
BREAK(no_columns, c->panels[0].values.shape[1] = 0)
BREAK(negative_rows, c->panels[0].values.shape[0] = -3)
BREAK(wraps, (c->panels[0].values.shape[0] = INT64_MAX / 4,
              c->panels[0].values.stride[0] = 1 << 20))
BREAK(null_values, c->panels[0].values.data = NULL)
BREAK(shown_type, c->panels[0].shown = c->panels[0].values)
BREAK(shown_shape, c->panels[0].shown = attn_in_dense(bools, ATTN_BOOL, 2,
                                                      SHAPE(4, 3)))
BREAK(shown_null, c->panels[0].shown = attn_in_dense(NULL, ATTN_BOOL, 2,
                                                     SHAPE(3, 4)))
BREAK(row_label, c->panels[0].row_labels = holes)
BREAK(column_label, c->panels[0].column_labels = holes)
BREAK(curve_label, c->panels[1].column_labels = holes)
BREAK(curve_rank, c->curve.values.rank = 2)
BREAK(curve_type, c->curve.values.dtype = ATTN_BOOL)
BREAK(curve_empty, c->curve.values.shape[0] = 0)

static const struct {
    void (*change)(case_of *c);
    attn_status status;
    const char *field;
} rules[] = {
    {size, ATTN_E_ARG, "size"},
    {theme, ATTN_E_ARG, "theme"},
    {shades, ATTN_E_ARG, "shades"},
    {no_panels, ATTN_E_ARG, "n_panels"},
    {negative_panels, ATTN_E_ARG, "n_panels"},
    {many_panels, ATTN_E_LIMIT, "n_panels"},
    {null_panels, ATTN_E_ARG, "panels"},
    {columns, ATTN_E_ARG, "columns"},
    {cell_negative, ATTN_E_ARG, "cell"},
    {cell_large, ATTN_E_ARG, "cell"},
    {density, ATTN_E_ARG, "density"},
    {low_infinite, ATTN_E_ARG, "low"},
    {high_infinite, ATTN_E_ARG, "high"},
    {high_below, ATTN_E_ARG, "high"},
    {log_low, ATTN_E_ARG, "low"},
    {log_high, ATTN_E_ARG, "high"},
    {first_row, ATTN_E_ARG, "first_row"},
    {first_column, ATTN_E_ARG, "first_column"},
    {n_curves, ATTN_E_ARG, "n_curves"},
    {no_curves, ATTN_E_ARG, "curves"},
    {absent, ATTN_E_DTYPE, "values"},
    {integers, ATTN_E_DTYPE, "values"},
    {vector, ATTN_E_SHAPE, "values"},
    {no_rows, ATTN_E_SHAPE, "values"},
    {no_columns, ATTN_E_SHAPE, "values"},
    {negative_rows, ATTN_E_SHAPE, "values"},
    {wraps, ATTN_E_OVERFLOW, "values"},
    {null_values, ATTN_E_ARG, "values"},
    {shown_type, ATTN_E_DTYPE, "shown"},
    {shown_shape, ATTN_E_SHAPE, "shown"},
    {shown_null, ATTN_E_ARG, "shown"},
    {row_label, ATTN_E_ARG, "row_labels"},
    {column_label, ATTN_E_ARG, "column_labels"},
    {curve_label, ATTN_E_ARG, "column_labels"},
    {curve_rank, ATTN_E_SHAPE, "curves"},
    {curve_type, ATTN_E_DTYPE, "curves"},
    {curve_empty, ATTN_E_SHAPE, "curves"},
};

UNIT(the_figure_itself_is_right)
{
    case_of c;

    make(&c);
    assert_int_equal(attn__check_figure(&c.figure, NULL), ATTN_OK);
    c.panels[0].row_labels = c.panels[0].column_labels = labels;
    assert_int_equal(attn__check_figure(&c.figure, NULL), ATTN_OK);
}

/* Through every public function, which gives nothing. */
UNIT(every_rule_is_asked_for)
{
    for (size_t i = 0; i < COUNT(rules); i++) {
        case_of c;
        attn_diag diag;
        void *data = &c;
        size_t size = 1;
        int64_t width, height;

        make(&c);
        rules[i].change(&c);
        assert_int_equal(attn__check_figure(&c.figure, &diag),
                         rules[i].status);
        assert_string_equal(diag.field, rules[i].field);
        assert_true(diag.message[0] != '\0');
        assert_int_equal(attn_figure_png(&c.figure, &data, &size, NULL),
                         rules[i].status);
        assert_null(data);
        assert_int_equal(attn_figure_svg(&c.figure, &data, &size, NULL),
                         rules[i].status);
        assert_null(data);
        assert_int_equal(attn_figure_measure(&c.figure, &width, &height, NULL),
                         rules[i].status);
    }
}

UNIT(no_pointer_may_be_missing)
{
    case_of c;
    void *data;
    size_t size;
    int64_t n;

    make(&c);
    assert_int_equal(attn__check_figure(NULL, NULL), ATTN_E_ARG);
    assert_int_equal(attn_figure_png(&c.figure, NULL, &size, NULL),
                     ATTN_E_ARG);
    assert_int_equal(attn_figure_svg(&c.figure, &data, NULL, NULL),
                     ATTN_E_ARG);
    assert_null(data);
    assert_int_equal(attn_figure_write_png(&c.figure, NULL, NULL), ATTN_E_ARG);
    assert_int_equal(attn_figure_measure(&c.figure, &n, NULL, NULL),
                     ATTN_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_figure_itself_is_right),
        cmocka_unit_test(every_rule_is_asked_for),
        cmocka_unit_test(no_pointer_may_be_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
