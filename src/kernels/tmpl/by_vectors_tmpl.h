/* SPDX-License-Identifier: Apache-2.0
 *
 * The two products of attention by vectors, keys and values read in place. The
 * other way is by_tiles_tmpl.h; one of them is in every instance. */

/* 0 * NaN of a hidden pair is NaN here: a tile whose result is not finite is
 * computed again, pair by pair. */
#define HIDDEN_PAIRS_SHOW true
/* Blocks of keys that are loaded together. */
#define GROUP_BLOCKS 1
/* Keys from which on a tile may begin within a block. */
#define CLIP_KEYS 1

static inline void products_begin(void)
{
}

static inline void products_end(void)
{
}

static inline void keys_prepare(const attn__problem *p,
                                const attn__slot *slot, key_block *block,
                                int64_t place)
{
    (void)p, (void)slot, (void)block, (void)place;
}

static inline void values_prepare(const attn__problem *p,
                                  const attn__slot *slot, key_block *block,
                                  int64_t place)
{
    (void)p, (void)slot, (void)block, (void)place;
}

static inline void tile_prepare(const attn__problem *p, attn__tile *tile)
{
    (void)p, (void)tile;
}

/* slot->s[key][lane] = scale q k. */
static inline void score_product(const attn__problem *p,
                                 const attn__slot *slot,
                                 const attn__tile *tile,
                                 const key_block *block)
{
    const product raw = {block->k, block->k_row, 1, tile->q, TILE_ROWS,
                         p->dim_qk};
    const product_out out = {slot->s, TILE_ROWS, NULL, (REAL)p->scale,
                             false};

    product_run(PRODUCT_SCALE, &raw, block->n, &out);
}

/* acc = acc factor + weights v, the weights [key][lane] in slot->s; `careful`:
 * only where slot->seen has the pair. */
static inline void value_product(const attn__problem *p,
                                 const attn__slot *slot, attn__tile *tile,
                                 const key_block *block, bool careful)
{
    const product values = {block->v,  1,         block->v_row,
                            slot->s,   TILE_ROWS, block->n};
    const product_out out = {tile->acc, TILE_ROWS, tile->factor, 1, false};

    if (careful)
        product_careful(PRODUCT_UPDATE, &values, p->dim_v, &out, slot->seen,
                        false);
    else
        product_run(PRODUCT_UPDATE, &values, p->dim_v, &out);
}
