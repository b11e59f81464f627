/* SPDX-License-Identifier: Apache-2.0
 *
 * dq of the unit's rows, and their shares of dsinks and dslopes. Each group of
 * keys is summed on its own; the groups' sums come from the dkv kernel, or are
 * formed here where it left none. */

/* Tiles [t0, t1) against the keys of one group that they see. */
static void dq_sweep_group(const attn__problem *p, const attn__unit *u,
                           const attn__sequence *seq, const attn__slot *slot,
                           size_t t0, size_t t1, attn__interval group,
                           bool careful)
{
    for (int64_t j0 = group.lo; j0 < group.hi; j0 += ATTN__BLOCK_KEYS) {
        const key_block block =
            gradient_load_keys(p, u, seq, slot, j0, seq->len_k, 0, true);

        for (size_t t = t0; t < t1; t++) {
            attn__tile *tile = &slot->tiles[t];
            const key_block part = keys_clip(&block, tile->any);

            if (part.n == 0)
                continue;
            gradient_block(p, u, slot, tile, &part,
                           (gradient_request){
                               0, p->row_dslopes ? tile->dslope : NULL,
                               careful, false});
            gradient_add_dq(p, slot, &part, 0, tile->acc, careful);
        }
    }
}

/* dq and dslope of tiles [t0, t1), before the scale. */
static void dq_sweep(const attn__problem *p, const attn__unit *u,
                     const attn__sequence *seq, const attn__slot *slot,
                     size_t t0, size_t t1, bool careful)
{
    const int64_t keys = attn__group_keys(seq->len_k);
    attn__interval any = {INT64_MAX, 0};

    for (size_t t = t0; t < t1; t++) {
        attn__tile *tile = &slot->tiles[t];

        panel_zero(tile->dq, p->dim_qk * TILE_ROWS);
        panel_zero(tile->dslope_total, TILE_ROWS);
        any.lo = attn__min_i64(any.lo, tile->any.lo);
        any.hi = attn__max_i64(any.hi, tile->any.hi);
    }
    for (int64_t first = any.lo / keys * keys; first < any.hi;
         first += keys) {
        const attn__interval group = {
            attn__max_i64(first,
                          any.lo / ATTN__BLOCK_KEYS * ATTN__BLOCK_KEYS),
            attn__min_i64(first + keys, any.hi)};

        for (size_t t = t0; t < t1; t++) {
            panel_zero(slot->tiles[t].acc, p->dim_qk * TILE_ROWS);
            panel_zero(slot->tiles[t].dslope, TILE_ROWS);
        }
        dq_sweep_group(p, u, seq, slot, t0, t1, group, careful);
        for (size_t t = t0; t < t1; t++) {
            panel_add(slot->tiles[t].dq, slot->tiles[t].acc,
                      p->dim_qk * TILE_ROWS);
            panel_add(slot->tiles[t].dslope_total, slot->tiles[t].dslope,
                      TILE_ROWS);
        }
    }
}

/* The same from what the dkv kernel left. */
static void dq_sum_shares(const attn__problem *p, const attn__unit *u,
                          const attn__sequence *seq, attn__tile *tile,
                          int64_t r0)
{
    const int64_t groups = attn__key_groups(seq->len_k);
    const int64_t step = share_size(p);
    const REAL *share = (const REAL *)u->shares + r0 * share_row(p);

    panel_zero(tile->dq, p->dim_qk * TILE_ROWS);
    panel_zero(tile->dslope_total, TILE_ROWS);
    for (int64_t g = 0; g < groups; g++, share += step) {
        panel_add(tile->dq, share, p->dim_qk * TILE_ROWS);
        if (p->row_dslopes)
            panel_add(tile->dslope_total, share + p->dim_qk * TILE_ROWS,
                      TILE_ROWS);
    }
}

/* Lanes of a vector of a panel [dim][lane] that hold an infinity or a NaN. */
static inline VM lanes_not_finite(const REAL *panel, int64_t dim)
{
    VM odd = v_ne(v_set1(0), v_set1(0));

    for (int64_t c = 0; c < dim; c++) {
        const V x = v_load(panel + c * TILE_ROWS);

        odd = odd | v_ne(x - x, v_set1(0));
    }
    return odd;
}

/* A tile once more, pair by pair; of that, the lanes that were not finite. */
static void dq_redo(const attn__problem *p, const attn__unit *u,
                    const attn__sequence *seq, const attn__slot *slot,
                    size_t t)
{
    REAL *dq = slot->tiles[t].dq, *kept = slot->kept;

    memcpy(kept, dq, (size_t)p->dim_qk * (size_t)TILE_ROWS * sizeof *dq);
    dq_sweep(p, u, seq, slot, t, t + 1, true);
    for (ptrdiff_t v = 0; v < TILE_ROWS; v += LANES) {
        const VM odd = lanes_not_finite(kept + v, p->dim_qk);

        for (int64_t at = v; at < p->dim_qk * TILE_ROWS; at += TILE_ROWS)
            v_store(dq + at, v_select(odd, v_load(dq + at), v_load(kept + at)));
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
            p->row_dslopes[row] = (double)((REAL *)tile->dslope_total)[lane];
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

/* Whether dq and dslope are free of infinities and NaNs. */
static bool dq_is_finite(const attn__problem *p, const attn__tile *tile)
{
    return panel_is_finite(tile->dq, p->dim_qk * TILE_VECTORS) &&
           panel_is_finite(tile->dslope_total, TILE_VECTORS);
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
        attn__tile *tile = &slot.tiles[n++];

        tile_place(tile, p, u, &seq, r0);
        if (u->shares)
            dq_sum_shares(p, u, &seq, tile, r0);
        if (!u->shares || p->row_dsinks || !dq_is_finite(p, tile))
            gradient_load(p, u, &seq, &slot, tile);
    }
    if (!u->shares)
        dq_sweep(p, u, &seq, &slot, 0, n, false);
    for (size_t t = 0; t < n; t++) {
        attn__tile *tile = &slot.tiles[t];

        if (!dq_is_finite(p, tile))
            dq_redo(p, u, &seq, &slot, t);
        panel_scale(tile->dq, p->dim_qk * TILE_ROWS, (REAL)p->scale);
        if (p->dq.data)
            tile_unpack(tile->dq, tile, &p->dq, u->b, seq.q_start,
                        p->dim_qk);
        dq_store_rows(p, u, &seq, tile);
    }
    products_end();
}
