/* SPDX-License-Identifier: Apache-2.0
 *
 * What long work is at, on a terminal: one line on stderr, from a second on,
 * written over again and again and gone when something else is said. Where
 * stderr is no terminal nothing happens. */
#ifndef ATTN_CLI_PROGRESS_H
#define ATTN_CLI_PROGRESS_H

#include <stdint.h>

/* From now on it is at piece `at`, counted from 0, of n pieces `what`, a text
 * that stays; n = 0: nobody knows how many, n = 1: there is one. */
void cli_progress(const char *what, int64_t at, int64_t n);
/* Nothing is going on, and the line is gone: before anything is printed. */
void cli_progress_end(void);

#endif
