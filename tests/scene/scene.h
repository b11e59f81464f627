/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems of every feature for tests that go through attn.h: the same values
 * from the same seed on every machine, in any layout, run on any number of
 * threads. Anything unexpected ends the program. */
#ifndef ATTN_TESTS_SCENE_H
#define ATTN_TESTS_SCENE_H

#include "attn.h"

#include <stdbool.h>

typedef struct scene_shape {
    const char *name;
    int64_t batch, heads_q, heads_kv, len_q, len_k, dim_qk, dim_v;
    attn_causal causal;
    int64_t left, right; /* window width + 1; 0 = unbounded */
    double softcap, dropout;
    double scale;             /* 0 = default */
    const char *mask, *bias;  /* axes that it has, of "bhij"; NULL = none */
    const char *slopes;       /* "h" or "bh" */
    uint32_t inputs;          /* of the others: ATTN_WITH_SINKS and so on */
    bool dlse, empty_nan, bias_hides;
} scene_shape;

#define SCENE_MEMORY 64

typedef struct scene {
    scene_shape shape;
    attn_desc desc;
    attn_args args;        /* inputs and outputs, dense */
    attn_stage stage;      /* asked of attn_weights; into `scores` */
    attn_tensor scores;
    void *memory[SCENE_MEMORY];
    int n_memory;
} scene;

/* Number `at` of stream `seed`: near normal, a multiple of 2^-16. */
double scene_normal(uint64_t seed, uint64_t at);
/* A number of 0 .. n - 1. */
int64_t scene_below(uint64_t seed, uint64_t at, int64_t n);

void scene_open(scene *s, const scene_shape *shape, attn_dtype dtype,
                uint64_t seed);
void scene_close(scene *s);

/* What ran has every output that its shape can have; see scene_output. */
void scene_forward(scene *s, int64_t threads);
void scene_backward(scene *s, int64_t threads);
/* Both, the second where it is supported. */
void scene_run(scene *s, int64_t threads);
bool scene_has_backward(const scene *s);

/* ------------------------------------------------------- tensors by number */

#define SCENE_INPUTS 14
#define SCENE_OUTPUTS 11

attn_input *scene_input(scene *s, int n);
attn_tensor *scene_output(scene *s, int n);
const char *scene_output_name(int n);

int64_t scene_count(const attn_input *t);
/* Offset in elements of the element with that logical index. */
int64_t scene_offset(const attn_input *t, int64_t index);
double scene_read(const attn_input *t, int64_t index);
void scene_write(attn_tensor *t, int64_t index, double value);
/* The same memory to write to, of an input that a scene owns. */
attn_tensor scene_writable(const attn_input *t);
/* Elements [from, from + n) of an axis. */
attn_input scene_slice(attn_input t, int32_t axis, int64_t from, int64_t n);

/* New dense memory of the scene's, filled with 0xa5. */
attn_tensor scene_dense(scene *s, attn_dtype dtype, int32_t rank,
                        const int64_t *shape);
/* Fill all outputs with 0xa5 again. */
void scene_clear(scene *s);

/* --------------------------------------------------------------- variants */

typedef enum scene_layout {
    SCENE_DENSE,
    SCENE_SWAPPED,   /* heads inside of rows (bshd) */
    SCENE_PADDED,    /* gaps after every axis */
    SCENE_NEGATIVE,  /* every stride below zero */
    SCENE_UNALIGNED, /* from one element into the memory */
    SCENE_COLUMNS,   /* the last axis is the slowest */
    SCENE_N_LAYOUTS
} scene_layout;

/* The same problem with inputs and outputs in other memory. */
void scene_relaid(scene *to, scene *from, scene_layout layout);

/* Batch entry b, query heads [head, head + n) of `from`, whose arrays it
 * reads in place; n is 1 or the size of a group. Not for pages. */
void scene_part(scene *to, scene *from, int64_t b, int64_t head, int64_t n);

/* Whether every element has the same bytes; says which has not. */
bool scene_same(const char *what, const attn_input *a, const attn_input *b);
/* All outputs that both have. */
bool scene_same_outputs(scene *a, scene *b);
/* What the part has, but for sums that the whole takes over other parts. */
bool scene_same_part(scene *part, scene *whole, int64_t b, int64_t head,
                     int64_t n);

#endif
