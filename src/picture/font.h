/* SPDX-License-Identifier: Apache-2.0
 *
 * Text as strokes: how wide it is, and the lines that draw it. */
#ifndef ATTN_PICTURE_FONT_H
#define ATTN_PICTURE_FONT_H

#include <stdint.h>

#include "picture/strokes.h"

#define ATTN__BOX 0xfffd /* stands for every character that has no glyph */
#define ATTN__CAP_HEIGHT 8.0 /* pixels above the baseline, at size 12 */

typedef struct attn__glyph {
    uint32_t point;
    int8_t advance;
    const char *path; /* the language is in font_data.c */
} attn__glyph;

typedef enum attn__accent {
    ATTN__GRAVE,
    ATTN__ACUTE,
    ATTN__CIRCUMFLEX,
    ATTN__TILDE,
    ATTN__DIAERESIS,
    ATTN__RING,
    ATTN__DOT,
    ATTN__CARON,
    ATTN__MACRON,
    ATTN__CEDILLA
} attn__accent;

typedef struct attn__accented {
    uint32_t point, base;
    attn__accent accent;
} attn__accented;

typedef struct attn__folded {
    uint32_t point;
    const char *text;
} attn__folded;

extern const attn__glyph attn__glyphs[]; /* ascending by point */
extern const int attn__n_glyphs;
extern const char *const attn__accents[];
extern const attn__accented attn__accented_letters[];
extern const int attn__n_accented;
extern const attn__folded attn__folded_letters[];
extern const int attn__n_folded;

/* The code point that a non-empty text begins with, or the box for a byte that
 * is not UTF-8. Returns its bytes. */
int attn__next_point(const char *text, uint32_t *point);

/* Where and how text is drawn. */
typedef struct attn__pen {
    double x, y;             /* the first letter on the baseline; y goes down */
    double right_x, right_y; /* the unit vector along the line */
    double scale;     /* pixels a unit of the glyphs */
    double radius;    /* half the width of the stroke */
} attn__pen;

/* Pixels from the first stroke to the last at the given size. Bytes that are
 * not UTF-8 count, and are drawn, as a box each. */
double attn__text_width(const char *text, double size);
/* E_NOMEM if the strokes don't fit in memory. */
attn_status attn__text_strokes(const char *text, attn__pen pen,
                               attn__strokes *strokes);

#endif
