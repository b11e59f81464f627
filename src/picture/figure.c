/* SPDX-License-Identifier: Apache-2.0
 *
 * The public calls: check the figure, lay it out, draw it, write it whole. */
#include "attn_picture.h"

#include <math.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "picture/check.h"
#include "picture/png_write.h"
#include "picture/svg.h"

#define SVG_SLACK 1.15   /* DejaVu Sans, the widest that is usual, is 1.12 */
#define LARGE_PICTURE 4096 /* pixels from where one dot each is enough */

void attn_figure_init(attn_figure *figure, const attn_panel *panels,
                      int64_t n)
{
    *figure = (attn_figure){.size = sizeof *figure, .panels = panels,
                            .n_panels = n, .low = NAN, .high = NAN};
}

/* The figure's own, or what suits the picture. */
static attn_status choose_density(const attn_figure *figure,
                                  const attn__sheet *sheet, int64_t *density,
                                  attn_diag *diag)
{
    const int64_t side = attn__max_i64(sheet->width, sheet->height);

    *density = figure->density ? figure->density
                               : side <= LARGE_PICTURE ? 2 : 1;
    ATTN__REQUIRE(side * *density <= ATTN_PICTURE_MAX_SIDE, diag, ATTN_E_LIMIT,
                  "density", "%lld dots for each of %lld pixels are more than "
                  "%d", (long long)*density, (long long)side,
                  ATTN_PICTURE_MAX_SIDE);
    return ATTN_OK;
}

static attn_status prepare(const attn_figure *figure, double slack,
                           attn__sheet *sheet, attn_diag *diag)
{
    ATTN__TRY(attn__check_figure(figure, diag));
    return attn__lay_out(figure, slack, sheet, diag);
}

attn_status attn_figure_measure(const attn_figure *figure, int64_t *width,
                                int64_t *height, attn_diag *diag)
{
    attn__sheet sheet;
    attn_status status;
    int64_t density;

    ATTN__REQUIRE(width && height, diag, ATTN_E_ARG, "width",
                  "must not be NULL");
    ATTN__TRY(prepare(figure, 1, &sheet, diag));
    status = choose_density(figure, &sheet, &density, diag);
    if (status == ATTN_OK) {
        *width = density * sheet.width;
        *height = density * sheet.height;
    }
    attn__sheet_free(&sheet);
    return status == ATTN_OK ? attn__ok(diag) : status;
}

/* ------------------------------------------------------------------ writing */

/* Draw a sheet into a stream. The stream is 8 KiB: not for every stack. */
typedef attn_status draw(const attn_figure *figure, const attn__sheet *sheet,
                         attn__stream *stream, const char *path,
                         attn_diag *diag);

static attn_status draw_png(const attn_figure *figure,
                            const attn__sheet *sheet, attn__stream *stream,
                            const char *path, attn_diag *diag)
{
    attn__raster raster;
    int64_t density;

    ATTN__TRY(choose_density(figure, sheet, &density, diag));
    ATTN__TRY(attn__raster_init(&raster, sheet, figure, density, diag));
    attn__stream_open(stream, path);
    attn__png_write(&raster, stream);
    attn__raster_free(&raster);
    return ATTN_OK;
}

static attn_status draw_svg(const attn_figure *figure,
                            const attn__sheet *sheet, attn__stream *stream,
                            const char *path, attn_diag *diag)
{
    attn__heat heat;

    ATTN__TRY(attn__heat_init(&heat, figure, diag));
    attn__stream_open(stream, path);
    attn__svg_write(sheet, figure, &heat, stream);
    attn__heat_free(&heat);
    return ATTN_OK;
}

static attn_status write_to(const attn_figure *figure, draw *drawing,
                            double slack, const char *path, void **data,
                            size_t *size, attn_diag *diag)
{
    attn__stream *stream;
    attn__sheet sheet;
    attn_status status;

    ATTN__TRY(prepare(figure, slack, &sheet, diag));
    stream = attn__alloc(sizeof *stream);
    if (!stream)
        status = attn__fail(diag, ATTN_E_NOMEM, "file", "no memory to write");
    else
        status = drawing(figure, &sheet, stream, path, diag);
    if (status == ATTN_OK)
        status = attn__stream_close(stream, data, size, diag);
    attn__free(stream);
    attn__sheet_free(&sheet);
    return status;
}

static attn_status to_file(const attn_figure *figure, draw *drawing,
                           double slack, const char *path, attn_diag *diag)
{
    ATTN__REQUIRE(path, diag, ATTN_E_ARG, "path", "must not be NULL");
    return write_to(figure, drawing, slack, path, NULL, NULL, diag);
}

static attn_status to_memory(const attn_figure *figure, draw *drawing,
                             double slack, void **data, size_t *size,
                             attn_diag *diag)
{
    ATTN__REQUIRE(data, diag, ATTN_E_ARG, "data", "must not be NULL");
    *data = NULL;
    ATTN__REQUIRE(size, diag, ATTN_E_ARG, "size", "must not be NULL");
    return write_to(figure, drawing, slack, NULL, data, size, diag);
}

attn_status attn_figure_write_png(const attn_figure *figure, const char *path,
                                  attn_diag *diag)
{
    return to_file(figure, draw_png, 1, path, diag);
}

attn_status attn_figure_write_svg(const attn_figure *figure, const char *path,
                                  attn_diag *diag)
{
    return to_file(figure, draw_svg, SVG_SLACK, path, diag);
}

attn_status attn_figure_png(const attn_figure *figure, void **data,
                            size_t *size, attn_diag *diag)
{
    return to_memory(figure, draw_png, 1, data, size, diag);
}

attn_status attn_figure_svg(const attn_figure *figure, void **data,
                            size_t *size, attn_diag *diag)
{
    return to_memory(figure, draw_svg, SVG_SLACK, data, size, diag);
}
