/* SPDX-License-Identifier: Apache-2.0
 *
 * --rope=WORD,KEY=VALUE,...: rotary embedding of q and k, in the words of
 * Hugging Face's configurations. */
#ifndef ATTN_CLI_ROPE_OPTION_H
#define ATTN_CLI_ROPE_OPTION_H

#include "attn.h"
#include "cli.h"

#define CLI_ROPE_FACTORS 1024 /* longrope: more than any head needs */

typedef struct cli_rope {
    bool given;
    attn_rope_desc desc; /* its lists of factors are the two below */
    double short_factor[CLI_ROPE_FACTORS], long_factor[CLI_ROPE_FACTORS];
} cli_rope;

/* Parse `text`; "half" is all defaults. CLI_GO, or having said why, an exit
 * code. */
int cli_rope_parse(const char *name, const char *text, cli_rope *rope);
/* The descriptor, its pointers set. */
attn_rope_desc cli_rope_desc(const cli_rope *rope);

#endif
