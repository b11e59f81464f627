/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading matrices, folding by maximum, and the range of colours. */
#include "picture/heatmap.h"

#include <math.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/element.h"
#include "picture/colormap.h"

/* ---------------------------------------------------------------- reading */

double attn__element(const attn_input *values, int64_t i)
{
    return attn__read(values->data, values->dtype, i * values->stride[0]);
}

/* Row i of a panel into heat->value and heat->shown. */
static void read_row(attn__heat *heat, const attn_panel *panel, int64_t i)
{
    const attn_input *v = &panel->values, *s = &panel->shown;
    const uint8_t *shown = s->data;

    for (int64_t j = 0; j < v->shape[1]; j++)
        heat->value[j] =
            attn__read(v->data, v->dtype,
                       i * v->stride[0] + j * v->stride[1]);
    for (int64_t j = 0; j < v->shape[1]; j++)
        heat->shown[j] = s->dtype == ATTN_NONE ||
                         shown[i * s->stride[0] + j * s->stride[1]] != 0;
}

/* ---------------------------------------------------------------- memory */

attn_status attn__heat_init(attn__heat *heat, const attn_figure *figure,
                            attn_diag *diag)
{
    size_t most = 1;

    *heat = (attn__heat){NULL, NULL, NULL};
    for (int64_t p = 0; p < figure->n_panels; p++)
        if (figure->panels[p].n_curves == 0 &&
            (size_t)figure->panels[p].values.shape[1] > most)
            most = (size_t)figure->panels[p].values.shape[1];
    /* Twice: a row of cells, and behind it the units that it folds into. */
    heat->value = attn__calloc(most, 2 * sizeof *heat->value);
    heat->shown = attn__calloc(most, sizeof *heat->shown);
    heat->code = attn__calloc(most, sizeof *heat->code);
    if (heat->value && heat->shown && heat->code)
        return ATTN_OK;
    attn__heat_free(heat);
    return attn__fail(diag, ATTN_E_NOMEM, "values", "no memory for a row");
}

void attn__heat_free(attn__heat *heat)
{
    attn__free(heat->value);
    attn__free(heat->shown);
    attn__free(heat->code);
    *heat = (attn__heat){NULL, NULL, NULL};
}

/* ----------------------------------------------------------------- range */

#define DECADES 1e-5 /* of the largest value: the least that LOG shows */

/* `positive` is the least value above zero. */
static void widen(const attn__heat *heat, int64_t n, attn__range *range,
                  double *positive)
{
    for (int64_t j = 0; j < n; j++) {
        const double v = heat->value[j];

        if (!heat->shown[j])
            range->any_masked = true;
        else if (isnan(v))
            range->any_nan = true;
        else if (isfinite(v)) {
            range->low = fmin(range->low, v);
            range->high = fmax(range->high, v);
            if (v > 0)
                *positive = fmin(*positive, v);
        }
    }
}

/* One value, or an end beyond all of them: any span will do that a double can
 * tell from its low end, and that is not infinite. */
static void spread(attn__range *range)
{
    const double span = fmax(1, fabs(range->low) * 0x1p-40);

    if (range->log && 0.1 * range->high > 0) {
        range->low = 0.1 * range->high;
    } else if (range->log) { /* subnormal: a tenth is 0, ten times is not inf */
        range->low = range->high;
        range->high *= 10;
    } else if (isfinite(range->low + span)) {
        range->high = range->low + span;
    } else {
        range->high = range->low;
        range->low -= span;
    }
}

/* Ends that the figure gives, and a span where there is none. */
static void settle(const attn_figure *figure, double positive,
                   attn__range *range)
{
    if (range->low > range->high) /* nothing finite is shown */
        range->low = 0, range->high = 1;
    if (!isnan(figure->high))
        range->high = figure->high;
    if (range->log && !(range->high > 0))
        range->high = 1;
    if (range->log)
        range->low = fmin(fmax(positive, range->high * DECADES), range->high);
    if (!isnan(figure->low))
        range->low = figure->low;
    if (!(range->low < range->high))
        spread(range);
}

void attn__range_of(const attn_figure *figure, attn__heat *heat,
                    attn__range *range)
{
    double positive = INFINITY;

    *range = (attn__range){.low = INFINITY, .high = -INFINITY,
                           .log = figure->shades == ATTN_SHADES_LOG};
    for (int64_t p = 0; p < figure->n_panels; p++) {
        const attn_panel *panel = &figure->panels[p];

        for (int64_t i = 0; panel->n_curves == 0 && i < panel->values.shape[0];
             i++) {
            read_row(heat, panel, i);
            widen(heat, panel->values.shape[1], range, &positive);
        }
    }
    settle(figure, positive, range);
}

double attn__range_part(const attn__range *range, double value)
{
    double part;

    if (range->log)
        part = value > 0 ? log(value / range->low) /
                               log(range->high / range->low)
                         : 0;
    else /* by halves, which do not overflow */
        part = (0.5 * value - 0.5 * range->low) /
               (0.5 * range->high - 0.5 * range->low);
    /* Of subnormal numbers the halves are 0, and the part is NaN. */
    return part >= 1 || value >= range->high ? 1 : part > 0 ? part : 0;
}

/* ------------------------------------------------------------------ units */

static uint16_t level_of(double v, const attn__range *range)
{
    return (uint16_t)((ATTN__LEVELS - 1) * attn__range_part(range, v) + 0.5);
}

/* The rank of a cell in a block: NaN above numbers above masked ones. */
static int rank_of(double v, uint8_t shown)
{
    return !shown ? 0 : isnan(v) ? 2 : 1;
}

void attn__heat_row(attn__heat *heat, const attn_panel *panel, attn__fit rows,
                    attn__fit columns, const attn__range *range, int64_t unit)
{
    const int64_t n = attn__units(columns);
    const int64_t first = unit * rows.fold;
    const int64_t last = first + rows.fold < rows.n ? first + rows.fold
                                                    : rows.n;
    double *best = heat->value + columns.n;

    for (int64_t u = 0; u < n; u++)
        heat->code[u] = 0; /* ranks, until all rows are seen */
    for (int64_t i = first; i < last; i++) {
        read_row(heat, panel, i);
        for (int64_t j = 0; j < columns.n; j++) {
            const int64_t u = j / columns.fold;
            const int rank = rank_of(heat->value[j], heat->shown[j]);

            if (rank > heat->code[u] ||
                (rank == 1 && heat->code[u] == 1 && heat->value[j] > best[u])) {
                heat->code[u] = (uint16_t)rank;
                best[u] = heat->value[j];
            }
        }
    }
    for (int64_t u = 0; u < n; u++) {
        const uint16_t rank = heat->code[u];

        heat->value[u] = best[u];
        heat->code[u] = rank == 0   ? ATTN__MASKED
                        : rank == 2 ? ATTN__NAN
                                    : level_of(best[u], range);
    }
}
