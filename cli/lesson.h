/* SPDX-License-Identifier: Apache-2.0
 *
 * What attn explain tells about: every intermediate of one head of one batch,
 * in fp64, from the stages of attn_ref.h. lesson.c computes it; the tell_*
 * files put it into words and explain_json.c into JSON. */
#ifndef ATTN_CLI_LESSON_H
#define ATTN_CLI_LESSON_H

#include "attn_ref.h"
#include "layer.h"

/* A matrix of the layer around the head, dense: x, its columns of w_q, ... */
typedef struct cli_part {
    const char *name;
    int64_t rows, columns;
    double *x;
} cli_part;

#define CLI_MAX_PARTS 24

/* Matrices are dense and row-major: q (Lq, D), k (Lk, D), v (Lk, Dv), o
 * (Lq, Dv), scores and weights (Lq, Lk), lse and entropy (Lq). */
typedef struct cli_lesson {
    const cli_attention *options;
    const attn_array *tokens; /* NULL = none; those of the keys */
    attn_ref_problem problem; /* one batch, one head */
    int64_t batch, head, kv_head;           /* the chosen ones */
    int64_t n_batch, n_heads, n_kv;
    int64_t row;  /* the query whose arithmetic is shown in full */
    bool one_row; /* the caller chose it */
    bool grad, has_do, is_example;
    double *q, *k, *v;
    double *dots; /* q.k, before the scale */
    double *raw, *softcapped, *biased; /* at every pair, hidden ones too */
    unsigned char *visible;
    double *p, *lse, *entropy, *o;
    double *dropout; /* factors; NULL = none */
    double *d_o, *dp, *ds, *dq, *dk, *dv, *dlse; /* with grad; dlse: given */
    double *dbias, *dsinks, *dslopes; /* of what is given */
    /* Of a layer; NULL: q, k and v are given. The parts are this head's. */
    const cli_layer *layer;
    cli_part parts[CLI_MAX_PARTS];
    int n_parts;
    int step; /* number of the step that was told last */
    /* What the problem points at. */
    double *bias, *slope, *sink;
    unsigned char *mask;
    int64_t q_offset, k_length;
} cli_lesson;

/* Convert what the problem, or the layer, will hold to f64, by way of --dtype.
 * Before cli_problem_init, after cli_layer_read. */
int cli_lesson_widen(const cli_inputs *inputs, cli_attention *options);
/* Compute the head and batch that are set in `lesson`. The problem has been
 * run before: everything in it is valid. CLI_GO or an exit code;
 * cli_lesson_free in any case. */
int cli_lesson_learn(cli_lesson *lesson, const cli_problem *p);
void cli_lesson_free(cli_lesson *lesson);

/* rows * columns zeros, or NULL. */
double *cli_numbers(int64_t rows, int64_t columns);
/* lesson_layer.c: the parts of the layer; with `grad` d_o, and then those of
 * the gradient. False: no memory. */
bool cli_lesson_take_layer(cli_lesson *lesson);
bool cli_lesson_take_layer_grad(cli_lesson *lesson);
/* NULL if there is none. */
const cli_part *cli_part_of(const cli_lesson *lesson, const char *name);

/* A row of weights in numbers. */
typedef struct cli_row {
    int64_t n_visible, best; /* the key with the largest weight; -1 = none */
    double max, sum;         /* of visible scores and the sink; of exp */
    double effective;        /* exp(entropy), 0 for an empty row */
} cli_row;
cli_row cli_lesson_row(const cli_lesson *lesson, int64_t i);
/* The name of key j, "key 3" or its token, in text. */
const char *cli_key_name(const cli_lesson *lesson, int64_t j, char *text,
                         size_t size);
/* The same for query i; tokens name queries where Lq = Lk. */
const char *cli_query_name(const cli_lesson *lesson, int64_t i, char *text,
                           size_t size);
/* The keys of row i by falling weight, those of at least `least`, up to n;
 * returns how many. */
int64_t cli_strongest(const cli_lesson *lesson, int64_t i, double least,
                      int64_t *keys, int64_t n);

/* tell_matrix.c: the next step's number and title. */
void cli_tell_step(cli_lesson *lesson, const char *title);
/* "name (rows, columns): meaning" and below it the numbers, or of a large
 * matrix what can be said of all. `visible` may be NULL; where it is 0 a dot
 * stands for the number, which is not counted. */
void cli_tell_matrix(const char *name, const char *meaning, const double *x,
                     int64_t rows, int64_t columns,
                     const unsigned char *visible);
/* q, k and v as attention takes them, and what each is for. */
void cli_tell_qkv(const cli_lesson *lesson);
/* "[1 2; 3 4]", with so many digits. */
void cli_tell_line(const double *x, int64_t rows, int64_t columns,
                   int digits);
bool cli_is_small(int64_t rows, int64_t columns);

/* The telling, to stdout. */
void cli_tell_forward(cli_lesson *lesson);
void cli_tell_backward(cli_lesson *lesson);
/* tell_layer.c: what a layer does before and after its heads. */
void cli_tell_layer_inputs(cli_lesson *lesson);
void cli_tell_layer_output(cli_lesson *lesson);
void cli_tell_layer_loss(cli_lesson *lesson);
void cli_tell_layer_gradients(cli_lesson *lesson);
int cli_lesson_json(const cli_lesson *lesson);

#endif
