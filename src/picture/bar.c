/* SPDX-License-Identifier: Apache-2.0
 *
 * Placing the colour bar. */
#include "picture/bar.h"

#include <math.h>

#include "picture/labels.h"

#define THICK 14.0
#define LEAST_HEIGHT 120.0
#define MOST_HEIGHT 340.0
#define GAP 6.0
#define TICK 4.0
#define MOST_TICKS 7
#define KEY_LINE 22.0
#define VALUE_LINE 20.0

static bool has_cells(const attn_figure *figure)
{
    for (int64_t p = 0; p < figure->n_panels; p++)
        if (figure->panels[p].n_curves == 0)
            return true;
    return false;
}

static void number_at(const attn__bar *bar, int64_t i,
                      char text[ATTN__NUMBER_SIZE])
{
    attn__format(text, (double)(bar->ticks.first + i) * bar->ticks.step,
                 bar->ticks.decimals);
}

attn__bar attn__bar_plan(const attn__scene *scene, const attn_figure *figure)
{
    attn__bar bar = {.value = figure->value};
    char text[ATTN__CUT_SIZE];

    if (!has_cells(figure))
        return bar;
    bar.ticks = attn__ticks_of(scene->range.low, scene->range.high,
                               MOST_TICKS);
    for (int64_t i = 0; i < bar.ticks.n; i++) {
        number_at(&bar, i, text);
        bar.width = fmax(bar.width,
                         attn__room_for(scene, text, ATTN__TEXT_SIZE));
    }
    if (scene->range.any_masked)
        bar.width = fmax(bar.width, attn__room_for(scene, "masked",
                                                   ATTN__TEXT_SIZE));
    bar.width += THICK + TICK + GAP;
    if (figure->value) {
        attn__cut(scene, figure->value, ATTN__TEXT_SIZE, ATTN__LONGEST, text);
        bar.width = fmax(bar.width,
                         attn__room_for(scene, text, ATTN__TEXT_SIZE));
    }
    return bar;
}

static void draw_numbers(attn__scene *scene, const attn__bar *bar, double x,
                         double y, double height)
{
    const double low = scene->range.low, high = scene->range.high;

    for (int64_t i = 0; i < bar->ticks.n; i++) {
        const double value = (double)(bar->ticks.first + i) * bar->ticks.step;
        const double up = (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low);
        const double at = y + (height - 1) * (1 - fmin(fmax(up, 0), 1));
        char text[ATTN__NUMBER_SIZE];

        number_at(bar, i, text);
        attn__scene_rect(scene, x + THICK, floor(at), TICK, 1,
                         scene->colors.faint);
        attn__scene_add(scene, attn__plain_text(scene, text,
                                                x + THICK + TICK + GAP - 2,
                                                at));
    }
}

/* A swatch and a word; returns where the next goes. */
static double draw_key(attn__scene *scene, attn__item_kind kind,
                       uint32_t color, const char *word, double x, double y)
{
    attn__scene_add(scene, (attn__item){.kind = kind, .x = x, .y = y,
                                        .width = THICK, .height = THICK,
                                        .color = color});
    attn__scene_add(scene, attn__plain_text(scene, word,
                                            x + THICK + TICK + GAP - 2,
                                            y + THICK / 2));
    return y + KEY_LINE;
}

double attn__bar_draw(attn__scene *scene, const attn__bar *bar, double x,
                      double y, double height)
{
    if (bar->value) {
        char text[ATTN__CUT_SIZE];
        attn__item item;

        attn__cut(scene, bar->value, ATTN__TEXT_SIZE, ATTN__LONGEST, text);
        item = attn__plain_text(scene, text, x, y + 6);
        item.color = scene->colors.faint;
        attn__scene_add(scene, item);
        y += VALUE_LINE;
        height -= VALUE_LINE;
    }
    height -= KEY_LINE * (scene->range.any_masked + scene->range.any_nan);
    height = floor(fmin(fmax(height, LEAST_HEIGHT), MOST_HEIGHT));
    attn__scene_add(scene, (attn__item){.kind = ATTN__BAR, .x = x, .y = y,
                                        .width = THICK, .height = height});
    draw_numbers(scene, bar, x, y, height);
    y += height + (KEY_LINE - THICK);
    if (scene->range.any_masked)
        y = draw_key(scene, ATTN__HATCH, 0, "masked", x, y);
    if (scene->range.any_nan)
        y = draw_key(scene, ATTN__RECT, scene->colors.nan, "NaN", x, y);
    return y;
}
