/* SPDX-License-Identifier: Apache-2.0
 *
 * conform: every case of a folder of vectors through the reference and
 * through the kernels. What the files of the program share.
 *
 *   case.c     a case: index, sidecar, arrays          verdict.c  right or not
 *   number.c   storage types                           job.c      attention as
 *   core_*.c   the cases of `core`                                a job, and
 *   onnx*.c    the cases of `onnx`                     kernel.c   who does it
 *
 * All numbers are doubles here: every type of the files is exact in one. */
#ifndef ATTN_TESTS_CONFORM_H
#define ATTN_TESTS_CONFORM_H

#include <jansson.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "attn.h"
#include "attn_io.h"
#include "attn_ref.h"

#define MAX_RANK ATTN_ARRAY_MAX_RANK
#define MAX_ARRAYS 24

/* ------------------------------------------------------------------ case */

typedef struct array {
    const char *name;  /* as the sidecar has it */
    const char *dtype; /* "float32", "bfloat16", "bool", ... */
    int32_t rank;
    int64_t shape[MAX_RANK];
    int64_t count;
    double *x;
} array;

typedef struct test_case {
    const char *folder, *name;
    json_t *sidecar;
    attn_file *file;
    array inputs[MAX_ARRAYS], expected[MAX_ARRAYS];
    int n_inputs, n_expected;
    bool verbose, failed;
    char paths[128];      /* those taken, for -v */
    struct block *blocks; /* what take() gave */
    jmp_buf refused;
} test_case;

/* Run one case of a folder; true if all of it is right. Prints failures. */
bool case_run(const char *folder, const char *name, bool verbose);

/* The case cannot be read or run: one line, and the case ends here. */
_Noreturn void refuse(test_case *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A result is wrong: one line, and the case goes on. */
void complain(test_case *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Zeroed memory for n elements, until the case ends. */
void *take(test_case *c, int64_t n, size_t size);
double *take_reals(test_case *c, int64_t n);

/* Members of the sidecar; a missing or ill-typed one is refused. */
json_t *member(test_case *c, const json_t *object, const char *key);
double number_member(test_case *c, const json_t *object, const char *key);
int64_t integer_member(test_case *c, const json_t *object, const char *key);
bool bool_member(test_case *c, const json_t *object, const char *key);
const char *string_member(test_case *c, const json_t *object, const char *key);
/* Refuse keys that are not among the space-separated `known` ones: what a
 * program does not know it cannot have obeyed. */
void only_known_keys(test_case *c, const json_t *object, const char *known);
bool is_known(const char *known, const char *word);

/* Load the arrays that a sidecar's list names ("formal", where given, goes
 * before "name"); null entries are skipped. `prefix` is that of the file. */
void load_inputs(test_case *c, const char *list);
void load_expected(test_case *c, const char *list, const char *prefix);
/* NULL where there is none. */
const array *input_named(const test_case *c, const char *name);
const array *expected_named(const test_case *c, const char *name);
/* One that must be there, of the given rank and shape. */
const array *required_input(test_case *c, const char *name);
void require_shape(test_case *c, const array *a, int32_t rank,
                   const int64_t *shape);
int64_t *integers_of(test_case *c, const array *a);

/* --------------------------------------------------------------- numbers */

/* n doubles stored as `dtype`, rounded once; and back. */
void *stored(test_case *c, attn_dtype dtype, const double *x, int64_t n);
void unstored(attn_dtype dtype, const void *data, int64_t n, double *x);
/* Round in place to what `dtype` can hold. */
void round_to(attn_dtype dtype, double *x, int64_t n);
/* "float32" and the like; ATTN_NONE if unknown. bfloat16 is ATTN_BF16. */
attn_dtype dtype_of_word(const char *word);

/* --------------------------------------------------------------- compare */

/* |got - expected| <= min(atol + rtol |expected|, most); NaN meets NaN, an
 * infinity the same infinity. */
typedef struct tolerance {
    double atol, rtol, most;
} tolerance;

/* Complains once, about the first element that fails. */
void compare(test_case *c, const char *path, const array *expected,
             const double *got, tolerance t);
/* Note a path taken, for the line that -v prints. */
void note_path(test_case *c, const char *path);
double largest_finite(const array *a);

/* ------------------------------------------------------------------- job */

/* An attention to do. `problem` has all that the reference needs; the arrays
 * are the same things with the shapes that the kernels are given. */
typedef struct job {
    attn_ref_problem problem;
    const array *mask, *bias, *slopes, *sinks; /* NULL: absent */
    const double *q, *k, *v, *d_o, *dlse;      /* d_o NULL: no backward */
    int64_t sequences;                         /* 0: not packed */
    const int64_t *cu_q, *cu_k;
} job;

void job_set_mask(test_case *c, job *j, const array *mask);
void job_set_bias(job *j, const array *bias);
void job_set_slopes(job *j, const array *slopes);
void job_set_sinks(job *j, const array *sinks);

/* Where results go: NULL = not wanted. */
typedef struct outcome {
    attn_ref_results results;
    attn_ref_gradients gradients;
} outcome;

/* Who does the job: the reference (dtype ATTN_NONE) or the kernels, in a
 * storage type. */
typedef struct engine {
    const char *name;
    attn_dtype dtype;
    attn_precision precision;
} engine;

bool is_reference(const engine *e);
void do_job(test_case *c, const engine *e, const job *j, outcome *out);
void run_reference(test_case *c, const job *j, outcome *out);
void run_kernels(test_case *c, const engine *e, const job *j, outcome *out);

/* ----------------------------------------------------------------- kinds */

void core_attention(test_case *c);
void core_rope(test_case *c);
void onnx_node(test_case *c);

#endif
