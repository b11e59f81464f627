/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole layer, which begins with x: from arrays w_q w_k w_v w_o and their
 * like, or from a model's file. */
#ifndef ATTN_CLI_LAYER_H
#define ATTN_CLI_LAYER_H

#include "attn_layer.h"
#include "model_file.h"
#include "problem.h"

#define CLI_LAYER_ARRAYS "x", "x_kv", "dy", CLI_PARAMETERS

typedef struct cli_layer_options {
    int64_t heads, kv_heads; /* 0: not given */
    cli_model model;
} cli_layer_options;

/* The options --heads to --map, writing to `options`. */
cli_group cli_layer_group(cli_layer_options *options);

typedef struct cli_layer {
    cli_layer_options *options;
    cli_problem *p; /* options, inputs and outputs; its desc becomes ours */
    attn_array *x, *x_kv; /* x_kv NULL: self-attention */
    attn_layer_desc desc;
    attn_layer_args args;
} cli_layer;

/* Whether inputs and options mean a layer. */
bool cli_is_layer(const cli_inputs *inputs, const cli_layer_options *options);
/* Of a layer: add the parameters of --model to the inputs. CLI_GO or an exit
 * code. */
int cli_layer_read(cli_inputs *inputs, cli_layer_options *options);
/* Fill desc and the inputs of args. CLI_GO or an exit code; cli_problem_free in
 * any case. */
int cli_layer_init(cli_layer *layer, cli_problem *p, cli_inputs *inputs,
                   const cli_attention *attention, cli_layer_options *options);
/* Memory for y and lse, with `weights` also weights and entropy; for the
 * gradients. `half_square`: dy is y itself. */
int cli_layer_forward_outputs(cli_layer *layer, bool weights);
int cli_layer_backward_outputs(cli_layer *layer, bool half_square);
/* Memory for those of q, k, v and o that `names` lists ("qk"), which the layer
 * makes on its way. */
int cli_layer_keep(cli_layer *layer, const char *names);
int cli_layer_compute(cli_layer *layer, bool backward);

#endif
