/* SPDX-License-Identifier: Apache-2.0
 *
 * kernelcheck: what its parts share. */
#ifndef KERNELCHECK_H
#define KERNELCHECK_H

#include "attn.h"
#include "kernels/kernels.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* ---------------------------------------------------------------- random */

typedef struct rng {
    uint64_t state;
} rng;

uint64_t rng_next(rng *r);
/* 0 <= x < n */
int64_t rng_below(rng *r, int64_t n);
bool rng_one_in(rng *r, int64_t n);
double rng_normal(rng *r);

/* ---------------------------------------------------------------- guards */

#define MAX_BLOCKS 40

/* Memory that ends, or starts, at a page that must not be touched. */
typedef struct guarded {
    void *map;
    size_t map_size;
    unsigned char *data;
    size_t size;
} guarded;

typedef struct memory {
    guarded block[MAX_BLOCKS];
    int n;
} memory;

/* Memory of `size` bytes, filled with 0xA5, aligned to `align`. */
void *guard_alloc(memory *m, rng *r, size_t size, size_t align);
void guard_free(memory *m);

/* --------------------------------------------------------------- problem */

/* What problems are drawn for: everything; kernels that few of those reach. */
typedef enum problem_kind {
    KIND_DBIAS,  /* the gradient of a bias alone */
    KIND_ANY,
    KIND_DECODE, /* few queries, sometimes many keys; forward alone */
    N_KINDS
} problem_kind;

typedef struct problem {
    uint64_t seed;
    problem_kind kind;
    attn_desc desc;
    attn_args args;
    attn_stage stage; /* also asked of attn_weights */
    attn_tensor stage_out;
    bool backward, weights;
    int64_t len_k; /* of the key axis */
    memory memory;
    char text[512]; /* what it is, for people */
} problem;

/* The problem of a seed, for one type, at any level. Outputs hold 0xA5. */
void problem_make(problem *p, attn_dtype dtype, problem_kind kind,
                  uint64_t seed);
void problem_free(problem *p);

/* Element of a tensor by logical index (row-major over its shape). */
double read_logical(const attn_input *t, int64_t index);
void write_logical(attn_tensor *t, int64_t index, double value);
int64_t count_of(const attn_input *t);

/* A walk over all elements by logical index, without its divisions: most of
 * the time that judging took went there. */
typedef struct walk {
    int64_t at[4];
    int64_t offset; /* of the element, from data */
} walk;

static inline void walk_on(walk *w, const attn_input *t)
{
    for (int32_t a = t->rank - 1; a >= 0; a--) {
        w->offset += t->stride[a];
        if (++w->at[a] < t->shape[a])
            return;
        w->offset -= t->shape[a] * t->stride[a];
        w->at[a] = 0;
    }
}

/* The element at an offset. */
double read_at(const attn_input *t, int64_t offset);

/* ----------------------------------------------------------- expectation */

typedef struct field {
    const char *name;
    attn__pass pass; /* whose kernel answers for it */
    attn_tensor got;
    long double *want; /* by logical index */
    double *bound;     /* what the error may be */
    double *rounded;   /* more of it, where weights meet v in v's type */
    int64_t n;
} field;

typedef struct expectation {
    field field[12];
    int n;
} expectation;

/* What must come out, from the reference in long double: the same at every
 * level. */
void expect_make(expectation *e, const problem *p);
void expect_free(expectation *e);

/* ----------------------------------------------------------------- judge */

typedef struct verdict {
    double worst[ATTN__N_PASSES]; /* largest error / bound */
    bool failed;
} verdict;

/* Run the problem at p->desc.isa_limit and compare; prints what fails.
 * `budget` per pass; `rounded`: the kernel of the forward rounds weights to
 * its type. */
void judge_problem(problem *p, const expectation *e,
                   const double budget[ATTN__N_PASSES], bool rounded,
                   verdict *v);

#endif
