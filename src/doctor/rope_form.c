/* SPDX-License-Identifier: Apache-2.0
 *
 * One row of a rotary embedding. */
#include "doctor/rope_form.h"

#include <math.h>

#include "core/half.h"

static double rounded(double x, bool f16)
{
    return f16 ? (double)attn__f32_of_f16(attn__f16_of_f64(x))
               : (double)attn__f32_of_bf16(attn__bf16_of_f64(x));
}

static double place_of(const attn__rope_form *f, int64_t row, int64_t position)
{
    switch (f->place) {
    case PLACE_NEXT:
        return (double)(position + 1);
    case PLACE_BEFORE:
        return (double)(position - 1);
    case PLACE_RESTART:
        return (double)row;
    case PLACE_TWICE:
        return (double)(2 * position);
    case PLACE_NOWHERE:
        return 0;
    default:
        return (double)position;
    }
}

static double angle(const attn__rope_form *f, int64_t m, double place)
{
    const bool f16 = f->rounding >= ROUND_ANGLE_F16;
    double theta =
        pow(f->base, -2 * (double)m / (double)f->frequency_dim);

    if (f->rounding == ROUND_ALL_BF16 || f->rounding == ROUND_ALL_F16) {
        theta = rounded(theta, f16);
        place = rounded(place, f16);
    }
    return f->rounding == ROUND_NOT ? place * theta
                                    : rounded(place * theta, f16);
}

/* Where component c of pair order lands in the output. */
static int64_t landing(const attn__rope_form *f, int64_t c)
{
    const int64_t half = f->rotary_dim / 2;

    if (f->output == 1)
        return c % 2 * half + c / 2;
    if (f->output == 2)
        return c % half * 2 + c / half;
    return c;
}

void attn__rope_row(const attn__rope_form *f, const double *x, int64_t dim,
                    int64_t row, int64_t position, double *y)
{
    const int64_t half = f->rotary_dim / 2;
    const double place = place_of(f, row, position);

    for (int64_t c = f->rotary_dim; c < dim; c++)
        y[c] = x[c];
    for (int64_t c = 0; c < f->rotary_dim; c++) {
        const bool second = f->pairs_interleaved ? c % 2 : c >= half;
        const int64_t other = f->pairs_interleaved ? (second ? c - 1 : c + 1)
                              : second             ? c - half
                                                   : c + half;
        const int64_t m = f->angles_interleaved ? c / 2 : c % half;
        const double a = angle(f, m, place);
        const double turn = (second ? 1 : -1) * (f->reversed ? -1 : 1);

        y[landing(f, c)] = x[c] * cos(a) + turn * x[other] * sin(a);
    }
}
