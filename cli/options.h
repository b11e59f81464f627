/* SPDX-License-Identifier: Apache-2.0
 *
 * The options that say which attention is meant, shared by the verbs that
 * compute one. They have the names of the library's descriptor. */
#ifndef ATTN_CLI_OPTIONS_H
#define ATTN_CLI_OPTIONS_H

#include "rope_option.h"
#include "words.h"

/* "causal" without a corner: the queries must have places of their own. */
typedef enum cli_causal {
    CLI_CAUSAL_NONE,
    CLI_CAUSAL_PLAIN,
    CLI_CAUSAL_TOP_LEFT,
    CLI_CAUSAL_BOTTOM_RIGHT
} cli_causal;

typedef struct cli_attention {
    bool has_scale; /* else 1 / sqrt(dim) */
    double scale, softcap, dropout_p;
    cli_causal causal;
    int64_t window_left, window_right;
    attn_empty_rows empty_rows;
    attn_precision precision;
    uint64_t seed;
    uint32_t offset;
    attn_dtype dtype; /* ATTN_NONE: as the inputs are */
    int64_t threads;
    bool bshd;
    cli_rope rope;
} cli_attention;

/* The contract's defaults; as many threads as there are processors. */
void cli_attention_init(cli_attention *options);
/* The table, writing to `options`. */
cli_group cli_attention_group(cli_attention *options);

#endif
