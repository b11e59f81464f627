/* SPDX-License-Identifier: Apache-2.0
 *
 * From named arrays and options to the library's descriptor and arguments, and
 * the arrays that the results go to. Shapes follow the user: what comes in as
 * (H, L, D) goes out as (H, L, D). */
#ifndef ATTN_CLI_PROBLEM_H
#define ATTN_CLI_PROBLEM_H

#include "inputs.h"
#include "options.h"

#define CLI_MAX_OUTPUTS 24

/* The arrays an attention can be made of; verbs may know more. */
#define CLI_ATTENTION_ARRAYS                                                  \
    "q", "k", "v", "mask", "bias", "alibi_slopes", "sinks", "k_lengths",      \
        "q_offset", "cu_seqlens_q", "cu_seqlens_k", "positions", "do",        \
        "dlse", "tokens"

typedef struct cli_problem {
    const cli_attention *options;
    const cli_inputs *inputs;
    attn_array *q, *k, *v;
    attn_desc desc;
    attn_args args;
    bool packed; /* by cu_seqlens: q is (total, heads, dim) */
    int32_t dropped; /* axes of (B, H, ...) that the user's shapes lack */
    attn_array outputs[CLI_MAX_OUTPUTS];
    int n_outputs;
} cli_problem;

/* Fill desc and the inputs of args, converting types if asked to. CLI_GO or an
 * exit code; cli_problem_free in any case. */
int cli_problem_init(cli_problem *p, const cli_inputs *inputs,
                     const cli_attention *options);
void cli_problem_free(cli_problem *p);

/* The parts of it that do not need q, k and v, for a layer: options, then the
 * other inputs, then the corner of causal, whose order is this. */
void cli_apply_options(cli_problem *p);
int cli_take_inputs(cli_problem *p);
int cli_choose_causal(cli_problem *p);

/* The (B, H, L, D) view of an array shaped like q. */
attn_input cli_view(const cli_problem *p, const attn_array *array);
/* "f32" and the like; "text". */
const char *cli_type_of(const attn_array *array);

/* sequences.c: element of an int32 or int64 array. */
int64_t cli_index(const attn_array *array, int64_t i);
/* Whether cu_seqlens are given, and both, and integers on one axis. */
int cli_check_packed(cli_problem *p);
/* Whether cu_seqlens, k_lengths and q_offset fit q, k and the batch. */
int cli_check_sequences(const cli_problem *p);
/* The longest sequence that cu_seqlens cuts. */
int64_t cli_longest(const attn_array *cu_seqlens);
/* Whether every query axis is as long as its key axis; else the lengths of one
 * that is not. */
bool cli_is_square(const cli_problem *p, int64_t *len_q, int64_t *len_k);
/* Where the query axis of sequence b begins on its key axis. */
int64_t cli_offset_of(const cli_problem *p, int64_t b);

/* outputs.c: memory for o and lse, with `weights` also weights and entropy;
 * for the gradients that the inputs ask for. `half_square`: do is o itself. */
int cli_forward_outputs(cli_problem *p, bool weights);
int cli_backward_outputs(cli_problem *p, bool half_square);
/* Their parts: an output of any shape (NULL, having said why, without memory);
 * one with a row for each query, with `keys` also an axis of keys; lse, and
 * with `weights` also weights and entropy; the gradients of optional inputs. */
attn_array *cli_add_output(cli_problem *p, const char *name, attn_dtype dtype,
                           int32_t rank, const int64_t *shape);
int cli_add_rows(cli_problem *p, const char *name, attn_dtype dtype, bool keys,
                 attn_tensor *to);
int cli_row_outputs(cli_problem *p, bool weights);
int cli_optional_outputs(cli_problem *p);
/* Whether dlse, if it is given, is shaped like lse. */
int cli_take_dlse(cli_problem *p);
int cli_check_same_shape(const attn_array *a, const attn_array *b);
/* NULL if there is none. */
attn_array *cli_output(cli_problem *p, const char *name);

/* rotate.c: apply --rope to q and k in place, or its transpose to dq and dk. */
int cli_rotate(cli_problem *p, bool backward);

#endif
