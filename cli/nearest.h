/* SPDX-License-Identifier: Apache-2.0
 *
 * "Did you mean": the known word that a misspelt one is nearest to. */
#ifndef ATTN_CLI_NEAREST_H
#define ATTN_CLI_NEAREST_H

#include <stddef.h>

/* Candidates are offered one by one; start from the word and zeros. */
typedef struct cli_nearest {
    const char *word; /* the first n characters of it */
    size_t n;
    const char *best; /* NULL: none is near */
    size_t distance;
} cli_nearest;

void cli_nearest_offer(cli_nearest *nearest, const char *candidate);
/* "; did you mean 'BEST'?", or "" (`prefix` goes before BEST). */
void cli_nearest_text(const cli_nearest *nearest, const char *prefix,
                      char *text, size_t size);

#endif
