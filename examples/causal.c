/* SPDX-License-Identifier: Apache-2.0
 *
 * Causal attention of 8 heads over 1024 tokens, in one call. With v = 1 the
 * weights' sum is what comes out: 1, for every query. */
#include <attn.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 8, LEN = 1024, DIM = 64, N = HEADS * LEN * DIM };

int main(void)
{
    float *q = malloc(N * sizeof *q), *k = malloc(N * sizeof *k);
    float *v = malloc(N * sizeof *v), *o = malloc(N * sizeof *o);
    float worst = 0;
    attn_desc desc;
    attn_args args;
    attn_diag diag;

    if (!q || !k || !v || !o)
        return 1;
    for (int x = 0; x < N; x++) {
        q[x] = sinf((float)x);
        k[x] = cosf((float)x * 0.7f);
        v[x] = 1;
    }

    attn_desc_init(&desc, ATTN_F32, 1, HEADS, HEADS, LEN, LEN, DIM, DIM);
    desc.causal = ATTN_CAUSAL_TOP_LEFT;
    attn_args_init(&args);
    args.q = attn_in_bhsd(q, ATTN_F32, 1, HEADS, LEN, DIM);
    args.kv.k = attn_in_bhsd(k, ATTN_F32, 1, HEADS, LEN, DIM);
    args.kv.v = attn_in_bhsd(v, ATTN_F32, 1, HEADS, LEN, DIM);
    args.o = attn_bhsd(o, ATTN_F32, 1, HEADS, LEN, DIM);
    if (attn_attention(&desc, &args, 2, &diag) != ATTN_OK) {
        fprintf(stderr, "%s: %s\n", diag.field, diag.message);
        return 1;
    }

    for (int x = 0; x < N; x++)
        worst = fmaxf(worst, fabsf(o[x] - 1));
    printf("largest |o - 1|: %g\n", (double)worst);
    free(q);
    free(k);
    free(v);
    free(o);
    /* Where v is 1, a weight's error is in numerator and denominator alike;
     * what is left is that of two sums over 1024 keys in blocks of 64 (the
     * term `block` of docs/numerics.md). */
    return worst <= 8 * 0x1p-24f * (8 + 4 + 8) ? 0 : 1;
}
