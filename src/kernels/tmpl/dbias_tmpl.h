/* SPDX-License-Identifier: Apache-2.0
 *
 * dbias: ds by the biased score, summed in fp64 over all that the bias was
 * broadcast to. */

/* Add a tile's ds to the sums, folding lanes or keys where the bias is
 * broadcast over them. */
static void dbias_fold(const attn__problem *p, const attn__slot *slot,
                       const attn__tile *tile, int64_t n)
{
    const bool one_row = p->bias_shape[2] == 1, one_key = p->bias_shape[3] == 1;
    const REAL *ds = slot->ds;

    for (int64_t lane = 0; lane < tile->n; lane++)
        for (int64_t j = 0; j < n; j++)
            slot->sums[(one_key ? 0 : j) * TILE_ROWS + (one_row ? 0 : lane)] +=
                (double)ds[j * SUM_ROWS + lane];
}

/* Everything that batch b and head h add to the unit's elements. */
static void dbias_head(const attn__problem *p, const attn__unit *owner,
                       const attn__slot *slot, int64_t b, int64_t h)
{
    const attn__sequence seq = attn__sequence_of(p, b);
    const int64_t key1 = attn__min_i64(owner->key1, seq.len_k);
    attn__unit u = *owner;
    attn__tile *tile = &slot->tiles[0];

    u.b = b;
    u.head0 = h;
    u.kv_head = h / p->group;
    u.n_heads = 1;
    for (int64_t r0 = u.row0; r0 < u.row1; r0 += TILE_ROWS) {
        tile_place(tile, p, &u, &seq, r0);
        gradient_load(p, &u, &seq, slot, tile);
        for (int64_t j0 = u.key0; j0 < key1; j0 += ATTN__BLOCK_KEYS) {
            key_block block;

            if (attn__classify(tile->any, tile->all, j0,
                               attn__min_i64(j0 + ATTN__BLOCK_KEYS, key1)) ==
                ATTN__BLOCK_EMPTY)
                continue;
            block = gradient_load_keys(p, &u, &seq, slot, j0, key1, 0, false);
            gradient_block(p, &u, slot, tile, &block,
                           (gradient_request){0, NULL, true, true});
            dbias_fold(p, slot, tile, block.n);
        }
    }
}

/* The unit owns rows [row0, row1) (all, where broadcast) and keys [key0,
 * key1) (all, where broadcast) of the bias of batch b and head head0. */
void KERNEL(dbias)(const attn__problem *p, const attn__unit *u, void *memory)
{
    const bool one_batch = p->bias_shape[0] == 1;
    const bool one_head = p->bias_shape[1] == 1;
    const int64_t rows = p->bias_shape[2] == 1 ? 1 : u->row1 - u->row0;
    const int64_t keys = p->bias_shape[3] == 1 ? 1 : u->key1 - u->key0;
    attn__arena arena = {memory, 0, false};
    attn__slot slot;

    attn__dbias_slot(&arena, &slot, tile_shape, (size_t)p->dim_qk,
                     (size_t)p->dim_v);
    memset(slot.sums, 0,
           ATTN__BLOCK_KEYS * (size_t)TILE_ROWS * sizeof(double));
    products_begin();
    for (int64_t b = one_batch ? 0 : u->b;
         b < (one_batch ? p->batch : u->b + 1); b++)
        for (int64_t h = one_head ? 0 : u->head0;
             h < (one_head ? p->heads_q : u->head0 + 1); h++)
            dbias_head(p, u, &slot, b, h);
    products_end();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++)
            write_any(p->dbias.data, p->dbias.dtype,
                      u->b * p->dbias.stride[0] +
                          u->head0 * p->dbias.stride[1] +
                          (p->bias_shape[2] == 1 ? 0 : u->row0 + i) *
                              p->dbias.stride[2] +
                          (p->bias_shape[3] == 1 ? 0 : u->key0 + j) *
                              p->dbias.stride[3],
                      slot.sums[j * TILE_ROWS + i]);
}
