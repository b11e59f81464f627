/* SPDX-License-Identifier: Apache-2.0
 *
 * Heat maps in SVG, and the small words that SVG is written with. */
#ifndef ATTN_PICTURE_SVG_CELLS_H
#define ATTN_PICTURE_SVG_CELLS_H

#include "picture/sheet.h"
#include "picture/stream.h"

#define ATTN__COLOR_SIZE 8

/* "#rrggbb", in `text`. */
const char *attn__svg_color(uint32_t color, char text[ATTN__COLOR_SIZE]);
/* name="value" */
void attn__svg_attribute(attn__stream *stream, const char *name,
                         double value);
/* Text as XML has it. What XML can't hold becomes U+FFFD. */
void attn__svg_escape(attn__stream *stream, const char *text);

/* The shown cells of an item; the masked ones let through what is below. */
void attn__svg_cells(const attn__sheet *sheet, const attn__item *item,
                     attn__heat *heat, attn__stream *stream);

#endif
