/* SPDX-License-Identifier: Apache-2.0
 *
 * The two products of attention by AMX tiles:
 *
 *   s^T  [32 keys][32 rows]    = parts of k [keys][dim]    by parts of q^T
 *   acc^T [32 columns][32 rows] = parts of v^T [columns][keys] by parts of p
 *
 * Products of parts are exact in fp32. Those that are below half an ulp of the
 * whole are left out; small ones are summed before large ones, so that a sum
 * has few roundings at its full size. k, v and q are split once for all tiles
 * of a unit, the weights as they come.
 *
 * What parts cannot stand for (parts_tmpl.h) goes by vectors: scores of odd
 * keys and rows, and the visible pairs of odd values. */

#include "kernels/tmpl/parts_tmpl.h"

#include "kernels/tmpl/beside_tmpl.h"

/* A hidden pair's weight is 0 and its value finite, or odd and left out. */
#define HIDDEN_PAIRS_SHOW false
#define CLIP_KEYS AMX_STEP
#define GROUP_BLOCKS (ATTN__GROUP_KEYS / ATTN__BLOCK_KEYS)

/* Which parts of a meet which of b, small products first. */
typedef struct part_pair {
    int a, b;
} part_pair;

/* A score takes the last SCORE_PAIRS of them, a value as many as weights have
 * parts for. */
static const part_pair pairs[] = {
#if STORAGE == STORAGE_F32
    {2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}
#define SCORE_PAIRS 6
#elif STORAGE == STORAGE_F16
    {1, 1}, {1, 0}, {0, 1}, {0, 0}
#define SCORE_PAIRS 4
#else
    {0, 1}, {0, 0}
#define SCORE_PAIRS 1
#endif
};
#define ALL_PAIRS ((int)(sizeof pairs / sizeof pairs[0]))

/* Weights (and ds) have parts of their own number; they are b, or a where a
 * product is `turned`. */
#define PAIR_A(i) (turned ? pairs[i].b : pairs[i].a)
#define PAIR_B(i) (turned ? pairs[i].a : pairs[i].b)

/* An operand: tiles `step` apart, of each part. */
typedef struct tile_operand {
    const uint16_t *at;
    ptrdiff_t part, step;
} tile_operand;

/* Two sums [16][16] side by side in tiles c0 and c1: over steps and the last n
 * pairs of a b. All but the last of all, the large one, go first, together at
 * each step, since operands then stay where they are. */
#define TILES_ADD(c0, c1, from, to)                                           \
    for (ptrdiff_t t = 0; t < steps; t++) {                                   \
        const uint16_t *x = a->at + t * a->step, *y = b->at + t * b->step;    \
                                                                              \
        UNROLL(6)                                                             \
        for (int i = from; i < to; i++) {                                     \
            if (i == from || PAIR_A(i) != PAIR_A(i - 1))                      \
                AMX_LOAD(4, x + PAIR_A(i) * a->part, AMX_STEP * 2);           \
            if (i == from || PAIR_B(i) != PAIR_B(i - 1)) {                    \
                AMX_LOAD(6, y + PAIR_B(i) * b->part, AMX_STEP * 2);           \
                AMX_LOAD(7, y + PAIR_B(i) * b->part + AMX_TILE,               \
                         AMX_STEP * 2);                                       \
            }                                                                 \
            AMX_PRODUCT(c0, 4, 6);                                            \
            AMX_PRODUCT(c1, 4, 7);                                            \
            if (beside && beside->r < AMX_ROWS)                               \
                weights_of_pair(beside, parts, keep);                         \
        }                                                                     \
    }
#define TILES_MULTIPLY(c0, c1)                                                \
    AMX_ZERO(c0);                                                             \
    AMX_ZERO(c1);                                                             \
    if (n > 1)                                                                \
        TILES_ADD(c0, c1, ALL_PAIRS - n, ALL_PAIRS - 1)                       \
    TILES_ADD(c0, c1, ALL_PAIRS - 1, ALL_PAIRS)
#define TILES_STORE(c0, c1)                                                   \
    AMX_STORE(c0, out, TILE_ROWS * (ptrdiff_t)sizeof(REAL));                  \
    AMX_STORE(c1, out + LANES, TILE_ROWS * (ptrdiff_t)sizeof(REAL))

/* There are two places for such sums: one may be stored while the other is
 * formed. A store is best given late, since later loads wait for it. */
static inline __attribute__((always_inline)) void
tiles_multiply(const int place, const tile_operand *a, const tile_operand *b,
               ptrdiff_t steps, const int n, const bool turned,
               key_sweep *beside, const int parts, const bool keep)
{
    if (place == 0) {
        TILES_MULTIPLY(0, 1);
    } else {
        TILES_MULTIPLY(2, 3);
    }
}

/* The sums of a place to out[16][32]. */
static inline __attribute__((always_inline)) void
tiles_store(const int place, REAL *out)
{
    if (place == 0) {
        TILES_STORE(0, 1);
    } else {
        TILES_STORE(2, 3);
    }
}

/* bf16s in one part of the panel, the keys, the values of a block. */
static inline ptrdiff_t panel_part(int64_t n)
{
    return steps_of(n) * TILE_VECTORS * AMX_TILE;
}

static inline ptrdiff_t keys_part(int64_t dim)
{
    return steps_of(dim) * (ATTN__BLOCK_KEYS / AMX_ROWS) * AMX_TILE;
}

/* ---------------------------------------------------------------- splitting */

static inline void products_begin(void)
{
    amx_begin();
}

static inline void products_end(void)
{
    amx_end();
}

/* bf16s in all parts of a block of keys. */
static inline ptrdiff_t block_parts(int64_t dim)
{
    return PARTS * keys_part(dim);
}

static void keys_prepare(const attn__problem *p, const attn__slot *slot,
                         key_block *block, int64_t place)
{
    block->k_parts = slot->k_parts + place * block_parts(p->dim_qk);
    block->odd_k = rows_odd(block->k, block->k_row, block->n, p->dim_qk,
                            EVEN_ANY);
    parts_of_rows(block->k_parts, keys_part(p->dim_qk), block->k, block->k_row,
                  block->n, p->dim_qk, 1, PARTS, true);
    block->steps = steps_of(block->n);
}

static inline void values_prepare(const attn__problem *p,
                                  const attn__slot *slot, key_block *block,
                                  int64_t place)
{
    block->v_parts = slot->v_parts + place * block_parts(p->dim_v);
    block->odd_v =
        rows_odd(block->v, block->v_row, block->n, p->dim_v, EVEN_LEAST);
    parts_of_columns(block->v_parts, keys_part(p->dim_v), block->v,
                     block->v_row, block->n, p->dim_v, block->odd_v,
                     VALUE_SCALE);
}

/* What q is multiplied by as it is split: the scale, where that is exact. */
static inline REAL panel_scale_of(const attn__problem *p)
{
    int exponent;

    return fabs(frexp(p->scale, &exponent)) == 0.5 && exponent > -20
               ? (REAL)p->scale
               : 1;
}

static void tile_prepare(const attn__problem *p, attn__tile *tile)
{
    const REAL *q = tile->q;

    parts_of_panel(tile->q_parts, panel_part(p->dim_qk), q, p->dim_qk,
                   panel_scale_of(p), PARTS, true);
    lanes_odd(tile->odd, q, p->dim_qk, EVEN_ANY);
}

/* ------------------------------------------------------------------- scores */

/* A block's rows (k or v) by the panel of a tile (q or d_o): sums over dim. */
typedef struct panel_product {
    const REAL *rows;
    ptrdiff_t row;
    const uint16_t *row_parts;
    uint64_t odd_rows; /* a bit each, as in key_block */
    const REAL *panel;
    const uint16_t *panel_parts;
    const unsigned *odd_lanes;
    int64_t dim;
    REAL scale; /* of what goes by vectors */
} panel_product;

static inline panel_product score_operands(const attn__problem *p,
                                           const attn__tile *tile,
                                           const key_block *block)
{
    return (panel_product){block->k,  block->k_row,  block->k_parts,
                           block->odd_k, tile->q,    tile->q_parts,
                           tile->odd, p->dim_qk,     (REAL)p->scale};
}

/* Rows [j, j + n) of a block by vectors, into to[row][lane]. */
static void panel_by_vectors(const panel_product *x, int64_t j, int64_t n,
                             REAL *to)
{
    const product raw = {x->rows + j * x->row, x->row, 1,
                         x->panel, TILE_ROWS, x->dim};
    const product_out out = {to, TILE_ROWS, NULL, x->scale, false};

    product_run(PRODUCT_SCALE, &raw, n, &out);
}

/* Form the products of 16 rows, from row `j` of the block on. */
static inline __attribute__((always_inline)) void
panel_of_rows(const int place, const panel_product *x, const key_block *block,
              int64_t j, key_sweep *beside, const int parts, const bool keep)
{
    const ptrdiff_t steps = steps_of(x->dim);
    const tile_operand panel = {x->panel_parts, panel_part(x->dim),
                                TILE_VECTORS * AMX_TILE};
    const tile_operand rows = {x->row_parts + (block->skip + j) / AMX_ROWS *
                                                  steps * AMX_TILE,
                               keys_part(x->dim), AMX_TILE};

    tiles_multiply(place, &rows, &panel, steps, SCORE_PAIRS, false, beside,
                   parts, keep);
}

/* All of a block's rows into out[row][lane]. */
static void panel_of_block(const panel_product *x, const key_block *block,
                           REAL *out)
{
    for (int64_t j = 0; j < block->n; j += 2 * AMX_ROWS) {
        panel_of_rows(0, x, block, j, NULL, 0, false);
        panel_of_rows(1, x, block, j + AMX_ROWS, NULL, 0, false);
        tiles_store(0, out + j * TILE_ROWS);
        tiles_store(1, out + (j + AMX_ROWS) * TILE_ROWS);
    }
}

/* What is odd of them by vectors: rows, and lanes by way of `apart`. */
static void panel_mend(const panel_product *x, const key_block *block,
                       REAL *out, REAL *apart)
{
    for (int64_t j = 0; x->odd_rows && j < block->n; j++)
        if (x->odd_rows >> (block->skip + j) & 1)
            panel_by_vectors(x, j, 1, out + j * TILE_ROWS);
    if (!(x->odd_lanes[0] | x->odd_lanes[1]))
        return;
    panel_by_vectors(x, 0, block->n, apart);
    for (int64_t j = 0; j < block->n; j++)
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
            const ptrdiff_t at = j * TILE_ROWS + v * LANES;

            v_store(out + at, v_select((VM)x->odd_lanes[v], v_load(apart + at),
                                       v_load(out + at)));
        }
}

/* Form the products of 16 keys, from key `j` of the block on, with the tile's
 * rows. */
static inline __attribute__((always_inline)) void
scores_of_keys(const int place, const attn__problem *p, const attn__tile *tile,
               const key_block *block, int64_t j, key_sweep *beside,
               const int parts, const bool keep)
{
    const panel_product x = score_operands(p, tile, block);

    panel_of_rows(place, &x, block, j, beside, parts, keep);
}

/* All of a block's products into s[key][lane]. */
static void scores_of_block(const attn__problem *p, const attn__tile *tile,
                            const key_block *block, REAL *s)
{
    const panel_product x = score_operands(p, tile, block);

    panel_of_block(&x, block, s);
}

/* What is not yet right in slot->s after that. */
static void scores_mend(const attn__problem *p, const attn__slot *slot,
                        const attn__tile *tile, const key_block *block)
{
    const panel_product x = score_operands(p, tile, block);
    REAL *s = slot->s;

    if (panel_scale_of(p) == 1)
        for (ptrdiff_t at = 0; at < block->n * TILE_ROWS; at += LANES)
            v_store(s + at, v_load(s + at) * v_set1((REAL)p->scale));
    panel_mend(&x, block, s, slot->bias /* not yet in use */);
}

static void score_product(const attn__problem *p, const attn__slot *slot,
                          const attn__tile *tile, const key_block *block)
{
    scores_of_block(p, tile, block, slot->s);
    scores_mend(p, slot, tile, block);
}

/* ------------------------------------------------------------------- values */

/* panel[c][lane] += weight of key j by rows[j][c], of visible pairs whose row
 * is odd. Weights and `seen` are [key][lane]. */
static inline void panel_add_odd(REAL *panel, const REAL *weights,
                                 const REAL_INT *seen, const REAL *rows,
                                 ptrdiff_t row, int64_t dim,
                                 const key_block *block, uint64_t odd)
{
    for (int64_t j = 0; odd && j < block->n; j++) {
        if (!(odd >> (block->skip + j) & 1))
            continue;
        for (int64_t c = 0; c < dim; c++)
            for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
                const ptrdiff_t at = j * TILE_ROWS + v * LANES;
                REAL *to = panel + c * TILE_ROWS + v * LANES;
                const V sum = v_fma(v_load(weights + at),
                                    v_set1(rows[j * row + c]), v_load(to));

                v_store(to,
                        v_select(v_mask_load(seen + at), sum, v_load(to)));
            }
    }
}

/* acc += p v of visible pairs whose value is odd. */
static inline void values_of_odd_keys(const attn__problem *p,
                                      const attn__slot *slot,
                                      const attn__tile *tile,
                                      const key_block *block)
{
    panel_add_odd(tile->acc, slot->s, slot->seen, block->v, block->v_row,
                  p->dim_v, block, block->odd_v);
}

/* acc = acc factor + sums, for 16 columns. */
static inline void values_update(const attn__tile *tile, const REAL *sums,
                                 int64_t c, int64_t dim)
{
    const int64_t end = attn__min_i64(c + AMX_ROWS, dim) * TILE_ROWS;

    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        const V factor = v_load((const REAL *)tile->factor + v * LANES);
        REAL *acc = (REAL *)tile->acc + v * LANES;

        if (!v_any(v_ne(factor, v_set1(1))))
            for (ptrdiff_t at = c * TILE_ROWS; at < end; at += TILE_ROWS)
                v_store(acc + at, v_fma(v_load(sums + v * LANES + at),
                                        v_set1(1 / VALUE_SCALE),
                                        v_load(acc + at)));
        else
            for (ptrdiff_t at = c * TILE_ROWS; at < end; at += TILE_ROWS)
                v_store(acc + at, v_fma(v_load(acc + at), factor,
                                        v_load(sums + v * LANES + at) *
                                            v_set1(1 / VALUE_SCALE)));
    }
}

/* In how many parts weights meet the parts of v. */
static inline int weight_parts(const attn__problem *p)
{
    return STORAGE == STORAGE_F32   ? 3
           : STORAGE == STORAGE_F16 ? 2
                                    : 1 + (p->precision == ATTN_PRECISION_HIGH);
}

/* Form the products of a with weights in parts, which are b, or `turned` a. */
static inline __attribute__((always_inline)) void
weights_multiply(const int place, const attn__problem *p,
                 const tile_operand *a, const tile_operand *b, ptrdiff_t steps,
                 const bool turned, key_sweep *beside, const int parts,
                 const bool keep)
{
    if (STORAGE == STORAGE_F32)
        tiles_multiply(place, a, b, steps, 6, turned, beside, parts, keep);
    else if (STORAGE == STORAGE_F16)
        tiles_multiply(place, a, b, steps, 3, turned, beside, parts, keep);
    else if (weight_parts(p) == 2)
        tiles_multiply(place, a, b, steps, 2, turned, beside, parts, keep);
    else
        tiles_multiply(place, a, b, steps, 1, turned, beside, parts, keep);
}

/* Column c and 15 more of a block's rows, whose parts lie by columns. */
static inline tile_operand columns_of(const key_block *block,
                                      const uint16_t *parts, int64_t dim,
                                      int64_t c)
{
    return (tile_operand){parts + (c / AMX_ROWS * block->steps +
                                   block->skip / AMX_STEP) * AMX_TILE,
                          keys_part(dim), AMX_TILE};
}

/* Weights of a block, [key][lane]. */
static inline tile_operand weights_of(const uint16_t *parts)
{
    return (tile_operand){parts, panel_part(ATTN__BLOCK_KEYS),
                          TILE_VECTORS * AMX_TILE};
}

/* Form the products of 16 columns of v, from c on, with weights in parts. */
static inline __attribute__((always_inline)) void
values_of_columns(const int place, const attn__problem *p,
                  const key_block *block, const uint16_t *weight, int64_t c,
                  key_sweep *beside, const int parts, const bool keep)
{
    const tile_operand weights = weights_of(weight);
    const tile_operand v = columns_of(block, block->v_parts, p->dim_v, c);

    weights_multiply(place, p, &v, &weights, steps_of(block->n), false, beside,
                     parts, keep);
}

/* acc = acc factor + product of the values with the weights, columns from c
 * on. */
static inline void values_of_block(const attn__problem *p,
                                   const attn__slot *slot,
                                   const attn__tile *tile,
                                   const key_block *block,
                                   const uint16_t *parts, int64_t c)
{
    REAL *sums = slot->product;

    for (; c < p->dim_v; c += AMX_ROWS) {
        values_of_columns(0, p, block, parts, c, NULL, 0, false);
        tiles_store(0, sums + c * TILE_ROWS);
        values_update(tile, sums, c, p->dim_v);
    }
}
