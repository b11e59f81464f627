/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of attn lab: arrays of files as the data of an experiment, and its
 * result as a table, JSON or a picture. */
#ifndef ATTN_CLI_LAB_VERB_H
#define ATTN_CLI_LAB_VERB_H

#include "attn_lab.h"
#include "inputs.h"

/* Fill `data` from the inputs: 2-D arrays, or one head of q, k and v of more
 * axes, or (for `heads`) all heads of a 3-D one side by side. Arrays become
 * f64. CLI_GO or an exit code; free *memory in any case. */
int cli_lab_take(const cli_inputs *inputs, bool all_heads, int64_t batch,
                 int64_t head, attn_lab_data *data, void **memory);

void cli_lab_print(const attn_lab_result *result);
void cli_lab_json(const char *name, const attn_lab_result *result);
/* To a .png or .svg. CLI_GO or an exit code. */
int cli_lab_plot(const attn_lab_result *result, const char *path,
                 const char *const *tokens);

#endif
