/* SPDX-License-Identifier: Apache-2.0
 *
 * Perceptually uniform maps, made and not measured: a path through Oklab
 * (Ottosson, "A perceptual color space for image processing", 2020) whose
 * lightness runs straight from that of the page to its opposite, whose hue
 * turns with it, and which is cut into 256 steps of equal length. Zero fades
 * into the page, so that what is bright on dark, or dark on light, is what has
 * weight. */
#include "picture/colormap.h"

#include <math.h>

#define PIECES 1024 /* of a path, to measure its length */

typedef struct lab {
    double l, a, b;
} lab;

/* Lightness, hue in degrees and chroma at the ends of a path. The chroma is
 * an arc between them: `bulge` more in the middle. */
typedef struct path {
    double l0, l1, hue0, hue1, c0, c1, bulge;
} path;

/* Chosen by eye: hues from yellow over green to blue, or from violet over red
 * to yellow, as far from grey as sRGB can show all along: a path that left it
 * would have a kink there. */
static const path paths[] = {
    [ATTN_THEME_LIGHT] = {0.985, 0.27, 105, 285, 0.012, 0.10, 0.028},
    [ATTN_THEME_DARK] = {0.17, 0.965, 285, 460, 0.035, 0.07, 0.10},
};

/* ------------------------------------------------------- sRGB and Oklab */

static double to_linear(uint32_t byte)
{
    const double c = (double)byte / 255;

    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

static uint32_t to_byte(double linear)
{
    const double c = linear <= 0.0031308
                         ? 12.92 * linear
                         : 1.055 * pow(linear, 1 / 2.4) - 0.055;

    return (uint32_t)(255 * fmin(fmax(c, 0), 1) + 0.5);
}

static lab lab_of(uint32_t color)
{
    const double r = to_linear(color >> 16 & 0xff);
    const double g = to_linear(color >> 8 & 0xff);
    const double b = to_linear(color & 0xff);
    const double l = cbrt(0.4122214708 * r + 0.5363325363 * g +
                          0.0514459929 * b);
    const double m = cbrt(0.2119034982 * r + 0.6806995451 * g +
                          0.1073969566 * b);
    const double s = cbrt(0.0883024619 * r + 0.2817188376 * g +
                          0.6299787005 * b);

    return (lab){0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
                 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
                 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

static double cube(double x)
{
    return x * x * x;
}

/* Linear sRGB, which may lie outside of 0..1. */
static void linear_of(lab c, double rgb[3])
{
    const double l = cube(c.l + 0.3963377774 * c.a + 0.2158037573 * c.b);
    const double m = cube(c.l - 0.1055613458 * c.a - 0.0638541728 * c.b);
    const double s = cube(c.l - 0.0894841775 * c.a - 1.2914855480 * c.b);

    rgb[0] = 4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s;
    rgb[1] = -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s;
    rgb[2] = -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s;
}

static int in_gamut(lab c)
{
    double rgb[3];

    linear_of(c, rgb);
    for (int i = 0; i < 3; i++)
        if (!(rgb[i] >= 0 && rgb[i] <= 1))
            return 0;
    return 1;
}

static uint32_t color_of(lab c)
{
    double rgb[3];

    linear_of(c, rgb);
    return to_byte(rgb[0]) << 16 | to_byte(rgb[1]) << 8 | to_byte(rgb[2]);
}

/* The colour of that lightness, chroma and hue; with less chroma where a
 * screen can't show it. */
static lab lch(double l, double chroma, double degrees)
{
    const double hue = degrees * 3.14159265358979323846 / 180;
    lab c = {l, chroma * cos(hue), chroma * sin(hue)};

    while (chroma > 0 && !in_gamut(c)) {
        chroma -= 0.0005;
        c.a = fmax(chroma, 0) * cos(hue);
        c.b = fmax(chroma, 0) * sin(hue);
    }
    return c;
}

/* ------------------------------------------------------------------ paths */

static lab along(const path *p, double t)
{
    return lch(p->l0 + t * (p->l1 - p->l0),
               p->c0 + t * (p->c1 - p->c0) + p->bulge * 4 * t * (1 - t),
               p->hue0 + t * (p->hue1 - p->hue0));
}

static double apart(lab x, lab y)
{
    return sqrt((x.l - y.l) * (x.l - y.l) + (x.a - y.a) * (x.a - y.a) +
                (x.b - y.b) * (x.b - y.b));
}

/* Level i lies at i / 255 of the path's length. */
static void cut_evenly(const path *p, uint32_t level[ATTN__LEVELS])
{
    double total = 0, gone = 0;
    lab from = along(p, 0);
    int next = 1;

    for (int i = 1; i <= PIECES; i++) {
        const lab to = along(p, (double)i / PIECES);

        total += apart(from, to);
        from = to;
    }
    from = along(p, 0);
    level[0] = color_of(from);
    for (int i = 1; i <= PIECES && next < ATTN__LEVELS - 1; i++) {
        const lab to = along(p, (double)i / PIECES);

        gone += apart(from, to);
        from = to;
        if (gone >= total * next / (ATTN__LEVELS - 1))
            level[next++] = color_of(to);
    }
    level[ATTN__LEVELS - 1] = color_of(along(p, 1));
}

void attn__colors_of(attn_theme theme, attn__colors *colors)
{
    static const attn__colors themes[] = {
        [ATTN_THEME_LIGHT] = {.page = 0xffffff, .ink = 0x1c1e21,
                              .faint = 0x6b7079,
                              .frame = 0xd4d7db, .masked = 0xe9eaec,
                              .hatch = 0xc9ccd1, .nan = 0xe0218a},
        [ATTN_THEME_DARK] = {.page = 0x0d1117, .ink = 0xe6e9ee,
                             .faint = 0x9aa2ad,
                             .frame = 0x363c45, .masked = 0x24292f,
                             .hatch = 0x434a54, .nan = 0x2de2e6},
    };

    *colors = themes[theme];
    cut_evenly(&paths[theme], colors->level);
}

/* Six hues are told apart; more take turns in lightness too. */
uint32_t attn__curve_color(attn_theme theme, int64_t i, int64_t n)
{
    static const double shades[2][3] = {
        [ATTN_THEME_LIGHT] = {0.55, 0.72, 0.40},
        [ATTN_THEME_DARK] = {0.75, 0.60, 0.86},
    };
    const int64_t hues = n < 6 ? n : 6;
    const int64_t shade = n > 6 ? (i + i / 6) % 3 : 0;
    const double hue = 260 + 360 * (double)(i % hues) / (double)hues +
                       5 * (double)(i / hues);

    return color_of(lch(shades[theme][shade], 0.16, hue));
}

double attn__lightness(uint32_t color)
{
    return lab_of(color).l;
}

double attn__color_distance(uint32_t a, uint32_t b)
{
    return apart(lab_of(a), lab_of(b));
}

/* The relative luminance of WCAG 2, by which contrast is measured. */
static double luminance(uint32_t color)
{
    return 0.2126 * to_linear(color >> 16 & 0xff) +
           0.7152 * to_linear(color >> 8 & 0xff) +
           0.0722 * to_linear(color & 0xff);
}

uint32_t attn__ink_on(uint32_t color)
{
    const double y = luminance(color) + 0.05;

    return y / 0.05 > 1.05 / y ? 0x000000 : 0xffffff;
}

uint32_t attn__blend(uint32_t under, uint32_t over, float alpha)
{
    uint32_t mixed = 0;

    for (int shift = 0; shift < 24; shift += 8) {
        const float u = (float)(under >> shift & 0xff);
        const float o = (float)(over >> shift & 0xff);

        mixed |= (uint32_t)(u + alpha * (o - u) + 0.5f) << shift;
    }
    return mixed;
}
