/* SPDX-License-Identifier: Apache-2.0
 *
 * Heat maps: how large a cell is, and what is drawn around and in the cells. */
#include "picture/block.h"

#include <math.h>

#include "core/checked.h"
#include "core/diag.h"
#include "picture/ticks.h"

#define LEAST_SIDE 40  /* pixels of a short axis beside a long one */
#define LARGEST_CELL 56
#define VALUE_CELL 30.0 /* cells from here on hold their value */
#define VALUE_GAP 8.0
#define MOST_VALUES 4096 /* cells with values in a panel */
#define LABEL_CELL 14   /* a cell's side that leaves room for a label */
#define MOST_LABELS 1800 /* pixels that a picture may grow to for labels */

/* The pixels that the longer side of one panel of `crowd` aims at. */
static int64_t side_of(int64_t crowd)
{
    return crowd == 1 ? 600 : crowd <= 4 ? 420 : crowd <= 12 ? 300 : 200;
}

/* The same where the matrix is larger than that. */
static int64_t largest_side_of(int64_t crowd)
{
    return crowd == 1 ? 1024 : crowd <= 4 ? 640 : crowd <= 12 ? 400 : 256;
}

/* One scale for both axes: cells are squares. */
static void choose_scale(const attn_panel *panel, int64_t crowd,
                         attn__fit *scale)
{
    const int64_t n = attn__max_i64(panel->values.shape[0],
                                    panel->values.shape[1]);
    const int64_t across = crowd < 4 ? crowd : 4;

    scale->cell = attn__min_i64(side_of(crowd) / n, LARGEST_CELL);
    if ((panel->row_labels || panel->column_labels) &&
        scale->cell < LABEL_CELL && n <= MOST_LABELS / LABEL_CELL / across)
        scale->cell = LABEL_CELL;
    scale->cell = attn__max_i64(scale->cell, 1);
    scale->fold = attn__ceil_div(n, largest_side_of(crowd));
    if (scale->fold > 1)
        scale->cell = 1;
}

/* A thin matrix is stretched, or there would be nothing to see. */
static attn__fit fit_axis(int64_t n, attn__fit scale, bool may_stretch)
{
    attn__fit fit = {n, scale.cell, scale.fold};

    if (!may_stretch || attn__pixels(fit) >= LEAST_SIDE)
        return fit;
    fit.fold = 1;
    fit.cell = attn__ceil_div(LEAST_SIDE, n);
    return fit;
}

static attn_status check_side(attn__fit fit, const char *what,
                              attn_diag *diag)
{
    int64_t pixels;

    ATTN__REQUIRE(attn__mul_i64(attn__units(fit), fit.cell, &pixels) &&
                      pixels <= ATTN_PICTURE_MAX_SIDE,
                  diag, ATTN_E_LIMIT, "cell",
                  "%lld pixels for each of %lld %s are more than %d in all",
                  (long long)fit.cell, (long long)fit.n, what,
                  ATTN_PICTURE_MAX_SIDE);
    return ATTN_OK;
}

static attn__axis axis_of(attn__fit fit, int64_t first,
                          const char *const *labels)
{
    return (attn__axis){.n = fit.n, .first = first,
                        .pitch = (double)fit.cell / (double)fit.fold,
                        .labels = labels};
}

attn_status attn__block_plan(const attn__sheet *sheet, const attn_panel *panel,
                             int64_t cell, int64_t crowd, attn__block *block,
                             attn_diag *diag)
{
    attn__fit scale = {0, cell, 1};

    *block = (attn__block){.panel = panel};
    if (panel->n_curves > 0) {
        attn__plot_plan(sheet, block);
        return ATTN_OK;
    }
    if (cell == 0)
        choose_scale(panel, crowd, &scale);
    block->row_fit = fit_axis(panel->values.shape[0], scale, cell == 0);
    block->column_fit = fit_axis(panel->values.shape[1], scale, cell == 0);
    ATTN__TRY(check_side(block->row_fit, "rows", diag));
    ATTN__TRY(check_side(block->column_fit, "columns", diag));
    block->rows = axis_of(block->row_fit, panel->first_row, panel->row_labels);
    block->columns = axis_of(block->column_fit, panel->first_column,
                             panel->column_labels);
    attn__axis_plan(sheet, &block->rows, true);
    attn__axis_plan(sheet, &block->columns, false);
    block->height = (double)attn__pixels(block->row_fit);
    block->width = (double)attn__pixels(block->column_fit);
    block->left = block->rows.room;
    block->bottom = block->columns.room;
    return ATTN_OK;
}

/* -------------------------------------------------------- values in cells */

/* Digits behind the point that two significant ones of the largest value
 * need. */
static int decimals_of(const attn__range *range)
{
    const double most = fmax(fabs(range->low), fabs(range->high));
    const int power = (int)floor(log10(most));

    return power >= 2 ? 0 : power >= 1 ? 1 : power >= -1 ? 2
                                           : power >= -4 ? 1 - power : -1;
}

static void draw_value(attn__sheet *sheet, const attn__block *block,
                       uint16_t code, double value, double x, double y)
{
    const double side = (double)block->column_fit.cell;
    const uint32_t under = code < ATTN__LEVELS ? sheet->colors.level[code]
                                               : sheet->colors.nan;
    char text[ATTN__NUMBER_SIZE];
    attn__item item;

    attn__format(text, value, decimals_of(&sheet->range));
    if (attn__room_for(sheet, text, ATTN__TEXT_SIZE) + VALUE_GAP > side)
        return;
    item = attn__plain_text(sheet, text, x, y);
    item.anchor = ATTN__MIDDLE;
    item.color = attn__ink_on(under);
    attn__sheet_add(sheet, item);
}

static void draw_values(attn__sheet *sheet, const attn__block *block,
                        attn__heat *heat, double x, double y)
{
    const attn__fit rows = block->row_fit, columns = block->column_fit;

    if (fmin((double)rows.cell, (double)columns.cell) < VALUE_CELL ||
        rows.n * columns.n > MOST_VALUES)
        return;
    for (int64_t i = 0; i < rows.n; i++) {
        attn__heat_row(heat, block->panel, rows, columns, &sheet->range, i);
        for (int64_t j = 0; j < columns.n; j++)
            if (heat->code[j] != ATTN__MASKED)
                draw_value(sheet, block, heat->code[j], heat->value[j],
                           x + ((double)j + 0.5) * (double)columns.cell,
                           y + ((double)i + 0.5) * (double)rows.cell);
    }
}

/* A line around the cells, outside of them. */
static void draw_frame(attn__sheet *sheet, const attn__block *block, double x,
                       double y)
{
    const double w = block->width, h = block->height;
    const uint32_t color = sheet->colors.frame;

    attn__sheet_rect(sheet, x - 1, y - 1, w + 2, 1, color);
    attn__sheet_rect(sheet, x - 1, y + h, w + 2, 1, color);
    attn__sheet_rect(sheet, x - 1, y, 1, h, color);
    attn__sheet_rect(sheet, x + w, y, 1, h, color);
}

void attn__block_draw(attn__sheet *sheet, const attn__block *block,
                      attn__heat *heat, double x, double y)
{
    if (block->panel->n_curves > 0) {
        attn__plot_draw(sheet, block, x, y);
        return;
    }
    attn__sheet_add(sheet, (attn__item){.kind = ATTN__CELLS, .x = x, .y = y,
                                        .width = block->width,
                                        .height = block->height,
                                        .panel = block->panel,
                                        .rows = block->row_fit,
                                        .columns = block->column_fit});
    draw_frame(sheet, block, x, y);
    draw_values(sheet, block, heat, x, y);
    if (block->row_labels)
        attn__axis_rows(sheet, &block->rows, x, y);
    if (block->column_labels)
        attn__axis_columns(sheet, &block->columns, x, y + block->height);
}
