/* SPDX-License-Identifier: Apache-2.0
 *
 * One scene for each public function of attn.h: a small call that succeeds
 * where nothing fails. Results go to `out`, one after another. */
#include "faults.h"

#include <stdio.h>
#include <string.h>

enum {
    BATCH = 2,
    HEADS = 4,
    HEADS_KV = 2,
    LEN_Q = 5,
    LEN_K = 6,
    DIM = 8,
    DIM_V = 4
};

static float q[BATCH * HEADS * LEN_Q * DIM];
static float k[BATCH * HEADS_KV * LEN_K * DIM];
static float v[BATCH * HEADS_KV * LEN_K * DIM_V];
static float d_o[BATCH * HEADS * LEN_Q * DIM_V];
static float bias[HEADS * LEN_Q * LEN_K], sinks[HEADS], slopes[HEADS];
static float o[BATCH * HEADS * LEN_Q * DIM_V];
static double lse[BATCH * HEADS * LEN_Q];

static const int64_t bias_shape[] = {HEADS, LEN_Q, LEN_K};
static const int64_t heads_shape[] = {HEADS};
static const int64_t row_shape[] = {BATCH, HEADS, LEN_Q};
static const int64_t weights_shape[] = {BATCH, HEADS, LEN_Q, LEN_K};

static void fill(float *values, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)seed * 0x1p-31f;
    }
}

#define FILL(array, seed) fill(array, sizeof(array) / sizeof(float), seed)

/* Hands out pieces of a scene's result. */
typedef struct pieces {
    unsigned char *at;
} pieces;

static void *piece(pieces *p, size_t bytes)
{
    void *at = p->at;

    p->at += (bytes + 7) / 8 * 8;
    return at;
}

static attn_tensor float_piece(pieces *p, int32_t rank, const int64_t *shape)
{
    size_t n = 1;

    for (int32_t a = 0; a < rank; a++)
        n *= (size_t)shape[a];
    return attn_dense(piece(p, n * sizeof(float)), ATTN_F32, rank, shape);
}

static attn_desc make_desc(void)
{
    attn_desc desc;

    attn_desc_init(&desc, ATTN_F32, BATCH, HEADS, HEADS_KV, LEN_Q, LEN_K, DIM,
                   DIM_V);
    desc.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
    desc.inputs = ATTN_WITH_BIAS | ATTN_WITH_SINKS | ATTN_WITH_ALIBI;
    return desc;
}

static attn_args make_inputs(void)
{
    attn_args args;

    FILL(q, 1);
    FILL(k, 2);
    FILL(v, 3);
    FILL(d_o, 4);
    FILL(bias, 5);
    FILL(sinks, 6);
    FILL(slopes, 7);
    attn_args_init(&args);
    args.q = attn_in_bhsd(q, ATTN_F32, BATCH, HEADS, LEN_Q, DIM);
    args.kv.k = attn_in_bhsd(k, ATTN_F32, BATCH, HEADS_KV, LEN_K, DIM);
    args.kv.v = attn_in_bhsd(v, ATTN_F32, BATCH, HEADS_KV, LEN_K, DIM_V);
    args.bias = attn_in_dense(bias, ATTN_F32, 3, bias_shape);
    args.sinks = attn_in_dense(sinks, ATTN_F32, 1, heads_shape);
    args.alibi_slopes = attn_in_dense(slopes, ATTN_F32, 1, heads_shape);
    return args;
}

static attn_args make_forward(pieces *p)
{
    attn_args args = make_inputs();

    args.o = attn_bhsd(piece(p, sizeof o), ATTN_F32, BATCH, HEADS, LEN_Q,
                       DIM_V);
    args.lse = float_piece(p, 3, row_shape);
    args.weights = float_piece(p, 4, weights_shape);
    args.entropy = float_piece(p, 3, row_shape);
    return args;
}

/* d_o, o and lse; the last two from a forward that nothing disturbs, since
 * it runs on the caller's memory. */
static attn_status make_backward(pieces *p, attn_args *args);

static _Alignas(64) unsigned char memory[1 << 20];

static void serially(void *ctx, int64_t n, attn_task *task, void *arg)
{
    (void)ctx;
    for (int64_t i = n - 1; i >= 0; i--)
        task(arg, i);
}

static attn_exec make_exec(void)
{
    attn_exec exec;

    attn_exec_init(&exec);
    exec.workspace = memory;
    exec.workspace_size = sizeof memory;
    exec.threads = 3;
    exec.parallel_for = serially;
    return exec;
}

static attn_status make_plan(attn_plan *plan)
{
    const attn_desc desc = make_desc();

    return attn_plan_init(plan, &desc, NULL);
}

static attn_status make_backward(pieces *p, attn_args *args)
{
    const attn_exec exec = make_exec();
    attn_plan plan;
    attn_status status = make_plan(&plan);

    *args = make_inputs();
    args->o = attn_bhsd(o, ATTN_F32, BATCH, HEADS, LEN_Q, DIM_V);
    args->lse = attn_dense(lse, ATTN_F64, 3, row_shape);
    if (status == ATTN_OK)
        status = attn_forward(&plan, args, &exec, NULL);
    args->d_o = attn_in_bhsd(d_o, ATTN_F32, BATCH, HEADS, LEN_Q, DIM_V);
    args->dq = attn_bhsd(piece(p, sizeof q), ATTN_F32, BATCH, HEADS, LEN_Q,
                         DIM);
    args->dk = attn_bhsd(piece(p, sizeof k), ATTN_F32, BATCH, HEADS_KV, LEN_K,
                         DIM);
    args->dv = attn_bhsd(piece(p, sizeof v), ATTN_F32, BATCH, HEADS_KV, LEN_K,
                         DIM_V);
    args->dbias = float_piece(p, 3, bias_shape);
    args->dsinks = float_piece(p, 1, heads_shape);
    args->dslopes = float_piece(p, 1, heads_shape);
    return status;
}

/* A scene's body sees `p`, the rest of its result. */
#define SCENE(name)                                                           \
    static attn_status body_##name(pieces *p);                                \
    static attn_status scene_##name(unsigned char *out)                       \
    {                                                                         \
        pieces p = {out};                                                     \
        return body_##name(&p);                                               \
    }                                                                         \
    static attn_status body_##name(pieces *p)

static attn_status say(pieces *p, const char *text)
{
    memcpy(piece(p, strlen(text) + 1), text, strlen(text) + 1);
    return ATTN_OK;
}

static attn_status keep(pieces *p, const void *value, size_t size)
{
    memcpy(piece(p, size), value, size);
    return ATTN_OK;
}

SCENE(attn_status_name)
{
    return say(p, attn_status_name(ATTN_E_NOMEM));
}

SCENE(attn_status_text)
{
    return say(p, attn_status_text(ATTN_E_NOMEM));
}

SCENE(attn_version)
{
    const uint32_t version = attn_version();

    return keep(p, &version, sizeof version);
}

SCENE(attn_dtype_size)
{
    const size_t size = attn_dtype_size(ATTN_F16);

    return keep(p, &size, sizeof size);
}

SCENE(attn_dtype_name)
{
    return say(p, attn_dtype_name(ATTN_F16));
}

/* The eight views, by their shapes. */
#define VIEW_SCENE(name, view)                                                \
    SCENE(name)                                                               \
    {                                                                         \
        return keep(p, (view).shape, sizeof((view).shape));                   \
    }
VIEW_SCENE(attn_bhsd, attn_bhsd(o, ATTN_F32, 1, 2, 3, 4))
VIEW_SCENE(attn_bshd, attn_bshd(o, ATTN_F32, 1, 2, 3, 4))
VIEW_SCENE(attn_thd, attn_thd(o, ATTN_F32, 1, 2, 3))
VIEW_SCENE(attn_dense, attn_dense(o, ATTN_F32, 3, row_shape))
VIEW_SCENE(attn_in_bhsd, attn_in_bhsd(q, ATTN_F32, 1, 2, 3, 4))
VIEW_SCENE(attn_in_bshd, attn_in_bshd(q, ATTN_F32, 1, 2, 3, 4))
VIEW_SCENE(attn_in_thd, attn_in_thd(q, ATTN_F32, 1, 2, 3))
VIEW_SCENE(attn_in_dense, attn_in_dense(q, ATTN_F32, 3, row_shape))
VIEW_SCENE(attn_in, attn_in(attn_dense(o, ATTN_F32, 3, row_shape)))

SCENE(attn_desc_init)
{
    const attn_desc desc = make_desc();

    return keep(p, &desc.scale, sizeof desc.scale);
}

SCENE(attn_plan_init)
{
    const attn_desc desc = make_desc();

    return attn_plan_init(piece(p, sizeof(attn_plan)), &desc, NULL);
}

SCENE(attn_plan_workspace)
{
    attn_plan plan;
    attn_status status = make_plan(&plan);

    if (status != ATTN_OK)
        return status;
    return attn_plan_workspace(&plan, ATTN_BACKWARD, 3,
                               piece(p, sizeof(attn_workspace)), NULL);
}

SCENE(attn_plan_describe)
{
    attn_plan plan;
    const attn_status status = make_plan(&plan);

    attn_plan_describe(&plan, piece(p, 8192), 8192);
    return status;
}

SCENE(attn_args_init)
{
    attn_args args;

    attn_args_init(&args);
    return keep(p, &args.size, sizeof args.size);
}

SCENE(attn_exec_init)
{
    attn_exec exec;

    attn_exec_init(&exec);
    return keep(p, &exec.threads, sizeof exec.threads);
}

static void put_index(void *arg, int64_t index)
{
    ((int64_t *)arg)[index] = index;
}

static attn_status use_pool(pieces *p)
{
    attn_pool *pool = attn_pool_create(4);

    if (!pool)
        return ATTN_E_NOMEM;
    attn_pool_parallel_for(pool, 100, put_index,
                           piece(p, 100 * sizeof(int64_t)));
    attn_pool_destroy(pool);
    return ATTN_OK;
}

SCENE(attn_pool_create)
{
    return use_pool(p);
}

SCENE(attn_pool_destroy)
{
    attn_pool_destroy(NULL);
    return use_pool(p);
}

SCENE(attn_pool_parallel_for)
{
    return use_pool(p);
}

SCENE(attn_forward)
{
    const attn_args args = make_forward(p);
    const attn_exec exec = make_exec();
    attn_plan plan;
    const attn_status status = make_plan(&plan);

    return status == ATTN_OK ? attn_forward(&plan, &args, &exec, NULL)
                             : status;
}

SCENE(attn_backward)
{
    const attn_exec exec = make_exec();
    attn_args args;
    attn_plan plan;
    attn_status status = make_backward(p, &args);

    if (status == ATTN_OK)
        status = make_plan(&plan);
    return status == ATTN_OK ? attn_backward(&plan, &args, &exec, NULL)
                             : status;
}

SCENE(attn_weights)
{
    const int64_t heads[] = {3, 0}, rows[] = {4, 1, 1};
    const int64_t shape[] = {BATCH, 2, 3, LEN_K};
    const attn_rows chosen = {heads, rows, 2, 3};
    const attn_args args = make_inputs();
    const attn_exec exec = make_exec();
    attn_plan plan;
    const attn_status status = make_plan(&plan);

    if (status != ATTN_OK)
        return status;
    return attn_weights(&plan, &args, ATTN_STAGE_PROBS, &chosen,
                        float_piece(p, 4, shape), &exec, NULL);
}

SCENE(attn_attention)
{
    const attn_desc desc = make_desc();
    const attn_args args = make_forward(p);

    return attn_attention(&desc, &args, 3, NULL);
}

SCENE(attn_attention_backward)
{
    const attn_desc desc = make_desc();
    attn_args args;
    const attn_status status = make_backward(p, &args);

    return status == ATTN_OK ? attn_attention_backward(&desc, &args, 3, NULL)
                             : status;
}

SCENE(attn_merge)
{
    attn_args args;
    const attn_status status = make_backward(p, &args);
    const attn_input part = attn_in(args.o), part_lse = attn_in(args.lse);

    if (status != ATTN_OK)
        return status;
    return attn_merge(part, part_lse, part, part_lse,
                      attn_bhsd(piece(p, sizeof o), ATTN_F32, BATCH, HEADS,
                                LEN_Q, DIM_V),
                      float_piece(p, 3, row_shape), NULL);
}

SCENE(attn_kv_append)
{
    static const int64_t lengths[BATCH] = {3, 0};
    static const int64_t lengths_shape[] = {BATCH};
    const attn_args args = make_inputs();
    attn_input rows = args.kv.k;
    attn_tensor cache = attn_bhsd(piece(p, 2 * sizeof k), ATTN_F32, BATCH,
                                  HEADS_KV, 2 * LEN_K, DIM);

    return attn_kv_append(cache, rows,
                          attn_in_dense(lengths, ATTN_I64, 1, lengths_shape),
                          (attn_input){0}, NULL);
}

SCENE(attn_dropout_mask)
{
    unsigned char *mask = piece(p, BATCH * HEADS * LEN_Q * LEN_K);

    return attn_dropout_mask(attn_dense(mask, ATTN_BOOL, 4, weights_shape),
                             0.5, 42, 0, NULL, NULL);
}

SCENE(attn_gemm_init)
{
    attn_gemm_args args;

    attn_gemm_init(&args);
    return keep(p, &args.size, sizeof args.size);
}

SCENE(attn_gemm_workspace)
{
    return attn_gemm_workspace(ATTN_F32, 3, piece(p, sizeof(attn_workspace)),
                               NULL);
}

SCENE(attn_gemm)
{
    static const int64_t left[] = {BATCH * HEADS * LEN_Q, DIM};
    static const int64_t right[] = {DIM, BATCH * HEADS_KV * LEN_K};
    static const int64_t whole[] = {BATCH * HEADS * LEN_Q,
                                    BATCH * HEADS_KV * LEN_K};
    const attn_exec exec = make_exec();
    attn_gemm_args args;

    FILL(q, 1);
    FILL(k, 2);
    attn_gemm_init(&args);
    args.a = attn_in_dense(q, ATTN_F32, 2, left);
    args.b = attn_in_dense(k, ATTN_F32, 2, right);
    args.c = float_piece(p, 2, whole);
    return attn_gemm(&args, &exec, NULL);
}

static attn_rope_desc make_rope(void)
{
    attn_rope_desc desc;

    attn_rope_init(&desc);
    desc.scaling = ATTN_ROPE_LINEAR;
    desc.factor = 2;
    return desc;
}

SCENE(attn_rope_init)
{
    const attn_rope_desc desc = make_rope();

    return keep(p, &desc.base, sizeof desc.base);
}

static const int64_t positions[LEN_Q] = {0, 1, 2, 100, 4};
static const int64_t positions_shape[] = {LEN_Q};

SCENE(attn_rope)
{
    const attn_rope_desc desc = make_rope();
    const attn_args args = make_inputs();

    return attn_rope(&desc, args.q,
                     attn_in_dense(positions, ATTN_I64, 1, positions_shape),
                     attn_bhsd(piece(p, sizeof q), ATTN_F32, BATCH, HEADS,
                               LEN_Q, DIM),
                     NULL);
}

SCENE(attn_rope_backward)
{
    const attn_rope_desc desc = make_rope();
    const attn_args args = make_inputs();

    return attn_rope_backward(
        &desc, args.q, attn_in_dense(positions, ATTN_I64, 1, positions_shape),
        attn_bhsd(piece(p, sizeof q), ATTN_F32, BATCH, HEADS, LEN_Q, DIM),
        NULL);
}

SCENE(attn_rope_frequencies)
{
    const attn_rope_desc desc = make_rope();
    double *frequencies = piece(p, DIM / 2 * sizeof(double));

    return attn_rope_frequencies(&desc, DIM, 128, frequencies,
                                 piece(p, sizeof(double)), NULL);
}

SCENE(attn_cpu_isa)
{
    const attn_isa isa = attn_cpu_isa();

    return keep(p, &isa, sizeof isa);
}

SCENE(attn_isa_name)
{
    return say(p, attn_isa_name(ATTN_ISA_AMX));
}

SCENE(attn_cpu_describe)
{
    attn_cpu_describe(piece(p, 512), 512);
    return ATTN_OK;
}

SCENE(attn_kernels_describe)
{
    attn_kernels_describe(piece(p, 8192), 8192);
    return ATTN_OK;
}

SCENE(attn_realloc)
{
    void *block = attn_realloc(NULL, 100), *more;

    if (!block)
        return ATTN_E_NOMEM;
    more = attn_realloc(block, 200);
    attn_free(more ? more : block);
    return more ? say(p, "grown") : ATTN_E_NOMEM;
}

SCENE(attn_free)
{
    void *block = attn_realloc(NULL, 0);

    attn_free(block);
    attn_free(NULL);
    return block ? say(p, "freed") : ATTN_E_NOMEM;
}

#define QUIET(name) {#name, false, scene_##name}
#define ALLOCATES(name) {#name, true, scene_##name}

/* All but attn_set_allocator, which the driver itself calls. */
const scene scenes[] = {
    QUIET(attn_status_name),
    QUIET(attn_status_text),
    QUIET(attn_version),
    QUIET(attn_dtype_size),
    QUIET(attn_dtype_name),
    QUIET(attn_bhsd),
    QUIET(attn_bshd),
    QUIET(attn_thd),
    QUIET(attn_dense),
    QUIET(attn_in_bhsd),
    QUIET(attn_in_bshd),
    QUIET(attn_in_thd),
    QUIET(attn_in_dense),
    QUIET(attn_in),
    QUIET(attn_desc_init),
    QUIET(attn_plan_init),
    QUIET(attn_plan_workspace),
    QUIET(attn_plan_describe),
    QUIET(attn_args_init),
    QUIET(attn_exec_init),
    ALLOCATES(attn_pool_create),
    ALLOCATES(attn_pool_destroy),
    ALLOCATES(attn_pool_parallel_for),
    QUIET(attn_forward),
    QUIET(attn_backward),
    QUIET(attn_weights),
    ALLOCATES(attn_attention),
    ALLOCATES(attn_attention_backward),
    QUIET(attn_merge),
    QUIET(attn_kv_append),
    QUIET(attn_dropout_mask),
    QUIET(attn_gemm_init),
    QUIET(attn_gemm_workspace),
    QUIET(attn_gemm),
    QUIET(attn_rope_init),
    QUIET(attn_rope),
    QUIET(attn_rope_backward),
    QUIET(attn_rope_frequencies),
    QUIET(attn_cpu_isa),
    QUIET(attn_isa_name),
    QUIET(attn_cpu_describe),
    QUIET(attn_kernels_describe),
    ALLOCATES(attn_realloc),
    ALLOCATES(attn_free),
};

const int n_scenes = sizeof scenes / sizeof scenes[0];
