/* SPDX-License-Identifier: Apache-2.0
 *
 * Blockwise online softmax (Milakov and Gimelshein 2018; Dao et al. 2022) with
 * queries in the lanes, so that maximum, sum and rescaling are vertical and no
 * row depends on another. For each block of keys
 *
 *   m' = max(m, max_j s_j)     c = e^(m - m')     p_j = e^(s_j - m')
 *   l' = l c + sum_j p_j       acc' = acc c + sum_j p_j v_j
 *
 * with the block's sums formed on their own first, which keeps the error at
 * the size of sqrt(block) + sqrt(blocks) instead of sqrt(keys). */

/* What is subtracted from a row's scores: 0 where nothing is seen yet, since
 * -inf - -inf is NaN. The largest score's weight is then 1 and nothing else, so
 * that a row with one key has o = v to the bit. */
static inline V softmax_base(V top)
{
    return v_select(v_eq(top, v_set1((REAL)-INFINITY)), v_set1(0), top);
}

/* m and l before the first key: nothing, or the sink. A sink of -inf is no
 * sink; one of +inf or NaN makes the row NaN, as the formula says. */
static void softmax_start(const attn__problem *p, attn__tile *tile)
{
    REAL *m = tile->m, *l = tile->l;

    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++) {
        m[lane] = (REAL)-INFINITY;
        l[lane] = 0;
        if (p->sinks.data) {
            m[lane] = real_of(read_any(p->sinks.data, p->sinks.dtype,
                                       tile->h[lane] * p->sinks.stride[3]));
            if (m[lane] != (REAL)-INFINITY)
                l[lane] = 1 + (m[lane] - m[lane]);
        }
    }
}

/* The largest score of each lane and m. Two running maxima a vector, since one
 * would wait for itself. */
static void softmax_top(const attn__slot *slot, attn__tile *tile, int64_t n)
{
    const REAL *s = slot->s;
    V top[2][TILE_VECTORS];
    int64_t j = 0;

    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++)
        top[0][v] = top[1][v] = v_load((REAL *)tile->m + v * LANES);
    for (; j + 2 <= n; j += 2)
        for (ptrdiff_t k = 0; k < 2; k++)
            for (ptrdiff_t v = 0; v < TILE_VECTORS; v++)
                top[k][v] = v_max(
                    v_load(s + (j + k) * TILE_ROWS + v * LANES), top[k][v]);
    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        if (j < n)
            top[0][v] = v_max(v_load(s + j * TILE_ROWS + v * LANES),
                              top[0][v]);
        v_store((REAL *)tile->m + v * LANES, v_max(top[1][v], top[0][v]));
    }
}

/* Scores of one vector of rows to weights e^(s - m) in place; returns `sum` and
 * what n keys add to it. */
static inline V softmax_weights(REAL *s, int64_t n, V m, V sum)
{
    for (int64_t j = 0; j < n; j++) {
        const V weight = v_exp_negative(v_load(s + j * TILE_ROWS) - m);

        v_store(s + j * TILE_ROWS, weight);
        sum = sum + weight;
    }
    return sum;
}

/* l and factor brought forward from what m was `before` to `m`, by a block
 * whose weights have this sum. */
static inline void softmax_forward(attn__tile *tile, ptrdiff_t vector,
                                   V before, V m, V sum)
{
    REAL *l = (REAL *)tile->l + vector * LANES;
    const V factor = v_exp_negative(before - m);

    v_store(l, v_fma(v_load(l), factor, sum));
    v_store((REAL *)tile->factor + vector * LANES, factor);
}

static inline void softmax_block(const attn__slot *slot, attn__tile *tile,
                                 int64_t n)
{
    V before[TILE_VECTORS];

    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++)
        before[v] = v_load((REAL *)tile->m + v * LANES);
    softmax_top(slot, tile, n);
    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        const V m = softmax_base(v_load((REAL *)tile->m + v * LANES));

        softmax_forward(tile, v, before[v], m,
                        softmax_weights((REAL *)slot->s + v * LANES, n, m,
                                        v_set1(0)));
    }
}

static int64_t row_index(const attn__target *out, const attn__tile *tile,
                         int64_t lane, int64_t b, int64_t row_start)
{
    return b * out->stride[0] + tile->h[lane] * out->stride[1] +
           (row_start + tile->i[lane]) * out->stride[2];
}

static void softmax_store_lse(const attn__problem *p, const attn__unit *u,
                              const attn__sequence *seq,
                              const attn__tile *tile)
{
    const REAL *m = tile->m, *l = tile->l;

    for (int64_t lane = 0; lane < tile->n; lane++) {
        double lse = (double)m[lane] + attn__log((double)l[lane]);

        if (l[lane] == 0)
            lse = p->empty_rows == ATTN_EMPTY_NAN ? (double)NAN
                                                  : (double)-INFINITY;
        write_any(p->out_lse.data, p->out_lse.dtype,
                  row_index(&p->out_lse, tile, lane, u->b, seq->q_start), lse);
    }
}
