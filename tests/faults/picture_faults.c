/* SPDX-License-Identifier: Apache-2.0
 *
 * picture_faults: the faults of file_faults.h under drawing. libpng and zlib
 * allocate through our hook, so there is no other malloc to fail. */
#include "attn_picture.h"
#include "file_faults.h"

enum {
    FEW = 3,   /* cells drawn one by one, with their values */
    MANY = 130 /* too many for SVG: an embedded PNG */
};

static float values[MANY * MANY];
static unsigned char shown[MANY * MANY];
static const char *const names[FEW] = {"a", "long label", "\xc3\xa9<&>"};

typedef struct scenery {
    attn_panel panels[2];
    attn_curve curve;
    attn_figure figure;
} scenery;

static void make(scenery *s, int64_t n)
{
    const int64_t shape[2] = {n, n};

    for (int64_t k = 0; k < n * n; k++) {
        values[k] = (float)(k * 7 % 11);
        shown[k] = k % 5 != 0;
    }
    *s = (scenery){.curve = {.label = "curve"}};
    s->panels[0].values = attn_in_dense(values, ATTN_F32, 2, shape);
    s->panels[0].shown = attn_in_dense(shown, ATTN_BOOL, 2, shape);
    s->panels[0].title = "panel";
    if (n == FEW)
        s->panels[0].row_labels = s->panels[0].column_labels = names;
    s->curve.values = attn_in_dense(values, ATTN_F32, 1, &n);
    s->panels[1].curves = &s->curve;
    s->panels[1].n_curves = 1;
    attn_figure_init(&s->figure, s->panels, n == FEW ? 2 : 1);
    s->figure.density = 1;
    s->figure.title = "title";
    s->figure.value = "value";
}

static attn_status write_png(unsigned *sum)
{
    scenery s;

    (void)sum;
    make(&s, FEW);
    return attn_figure_write_png(&s.figure, fault_out, NULL);
}

static attn_status write_svg(unsigned *sum)
{
    scenery s;

    (void)sum;
    make(&s, FEW);
    return attn_figure_write_svg(&s.figure, fault_out, NULL);
}

static attn_status write_image(unsigned *sum)
{
    scenery s;

    (void)sum;
    make(&s, MANY);
    return attn_figure_write_svg(&s.figure, fault_out, NULL);
}

static attn_status to_memory(attn_status (*draw)(const attn_figure *, void **,
                                                 size_t *, attn_diag *),
                             unsigned *sum)
{
    scenery s;
    void *data;
    size_t size;
    attn_status status;

    make(&s, FEW);
    status = draw(&s.figure, &data, &size, NULL);
    if (status == ATTN_OK)
        *sum = mix(*sum, data, size);
    attn_free(data);
    return status;
}

static attn_status png_to_memory(unsigned *sum)
{
    return to_memory(attn_figure_png, sum);
}

static attn_status svg_to_memory(unsigned *sum)
{
    return to_memory(attn_figure_svg, sum);
}

static attn_status measure(unsigned *sum)
{
    scenery s;
    int64_t size[2];
    attn_status status;

    make(&s, FEW);
    status = attn_figure_measure(&s.figure, &size[0], &size[1], NULL);
    if (status == ATTN_OK)
        *sum = mix(*sum, size, sizeof size);
    return status;
}

static const file_scene scenes[] = {
    {"write PNG", write_png, true, false, true},
    {"write SVG", write_svg, true, false, true},
    {"write SVG, image", write_image, true, false, true},
    {"PNG to memory", png_to_memory, false, true, true},
    {"SVG to memory", svg_to_memory, false, true, true},
    {"measure", measure, false, true, true},
};

int main(void)
{
    begin_faults();
    for (size_t s = 0; s < sizeof scenes / sizeof scenes[0]; s++)
        play_scene(&scenes[s]);
    return end_faults();
}
