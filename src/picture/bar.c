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
#define VALUE_LINE 24.0

static bool has_cells(const attn_figure *figure)
{
    for (int64_t p = 0; p < figure->n_panels; p++)
        if (figure->panels[p].n_curves == 0)
            return true;
    return false;
}

static void add_tick(attn__bar *bar, double at, int decimals)
{
    if (bar->n == ATTN__MOST_TICKS)
        return;
    bar->at[bar->n] = at;
    attn__format(bar->text[bar->n++], at, decimals);
}

/* Powers of ten; where there are few of them, also their halves and fifths. */
static void add_decades(attn__bar *bar, double low, double high)
{
    const int first = (int)floor(log10(low)), last = (int)ceil(log10(high));
    const int step = 1 + (last - first) / (ATTN__MOST_TICKS - 2);
    static const int between[] = {1, 2, 5};
    const int n = last - first <= 2 ? 3 : 1;

    for (int power = first; power <= last; power += step)
        for (int i = 0; i < n; i++) {
            const double at = between[i] * pow(10, power);

            if (at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9))
                add_tick(bar, at, power < -3 || power > 5 ? -1
                                  : power < 0             ? -power
                                                          : 0);
        }
}

static void add_ticks(attn__bar *bar, const attn__range *range)
{
    const attn__ticks ticks = attn__ticks_of(range->low, range->high,
                                             MOST_TICKS);

    if (range->log) {
        add_decades(bar, range->low, range->high);
        return;
    }
    for (int64_t i = 0; i < ticks.n; i++)
        add_tick(bar, (double)(ticks.first + i) * ticks.step, ticks.decimals);
}

attn__bar attn__bar_plan(const attn__sheet *sheet, const attn_figure *figure)
{
    attn__bar bar = {.value = figure->value};
    char text[ATTN__CUT_SIZE];

    if (!has_cells(figure))
        return bar;
    add_ticks(&bar, &sheet->range);
    for (int i = 0; i < bar.n; i++)
        bar.width = fmax(bar.width, attn__room_for(sheet, bar.text[i],
                                                   ATTN__TEXT_SIZE));
    if (sheet->range.any_masked)
        bar.width = fmax(bar.width, attn__room_for(sheet, "masked",
                                                   ATTN__TEXT_SIZE));
    bar.width += THICK + TICK + GAP;
    if (figure->value) {
        attn__cut(sheet, figure->value, ATTN__TEXT_SIZE, ATTN__LONGEST, text);
        bar.width = fmax(bar.width,
                         attn__room_for(sheet, text, ATTN__TEXT_SIZE));
    }
    return bar;
}

static void draw_numbers(attn__sheet *sheet, const attn__bar *bar, double x,
                         double y, double height)
{
    for (int i = 0; i < bar->n; i++) {
        const double up = attn__range_part(&sheet->range, bar->at[i]);
        const double at = y + (height - 1) * (1 - up);

        attn__sheet_rect(sheet, x + THICK, floor(at), TICK, 1,
                         sheet->colors.faint);
        attn__sheet_add(sheet, attn__plain_text(sheet, bar->text[i],
                                                x + THICK + TICK + GAP - 2,
                                                at));
    }
}

/* A swatch and a word; returns where the next goes. */
static double draw_key(attn__sheet *sheet, attn__item_kind kind,
                       uint32_t color, const char *word, double x, double y)
{
    attn__sheet_add(sheet, (attn__item){.kind = kind, .x = x, .y = y,
                                        .width = THICK, .height = THICK,
                                        .color = color});
    attn__sheet_add(sheet, attn__plain_text(sheet, word,
                                            x + THICK + TICK + GAP - 2,
                                            y + THICK / 2));
    return y + KEY_LINE;
}

double attn__bar_draw(attn__sheet *sheet, const attn__bar *bar, double x,
                      double y, double height)
{
    if (bar->value) {
        char text[ATTN__CUT_SIZE];
        attn__item item;

        attn__cut(sheet, bar->value, ATTN__TEXT_SIZE, ATTN__LONGEST, text);
        item = attn__plain_text(sheet, text, x, y + 6);
        item.color = sheet->colors.faint;
        attn__sheet_add(sheet, item);
        y += VALUE_LINE;
        height -= VALUE_LINE;
    }
    height -= KEY_LINE * (sheet->range.any_masked + sheet->range.any_nan);
    height = floor(fmin(fmax(height, LEAST_HEIGHT), MOST_HEIGHT));
    attn__sheet_add(sheet, (attn__item){.kind = ATTN__BAR, .x = x, .y = y,
                                        .width = THICK, .height = height});
    draw_numbers(sheet, bar, x, y, height);
    y += height + (KEY_LINE - THICK);
    if (sheet->range.any_masked)
        y = draw_key(sheet, ATTN__HATCH, 0, "masked", x, y);
    if (sheet->range.any_nan)
        y = draw_key(sheet, ATTN__RECT, sheet->colors.nan, "NaN", x, y);
    return y;
}
