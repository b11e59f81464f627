/* SPDX-License-Identifier: Apache-2.0
 *
 * The other products of backward by AMX tiles, operands in parts
 * (parts_tmpl.h):
 *
 *   dp^T [32 keys][32 rows]    = v [keys][dim_v]          by d_o^T
 *   dq^T [32 columns][32 rows] = k^T [columns][keys]      by ds^T
 *   dv   [32 keys][32 columns] = p^T [keys][rows]         by d_o
 *   dk   [32 keys][32 columns] = ds^T [keys][rows]        by q
 *
 * Weights and ds have as many parts as weights have in forward. Each product
 * is a sum of its own that vectors add to what was there: a block gives the
 * same to dq whoever sums it.
 *
 * What is odd goes by vectors: all of dp of an odd v, or d_o; the visible pairs
 * of an odd k, q or d_o, whose rows are 0 in the tiles. Results that overflow
 * are formed again without tiles, as at other levels, row by row. */

/* v by rows and, `for_dq`, k by columns. */
static void gradient_prepare_keys(const attn__problem *p,
                                  const attn__slot *slot, key_block *block,
                                  int64_t place, bool for_dq)
{
    block->v_parts = slot->v_parts + place * block_parts(p->dim_v);
    block->odd_v =
        rows_odd(block->v, block->v_row, block->n, p->dim_v, EVEN_BOTH);
    parts_of_rows(block->v_parts, keys_part(p->dim_v), block->v, block->v_row,
                  block->n, p->dim_v, 1, PARTS, true);
    if (!for_dq)
        return;
    block->k_columns = slot->k_columns + place * block_parts(p->dim_qk);
    block->odd_columns =
        rows_odd(block->k, block->k_row, block->n, p->dim_qk, EVEN_LEAST);
    parts_of_columns(block->k_columns, keys_part(p->dim_qk), block->k,
                     block->k_row, block->n, p->dim_qk, block->odd_columns, 1);
}

/* d_o as a panel. */
static void gradient_prepare_tile(const attn__problem *p, attn__tile *tile)
{
    parts_of_panel(tile->do_parts, panel_part(p->dim_v), tile->d_o, p->dim_v,
                   1, PARTS, true);
    lanes_odd(tile->odd_do, tile->d_o, p->dim_v, EVEN_BOTH);
    lanes_odd(tile->odd_q, tile->q, p->dim_qk, EVEN_LEAST);
}

static inline uint32_t lane_bits(const unsigned *odd)
{
    return odd[0] | odd[1] << LANES;
}

/* bf16s in one part of rows with so many columns. */
static inline ptrdiff_t rows_part(int64_t padded)
{
    return padded / LANES * AMX_TILE;
}

/* q and d_o as rows: SUM_TILES is 1 here, rows are the lanes of one tile. */
static void gradient_prepare_rows(const attn__problem *p,
                                  const attn__slot *slot, int64_t n)
{
    const int64_t qk = pad(p->dim_qk), v = pad(p->dim_v);

    parts_of_right(slot->q_row_parts, rows_part(qk), slot->q_rows, qk, n,
                   qk / LANES, lane_bits(slot->tiles->odd_q), 1, PARTS, true);
    parts_of_right(slot->do_row_parts, rows_part(v), slot->do_rows, v, n,
                   v / LANES, lane_bits(slot->tiles->odd_do), 1, PARTS, true);
}

/* Whether some product leaves pairs out that are then added one by one. */
static inline bool pairs_are_odd(const attn__tile *tile,
                                 const key_block *block)
{
    return block->odd_columns || lane_bits(tile->odd_q) ||
           lane_bits(tile->odd_do);
}

/* delta as a product of o with d_o, of which the diagonal: summed as dp is. */
static void gradient_delta(const attn__problem *p, const attn__unit *u,
                           const attn__sequence *seq, const attn__slot *slot,
                           const attn__tile *tile)
{
    const ptrdiff_t steps = steps_of(p->dim_v);
    REAL *rows = slot->product, *delta = tile->delta;
    uint32_t odd = lane_bits(tile->odd_do);

    rows_load(rows, tile, &p->o, u->b, seq->q_start, p->dim_v);
    odd |= (uint32_t)rows_odd(rows, pad(p->dim_v), TILE_ROWS, p->dim_v,
                              EVEN_BOTH);
    parts_of_rows(slot->o_parts, TILE_VECTORS * steps * AMX_TILE, rows,
                  pad(p->dim_v), TILE_ROWS, p->dim_v, 1, PARTS, true);
    if (odd)
        delta_by_vectors(p, u, seq, slot, tile);
    for (ptrdiff_t r = 0; r < TILE_ROWS; r += AMX_ROWS) {
        const tile_operand o = {slot->o_parts + r / AMX_ROWS * steps * AMX_TILE,
                                TILE_VECTORS * steps * AMX_TILE, AMX_TILE};
        const tile_operand d_o = {tile->do_parts, panel_part(p->dim_v),
                                  TILE_VECTORS * AMX_TILE};

        tiles_multiply(0, &o, &d_o, steps, SCORE_PAIRS, false, NULL, 0, false);
        tiles_store(0, rows);
        for (ptrdiff_t i = r; i < r + AMX_ROWS; i++)
            if (!(odd >> i & 1))
                delta[i] = rows[(i - r) * TILE_ROWS + i];
    }
}

/* slot->dp[key][lane] = v d_o. */
static void dp_product(const attn__problem *p, const attn__slot *slot,
                       const attn__tile *tile, const key_block *block)
{
    const panel_product x = {block->v,     block->v_row, block->v_parts,
                             block->odd_v, tile->d_o,    tile->do_parts,
                             tile->odd_do, p->dim_v,     1};

    panel_of_block(&x, block, slot->dp);
    panel_mend(&x, block, slot->dp, slot->bias /* no longer in use */);
}

/* to += sums / DS_SCALE, both [n][TILE_ROWS] within their rows. */
static inline void sums_add(REAL *to, ptrdiff_t row, const REAL *sums,
                            int64_t n)
{
    for (int64_t r = 0; r < n; r++)
        for (ptrdiff_t v = 0; v < TILE_ROWS; v += LANES)
            v_store(to + r * row + v,
                    v_fma(v_load(sums + r * TILE_ROWS + v),
                          v_set1(1 / DS_SCALE), v_load(to + r * row + v)));
}

/* panel[c][lane] += ds k, ds and `visible` [key][SUM_ROWS]. */
static void dq_product(const attn__problem *p, const attn__slot *slot,
                       const key_block *block, const REAL *ds,
                       const REAL_INT *visible, REAL *panel)
{
    const tile_operand right = weights_of(slot->p_parts);
    const ptrdiff_t steps = steps_of(block->n);
    REAL *sums = slot->product;

    if (weight_parts(p) == PARTS)
        parts_of_panel(slot->p_parts, right.part, ds, block->n, DS_SCALE,
                       PARTS, STORAGE == STORAGE_F32);
    else
        parts_of_panel(slot->p_parts, right.part, ds, block->n, DS_SCALE, 2,
                       false);
    for (int64_t c = 0; c < p->dim_qk; c += 2 * AMX_ROWS) {
        const tile_operand low =
            columns_of(block, block->k_columns, p->dim_qk, c);
        const tile_operand high =
            columns_of(block, block->k_columns, p->dim_qk, c + AMX_ROWS);

        weights_multiply(0, p, &low, &right, steps, false, NULL, 0, false);
        weights_multiply(1, p, &high, &right, steps, false, NULL, 0, false);
        tiles_store(0, sums + c * TILE_ROWS);
        tiles_store(1, sums + (c + AMX_ROWS) * TILE_ROWS);
    }
    sums_add(panel, TILE_ROWS, sums, p->dim_qk);
    panel_add_odd(panel, ds, visible, block->k, block->k_row, p->dim_qk, block,
                  block->odd_columns);
}

/* The visible pairs of odd rows into out[key][c]. */
static void dkv_add_odd(const attn__slot *slot, const row_sum *x, REAL *out,
                        int64_t n)
{
    const REAL_INT *visible = slot->visible;
    const uint32_t odd = lane_bits(x->odd);

    for (int64_t r = 0; odd && r < x->n_rows; r++)
        for (int64_t j = 0; (odd >> r & 1) && j < n; j++)
            for (int64_t c = 0; visible[j * SUM_ROWS + r] && c < x->padded;
                 c += LANES)
                v_store(out + j * x->padded + c,
                        v_fma(v_set1(x->a[j * SUM_ROWS + r]),
                              v_load(x->rows + r * x->padded + c),
                              v_load(out + j * x->padded + c)));
}

/* out[key][c] += the sum, for n keys. */
static void dkv_product(const attn__problem *p, const attn__slot *slot,
                        const row_sum *x, REAL *out, int64_t n)
{
    const ptrdiff_t part = keys_part(SUM_ROWS);
    REAL *sums = slot->product;

    if (weight_parts(p) == PARTS)
        parts_of_rows(slot->next_parts, part, x->a, SUM_ROWS, n, x->n_rows,
                      DS_SCALE, PARTS, STORAGE == STORAGE_F32);
    else
        parts_of_rows(slot->next_parts, part, x->a, SUM_ROWS, n, x->n_rows,
                      DS_SCALE, 2, false);
    for (int64_t c = 0; c < x->padded; c += TILE_ROWS) {
        const tile_operand right = {x->parts + c / LANES * AMX_TILE,
                                    rows_part(x->padded), 0};

        for (int64_t j = 0; j < n; j += 2 * AMX_ROWS) {
            const tile_operand low = {
                slot->next_parts + j / AMX_ROWS * AMX_TILE, part, 0};
            const tile_operand high = {low.at + AMX_TILE, part, 0};

            weights_multiply(0, p, &low, &right, 1, true, NULL, 0, false);
            weights_multiply(1, p, &high, &right, 1, true, NULL, 0, false);
            tiles_store(0, sums + j * TILE_ROWS);
            tiles_store(1, sums + (j + AMX_ROWS) * TILE_ROWS);
        }
        sums_add(out + c, x->padded, sums, n);
    }
    dkv_add_odd(slot, x, out, n);
}
