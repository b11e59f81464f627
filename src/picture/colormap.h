/* SPDX-License-Identifier: Apache-2.0
 *
 * Colours: a map from 256 levels, and the inks of a theme. Colours are
 * 0xRRGGBB in sRGB. */
#ifndef ATTN_PICTURE_COLORMAP_H
#define ATTN_PICTURE_COLORMAP_H

#include "attn_picture.h"

#define ATTN__LEVELS 256

typedef struct attn__colors {
    uint32_t page, ink, faint; /* faint: what explains, such as axes */
    uint32_t frame;            /* lines behind all */
    uint32_t masked, hatch;    /* cells that are not shown */
    uint32_t nan;
    uint32_t level[ATTN__LEVELS];
} attn__colors;

void attn__colors_of(attn_theme theme, attn__colors *colors);
/* The i-th of n colours that are told apart. */
uint32_t attn__curve_color(attn_theme theme, int64_t i, int64_t n);
/* Oklab lightness, 0 to 1. */
double attn__lightness(uint32_t color);
/* Distance in Oklab. */
double attn__color_distance(uint32_t a, uint32_t b);
/* Black or white, whichever is read better on a colour. */
uint32_t attn__ink_on(uint32_t color);
/* `over` laid on `under`, alpha from 0 to 1. */
uint32_t attn__blend(uint32_t under, uint32_t over, float alpha);

#endif
