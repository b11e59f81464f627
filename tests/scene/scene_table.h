/* SPDX-License-Identifier: Apache-2.0
 *
 * The features of the contract, one by one and together, at sizes that do not
 * fit tiles (16 and 8 rows), blocks (64 keys), units (128 rows, 256 keys). */
#ifndef ATTN_TESTS_SCENE_TABLE_H
#define ATTN_TESTS_SCENE_TABLE_H

#include "scene.h"

/* clang-format off */
#define B_H_HKV_LQ_LK_D_DV(b, h, hkv, lq, lk, d, dv)                          \
    .batch = b, .heads_q = h, .heads_kv = hkv, .len_q = lq, .len_k = lk,      \
    .dim_qk = d, .dim_v = dv

static const scene_shape scene_table[] = {
    {"plain", B_H_HKV_LQ_LK_D_DV(2, 2, 2, 37, 150, 24, 17)},
    {"long, causal", B_H_HKV_LQ_LK_D_DV(1, 1, 1, 301, 301, 16, 8),
     .causal = ATTN_CAUSAL_TOP_LEFT},
    {"gqa, bottom right", B_H_HKV_LQ_LK_D_DV(2, 6, 2, 45, 131, 20, 33),
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .dlse = true},
    {"mqa, rows without keys", B_H_HKV_LQ_LK_D_DV(1, 5, 1, 90, 66, 7, 12),
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .dlse = true},
    {"decode", B_H_HKV_LQ_LK_D_DV(3, 4, 1, 1, 200, 32, 32),
     .inputs = ATTN_WITH_K_LENGTHS},
    {"decode of segments", B_H_HKV_LQ_LK_D_DV(2, 4, 2, 1, 2500, 20, 40),
     .inputs = ATTN_WITH_SINKS | ATTN_WITH_K_LENGTHS,
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT},
    {"decode, packed pages", B_H_HKV_LQ_LK_D_DV(3, 6, 1, 3, 1300, 24, 72),
     .inputs = ATTN_WITH_VARLEN | ATTN_WITH_PAGES | ATTN_WITH_K_LENGTHS,
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .slopes = "h", .softcap = 3},
    {"decode with window, mask, bias",
     B_H_HKV_LQ_LK_D_DV(1, 3, 3, 8, 2100, 10, 7), .left = 1500,
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .mask = "bhij", .bias = "hij",
     .bias_hides = true, .dropout = 0.1},
    {"window", B_H_HKV_LQ_LK_D_DV(1, 3, 3, 70, 140, 9, 16),
     .left = 31, .right = 6, .inputs = ATTN_WITH_Q_OFFSET},
    {"mask", B_H_HKV_LQ_LK_D_DV(2, 4, 2, 33, 80, 16, 5), .mask = "bhij"},
    {"mask of keys, sinks", B_H_HKV_LQ_LK_D_DV(3, 2, 1, 20, 90, 11, 8),
     .mask = "bj", .inputs = ATTN_WITH_SINKS, .dlse = true},
    {"bias", B_H_HKV_LQ_LK_D_DV(2, 2, 1, 40, 70, 8, 24), .bias = "bhij",
     .bias_hides = true},
    {"bias over rows", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 19, 100, 8, 8),
     .bias = "bhj"},
    {"bias over heads", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 19, 100, 8, 8),
     .bias = "ij"},
    {"alibi", B_H_HKV_LQ_LK_D_DV(2, 3, 1, 50, 110, 12, 10), .slopes = "bh",
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT},
    {"alibi, softcap, sinks", B_H_HKV_LQ_LK_D_DV(1, 4, 2, 30, 75, 16, 16),
     .slopes = "h", .softcap = 1.75, .inputs = ATTN_WITH_SINKS},
    {"dropout", B_H_HKV_LQ_LK_D_DV(2, 4, 2, 41, 99, 16, 16), .dropout = 0.3},
    {"packed", B_H_HKV_LQ_LK_D_DV(4, 4, 2, 40, 85, 12, 20),
     .inputs = ATTN_WITH_VARLEN, .causal = ATTN_CAUSAL_TOP_LEFT,
     .dlse = true},
    {"pages", B_H_HKV_LQ_LK_D_DV(3, 4, 2, 5, 120, 16, 24),
     .inputs = ATTN_WITH_PAGES | ATTN_WITH_K_LENGTHS,
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT},
    {"packed pages", B_H_HKV_LQ_LK_D_DV(3, 2, 1, 9, 100, 16, 8),
     .inputs = ATTN_WITH_VARLEN | ATTN_WITH_PAGES | ATTN_WITH_K_LENGTHS,
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .slopes = "h"},
    {"nan for empty rows", B_H_HKV_LQ_LK_D_DV(1, 2, 1, 40, 23, 8, 8),
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .empty_nan = true},
    {"everything", B_H_HKV_LQ_LK_D_DV(2, 6, 2, 35, 141, 20, 12),
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .left = 100, .softcap = 2.5,
     .mask = "bij", .bias = "hij", .bias_hides = true, .slopes = "bh",
     .dlse = true, .dropout = 0.2, .scale = -0.375,
     .inputs = ATTN_WITH_SINKS | ATTN_WITH_K_LENGTHS | ATTN_WITH_Q_OFFSET},
};
/* clang-format on */

#endif
