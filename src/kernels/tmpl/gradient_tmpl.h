/* SPDX-License-Identifier: Apache-2.0
 *
 * The step of every backward kernel. Scores are formed again with the forward's
 * bits; then, with
 * delta_i = sum_c do_ic o_ic - dlse_i,
 *
 *   p  = e^(s - lse)            dp = do v^T (times the dropout factor)
 *   ds = p (dp - delta)         and by the raw score: ds * d softcap
 *   dq = scale ds k    dk = scale ds^T q    dv = (dropout(p))^T do
 *   dslope = -sum ds |p - j|    dsink = -e^(sink - lse) delta
 *
 * A pair that is hidden contributes nothing, whatever it holds: as in forward,
 * a result that comes out non-finite is computed again with hidden pairs left
 * out one by one. */

/* Rows of q and d_o that dk and dv sum together, in tiles side by side: a sum
 * of few terms would cost more to begin and end than to form. */
#define SUM_ROWS ((ptrdiff_t)(ATTN__SUM_BYTES / sizeof(REAL)))
#define SUM_TILES (SUM_ROWS / TILE_ROWS)

/* Columns of a row panel: whole tiles. */
static inline int64_t pad(int64_t dim)
{
    return (int64_t)attn__padded((size_t)dim, (size_t)TILE_ROWS);
}

/* rows[lane][c] of a tile's rows of `view`, columns up to pad(dim) zero. */
static void rows_load(REAL *rows, const attn__tile *tile,
                      const attn__view *view, int64_t b, int64_t row_start,
                      int64_t dim)
{
    const int64_t step = view->stride[3];
    const int64_t whole = step == 1 ? dim / LANES * LANES : 0;

    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++) {
        const ELEM *from =
            elem_at(view, b, tile->h[lane], row_start + tile->i[lane]);
        REAL *row = rows + lane * pad(dim);
        int64_t c = 0;

        for (; c < whole; c += LANES)
            v_store(row + c, elems_load(from + c));
        for (; c < dim; c++)
            row[c] = elem_load(from[c * step]);
        for (; c < pad(dim); c++)
            row[c] = 0;
    }
}

/* What is summed over rows: a[key][row] rows[row][c]. */
typedef struct row_sum {
    const REAL *a;         /* [key][SUM_ROWS]: weights or ds */
    const REAL *rows;      /* [SUM_ROWS][padded]: d_o or q */
    const uint16_t *parts; /* of the rows, where products are by tiles */
    const unsigned *odd;   /* rows that have none, as lanes */
    int64_t n_rows, padded;
} row_sum;

/* The sum by vectors, for columns from c on. */
static inline product row_terms(const row_sum *x, int64_t c)
{
    return (product){x->a,      SUM_ROWS,  1, x->rows + c,
                     x->padded, x->n_rows};
}

/* ds k of a block by vectors, ds [key][SUM_ROWS]. */
static inline product dq_terms(const key_block *block, const REAL *ds)
{
    return (product){block->k, 1, block->k_row, ds, SUM_ROWS, block->n};
}

/* sum_c d_o_c o_c of each lane, term by term as the product sums dp: where one
 * key has all the weight o is its v, and dp - delta then is 0 instead of what
 * two ways of rounding leave. o_c = 0 exactly is a row without values: d_o does
 * not count there. */
static void delta_by_vectors(const attn__problem *p, const attn__unit *u,
                             const attn__sequence *seq,
                             const attn__slot *slot, const attn__tile *tile)
{
    attn__view part = p->o;
    REAL *o = slot->dp;

    panel_zero(tile->delta, TILE_ROWS);
    for (int64_t c0 = 0; c0 < p->dim_v; c0 += PRODUCT_STEPS) {
        const int64_t n = attn__min_i64(PRODUCT_STEPS, p->dim_v - c0);
        const REAL *d_o = (const REAL *)tile->d_o + c0 * TILE_ROWS;

        part.data = (const char *)((const ELEM *)(const void *)p->o.data +
                                   c0 * p->o.stride[3]);
        tile_pack(o, tile, &part, u->b, seq->q_start, n);
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
            REAL *delta = (REAL *)tile->delta + v * LANES;
            V sum = v_set1(0);

            for (ptrdiff_t at = v * LANES; at < n * TILE_ROWS; at += TILE_ROWS)
                sum = v_select(v_eq(v_load(o + at), v_set1(0)), sum,
                               v_fma(v_load(o + at), v_load(d_o + at), sum));
            v_store(delta, v_load(delta) + sum);
        }
    }
}

#if BY_TILES
#include "kernels/tmpl/gradient_by_tiles_tmpl.h"
#else
#include "kernels/tmpl/gradient_by_vectors_tmpl.h"
#endif

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
    gradient_prepare_tile(p, tile);
    gradient_delta(p, u, seq, slot, tile);
    gradient_stats(p, u, seq, tile);
}

/* A block of keys, ready for the products of backward: dq's too, or not. */
static key_block gradient_load_keys(const attn__problem *p,
                                    const attn__unit *u,
                                    const attn__sequence *seq,
                                    const attn__slot *slot, int64_t j0,
                                    int64_t j1, int64_t place, bool for_dq)
{
    key_block block = keys_load(p, u, seq, slot, j0, j1, place);

    gradient_prepare_keys(p, slot, &block, place, for_dq);
    return block;
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
 * slot->p, and ds in slot->ds, from column `first` on. */
static void gradient_combine(const attn__problem *p, const attn__unit *u,
                             const attn__slot *slot, const attn__tile *tile,
                             const key_block *block, ptrdiff_t first,
                             bool masked)
{
    const REAL *s = slot->s;
    REAL *dp = slot->dp;
    REAL *weights = (REAL *)slot->p + first, *out = (REAL *)slot->ds + first;

    if (p->dropout_p > 0)
        apply_dropout(p, u, tile, block, dp, TILE_ROWS);
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
            v_store(weights + j * SUM_ROWS + v * LANES, weight);
            v_store(out + j * SUM_ROWS + v * LANES, ds);
        }
    if (p->dropout_p > 0)
        apply_dropout(p, u, tile, block, weights, SUM_ROWS);
}

/* slot->seen of a tile to its columns of slot->visible. */
static void gradient_note(const attn__slot *slot, int64_t n, ptrdiff_t first)
{
    for (int64_t j = 0; j < n; j++)
        memcpy((REAL_INT *)slot->visible + j * SUM_ROWS + first,
               (const REAL_INT *)slot->seen + j * TILE_ROWS,
               (size_t)TILE_ROWS * sizeof(REAL_INT));
}

/* dslope of each lane, in `total`, grows by the block. */
static void gradient_slopes(const attn__slot *slot, const attn__tile *tile,
                            const key_block *block, ptrdiff_t first,
                            REAL *total)
{
    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        const REAL *ds = (const REAL *)slot->ds + first + v * LANES;
        const distance from = distance_from(tile, block->j0, v);
        V sum = v_set1(0);

        for (int64_t j = 0; j < block->n; j++)
            sum = v_fma(v_load(ds + j * SUM_ROWS), key_distance(from, j),
                        sum);
        v_store(total + v * LANES, v_load(total + v * LANES) - sum);
    }
}

/* ds by the raw score: through the softcap. A hidden pair stays 0. */
static void gradient_bend(const attn__slot *slot, int64_t n, ptrdiff_t first,
                          bool masked)
{
    for (int64_t j = 0; j < n; j++)
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
            const ptrdiff_t at = j * TILE_ROWS + v * LANES;
            REAL *out =
                (REAL *)slot->ds + j * SUM_ROWS + first + v * LANES;
            V ds = v_load(out) * v_load((const REAL *)slot->bent + at);

            if (masked)
                ds = v_select(
                    v_mask_load((const REAL_INT *)slot->seen + at), ds,
                    v_set1(0));
            v_store(out, ds);
        }
}

/* What a step is wanted for. */
typedef struct gradient_request {
    ptrdiff_t first; /* the tile's columns of slot->p and slot->ds */
    REAL *dslope;    /* [TILE_ROWS] to add to, or NULL */
    bool careful;    /* also fill slot->visible */
    bool biased;     /* ds by the biased score, not by the raw one */
} gradient_request;

/* Weights and ds of a tile against a block. */
static void gradient_block(const attn__problem *p, const attn__unit *u,
                           const attn__slot *slot, const attn__tile *tile,
                           const key_block *block, gradient_request want)
{
    const bool noted = want.careful || pairs_are_odd(tile, block);
    const bool masked =
        tile_scores(p, slot, tile, block,
                    (score_request){ATTN_STAGE_BIASED, true, noted, true});

    dp_product(p, slot, tile, block);
    gradient_combine(p, u, slot, tile, block, want.first, masked);
    if (want.dslope)
        gradient_slopes(slot, tile, block, want.first, want.dslope);
    if (p->softcap > 0 && !want.biased)
        gradient_bend(slot, block->n, want.first, masked);
    if (noted)
        gradient_note(slot, block->n, want.first);
}

/* panel += ds k of a tile: what a block gives to dq, before the scale. */
static void gradient_add_dq(const attn__problem *p, const attn__slot *slot,
                            const key_block *block, ptrdiff_t first,
                            REAL *panel, bool careful)
{
    const REAL *ds = (const REAL *)slot->ds + first;
    const REAL_INT *visible = (const REAL_INT *)slot->visible + first;
    const product keys = dq_terms(block, ds);
    const product_out out = {panel, TILE_ROWS, NULL, 1, false};

    if (careful)
        product_careful(PRODUCT_ADD, &keys, p->dim_qk, &out, visible, false);
    else
        dq_product(p, slot, block, ds, visible, panel);
}

/* REALs of a row of a share of dq (slot.h), and of the whole. */
static inline int64_t share_row(const attn__problem *p)
{
    return p->dim_qk + (p->slopes.data ? 1 : 0);
}

static int64_t share_size(const attn__problem *p)
{
    size_t size = 0; /* the plan has seen that it fits */

    (void)attn__share_size(tile_shape, p->len_q * p->group, p->dim_qk,
                           p->slopes.data, &size);
    return (int64_t)(size / sizeof(REAL));
}

static void panel_add(REAL *panel, const REAL *other, int64_t n)
{
    for (int64_t at = 0; at < n; at += LANES)
        v_store(panel + at, v_load(panel + at) + v_load(other + at));
}

static void panel_scale(REAL *panel, int64_t n, REAL scale)
{
    for (int64_t at = 0; at < n; at += LANES)
        v_store(panel + at, v_load(panel + at) * v_set1(scale) + v_set1(0));
}
