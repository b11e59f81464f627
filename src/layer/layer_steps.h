/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside the layer: what a plan's bytes mean, the memory of one run, and the
 * steps between the public calls and attn.h. Only the public interface of the
 * core does arithmetic on whole tensors; the norm is the layer's own. */
#ifndef ATTN_LAYER_STEPS_H
#define ATTN_LAYER_STEPS_H

#include "attn_layer.h"
#include "core/diag.h"
#include "core/exec.h"
#include "core/tensor.h"

/* Tells a plan of this version from arbitrary bytes. */
#define ATTN__LAYER_MARK                                                      \
    (UINT64_C(0x6174746e6c617972) ^ sizeof(attn__layer_plan))
/* Alignment of the workspace and of its parts. */
#define ATTN__LAYER_ALIGN 64

typedef struct attn__layer_plan {
    uint64_t mark;
    attn_layer_desc desc;
    attn_plan attention;
} attn__layer_plan;

_Static_assert(sizeof(attn__layer_plan) <= sizeof(attn_layer_plan),
               "a plan must fit");

attn_status attn__layer_plan_open(const attn_layer_plan *plan,
                                  attn__layer_plan *body, attn_diag *diag);

/* The workspace, divided. Tensors of q's shape lie in memory as (batch, len,
 * heads, dim), so that a projection's output is one dense matrix; they are
 * (batch, heads, len, dim) here. Absent where a pass has no use for it. */
typedef struct attn__layer_memory {
    attn_tensor q, k, v, o;
    attn_tensor raw_q, raw_k;       /* before the norm, where there is one */
    attn_tensor d_o, dq, dk, dv;    /* of q, k after norm and rope */
    attn_tensor lse;                /* f64 */
    attn_tensor sum_dx, sum_dx_kv;  /* f32, where dx has 16 bits */
    attn_tensor sum_dg;             /* f64 (heads_q, dim_qk) */
    attn_tensor counts;             /* 0, 1, 2, ...: default positions */
    void *run;                      /* for attention and for products */
    size_t run_size;
    size_t size; /* of all */
} attn__layer_memory;

/* Count (base NULL) or hand out; false where a size overflows. */
bool attn__layer_divide(const attn__layer_plan *plan, attn_pass pass,
                        int64_t threads, char *base,
                        attn__layer_memory *memory);

/* Everything that a call brings but what attention checks by itself. */
attn_status attn__layer_check(const attn__layer_plan *plan,
                              const attn_layer_args *args, attn_pass pass,
                              attn_diag *diag);

/* One run: the checked call and its memory. */
typedef struct attn__layer_run {
    const attn__layer_plan *plan;
    const attn_layer_args *args;
    attn__layer_memory memory;
    attn_exec exec; /* with memory.run as workspace */
} attn__layer_run;

/* Open the plan, check the call, divide the workspace. `body` is storage for
 * run->plan. */
attn_status attn__layer_start(const attn_layer_plan *plan,
                              const attn_layer_args *args,
                              const attn_exec *exec, attn_pass pass,
                              attn__layer_plan *body, attn__layer_run *run,
                              attn_diag *diag);

/* q, k and v of x, and attention over them, with the outputs that `attention`
 * names (o being memory.o or y's). */
attn_status attn__layer_attend(const attn__layer_run *run,
                               attn_args *attention, attn_diag *diag);

/* c = a b + d on the run's threads. */
attn_status attn__layer_gemm(const attn__layer_run *run, attn_input a,
                             attn_input b, attn_input d, attn_tensor c,
                             attn_diag *diag);

/* Rotate t in place, or backward by the transpose. */
attn_status attn__layer_rotate(const attn__layer_run *run, attn_tensor t,
                               bool keys, bool backward, attn_diag *diag);

/* y = x g / sqrt(mean(x^2) + eps) over the last axis of (batch, heads, len,
 * dim); g absent, (dim) or (heads, dim). y may be x. */
void attn__qk_norm(attn_input x, attn_input g, double eps, attn_tensor y);
/* From dy, in place, to dx; dg, if asked for, is summed over all rows, by way
 * of `sums` (heads, dim). */
void attn__qk_norm_backward(attn_input x, attn_input g, double eps,
                            attn_tensor dy_dx, attn_tensor dg, double *sums);

/* (batch, heads, len, dim) of this memory order as (batch, len, heads * dim),
 * and back. */
attn_tensor attn__layer_flat(attn_tensor t);
attn_tensor attn__layer_heads(attn_tensor t, int64_t heads, int64_t dim);

#endif
