/* SPDX-License-Identifier: Apache-2.0
 *
 * The other products of backward by vectors, operands read in place. Its
 * counterpart is gradient_by_tiles_tmpl.h. */

static inline void gradient_keys(const attn__problem *p,
                                 const attn__slot *slot, key_block *block,
                                 int64_t place)
{
    (void)p, (void)slot, (void)block, (void)place;
}

static inline void gradient_prepare(const attn__problem *p, attn__tile *tile)
{
    (void)p, (void)tile;
}

static inline void rows_prepare(const attn__problem *p, const attn__slot *slot,
                                int64_t n)
{
    (void)p, (void)slot, (void)n;
}

static inline uint32_t rows_odd_q(const attn__slot *slot)
{
    (void)slot;
    return 0;
}

static inline uint32_t rows_odd_do(const attn__slot *slot)
{
    (void)slot;
    return 0;
}

static inline bool pairs_are_odd(const attn__tile *tile,
                                 const key_block *block)
{
    (void)tile, (void)block;
    return false;
}

static inline void gradient_delta(const attn__problem *p, const attn__unit *u,
                                  const attn__sequence *seq,
                                  const attn__slot *slot,
                                  const attn__tile *tile)
{
    delta_by_vectors(p, u, seq, slot, tile);
}

/* slot->dp[key][lane] = v d_o. */
static inline void dp_product(const attn__problem *p, const attn__slot *slot,
                              const attn__tile *tile, const key_block *block)
{
    const product values = {block->v, block->v_row, 1,
                            tile->d_o, TILE_ROWS,   p->dim_v};
    const product_out out = {slot->dp, TILE_ROWS, NULL, 1, false};

    product_run(PRODUCT_SCALE, &values, block->n, &out);
}

/* panel[c][lane] += ds k, of ds from column `first` on. */
static inline void dq_product(const attn__problem *p, const attn__slot *slot,
                              const key_block *block, ptrdiff_t first,
                              REAL *panel)
{
    const product keys = {block->k, 1,        block->k_row,
                          (const REAL *)slot->ds + first,
                          SUM_ROWS, block->n};
    const product_out out = {panel, TILE_ROWS, NULL, 1, false};

    product_run(PRODUCT_ADD, &keys, p->dim_qk, &out);
}

/* out[key][c] += the sum, for n keys. */
static inline void dkv_product(const attn__problem *p, const attn__slot *slot,
                               const row_sum *x, REAL *out, int64_t n)
{
    (void)p, (void)slot;
    for (int64_t c = 0; c < x->padded; c += TILE_ROWS) {
        const product sum = {x->a,      SUM_ROWS,  1, x->rows + c,
                             x->padded, x->n_rows};
        const product_out to = {out + c, x->padded, NULL, 1, false};

        product_run(PRODUCT_ADD, &sum, n, &to);
    }
}
