/* SPDX-License-Identifier: Apache-2.0
 *
 * What attn plot draws: matrices of chosen heads and rows, or their
 * entropies, computed or taken from a file. */
#ifndef ATTN_CLI_DRAWN_H
#define ATTN_CLI_DRAWN_H

#include "layer.h"

/* Indices in the order asked for; NULL: all. */
typedef struct cli_indices {
    int64_t *at;
    int64_t n;
} cli_indices;

/* "0,3,8-11". CLI_GO or an exit code; the memory is the caller's to free. */
int cli_indices_parse(const char *name, const char *text, cli_indices *to);
/* `to` becomes those below `limit`, or all of them; else complain. */
int cli_indices_resolve(const char *name, cli_indices *to, int64_t limit,
                        const char *what);

typedef struct cli_drawn {
    cli_indices heads, rows; /* set by the caller */
    int64_t batch;
    attn_stage stage;
    bool entropy; /* (heads, rows) instead of (heads, rows, keys) */
    /* filled in: */
    int64_t n_batch, n_heads, len_q, len_k; /* there are in all */
    attn_dtype dtype;
    void *values;   /* (heads, rows[, keys]), dense */
    uint8_t *shown; /* the same shape, false = hidden; NULL = all are shown */
} cli_drawn;

/* From q and k; the problem is changed to the batch that is drawn. With a
 * layer, whose problem it then is, from the q and k that the layer makes. */
int cli_drawn_compute(cli_drawn *drawn, cli_problem *p, cli_layer *layer);
/* From an array of a file: weights (B, H, Lq, Lk) or entropy (B, H, Lq), or
 * less its first axes. */
int cli_drawn_take(cli_drawn *drawn, const attn_array *array);
void cli_drawn_free(cli_drawn *drawn);

#endif
