/* SPDX-License-Identifier: Apache-2.0
 *
 * picture: bytes make a figure, mostly legal, with any numbers and any labels.
 * It is drawn or refused; nothing leaks; a PNG has the size that was measured,
 * an SVG is UTF-8 without control characters and closes what it opens. */
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "attn_picture.h"
#include "core/utf8.h"
#include "fuzz.h"

enum {
    MOST_SIDE = 20,
    MOST_PANELS = 3,
    POOL = 16, /* numbers of a panel, repeated */
    WORDS = 8, /* labels, repeated */
    LABEL = 8  /* bytes of one */
};

typedef struct source {
    const uint8_t *at, *end;
} source;

static unsigned next(source *s)
{
    return s->at < s->end ? *s->at++ : 0;
}

/* Numbers of every size, and some that are none. */
static double number(source *s)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e308,
                                 -1e308, 5e-324, 1, 1e-5};
    const unsigned kind = next(s);

    if (kind < 32)
        return odd[kind % 10];
    return ldexp((double)next(s) - 100, kind < 200 ? -8 : (int)kind * 8 - 1800);
}

/* ----------------------------------------------------------------- figures */

typedef struct world {
    double values[MOST_PANELS][MOST_SIDE * MOST_SIDE];
    uint8_t shown[MOST_SIDE * MOST_SIDE];
    char text[WORDS][LABEL + 1];
    const char *labels[MOST_SIDE];
    attn_panel panels[MOST_PANELS];
    attn_curve curves[MOST_PANELS];
    attn_figure figure;
} world;

static void make_labels(world *w, source *s)
{
    for (int i = 0; i < WORDS; i++)
        for (int c = 0; c < LABEL; c++)
            w->text[i][c] = (char)next(s);
    for (int i = 0; i < MOST_SIDE; i++)
        w->labels[i] = w->text[i % WORDS];
}

static void make_panel(world *w, source *s, int p)
{
    const unsigned bits = next(s);
    const int64_t shape[2] = {1 + next(s) % MOST_SIDE,
                              1 + next(s) % MOST_SIDE};
    attn_panel *panel = &w->panels[p];
    double pool[POOL];

    for (int k = 0; k < POOL; k++)
        pool[k] = number(s);
    for (int64_t k = 0; k < shape[0] * shape[1]; k++)
        w->values[p][k] = pool[k * 7 % POOL];
    panel->values = attn_in_dense(w->values[p], ATTN_F64, 2, shape);
    if (bits & 1)
        panel->shown = attn_in_dense(w->shown, ATTN_BOOL, 2, shape);
    if (bits & 2)
        panel->row_labels = w->labels;
    if (bits & 4)
        panel->column_labels = w->labels;
    if (bits & 8)
        panel->title = w->labels[p];
    if (bits & 16)
        panel->first_row = (int64_t)next(s) * 1000 - 5000;
    w->curves[p].label = bits & 32 ? w->labels[p] : NULL;
    w->curves[p].values = attn_in_dense(w->values[p], ATTN_F64, 1, shape);
    if ((bits & 192) == 192) {
        panel->curves = w->curves;
        panel->n_curves = p + 1;
    }
}

static void make_figure(world *w, source *s)
{
    const unsigned bits = next(s), more = next(s);
    attn_figure *f = &w->figure;

    for (int i = 0; i < MOST_SIDE * MOST_SIDE; i++)
        w->shown[i] = (bits >> (i % 7) & 1) != 0;
    make_labels(w, s);
    for (int p = 0; p < MOST_PANELS; p++)
        make_panel(w, s, p);
    attn_figure_init(f, w->panels, 1 + (more & 3) % MOST_PANELS);
    f->theme = (attn_theme)(more >> 2 & 1);
    f->shades = (attn_shades)(more >> 3 & 1);
    f->columns = more >> 4 & 3;
    f->density = 1;
    f->cell = bits & 1 ? 1 + next(s) % 32 : 0;
    f->low = bits & 2 ? number(s) : NAN;
    f->high = bits & 4 ? number(s) : NAN;
    f->title = bits & 8 ? w->labels[0] : NULL;
    f->note = bits & 16 ? w->labels[1] : NULL;
    f->row_axis = bits & 32 ? w->labels[2] : NULL;
    f->column_axis = bits & 64 ? w->labels[3] : NULL;
    f->value = bits & 128 ? w->labels[4] : NULL;
}

/* ------------------------------------------------------------------ judging */

static void check_png(const attn_figure *figure)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    void *data;
    size_t size;
    int64_t width = 0, height = 0;
    const attn_status measured =
        attn_figure_measure(figure, &width, &height, NULL);
    attn_status status;

    /* Large ones take their time and show nothing new. */
    if (measured == ATTN_OK && width * height > 30000)
        return;
    status = attn_figure_png(figure, &data, &size, NULL);
    PROPERTY(status == measured);
    PROPERTY((status == ATTN_OK) == (data != NULL));
    if (status != ATTN_OK)
        return;
    PROPERTY(png_image_begin_read_from_memory(&image, data, size));
    PROPERTY(image.width == width && image.height == height);
    png_image_free(&image);
    attn_free(data);
}

static void check_svg(const attn_figure *figure)
{
    void *data;
    size_t size;
    int64_t open = 0, closed = 0;

    if (attn_figure_svg(figure, &data, &size, NULL) != ATTN_OK)
        return;
    PROPERTY(strlen(data) == size);
    for (size_t i = 0, n; i < size; i += n) {
        const uint8_t *at = (const uint8_t *)data + i;
        uint32_t point = 0;

        n = (size_t)attn__utf8_decode(at, (int64_t)(size - i), &point);
        PROPERTY(n > 0);
        PROPERTY(point >= 0x20 || point == '\n');
        PROPERTY(point != 0xfffe && point != 0xffff);
        open += point == '<';
        closed += point == '>';
    }
    PROPERTY(open == closed);
    PROPERTY(strcmp((char *)data + size - 7, "</svg>\n") == 0);
    attn_free(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    source s = {data, data + size};
    world *w = calloc(1, sizeof *w);

    PROPERTY(w);
    fuzz_count_memory((size_t)1 << 28);
    make_figure(w, &s);
    check_png(&w->figure);
    check_svg(&w->figure);
    PROPERTY(fuzz_live_blocks() == 0);
    free(w);
    return 0;
}
