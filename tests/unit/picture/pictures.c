/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures for the tests, and PNG decoding. */
#include "pictures.h"

#include <math.h>
#include <png.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../unit.h"

const char *const words[16] = {"[CLS]", "the",     "animal", "did",
                               "not",   "cross",   "the",    "street",
                               "because", "it",    "was",    "too",
                               "tired", ".",       "[SEP]",  "Z\xc3\xbcrich"};

/* -------------------------------------------------------------------- PNG */

dots decode_png(const void *data, size_t size)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    dots d = {0};

    assert_true(png_image_begin_read_from_memory(&image, data, size));
    d.channels = image.format & PNG_FORMAT_FLAG_ALPHA ? 4 : 3;
    image.format = d.channels == 4 ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
    d.width = image.width;
    d.height = image.height;
    d.at = malloc(PNG_IMAGE_SIZE(image));
    assert_non_null(d.at);
    assert_true(png_image_finish_read(&image, NULL, d.at, 0, NULL));
    return d;
}

uint32_t dot_at(const dots *d, int64_t x, int64_t y)
{
    const unsigned char *at = d->at + (y * d->width + x) * d->channels;

    assert_true(x >= 0 && x < d->width && y >= 0 && y < d->height);
    return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

/* FNV-1a. */
uint64_t hash_dots(const dots *d)
{
    const size_t n = (size_t)(d->width * d->height * d->channels);
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ (uint64_t)d->width;

    for (size_t i = 0; i < n; i++)
        hash = (hash ^ d->at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* ---------------------------------------------------------------- samples */

enum { MOST_PANELS = 6, MOST = 300 };

typedef struct memory {
    float values[MOST_PANELS][MOST * MOST];
    unsigned char shown[MOST * MOST];
    double curves[3][40];
    attn_panel panels[MOST_PANELS];
    attn_curve curve[3];
} memory;

/* Numbers from a generator, exactly representable: k / 256. */
static void fill(float *values, int64_t n, uint32_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 24) / 256;
    }
}

static void add_map(memory *m, int which, int64_t rows, int64_t columns,
                    bool causal, bool labels)
{
    const int64_t shape[2] = {rows, columns};
    attn_panel *p = &m->panels[which];

    fill(m->values[which], rows * columns, (uint32_t)which + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            m->shown[i * columns + j] = j <= i;
    p->values = attn_in_dense(m->values[which], ATTN_F32, 2, shape);
    if (causal)
        p->shown = attn_in_dense(m->shown, ATTN_BOOL, 2, shape);
    if (labels)
        p->row_labels = p->column_labels = words;
}

static void add_curves(memory *m, int which)
{
    const int64_t n = 40;

    for (int c = 0; c < 3; c++) {
        for (int i = 0; i < n; i++)
            m->curves[c][i] = i == 20 ? NAN : (c + 1) * 0.25 * i - 3;
        m->curve[c] = (attn_curve){words[c],
                                   attn_in_dense(m->curves[c], ATTN_F64, 1,
                                                 &n)};
    }
    m->panels[which].curves = m->curve;
    m->panels[which].n_curves = 3;
}

sample make_sample(int which)
{
    static const char *const names[N_SAMPLES] = {"few",    "grid",  "many",
                                                 "curves", "thin",  "scores"};
    memory *m = calloc(1, sizeof *m);
    sample s = {.name = names[which], .memory = m};
    int64_t panels = 1;

    assert_non_null(m);
    switch (which) {
    case 0: /* values in the cells */
        add_map(m, 0, 8, 8, true, true);
        break;
    case 1: /* labels that are shared, an empty place */
        panels = 5;
        for (int p = 0; p < panels; p++) {
            add_map(m, p, 16, 16, false, true);
            m->panels[p].title = words[p];
        }
        break;
    case 2: /* numbers instead of labels, folding in the grid */
        panels = 6;
        for (int p = 0; p < panels; p++)
            add_map(m, p, MOST, MOST, true, false);
        break;
    case 3:
        add_curves(m, 0);
        break;
    case 4: /* one row, and a wide one */
        add_map(m, 0, 1, MOST * MOST / 2, false, false);
        break;
    default: /* NaN, infinity, negative numbers */
        add_map(m, 0, 4, 6, false, true);
        for (int i = 0; i < 24; i++)
            m->values[0][i] -= 20;
        m->values[0][3] = NAN;
        m->values[0][4] = INFINITY;
        m->values[0][5] = -INFINITY;
    }
    attn_figure_init(&s.figure, m->panels, panels);
    s.figure.title = "A title";
    s.figure.note = "and what it says";
    s.figure.row_axis = "query";
    s.figure.column_axis = "key";
    s.figure.value = "weight";
    return s;
}

void drop_sample(sample *s)
{
    free(s->memory);
    s->memory = NULL;
}
