/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_layer.h: a multi-head attention layer, forward and backward.
 *
 *   q = x W_q + b_q      k = x_kv W_k + b_k      v = x_kv W_v + b_v
 *   q, k = norm(q), norm(k)              per head, if qk_norm is set
 *   q, k = rope(q), rope(k)              per head, if rope is set
 *   o = attention(q, k, v)               as attn.h defines it
 *   y = o W_o + b_o                      or y = o, heads side by side
 *
 *   norm(u) = u g / sqrt(mean(u^2) + norm_eps), over the components of a head
 *
 * x_kv is x in self-attention. A weight is a (d_in, d_out) matrix, applied as
 * x W; torch's (d_out, d_in) is the same memory with its two strides exchanged
 * (attn_layer_transposed). Columns h * dim to (h + 1) * dim belong to head h.
 * docs/layer.md follows the data through one call.
 *
 * Quick start: causal self-attention, 12 heads, 128 tokens of width 768.
 *
 *     attn_layer_desc desc;
 *     attn_layer_desc_init(&desc, ATTN_F32, 1, 128, 768, 12, 12);
 *     desc.attention.causal = ATTN_CAUSAL_TOP_LEFT;
 *
 *     attn_layer_args args;
 *     attn_layer_args_init(&args);
 *     args.x   = attn_in_dense(x, ATTN_F32, 3, (int64_t[]){1, 128, 768});
 *     args.w_q = attn_in_dense(w_q, ATTN_F32, 2, (int64_t[]){768, 768});
 *     args.w_k = ..., args.w_v = ..., args.w_o = ...;
 *     args.y   = attn_dense(y, ATTN_F32, 3, (int64_t[]){1, 128, 768});
 *
 *     attn_diag diag;
 *     if (attn_multi_head(&desc, &args, 2, &diag) != ATTN_OK)
 *         fprintf(stderr, "%s: %s\n", diag.field, diag.message);
 *
 * Programs that call often plan once and bring their own memory, as with
 * attn_plan_init, attn_plan_workspace and attn_forward. Errors and promises
 * are those of attn.h: a status and a sentence, no output touched on failure,
 * no allocation in a run, the same bits for any threads and strides. Since 0.1
 * throughout. */
#ifndef ATTN_LAYER_H
#define ATTN_LAYER_H

#include "attn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is fixed between calls. Fill it with attn_layer_desc_init, then change
 * fields. */
typedef struct attn_layer_desc {
    uint32_t size; /* sizeof(attn_layer_desc), set by attn_layer_desc_init */
    int32_t qk_norm;     /* 1: normalise q and k per head */
    int32_t rotary;      /* 1: rotate q and k by `rope` */
    int64_t dim_x;       /* width of x */
    int64_t dim_x_kv;    /* width of x_kv; 0 = self-attention: x_kv is x */
    int64_t dim_y;       /* width of y; 0 = no W_o: y is o */
    double norm_eps;     /* default 1e-6 */
    attn_desc attention; /* dtype, batch, heads, lengths, dims of a head, scale,
                            causal, window, softcap, dropout, inputs, ... */
    attn_rope_desc rope; /* its arrays must outlive the plan */
} attn_layer_desc;

/* Self-attention over (batch, len, dim_x) with dim_x / heads components in a
 * head (change attention.dim_qk, dim_v and scale for others), W_o to dim_x, no
 * norm, no rope, no mask of any kind. Checks nothing. */
ATTN_API void attn_layer_desc_init(attn_layer_desc *desc, attn_dtype dtype,
                                   int64_t batch, int64_t len, int64_t dim_x,
                                   int64_t heads, int64_t heads_kv);

/* Plain bytes, immutable after attn_layer_plan_init: copy it, share it. */
typedef struct attn_layer_plan {
    uint64_t bytes[192];
} attn_layer_plan;

/* Validate `desc` and choose kernels. No allocation. Beyond what attn_plan_init
 * refuses: packed sequences and pages are E_UNSUPPORTED. */
ATTN_API attn_status attn_layer_plan_init(attn_layer_plan *plan,
                                          const attn_layer_desc *desc,
                                          attn_diag *diag);

/* The workspace of one run of `pass` (ATTN_FORWARD or ATTN_BACKWARD) on
 * `threads` threads: room for q, k, v and o (and their gradients), and what
 * attention and the products need. `shared` is the first, `slot` is 0. */
ATTN_API attn_status attn_layer_workspace(const attn_layer_plan *plan,
                                          attn_pass pass, int64_t threads,
                                          attn_workspace *workspace,
                                          attn_diag *diag);

/* What changes from call to call. Absent tensors are zeros: start from
 * attn_layer_args_init. One args serves a forward and its backward.
 *
 *   attention     mask, bias, alibi_slopes, sinks, q_offset, kv.k_lengths,
 *                 seed, offset, dropout_start; outputs lse, weights, entropy;
 *                 in backward dlse in, dbias, dsinks, dslopes out: all as for
 *                 attn_forward and attn_backward. Its q, k, v, o and their
 *                 gradients are the layer's and must be absent
 *   x             (batch, len_q, dim_x), the plan's dtype
 *   x_kv          (batch, len_k, dim_x_kv); absent in self-attention
 *   w_q w_k w_v   (dim_x, heads_q * dim_qk), (dim_x_kv, heads_kv * dim_qk),
 *                 (dim_x_kv, heads_kv * dim_v), the plan's dtype
 *   w_o           (heads_q * dim_v, dim_y); absent if dim_y = 0
 *   b_q b_k b_v b_o   optional, one number a column; f64, f32 or x's type
 *   g_q g_k       gains of qk_norm: (dim_qk), or (heads, dim_qk); absent = 1;
 *                 f64, f32 or x's type
 *   positions     of queries, for rope: (len_q) or (batch, len_q), int32 or
 *                 int64; absent: 0, 1, 2, ...
 *   positions_kv  of keys; absent: those of queries in self-attention, else
 *                 0, 1, 2, ...
 *   d_y           gradient of the loss by y
 *   y             (batch, len_q, dim_y), or (batch, len_q, heads_q * dim_v)
 *   q k v o       optional: what attention reads and writes, after norm and
 *                 rope, (batch, heads, len, dim)
 *   d*            gradients by the tensor of that name, same shape: dx and
 *                 dx_kv of x's type, the others f64, f32 or x's type. In
 *                 self-attention dx is the whole gradient */
typedef struct attn_layer_args {
    uint32_t size; /* sizeof(attn_layer_args), set by attn_layer_args_init */
    attn_args attention;
    attn_input x, x_kv;
    attn_input w_q, w_k, w_v, w_o;
    attn_input b_q, b_k, b_v, b_o;
    attn_input g_q, g_k;
    attn_input positions, positions_kv;
    attn_input d_y;
    attn_tensor y, q, k, v, o;
    attn_tensor dx, dx_kv;
    attn_tensor dw_q, dw_k, dw_v, dw_o;
    attn_tensor db_q, db_k, db_v, db_o;
    attn_tensor dg_q, dg_k;
} attn_layer_args;

/* All absent, seed 0, offset 0. */
ATTN_API void attn_layer_args_init(attn_layer_args *args);

/* Views for the weights above. `transposed` of torch's (d_out, d_in); `columns`
 * of a packed W_qkv or, of rank 1, b_qkv: n columns from `first` on. The packed
 * order is q, k, v: heads_q * dim_qk, heads_kv * dim_qk, heads_kv * dim_v
 * columns. Indices out of range are left for the run to refuse. */
ATTN_API attn_input attn_layer_transposed(attn_input matrix);
ATTN_API attn_input attn_layer_columns(attn_input packed, int64_t first,
                                       int64_t n);
/* The same for gradients, so that dw_q, dw_k and dw_v fill a dW_qkv. */
ATTN_API attn_tensor attn_layer_grad_transposed(attn_tensor matrix);
ATTN_API attn_tensor attn_layer_grad_columns(attn_tensor packed, int64_t first,
                                             int64_t n);

/* y, and what else of y, q, k, v, o, lse, weights and entropy is given. */
ATTN_API attn_status attn_layer_forward(const attn_layer_plan *plan,
                                        const attn_layer_args *args,
                                        const attn_exec *exec,
                                        attn_diag *diag);

/* The gradients that are given, from d_y (and attention.dlse). Makes q, k, v
 * and o from x once more, with the forward's bits, so that nothing has to be
 * kept between the two calls. */
ATTN_API attn_status attn_layer_backward(const attn_layer_plan *plan,
                                         const attn_layer_args *args,
                                         const attn_exec *exec,
                                         attn_diag *diag);

/* Plan and forward in one call, on up to `threads` threads. Allocates a
 * workspace and a pool, and frees them. Adds E_NOMEM. */
ATTN_API attn_status attn_multi_head(const attn_layer_desc *desc,
                                     const attn_layer_args *args,
                                     int64_t threads, attn_diag *diag);
/* The same for backward. */
ATTN_API attn_status attn_multi_head_backward(const attn_layer_desc *desc,
                                              const attn_layer_args *args,
                                              int64_t threads,
                                              attn_diag *diag);

#ifdef __cplusplus
}
#endif

#endif
