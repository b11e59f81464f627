/* SPDX-License-Identifier: Apache-2.0
 *
 * Curves: their axes, grid, lines and legend. */
#include <math.h>

#include "core/checked.h"
#include "picture/block.h"
#include "picture/ticks.h"

#define WIDTH 600
#define HEIGHT 260
#define LARGEST_STEP 56 /* pixels from one point to the next */
#define GAP 6.0
#define MOST_TICKS 8
#define LEGEND_LINE 18.0
#define LEGEND_DASH 18.0
#define LEGEND_GAP 16.0

static int64_t longest(const attn_panel *panel)
{
    int64_t n = 1;

    for (int64_t c = 0; c < panel->n_curves; c++)
        n = attn__max_i64(n, panel->curves[c].values.shape[0]);
    return n;
}

/* From the least to the largest finite value, and zero if that is near. */
static void find_range(attn__block *block)
{
    const attn_panel *panel = block->panel;
    double low = INFINITY, high = -INFINITY, pad;

    for (int64_t c = 0; c < panel->n_curves; c++) {
        const attn_input *values = &panel->curves[c].values;

        for (int64_t i = 0; i < values->shape[0]; i++) {
            const double v = attn__element(values, i);

            if (isfinite(v)) {
                low = fmin(low, v);
                high = fmax(high, v);
            }
        }
    }
    if (low > high)
        low = 0, high = 1;
    if (low > 0 && low < 0.5 * high)
        low = 0;
    if (high < 0 && high > 0.5 * low)
        high = 0;
    pad = fmax(0.05 * (0.5 * high - 0.5 * low), fabs(low) * 0x1p-40);
    if (pad == 0)
        pad = 0.5;
    block->low = low == 0 && high > low ? 0 : low - pad;
    block->high = high == 0 && high > low ? 0 : high + pad;
}

static double widest_number(const attn__sheet *sheet, attn__ticks ticks)
{
    char text[ATTN__NUMBER_SIZE];
    double width = 0;

    for (int64_t i = 0; i < ticks.n; i++) {
        attn__format(text, (double)(ticks.first + i) * ticks.step,
                     ticks.decimals);
        width = fmax(width, attn__room_for(sheet, text, ATTN__TEXT_SIZE));
    }
    return width;
}

static double legend_width(const attn__sheet *sheet, const attn_panel *panel)
{
    char text[ATTN__CUT_SIZE];
    double width = 0;

    for (int64_t c = 0; c < panel->n_curves; c++) {
        if (!panel->curves[c].label)
            continue;
        attn__cut(sheet, panel->curves[c].label, ATTN__TEXT_SIZE,
                  ATTN__LONGEST, text);
        width = fmax(width, attn__room_for(sheet, text, ATTN__TEXT_SIZE));
    }
    return width > 0 ? LEGEND_GAP + LEGEND_DASH + GAP + width : 0;
}

void attn__plot_plan(const attn__sheet *sheet, attn__block *block)
{
    const attn_panel *panel = block->panel;
    const int64_t n = longest(panel);
    const double legend = LEGEND_LINE * (double)panel->n_curves;

    find_range(block);
    block->width = n > WIDTH ? WIDTH
                             : (double)(n * attn__min_i64(WIDTH / n,
                                                          LARGEST_STEP));
    block->width = fmax(block->width, WIDTH / 2);
    block->height = HEIGHT;
    block->right = legend_width(sheet, panel);
    if (block->right > 0)
        block->height = fmax(HEIGHT, legend);
    block->left = GAP + widest_number(sheet, attn__ticks_of(block->low,
                                                            block->high,
                                                            MOST_TICKS));
    block->columns = (attn__axis){.n = n, .first = panel->first_column,
                                  .pitch = block->width / (double)n,
                                  .labels = panel->column_labels};
    attn__axis_plan(sheet, &block->columns, false);
    block->bottom = block->columns.room;
}

static void draw_grid(attn__sheet *sheet, const attn__block *block, double x,
                      double y)
{
    const attn__ticks ticks = attn__ticks_of(block->low, block->high,
                                             MOST_TICKS);
    const double span = 0.5 * block->high - 0.5 * block->low;

    for (int64_t i = 0; i < ticks.n; i++) {
        const double value = (double)(ticks.first + i) * ticks.step;
        const double up = (0.5 * value - 0.5 * block->low) / span;
        const double at = y + block->height * (1 - up);
        char text[ATTN__NUMBER_SIZE];
        attn__item item;

        attn__format(text, value, ticks.decimals);
        item = attn__plain_text(sheet, text, x - GAP, at);
        item.anchor = ATTN__END;
        attn__sheet_add(sheet, item);
        attn__sheet_rect(sheet, x, floor(at), block->width, 1,
                         sheet->colors.frame);
    }
    attn__sheet_rect(sheet, x, y + block->height, block->width, 1,
                     sheet->colors.faint);
}

static void draw_legend(attn__sheet *sheet, const attn__block *block,
                        int64_t c, uint32_t color, double x, double y)
{
    const char *label = block->panel->curves[c].label;
    char text[ATTN__CUT_SIZE];

    if (!label)
        return;
    x += block->width + LEGEND_GAP;
    y += LEGEND_LINE * ((double)c + 0.5);
    attn__sheet_rect(sheet, x, floor(y) - 1, LEGEND_DASH, 2, color);
    attn__cut(sheet, label, ATTN__TEXT_SIZE, ATTN__LONGEST, text);
    attn__sheet_add(sheet, attn__plain_text(sheet, text,
                                            x + LEGEND_DASH + GAP, y));
}

void attn__plot_draw(attn__sheet *sheet, const attn__block *block, double x,
                     double y)
{
    const attn_panel *panel = block->panel;
    const double pitch = block->columns.pitch;

    draw_grid(sheet, block, x, y);
    for (int64_t c = 0; c < panel->n_curves; c++) {
        const uint32_t color = attn__curve_color(sheet->theme, c,
                                                 panel->n_curves);

        attn__sheet_add(sheet, (attn__item){.kind = ATTN__LINE,
                                            .x = x + 0.5 * pitch, .y = y,
                                            .width = block->width,
                                            .height = block->height,
                                            .color = color,
                                            .values = &panel->curves[c].values,
                                            .step = pitch, .low = block->low,
                                            .high = block->high});
        draw_legend(sheet, block, c, color, x, y);
    }
    attn__axis_columns(sheet, &block->columns, x, y + block->height);
}
