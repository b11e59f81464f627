/* SPDX-License-Identifier: Apache-2.0
 *
 * Who attends whom: rows of a weight matrix in the words of its tokens. */
#ifndef ATTN_CLI_ATTENDS_H
#define ATTN_CLI_ATTENDS_H

#include "attn_io.h"
#include "cli.h"

#define CLI_MAX_SHOWN 64

/* Heads to print; n = 0: the few whose rows differ most. */
typedef struct cli_shown {
    int64_t heads[CLI_MAX_SHOWN];
    int n;
} cli_shown;

/* "0,3,7" */
int cli_shown_parse(const char *name, const char *text, cli_shown *shown);

/* Whether tokens and heads fit the weights, before these are computed. CLI_GO
 * or an exit code. */
int cli_check_attends(const attn_array *weights, const attn_array *tokens,
                      const cli_shown *shown);

/* For each chosen head of each batch, a line for each query: the keys whose
 * weight is at least 0.1, largest first.
 *
 *   weights  (B, H, Lq, Lk) or less the axes that q lacks
 *   tokens   text, (Lk) or (B, Lk); where Lq = Lk they name the queries too
 *
 * CLI_GO or an exit code. */
int cli_print_attends(const attn_array *weights, const attn_array *tokens,
                      const cli_shown *shown);

#endif
