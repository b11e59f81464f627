/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_ref.h: the definition of attention, as four stages that read like the
 * formula, and their transposes. Plain loops in fp64, no blocks, no SIMD; it
 * shares no code with the fast path beyond statuses, Philox and the allocator.
 * Slow on purpose, memory L x L: use attn.h to compute.
 *
 *   scores   q, k             -> s              transpose: ds -> dq, dk, dbias,
 *                                                          dslopes
 *   visible  geometry, mask, bias -> visible
 *   softmax  s, visible       -> p, lse         transpose: dp, dlse -> ds,
 *                                                          dsinks
 *   output   p, visible, v    -> o              transpose: do -> dp, dv
 *
 * All arrays are dense, row-major and the caller's:
 *
 *   q, dq    (batch, heads_q, len_q, dim_qk)    o, d_o (.., len_q, dim_v)
 *   k, dk    (batch, heads_kv, len_k, dim_qk)   v, dv  (.., len_k, dim_v)
 *   lse, dlse, entropy           (batch, heads_q, len_q)
 *   s, p, dp, ds, visible        (batch, heads_q, len_q, len_k)
 *
 * `visible` is one byte a pair, 0 or 1. A hidden pair is never read into a
 * visible result, whatever its k, v, q or d_o hold: it is left out of sums,
 * not multiplied by 0. Sizes may be 0. What the statuses of attn.h check is
 * taken for granted here. Thread-safe: nothing is kept between calls.
 *
 * attn_ref_real is double; the tests also compile the same sources as long
 * double, under other names (src/ref/wide.h). Since 0.1. */
#ifndef ATTN_REF_H
#define ATTN_REF_H

#include "attn.h"

#ifndef ATTN_REF_REAL
#define ATTN_REF_REAL double
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef ATTN_REF_REAL attn_ref_real;

/* --------------------------------------------------------------- problem */

/* Everything but q, k and v. Pointers may be NULL: absent. A broadcast axis of
 * mask, bias or slopes has stride 0. */
typedef struct attn_ref_problem {
    int64_t batch, heads_q, heads_kv, len_q, len_k, dim_qk, dim_v;
    attn_ref_real scale, softcap; /* softcap 0 = off */
    attn_causal causal;           /* any but NONE: j <= i + q_offset */
    attn_empty_rows empty_rows;
    int64_t window_left, window_right; /* -1 = unbounded */
    const int64_t *q_offset;           /* (batch), resolved; absent = 0 */
    const int64_t *k_lengths;          /* (batch) */
    const unsigned char *mask;         /* 1 = attend */
    int64_t mask_stride[4];
    const attn_ref_real *bias; /* -inf hides */
    int64_t bias_stride[4];
    const attn_ref_real *alibi_slopes; /* strides of (batch, heads_q) */
    int64_t slopes_stride[2];
    const attn_ref_real *sinks;   /* (heads_q); -inf = none for that head */
    const attn_ref_real *dropout; /* as p: 0, or 1 / (1 - p_drop) where kept */
} attn_ref_problem;

/* Every field: scale 1/sqrt(dim_qk) (1 if dim_qk = 0), the rest absent. */
ATTN_API void attn_ref_problem_init(attn_ref_problem *problem, int64_t batch,
                                    int64_t heads_q, int64_t heads_kv,
                                    int64_t len_q, int64_t len_k,
                                    int64_t dim_qk, int64_t dim_v);

/* The strides of a dense array whose last axes are shape[0..rank) (rank <= n)
 * within `n` axes, 0 where the array has length 1 or no such axis. */
ATTN_API void attn_ref_broadcast(int64_t n, int64_t rank, const int64_t *shape,
                                 int64_t *stride);

/* The q_offset of a batch to which none was given; k_length is len_k where
 * there are no lengths. */
ATTN_API int64_t attn_ref_q_offset(attn_causal causal, int64_t len_q,
                                   int64_t len_k, int64_t k_length);

/* ---------------------------------------------------------------- stages */

/* s after `stage`, at every pair, hidden ones too:
 *   RAW         scale <q_i, k_j>
 *   SOFTCAPPED  softcap tanh(s / softcap), if softcap > 0
 *   BIASED      s + bias_ij - slope_h |i + q_offset - j|
 * (PROBS means BIASED here.) */
ATTN_API void attn_ref_scores(const attn_ref_problem *problem, attn_stage stage,
                              const attn_ref_real *q, const attn_ref_real *k,
                              attn_ref_real *s);

/* The gradients by ds, that of s after BIASED, summed over visible pairs. Any
 * of the four may be NULL. dbias and dslopes have the strides of bias and
 * alibi_slopes and are summed over broadcast axes. */
ATTN_API void
attn_ref_scores_backward(const attn_ref_problem *problem,
                         const attn_ref_real *q, const attn_ref_real *k,
                         const unsigned char *visible, const attn_ref_real *ds,
                         attn_ref_real *dq, attn_ref_real *dk,
                         attn_ref_real *dbias, attn_ref_real *dslopes);

/* Which pairs the geometry, the mask and a bias of -inf leave. */
ATTN_API void attn_ref_visible(const attn_ref_problem *problem,
                               unsigned char *visible);

/* First clears `visible` where s is -inf. Then, over visible j,
 *   p_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(sink_h)),  lse = ln of that sum
 * and p = 0 at hidden pairs. An empty row (nothing visible, no sink) has p = 0
 * and lse = -inf, or NaN both under ATTN_EMPTY_NAN. */
ATTN_API void attn_ref_softmax(const attn_ref_problem *problem,
                               const attn_ref_real *s, unsigned char *visible,
                               attn_ref_real *p, attn_ref_real *lse);

/* ds_ij = p_ij (dp_ij - sum_j p_ij dp_ij + dlse_i); likewise dsinks, whose dp
 * is 0, summed over batch and rows. dlse and dsinks may be NULL. */
ATTN_API void attn_ref_softmax_backward(
    const attn_ref_problem *problem, const unsigned char *visible,
    const attn_ref_real *p, const attn_ref_real *lse, const attn_ref_real *dp,
    const attn_ref_real *dlse, attn_ref_real *ds, attn_ref_real *dsinks);

/* entropy_i = - sum_j p_ij ln p_ij over visible keys. */
ATTN_API void attn_ref_entropy(const attn_ref_problem *problem,
                               const unsigned char *visible,
                               const attn_ref_real *p, attn_ref_real *entropy);

/* o_i = sum_j p_ij dropout_ij v_j over visible keys. */
ATTN_API void attn_ref_output(const attn_ref_problem *problem,
                              const unsigned char *visible,
                              const attn_ref_real *p, const attn_ref_real *v,
                              attn_ref_real *o);

/* dp_ij = dropout_ij <d_o_i, v_j>, 0 where hidden;
 * dv_j = sum_i p_ij dropout_ij d_o_i. Either may be NULL. */
ATTN_API void attn_ref_output_backward(const attn_ref_problem *problem,
                                       const unsigned char *visible,
                                       const attn_ref_real *p,
                                       const attn_ref_real *v,
                                       const attn_ref_real *d_o,
                                       attn_ref_real *dp, attn_ref_real *dv);

/* factors (batch, heads, len_q, len_k): 0, or 1 / (1 - p_drop) where the mask
 * of attn_dropout_mask keeps. `batch_start` is the number of the first batch
 * (of the sequence, under varlen); `start` (i, j) may be NULL. */
ATTN_API void attn_ref_dropout(int64_t batch, int64_t heads, int64_t len_q,
                               int64_t len_k, double p_drop, uint64_t seed,
                               uint32_t offset, int64_t batch_start,
                               const int64_t *start, attn_ref_real *factors);

/* -------------------------------------------------------- all in one call */

/* The stages to compose: attn_ref_stages_init gives those above; replace one
 * to see what a wrong one does. */
typedef struct attn_ref_stages {
    void (*scores)(const attn_ref_problem *, attn_stage, const attn_ref_real *,
                   const attn_ref_real *, attn_ref_real *);
    void (*visible)(const attn_ref_problem *, unsigned char *);
    void (*softmax)(const attn_ref_problem *, const attn_ref_real *,
                    unsigned char *, attn_ref_real *, attn_ref_real *);
    void (*output)(const attn_ref_problem *, const unsigned char *,
                   const attn_ref_real *, const attn_ref_real *,
                   attn_ref_real *);
    void (*output_backward)(const attn_ref_problem *, const unsigned char *,
                            const attn_ref_real *, const attn_ref_real *,
                            const attn_ref_real *, attn_ref_real *,
                            attn_ref_real *);
    void (*softmax_backward)(const attn_ref_problem *, const unsigned char *,
                             const attn_ref_real *, const attn_ref_real *,
                             const attn_ref_real *, const attn_ref_real *,
                             attn_ref_real *, attn_ref_real *);
    void (*scores_backward)(const attn_ref_problem *, const attn_ref_real *,
                            const attn_ref_real *, const unsigned char *,
                            const attn_ref_real *, attn_ref_real *,
                            attn_ref_real *, attn_ref_real *, attn_ref_real *);
} attn_ref_stages;

ATTN_API void attn_ref_stages_init(attn_ref_stages *stages);

/* Wanted results; NULL = not wanted. `biased` is -inf at hidden pairs, as
 * attn_weights gives it, `raw` and `softcapped` are not. */
typedef struct attn_ref_results {
    attn_ref_real *o, *lse, *entropy, *weights;
    attn_ref_real *raw, *softcapped, *biased;
    unsigned char *visible;
} attn_ref_results;

typedef struct attn_ref_gradients {
    attn_ref_real *dq, *dk, *dv, *dbias, *dsinks, *dslopes;
} attn_ref_gradients;

/* The whole computation. `stages` may be NULL: the right ones. v may be NULL
 * if o is not wanted. E_NOMEM or E_OVERFLOW: nothing was written. */
ATTN_API attn_status attn_ref_forward(const attn_ref_stages *stages,
                                      const attn_ref_problem *problem,
                                      const attn_ref_real *q,
                                      const attn_ref_real *k,
                                      const attn_ref_real *v,
                                      const attn_ref_results *results);

/* The gradients of sum(o d_o) + sum(lse dlse); dlse may be NULL. Also
 * E_UNSUPPORTED under ATTN_EMPTY_NAN. */
ATTN_API attn_status attn_ref_backward(
    const attn_ref_stages *stages, const attn_ref_problem *problem,
    const attn_ref_real *q, const attn_ref_real *k, const attn_ref_real *v,
    const attn_ref_real *d_o, const attn_ref_real *dlse,
    const attn_ref_gradients *gradients);

/* Packed sequences: problem->batch of them, sequence n being rows
 * cu_seqlens_q[n] to cu_seqlens_q[n + 1] of q and likewise of k; q_offset and
 * slopes have one entry a sequence, len_q and len_k are the totals, batch is 1
 * in the shapes above. s-shaped arrays (dropout, weights, ...) hold the blocks
 * (heads_q, len_q, len_k) of the sequences one after another. k_lengths, mask
 * or bias: E_UNSUPPORTED. */
ATTN_API attn_status attn_ref_varlen_forward(
    const attn_ref_stages *stages, const attn_ref_problem *problem,
    const int64_t *cu_seqlens_q, const int64_t *cu_seqlens_k,
    const attn_ref_real *q, const attn_ref_real *k, const attn_ref_real *v,
    const attn_ref_results *results);
ATTN_API attn_status attn_ref_varlen_backward(
    const attn_ref_stages *stages, const attn_ref_problem *problem,
    const int64_t *cu_seqlens_q, const int64_t *cu_seqlens_k,
    const attn_ref_real *q, const attn_ref_real *k, const attn_ref_real *v,
    const attn_ref_real *d_o, const attn_ref_real *dlse,
    const attn_ref_gradients *gradients);

/* ------------------------------------------------------------------ rope */

/* inv_freq (rotary_dim / 2) of x's last axis `dim`, for positions below
 * seq_len (desc->seq_len, if given, goes before), and the factor on cos and
 * sin. E_ARG if the scaling lacks a number that it needs. */
ATTN_API attn_status attn_ref_rope_frequencies(const attn_rope_desc *desc,
                                               int64_t dim, int64_t seq_len,
                                               attn_ref_real *inv_freq,
                                               attn_ref_real *attention_factor);

/* cos, sin (n, half): attention_factor times those of
 * positions[i] inv_freq[m]. */
ATTN_API void attn_ref_rope_angles(int64_t n, const int64_t *positions,
                                   int64_t half, const attn_ref_real *inv_freq,
                                   attn_ref_real attention_factor,
                                   attn_ref_real *cosines,
                                   attn_ref_real *sines);

/* y = rope(x), both (batch, heads, len, dim); cos, sin (batch, len, half), the
 * first 2 half components turn. y may be x. `_backward` applies the
 * transpose: dy to dx. */
ATTN_API void attn_ref_rope(int64_t batch, int64_t heads, int64_t len,
                            int64_t dim, int64_t half, int32_t interleaved,
                            const attn_ref_real *cosines,
                            const attn_ref_real *sines, const attn_ref_real *x,
                            attn_ref_real *y);
ATTN_API void
attn_ref_rope_backward(int64_t batch, int64_t heads, int64_t len, int64_t dim,
                       int64_t half, int32_t interleaved,
                       const attn_ref_real *cosines, const attn_ref_real *sines,
                       const attn_ref_real *dy, attn_ref_real *dx);

#ifdef __cplusplus
}
#endif

#endif
