/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward, then backward, of the loss 1/2 |o|^2: its gradient by o is o. One
 * component of dq is checked against a central difference. */
#include <attn.h>

#include <math.h>
#include <stdio.h>

enum { HEADS = 4, HEADS_KV = 2, LEN = 9, DIM = 8 };

static double q[HEADS * LEN * DIM], k[HEADS_KV * LEN * DIM];
static double v[HEADS_KV * LEN * DIM], o[HEADS * LEN * DIM];
static double lse[HEADS * LEN], dq[HEADS * LEN * DIM];
static attn_desc desc;
static attn_args args;

static double loss(void)
{
    double sum = 0;

    if (attn_attention(&desc, &args, 1, NULL) != ATTN_OK)
        return NAN;
    for (int x = 0; x < HEADS * LEN * DIM; x++)
        sum += o[x] * o[x] / 2;
    return sum;
}

int main(void)
{
    const int64_t rows[] = {1, HEADS, LEN};
    const double step = 1e-6; /* error step^2, and rounding 1e-16 / step */
    double up, down, slope;

    for (int x = 0; x < HEADS * LEN * DIM; x++)
        q[x] = sin(x);
    for (int x = 0; x < HEADS_KV * LEN * DIM; x++)
        k[x] = cos(1.3 * x), v[x] = sin(0.7 * x + 1);
    attn_desc_init(&desc, ATTN_F64, 1, HEADS, HEADS_KV, LEN, LEN, DIM, DIM);
    attn_args_init(&args);
    args.q = attn_in_bhsd(q, ATTN_F64, 1, HEADS, LEN, DIM);
    args.kv.k = attn_in_bhsd(k, ATTN_F64, 1, HEADS_KV, LEN, DIM);
    args.kv.v = attn_in_bhsd(v, ATTN_F64, 1, HEADS_KV, LEN, DIM);
    args.o = attn_bhsd(o, ATTN_F64, 1, HEADS, LEN, DIM);
    args.lse = attn_dense(lse, ATTN_F64, 3, rows);
    args.d_o = attn_in(args.o);
    args.dq = attn_bhsd(dq, ATTN_F64, 1, HEADS, LEN, DIM);

    loss(); /* fills o and lse, which backward reads */
    if (attn_attention_backward(&desc, &args, 1, NULL) != ATTN_OK)
        return 1;
    q[5] += step, up = loss();
    q[5] -= 2 * step, down = loss();
    slope = (up - down) / (2 * step);
    printf("dq[5] = %.9f, by differences %.9f\n", dq[5], slope);
    return fabs(dq[5] - slope) < 1e-8 ? 0 : 1;
}
