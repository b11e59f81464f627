/* SPDX-License-Identifier: Apache-2.0
 *
 * The features of the contract, one by one and together: what the tests of
 * the reference walk through. */
#ifndef ATTN_TESTS_REF_TABLE_H
#define ATTN_TESTS_REF_TABLE_H

#include "ref_case.h"

/* clang-format off */
#define B_H_HKV_LQ_LK_D_DV(b, h, hkv, lq, lk, d, dv)                          \
    .batch = b, .heads_q = h, .heads_kv = hkv, .len_q = lq, .len_k = lk,      \
    .dim_qk = d, .dim_v = dv

static const ref_features ref_table[] = {
    {"plain", B_H_HKV_LQ_LK_D_DV(2, 1, 1, 3, 5, 4, 4)},
    {"one of each", B_H_HKV_LQ_LK_D_DV(1, 1, 1, 1, 1, 1, 1)},
    {"D is not Dv", B_H_HKV_LQ_LK_D_DV(1, 2, 2, 3, 5, 7, 4)},
    {"gqa", B_H_HKV_LQ_LK_D_DV(2, 6, 2, 3, 5, 4, 7)},
    {"mqa", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 2, 7)},
    {"top left", B_H_HKV_LQ_LK_D_DV(1, 2, 1, 5, 7, 3, 4),
     .causal = ATTN_CAUSAL_TOP_LEFT},
    {"bottom right", B_H_HKV_LQ_LK_D_DV(1, 2, 1, 3, 7, 5, 4),
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT},
    {"bottom right, empty rows", B_H_HKV_LQ_LK_D_DV(1, 2, 1, 7, 4, 3, 5),
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .dlse = true},
    {"window", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 6, 7, 4, 5), .left = 3, .right = 2},
    {"causal window", B_H_HKV_LQ_LK_D_DV(1, 2, 2, 5, 7, 3, 4),
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .left = 3},
    {"mask", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 7, 3, 5), .mask = "bhij"},
    {"mask of keys", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 7, 3, 5), .mask = "bj"},
    {"mask, empty rows", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 7, 3, 5),
     .mask = "hij", .empty_row = true, .dlse = true},
    {"bias", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 3, 7), .bias = "bhij"},
    {"bias over batch", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 3, 7),
     .bias = "hij"},
    {"bias over heads", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 3, 7),
     .bias = "bij"},
    {"bias over rows", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 3, 7), .bias = "bj"},
    {"bias over keys", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 3, 7),
     .bias = "hi", .sinks = true},
    {"bias that hides", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 7, 3, 5),
     .bias = "hij", .bias_hides = true},
    {"alibi", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 7, 5, 2), .slopes = "h",
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT},
    {"alibi per batch, two-sided", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 7, 5, 2),
     .slopes = "bh", .q_offset = true},
    {"softcap", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 7, 2), .softcap = 1.5},
    {"softcap and bias", B_H_HKV_LQ_LK_D_DV(1, 3, 1, 4, 5, 7, 2),
     .softcap = 0.75, .bias = "ij", .bias_hides = true},
    {"sinks", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 7, 2), .sinks = true},
    {"sinks, rows without keys", B_H_HKV_LQ_LK_D_DV(2, 2, 1, 7, 4, 3, 5),
     .sinks = true, .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .dlse = true},
    {"dlse", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 7, 2), .dlse = true},
    {"dropout", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 4, 5, 7, 2), .dropout = 0.4},
    {"lengths", B_H_HKV_LQ_LK_D_DV(3, 2, 1, 4, 7, 5, 2), .k_lengths = true},
    {"lengths, bottom right", B_H_HKV_LQ_LK_D_DV(3, 2, 1, 4, 7, 5, 2),
     .k_lengths = true, .causal = ATTN_CAUSAL_BOTTOM_RIGHT},
    {"lengths, alibi, no causal", B_H_HKV_LQ_LK_D_DV(3, 2, 1, 4, 7, 5, 2),
     .k_lengths = true, .q_offset = true, .slopes = "h"},
    {"lengths, alibi, offset by rule", B_H_HKV_LQ_LK_D_DV(3, 2, 1, 4, 7, 5, 2),
     .k_lengths = true, .slopes = "h"},
    {"padded square, alibi", B_H_HKV_LQ_LK_D_DV(3, 2, 1, 6, 6, 5, 2),
     .k_lengths = true, .slopes = "h"},
    {"padded square, window", B_H_HKV_LQ_LK_D_DV(3, 2, 1, 6, 6, 5, 2),
     .k_lengths = true, .left = 2, .right = 1},
    {"negative scale", B_H_HKV_LQ_LK_D_DV(1, 3, 1, 4, 5, 7, 2),
     .scale = -0.7},
    {"scale 0", B_H_HKV_LQ_LK_D_DV(1, 3, 1, 4, 5, 7, 2),
     .scale_is_zero = true},
    {"D = 0", B_H_HKV_LQ_LK_D_DV(1, 3, 1, 4, 5, 0, 2), .bias = "hij"},
    {"Dv = 0", B_H_HKV_LQ_LK_D_DV(1, 3, 1, 4, 5, 2, 0), .dlse = true},
    {"everything", B_H_HKV_LQ_LK_D_DV(2, 6, 2, 5, 8, 3, 4),
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .left = 6, .softcap = 2,
     .mask = "bij", .bias = "hij", .bias_hides = true, .slopes = "bh",
     .sinks = true, .dlse = true, .k_lengths = true, .dropout = 0.3},
    {"everything two-sided", B_H_HKV_LQ_LK_D_DV(2, 6, 3, 7, 8, 5, 2),
     .left = 5, .right = 4, .softcap = 3, .mask = "hj", .bias = "bi",
     .slopes = "h", .sinks = true, .dlse = true, .q_offset = true,
     .dropout = 0.2},
};
/* clang-format on */

#endif
