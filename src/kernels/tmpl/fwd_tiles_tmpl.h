/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile of rows against the blocks of a group, products by AMX tiles. While
 * the vectors turn one block's scores into weights, the tiles form the scores
 * of the block after it and the products of the block before it with its
 * values: the processor takes both out of one stream, if they come in small
 * enough turns.
 *
 *     turn        vectors: weights of block b       tiles
 *     0           keys  0..15, lanes  0..15         scores b + 1, keys 0..15
 *     1           keys  0..15, lanes 16..31         values b - 1, 16 columns
 *     2           keys 16..31, lanes  0..15         scores b + 1, keys 16..31
 *     ...                                                                  */

#define TURNS (ATTN__BLOCK_KEYS / AMX_ROWS * TILE_VECTORS)

/* What the tiles do while the vectors have a block: NULL is nothing. */
typedef struct tile_work {
    const attn__problem *p;
    const attn__slot *slot;
    attn__tile *tile;
    const key_block *next, *last;
    uint16_t *last_parts; /* weights of `last` */
    int64_t columns;            /* of values in a turn: 16 or 32 */
} tile_work;

/* What a turn of scores forms: keys of the next block from `at` on; one of
 * values: columns from `at` on, and a second time as many. */
typedef struct turn_part {
    int64_t at;
    bool first, second;
} turn_part;

static inline turn_part turn_scores(const tile_work *w, int64_t turn)
{
    const int64_t key = turn / 2 * AMX_ROWS;

    return (turn_part){key, w->next && key < w->next->n, false};
}

static inline turn_part turn_values(const tile_work *w, int64_t turn)
{
    const int64_t c = turn / 2 * w->columns;

    return (turn_part){c, w->last && c < w->p->dim_v,
                       w->last && w->columns > AMX_ROWS &&
                           c + AMX_ROWS < w->p->dim_v};
}

static inline __attribute__((always_inline)) void
turn_begin(const tile_work *w, int64_t turn, const bool scores,
           key_sweep *beside, const int parts, const bool keep)
{
    const turn_part part = scores ? turn_scores(w, turn) : turn_values(w, turn);

    if (scores && part.first)
        scores_of_keys(0, w->p, w->tile, w->next, part.at, beside, parts,
                       keep);
    if (!scores && part.first)
        values_of_columns(1, w->p, w->last, w->last_parts, part.at, beside,
                          parts, keep);
    if (!scores && part.second)
        values_of_columns(0, w->p, w->last, w->last_parts,
                          part.at + AMX_ROWS, beside, parts, keep);
}

static inline __attribute__((always_inline)) void
turn_end(const tile_work *w, int64_t turn, const bool scores)
{
    const turn_part part = scores ? turn_scores(w, turn) : turn_values(w, turn);
    REAL *sums = (REAL *)w->slot->product + part.at * TILE_ROWS;

    if (scores && part.first)
        tiles_store(0, (REAL *)w->slot->next_s + part.at * TILE_ROWS);
    if (!scores && part.first)
        tiles_store(1, sums);
    if (!scores && part.second)
        tiles_store(0, sums + AMX_ROWS * TILE_ROWS);
}

/* Products of turns that are over, into acc. */
static inline void turn_update(const tile_work *w, int64_t turn)
{
    const turn_part part = turn_values(w, turn);

    if (part.first)
        values_update(w->tile, w->slot->product, part.at, w->p->dim_v);
    if (part.second)
        values_update(w->tile, w->slot->product, part.at + AMX_ROWS,
                      w->p->dim_v);
}

/* Scores to weights, m, l and factor brought forward, while the tiles work. */
static inline __attribute__((always_inline)) void
weights_of_block(const tile_work *w, int64_t n, const int parts,
                 const bool keep)
{
    attn__tile *tile = w->tile;
    V m[TILE_VECTORS], factor[TILE_VECTORS], sum[TILE_VECTORS];

    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++)
        factor[v] = v_load((const REAL *)tile->m + v * LANES);
    softmax_top(w->slot, tile, n);
    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        m[v] = softmax_base(v_load((const REAL *)tile->m + v * LANES));
        factor[v] = v_exp_negative(factor[v] - m[v]);
        sum[v] = v_set1(0);
    }
    for (int64_t turn = 0; turn < TURNS; turn += TILE_VECTORS)
        UNROLL(2)
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
            const int64_t j = turn / TILE_VECTORS * AMX_ROWS;
            key_sweep beside = {
                (REAL *)w->slot->s + j * TILE_ROWS + v * LANES,
                w->slot->p_parts +
                    (j / AMX_STEP * TILE_VECTORS + v) * AMX_TILE +
                    j % AMX_STEP / 2 * AMX_STEP,
                j < steps_of(n) * AMX_STEP ? 0 : AMX_ROWS, n - j, m[v],
                sum[v]};

            turn_begin(w, turn + v, v == 0, &beside, parts, keep);
            while (beside.r < AMX_ROWS)
                weights_of_pair(&beside, parts, keep);
            sum[v] = beside.sum;
            turn_end(w, turn + v, v == 0);
            if (v == 0 && turn > 0)
                turn_update(w, turn - 1);
        }
    turn_update(w, TURNS - 1);
    if (w->last)
        values_of_block(w->p, w->slot, tile, w->last, w->last_parts,
                        TURNS / 2 * w->columns);
    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        REAL *l = (REAL *)tile->l + v * LANES;

        v_store(l, v_fma(v_load(l), factor[v], sum[v]));
        v_store((REAL *)tile->factor + v * LANES, factor[v]);
    }
}

/* Weights of `block`, whose products are in slot->s, as parts in
 * slot->p_parts. True if they are still to meet the values. */
static bool forward_block(const tile_work *w, const attn__unit *u,
                          const key_block *block)
{
    const attn__problem *p = w->p;
    const attn__slot *slot = w->slot;
    const int parts = weight_parts(p);
    const bool odd = block->odd_v != 0;

    scores_mend(p, slot, w->tile, block);
    scores_from_products(p, slot, w->tile, block,
                         (score_request){ATTN_STAGE_BIASED, false, odd, odd});
    if (!odd && !(p->dropout_p > 0)) {
        if (parts == PARTS)
            weights_of_block(w, block->n, PARTS, false);
        else
            weights_of_block(w, block->n, 2, false);
        return p->v.data;
    }
    weights_of_block(w, block->n, PARTS, true);
    if (p->dropout_p > 0)
        apply_dropout(p, u, w->tile, block, slot->s, TILE_ROWS);
    if (!p->v.data)
        return false;
    parts_of_panel(slot->p_parts, panel_part(ATTN__BLOCK_KEYS), slot->s,
                   block->n, 1, parts, STORAGE == STORAGE_F32);
    values_of_block(p, slot, w->tile, block, slot->p_parts, 0);
    if (odd)
        values_of_odd_keys(p, slot, w->tile, block);
    return false;
}

/* The blocks of a group that the tile sees; how many. */
static int64_t blocks_seen(const attn__problem *p, const attn__tile *tile,
                           const key_block *blocks, int64_t n,
                           key_block *seen)
{
    int64_t count = 0;

    for (int64_t b = 0; b < n; b++) {
        seen[count] = keys_clip(&blocks[b], tile->any);
        if (seen[count].n > 0 && !mask_hides(p, tile, &seen[count]))
            count++;
    }
    return count;
}

static void forward_blocks(const attn__problem *p, const attn__unit *u,
                           const attn__slot *slot, attn__tile *tile,
                           const key_block *blocks, int64_t n, bool careful)
{
    attn__slot turn = *slot;
    key_block seen[GROUP_BLOCKS];
    const int64_t count = blocks_seen(p, tile, blocks, n, seen);
    tile_work w = {p, &turn, tile, NULL, NULL, NULL, AMX_ROWS};
    void *s;

    (void)careful;
    if (count == 0)
        return;
    if (p->dim_v > TURNS / 2 * AMX_ROWS)
        w.columns = 2 * AMX_ROWS;
    scores_of_block(p, tile, &seen[0], turn.s);
    for (int64_t b = 0; b < count; b++) {
        w.next = b + 1 < count ? &seen[b + 1] : NULL;
        w.last = forward_block(&w, u, &seen[b]) ? &seen[b] : NULL;
        w.last_parts = turn.p_parts;
        turn.p_parts = turn.next_parts;
        turn.next_parts = w.last_parts;
        s = turn.s;
        turn.s = turn.next_s;
        turn.next_s = s;
    }
    if (w.last)
        values_of_block(p, &turn, tile, w.last, w.last_parts, 0);
}
