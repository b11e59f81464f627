/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary embedding in every way that it is written, rightly and wrongly. */
#ifndef ATTN_DOCTOR_ROPE_FORM_H
#define ATTN_DOCTOR_ROPE_FORM_H

#include <stdbool.h>
#include <stdint.h>

typedef enum attn__rope_place {
    PLACE_GIVEN,
    PLACE_NEXT,     /* one too large */
    PLACE_BEFORE,   /* one too small */
    PLACE_RESTART,  /* 0, 1, 2, ..., whatever is given */
    PLACE_TWICE,    /* rotated twice */
    PLACE_NOWHERE,  /* not rotated */
    PLACE_N
} attn__rope_place;

typedef enum attn__rope_rounding {
    ROUND_NOT,
    ROUND_ANGLE_BF16,
    ROUND_ALL_BF16, /* position, frequency and angle */
    ROUND_ANGLE_F16,
    ROUND_ALL_F16,
    ROUND_N
} attn__rope_rounding;

typedef struct attn__rope_form {
    bool pairs_interleaved;  /* components (2m, 2m+1), else (m, m + half) */
    bool angles_interleaved; /* the angle of component c is c / 2, else c mod
                                half */
    int output;              /* 0 in place, 1 stored in halves, 2 stored in
                                pairs */
    bool reversed;
    int64_t rotary_dim;
    int64_t frequency_dim; /* theta_m = base^(-2m / this) */
    double base;
    attn__rope_place place;
    attn__rope_rounding rounding;
} attn__rope_form;

/* y = rope(x), both (dim), for row `row` at `position`. */
void attn__rope_row(const attn__rope_form *form, const double *x, int64_t dim,
                    int64_t row, int64_t position, double *y);

#endif
