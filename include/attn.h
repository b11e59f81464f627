/* SPDX-License-Identifier: Apache-2.0
 *
 * attn.h: exact attention on CPUs, forward, backward and decode.
 *
 * Per batch b, query head h (KV head g = h div (heads_q / heads_kv)), query i
 * at position p = i + q_offset on the key axis, and key j:
 *
 *   s_ij = scale * <q_i, k_j>
 *   s_ij = softcap * tanh(s_ij / softcap)              if softcap > 0
 *   s_ij = s_ij + bias_ij - slope_h * |p - j|
 *   hidden unless mask, causal, window, j < k_length and sequence all agree
 *   p_ij = exp(s_ij - lse_i),  lse_i = ln(sum_j exp(s_ij) [+ exp(sink_h)])
 *   o_i  = sum_j dropout(p_ij) v_j
 *
 * docs/architecture.md is the tour of one call, docs/numerics.md has the error
 * bounds, docs/errors.md the statuses. All sizes are int64_t, all strides are
 * in elements and may be negative or zero (zero for inputs only).
 *
 * Quick start: causal attention of 8 heads over 1024 tokens.
 *
 *     attn_desc desc;
 *     attn_desc_init(&desc, ATTN_F32, 1, 8, 8, 1024, 1024, 64, 64);
 *     desc.causal = ATTN_CAUSAL_TOP_LEFT;
 *
 *     attn_args args;
 *     attn_args_init(&args);
 *     args.q    = attn_in_bhsd(q, ATTN_F32, 1, 8, 1024, 64);
 *     args.kv.k = attn_in_bhsd(k, ATTN_F32, 1, 8, 1024, 64);
 *     args.kv.v = attn_in_bhsd(v, ATTN_F32, 1, 8, 1024, 64);
 *     args.o    = attn_bhsd(o, ATTN_F32, 1, 8, 1024, 64);
 *
 *     attn_diag diag;
 *     if (attn_attention(&desc, &args, 2, &diag) != ATTN_OK)
 *         fprintf(stderr, "%s: %s\n", diag.field, diag.message);
 *
 * Programs that call often plan once and bring their own memory:
 *
 *     attn_plan plan;            attn_plan_init(&plan, &desc, &diag);
 *     attn_workspace need;       attn_plan_workspace(&plan, ATTN_FORWARD, 2,
 *                                                    &need, &diag);
 *     attn_pool *pool = attn_pool_create(2);
 *     attn_exec exec;            attn_exec_init(&exec);
 *     exec.workspace = memory;   exec.workspace_size = need.size;
 *     exec.threads = 2;          exec.parallel_for = attn_pool_parallel_for;
 *     exec.ctx = pool;
 *     attn_forward(&plan, &args, &exec, &diag);
 *
 * Errors: every function that can fail returns an attn_status and, where the
 * caller gives an attn_diag, says which field was wrong, its value and the
 * rule. On failure no output has been touched. Nothing here prints, exits,
 * aborts, or changes the floating-point environment. Since 0.1 throughout. */
#ifndef ATTN_H
#define ATTN_H

#include <stddef.h>
#include <stdint.h>

#define ATTN_VERSION_MAJOR 0
#define ATTN_VERSION_MINOR 1
#define ATTN_VERSION_PATCH 0

#if defined(__GNUC__)
#define ATTN_API __attribute__((visibility("default")))
#else
#define ATTN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- status */

/* Every status, once. The enum, attn_status_name() and the Python exceptions
 * are expanded from this list; docs/errors.md explains each. */
#define ATTN_STATUS_MAP(X)                                              \
    X(OK, 0, "success")                                                 \
    X(E_ARG, 1, "an argument has a value that its rule forbids")        \
    X(E_SHAPE, 2, "a dimension or stride is impossible")                \
    X(E_DTYPE, 3, "an element type is wrong here")                      \
    X(E_UNSUPPORTED, 4, "valid, but not supported")                     \
    X(E_NOMEM, 5, "an allocation failed")                               \
    X(E_WORKSPACE, 6, "the workspace is missing or too small")          \
    X(E_OVERFLOW, 7, "a size does not fit its type")                    \
    X(E_FORMAT, 8, "the bytes do not follow their format")              \
    X(E_TRUNCATED, 9, "the data end early")                             \
    X(E_LIMIT, 10, "a documented limit is exceeded")                    \
    X(E_DUPLICATE, 11, "a name occurs twice")                           \
    X(E_MISMATCH, 12, "two things that must agree do not")              \
    X(E_IO, 13, "the operating system reports an error")

typedef enum attn_status {
#define ATTN_STATUS_ENUM(name, value, text) ATTN_##name = value,
    ATTN_STATUS_MAP(ATTN_STATUS_ENUM)
#undef ATTN_STATUS_ENUM
} attn_status;

/* "E_SHAPE" and the like; "unknown" for a number that is no status. */
ATTN_API const char *attn_status_name(attn_status status);
/* The one-line meaning of a status, from the list above. */
ATTN_API const char *attn_status_text(attn_status status);
/* (major << 16) | (minor << 8) | patch of the library that is running. */
ATTN_API uint32_t attn_version(void);

/* What went wrong, in words. Any pointer to one may be NULL. */
typedef struct attn_diag {
    attn_status status;
    char field[32];    /* the argument's name, as this header spells it */
    char message[160]; /* one sentence: the value, and the rule */
} attn_diag;

/* --------------------------------------------------------------- tensors */

typedef enum attn_dtype {
    ATTN_NONE = 0, /* an absent tensor */
    ATTN_F64 = 1,
    ATTN_F32 = 2,
    ATTN_BF16 = 3,
    ATTN_F16 = 4,
    ATTN_BOOL = 5, /* one byte, 0 or 1 */
    ATTN_I32 = 6,
    ATTN_I64 = 7
} attn_dtype;

/* Bytes of an element; 0 for ATTN_NONE and unknown values. */
ATTN_API size_t attn_dtype_size(attn_dtype dtype);
/* "f64", "f32", "bf16", "f16", "bool", "i32", "i64", "none". */
ATTN_API const char *attn_dtype_name(attn_dtype dtype);

/* A view of memory that somebody else owns, to write to. Element
 * (i0, i1, ...) lies at data + (i0 * stride[0] + i1 * stride[1] + ...)
 * elements. A struct of zeros is an absent tensor. Elements need not be
 * aligned beyond their own size. */
typedef struct attn_tensor {
    void *data;
    attn_dtype dtype;
    int32_t rank; /* 0 to 4 */
    int64_t shape[4], stride[4];
} attn_tensor;

/* The same, to read only. Strides may be 0: the axis repeats one element. */
typedef struct attn_input {
    const void *data;
    attn_dtype dtype;
    int32_t rank;
    int64_t shape[4], stride[4];
} attn_input;

/* Views of contiguous memory. `bhsd` is (batch, heads, len, dim); `bshd` is
 * memory of order (batch, len, heads, dim) seen as (batch, heads, len, dim);
 * `thd` is (total, heads, dim), for packed sequences. `dense` is row-major
 * with the given shape, rank 0 to 4. */
ATTN_API attn_tensor attn_bhsd(void *data, attn_dtype dtype, int64_t batch,
                               int64_t heads, int64_t len, int64_t dim);
ATTN_API attn_tensor attn_bshd(void *data, attn_dtype dtype, int64_t batch,
                               int64_t heads, int64_t len, int64_t dim);
ATTN_API attn_tensor attn_thd(void *data, attn_dtype dtype, int64_t total,
                              int64_t heads, int64_t dim);
ATTN_API attn_tensor attn_dense(void *data, attn_dtype dtype, int32_t rank,
                                const int64_t *shape);
ATTN_API attn_input attn_in_bhsd(const void *data, attn_dtype dtype,
                                 int64_t batch, int64_t heads, int64_t len,
                                 int64_t dim);
ATTN_API attn_input attn_in_bshd(const void *data, attn_dtype dtype,
                                 int64_t batch, int64_t heads, int64_t len,
                                 int64_t dim);
ATTN_API attn_input attn_in_thd(const void *data, attn_dtype dtype,
                                int64_t total, int64_t heads, int64_t dim);
ATTN_API attn_input attn_in_dense(const void *data, attn_dtype dtype,
                                  int32_t rank, const int64_t *shape);
/* Reads what `tensor` writes. */
ATTN_API attn_input attn_in(attn_tensor tensor);

/* ------------------------------------------------------------ descriptor */

typedef enum attn_causal {
    ATTN_CAUSAL_NONE = 0,
    ATTN_CAUSAL_TOP_LEFT = 1,    /* j <= i */
    ATTN_CAUSAL_BOTTOM_RIGHT = 2 /* j <= i + (k_length or len_k) - len_q */
} attn_causal;

typedef enum attn_empty_rows {
    ATTN_EMPTY_ZERO = 0, /* o = 0, weights 0, entropy 0, lse = -inf */
    ATTN_EMPTY_NAN = 1   /* all four NaN; forward only */
} attn_empty_rows;

typedef enum attn_precision {
    ATTN_PRECISION_STANDARD = 0, /* P may be held in a 16-bit input's type */
    ATTN_PRECISION_HIGH = 1      /* P keeps fp32 accuracy */
} attn_precision;

/* Clusters of CPU features, in rising order. */
typedef enum attn_isa {
    ATTN_ISA_BEST = 0, /* as a limit: no limit */
    ATTN_ISA_SCALAR = 1,
    ATTN_ISA_AVX2 = 2,   /* with FMA and F16C */
    ATTN_ISA_AVX512 = 3, /* F, BW, DQ, VL */
    ATTN_ISA_AMX = 4     /* bf16 tiles */
} attn_isa;

/* The optional inputs that a run will bring: bits of attn_desc.inputs.
 * Bringing another set is E_MISMATCH. */
#define ATTN_WITH_MASK UINT32_C(0x001)
#define ATTN_WITH_BIAS UINT32_C(0x002)
#define ATTN_WITH_ALIBI UINT32_C(0x004)
#define ATTN_WITH_SINKS UINT32_C(0x008)
#define ATTN_WITH_K_LENGTHS UINT32_C(0x010)
#define ATTN_WITH_Q_OFFSET UINT32_C(0x020)
#define ATTN_WITH_VARLEN UINT32_C(0x040) /* cu_seqlens_q; and cu_seqlens_k,
                                            or pages with k_lengths */
#define ATTN_WITH_PAGES UINT32_C(0x080)  /* needs K_LENGTHS */

/* What is fixed between calls. No pointers, no strides. Fill it with
 * attn_desc_init, then change fields. */
typedef struct attn_desc {
    uint32_t size; /* sizeof(attn_desc), set by attn_desc_init */
    uint32_t inputs;
    attn_dtype dtype;    /* q, o, and the gradients */
    attn_dtype kv_dtype; /* k and v; must equal dtype today */
    attn_causal causal;
    attn_empty_rows empty_rows;
    attn_precision precision;
    attn_isa isa_limit;
    int64_t batch;                 /* with varlen: the number of sequences */
    int64_t heads_q, heads_kv;     /* heads_kv divides heads_q */
    int64_t len_q, len_k;          /* len_k is a capacity: a run may give less;
                                      with varlen both bound one sequence */
    int64_t dim_qk, dim_v;
    int64_t total_q;               /* varlen: rows of q; 0 = batch * len_q */
    int64_t window_left, window_right; /* p - left <= j <= p + right; -1 =
                                          unbounded */
    double scale;                  /* any but NaN; default 1/sqrt(dim_qk) */
    double softcap;                /* 0 = off */
    double dropout_p;              /* 0 = off, 1 = everything dropped */
} attn_desc;

/* Fill every field: scale = 1/sqrt(dim_qk) (1 if dim_qk = 0), no mask of any
 * kind, dropout off. Checks nothing: attn_plan_init does. */
ATTN_API void attn_desc_init(attn_desc *desc, attn_dtype dtype, int64_t batch,
                             int64_t heads_q, int64_t heads_kv, int64_t len_q,
                             int64_t len_k, int64_t dim_qk, int64_t dim_v);

/* ------------------------------------------------------------------ plan */

/* Plain bytes: copy it, share it between threads, keep it on the stack.
 * Immutable after attn_plan_init. */
typedef struct attn_plan {
    uint64_t bytes[96];
} attn_plan;

typedef enum attn_pass {
    ATTN_FORWARD = 0, /* o, lse, and weights or entropy if asked for */
    ATTN_BACKWARD = 1,
    ATTN_WEIGHTS = 2 /* attn_weights */
} attn_pass;

typedef struct attn_workspace {
    size_t size;      /* shared + threads * slot */
    size_t alignment; /* of the whole */
    size_t shared, slot;
} attn_workspace;

/* Validate `desc` and choose kernels. No allocation; cheap enough to call
 * before every run.
 *
 *   plan   caller's storage; on failure it is as it was
 *   diag   may be NULL; on failure names the offending field
 *
 * Returns OK, E_ARG, E_SHAPE, E_DTYPE, E_UNSUPPORTED, E_OVERFLOW or
 * E_MISMATCH. Thread-safe. */
ATTN_API attn_status attn_plan_init(attn_plan *plan, const attn_desc *desc,
                                    attn_diag *diag);

/* The workspace that one run of `pass` on `threads` (1 to 1024) threads
 * needs, enough for any len_k up to the capacity and any strides. A run with
 * less is E_WORKSPACE. Returns OK, E_ARG or E_OVERFLOW. */
ATTN_API attn_status attn_plan_workspace(const attn_plan *plan, attn_pass pass,
                                         int64_t threads,
                                         attn_workspace *workspace,
                                         attn_diag *diag);

/* Write every hidden choice (kernel, ISA and why, tiles, workspace) into
 * text[size], always terminated if size > 0. Returns the length without the
 * terminator that the whole text has, as snprintf does. */
ATTN_API size_t attn_plan_describe(const attn_plan *plan, char *text,
                                   size_t size);

/* ------------------------------------------------------------------ args */

/* K and V, as a view. Without block_table: k (batch, heads_kv, len_k, dim_qk)
 * and v (batch, heads_kv, len_k, dim_v), with k_lengths (batch) int32 or int64
 * if keys at and beyond a length are hidden. With block_table (batch, n)
 * int32: k and v are (pages, heads_kv, page_size, dim), key j of batch b lies
 * in page block_table[b, j div page_size], and k_lengths is required. With
 * varlen and no pages: k (total_k, heads_kv, dim_qk), v likewise. */
typedef struct attn_kv {
    attn_input k, v, k_lengths, block_table;
} attn_kv;

/* What changes from call to call. Absent tensors are zeros: start from
 * attn_args_init. One args serves a forward and then its backward: o and lse
 * are written by the first and read by the second.
 *
 *   q             (batch, heads_q, len_q, dim_qk); varlen (total, heads_q, dim)
 *   mask          bool, true = attend; broadcast from the right to (batch,
 *                 heads_q, len_q, len_k); a broadcast axis has shape 1
 *   bias          f64, f32 or q's type; same broadcasting; -inf hides
 *   alibi_slopes  (heads_q) or (batch, heads_q); f64, f32 or q's type
 *   sinks         (heads_q); f64, f32 or q's type
 *   q_offset      (batch) int64 or int32; absent: 0 for top_left, 0 for no
 *                 causal where len_q = len_k, else (k_length or len_k) - len_q
 *   cu_seqlens_*  (batch + 1) int32 or int64
 *   d_o, dlse     gradients of the loss by o and (optional) lse
 *   seed, offset, dropout_start   the dropout mask: see attn_dropout_mask
 *   o             as q with dim_v;  lse, entropy (batch, heads_q, len_q), with
 *                 varlen (heads_q, total); f64 or f32
 *   weights       (batch, heads_q, len_q, len_k), f64, f32 or q's type
 *   dq dk dv      as q, k, v; dbias as bias; dsinks as sinks; dslopes as
 *                 alibi_slopes, f64 or f32 */
typedef struct attn_args {
    uint32_t size;   /* sizeof(attn_args), set by attn_args_init */
    uint32_t offset; /* of the dropout counter */
    uint64_t seed;
    int64_t dropout_start[2]; /* added to i and j in the dropout counter */
    attn_input q;
    attn_kv kv;
    attn_input mask, bias, alibi_slopes, sinks, q_offset;
    attn_input cu_seqlens_q, cu_seqlens_k;
    attn_input d_o, dlse;
    attn_tensor o, lse;
    attn_tensor weights, entropy;
    attn_tensor dq, dk, dv, dbias, dsinks, dslopes;
} attn_args;

/* All absent, seed 0, offset 0. */
ATTN_API void attn_args_init(attn_args *args);

/* ------------------------------------------------------------------ exec */

/* One piece of a parallel_for: do task `index`, 0 <= index < n. */
typedef void attn_task(void *arg, int64_t index);

/* How to run. `parallel_for` must have run task(arg, 0..n-1), each once, in
 * any order and on any threads, when it returns; NULL runs on the calling
 * thread. Tasks never wait for each other. */
typedef struct attn_exec {
    uint32_t size; /* sizeof(attn_exec), set by attn_exec_init */
    void *workspace;
    size_t workspace_size;
    int64_t threads; /* 1 to 1024: at most so many tasks at a time */
    void (*parallel_for)(void *ctx, int64_t n, attn_task *task, void *arg);
    void *ctx;
} attn_exec;

/* No workspace, one thread, no parallel_for. */
ATTN_API void attn_exec_init(attn_exec *exec);

/* A set of n - 1 threads that, with the caller, run tasks. The caller owns
 * it. Where a thread can't be had, the others do its work. NULL if n < 1,
 * n > 1024 or memory is short. One parallel_for at a time per pool; a nested
 * or concurrent one runs on its own caller's thread. */
typedef struct attn_pool attn_pool;
ATTN_API attn_pool *attn_pool_create(int64_t n);
ATTN_API void attn_pool_destroy(attn_pool *pool);
/* For attn_exec.parallel_for, with the pool as ctx. */
ATTN_API void attn_pool_parallel_for(void *pool, int64_t n, attn_task *task,
                                     void *arg);

/* ------------------------------------------------------------------- run */

/* o, and if given lse, weights and entropy, of args.
 * Returns OK or any status of a bad argument; on failure nothing was written.
 * The bits of a row depend on its own q, the keys it sees, len_q, the dims,
 * dtype, features and ISA: never on threads, strides, layout, other rows,
 * other heads, or what hidden keys hold. Thread-safe. */
ATTN_API attn_status attn_forward(const attn_plan *plan, const attn_args *args,
                                  const attn_exec *exec, attn_diag *diag);

/* Those of dq, dk, dv, dbias, dsinks, dslopes that are given, from d_o, o,
 * lse (best as f64) and optionally dlse. Same promises. */
ATTN_API attn_status attn_backward(const attn_plan *plan,
                                   const attn_args *args,
                                   const attn_exec *exec, attn_diag *diag);

/* ONNX's four stages. */
typedef enum attn_stage {
    ATTN_STAGE_RAW = 0,        /* scale * <q, k>, at every pair */
    ATTN_STAGE_SOFTCAPPED = 1, /* at every pair */
    ATTN_STAGE_BIASED = 2,     /* with bias and ALiBi; -inf where hidden */
    ATTN_STAGE_PROBS = 3       /* 0 where hidden */
} attn_stage;

/* Which rows attn_weights writes; NULL pointers mean all, in order. */
typedef struct attn_rows {
    const int64_t *heads, *rows;
    int64_t n_heads, n_rows; /* ignored where the pointer is NULL */
} attn_rows;

/* Scores or weights of chosen rows: out (batch, n_heads, n_rows, len_k), f64,
 * f32 or q's type. Reads q, kv and what shapes the scores; v may be absent.
 * `rows` may be NULL: all of them. Varlen is E_UNSUPPORTED. */
ATTN_API attn_status attn_weights(const attn_plan *plan, const attn_args *args,
                                  attn_stage stage, const attn_rows *rows,
                                  attn_tensor out, const attn_exec *exec,
                                  attn_diag *diag);

/* Plan and forward in one call, on up to `threads` threads. Allocates a
 * workspace and a pool, and frees them. Adds E_NOMEM. */
ATTN_API attn_status attn_attention(const attn_desc *desc,
                                    const attn_args *args, int64_t threads,
                                    attn_diag *diag);
/* The same for backward. */
ATTN_API attn_status attn_attention_backward(const attn_desc *desc,
                                             const attn_args *args,
                                             int64_t threads, attn_diag *diag);

/* Attention over the union of two disjoint sets of keys, from the results
 * over each: lse = ln(e^lse1 + e^lse2), o = e^(lse1-lse) o1 + e^(lse2-lse) o2.
 * o* (batch, heads, len, dim) of one type, lse* (batch, heads, len) f64 or
 * f32. Two empty parts give an empty one. The outputs may be the inputs. */
ATTN_API attn_status attn_merge(attn_input o1, attn_input lse1, attn_input o2,
                                attn_input lse2, attn_tensor o,
                                attn_tensor lse, attn_diag *diag);

/* Write `rows` (batch, heads_kv, n, dim) into a cache behind the lengths[b]
 * (int32 or int64) keys that it holds: cache (batch, heads_kv, capacity, dim),
 * or with block_table (batch, n_pages) int32 the pages (pages, heads_kv,
 * page_size, dim). Call it once for K and once for V, then advance the
 * lengths yourself. */
ATTN_API attn_status attn_kv_append(attn_tensor cache, attn_input rows,
                                    attn_input lengths, attn_input block_table,
                                    attn_diag *diag);

/* The dropout mask as an array: out (batch, heads, len_q, len_k) bool, true =
 * kept. Philox4x32-10, key = seed (low, high word), counter = (j div 4, i,
 * b * heads + h, offset), word j mod 4; kept if word >= floor(p * 2^32).
 * `start` (i, j) is added to the indices; NULL = (0, 0). */
ATTN_API attn_status attn_dropout_mask(attn_tensor out, double p,
                                       uint64_t seed, uint32_t offset,
                                       const int64_t *start, attn_diag *diag);

/* -------------------------------------------------------------- matrices */

/* c = a b + d: the projections of a layer, and their gradients.
 *
 *   a   (m, k) or (batch, m, k)
 *   b   (k, n) or (batch, k, n), of a's type
 *   d   optional; broadcast from the right to c; f64, f32 or a's type
 *   c   (batch, m, n); or (m, n), then summed over batch if there is one;
 *       f64, f32 or a's type
 *
 * Strides are free: a transposed matrix is a view with its strides exchanged.
 * Sums are f64 for f64 and else f32, rounded once to c. Each element is one
 * sum over batch and k in blocks of 64: its bits depend on its own operands
 * and the ISA, never on threads, strides or the other rows and columns. c may
 * be d, but may share memory with nothing else. (A build with -Dblas leaves
 * f64 and f32 products to that library, and then the bits too.) */
typedef struct attn_gemm_args {
    uint32_t size; /* sizeof(attn_gemm_args), set by attn_gemm_init */
    attn_isa isa_limit;
    attn_input a, b, d;
    attn_tensor c;
} attn_gemm_args;

/* All absent, no limit. */
ATTN_API void attn_gemm_init(attn_gemm_args *args);
/* The workspace that products of `dtype` on `threads` threads need, whatever
 * their shapes. Returns OK, E_ARG or E_DTYPE. */
ATTN_API attn_status attn_gemm_workspace(attn_dtype dtype, int64_t threads,
                                         attn_workspace *workspace,
                                         attn_diag *diag);
/* Promises as attn_forward: nothing is written on failure, no allocation. */
ATTN_API attn_status attn_gemm(const attn_gemm_args *args,
                               const attn_exec *exec, attn_diag *diag);

/* ------------------------------------------------------------------ RoPE */

typedef enum attn_rope_scaling {
    ATTN_ROPE_PLAIN = 0,
    ATTN_ROPE_LINEAR = 1,
    ATTN_ROPE_DYNAMIC = 2,
    ATTN_ROPE_NTK = 3,
    ATTN_ROPE_YARN = 4,
    ATTN_ROPE_LONGROPE = 5,
    ATTN_ROPE_LLAMA3 = 6
} attn_rope_scaling;

/* Rotary embedding; the scaling fields have the meaning of the Hugging Face
 * keys of the same name, and 0 or NULL means not given. */
typedef struct attn_rope_desc {
    uint32_t size;       /* sizeof(attn_rope_desc), set by attn_rope_init */
    int32_t interleaved; /* pairs (2m, 2m+1), else (m, m + rotary_dim/2) */
    attn_rope_scaling scaling;
    int32_t no_truncate;  /* yarn: 1 = keep the fractional range */
    int64_t rotary_dim;   /* even, <= dim; 0 = dim */
    int64_t original_max_position, max_position;
    int64_t seq_len;      /* dynamic, longrope; 0 = largest position + 1 */
    double base, factor;
    double attention_factor, beta_fast, beta_slow, mscale, mscale_all_dim;
    double low_freq_factor, high_freq_factor;
    const double *short_factor, *long_factor; /* rotary_dim / 2 each */
    int64_t n_factors;                        /* entries in each of the two */
} attn_rope_desc;

/* base 10000, half-split pairs, all of dim, no scaling. */
ATTN_API void attn_rope_init(attn_rope_desc *desc);

/* y = rope(x): x and y (batch, heads, len, dim), or without batch, or without
 * batch and heads; positions (len) or (batch, len), int32 or int64. Angles in
 * fp64. y may be x. attn_rope_backward applies the transpose: dx from dy. */
ATTN_API attn_status attn_rope(const attn_rope_desc *desc, attn_input x,
                               attn_input positions, attn_tensor y,
                               attn_diag *diag);
ATTN_API attn_status attn_rope_backward(const attn_rope_desc *desc,
                                        attn_input dy, attn_input positions,
                                        attn_tensor dx, attn_diag *diag);

/* The rotary_dim / 2 inverse frequencies and the factor on cos and sin, for
 * sequences up to seq_len (positions < seq_len). */
ATTN_API attn_status attn_rope_frequencies(const attn_rope_desc *desc,
                                           int64_t dim, int64_t seq_len,
                                           double *inv_freq,
                                           double *attention_factor,
                                           attn_diag *diag);

/* --------------------------------------------------------------- machine */

/* The best level of this CPU, not above ATTN_ISA=scalar|avx2|avx512|amx in
 * the environment, which is read once. */
ATTN_API attn_isa attn_cpu_isa(void);
/* "scalar", "avx2", "avx512", "amx", "best". */
ATTN_API const char *attn_isa_name(attn_isa isa);
/* The processor's model name and features in one line, as snprintf. */
ATTN_API size_t attn_cpu_describe(char *text, size_t size);
/* A table of every kernel with its pass, type, level and whether this CPU
 * runs it, one a line, as snprintf. */
ATTN_API size_t attn_kernels_describe(char *text, size_t size);

/* ---------------------------------------------------------------- memory */

/* Replace malloc, realloc and free for all that the library allocates (only
 * the one-call functions, pools and file readers do). `realloc_fn` must
 * accept NULL. NULL for all three restores the C library's. Call it before
 * any other function, from one thread. */
ATTN_API void attn_set_allocator(void *(*realloc_fn)(void *ptr, size_t size),
                                 void (*free_fn)(void *ptr));
/* What that chose, for memory that a library function will free, such as the
 * data of an attn_array. 0 bytes give a pointer too; NULL may be freed. */
ATTN_API void *attn_realloc(void *ptr, size_t size);
ATTN_API void attn_free(void *ptr);

#ifdef __cplusplus
}
#endif

#endif
