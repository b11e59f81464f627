/* SPDX-License-Identifier: Apache-2.0
 *
 * What experiments share. A `lab` is one experiment while it runs: its memory
 * lives until the result is freed, so nothing is freed in between. Functions
 * that allocate return NULL or false when memory is short, having noted it in
 * `status`; the first failure is kept. */
#ifndef ATTN_LAB_WORKBENCH_H
#define ATTN_LAB_WORKBENCH_H

#include <stdbool.h>

#include "attn_lab.h"

typedef struct lab {
    const attn_lab_data *data;
    attn_lab_result *result;
    attn_diag *diag; /* never NULL */
    attn_status status;
    uint64_t random; /* state */
} lab;

/* Self-attention of `len` tokens: q = x w_q and so on. Without an x (q, k and
 * v were given) x is the identity and w_q is q, so that dW_q is dq. */
typedef struct scene {
    int64_t len, width, dim, dim_v; /* x is (len, width) */
    double *x, *w_q, *w_k, *w_v, *q, *k, *v;
    bool given_q;
} scene;

/* Which attention, and the matrices it gives. */
typedef struct attended {
    double *p, *o;        /* (len_q, len_k), (len_q, dim_v) */
    unsigned char *shown; /* (len_q, len_k) */
} attended;

typedef struct rules {
    bool causal, nan; /* nan: an empty row is NaN */
    double scale;     /* 0 = 1/sqrt(dim) */
    int64_t width;    /* of a causal window; 0 = none */
    const unsigned char *mask; /* (len, len); NULL = none */
} rules;

/* workbench.c */
void *attn__lab_memory(lab *l, int64_t n, size_t size);
double *attn__lab_numbers(lab *l, int64_t rows, int64_t columns);
/* Text of at most 511 bytes. */
const char *attn__lab_text(lab *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool attn__lab_refuse(lab *l, attn_status status, const char *field,
                      const char *sentence);
/* Standard normal numbers times `factor`. */
double *attn__lab_normal(lab *l, int64_t rows, int64_t columns,
                         double factor);
/* From the data, or random with these sizes unless the data say others. */
bool attn__lab_scene(lab *l, int64_t len, int64_t dim, scene *s);
/* An input (rows, columns) as doubles. */
double *attn__lab_take(lab *l, const attn_input *in, const char *name,
                       int64_t rows, int64_t columns);
/* c (m, n) = a (m, k) b (k, n). */
double *attn__lab_product(lab *l, const double *a, const double *b, int64_t m,
                          int64_t k, int64_t n);
/* Attention of len queries and keys. */
bool attn__lab_attend(lab *l, int64_t len, int64_t dim, int64_t dim_v,
                      const double *q, const double *k, const double *v,
                      const rules *rules, attended *to);

/* lab_table.c: the result. `columns` ends with NULL. */
bool attn__lab_table(lab *l, const char *title, const char *const *columns,
                     int64_t rows);
void attn__lab_number(lab *l, int64_t row, int64_t column, double number);
void attn__lab_word(lab *l, int64_t row, int64_t column, const char *text);
/* Both return true if memory for the title was there. */
bool attn__lab_draw(lab *l, const char *title, int64_t rows, int64_t columns,
                    const double *values, const unsigned char *shown);
bool attn__lab_curve(lab *l, const char *title, int64_t n,
                     const double *values);
/* A row of weights. */
double attn__lab_entropy(const double *p, int64_t n);
double attn__lab_largest(const double *p, int64_t n);
/* The largest |a - b|; NaN in one alone counts as infinite. */
double attn__lab_apart(const double *a, const double *b, int64_t n);

#define X(name, function, about) bool attn__lab_##function(lab *l);
#include "lab/experiments.def"
#undef X

#endif
