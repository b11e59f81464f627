/* SPDX-License-Identifier: Apache-2.0
 *
 * Named arrays from the INs of a command line: FILE (its arrays by their
 * names) or NAME=FILE[:KEY]. */
#ifndef ATTN_CLI_INPUTS_H
#define ATTN_CLI_INPUTS_H

#include "attn_io.h"
#include "cli.h"

typedef struct cli_inputs {
    attn_array *arrays; /* each under its name in `known`, each once */
    int n;
    const char *const *known; /* ends with NULL */
} cli_inputs;

/* Load those arrays of the n operands whose names the verb knows. Names are
 * compared ignoring case, others noted on stderr, and of two arrays of one
 * name the last counts. CLI_GO or an exit code; cli_inputs_free in any case. */
int cli_inputs_read(cli_inputs *inputs, const char *const *known,
                    char **operands, int n);
void cli_inputs_free(cli_inputs *inputs);
/* One more array, whose name is not there yet; it belongs to the inputs, or on
 * failure is freed. CLI_GO or an exit code. */
int cli_inputs_add(cli_inputs *inputs, attn_array *array);
/* NULL if there is none. */
attn_array *cli_input(const cli_inputs *inputs, const char *name);

#endif
