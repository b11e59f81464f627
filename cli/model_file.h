/* SPDX-License-Identifier: Apache-2.0
 *
 * The parameters of an attention layer out of the file of a model, by the
 * names that its framework gives them. */
#ifndef ATTN_CLI_MODEL_H
#define ATTN_CLI_MODEL_H

#include "inputs.h"

#define CLI_MAX_MAPS 16

/* The arrays of a layer: what it is made of, and what packs three in one. */
#define CLI_PARAMETERS                                                        \
    "w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v", "b_o", "w_qkv", "b_qkv", \
        "g_q", "g_k"

typedef struct cli_model {
    const char *path, *prefix; /* prefix NULL: "" */
    /* Names of --map, NAME=TENSOR. */
    struct {
        const char *name, *tensor;
    } maps[CLI_MAX_MAPS];
    int n_maps;
    bool linear; /* set by --linear, or the naming scheme: (out, in) */
} cli_model;

/* "w_q=NAME". CLI_GO or an exit code. */
int cli_map_parse(const char *name, const char *text, cli_model *model);
/* Add the parameters to the inputs. CLI_GO or an exit code. */
int cli_model_read(cli_model *model, cli_inputs *inputs);

#endif
