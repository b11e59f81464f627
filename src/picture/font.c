/* SPDX-License-Identifier: Apache-2.0
 *
 * From UTF-8 to strokes by way of the glyphs in font_data.c. */
#include "picture/font.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/diag.h"
#include "core/utf8.h"

#define PIECES 6        /* lines that a parabola is made of */
#define PIXEL 2.0       /* glyph units in a pixel, at SIZE */
#define SIZE 12.0
#define SPACING 6.0     /* of an advance that lies behind the letter */
#define DOT 1.3         /* a dot's radius, against the stroke's */
#define LEAST_DOT 0.15  /* and what is added, in pixels */

int attn__next_point(const char *text, uint32_t *point)
{
    const int64_t n = (int64_t)strnlen(text, 4);
    const int size = attn__utf8_decode((const uint8_t *)text, n, point);

    if (size > 0)
        return size;
    *point = ATTN__BOX;
    return 1;
}

static uint32_t next_point(const char **text)
{
    uint32_t point;
    const int size = attn__next_point(*text, &point);

    *text += size;
    return point;
}

/* Combining marks, joiners and selectors, which take no room. */
static bool is_silent(uint32_t point)
{
    return (point >= 0x300 && point < 0x370) ||
           (point >= 0x200b && point < 0x2010) ||
           (point >= 0xfe00 && point < 0xfe10);
}

/* The one of n rows that begins with `point`, or NULL. Rows have `size` bytes,
 * begin with their point, and ascend by it. */
static const void *find(const void *rows, int n, size_t size, uint32_t point)
{
    int low = 0, high = n;

    while (low < high) {
        const int middle = (low + high) / 2;
        const void *row = (const char *)rows + (size_t)middle * size;
        const uint32_t here = *(const uint32_t *)row;

        if (here == point)
            return row;
        low = here < point ? middle + 1 : low;
        high = here < point ? high : middle;
    }
    return NULL;
}

static const attn__glyph *find_glyph(uint32_t point)
{
    return find(attn__glyphs, attn__n_glyphs, sizeof *attn__glyphs, point);
}

static const attn__accented *find_accented(uint32_t point)
{
    return find(attn__accented_letters, attn__n_accented,
                sizeof *attn__accented_letters, point);
}

static const char *find_folded(uint32_t point)
{
    const attn__folded *row = find(attn__folded_letters, attn__n_folded,
                                   sizeof *attn__folded_letters, point);

    return row ? row->text : NULL;
}

/* --------------------------------------------------------------- drawing */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* An integer of a path. */
static double read_number(const char **path)
{
    const bool negative = **path == '-';
    int value = 0;

    for (*path += negative; is_digit(**path); ++*path)
        value = 10 * value + (**path - '0');
    if (**path == ' ')
        ++*path;
    return negative ? -value : value;
}

typedef struct spot {
    double x, y;
} spot;

static spot read_spot(const char **path)
{
    const double x = read_number(path);

    return (spot){x, read_number(path)};
}

/* From glyph units, raised by `up` and moved by `along`, to dots. */
static spot place(const attn__pen *pen, spot at)
{
    return (spot){
        pen->x + pen->scale * (at.x * pen->right_x + at.y * pen->right_y),
        pen->y + pen->scale * (at.x * pen->right_y - at.y * pen->right_x)};
}

static attn_status draw_line(const attn__pen *pen, spot from, spot to,
                             double radius, attn__strokes *strokes)
{
    const spot a = place(pen, from), b = place(pen, to);

    return attn__stroke_add(strokes,
                            (attn__stroke){(float)a.x, (float)a.y, (float)b.x,
                                           (float)b.y, (float)radius});
}

/* (1-t)^2 a + 2 t (1-t) c + t^2 b, as PIECES lines. */
static attn_status draw_parabola(const attn__pen *pen, spot a, spot c, spot b,
                                 attn__strokes *strokes)
{
    spot from = a;

    for (int i = 1; i <= PIECES; i++) {
        const double t = (double)i / PIECES, u = 1 - t;
        const spot to = {u * u * a.x + 2 * t * u * c.x + t * t * b.x,
                         u * u * a.y + 2 * t * u * c.y + t * t * b.y};

        ATTN__TRY(draw_line(pen, from, to, pen->radius, strokes));
        from = to;
    }
    return ATTN_OK;
}

static spot moved(spot at, spot by)
{
    return (spot){at.x + by.x, at.y + by.y};
}

/* A path, moved by `by`. */
static attn_status draw_path(const attn__pen *pen, const char *path, spot by,
                             attn__strokes *strokes)
{
    const double dot = DOT * pen->radius + LEAST_DOT * PIXEL * pen->scale;
    spot at = {0, 0};

    while (*path) {
        const char command = *path++;
        const spot first = moved(read_spot(&path), by);
        spot to = first;
        attn_status status = ATTN_OK;

        if (command == 'Q') {
            to = moved(read_spot(&path), by);
            status = draw_parabola(pen, at, first, to, strokes);
        } else if (command == 'L') {
            status = draw_line(pen, at, to, pen->radius, strokes);
        } else if (command == 'D') {
            status = draw_line(pen, to, to, dot, strokes);
        }
        if (status != ATTN_OK)
            return status;
        at = to;
    }
    return ATTN_OK;
}

/* One character at *along glyph units, which its advance is added to. Without
 * strokes it is only measured. */
static attn_status draw_point(uint32_t point, const attn__pen *pen,
                              double *along, attn__strokes *strokes)
{
    const attn__accented *accented = find_accented(point);
    const attn__glyph *glyph = find_glyph(accented ? accented->base : point);
    const bool tall = accented && accented->base < 'a';
    const spot by = {*along, 0};

    if (!glyph)
        glyph = find_glyph(ATTN__BOX);
    *along += glyph->advance;
    if (!strokes)
        return ATTN_OK;
    ATTN__TRY(draw_path(pen, glyph->path, by, strokes));
    if (!accented)
        return ATTN_OK;
    return draw_path(pen, attn__accents[accented->accent],
                     (spot){by.x + (glyph->advance - SPACING) / 2,
                            accented->accent == ATTN__CEDILLA ? 0
                            : tall                            ? 18
                                                              : 13},
                     strokes);
}

static attn_status draw_text(const char *text, const attn__pen *pen,
                             double *along, attn__strokes *strokes)
{
    while (*text) {
        const uint32_t point = next_point(&text);
        const char *folded = find_folded(point);

        if (is_silent(point))
            continue;
        if (!folded) {
            ATTN__TRY(draw_point(point, pen, along, strokes));
            continue;
        }
        for (; *folded; folded++)
            ATTN__TRY(draw_point((uint32_t)*folded, pen, along, strokes));
    }
    return ATTN_OK;
}

double attn__text_width(const char *text, double size)
{
    double along = 0;

    /* Without strokes nothing can fail. */
    (void)draw_text(text, NULL, &along, NULL);
    return fmax(along - SPACING, 0) * size / (SIZE * PIXEL);
}

attn_status attn__text_strokes(const char *text, attn__pen pen,
                               attn__strokes *strokes)
{
    double along = 0;

    return draw_text(text, &pen, &along, strokes);
}
