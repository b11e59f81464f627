/* SPDX-License-Identifier: Apache-2.0
 *
 * From a figure to a sheet: titles on top, panels in a grid, axes' names at
 * the left and below, the colour bar at the right. Labels that would repeat
 * those of a neighbour are left out. */
#include <math.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "picture/bar.h"
#include "picture/block.h"
#include "picture/font.h"

#define MARGIN 20.0
#define TITLE_SIZE 16.0
#define TITLE_LINE 24.0
#define NOTE_LINE 20.0
#define PANEL_TITLE_LINE 22.0
#define PANEL_GAP 20.0
#define AXIS_LINE 22.0
#define BAR_GAP 28.0
#define LEAST_WIDTH 240.0
#define ASPECT 1.4 /* of a picture whose columns are left to us */

/* Panels in rows and columns, and the room that each row and column takes. */
typedef struct grid {
    const attn_figure *figure;
    attn__block *blocks;
    int64_t columns, rows;
    double *column; /* for each column: width, left, right */
    double *row;    /* for each row: height, top, bottom */
    double width, height; /* of all panels with their labels */
} grid;

/* ---------------------------------------------------------------- sharing */

/* Whether all panels have the same axes, so that the outer labels will do. */
static bool is_uniform(const grid *g, bool rows)
{
    for (int64_t p = 0; p < g->figure->n_panels; p++) {
        const attn__axis *a = rows ? &g->blocks[0].rows : &g->blocks[0].columns;
        const attn__axis *b = rows ? &g->blocks[p].rows : &g->blocks[p].columns;

        if (g->blocks[p].panel->n_curves > 0 || a->n != b->n ||
            a->first != b->first || a->labels != b->labels ||
            a->pitch != b->pitch)
            return false;
    }
    return true;
}

static void share_labels(grid *g)
{
    const int64_t n = g->figure->n_panels;
    const bool rows = is_uniform(g, true), columns = is_uniform(g, false);

    for (int64_t p = 0; p < n; p++) {
        attn__block *b = &g->blocks[p];

        b->row_labels = !rows || p % g->columns == 0;
        b->column_labels = !columns || p + g->columns >= n;
        if (!b->row_labels)
            b->left = 0;
        if (!b->column_labels)
            b->bottom = 0;
    }
}

/* ---------------------------------------------------------------- the grid */

/* The number of columns that looks best: near ASPECT, few places empty. */
static int64_t choose_columns(const attn_figure *figure,
                              const attn__block *first)
{
    const int64_t n = figure->n_panels;
    double least = INFINITY;
    int64_t best = 1;

    for (int64_t c = 1; c <= n && c <= 64; c++) {
        const int64_t r = (n + c - 1) / c;
        const double w = (double)c * (first->width + PANEL_GAP);
        const double h = (double)r * (first->height + PANEL_GAP +
                                      PANEL_TITLE_LINE);
        const double cost = fabs(log(w / h / ASPECT)) +
                            0.3 * (double)(r * c - n);

        if (cost < least) {
            least = cost;
            best = c;
        }
    }
    return best;
}

static attn_status plan_blocks(grid *g, const attn__sheet *sheet,
                               attn_diag *diag)
{
    const attn_figure *f = g->figure;

    g->blocks = attn__calloc((size_t)f->n_panels, sizeof *g->blocks);
    ATTN__REQUIRE(g->blocks, diag, ATTN_E_NOMEM, "panels",
                  "no memory to place %lld of them", (long long)f->n_panels);
    for (int64_t p = 0; p < f->n_panels; p++)
        ATTN__TRY(attn__block_plan(sheet, &f->panels[p], f->cell, f->n_panels,
                                   &g->blocks[p], diag));
    return ATTN_OK;
}

static void measure(grid *g)
{
    for (int64_t p = 0; p < g->figure->n_panels; p++) {
        const attn__block *b = &g->blocks[p];
        double *c = g->column + 3 * (p % g->columns);
        double *r = g->row + 3 * (p / g->columns);

        c[0] = fmax(c[0], b->width);
        c[1] = fmax(c[1], b->left);
        c[2] = fmax(c[2], b->right);
        r[0] = fmax(r[0], b->height);
        r[1] = fmax(r[1], b->panel->title ? PANEL_TITLE_LINE : 0);
        r[2] = fmax(r[2], b->bottom);
    }
    for (int64_t c = 0; c < g->columns; c++)
        g->width += g->column[3 * c] + g->column[3 * c + 1] +
                    g->column[3 * c + 2] + (c > 0 ? PANEL_GAP : 0);
    for (int64_t r = 0; r < g->rows; r++)
        g->height += g->row[3 * r] + g->row[3 * r + 1] + g->row[3 * r + 2] +
                     (r > 0 ? PANEL_GAP : 0);
}

static attn_status make_grid(grid *g, const attn__sheet *sheet,
                             attn_diag *diag)
{
    const attn_figure *f = g->figure;

    ATTN__TRY(plan_blocks(g, sheet, diag));
    g->columns = f->columns ? f->columns : choose_columns(f, g->blocks);
    if (g->columns > f->n_panels)
        g->columns = f->n_panels;
    g->rows = (f->n_panels + g->columns - 1) / g->columns;
    share_labels(g);
    g->column = attn__calloc((size_t)g->columns, 3 * sizeof *g->column);
    g->row = attn__calloc((size_t)g->rows, 3 * sizeof *g->row);
    ATTN__REQUIRE(g->column && g->row, diag, ATTN_E_NOMEM, "panels",
                  "no memory to place them");
    measure(g);
    return ATTN_OK;
}

static void free_grid(grid *g)
{
    attn__free(g->blocks);
    attn__free(g->column);
    attn__free(g->row);
}

/* ----------------------------------------------------------------- placing */

static void draw_panel_title(attn__sheet *sheet, const attn__block *block,
                             double x, double y)
{
    char text[ATTN__CUT_SIZE];
    attn__item item;

    if (!block->panel->title)
        return;
    attn__cut(sheet, block->panel->title, ATTN__TEXT_SIZE,
              fmax(block->width + 0.5 * PANEL_GAP, 80), text);
    item = attn__plain_text(sheet, text, x, y - 0.5 * PANEL_TITLE_LINE);
    item.bold = 1;
    attn__sheet_add(sheet, item);
}

static void draw_panels(attn__sheet *sheet, const grid *g, attn__heat *heat,
                        double left, double top)
{
    double y = top;

    for (int64_t r = 0; r < g->rows; r++) {
        const double *row = g->row + 3 * r;
        double x = left;

        y += row[1];
        for (int64_t c = 0; c < g->columns; c++) {
            const double *column = g->column + 3 * c;
            const int64_t p = r * g->columns + c;

            x += column[1];
            if (p < g->figure->n_panels) {
                draw_panel_title(sheet, &g->blocks[p], x, y);
                attn__block_draw(sheet, &g->blocks[p], heat, x, y);
            }
            x += column[0] + column[2] + PANEL_GAP;
        }
        y += row[0] + row[2] + PANEL_GAP;
    }
}

/* The figure's title and note, from `top`; returns where they end. */
static double draw_titles(attn__sheet *sheet, const attn_figure *figure,
                          double width, double top)
{
    char text[ATTN__CUT_SIZE];
    attn__item item;

    if (figure->title) {
        attn__cut(sheet, figure->title, TITLE_SIZE, width, text);
        item = attn__plain_text(sheet, text, MARGIN, top + 8);
        item.size = TITLE_SIZE;
        item.bold = 1;
        attn__sheet_add(sheet, item);
        top += TITLE_LINE;
    }
    if (figure->note) {
        attn__cut(sheet, figure->note, ATTN__TEXT_SIZE, width, text);
        item = attn__plain_text(sheet, text, MARGIN, top + 6);
        item.color = sheet->colors.faint;
        attn__sheet_add(sheet, item);
        top += NOTE_LINE;
    }
    return figure->title || figure->note ? top + 6 : top;
}

static void draw_axis_names(attn__sheet *sheet, const grid *g, double left,
                            double top)
{
    /* Between the first cells and the last, not counting labels. */
    const double width = g->width - g->column[1] -
                         g->column[3 * g->columns - 1];
    const double height = g->height - g->row[1] - g->row[3 * g->rows - 1];
    const double x = left + g->column[1] + 0.5 * width;
    const double y = top + g->row[1] + 0.5 * height;
    char text[ATTN__CUT_SIZE];
    attn__item item;

    if (g->figure->row_axis) {
        attn__cut(sheet, g->figure->row_axis, ATTN__TEXT_SIZE, height, text);
        item = attn__plain_text(sheet, text, MARGIN + 8, y);
        item.y -= ATTN__CAP_HEIGHT / 2;
        item.turned = 1;
        item.anchor = ATTN__MIDDLE;
        item.color = sheet->colors.faint;
        attn__sheet_add(sheet, item);
    }
    if (g->figure->column_axis) {
        attn__cut(sheet, g->figure->column_axis, ATTN__TEXT_SIZE, width, text);
        item = attn__plain_text(sheet, text, x,
                                top + g->height + 0.5 * AXIS_LINE);
        item.anchor = ATTN__MIDDLE;
        item.color = sheet->colors.faint;
        attn__sheet_add(sheet, item);
    }
}

static double title_width(const attn__sheet *sheet, const attn_figure *figure)
{
    double width = LEAST_WIDTH;

    if (figure->title)
        width = fmax(width, attn__room_for(sheet, figure->title, TITLE_SIZE));
    if (figure->note)
        width = fmax(width, attn__room_for(sheet, figure->note,
                                           ATTN__TEXT_SIZE));
    return width;
}

static void place(attn__sheet *sheet, const grid *g, attn__heat *heat)
{
    const attn_figure *f = g->figure;
    const double left = MARGIN + (f->row_axis ? AXIS_LINE : 0);
    const attn__bar bar = attn__bar_plan(sheet, f);
    const double content = left - MARGIN + g->width +
                           (bar.width > 0 ? BAR_GAP + bar.width : 0);
    /* A title widens a small picture, but not without end. */
    const double width =
        fmax(content, fmin(title_width(sheet, f), fmax(content, 600)));
    const double top = draw_titles(sheet, f, width, MARGIN);
    double bottom = top + g->height + (f->column_axis ? AXIS_LINE : 0);

    draw_panels(sheet, g, heat, left, top);
    draw_axis_names(sheet, g, left, top);
    if (bar.width > 0)
        bottom = fmax(bottom,
                      attn__bar_draw(sheet, &bar, left + g->width + BAR_GAP,
                                     top + g->row[1], g->row[0]));
    sheet->width = (int64_t)ceil(fmin(width + 2 * MARGIN, 1e9));
    sheet->height = (int64_t)ceil(fmin(bottom + MARGIN, 1e9));
}

static attn_status fill(attn__sheet *sheet, grid *g, attn__heat *heat,
                        attn_diag *diag)
{
    /* What will never fit is refused before its numbers are read. */
    ATTN__TRY(make_grid(g, sheet, diag));
    ATTN__TRY(attn__heat_init(heat, g->figure, diag));
    attn__range_of(g->figure, heat, &sheet->range);
    place(sheet, g, heat);
    ATTN__REQUIRE(!sheet->short_of_memory, diag, ATTN_E_NOMEM, "panels",
                  "no memory for what they hold");
    ATTN__REQUIRE(sheet->width <= ATTN_PICTURE_MAX_SIDE &&
                      sheet->height <= ATTN_PICTURE_MAX_SIDE,
                  diag, ATTN_E_LIMIT, "panels",
                  "the picture would have %lld x %lld pixels; at most %d a "
                  "side are allowed", (long long)sheet->width,
                  (long long)sheet->height, ATTN_PICTURE_MAX_SIDE);
    return ATTN_OK;
}

attn_status attn__lay_out(const attn_figure *figure, double slack,
                          attn__sheet *sheet, attn_diag *diag)
{
    grid g = {.figure = figure};
    attn__heat heat = {NULL, NULL, NULL};
    attn_status status;

    *sheet = (attn__sheet){.slack = slack, .theme = figure->theme};
    attn__colors_of(figure->theme, &sheet->colors);
    status = fill(sheet, &g, &heat, diag);
    if (status != ATTN_OK)
        attn__sheet_free(sheet);
    attn__heat_free(&heat);
    free_grid(&g);
    return status;
}
