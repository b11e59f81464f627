/* SPDX-License-Identifier: Apache-2.0
 *
 * dk and dv of the unit's keys, a few blocks at a time; and, where the unit has
 * memory for it, what these keys give to dq. */

/* out[key][c] += the sum, for n keys; `careful`: of visible pairs only. */
static void dkv_add(const attn__problem *p, const attn__slot *slot,
                    const row_sum *x, REAL *out, int64_t n, bool careful)
{
    if (!careful) {
        dkv_product(p, slot, x, out, n);
        return;
    }
    for (int64_t c = 0; c < x->padded; c += TILE_ROWS) {
        const product sum = row_terms(x, c);
        const product_out to = {out + c, x->padded, NULL, 1, false};

        product_careful(PRODUCT_ADD, &sum, n, &to, slot->visible, true);
    }
}

/* The rows that are summed together: where they begin among all rows of the KV
 * head, how many, what they see. */
typedef struct row_group {
    int64_t r0, n;
    attn__interval any;
} row_group;

/* Their tiles, ready for blocks; without panels where none of them sees any of
 * `keys`. */
static row_group dkv_load_rows(const attn__problem *p, const attn__unit *u,
                               const attn__sequence *seq,
                               const attn__slot *slot, int64_t r0,
                               attn__interval keys)
{
    const int64_t rows = seq->len_q * p->group;
    row_group group = {r0, attn__min_i64(SUM_ROWS, rows - r0),
                       {INT64_MAX, 0}};
    attn__unit all = *u;

    all.row1 = rows;
    for (int64_t t = 0; t * TILE_ROWS < group.n; t++) {
        attn__tile *tile = &slot->tiles[t];

        tile_place(tile, p, &all, seq, r0 + t * TILE_ROWS);
        group.any.lo = attn__min_i64(group.any.lo, tile->any.lo);
        group.any.hi = attn__max_i64(group.any.hi, tile->any.hi);
    }
    group.any.lo = attn__max_i64(group.any.lo, keys.lo);
    group.any.hi = attn__min_i64(group.any.hi, keys.hi);
    for (int64_t t = 0; t * TILE_ROWS < group.n; t++) {
        attn__tile *tile = &slot->tiles[t];

        if (group.any.lo >= group.any.hi)
            break;
        gradient_load(p, u, seq, slot, tile);
        rows_load((REAL *)slot->q_rows + t * TILE_ROWS * pad(p->dim_qk),
                  tile, &p->q, u->b, seq->q_start, p->dim_qk);
        rows_load((REAL *)slot->do_rows + t * TILE_ROWS * pad(p->dim_v),
                  tile, &p->d_o, u->b, seq->q_start, p->dim_v);
    }
    if (group.any.lo < group.any.hi)
        gradient_prepare_rows(p, slot, group.n);
    return group;
}

/* Where tile t of a row group adds what it gives to dq. */
static REAL *dkv_share(const attn__problem *p, const attn__unit *u,
                       const row_group *rows, int64_t t)
{
    return (REAL *)u->shares + (rows->r0 + t * TILE_ROWS) * share_row(p);
}

/* Rows of a sequence that are summed on their own before they join dk and dv,
 * but for the first so many: what a sum loses grows with its length. */
#define RUN_ROWS 512

static void dkv_block(const attn__problem *p, const attn__unit *u,
                      const attn__slot *slot, const row_group *rows,
                      const key_block *block, bool careful)
{
    const int64_t key = block->j0 - u->key0;
    const bool first = rows->r0 < RUN_ROWS;
    const row_sum weights = {slot->p, slot->do_rows, slot->do_row_parts,
                             slot->tiles->odd_do, rows->n, pad(p->dim_v)};
    const row_sum ds = {slot->ds, slot->q_rows, slot->q_row_parts,
                        slot->tiles->odd_q, rows->n, pad(p->dim_qk)};

    for (int64_t t = 0; t * TILE_ROWS < rows->n; t++) {
        REAL *share =
            u->shares && !careful ? dkv_share(p, u, rows, t) : NULL;

        gradient_block(p, u, slot, &slot->tiles[t], block,
                       (gradient_request){
                           t * TILE_ROWS,
                           share && p->row_dslopes
                               ? share + p->dim_qk * TILE_ROWS
                               : NULL,
                           careful, false});
        if (share)
            gradient_add_dq(p, slot, block, t * TILE_ROWS, share, false);
    }
    if (p->dv.data)
        dkv_add(p, slot, &weights,
                (REAL *)(first ? slot->dv : slot->dv_run) +
                    key * weights.padded,
                block->n, careful);
    if (p->dk.data)
        dkv_add(p, slot, &ds,
                (REAL *)(first ? slot->dk : slot->dk_run) + key * ds.padded,
                block->n, careful);
}

/* dk and dv get what a run of rows has given. */
static void dkv_join(const attn__problem *p, const attn__unit *u,
                     const attn__slot *slot)
{
    const int64_t keys = u->key1 - u->key0;

    panel_add(slot->dk, slot->dk_run, keys * pad(p->dim_qk));
    panel_add(slot->dv, slot->dv_run, keys * pad(p->dim_v));
}

/* Add what all rows of one sequence give to keys [key0, key1) of the unit. */
static void dkv_sweep(const attn__problem *p, const attn__unit *u,
                      const attn__slot *slot, bool careful)
{
    const attn__sequence seq = attn__sequence_of(p, u->b);
    const attn__interval keys = {u->key0, attn__min_i64(u->key1, seq.len_k)};
    const int64_t rows = keys.lo < keys.hi ? seq.len_q * p->group : 0;
    key_block blocks[ATTN__KEYS_PER_UNIT / ATTN__BLOCK_KEYS];
    int64_t loaded = 0; /* blocks, a bit each: none that no row sees */

    for (int64_t r0 = 0; r0 < rows; r0 += SUM_ROWS) {
        const row_group group = dkv_load_rows(p, u, &seq, slot, r0, keys);

        if (r0 >= RUN_ROWS && r0 % RUN_ROWS == 0) {
            panel_zero(slot->dk_run, (u->key1 - u->key0) * pad(p->dim_qk));
            panel_zero(slot->dv_run, (u->key1 - u->key0) * pad(p->dim_v));
        }
        for (int64_t j0 = keys.lo; j0 < group.any.hi;
             j0 += ATTN__BLOCK_KEYS) {
            const int64_t place = (j0 - u->key0) / ATTN__BLOCK_KEYS;
            key_block block;

            if (j0 + ATTN__BLOCK_KEYS <= group.any.lo)
                continue;
            if (!(loaded >> place & 1))
                blocks[place] = gradient_load_keys(
                    p, u, &seq, slot, j0,
                    attn__min_i64(j0 + ATTN__BLOCK_KEYS, keys.hi), place,
                    u->shares);
            loaded |= (int64_t)1 << place;
            block = keys_clip(&blocks[place], group.any);
            if (block.n > 0)
                dkv_block(p, u, slot, &group, &block, careful);
        }
        if (r0 >= RUN_ROWS &&
            ((r0 + SUM_ROWS) % RUN_ROWS == 0 || r0 + SUM_ROWS >= rows))
            dkv_join(p, u, slot);
    }
}

/* Keys [key0, key1) of a page: what every sequence gives that holds it. */
static void dkv_sweep_page(const attn__problem *p, const attn__unit *u,
                           const attn__slot *slot, bool careful)
{
    const attn__view *table = &p->block_table;

    for (int64_t b = 0; b < p->batch; b++) {
        const int64_t len_k = attn__sequence_of(p, b).len_k;
        attn__unit part = *u;

        part.b = b;
        for (int64_t t = 0; t * p->page_size + u->key0 < len_k; t++) {
            if (attn__load_index(table->data, table->dtype,
                                 b * table->stride[2] +
                                     t * table->stride[3]) != u->page)
                continue;
            part.key0 = t * p->page_size + u->key0;
            part.key1 = attn__min_i64(t * p->page_size + u->key1, len_k);
            dkv_sweep(p, &part, slot, careful);
        }
    }
}

static void dkv_accumulate(const attn__problem *p, const attn__unit *u,
                           const attn__slot *slot, bool careful)
{
    panel_zero(slot->dk, ATTN__KEYS_PER_UNIT * pad(p->dim_qk));
    panel_zero(slot->dv, ATTN__KEYS_PER_UNIT * pad(p->dim_v));
    if (p->block_table.data)
        dkv_sweep_page(p, u, slot, careful);
    else
        dkv_sweep(p, u, slot, careful);
}

/* Sums of those keys of the unit whose `odd` is `which`, times scale, into dk
 * or dv. */
static void dkv_store(const attn__problem *p, const attn__target *out,
                      const attn__unit *u, REAL *sums, int64_t dim, REAL scale,
                      const bool *odd, bool which)
{
    const bool paged = p->block_table.data;
    /* A page is nobody's: there may be no sequence at all. */
    const int64_t start = paged ? 0 : attn__sequence_of(p, u->b).k_start;
    const int64_t first = paged ? u->page : u->b;

    for (int64_t j = u->key0; out->data && j < u->key1; j++) {
        REAL *sum = sums + (j - u->key0) * pad(dim);
        ELEM *row = (ELEM *)(void *)out->data + first * out->stride[0] +
                    u->kv_head * out->stride[1] +
                    (start + j) * out->stride[2];

        if (odd[j - u->key0] != which)
            continue;
        panel_scale(sum, pad(dim), scale);
        for (int64_t c = 0; c < dim; c++)
            row[c * out->stride[3]] = elem_round(sum[c]);
    }
}

static void dkv_store_keys(const attn__problem *p, const attn__unit *u,
                           const attn__slot *slot, const bool *odd,
                           bool which)
{
    dkv_store(p, &p->dk, u, slot->dk, p->dim_qk, (REAL)p->scale, odd, which);
    dkv_store(p, &p->dv, u, slot->dv, p->dim_v, 1, odd, which);
}

/* dk and dv of keys [key0, key1) of the unit, as many as the slot holds. Only
 * keys whose sums are not finite are formed again. */
static void dkv_keys(const attn__problem *p, const attn__unit *u,
                     const attn__slot *slot)
{
    const int64_t qk = pad(p->dim_qk), v = pad(p->dim_v);
    bool odd[ATTN__KEYS_PER_UNIT], some = false;

    dkv_accumulate(p, u, slot, false);
    for (int64_t j = 0; j < u->key1 - u->key0; j++) {
        odd[j] = !panel_is_finite((REAL *)slot->dk + j * qk, qk / LANES) ||
                 !panel_is_finite((REAL *)slot->dv + j * v, v / LANES);
        some = some || odd[j];
    }
    dkv_store_keys(p, u, slot, odd, false);
    if (!some)
        return;
    dkv_accumulate(p, u, slot, true);
    dkv_store_keys(p, u, slot, odd, true);
}

void KERNEL(dkv)(const attn__problem *p, const attn__unit *u, void *memory)
{
    attn__arena arena = {memory, 0, false};
    attn__slot slot;

    attn__dkv_slot(&arena, &slot, tile_shape, (size_t)p->dim_qk,
                   (size_t)p->dim_v);
    if (u->shares)
        panel_zero(u->shares, share_size(p));
    products_begin();
    for (int64_t key = u->key0; key < u->key1; key += ATTN__KEYS_PER_UNIT) {
        attn__unit part = *u;

        part.key0 = key;
        part.key1 = attn__min_i64(key + ATTN__KEYS_PER_UNIT, u->key1);
        dkv_keys(p, &part, &slot);
    }
    products_end();
}
