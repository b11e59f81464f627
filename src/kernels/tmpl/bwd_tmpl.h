/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward. Scores are formed again with the forward's bits; then, with
 * delta_i = sum_c do_ic o_ic - dlse_i,
 *
 *   p  = e^(s - lse)            dp = do v^T (times the dropout factor)
 *   ds = p (dp - delta)         and by the raw score: ds * d softcap
 *   dq = scale ds k    dk = scale ds^T q    dv = (dropout(p))^T do
 *   dslope = -sum ds |p - j|    dsink = -e^(sink - lse) delta
 *
 * Three kernels over the same block step: dq owns rows, dkv owns keys, dbias
 * owns elements of the bias. A pair that is hidden contributes nothing,
 * whatever it holds: as in forward, a result that comes out non-finite is
 * computed again with hidden pairs left out one by one. */

/* sum_c d_o_c o_c of each lane, term by term as the product sums dp: where one
 * key has all the weight o is its v, and dp - delta then is 0 instead of what
 * two ways of rounding leave. o_c = 0 exactly is a row without values: d_o does
 * not count there. */
static void gradient_delta(const attn__problem *p, const attn__unit *u,
                           const attn__sequence *seq, const attn__slot *slot,
                           const attn__tile *tile)
{
    attn__view part = p->o;
    REAL *o = slot->dp;

    panel_zero(tile->delta, TILE_ROWS);
    for (int64_t c0 = 0; c0 < p->dim_v; c0 += ATTN__BLOCK_KEYS) {
        const int64_t n = attn__min_i64(ATTN__BLOCK_KEYS, p->dim_v - c0);
        const REAL *d_o = (const REAL *)tile->d_o + c0 * TILE_ROWS;

        part.data = (const char *)((const ELEM *)(const void *)p->o.data +
                                   c0 * p->o.stride[3]);
        tile_pack(o, tile, &part, u->b, seq->q_start, n);
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
            REAL *delta = (REAL *)tile->delta + v * LANES;
            V sum = v_load(delta);

            for (ptrdiff_t at = v * LANES; at < n * TILE_ROWS; at += TILE_ROWS)
                sum = v_select(v_eq(v_load(o + at), v_set1(0)), sum,
                               v_fma(v_load(o + at), v_load(d_o + at), sum));
            v_store(delta, sum);
        }
    }
}

/* Steps of 1 in the larger part of an lse, if that holds them: then s - high is
 * either exact or loses what (s - high) + high shows. */
#define LSE_STEPS 256

/* lse as high + low, to more digits than a REAL has. */
static void split_lse(double lse, REAL *high, REAL *low)
{
    const double coarse = rint(lse * LSE_STEPS) / LSE_STEPS;

    *high = (REAL)coarse;
    *low = isfinite(lse) ? (REAL)(lse - (double)*high) : 0;
}

/* lse as the sum of two REALs, +inf for an empty row, so that p = 0; and dlse
 * into delta. */
static void gradient_stats(const attn__problem *p, const attn__unit *u,
                           const attn__sequence *seq, attn__tile *tile)
{
    REAL *delta = tile->delta;

    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++) {
        const int64_t h = tile->h[lane], row = seq->q_start + tile->i[lane];
        double lse = read_any(p->lse.data, p->lse.dtype,
                              u->b * p->lse.stride[0] +
                                  h * p->lse.stride[1] +
                                  row * p->lse.stride[2]);

        if (p->dlse.data && lse != (double)-INFINITY)
            delta[lane] = (REAL)((double)delta[lane] -
                                 read_any(p->dlse.data, p->dlse.dtype,
                                          u->b * p->dlse.stride[0] +
                                              h * p->dlse.stride[1] +
                                              row * p->dlse.stride[2]));
        if (lse == (double)-INFINITY)
            lse = (double)INFINITY;
        split_lse(lse, (REAL *)tile->lse_high + lane,
                  (REAL *)tile->lse_low + lane);
    }
}

/* Panels and statistics of a tile that has been placed. */
static void gradient_load(const attn__problem *p, const attn__unit *u,
                          const attn__sequence *seq, const attn__slot *slot,
                          attn__tile *tile)
{
    tile_pack(tile->q, tile, &p->q, u->b, seq->q_start, p->dim_qk);
    tile_prepare(p, tile);
    tile_pack(tile->d_o, tile, &p->d_o, u->b, seq->q_start, p->dim_v);
    gradient_delta(p, u, seq, slot, tile);
    gradient_stats(p, u, seq, tile);
}

/* e^(s - lse), from the two parts of lse. Where weights are level, s - lse is
 * -ln n, and its rounding would make all of a row's weights too large or too
 * small alike: so what it takes is given back. */
static inline V gradient_weight(V s, V high, V low)
{
    const V x = s - high;

    return v_exp_sum(x, (s - (x + high)) - low);
}

/* From scores in slot->s and dp in slot->dp: the weights that met v in
 * slot->p, and ds in slot->s. */
static void gradient_combine(const attn__problem *p, const attn__unit *u,
                             const attn__slot *slot, const attn__tile *tile,
                             const key_block *block, bool masked)
{
    REAL *s = slot->s, *weights = slot->p, *dp = slot->dp;

    if (p->dropout_p > 0)
        apply_dropout(p, u, tile, block, dp);
    for (int64_t j = 0; j < block->n; j++)
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
            const ptrdiff_t at = j * TILE_ROWS + v * LANES;
            const V high = v_load((const REAL *)tile->lse_high + v * LANES);
            const V low = v_load((const REAL *)tile->lse_low + v * LANES);
            const V delta = v_load((const REAL *)tile->delta + v * LANES);
            V weight = gradient_weight(v_load(s + at), high, low);
            V ds = weight * (v_load(dp + at) - delta);

            if (masked) {
                const VM seen =
                    v_mask_load((const REAL_INT *)slot->seen + at);

                weight = v_select(seen, weight, v_set1(0));
                ds = v_select(seen, ds, v_set1(0));
            }
            v_store(weights + at, weight);
            v_store(s + at, ds);
        }
    if (p->dropout_p > 0)
        apply_dropout(p, u, tile, block, weights);
}

/* Weights and ds of a tile against a block. Returns whether slot->seen holds
 * the visible pairs. */
static bool gradient_block(const attn__problem *p, const attn__unit *u,
                           const attn__slot *slot, const attn__tile *tile,
                           const key_block *block, bool careful)
{
    const product dp = {block->v, block->v_row, 1, tile->d_o, TILE_ROWS,
                        p->dim_v};
    const product_out out = {slot->dp, TILE_ROWS, NULL, 1};
    const bool masked =
        tile_scores(p, slot, tile, block,
                    (score_request){ATTN_STAGE_BIASED, true, careful, true});

    product_run(PRODUCT_SCALE, &dp, block->n, &out);
    gradient_combine(p, u, slot, tile, block, masked);
    return masked;
}

/* dslope of each lane grows by the block. */
static void gradient_slopes(const attn__slot *slot, const attn__tile *tile,
                            const key_block *block)
{
    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        REAL *total = (REAL *)tile->dslope + v * LANES;
        const V from = distance_from(tile, block->j0, v);
        V sum = v_set1(0);

        for (int64_t j = 0; j < block->n; j++)
            sum = v_fma(v_load((const REAL *)slot->s + j * TILE_ROWS +
                               v * LANES),
                        key_distance(from, j), sum);
        v_store(total, v_load(total) - sum);
    }
}

/* ds by the raw score: through the softcap. A hidden pair stays 0. */
static void gradient_bend(const attn__problem *p, const attn__slot *slot,
                          int64_t n, bool masked)
{
    REAL *s = slot->s;
    const REAL *bent = slot->bent;

    if (!(p->softcap > 0))
        return;
    for (ptrdiff_t at = 0; at < n * TILE_ROWS; at += LANES) {
        V ds = v_load(s + at) * v_load(bent + at);

        if (masked)
            ds = v_select(v_mask_load((const REAL_INT *)slot->seen + at),
                          ds, v_set1(0));
        v_store(s + at, ds);
    }
}

static void panel_scale(REAL *panel, int64_t n, REAL scale)
{
    for (int64_t at = 0; at < n; at += LANES)
        v_store(panel + at, v_load(panel + at) * v_set1(scale) + v_set1(0));
}

/* ------------------------------------------------------------------- dq */

static void dq_block(const attn__problem *p, const attn__unit *u,
                     const attn__slot *slot, attn__tile *tile,
                     const key_block *block, bool careful)
{
    const product keys = {block->k, 1,         block->k_row,
                          slot->s,  TILE_ROWS, block->n};
    const product_out out = {tile->acc, TILE_ROWS, NULL, 1};
    const bool masked = gradient_block(p, u, slot, tile, block, careful);

    if (p->row_dslopes)
        gradient_slopes(slot, tile, block);
    gradient_bend(p, slot, block->n, masked);
    if (careful)
        product_careful(PRODUCT_ADD, &keys, p->dim_qk, &out, slot->seen,
                        false);
    else
        product_run(PRODUCT_ADD, &keys, p->dim_qk, &out);
}

static void dq_sweep(const attn__problem *p, const attn__unit *u,
                     const attn__sequence *seq, const attn__slot *slot,
                     size_t t0, size_t t1, bool careful)
{
    attn__interval any = {INT64_MAX, 0};

    for (size_t t = t0; t < t1; t++) {
        attn__tile *tile = &slot->tiles[t];

        panel_zero(tile->acc, p->dim_qk * TILE_ROWS);
        panel_zero(tile->dslope, TILE_ROWS);
        any.lo = attn__min_i64(any.lo, tile->any.lo);
        any.hi = attn__max_i64(any.hi, tile->any.hi);
    }
    for (int64_t j0 = any.lo / ATTN__BLOCK_KEYS * ATTN__BLOCK_KEYS;
         j0 < any.hi; j0 += ATTN__BLOCK_KEYS) {
        const key_block block = keys_load(p, u, seq, slot, j0, seq->len_k, 0);

        for (size_t t = t0; t < t1; t++) {
            attn__tile *tile = &slot->tiles[t];
            const key_block part = keys_clip(&block, tile);

            if (part.n > 0)
                dq_block(p, u, slot, tile, &part, careful);
        }
    }
}

/* Each row's share of dslopes and dsinks. */
static void dq_store_rows(const attn__problem *p, const attn__unit *u,
                          const attn__sequence *seq, const attn__tile *tile)
{
    for (int64_t lane = 0; lane < tile->n; lane++) {
        const int64_t at = u->b * p->lse.stride[0] +
                           tile->h[lane] * p->lse.stride[1] +
                           (seq->q_start + tile->i[lane]) * p->lse.stride[2];
        const int64_t row = attn__row_sum_index(p, u->b, tile->h[lane],
                                                seq->q_start + tile->i[lane]);

        if (p->row_dslopes)
            p->row_dslopes[row] = (double)((REAL *)tile->dslope)[lane];
        if (p->row_dsinks) {
            const double sink =
                read_any(p->sinks.data, p->sinks.dtype,
                         tile->h[lane] * p->sinks.stride[3]);
            const double lse = read_any(p->lse.data, p->lse.dtype, at);

            p->row_dsinks[row] =
                sink == (double)-INFINITY
                    ? 0
                    : -attn__exp(sink - lse) *
                          (double)((REAL *)tile->delta)[lane];
        }
    }
}

void KERNEL(dq)(const attn__problem *p, const attn__unit *u, void *memory)
{
    const attn__sequence seq = attn__sequence_of(p, u->b);
    attn__arena arena = {memory, 0, false};
    attn__slot slot;
    size_t n = 0;

    attn__dq_slot(&arena, &slot, tile_shape, (size_t)p->macro_rows,
                  (size_t)p->dim_qk, (size_t)p->dim_v);
    products_begin();
    for (int64_t r0 = u->row0; r0 < u->row1; r0 += TILE_ROWS) {
        tile_place(&slot.tiles[n], p, u, &seq, r0);
        gradient_load(p, u, &seq, &slot, &slot.tiles[n++]);
    }
    dq_sweep(p, u, &seq, &slot, 0, n, false);
    for (size_t t = 0; t < n; t++) {
        attn__tile *tile = &slot.tiles[t];

        if (!panel_is_finite(tile->acc, p->dim_qk * TILE_VECTORS) ||
            !panel_is_finite(tile->dslope, TILE_VECTORS))
            dq_sweep(p, u, &seq, &slot, t, t + 1, true);
        panel_scale(tile->acc, p->dim_qk * TILE_ROWS, (REAL)p->scale);
        if (p->dq.data)
            tile_unpack(tile->acc, tile, &p->dq, u->b, seq.q_start,
                        p->dim_qk);
        dq_store_rows(p, u, &seq, tile);
    }
    products_end();
}

/* --------------------------------------------------------------- dk, dv */

/* Columns of a row panel: whole tiles. */
static inline int64_t pad(int64_t dim)
{
    return (int64_t)attn__padded((size_t)dim, (size_t)TILE_ROWS);
}

/* rows[lane][c], columns up to `padded` zero, from a panel. */
static void tile_transpose(REAL *rows, const REAL *panel, int64_t dim,
                           int64_t padded)
{
    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++)
        for (int64_t c = 0; c < padded; c++)
            rows[lane * padded + c] =
                c < dim ? panel[c * TILE_ROWS + lane] : 0;
}

/* out[key][c] += sum over lanes of a[key][lane] rows[lane][c]. */
static void dkv_add(const REAL *a, const REAL *rows, int64_t padded,
                    REAL *out, const attn__tile *tile, int64_t n,
                    const REAL_INT *seen)
{
    for (int64_t c = 0; c < padded; c += TILE_ROWS) {
        const product sum = {a, TILE_ROWS, 1, rows + c, padded, tile->n};
        const product_out to = {out + c, padded, NULL, 1};

        if (seen)
            product_careful(PRODUCT_ADD, &sum, n, &to, seen, true);
        else
            product_run(PRODUCT_ADD, &sum, n, &to);
    }
}

static void dkv_block(const attn__problem *p, const attn__unit *u,
                      const attn__slot *slot, const attn__tile *tile,
                      const key_block *block, bool careful)
{
    const int64_t key = block->j0 - u->key0;
    const REAL_INT *seen = careful ? slot->seen : NULL;
    const bool masked = gradient_block(p, u, slot, tile, block, careful);

    if (p->dv.data)
        dkv_add(slot->p, tile->do_rows, pad(p->dim_v),
                (REAL *)slot->dv + key * pad(p->dim_v), tile, block->n, seen);
    gradient_bend(p, slot, block->n, masked);
    if (p->dk.data)
        dkv_add(slot->s, tile->q_rows, pad(p->dim_qk),
                (REAL *)slot->dk + key * pad(p->dim_qk), tile, block->n, seen);
}

/* Add what all rows of one sequence give to keys [key0, key1) of the unit. */
static void dkv_sweep(const attn__problem *p, const attn__unit *u,
                      const attn__slot *slot, bool careful)
{
    const attn__sequence seq = attn__sequence_of(p, u->b);
    const int64_t rows = seq.len_q * p->group;
    attn__tile *tile = &slot->tiles[0];
    key_block blocks[ATTN__KEYS_PER_UNIT / ATTN__BLOCK_KEYS];
    int64_t loaded = 0; /* blocks, a bit each: none that no row sees */

    for (int64_t r0 = 0; r0 < rows; r0 += TILE_ROWS) {
        attn__unit part = *u;

        part.row1 = rows;
        tile_place(tile, p, &part, &seq, r0);
        if (attn__classify(tile->any, tile->all, u->key0, u->key1) ==
            ATTN__BLOCK_EMPTY)
            continue;
        gradient_load(p, u, &seq, slot, tile);
        tile_transpose(tile->q_rows, tile->q, p->dim_qk, pad(p->dim_qk));
        tile_transpose(tile->do_rows, tile->d_o, p->dim_v, pad(p->dim_v));
        for (int64_t j0 = u->key0; j0 < u->key1; j0 += ATTN__BLOCK_KEYS) {
            const int64_t j1 =
                attn__min_i64(j0 + ATTN__BLOCK_KEYS, u->key1);
            const int64_t place = (j0 - u->key0) / ATTN__BLOCK_KEYS;
            key_block block;

            if (attn__classify(tile->any, tile->all, j0, j1) ==
                ATTN__BLOCK_EMPTY)
                continue;
            if (!(loaded >> place & 1))
                blocks[place] = keys_load(p, u, &seq, slot, j0, j1, place);
            loaded |= (int64_t)1 << place;
            block = keys_clip(&blocks[place], tile);
            dkv_block(p, u, slot, tile, &block, careful);
        }
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

/* Rows [key0, key1) of an accumulator into dk or dv. */
static void dkv_store(const attn__problem *p, const attn__target *out,
                      const attn__unit *u, const REAL *acc, int64_t dim)
{
    const bool paged = p->block_table.data;
    /* A page is nobody's: there may be no sequence at all. */
    const int64_t start = paged ? 0 : attn__sequence_of(p, u->b).k_start;
    const int64_t first = paged ? u->page : u->b;

    for (int64_t j = u->key0; j < u->key1; j++) {
        ELEM *row = (ELEM *)(void *)out->data + first * out->stride[0] +
                    u->kv_head * out->stride[1] +
                    (start + j) * out->stride[2];

        for (int64_t c = 0; c < dim; c++)
            row[c * out->stride[3]] =
                elem_round(acc[(j - u->key0) * pad(dim) + c]);
    }
}

void KERNEL(dkv)(const attn__problem *p, const attn__unit *u, void *memory)
{
    const int64_t keys = u->key1 - u->key0;
    attn__arena arena = {memory, 0, false};
    attn__slot slot;

    attn__dkv_slot(&arena, &slot, tile_shape, (size_t)p->dim_qk,
                   (size_t)p->dim_v);
    products_begin();
    dkv_accumulate(p, u, &slot, false);
    if (!panel_is_finite(slot.dk, keys * pad(p->dim_qk) / LANES) ||
        !panel_is_finite(slot.dv, keys * pad(p->dim_v) / LANES))
        dkv_accumulate(p, u, &slot, true);
    products_end();
    panel_scale(slot.dk, keys * pad(p->dim_qk), (REAL)p->scale);
    panel_scale(slot.dv, keys * pad(p->dim_v), 1);
    if (p->dk.data)
        dkv_store(p, &p->dk, u, slot.dk, p->dim_qk);
    if (p->dv.data)
        dkv_store(p, &p->dv, u, slot.dv, p->dim_v);
}

/* ---------------------------------------------------------------- dbias */

/* Add a tile's ds to the sums, folding lanes or keys where the bias is
 * broadcast over them. */
static void dbias_fold(const attn__problem *p, const attn__slot *slot,
                       const attn__tile *tile, int64_t n)
{
    const bool one_row = p->bias_shape[2] == 1, one_key = p->bias_shape[3] == 1;
    const REAL *ds = slot->s;

    for (int64_t lane = 0; lane < tile->n; lane++)
        for (int64_t j = 0; j < n; j++)
            slot->sums[(one_key ? 0 : j) * TILE_ROWS + (one_row ? 0 : lane)] +=
                (double)ds[j * TILE_ROWS + lane];
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
            block = keys_load(p, &u, &seq, slot, j0, key1, 0);
            gradient_block(p, &u, slot, tile, &block, true);
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
