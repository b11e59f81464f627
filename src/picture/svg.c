/* SPDX-License-Identifier: Apache-2.0
 *
 * SVG as text. Text keeps its characters, in whatever sans-serif the reader
 * has; small heat maps are cells that tell their value when pointed at, larger
 * ones an embedded PNG with one dot a unit (svg_cells.c). */
#include "picture/svg.h"

#include <math.h>
#include <string.h>

#include "picture/svg_cells.h"

#define STOPS 32 /* of the colour bar's gradient */

static void rect(attn__stream *s, const attn__item *item, const char *fill)
{
    attn__svg_attribute(s, "<rect x", item->x);
    attn__svg_attribute(s, " y", item->y);
    attn__svg_attribute(s, " width", item->width);
    attn__svg_attribute(s, " height", item->height);
    attn__stream_text(s, " fill=\"");
    attn__stream_text(s, fill);
    attn__stream_text(s, "\"/>\n");
}

static void write_text(attn__stream *s, const attn__item *item)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    char color[ATTN__COLOR_SIZE];

    if (item->turned) {
        attn__stream_text(s, "<text transform=\"translate(");
        attn__stream_number(s, item->x);
        attn__stream_text(s, " ");
        attn__stream_number(s, item->y);
        attn__stream_text(s, ") rotate(-90)\"");
    } else {
        attn__svg_attribute(s, "<text x", item->x);
        attn__svg_attribute(s, " y", item->y);
    }
    if (item->size != ATTN__TEXT_SIZE)
        attn__svg_attribute(s, " font-size", item->size);
    if (item->anchor != ATTN__START) {
        attn__stream_text(s, " text-anchor=\"");
        attn__stream_text(s, anchors[item->anchor]);
        attn__stream_text(s, "\"");
    }
    if (item->bold)
        attn__stream_text(s, " font-weight=\"bold\"");
    attn__stream_text(s, " fill=\"");
    attn__stream_text(s, attn__svg_color(item->color, color));
    attn__stream_text(s, "\">");
    attn__svg_escape(s, item->text);
    attn__stream_text(s, "</text>\n");
}

/* The path breaks where a value is not finite. A lone point is a line of no
 * length, which the round ends make a dot. */
static void write_line(attn__stream *s, const attn__item *item)
{
    const double span = 0.5 * item->high - 0.5 * item->low;
    char color[ATTN__COLOR_SIZE];
    bool joined = false;

    attn__stream_text(s, "<path fill=\"none\" stroke-width=\"1.8\" "
                         "stroke-linecap=\"round\" stroke-linejoin=\"round\" "
                         "stroke=\"");
    attn__stream_text(s, attn__svg_color(item->color, color));
    attn__stream_text(s, "\" d=\"");
    for (int64_t i = 0; i < item->values->shape[0]; i++) {
        const double v = attn__element(item->values, i);
        const double up = (0.5 * v - 0.5 * item->low) / span;

        if (isfinite(v)) {
            attn__stream_text(s, joined ? "L" : "M");
            attn__stream_number(s, item->x + (double)i * item->step);
            attn__stream_text(s, " ");
            attn__stream_number(s, item->y + item->height * (1 - up));
            attn__stream_text(s, joined ? "" : "h0");
        }
        joined = isfinite(v);
    }
    attn__stream_text(s, "\"/>\n");
}

/* --------------------------------------------------------------- the whole */

/* Names of the pattern and the gradient: two themes may meet in one page. */
static const char *const masked_fill[] = {"url(#attn-masked-light)",
                                          "url(#attn-masked-dark)"};
static const char *const bar_fill[] = {"url(#attn-bar-light)",
                                       "url(#attn-bar-dark)"};

static void id(attn__stream *s, const char *url)
{
    const size_t head = sizeof "url(#" - 1;

    attn__stream_text(s, " id=\"");
    attn__stream_put(s, url + head, strlen(url) - head - 1);
    attn__stream_text(s, "\"");
}

static void write_defs(const attn__sheet *sheet, attn__stream *s)
{
    char color[ATTN__COLOR_SIZE];

    attn__stream_text(s, "<defs>\n<pattern");
    id(s, masked_fill[sheet->theme]);
    attn__stream_text(s, " width=\"6\" height=\"6\" "
                         "patternUnits=\"userSpaceOnUse\">"
                         "<path d=\"M0 0h6v6h-6z\" fill=\"");
    attn__stream_text(s, attn__svg_color(sheet->colors.masked, color));
    attn__stream_text(s, "\"/><path d=\"M-1 1L1 -1M0 6L6 0M5 7L7 5\" "
                         "stroke-width=\"1.1\" stroke=\"");
    attn__stream_text(s, attn__svg_color(sheet->colors.hatch, color));
    attn__stream_text(s, "\"/></pattern>\n<linearGradient");
    id(s, bar_fill[sheet->theme]);
    attn__stream_text(s, " x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">");
    for (int i = 0; i <= STOPS; i++) {
        const int level = i * (ATTN__LEVELS - 1) / STOPS;

        attn__svg_attribute(s, "<stop offset", (double)i / STOPS);
        attn__stream_text(s, " stop-color=\"");
        attn__stream_text(s, attn__svg_color(sheet->colors.level[level],
                                             color));
        attn__stream_text(s, "\"/>");
    }
    attn__stream_text(s, "</linearGradient>\n</defs>\n");
}

static void write_head(const attn__sheet *sheet, const attn_figure *figure,
                       attn__stream *s)
{
    const attn__item page = {.width = (double)sheet->width,
                             .height = (double)sheet->height};
    char color[ATTN__COLOR_SIZE];

    attn__stream_text(s, "<svg xmlns=\"http://www.w3.org/2000/svg\" ");
    attn__stream_text(s, "role=\"img\" font-family=\"sans-serif\" "
                         "font-size=\"12\"");
    attn__svg_attribute(s, " width", page.width);
    attn__svg_attribute(s, " height", page.height);
    attn__stream_text(s, " viewBox=\"0 0 ");
    attn__stream_number(s, page.width);
    attn__stream_text(s, " ");
    attn__stream_number(s, page.height);
    attn__stream_text(s, "\">\n");
    if (figure->title) {
        attn__stream_text(s, "<title>");
        attn__svg_escape(s, figure->title);
        attn__stream_text(s, "</title>\n");
    }
    write_defs(sheet, s);
    rect(s, &page, attn__svg_color(sheet->colors.page, color));
}

void attn__svg_write(const attn__sheet *sheet, const attn_figure *figure,
                     attn__heat *heat, attn__stream *s)
{
    char color[ATTN__COLOR_SIZE];

    write_head(sheet, figure, s);
    for (size_t i = 0; i < sheet->n && s->status == ATTN_OK; i++) {
        const attn__item *item = &sheet->items[i];

        switch (item->kind) {
        case ATTN__RECT:
            rect(s, item, attn__svg_color(item->color, color));
            break;
        case ATTN__HATCH:
            rect(s, item, masked_fill[sheet->theme]);
            break;
        case ATTN__BAR:
            rect(s, item, bar_fill[sheet->theme]);
            break;
        case ATTN__CELLS:
            if (sheet->range.any_masked)
                rect(s, item, masked_fill[sheet->theme]);
            attn__svg_cells(sheet, item, heat, s);
            break;
        case ATTN__LINE:
            write_line(s, item);
            break;
        case ATTN__TEXT:
            write_text(s, item);
            break;
        }
    }
    attn__stream_text(s, "</svg>\n");
}
