/* SPDX-License-Identifier: Apache-2.0
 *
 * What the subject is meant to compute, in words:
 * "causal=bottom_right,window=2:0,mask_true=keep". */
#ifndef ATTN_DOCTOR_EXPECT_H
#define ATTN_DOCTOR_EXPECT_H

#include <stdbool.h>

#include "doctor/arena.h"

typedef enum attn__empty { EMPTY_ANY, EMPTY_ZERO, EMPTY_NAN } attn__empty;

typedef struct attn__expect {
    bool identify; /* nothing is expected: find out */
    bool has_causal, plain_causal;
    attn_causal causal;
    bool has_window;
    int64_t window[2];
    bool has_scale;
    double scale, softcap;
    bool has_mask_true, mask_hides, mask_adds;
    attn__empty empty_rows;
    int64_t heads, kv_heads;
    const double *slopes, *sinks;
    int64_t n_slopes, n_sinks;
    bool has_interleaved, interleaved;
    int64_t rotary_dim;
    double base;
    bool base2; /* lse in base 2 */
} attn__expect;

/* `text` NULL: identify. E_ARG names the word that is not understood. */
attn_status attn__expect_parse(attn__expect *expect, const char *text,
                               attn__arena *arena, attn_diag *diag);

#endif
