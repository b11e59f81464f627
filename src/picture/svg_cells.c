/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells as paths while they are few, else as an embedded PNG. */
#include "picture/svg_cells.h"

#include <string.h>

#include "core/alloc.h"
#include "picture/font.h"
#include "picture/png_write.h"
#include "picture/ticks.h"

#define MOST_PATHS 16384 /* units of a panel that are drawn one by one */
#define MOST_TOLD 4096   /* that also tell their value */

/* ------------------------------------------------------------------- words */

const char *attn__svg_color(uint32_t color, char text[ATTN__COLOR_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    text[0] = '#';
    for (int i = 0; i < 6; i++)
        text[1 + i] = digits[color >> (20 - 4 * i) & 15];
    text[7] = '\0';
    return text;
}

void attn__svg_attribute(attn__stream *s, const char *name, double value)
{
    attn__stream_text(s, name);
    attn__stream_text(s, "=\"");
    attn__stream_number(s, value);
    attn__stream_text(s, "\"");
}

static bool is_xml(uint32_t point)
{
    return point >= 0x20 && point != 0xfffe && point != 0xffff &&
           (point < 0x7f || point >= 0xa0);
}

void attn__svg_escape(attn__stream *s, const char *text)
{
    while (*text) {
        uint32_t point;
        const int size = attn__next_point(text, &point);

        if (point == ATTN__BOX || !is_xml(point))
            attn__stream_text(s, "\xef\xbf\xbd");
        else if (point == '<')
            attn__stream_text(s, "&lt;");
        else if (point == '>')
            attn__stream_text(s, "&gt;");
        else if (point == '&')
            attn__stream_text(s, "&amp;");
        else if (point == '"')
            attn__stream_text(s, "&quot;");
        else
            attn__stream_put(s, text, (size_t)size);
        text += size;
    }
}

/* ------------------------------------------------------------------- paths */

static uint32_t color_of(const attn__sheet *sheet, uint16_t code)
{
    return code < ATTN__LEVELS ? sheet->colors.level[code]
                               : sheet->colors.nan;
}

static void write_name(attn__stream *s, const char *const *labels,
                       int64_t first, int64_t i)
{
    char number[ATTN__NUMBER_SIZE];

    if (labels) {
        attn__svg_escape(s, labels[i]);
        return;
    }
    attn__format(number, (double)(first + i), 0);
    attn__stream_text(s, number);
}

/* "row, column: value", which browsers show at the pointer. */
static void write_title(attn__stream *s, const attn__item *item, int64_t i,
                        int64_t j, double value)
{
    const attn_panel *panel = item->panel;
    char number[ATTN__NUMBER_SIZE];

    attn__stream_text(s, "<title>");
    write_name(s, panel->row_labels, panel->first_row, i);
    attn__stream_text(s, ", ");
    write_name(s, panel->column_labels, panel->first_column, j);
    attn__stream_text(s, ": ");
    attn__format(number, value, 4);
    attn__stream_text(s, number);
    attn__stream_text(s, "</title>");
}

static void write_unit(attn__stream *s, uint32_t fill, int64_t x, int64_t y,
                       int64_t width)
{
    char color[ATTN__COLOR_SIZE];

    attn__stream_text(s, "<path fill=\"");
    attn__stream_text(s, attn__svg_color(fill, color));
    attn__stream_text(s, "\" d=\"M");
    attn__stream_number(s, (double)x);
    attn__stream_text(s, " ");
    attn__stream_number(s, (double)y);
    attn__stream_text(s, "h");
    attn__stream_number(s, (double)width);
    attn__stream_text(s, "v1h-");
    attn__stream_number(s, (double)width);
    attn__stream_text(s, "z\"");
}

/* Row i of units: each alone where it tells its value, else as long as the
 * colour stays. */
static void write_row(const attn__sheet *sheet, const attn__item *item,
                      const attn__heat *heat, int64_t i, bool told,
                      attn__stream *s)
{
    const int64_t n = attn__units(item->columns);
    int64_t width;

    for (int64_t j = 0; j < n; j += width) {
        const uint16_t code = heat->code[j];

        width = 1;
        while (!told && j + width < n && heat->code[j + width] == code)
            width++;
        if (code == ATTN__MASKED)
            continue;
        write_unit(s, color_of(sheet, code), j, i, width);
        if (told) {
            attn__stream_text(s, ">");
            write_title(s, item, i, j, heat->value[j]);
            attn__stream_text(s, "</path>\n");
        } else {
            attn__stream_text(s, "/>\n");
        }
    }
}

static void write_paths(const attn__sheet *sheet, const attn__item *item,
                        attn__heat *heat, bool told, attn__stream *s)
{
    attn__stream_text(s, "<g shape-rendering=\"crispEdges\" "
                         "transform=\"translate(");
    attn__stream_number(s, item->x);
    attn__stream_text(s, " ");
    attn__stream_number(s, item->y);
    attn__stream_text(s, ") scale(");
    attn__stream_number(s, (double)item->columns.cell);
    attn__stream_text(s, " ");
    attn__stream_number(s, (double)item->rows.cell);
    attn__stream_text(s, ")\">\n");
    for (int64_t i = 0; i < attn__units(item->rows); i++) {
        attn__heat_row(heat, item->panel, item->rows, item->columns,
                       &sheet->range, i);
        write_row(sheet, item, heat, i, told, s);
    }
    attn__stream_text(s, "</g>\n");
}

/* ------------------------------------------------------------------- image */

typedef struct image {
    const attn__sheet *sheet;
    const attn__item *item;
    attn__heat *heat;
} image;

/* One dot a unit; masked ones are transparent. */
static void image_row(void *from, int64_t y, uint8_t *rgba)
{
    const image *im = from;
    const attn__item *item = im->item;

    attn__heat_row(im->heat, item->panel, item->rows, item->columns,
                   &im->sheet->range, y);
    for (int64_t j = 0; j < attn__units(item->columns); j++) {
        const uint16_t code = im->heat->code[j];
        const uint32_t color = color_of(im->sheet, code);

        rgba[4 * j] = (uint8_t)(color >> 16);
        rgba[4 * j + 1] = (uint8_t)(color >> 8);
        rgba[4 * j + 2] = (uint8_t)color;
        rgba[4 * j + 3] = code == ATTN__MASKED ? 0 : 255;
    }
}

static void write_base64(attn__stream *s, const uint8_t *data, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t at = 0; at < n; at += 3) {
        const size_t left = n - at;
        const uint32_t three = (uint32_t)data[at] << 16 |
                               (left > 1 ? (uint32_t)data[at + 1] << 8 : 0) |
                               (left > 2 ? (uint32_t)data[at + 2] : 0);
        const char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
                              left > 1 ? digits[three >> 6 & 63] : '=',
                              left > 2 ? digits[three & 63] : '='};

        attn__stream_put(s, four, 4);
    }
}

static void write_image(const attn__sheet *sheet, const attn__item *item,
                        attn__heat *heat, attn__stream *s)
{
    image im = {sheet, item, heat};
    const attn__png_source source = {image_row, &im,
                                     attn__units(item->columns),
                                     attn__units(item->rows), 4};
    attn__stream *png = attn__calloc(1, sizeof *png);
    void *data = NULL;
    size_t size = 0;

    if (!png) {
        s->status = attn__fail(&s->diag, ATTN_E_NOMEM, "png", "no memory");
        return;
    }
    attn__stream_open(png, NULL);
    attn__png_write_rows(&source, png);
    if (attn__stream_close(png, &data, &size, &s->diag) != ATTN_OK) {
        s->status = png->status;
        attn__free(png);
        return;
    }
    attn__svg_attribute(s, "<image x", item->x);
    attn__svg_attribute(s, " y", item->y);
    attn__svg_attribute(s, " width", item->width);
    attn__svg_attribute(s, " height", item->height);
    attn__stream_text(s, " preserveAspectRatio=\"none\" "
                         "image-rendering=\"optimizeSpeed\" "
                         "style=\"image-rendering:pixelated\" "
                         "href=\"data:image/png;base64,");
    write_base64(s, data, size);
    attn__stream_text(s, "\"/>\n");
    attn__free(data);
    attn__free(png);
}

void attn__svg_cells(const attn__sheet *sheet, const attn__item *item,
                     attn__heat *heat, attn__stream *s)
{
    const int64_t units = attn__units(item->rows) * attn__units(item->columns);
    const bool folded = item->rows.fold > 1 || item->columns.fold > 1;

    if (units <= MOST_PATHS)
        write_paths(sheet, item, heat, !folded && units <= MOST_TOLD, s);
    else
        write_image(sheet, item, heat, s);
}
