/* SPDX-License-Identifier: Apache-2.0
 *
 * Decode: tokens come one by one, their key and value go into a cache, and the
 * query sees what is there so far. Plan and memory are made once; after that
 * nothing is allocated. With v = 1, every row must come out as 1. */
#include <attn.h>
#include <math.h>
#include <stdio.h>

enum { HEADS = 4, LEN = 50, DIM = 16, ROW = HEADS * DIM };

static float k_cache[LEN * ROW], v_cache[LEN * ROW]; /* (heads, LEN, dim) */
static float q[ROW], k[ROW], v[ROW], o[ROW];         /* of one token */
static _Alignas(64) unsigned char memory[1 << 20];

static attn_input token(const float *row)
{
    return attn_in_bhsd(row, ATTN_F32, 1, HEADS, 1, DIM);
}

int main(void)
{
    const attn_input none = {0};
    attn_tensor keys = attn_bhsd(k_cache, ATTN_F32, 1, HEADS, LEN, DIM);
    attn_tensor values = attn_bhsd(v_cache, ATTN_F32, 1, HEADS, LEN, DIM);
    int64_t length = 0, one = 1;
    float worst = 0;
    attn_desc desc;
    attn_args args;
    attn_plan plan;
    attn_exec exec;
    attn_diag diag = {0};

    attn_exec_init(&exec);
    exec.workspace = memory;
    exec.workspace_size = sizeof memory;
    attn_desc_init(&desc, ATTN_F32, 1, HEADS, HEADS, 1, LEN, DIM, DIM);
    desc.inputs = ATTN_WITH_K_LENGTHS;
    attn_args_init(&args);
    args.q = token(q);
    args.kv.k = attn_in(keys);
    args.kv.v = attn_in(values);
    args.kv.k_lengths = attn_in_dense(&length, ATTN_I64, 1, &one);
    args.o = attn_bhsd(o, ATTN_F32, 1, HEADS, 1, DIM);
    attn_plan_init(&plan, &desc, &diag);
    while (length < LEN && diag.status == ATTN_OK) {
        for (int c = 0; c < ROW; c++)
            q[c] = sinf((float)(length + c)), k[c] = cosf(q[c]), v[c] = 1;
        if (attn_kv_append(keys, token(k), args.kv.k_lengths, none, &diag) ||
            attn_kv_append(values, token(v), args.kv.k_lengths, none, &diag))
            break;
        length++;
        attn_forward(&plan, &args, &exec, &diag);
        for (int c = 0; c < ROW; c++)
            worst = fmaxf(worst, fabsf(o[c] - 1));
    }
    printf("%lld tokens, largest |o - 1|: %g %s\n", (long long)length,
           (double)worst, diag.message);
    return length == LEN && worst <= 2 * 0x1p-23f ? 0 : 1;
}
