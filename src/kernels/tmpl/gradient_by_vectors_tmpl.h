/* SPDX-License-Identifier: Apache-2.0
 *
 * The other products of backward by vectors, operands read in place. Its
 * counterpart is gradient_by_tiles_tmpl.h. */

static inline void gradient_prepare_keys(const attn__problem *p,
                                         const attn__slot *slot,
                                         key_block *block, int64_t place,
                                         bool for_dq)
{
    (void)p, (void)slot, (void)block, (void)place, (void)for_dq;
}

static inline void gradient_prepare_tile(const attn__problem *p,
                                         attn__tile *tile)
{
    (void)p, (void)tile;
}

static inline void gradient_prepare_rows(const attn__problem *p,
                                         const attn__slot *slot, int64_t n)
{
    (void)p, (void)slot, (void)n;
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

/* panel[c][lane] += ds k, ds [key][SUM_ROWS]. */
static inline void dq_product(const attn__problem *p, const attn__slot *slot,
                              const key_block *block, const REAL *ds,
                              const REAL_INT *visible, REAL *panel)
{
    const product keys = dq_terms(block, ds);
    const product_out out = {panel, TILE_ROWS, NULL, 1, false};

    (void)slot, (void)visible;
    product_run(PRODUCT_ADD, &keys, p->dim_qk, &out);
}

/* out[key][c] += the sum, for n keys. */
static inline void dkv_product(const attn__problem *p, const attn__slot *slot,
                               const row_sum *x, REAL *out, int64_t n)
{
    (void)p, (void)slot;
    for (int64_t c = 0; c < x->padded; c += TILE_ROWS) {
        const product sum = row_terms(x, c);
        const product_out to = {out + c, x->padded, NULL, 1, false};

        product_run(PRODUCT_ADD, &sum, n, &to);
    }
}
