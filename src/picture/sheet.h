/* SPDX-License-Identifier: Apache-2.0
 *
 * A picture before it has a format: a list of things with places and colours,
 * in pixels, the later over the earlier. layout.c makes it, raster.c and svg.c
 * draw it. */
#ifndef ATTN_PICTURE_SHEET_H
#define ATTN_PICTURE_SHEET_H

#include "picture/colormap.h"
#include "picture/heatmap.h"

typedef enum attn__item_kind {
    ATTN__RECT,
    ATTN__HATCH, /* a rectangle of masked cell */
    ATTN__BAR,   /* the colours, lowest at the bottom */
    ATTN__CELLS, /* a heat map */
    ATTN__LINE,  /* a curve */
    ATTN__TEXT
} attn__item_kind;

typedef enum attn__anchor {
    ATTN__START,
    ATTN__MIDDLE,
    ATTN__END
} attn__anchor;

typedef struct attn__item {
    attn__item_kind kind;
    double x, y, width, height; /* text: x, y of the anchor on the baseline */
    uint32_t color;
    const char *text;
    char *owned; /* the sheet's copy of it */
    double size;
    attn__anchor anchor;
    int turned; /* reads upwards */
    int bold;
    /* cells */
    const attn_panel *panel;
    attn__fit rows, columns;
    /* line: element i at x + i * step, from y + height for `low` up to y for
     * `high` */
    const attn_input *values;
    double step, low, high;
} attn__item;

typedef struct attn__sheet {
    int64_t width, height; /* of the picture */
    double slack; /* room for text, against what our own letters need */
    attn_theme theme;
    attn__colors colors;
    attn__range range;
    attn__item *items;
    size_t n, room;
    bool short_of_memory; /* some item is missing */
} attn__sheet;

/* A copy of the item, and with it of its text. */
void attn__sheet_add(attn__sheet *sheet, attn__item item);
void attn__sheet_rect(attn__sheet *sheet, double x, double y, double width,
                      double height, uint32_t color);
/* Text of the common size and colour, START at x, its capitals centred on
 * y. */
attn__item attn__plain_text(const attn__sheet *sheet, const char *text,
                            double x, double y);
void attn__sheet_free(attn__sheet *sheet);

#define ATTN__TEXT_SIZE 12.0
/* Pixels that text is given: our own width, and the slack of the sheet. */
double attn__room_for(const attn__sheet *sheet, const char *text, double size);

/* Place everything. `slack` >= 1 widens the room for text where other letters
 * than ours will be drawn. On failure the sheet is empty. */
attn_status attn__lay_out(const attn_figure *figure, double slack,
                          attn__sheet *sheet, attn_diag *diag);

#endif
