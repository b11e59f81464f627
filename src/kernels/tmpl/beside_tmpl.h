/* SPDX-License-Identifier: Apache-2.0
 *
 * What vectors do beside the tiles: scores of 16 keys and one vector of rows to
 * weights in parts, two keys at a time. The processor looks a few hundred
 * instructions ahead, and a tile's load is many: so products and vectors are
 * mixed finely. */

/* e^x for x <= 0, to 2^-23 where 16-bit storage rounds more than that away:
 * degree 5 (tools/exp_coefficients.py), one step of reduction. While tiles are
 * in use the processor multiplies at half its rate, so multiplications count.
 */
static inline V weight_of(V x)
{
#if STORAGE == STORAGE_F32
    return v_exp_negative(x);
#else
    const V shifted = v_fma(x, v_set1(LOG2_E), v_set1(ROUNDER));
    const V two_n = v_power_of_2(shifted);
    const V r = v_fma(shifted - v_set1(ROUNDER), v_set1(-0x1.62e43p-1f), x);
    const V r2 = r * r;
    const V q23 = v_fma(v_set1(0x1.5557aep-3f), r, v_set1(0x1.fffdfcp-2f));
    const V q45 = v_fma(v_set1(0x1.106288p-7f), r, v_set1(0x1.5729fp-5f));
    const V rest = v_fma(v_fma(q45, r2, q23), r2, r);

    return v_fma_unless(v_lt(x, v_set1(EXP_LOW)), two_n, rest, two_n);
#endif
}

typedef struct key_sweep {
    REAL *s;       /* scores of the first key */
    uint16_t *to;  /* parts of the first two weights */
    ptrdiff_t r;   /* the next key */
    int64_t there; /* keys from here on that exist; others weigh 0 */
    V m, sum;      /* what is subtracted; the weights' sum */
} key_sweep;

/* Weights of keys r and r + 1; also over the scores, to `keep` them. */
static inline __attribute__((always_inline)) void
weights_of_pair(key_sweep *w, const int parts, const bool keep)
{
    const ptrdiff_t part_size =
        steps_of(ATTN__BLOCK_KEYS) * TILE_VECTORS * AMX_TILE;
    V pair[2];

    UNROLL(2)
    for (ptrdiff_t k = 0; k < 2; k++) {
        REAL *at = w->s + (w->r + k) * TILE_ROWS;

        pair[k] = v_set1(0);
        if (w->r + k >= w->there)
            continue;
        pair[k] = weight_of(v_load(at) - w->m);
        w->sum = w->sum + pair[k];
        if (keep)
            v_store(at, pair[k]);
    }
    parts_of_vectors(w->to + w->r / 2 * AMX_STEP, part_size, pair[0], pair[1],
                     true, parts, STORAGE == STORAGE_F32);
    w->r += 2;
}
