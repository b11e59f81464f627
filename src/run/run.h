/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the public calls and the kernels: checked arguments, the resolved
 * problem, and phases of units. */
#ifndef ATTN_RUN_RUN_H
#define ATTN_RUN_RUN_H

#include "attn.h"
#include "kernels/kernels.h"
#include "plan/plan.h"

/* Check everything that a call of `pass` brings against the plan, contents of
 * index arrays included, and resolve it. `out` is the array of attn_weights,
 * else NULL. Nothing is written anywhere but to *problem. */
attn_status attn__args_check(const attn__plan *plan, const attn_args *args,
                             attn_pass pass, const attn_tensor *out,
                             const attn_rows *rows, attn__problem *problem,
                             attn_diag *diag);

/* Views of inputs and outputs as kernels take them: four axes, the tensor's own
 * right-aligned in them, strides of 0 before. Where `broadcast` is set an axis
 * of size 1 gets stride 0 too. An absent tensor has no data, an empty one has:
 * kernels ask for data to know what is wanted. */
attn__view attn__view_of(const attn_input *t, bool broadcast);
attn__target attn__target_of(const attn_tensor *t);

/* Check exec and its workspace for a pass; *need is what the pass takes of it,
 * which may be less than there is. */
attn_status attn__exec_check(const attn__plan *plan, attn_pass pass,
                             const attn_exec *exec, attn_workspace *need,
                             attn_diag *diag);

/* One parallel pass over the n numbered units of something. `run` does unit
 * `number` with `slot` as its scratch, which holds what an earlier unit left in
 * it; units run at the same time, so they write to memory of their own. */
typedef struct attn__units {
    const void *of;
    void (*run)(const void *of, int64_t number, void *slot);
    int64_t n;
    char *slots;
    size_t slot_size;
} attn__units;

void attn__run_units(const attn__units *units, const attn_exec *exec);

/* The units of attention: `make` fills in unit `index` and returns whether it
 * has any work; `kernel` does it. Units are made by the task that runs them, so
 * a phase takes no memory, however many units it has. */
typedef struct attn__phase {
    const attn__problem *problem;
    attn__kernel *kernel;
    bool (*make)(const struct attn__phase *phase, int64_t index,
                 attn__unit *unit);
    int64_t n_units;
    int64_t rows_per_unit;
    const attn_rows *rows; /* of attn_weights */
    int64_t segments;      /* of a decode; 0: units that join them */
    char *states;          /* of a decode, or NULL; bytes of a row's */
    size_t state_size;
    /* Of dq, or NULL: [head][group of keys], for the (batch, KV head)s from
     * number head0 on. */
    char *shares;
    size_t share_size;
    int64_t groups, head0, heads;
    int64_t together; /* heads whose units are drawn by turns: the tasks */
    char *slots;
    size_t slot_size;
} attn__phase;

void attn__run_phase(const attn__phase *phase, const attn_exec *exec);

/* Which piece of which head comes as number `index`. So many heads at a time
 * as there are tasks: each task then mostly stays with one head, whose keys or
 * rows its cache holds. Of these heads all have a piece before one has its
 * next; so the last pieces, which decide when the run ends, are the short ones,
 * and the heads that are left over when they are divided come with the last. */
typedef struct attn__turn {
    int64_t head, piece;
} attn__turn;

attn__turn attn__turn_of(int64_t index, int64_t heads, int64_t pieces,
                         int64_t together);

/* Units of rows: every (batch, KV head, chunk of rows), later rows first
 * because under a causal mask they cost most. */
int64_t attn__rows_per_unit(const attn__problem *p, attn__tile_shape tile,
                            const attn_exec *exec);
int64_t attn__row_units(const attn__problem *p, int64_t rows_per_unit);
bool attn__make_row_unit(const attn__phase *phase, int64_t index,
                         attn__unit *unit);
/* A chunk of a (batch, KV head), which are numbered. */
bool attn__make_chunk(const attn__phase *phase, int64_t head, int64_t chunk,
                      attn__unit *unit);

/* The phases of weights and entropy that follow a forward. */
void attn__run_weights(const attn__plan *plan, const attn__problem *problem,
                       const attn_rows *rows, const attn_exec *exec,
                       char *slots, size_t slot_size);

#endif
