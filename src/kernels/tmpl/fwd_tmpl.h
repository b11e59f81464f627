/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward of many queries: tiles of rows in the lanes, macro blocks of tiles
 * sharing each block of keys, the online softmax of softmax_tmpl.h. */

#if BY_TILES
#include "kernels/tmpl/fwd_tiles_tmpl.h"
#else
static void forward_block(const attn__problem *p, const attn__unit *u,
                          const attn__slot *slot, attn__tile *tile,
                          const key_block *block, bool careful)
{
    tile_scores(p, slot, tile, block,
                (score_request){ATTN_STAGE_BIASED, false, careful, careful});
    softmax_block(slot, tile, block->n);
    if (p->dropout_p > 0)
        apply_dropout(p, u, tile, block, slot->s, TILE_ROWS);
    if (p->v.data)
        value_product(p, slot, tile, block, careful);
}

static void forward_blocks(const attn__problem *p, const attn__unit *u,
                           const attn__slot *slot, attn__tile *tile,
                           const key_block *blocks, int64_t n, bool careful)
{
    for (int64_t b = 0; b < n; b++) {
        const key_block part = keys_clip(&blocks[b], tile->any);

        if (part.n > 0 && !mask_hides(p, tile, &part))
            forward_block(p, u, slot, tile, &part, careful);
    }
}
#endif

/* A group's blocks of keys from j0 < end on, ready for products; how many. */
static int64_t forward_keys(const attn__problem *p, const attn__unit *u,
                            const attn__sequence *seq, const attn__slot *slot,
                            int64_t j0, int64_t end, key_block *blocks)
{
    int64_t n = 0;

    do {
        blocks[n] = keys_load(p, u, seq, slot, j0, seq->len_k, n);
        if (p->v.data)
            values_prepare(p, slot, &blocks[n], n);
        j0 += ATTN__BLOCK_KEYS;
    } while (++n < GROUP_BLOCKS && j0 < end);
    return n;
}

/* Tiles [t0, t1) over all keys that they see. */
static void forward_sweep(const attn__problem *p, const attn__unit *u,
                          const attn__sequence *seq, const attn__slot *slot,
                          size_t t0, size_t t1, bool careful)
{
    attn__interval any = {INT64_MAX, 0};

    for (size_t t = t0; t < t1; t++) {
        attn__tile *tile = &slot->tiles[t];

        softmax_start(p, tile);
        if (p->v.data)
            panel_zero(tile->acc, p->dim_v * TILE_ROWS);
        any.lo = attn__min_i64(any.lo, tile->any.lo);
        any.hi = attn__max_i64(any.hi, tile->any.hi);
    }
    for (int64_t j0 = any.lo / ATTN__BLOCK_KEYS * ATTN__BLOCK_KEYS;
         j0 < any.hi; j0 += GROUP_BLOCKS * ATTN__BLOCK_KEYS) {
        key_block blocks[GROUP_BLOCKS];
        const int64_t loaded =
            forward_keys(p, u, seq, slot, j0, any.hi, blocks);

        for (size_t t = t0; t < t1; t++)
            forward_blocks(p, u, slot, &slot->tiles[t], blocks, loaded,
                           careful);
    }
}

/* o = acc (1 / l): a row's one division costs less than its columns' would,
 * and where l is 1 o is acc. Adding +0 gives every zero the same sign, whatever
 * finite values hidden keys held. */
static void forward_finish(const attn__problem *p, attn__tile *tile)
{
    const V none = v_set1(p->empty_rows == ATTN_EMPTY_NAN ? (REAL)NAN : 0);

    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        const V l = v_load((const REAL *)tile->l + v * LANES);
        const V share = v_set1(1) / l;

        for (int64_t c = 0; c < p->dim_v; c++) {
            REAL *at = (REAL *)tile->acc + c * TILE_ROWS + v * LANES;

            v_store(at, v_select(v_eq(l, v_set1(0)), none,
                                 v_load(at) * share + v_set1(0)));
        }
    }
}

/* Put the unit's rows into tiles; returns how many tiles. */
static size_t forward_load(const attn__problem *p, const attn__unit *u,
                           const attn__sequence *seq, const attn__slot *slot)
{
    size_t n = 0;

    for (int64_t r0 = u->row0; r0 < u->row1; r0 += TILE_ROWS) {
        attn__tile *tile = &slot->tiles[n++];

        tile_place(tile, p, u, seq, r0);
        tile_pack(tile->q, tile, &p->q, u->b, seq->q_start, p->dim_qk);
        tile_prepare(p, tile);
    }
    return n;
}

void KERNEL(fwd)(const attn__problem *p, const attn__unit *u, void *memory)
{
    const attn__sequence seq = attn__sequence_of(p, u->b);
    attn__arena arena = {memory, 0, false};
    attn__slot slot;
    size_t n;

    attn__forward_slot(&arena, &slot, tile_shape, (size_t)p->macro_rows,
                       (size_t)p->dim_qk, (size_t)p->dim_v);
    products_begin();
    n = forward_load(p, u, &seq, &slot);
    forward_sweep(p, u, &seq, &slot, 0, n, false);
    for (size_t t = 0; t < n; t++) {
        attn__tile *tile = &slot.tiles[t];

        if (p->v.data) {
            if (HIDDEN_PAIRS_SHOW &&
                !panel_is_finite(tile->acc, p->dim_v * TILE_VECTORS))
                forward_sweep(p, u, &seq, &slot, t, t + 1, true);
            forward_finish(p, tile);
            tile_unpack(tile->acc, tile, &p->out_o, u->b, seq.q_start,
                        p->dim_v);
        }
        if (p->out_lse.data)
            softmax_store_lse(p, u, &seq, tile);
    }
    products_end();
}
