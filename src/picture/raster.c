/* SPDX-License-Identifier: Apache-2.0
 *
 * Painting one row: every item that crosses it, in order. Lines are laid on
 * with the coverage of all strokes of an item at once, so that letters have no
 * knots where strokes meet. */
#include "picture/raster.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "picture/font.h"

#define TEXT_RADIUS 0.58 /* half a stroke at size 12, in pixels */
#define BOLD_RADIUS 0.85
#define LINE_RADIUS 0.9
#define HATCH_PERIOD 6.0 /* pixels along a row */
#define HATCH_RADIUS 0.55

/* ---------------------------------------------------------------- strokes */

static double snapped(double dots)
{
    return floor(dots) + 0.5;
}

static attn_status stroke_text(attn__raster *r, const attn__item *item)
{
    const double dots = (double)r->density, zoom = item->size / ATTN__TEXT_SIZE;
    const double width = attn__text_width(item->text, item->size);
    const double back = item->anchor == ATTN__START    ? 0
                        : item->anchor == ATTN__MIDDLE ? 0.5 * width
                                                       : width;
    const double radius = item->bold ? BOLD_RADIUS : TEXT_RADIUS;
    attn__pen pen = {.right_x = !item->turned, .right_y = -item->turned,
                     .scale = 0.5 * zoom * dots,
                     .radius = radius * zoom * dots};

    pen.x = snapped(dots * (item->x - back * pen.right_x));
    pen.y = snapped(dots * (item->y - back * pen.right_y));
    return attn__text_strokes(item->text, pen, &r->strokes);
}

/* Where a curve's value lies, in dots. */
static float curve_y(const attn__raster *r, const attn__item *item, double v)
{
    const double up = (0.5 * v - 0.5 * item->low) /
                      (0.5 * item->high - 0.5 * item->low);

    return (float)((double)r->density * (item->y + item->height * (1 - up)));
}

static attn_status stroke_line(attn__raster *r, const attn__item *item)
{
    const double dots = (double)r->density;
    bool joined = false; /* the point before this one is finite */
    attn__stroke s = {.radius = (float)(LINE_RADIUS * dots)};

    for (int64_t i = 0; i < item->values->shape[0]; i++) {
        const double v = attn__element(item->values, i);
        const bool is_finite = isfinite(v);

        if (is_finite) {
            s.x1 = (float)(dots * (item->x + (double)i * item->step));
            s.y1 = curve_y(r, item, v);
            if (!joined) {
                s.x0 = s.x1; /* alone, a point is a dot */
                s.y0 = s.y1;
            }
            ATTN__TRY(attn__stroke_add(&r->strokes, s));
            s.x0 = s.x1;
            s.y0 = s.y1;
        }
        joined = is_finite;
    }
    return ATTN_OK;
}

/* The rows that strokes of an item may touch. */
static void find_reach(const attn__raster *r, attn__reach *reach)
{
    float top = INFINITY, bottom = -INFINITY;

    for (size_t k = reach->first; k < r->strokes.n; k++) {
        const attn__stroke *s = &r->strokes.at[k];

        top = fminf(top, fminf(s->y0, s->y1) - s->radius);
        bottom = fmaxf(bottom, fmaxf(s->y0, s->y1) + s->radius);
    }
    reach->top = reach->bottom = 0;
    if (top <= bottom && top < (float)r->height && bottom >= 0) {
        reach->top = top > 1 ? (int64_t)top - 1 : 0;
        reach->bottom = bottom < (float)r->height ? (int64_t)bottom + 2
                                                  : r->height;
    }
}

static attn_status make_strokes(attn__raster *r)
{
    const attn__sheet *sheet = r->sheet;

    for (size_t i = 0; i < sheet->n; i++) {
        const attn__item *item = &sheet->items[i];

        r->reach[i].first = r->strokes.n;
        if (item->kind == ATTN__TEXT)
            ATTN__TRY(stroke_text(r, item));
        if (item->kind == ATTN__LINE)
            ATTN__TRY(stroke_line(r, item));
        find_reach(r, &r->reach[i]);
    }
    r->reach[sheet->n].first = r->strokes.n;
    return ATTN_OK;
}

/* ----------------------------------------------------------------- memory */

/* A row of codes for each heat map. */
static attn_status make_codes(attn__raster *r)
{
    const attn__sheet *sheet = r->sheet;

    for (size_t i = 0; i < sheet->n; i++) {
        const attn__item *item = &sheet->items[i];

        r->unit[i] = -1;
        if (item->kind != ATTN__CELLS)
            continue;
        r->codes[i] = attn__calloc((size_t)attn__units(item->columns),
                                   sizeof **r->codes);
        if (!r->codes[i])
            return ATTN_E_NOMEM;
    }
    return ATTN_OK;
}

static attn_status make_all(attn__raster *r)
{
    const size_t n = r->sheet->n;

    r->codes = attn__calloc(n, sizeof *r->codes);
    r->unit = attn__calloc(n, sizeof *r->unit);
    r->reach = attn__calloc(n + 1, sizeof *r->reach);
    r->coverage = attn__calloc((size_t)r->width, sizeof *r->coverage);
    r->row = attn__calloc((size_t)r->width, sizeof *r->row);
    if (!r->codes || !r->unit || !r->reach || !r->coverage || !r->row)
        return ATTN_E_NOMEM;
    ATTN__TRY(make_codes(r));
    return make_strokes(r);
}

attn_status attn__raster_init(attn__raster *r, const attn__sheet *sheet,
                              const attn_figure *figure, int64_t density,
                              attn_diag *diag)
{
    attn_status status;

    *r = (attn__raster){.sheet = sheet, .density = density,
                        .width = sheet->width * density,
                        .height = sheet->height * density};
    status = attn__heat_init(&r->heat, figure, diag);
    if (status == ATTN_OK && make_all(r) != ATTN_OK)
        status = attn__fail(diag, ATTN_E_NOMEM, "panels",
                            "no memory to draw them");
    if (status != ATTN_OK)
        attn__raster_free(r);
    return status;
}

void attn__raster_free(attn__raster *r)
{
    for (size_t i = 0; r->codes && i < r->sheet->n; i++)
        attn__free(r->codes[i]);
    attn__free(r->codes);
    attn__free(r->unit);
    attn__free(r->reach);
    attn__free(r->coverage);
    attn__free(r->row);
    attn__heat_free(&r->heat);
    attn__strokes_free(&r->strokes);
    *r = (attn__raster){.sheet = r->sheet};
}

/* --------------------------------------------------------------- painting */

/* The dots that an item covers along an axis. */
static int64_t to_dots(const attn__raster *r, double pixels, int64_t most)
{
    const double dots = floor((double)r->density * pixels + 0.5);

    return dots <= 0 ? 0 : dots >= (double)most ? most : (int64_t)dots;
}

/* How much of the dot at (x, y) a hatch line covers: lines of slope 1, a
 * period apart, measured across. */
static float hatch_at(const attn__raster *r, int64_t x, int64_t y)
{
    const double dots = (double)r->density, period = HATCH_PERIOD * dots;
    const double at = fmod((double)(x + y) + 1, period);
    const double away = fmin(at, period - at) * 0.70710678118654752;

    return (float)fmin(fmax(HATCH_RADIUS * dots + 0.5 - away, 0), 1);
}

static uint32_t masked_at(const attn__raster *r, int64_t x, int64_t y)
{
    const attn__colors *colors = &r->sheet->colors;

    return attn__blend(colors->masked, colors->hatch, hatch_at(r, x, y));
}

static uint32_t bar_at(const attn__raster *r, const attn__item *item,
                       int64_t y)
{
    const double dots = (double)r->density * item->height;
    const double up = 1 - ((double)y + 0.5 - (double)r->density * item->y) /
                              dots;

    return r->sheet->colors.level[(int)fmin(fmax(256 * up, 0), 255)];
}

static void paint_area(attn__raster *r, const attn__item *item, int64_t y)
{
    const int64_t from = to_dots(r, item->x, r->width);
    const int64_t to = to_dots(r, item->x + item->width, r->width);
    const uint32_t color = item->kind == ATTN__BAR ? bar_at(r, item, y)
                                                   : item->color;

    for (int64_t x = from; x < to; x++)
        r->row[x] = item->kind == ATTN__HATCH ? masked_at(r, x, y) : color;
}

static void paint_cells(attn__raster *r, size_t i, int64_t y)
{
    const attn__item *item = &r->sheet->items[i];
    const int64_t top = to_dots(r, item->y, r->height);
    const int64_t from = to_dots(r, item->x, r->width);
    const int64_t to = to_dots(r, item->x + item->width, r->width);
    const int64_t unit = (y - top) / (r->density * item->rows.cell);
    const int64_t side = r->density * item->columns.cell;
    const attn__colors *colors = &r->sheet->colors;
    const int64_t n = attn__units(item->columns);

    if (r->unit[i] != unit) {
        attn__heat_row(&r->heat, item->panel, item->rows, item->columns,
                       &r->sheet->range, unit);
        memcpy(r->codes[i], r->heat.code, (size_t)n * sizeof **r->codes);
        r->unit[i] = unit;
    }
    for (int64_t x = from; x < to; x++) {
        const uint16_t code = r->codes[i][(x - from) / side];

        r->row[x] = code < ATTN__LEVELS    ? colors->level[code]
                    : code == ATTN__MASKED ? masked_at(r, x, y)
                                           : colors->nan;
    }
}

static void paint_strokes(attn__raster *r, size_t i, int64_t y)
{
    const uint32_t color = r->sheet->items[i].color;
    int64_t from = r->width, to = 0;

    if (y < r->reach[i].top || y >= r->reach[i].bottom)
        return;
    for (size_t s = r->reach[i].first; s < r->reach[i + 1].first; s++)
        attn__stroke_cover(&r->strokes.at[s], y, r->width, r->coverage, &from,
                           &to);
    for (int64_t x = from; x < to; x++) {
        r->row[x] = attn__blend(r->row[x], color, r->coverage[x]);
        r->coverage[x] = 0;
    }
}

static bool is_strokes(const attn__item *item)
{
    return item->kind == ATTN__TEXT || item->kind == ATTN__LINE;
}

void attn__raster_row(attn__raster *r, int64_t y, uint8_t *rgb)
{
    const attn__sheet *sheet = r->sheet;

    for (int64_t x = 0; x < r->width; x++)
        r->row[x] = sheet->colors.page;
    for (size_t i = 0; i < sheet->n; i++) {
        const attn__item *item = &sheet->items[i];

        if (is_strokes(item))
            paint_strokes(r, i, y);
        else if (y < to_dots(r, item->y, r->height) ||
                 y >= to_dots(r, item->y + item->height, r->height))
            continue;
        else if (item->kind == ATTN__CELLS)
            paint_cells(r, i, y);
        else
            paint_area(r, item, y);
    }
    for (int64_t x = 0; x < r->width; x++) {
        rgb[3 * x] = (uint8_t)(r->row[x] >> 16);
        rgb[3 * x + 1] = (uint8_t)(r->row[x] >> 8);
        rgb[3 * x + 2] = (uint8_t)r->row[x];
    }
}
