/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules of a figure, in the order of its fields. */
#include "picture/check.h"

#include <math.h>

#include "core/diag.h"
#include "core/tensor.h"

#define MOST_PANELS 4096
#define MOST_CELL 512
#define MOST_DENSITY 4
#define MOST_FIRST INT64_C(1000000000000) /* and its numbers stay short */

static attn_status check_numbers(const attn_input *values, int32_t rank,
                                 const char *name, attn_diag *diag)
{
    ATTN__REQUIRE(attn__is_float(values->dtype), diag, ATTN_E_DTYPE, name,
                  "type %s; f64, f32, bf16 and f16 are drawn",
                  attn_dtype_name(values->dtype));
    ATTN__REQUIRE(values->rank == rank, diag, ATTN_E_SHAPE, name,
                  "rank %d; it must be %d", (int)values->rank, (int)rank);
    for (int32_t a = 0; a < rank; a++)
        ATTN__REQUIRE(values->shape[a] > 0, diag, ATTN_E_SHAPE, name,
                      "shape[%d] = %lld must be positive", (int)a,
                      (long long)values->shape[a]);
    return attn__check_view(values, name, diag);
}

static attn_status check_shown(const attn_panel *panel, attn_diag *diag)
{
    const attn_input *s = &panel->shown, *v = &panel->values;

    if (s->dtype == ATTN_NONE)
        return ATTN_OK;
    ATTN__REQUIRE(s->dtype == ATTN_BOOL, diag, ATTN_E_DTYPE, "shown",
                  "type %s; it must be bool", attn_dtype_name(s->dtype));
    ATTN__REQUIRE(s->rank == 2 && s->shape[0] == v->shape[0] &&
                      s->shape[1] == v->shape[1],
                  diag, ATTN_E_SHAPE, "shown",
                  "must have the shape of values, (%lld, %lld)",
                  (long long)v->shape[0], (long long)v->shape[1]);
    return attn__check_view(s, "shown", diag);
}

static attn_status check_labels(const char *const *labels, int64_t n,
                                const char *name, attn_diag *diag)
{
    for (int64_t i = 0; labels && i < n; i++)
        ATTN__REQUIRE(labels[i], diag, ATTN_E_ARG, name, "label %lld is NULL",
                      (long long)i);
    return ATTN_OK;
}

static attn_status check_curves(const attn_panel *panel, attn_diag *diag)
{
    int64_t most = 0;

    ATTN__REQUIRE(panel->curves, diag, ATTN_E_ARG, "curves",
                  "must not be NULL where n_curves = %lld",
                  (long long)panel->n_curves);
    for (int64_t c = 0; c < panel->n_curves; c++) {
        const attn_input *values = &panel->curves[c].values;

        ATTN__TRY(check_numbers(values, 1, "curves", diag));
        if (values->shape[0] > most)
            most = values->shape[0];
    }
    return check_labels(panel->column_labels, most, "column_labels", diag);
}

static attn_status check_first(int64_t first, const char *name,
                               attn_diag *diag)
{
    ATTN__REQUIRE(first >= -MOST_FIRST && first <= MOST_FIRST, diag,
                  ATTN_E_ARG, name, "%lld is beyond 10^12", (long long)first);
    return ATTN_OK;
}

static attn_status check_panel(const attn_panel *panel, attn_diag *diag)
{
    ATTN__TRY(check_first(panel->first_row, "first_row", diag));
    ATTN__TRY(check_first(panel->first_column, "first_column", diag));
    ATTN__REQUIRE(panel->n_curves >= 0 && panel->n_curves <= MOST_PANELS, diag,
                  ATTN_E_ARG, "n_curves", "%lld is not in 0 to %d",
                  (long long)panel->n_curves, MOST_PANELS);
    if (panel->n_curves > 0)
        return check_curves(panel, diag);
    ATTN__TRY(check_numbers(&panel->values, 2, "values", diag));
    ATTN__TRY(check_shown(panel, diag));
    ATTN__TRY(check_labels(panel->row_labels, panel->values.shape[0],
                           "row_labels", diag));
    return check_labels(panel->column_labels, panel->values.shape[1],
                        "column_labels", diag);
}

attn_status attn__check_figure(const attn_figure *f, attn_diag *diag)
{
    ATTN__REQUIRE(f, diag, ATTN_E_ARG, "figure", "must not be NULL");
    ATTN__REQUIRE(f->size == sizeof *f, diag, ATTN_E_ARG, "size",
                  "%u; attn_figure_init sets it to %u", (unsigned)f->size,
                  (unsigned)sizeof *f);
    ATTN__REQUIRE(f->theme == ATTN_THEME_LIGHT || f->theme == ATTN_THEME_DARK,
                  diag, ATTN_E_ARG, "theme", "%d is no theme", (int)f->theme);
    ATTN__REQUIRE(f->shades == ATTN_SHADES_LINEAR ||
                      f->shades == ATTN_SHADES_LOG,
                  diag, ATTN_E_ARG, "shades", "%d is no way to shade",
                  (int)f->shades);
    ATTN__REQUIRE(f->n_panels >= 1, diag, ATTN_E_ARG, "n_panels",
                  "%lld; there must be one", (long long)f->n_panels);
    ATTN__REQUIRE(f->n_panels <= MOST_PANELS, diag, ATTN_E_LIMIT, "n_panels",
                  "%lld is more than %d", (long long)f->n_panels, MOST_PANELS);
    ATTN__REQUIRE(f->panels, diag, ATTN_E_ARG, "panels", "must not be NULL");
    ATTN__REQUIRE(f->columns >= 0, diag, ATTN_E_ARG, "columns",
                  "%lld is negative", (long long)f->columns);
    ATTN__REQUIRE(f->cell >= 0 && f->cell <= MOST_CELL, diag, ATTN_E_ARG,
                  "cell", "%lld is not in 0 to %d", (long long)f->cell,
                  MOST_CELL);
    ATTN__REQUIRE(f->density >= 0 && f->density <= MOST_DENSITY, diag,
                  ATTN_E_ARG, "density", "%lld is not in 0 to %d",
                  (long long)f->density, MOST_DENSITY);
    ATTN__REQUIRE(!isinf(f->low), diag, ATTN_E_ARG, "low",
                  "must not be infinite");
    ATTN__REQUIRE(!isinf(f->high), diag, ATTN_E_ARG, "high",
                  "must not be infinite");
    ATTN__REQUIRE(isnan(f->low) || isnan(f->high) || f->low < f->high, diag,
                  ATTN_E_ARG, "high", "must be above low");
    ATTN__REQUIRE(f->shades != ATTN_SHADES_LOG || !(f->low <= 0), diag,
                  ATTN_E_ARG, "low", "must be positive for logarithms");
    ATTN__REQUIRE(f->shades != ATTN_SHADES_LOG || !(f->high <= 0), diag,
                  ATTN_E_ARG, "high", "must be positive for logarithms");
    for (int64_t p = 0; p < f->n_panels; p++)
        ATTN__TRY(check_panel(&f->panels[p], diag));
    return ATTN_OK;
}
