/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_lab.h: the classic experiments on attention: data in, a table and a
 * conclusion out.
 *
 * Each experiment takes one small self-attention, given or random, changes one
 * thing and measures what that does. The numbers of attention come from
 * attn_attention in fp64. Drawing is the caller's: a result brings matrices
 * and curves for attn_picture.h.
 *
 *     attn_lab_data data;
 *     attn_lab_data_init(&data);
 *     attn_lab_result result;
 *     if (attn_lab_run("sharpen", &data, &result, &diag) == ATTN_OK)
 *         puts(result.conclusion);
 *     attn_lab_free(&result);
 *
 * Thread-safe. Since 0.1. */
#ifndef ATTN_LAB_H
#define ATTN_LAB_H

#include "attn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an experiment works on. Nothing is needed: absent arrays are drawn from
 * a normal distribution, by `seed`. Give either q, k and v, or x with any of
 * w_q, w_k and w_v (then q = x w_q).
 *
 *   q, k, v        (L, D), (L, D), (L, Dv); f64 or f32, any strides
 *   x              (L, d);  w_q, w_k (d, D);  w_v (d, Dv)
 *   len, dim       of random arrays; 0 = what suits the experiment
 *   heads          of `heads`, which needs x; 0 = 4
 *   tokens         L names, or NULL; used by `above` */
typedef struct attn_lab_data {
    uint32_t size; /* sizeof(attn_lab_data), set by attn_lab_data_init */
    uint64_t seed;
    int64_t len, dim, heads;
    attn_input q, k, v, x, w_q, w_k, w_v;
    const char *const *tokens;
} attn_lab_data;

/* Nothing given, seed 0. */
ATTN_API void attn_lab_data_init(attn_lab_data *data);

typedef struct attn_lab_cell {
    const char *text; /* NULL: the number */
    double number;
} attn_lab_cell;

/* `shown` is 0 where a pair is hidden; NULL = all are shown. */
typedef struct attn_lab_matrix {
    const char *title;
    int64_t rows, columns;
    const double *values;
    const unsigned char *shown;
} attn_lab_matrix;

typedef struct attn_lab_curve {
    const char *title;
    int64_t n;
    const double *values;
} attn_lab_curve;

/* A table of n_rows x n_columns cells, row-major, and what it teaches. All
 * memory belongs to the result. */
typedef struct attn_lab_result {
    const char *title, *conclusion;
    int64_t n_columns, n_rows;
    const char *const *columns;
    const attn_lab_cell *cells;
    int64_t n_matrices, n_curves;
    const attn_lab_matrix *matrices;
    const attn_lab_curve *curves;
    const char *value; /* what numbers of the matrices are: weight or score */
    void *memory;
} attn_lab_result;

/* The experiments, 0 <= index < count: names, and what each does in a line. */
ATTN_API int64_t attn_lab_count(void);
ATTN_API const char *attn_lab_name(int64_t index);
ATTN_API const char *attn_lab_about(int64_t index);

/* Returns OK, E_ARG (no such experiment, contradicting data), E_SHAPE,
 * E_DTYPE, E_LIMIT (more than 4096 rows, 1024 numbers in one) or E_NOMEM. On
 * failure `result` is zeroed. */
ATTN_API attn_status attn_lab_run(const char *name, const attn_lab_data *data,
                                  attn_lab_result *result, attn_diag *diag);
/* Frees what the result owns and zeroes it. */
ATTN_API void attn_lab_free(attn_lab_result *result);

#ifdef __cplusplus
}
#endif

#endif
