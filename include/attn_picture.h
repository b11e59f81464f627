/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_picture.h: matrices as heat maps and sequences as curves, to PNG or
 * SVG.
 *
 * A figure is a grid of panels under one colour bar. It refers to the caller's
 * matrices and strings, which must stand until the call returns. Large
 * matrices are folded by maximum, so one hot cell among 4096 x 4096 stays
 * visible; small ones get large cells, with labels on both axes and the values
 * in the cells. Nothing here knows what the numbers mean. docs/pictures.md
 * shows what comes out.
 *
 * Quick start: one matrix with names on both axes.
 *
 *     const int64_t shape[2] = {3, 3};
 *     const char *names[3] = {"the", "cat", "sat"};
 *     attn_panel panel = {.values = attn_in_dense(p, ATTN_F32, 2, shape),
 *                         .row_labels = names, .column_labels = names};
 *     attn_figure figure;
 *     attn_figure_init(&figure, &panel, 1);
 *     attn_figure_write_png(&figure, "cat.png", &diag);
 *
 * Statuses: E_ARG, E_SHAPE and E_DTYPE for what a figure says, E_LIMIT for
 * more than 32768 pixels a side, E_NOMEM, E_IO. A file appears whole or not at
 * all. The same figure gives the same pixels and the same SVG on every
 * machine, whatever the locale. Thread-safe. Since 0.1. */
#ifndef ATTN_PICTURE_H
#define ATTN_PICTURE_H

#include "attn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ATTN_PICTURE_MAX_SIDE 32768

typedef enum attn_theme {
    ATTN_THEME_LIGHT = 0, /* low values fade into a white page */
    ATTN_THEME_DARK = 1   /* and into a dark one */
} attn_theme;

/* Which differences the colours show. */
typedef enum attn_shades {
    ATTN_SHADES_LINEAR = 0, /* of values */
    ATTN_SHADES_LOG = 1     /* of their logarithms; 0 and less is the lowest */
} attn_shades;

/* A sequence of numbers, drawn over 0, 1, 2, ... NaN and infinity break the
 * line. */
typedef struct attn_curve {
    const char *label; /* in the legend; NULL = none */
    attn_input values; /* (n); f64, f32, bf16 or f16 */
} attn_curve;

/* A heat map, or if there are curves, a plot of these.
 *
 *   values   (rows, columns), at least one of each; f64, f32, bf16 or f16.
 *            NaN has a colour of its own, infinities those of the ends
 *   shown    bool, the same shape, stride 0 where it repeats; a false cell is
 *            masked: hatched, whatever it holds. Absent = all are shown
 *   row_labels, column_labels
 *            UTF-8, one per row and column (curves: column_labels, one per
 *            point); NULL = numbers. Where they don't fit, numbers too
 *   first_row, first_column
 *            what the numbers begin with */
typedef struct attn_panel {
    const char *title; /* NULL = none */
    attn_input values, shown;
    const char *const *row_labels, *const *column_labels;
    int64_t first_row, first_column;
    const attn_curve *curves;
    int64_t n_curves;
} attn_panel;

typedef struct attn_figure {
    uint32_t size; /* sizeof(attn_figure), set by attn_figure_init */
    attn_theme theme;
    attn_shades shades;
    const attn_panel *panels;
    int64_t n_panels;
    int64_t columns;           /* panels side by side; 0 = chosen */
    int64_t cell;              /* pixels of a cell's side, 1 to 512; 0 = chosen,
                                  less than one for large matrices */
    int64_t density;           /* PNG: dots per pixel, 1 to 4; 0 = 2, or 1 for
                                  a large picture */
    double low, high;          /* ends of the colours; NaN = the least and
                                  largest of the shown values, with LOG at
                                  most five decades apart */
    const char *title, *note;  /* over all; NULL = none */
    const char *row_axis, *column_axis; /* what rows and columns are */
    const char *value;                  /* what the colours measure */
} attn_figure;

/* What this build writes: "svg png", or "svg" where it had no libpng; then PNG
 * is E_UNSUPPORTED, and so is an SVG of cells too small for rectangles. */
ATTN_API const char *attn_picture_formats(void);

/* All fields at their defaults, with the caller's n panels. */
ATTN_API void attn_figure_init(attn_figure *figure, const attn_panel *panels,
                               int64_t n);

/* The size in pixels of what attn_figure_write_png makes. */
ATTN_API attn_status attn_figure_measure(const attn_figure *figure,
                                         int64_t *width, int64_t *height,
                                         attn_diag *diag);

/* To a file. On failure `path` is as it was. */
ATTN_API attn_status attn_figure_write_png(const attn_figure *figure,
                                           const char *path, attn_diag *diag);
ATTN_API attn_status attn_figure_write_svg(const attn_figure *figure,
                                           const char *path, attn_diag *diag);

/* To memory: *data is the caller's to attn_free, NULL on failure. An SVG has a
 * zero byte behind its *size bytes. */
ATTN_API attn_status attn_figure_png(const attn_figure *figure, void **data,
                                     size_t *size, attn_diag *diag);
ATTN_API attn_status attn_figure_svg(const attn_figure *figure, void **data,
                                     size_t *size, attn_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
