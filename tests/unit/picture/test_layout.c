/* SPDX-License-Identifier: Apache-2.0
 *
 * Where things are put: no two texts on each other, nothing outside, labels
 * cut where they are too long. */
#include "picture/sheet.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "picture/font.h"
#include "picture/labels.h"
#include "pictures.h"

typedef struct box {
    double left, right, top, bottom;
} box;

/* What a text covers, from the top of its capitals to the baseline. */
static box box_of(const attn__item *item)
{
    const double w = attn__text_width(item->text, item->size);
    const double h = ATTN__CAP_HEIGHT * item->size / ATTN__TEXT_SIZE;
    const double back = item->anchor == ATTN__START    ? 0
                        : item->anchor == ATTN__MIDDLE ? w / 2
                                                       : w;

    if (item->turned)
        return (box){item->x - h, item->x, item->y + back - w, item->y + back};
    return (box){item->x - back, item->x - back + w, item->y - h, item->y};
}

static bool overlap(box a, box b)
{
    return a.left < b.right && b.left < a.right && a.top < b.bottom &&
           b.top < a.bottom;
}

/* Texts don't cover each other, and everything is in the picture. */
static void check_scene(const attn__sheet *sheet)
{
    for (size_t i = 0; i < sheet->n; i++) {
        const attn__item *item = &sheet->items[i];
        box b = {item->x, item->x + item->width, item->y,
                 item->y + item->height};

        if (item->kind == ATTN__TEXT)
            b = box_of(item);
        assert_true(b.left >= 0 && b.right <= (double)sheet->width);
        assert_true(b.top >= 0 && b.bottom <= (double)sheet->height);
        for (size_t j = 0; j < i && item->kind == ATTN__TEXT; j++)
            if (sheet->items[j].kind == ATTN__TEXT &&
                overlap(b, box_of(&sheet->items[j])))
                fail_msg("\"%s\" lies on \"%s\"", item->text,
                         sheet->items[j].text);
    }
}

static void check_figure(const attn_figure *figure)
{
    attn__sheet sheet;

    assert_int_equal(attn__lay_out(figure, 1, &sheet, NULL), ATTN_OK);
    check_scene(&sheet);
    attn__sheet_free(&sheet);
}

UNIT(samples_are_laid_out_cleanly)
{
    for (int i = 0; i < N_SAMPLES; i++) {
        sample s = make_sample(i);

        check_figure(&s.figure);
        drop_sample(&s);
    }
}

/* Every size up to 300, and some of the large ones; labels or none. */
UNIT(texts_keep_apart_at_every_size)
{
    static float values[1100 * 1100];
    const char *labels[1100];
    const int64_t sizes[] = {333, 399, 400, 401, 512, 600, 601, 999, 1100};

    for (int i = 0; i < 1100; i++)
        labels[i] = words[i % 16];
    for (int64_t n = 1; n < 300 + (int64_t)COUNT(sizes); n += n < 40 ? 1 : 7) {
        const int64_t size = n < 300 ? n : sizes[n - 300];
        attn_panel panels[4];
        attn_figure figure;

        for (int p = 0; p < 4; p++)
            panels[p] = (attn_panel){
                .title = "head",
                .values = attn_in_dense(values, ATTN_F32, 2,
                                        (int64_t[]){size, size}),
                .row_labels = p % 2 ? labels : NULL,
                .column_labels = p % 2 ? labels : NULL,
                .first_row = p == 2 ? 99990 : 0};
        attn_figure_init(&figure, panels, 4);
        figure.value = "weight";
        check_figure(&figure);
        figure.n_panels = 1;
        check_figure(&figure);
        figure.panels = panels + 1;
        check_figure(&figure);
    }
}

/* Labels as long as they like. */
UNIT(long_labels_are_cut)
{
    static float values[9];
    char *text = malloc(100001);
    const char *labels[3] = {text, text, "short"};
    attn_panel panel = {.values = attn_in_dense(values, ATTN_F32, 2,
                                                (int64_t[]){3, 3}),
                        .row_labels = labels, .column_labels = labels,
                        .title = text};
    attn_figure figure;
    int64_t width, height;

    assert_non_null(text);
    memset(text, 'W', 100000);
    text[100000] = '\0';
    attn_figure_init(&figure, &panel, 1);
    figure.title = figure.note = figure.row_axis = figure.column_axis = text;
    figure.value = text;
    figure.density = 1;
    check_figure(&figure);
    assert_int_equal(attn_figure_measure(&figure, &width, &height, NULL),
                     ATTN_OK);
    assert_true(width < 1000 && height < 800);
    free(text);
}

UNIT(cuts_are_as_long_as_they_may)
{
    const attn__sheet sheet = {.slack = 1};
    char to[ATTN__CUT_SIZE];

    attn__cut(&sheet, "animal", 12, 500, to);
    assert_string_equal(to, "animal");
    attn__cut(&sheet, "animal", 12, attn__text_width("animal", 12), to);
    assert_string_equal(to, "animal");
    attn__cut(&sheet, "animal", 12, attn__text_width("animal", 12) - 1, to);
    assert_string_equal(to, "anim\xe2\x80\xa6");
    attn__cut(&sheet, "animal", 12, 0, to);
    assert_string_equal(to, "\xe2\x80\xa6");
    attn__cut(&sheet, "", 12, 0, to);
    assert_string_equal(to, "");
    /* Never within a character. */
    for (double room = 0; room < 60; room += 0.5) {
        attn__cut(&sheet, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 12, room,
                  to);
        assert_true(attn__text_width(to, 12) <= fmax(room, 13));
        for (size_t i = 0; to[i] && to[i] != '\xe2'; i += 2)
            assert_true(to[i] == '\xc3' && to[i + 1] == '\xa9');
    }
}

static int count_texts(const attn_figure *figure, const char *text)
{
    attn__sheet sheet;
    int n = 0;

    assert_int_equal(attn__lay_out(figure, 1, &sheet, NULL), ATTN_OK);
    for (size_t i = 0; i < sheet.n; i++)
        n += sheet.items[i].kind == ATTN__TEXT &&
             strcmp(sheet.items[i].text, text) == 0;
    attn__sheet_free(&sheet);
    return n;
}

/* Five panels in a grid: outer labels only, unless one of them differs. */
UNIT(labels_that_repeat_are_left_out)
{
    sample s = make_sample(1);
    attn_panel *panels = (attn_panel *)(uintptr_t)s.figure.panels;

    s.figure.columns = 3;
    /* Two rows and three columns of panels; the empty place has none. */
    assert_int_equal(count_texts(&s.figure, "animal"), 2 + 3 + 1);
    panels[2].row_labels = words + 0;
    panels[2].first_row = 1;
    assert_int_equal(count_texts(&s.figure, "animal"), 5 + 3 + 1);
    drop_sample(&s);
}

/* The keys of what is not a number of the bar appear when they are needed. */
UNIT(the_bar_explains_what_there_is)
{
    sample few = make_sample(0), scores = make_sample(5);

    assert_int_equal(count_texts(&few.figure, "masked"), 1);
    assert_int_equal(count_texts(&few.figure, "NaN"), 0);
    assert_int_equal(count_texts(&scores.figure, "masked"), 0);
    assert_int_equal(count_texts(&scores.figure, "NaN"), 1 + 1);
    drop_sample(&few);
    drop_sample(&scores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_laid_out_cleanly),
        cmocka_unit_test(texts_keep_apart_at_every_size),
        cmocka_unit_test(long_labels_are_cut),
        cmocka_unit_test(cuts_are_as_long_as_they_may),
        cmocka_unit_test(labels_that_repeat_are_left_out),
        cmocka_unit_test(the_bar_explains_what_there_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
