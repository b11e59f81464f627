/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenes for the functions of attn_layer.h: a small layer with norm, rope,
 * biases and a causal mask. Results go to `out`, one after another. */
#include "attn_layer.h"
#include "faults.h"

#include <string.h>

enum { BATCH = 2, LEN = 5, WIDTH = 16, HEADS = 4, HEADS_KV = 2, DIM = 4 };
enum { Q = HEADS * DIM, KV = HEADS_KV * DIM };

static float x[BATCH * LEN * WIDTH], d_y[BATCH * LEN * WIDTH];
static float w_q[WIDTH * Q], w_k[WIDTH * KV], w_v[WIDTH * KV], w_o[Q * WIDTH];
static float b_q[Q], g_q[DIM];

static _Alignas(64) unsigned char memory[1 << 20];

static void fill(float *values, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(int32_t)seed * 0x1p-31f;
    }
}

/* A tensor of random numbers. */
#define INPUT(array, seed, ...)                                               \
    (fill(array, sizeof(array) / sizeof(float), (seed)),                      \
     attn_in_dense(array, ATTN_F32,                                           \
                   (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) /               \
                             sizeof(int64_t)),                                \
                   (int64_t[]){__VA_ARGS__}))

/* The next piece of `out`, like an input. */
static attn_tensor piece(unsigned char **out, attn_input like)
{
    attn_tensor t = attn_dense(*out, ATTN_F32, like.rank, like.shape);
    size_t bytes = sizeof(float);

    for (int32_t a = 0; a < like.rank; a++)
        bytes *= (size_t)like.shape[a];
    *out += bytes;
    return t;
}

static attn_layer_desc make_desc(void)
{
    attn_layer_desc desc;

    attn_layer_desc_init(&desc, ATTN_F32, BATCH, LEN, WIDTH, HEADS, HEADS_KV);
    desc.qk_norm = desc.rotary = 1;
    desc.attention.causal = ATTN_CAUSAL_TOP_LEFT;
    return desc;
}

static attn_layer_args make_args(void)
{
    attn_layer_args args;

    attn_layer_args_init(&args);
    args.x = INPUT(x, 1, BATCH, LEN, WIDTH);
    args.d_y = INPUT(d_y, 2, BATCH, LEN, WIDTH);
    args.w_q = INPUT(w_q, 3, WIDTH, Q);
    args.w_k = INPUT(w_k, 4, WIDTH, KV);
    args.w_v = INPUT(w_v, 5, WIDTH, KV);
    args.w_o = INPUT(w_o, 6, Q, WIDTH);
    args.b_q = INPUT(b_q, 7, Q);
    args.g_q = INPUT(g_q, 8, DIM);
    return args;
}

static attn_layer_args make_forward(unsigned char *out)
{
    attn_layer_args args = make_args();
    const int64_t weights[4] = {BATCH, HEADS, LEN, LEN};

    args.y = piece(&out, args.x);
    args.attention.weights =
        piece(&out, attn_in_dense(NULL, ATTN_F32, 4, weights));
    return args;
}

static attn_layer_args make_backward(unsigned char *out)
{
    attn_layer_args args = make_args();

    args.dx = piece(&out, args.x);
    args.dw_q = piece(&out, args.w_q);
    args.dw_k = piece(&out, args.w_k);
    args.dw_v = piece(&out, args.w_v);
    args.dw_o = piece(&out, args.w_o);
    args.db_q = piece(&out, args.b_q);
    args.dg_q = piece(&out, args.g_q);
    return args;
}

/* Plan and run in static memory, so that nothing is allocated. */
static attn_status run(const attn_layer_args *args,
                       attn_status (*pass)(const attn_layer_plan *,
                                           const attn_layer_args *,
                                           const attn_exec *, attn_diag *))
{
    const attn_layer_desc desc = make_desc();
    attn_layer_plan plan;
    attn_exec exec;
    attn_status status = attn_layer_plan_init(&plan, &desc, NULL);

    attn_exec_init(&exec);
    exec.workspace = memory;
    exec.workspace_size = sizeof memory;
    exec.threads = 2;
    if (status == ATTN_OK)
        status = pass(&plan, args, &exec, NULL);
    return status;
}

static attn_status scene_plan(unsigned char *out)
{
    const attn_layer_desc desc = make_desc();
    attn_layer_plan plan;
    attn_status status = attn_layer_plan_init(&plan, &desc, NULL);

    if (status == ATTN_OK)
        status = attn_layer_workspace(&plan, ATTN_BACKWARD, 3,
                                      (attn_workspace *)(void *)out, NULL);
    return status;
}

static attn_status scene_forward(unsigned char *out)
{
    const attn_layer_args args = make_forward(out);

    return run(&args, attn_layer_forward);
}

static attn_status scene_backward(unsigned char *out)
{
    const attn_layer_args args = make_backward(out);

    return run(&args, attn_layer_backward);
}

static attn_status scene_multi_head(unsigned char *out)
{
    const attn_layer_desc desc = make_desc();
    const attn_layer_args args = make_forward(out);

    return attn_multi_head(&desc, &args, 3, NULL);
}

static attn_status scene_multi_head_backward(unsigned char *out)
{
    const attn_layer_desc desc = make_desc();
    const attn_layer_args args = make_backward(out);

    return attn_multi_head_backward(&desc, &args, 3, NULL);
}

const scene scenes[] = {
    {"attn_layer_plan_init", false, scene_plan},
    {"attn_layer_forward", false, scene_forward},
    {"attn_layer_backward", false, scene_backward},
    {"attn_multi_head", true, scene_multi_head},
    {"attn_multi_head_backward", true, scene_multi_head_backward},
};

const int n_scenes = sizeof scenes / sizeof scenes[0];
