/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole pictures: their dots against hashes and against colours that are known
 * from the numbers, files and memory, limits. `test_figure FOLDER` writes the
 * pictures there and prints their hashes. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "picture/sheet.h"
#include "pictures.h"

/* Light, dark. */
static const uint64_t hashes[N_SAMPLES][2] = {
    {UINT64_C(0xf2651e4eeeb087ff), UINT64_C(0xd38746d544942e31)},
    {UINT64_C(0x7846d35028753816), UINT64_C(0x4c0798503d14242f)},
    {UINT64_C(0xabac3c7fd350fb39), UINT64_C(0xac5f96f93dd08576)},
    {UINT64_C(0x110d377348f1c891), UINT64_C(0x75a836925ff095a3)},
    {UINT64_C(0xd0dac9858c66e721), UINT64_C(0xd884658013d5fa79)},
    {UINT64_C(0xd63fca49b66d0e07), UINT64_C(0x400a11446ce27553)},
};

static dots draw_png(const attn_figure *figure)
{
    void *data;
    size_t size;
    attn_diag diag;
    dots d;

    if (attn_figure_png(figure, &data, &size, &diag) != ATTN_OK)
        fail_msg("%s: %s", diag.field, diag.message);
    d = decode_png(data, size);
    attn_free(data);
    return d;
}

UNIT(pictures_are_as_they_were_seen)
{
    for (int i = 0; i < N_SAMPLES; i++)
        for (int theme = 0; theme < 2; theme++) {
            sample s = make_sample(i);
            dots d;

            s.figure.theme = (attn_theme)theme;
            d = draw_png(&s.figure);
            if (hash_dots(&d) != hashes[i][theme])
                fail_msg("%s in theme %d: 0x%016llx", s.name, theme,
                         (unsigned long long)hash_dots(&d));
            free(d.at);
            drop_sample(&s);
        }
}

UNIT(the_size_is_as_measured)
{
    for (int i = 0; i < N_SAMPLES; i++) {
        sample s = make_sample(i);
        int64_t width, height;
        dots d = draw_png(&s.figure);

        assert_int_equal(attn_figure_measure(&s.figure, &width, &height, NULL),
                         ATTN_OK);
        assert_int_equal(d.width, width);
        assert_int_equal(d.height, height);
        free(d.at);
        drop_sample(&s);
    }
}

/* Where the cells of the first map lie, in pixels. */
static attn__item cells_of(const attn_figure *figure)
{
    attn__sheet sheet;
    attn__item found = {.kind = ATTN__TEXT};

    assert_int_equal(attn__lay_out(figure, 1, &sheet, NULL), ATTN_OK);
    for (size_t i = 0; i < sheet.n && found.kind != ATTN__CELLS; i++)
        found = sheet.items[i];
    attn__sheet_free(&sheet);
    assert_int_equal(found.kind, ATTN__CELLS);
    return found;
}

/* Corners of each cell have the colour of its number, whatever the density. */
UNIT(cells_have_the_colors_of_their_numbers)
{
    static const float values[2][3] = {{0, 0.25f, 0.5f}, {1, 0.75f, NAN}};
    attn_panel panel = {.values = attn_in_dense(values, ATTN_F32, 2,
                                                (int64_t[]){2, 3})};
    attn_figure figure;
    attn__colors colors;
    attn__item at;

    attn_figure_init(&figure, &panel, 1);
    attn__colors_of(figure.theme, &colors);
    for (figure.density = 1; figure.density <= 4; figure.density++) {
        dots d = draw_png(&figure);

        at = cells_of(&figure);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 3; j++) {
                const double v = (double)values[i][j];
                const uint32_t want =
                    isnan(v) ? colors.nan : colors.level[(int)(v * 255 + 0.5)];
                const int64_t side = figure.density * at.rows.cell;
                const int64_t x = figure.density * (int64_t)at.x + j * side;
                const int64_t y = figure.density * (int64_t)at.y + i * side;

                assert_int_equal(dot_at(&d, x, y), want);
                assert_int_equal(dot_at(&d, x + side - 1, y + side - 1), want);
            }
        free(d.at);
    }
}

/* A masked cell is drawn like no level, also where it holds zero. */
UNIT(masked_cells_are_unlike_zeros)
{
    static const float zeros[4];
    static const unsigned char shown[4] = {1, 0, 0, 1};
    attn_panel panel = {
        .values = attn_in_dense(zeros, ATTN_F32, 2, (int64_t[]){2, 2}),
        .shown = attn_in_dense(shown, ATTN_BOOL, 2, (int64_t[]){2, 2})};
    attn_figure figure;
    attn__colors colors;
    attn__item at;
    dots d;

    attn_figure_init(&figure, &panel, 1);
    figure.density = 1;
    attn__colors_of(figure.theme, &colors);
    at = cells_of(&figure);
    d = draw_png(&figure);
    for (int64_t y = 0; y < at.rows.cell; y++)
        for (int64_t x = 0; x < at.columns.cell; x++) {
            const uint32_t seen =
                dot_at(&d, (int64_t)at.x + at.columns.cell + x,
                       (int64_t)at.y + y);

            for (int i = 0; i < ATTN__LEVELS; i++)
                assert_int_not_equal(seen, colors.level[i]);
        }
    free(d.at);
}

/* One warm cell of 4096 x 4096 is one warm dot of the picture. */
UNIT(a_hot_cell_is_seen_in_a_large_picture)
{
    enum { N = 4096 };
    float *values = calloc((size_t)N * N, sizeof *values);
    attn_panel panel = {.values = attn_in_dense(values, ATTN_F32, 2,
                                                (int64_t[]){N, N})};
    attn_figure figure;
    attn__colors colors;
    attn__item at;
    dots d;
    int64_t hot = 0;

    assert_non_null(values);
    values[2222 * N + 1111] = 1;
    attn_figure_init(&figure, &panel, 1);
    figure.density = 1;
    attn__colors_of(figure.theme, &colors);
    at = cells_of(&figure);
    assert_int_equal(at.rows.fold, 4);
    d = draw_png(&figure);
    for (int64_t y = 0; y < N / 4; y++)
        for (int64_t x = 0; x < N / 4; x++)
            hot += dot_at(&d, (int64_t)at.x + x, (int64_t)at.y + y) ==
                   colors.level[255];
    assert_int_equal(hot, 1);
    assert_int_equal(dot_at(&d, (int64_t)at.x + 1111 / 4,
                            (int64_t)at.y + 2222 / 4),
                     colors.level[255]);
    free(d.at);
    free(values);
}

/* ------------------------------------------------------------------ limits */

static attn_status size_of(int64_t rows, int64_t columns, int64_t cell,
                           int64_t density, attn_diag *diag)
{
    static float value;
    attn_panel panel = {.values = {&value, ATTN_F32, 2, {rows, columns},
                                   {0, 0}}};
    attn_figure figure;
    int64_t width, height;

    attn_figure_init(&figure, &panel, 1);
    figure.cell = cell;
    figure.density = density;
    return attn_figure_measure(&figure, &width, &height, diag);
}

UNIT(no_side_is_longer_than_the_limit)
{
    attn_diag diag;

    assert_int_equal(size_of(64, 64, 500, 1, NULL), ATTN_OK);
    assert_int_equal(size_of(64, 66, 500, 1, &diag), ATTN_E_LIMIT);
    assert_string_equal(diag.field, "cell");
    assert_int_equal(size_of(100, 100, 500, 1, NULL), ATTN_E_LIMIT);
    assert_int_equal(size_of(100, 100, 100, 4, &diag), ATTN_E_LIMIT);
    assert_string_equal(diag.field, "density");
    assert_int_equal(size_of(32768, 1, 1, 1, &diag), ATTN_E_LIMIT);
    assert_string_equal(diag.field, "panels");
    assert_int_equal(size_of(1, 32768, 1, 1, NULL), ATTN_E_LIMIT);
    /* Left to itself it folds. */
    assert_int_equal(size_of(4, 10000000, 0, 0, NULL), ATTN_OK);
    assert_int_equal(size_of(INT64_C(1) << 40, 3, 512, 1, NULL), ATTN_E_LIMIT);
}

/* ------------------------------------------------------- files and memory */

static char folder[] = "pictures-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *data = malloc(1 << 22);

    assert_non_null(file);
    assert_non_null(data);
    *size = fread(data, 1, 1 << 22, file);
    fclose(file);
    return data;
}

typedef attn_status to_file(const attn_figure *, const char *, attn_diag *);
typedef attn_status to_memory(const attn_figure *, void **, size_t *,
                              attn_diag *);
static to_file *const to_files[] = {attn_figure_write_png,
                                    attn_figure_write_svg};
static to_memory *const to_memories[] = {attn_figure_png, attn_figure_svg};

UNIT(files_and_memory_have_the_same_bytes)
{
    sample s = make_sample(0);

    for (int f = 0; f < 2; f++) {
        char path[64], *data;
        void *memory, *again;
        size_t size, n, m;

        snprintf(path, sizeof path, "%s/a", folder);
        assert_int_equal(to_files[f](&s.figure, path, NULL), ATTN_OK);
        assert_int_equal(to_memories[f](&s.figure, &memory, &n, NULL),
                         ATTN_OK);
        assert_int_equal(to_memories[f](&s.figure, &again, &m, NULL), ATTN_OK);
        data = read_file(path, &size);
        assert_int_equal(size, n);
        assert_memory_equal(data, memory, n);
        assert_int_equal(m, n);
        assert_memory_equal(again, memory, n);
        assert_int_equal(((char *)memory)[n], 0);
        assert_int_equal(remove(path), 0); /* and nothing beside it */
        free(data);
        attn_free(memory);
        attn_free(again);
    }
    drop_sample(&s);
}

UNIT(a_path_that_cannot_be_written_is_told)
{
    static const char *const paths[] = {"", "/", "no/such/folder/a.png",
                                        "/dev/full", "."};
    sample s = make_sample(0);

    for (size_t i = 0; i < COUNT(paths); i++)
        for (int f = 0; f < 2; f++) {
            attn_diag diag;

            assert_int_equal(to_files[f](&s.figure, paths[i], &diag),
                             ATTN_E_IO);
            assert_string_equal(diag.field, "file");
        }
    drop_sample(&s);
}

/* -------------------------------------------------------------------- SVG */

/* No locale's comma gets into it, nor a character that XML forbids; labels
 * are there, escaped. (tests/cli reads SVG with a real parser.) */
UNIT(svg_is_text_without_surprises)
{
    static const float values[4] = {0.125f, -1.5f, 2.25f, 1e-3f};
    static const char *const hostile[2] = {"<a href=\"x\">&", "\x01]]>\xff'"};
    attn_panel panel = {.values = attn_in_dense(values, ATTN_F32, 2,
                                                (int64_t[]){2, 2}),
                        .row_labels = hostile, .column_labels = hostile,
                        .title = hostile[0]};
    attn_figure figure;
    void *data;
    size_t size;
    char *text;

    attn_figure_init(&figure, &panel, 1);
    figure.title = hostile[1];
    assert_int_equal(attn_figure_svg(&figure, &data, &size, NULL), ATTN_OK);
    text = data;
    assert_int_equal(strlen(text), size);
    assert_non_null(strstr(text, "&lt;a href=&quot;x&quot;&gt;&amp;"));
    assert_non_null(strstr(text, "\xef\xbf\xbd]]&gt;\xef\xbf\xbd'"));
    assert_null(strstr(text, "<a"));
    for (size_t i = 0; i < size; i++)
        assert_true((unsigned char)text[i] >= 0x20 || text[i] == '\n');
    attn_free(data);
}

/* Few cells tell their value; many are paths; very many are an image. */
UNIT(svg_cells_suit_their_number)
{
    static const struct {
        int64_t n;
        bool told, image;
    } cases[] = {{4, true, false}, {100, false, false}, {200, false, true}};
    static float values[200 * 200];

    for (size_t i = 0; i < COUNT(cases); i++) {
        const int64_t shape[2] = {cases[i].n, cases[i].n};
        attn_panel panel = {.values = attn_in_dense(values, ATTN_F32, 2,
                                                    shape)};
        attn_figure figure;
        void *data;
        size_t size;

        attn_figure_init(&figure, &panel, 1);
        assert_int_equal(attn_figure_svg(&figure, &data, &size, NULL),
                         ATTN_OK);
        assert_int_equal(strstr(data, "<title>1, 2: 0.0000<") != NULL,
                         cases[i].told);
        assert_int_equal(strstr(data, "data:image/png;base64,iVBOR") != NULL,
                         cases[i].image);
        attn_free(data);
    }
}

/* ------------------------------------------------------------------ looking */

/* Write all samples to a folder, and print their hashes. */
static int show(const char *where)
{
    for (int i = 0; i < N_SAMPLES; i++) {
        sample s = make_sample(i);

        printf("    {");
        for (int theme = 0; theme < 2; theme++) {
            static const char *const names[] = {"light", "dark"};
            char path[256];
            dots d;

            s.figure.theme = (attn_theme)theme;
            for (int f = 0; f < 2; f++) {
                snprintf(path, sizeof path, "%s/%s-%s.%s", where, s.name,
                         names[theme], f ? "svg" : "png");
                if (to_files[f](&s.figure, path, NULL) != ATTN_OK)
                    return 1;
            }
            d = draw_png(&s.figure);
            printf("UINT64_C(0x%016llx)%s", (unsigned long long)hash_dots(&d),
                   theme ? "},\n" : ", ");
            free(d.at);
        }
        drop_sample(&s);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_as_they_were_seen),
        cmocka_unit_test(the_size_is_as_measured),
        cmocka_unit_test(cells_have_the_colors_of_their_numbers),
        cmocka_unit_test(masked_cells_are_unlike_zeros),
        cmocka_unit_test(a_hot_cell_is_seen_in_a_large_picture),
        cmocka_unit_test(no_side_is_longer_than_the_limit),
        cmocka_unit_test(files_and_memory_have_the_same_bytes),
        cmocka_unit_test(a_path_that_cannot_be_written_is_told),
        cmocka_unit_test(svg_is_text_without_surprises),
        cmocka_unit_test(svg_cells_suit_their_number),
    };

    if (argc > 1)
        return show(argv[1]);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
