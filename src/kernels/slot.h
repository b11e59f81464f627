/* SPDX-License-Identifier: Apache-2.0
 *
 * How a kernel divides its slot of the workspace. The same function counts
 * the bytes (base NULL, at plan time) and hands out the pieces (in the
 * kernel), so that the two cannot disagree. */
#ifndef ATTN_KERNELS_SLOT_H
#define ATTN_KERNELS_SLOT_H

#include "core/checked.h"
#include "kernels/args.h"

/* No level has more rows in a tile. */
#define ATTN__MAX_TILE_ROWS 32
/* By tiles: keys that are split into parts together. */
#define ATTN__GROUP_KEYS 256
/* Numbers that one product of matrix tiles sums; most parts of a number. */
#define ATTN__PART_STEP 32
#define ATTN__MOST_PARTS 3
/* Keys that the dk, dv kernel adds to at a time: what one load of q and d_o
 * serves. */
#define ATTN__KEYS_PER_UNIT 256
/* Most groups of keys whose shares of dq are summed on their own. */
#define ATTN__KEY_GROUPS 4
/* Rows that are summed together for dk and dv fill so many bytes; bits depend
 * on it. */
#define ATTN__SUM_BYTES 128

/* The shape of a kernel's arithmetic: what slots depend on. */
typedef struct attn__tile_shape {
    size_t real_size; /* of the accumulator: 4 or 8 */
    size_t tile_rows; /* lanes of a tile */
    size_t parts;     /* bf16s that make a number, 0: products by vectors */
} attn__tile_shape;

/* The rows of a tile. Lanes from n on repeat the last row; their results are
 * dropped. */
typedef struct attn__tile {
    int64_t n;
    int64_t h[ATTN__MAX_TILE_ROWS], i[ATTN__MAX_TILE_ROWS];
    int64_t p[ATTN__MAX_TILE_ROWS]; /* position on the key axis */
    attn__interval see[ATTN__MAX_TILE_ROWS];
    attn__interval any, all; /* keys that some row, every row sees */
    const char *mask[ATTN__MAX_TILE_ROWS], *bias[ATTN__MAX_TILE_ROWS];
    /* Panels [dim][tile_rows]; [tile_rows]. */
    void *q, *d_o, *acc, *dq;
    /* By tiles: parts_tmpl.h; and lanes that have none as operands of scores,
     * of dk, of dp and dv, a bit each. */
    uint16_t *q_parts, *do_parts;
    unsigned odd[2], odd_q[2], odd_do[2];
    void *m, *l, *factor, *slope, *delta, *lse_high, *lse_low, *dslope,
        *dslope_total;
} attn__tile;

typedef struct attn__slot {
    void *k, *v;               /* blocks of keys, where they must be copied */
    void *s, *dp, *bent;       /* [ATTN__BLOCK_KEYS][tile_rows] */
    void *bias, *seen;
    void *p, *ds, *visible;    /* [ATTN__BLOCK_KEYS][rows summed together] */
    void *q_rows, *do_rows;    /* [rows summed together][padded dim] */
    /* By tiles: parts_tmpl.h. */
    uint16_t *k_parts, *v_parts, *p_parts, *next_parts;
    uint16_t *k_columns, *o_parts, *q_row_parts, *do_row_parts;
    void *next_s;  /* as s, of the block after */
    void *product; /* [padded dim or ATTN__BLOCK_KEYS][tile_rows] */
    void *kept;    /* dq: [dim_qk][tile_rows], while a tile is redone */
    void *dk, *dv;             /* [ATTN__KEYS_PER_UNIT][padded dim] */
    void *dk_run, *dv_run;     /* the same, of some rows */
    double *sums;              /* dbias: [ATTN__BLOCK_KEYS][tile_rows] */
    attn__tile *tiles;
    size_t n_tiles;
} attn__slot;

typedef struct attn__arena {
    char *base; /* NULL while counting */
    size_t used;
    bool overflow;
} attn__arena;

static inline void *attn__take(attn__arena *arena, size_t n, size_t m,
                               size_t size)
{
    const size_t at = arena->used;
    size_t bytes;

    if (!attn__mul_size(n, m, &bytes) ||
        !attn__mul_size(bytes, size, &bytes) ||
        !attn__align_size(bytes, ATTN__ALIGN, &bytes) ||
        !attn__add_size(at, bytes, &arena->used))
        arena->overflow = true;
    return arena->base && !arena->overflow ? arena->base + at : NULL;
}

/* Parts of n rows (or columns) of a dim, padded to whole steps. */
static inline uint16_t *attn__take_parts(attn__arena *a, size_t parts,
                                         size_t n, size_t dim)
{
    size_t size = 0;

    if (!attn__align_size(dim, ATTN__PART_STEP, &size) ||
        !attn__mul_size(size, parts, &size))
        a->overflow = true;
    return attn__take(a, n, size, sizeof(uint16_t));
}

/* Dims of row panels are padded to whole tiles of zeros. */
static inline size_t attn__padded(size_t dim, size_t tile_rows)
{
    return (dim + tile_rows - 1) / tile_rows * tile_rows;
}

static inline void attn__take_blocks(attn__arena *a, attn__slot *slot,
                                     attn__tile_shape t, size_t dim_qk,
                                     size_t dim_v)
{
    const size_t keys = t.parts > 0 ? ATTN__GROUP_KEYS : ATTN__BLOCK_KEYS;
    const size_t dim = dim_qk > dim_v ? dim_qk : dim_v;
    const size_t most = dim > ATTN__BLOCK_KEYS ? dim : ATTN__BLOCK_KEYS;

    slot->k = attn__take(a, keys, dim_qk, t.real_size);
    slot->v = attn__take(a, keys, dim_v, t.real_size);
    slot->s = attn__take(a, ATTN__BLOCK_KEYS, t.tile_rows, t.real_size);
    slot->bias = attn__take(a, ATTN__BLOCK_KEYS, t.tile_rows, t.real_size);
    slot->seen = attn__take(a, ATTN__BLOCK_KEYS, t.tile_rows, t.real_size);
    if (t.parts == 0)
        return;
    slot->next_s = attn__take(a, ATTN__BLOCK_KEYS, t.tile_rows, t.real_size);
    slot->k_parts = attn__take_parts(a, t.parts, ATTN__GROUP_KEYS, dim_qk);
    slot->v_parts = attn__take_parts(a, t.parts, ATTN__GROUP_KEYS, dim_v);
    slot->p_parts = attn__take_parts(a, ATTN__MOST_PARTS, t.tile_rows,
                                     ATTN__BLOCK_KEYS);
    slot->next_parts = attn__take_parts(a, ATTN__MOST_PARTS, t.tile_rows,
                                        ATTN__BLOCK_KEYS);
    slot->product = attn__take(a, attn__padded(most, ATTN__PART_STEP),
                               t.tile_rows, t.real_size);
}

static inline void attn__take_lanes(attn__arena *a, attn__tile *tile,
                                    attn__tile_shape t, size_t dim_qk)
{
    void **const lanes[] = {&tile->m,        &tile->l,       &tile->factor,
                            &tile->slope,    &tile->delta,   &tile->lse_high,
                            &tile->lse_low,  &tile->dslope,
                            &tile->dslope_total};

    for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++)
        *lanes[i] = attn__take(a, 1, t.tile_rows, t.real_size);
    if (t.parts > 0)
        tile->q_parts = attn__take_parts(a, t.parts, t.tile_rows, dim_qk);
}

static inline void attn__take_tiles(attn__arena *a, attn__slot *slot,
                                    size_t n_tiles)
{
    slot->n_tiles = n_tiles;
    slot->tiles = attn__take(a, n_tiles, 1, sizeof(attn__tile));
}

/* A tile to work on: the real one, or a dummy while counting. */
static inline attn__tile *attn__tile_at(const attn__slot *slot, size_t i,
                                        attn__tile *dummy)
{
    return slot->tiles ? &slot->tiles[i] : dummy;
}

/* Whether tile i needs a look: all while handing out, one while counting, whose
 * bytes since `before` then stand for all. */
static inline bool attn__tile_is_next(attn__arena *a, const attn__slot *slot,
                                      size_t i, size_t before)
{
    size_t rest;

    if (a->base || i == 0)
        return i < slot->n_tiles;
    if (i < slot->n_tiles && /* n_tiles is at least 1 */
        (!attn__mul_size(a->used - before, slot->n_tiles - 1, &rest) ||
         !attn__add_size(a->used, rest, &a->used)))
        a->overflow = true;
    return false;
}

/* Tiles of q, and of acc_dim columns of o. */
static inline void attn__output_slot(attn__arena *a, attn__slot *slot,
                                     attn__tile_shape t, size_t macro_rows,
                                     size_t dim_qk, size_t dim_v,
                                     size_t acc_dim)
{
    size_t before;
    attn__tile dummy;

    attn__take_blocks(a, slot, t, dim_qk, dim_v);
    attn__take_tiles(a, slot, (macro_rows + t.tile_rows - 1) / t.tile_rows);
    before = a->used;
    for (size_t i = 0; attn__tile_is_next(a, slot, i, before); i++) {
        attn__tile *tile = attn__tile_at(slot, i, &dummy);

        tile->q = attn__take(a, dim_qk, t.tile_rows, t.real_size);
        tile->acc = attn__take(a, acc_dim, t.tile_rows, t.real_size);
        attn__take_lanes(a, tile, t, dim_qk);
    }
}

/* Forward, and weights (whose acc stays unused). */
static inline void attn__forward_slot(attn__arena *a, attn__slot *slot,
                                      attn__tile_shape t, size_t macro_rows,
                                      size_t dim_qk, size_t dim_v)
{
    attn__output_slot(a, slot, t, macro_rows, dim_qk, dim_v, dim_v);
}

/* Decode: acc is rows, and keys are copied only where their columns lie apart.
 */
static inline void attn__decode_slot(attn__arena *a, attn__slot *slot,
                                     attn__tile_shape t, size_t macro_rows,
                                     size_t dim_qk, size_t dim_v)
{
    attn__output_slot(a, slot, t, macro_rows, dim_qk, dim_v,
                      attn__padded(dim_v, t.tile_rows));
}

/* dq: tiles of q and d_o; dq, and what one group of keys adds to it. */
static inline void attn__dq_slot(attn__arena *a, attn__slot *slot,
                                 attn__tile_shape t, size_t macro_rows,
                                 size_t dim_qk, size_t dim_v)
{
    const size_t together = ATTN__SUM_BYTES / t.real_size;
    size_t before;
    attn__tile dummy;

    attn__take_blocks(a, slot, t, dim_qk, dim_v);
    slot->dp = attn__take(a, ATTN__BLOCK_KEYS, t.tile_rows, t.real_size);
    slot->bent = attn__take(a, ATTN__BLOCK_KEYS, t.tile_rows, t.real_size);
    slot->p = attn__take(a, ATTN__BLOCK_KEYS, together, t.real_size);
    slot->ds = attn__take(a, ATTN__BLOCK_KEYS, together, t.real_size);
    slot->visible = attn__take(a, ATTN__BLOCK_KEYS, together, t.real_size);
    slot->kept = attn__take(a, dim_qk, t.tile_rows, t.real_size);
    if (t.parts > 0) {
        slot->k_columns =
            attn__take_parts(a, t.parts, ATTN__GROUP_KEYS, dim_qk);
        slot->o_parts = attn__take_parts(a, t.parts, t.tile_rows, dim_v);
    }
    attn__take_tiles(a, slot, (macro_rows + t.tile_rows - 1) / t.tile_rows);
    before = a->used;
    for (size_t i = 0; attn__tile_is_next(a, slot, i, before); i++) {
        attn__tile *tile = attn__tile_at(slot, i, &dummy);

        tile->q = attn__take(a, dim_qk, t.tile_rows, t.real_size);
        tile->d_o = attn__take(a, dim_v, t.tile_rows, t.real_size);
        tile->acc = attn__take(a, dim_qk, t.tile_rows, t.real_size);
        tile->dq = attn__take(a, dim_qk, t.tile_rows, t.real_size);
        if (t.parts > 0)
            tile->do_parts = attn__take_parts(a, t.parts, t.tile_rows, dim_v);
        attn__take_lanes(a, tile, t, dim_qk);
    }
}

/* dk and dv: the tiles that are summed together, also with row-major q and
 * d_o. */
static inline void attn__dkv_slot(attn__arena *a, attn__slot *slot,
                                  attn__tile_shape t, size_t dim_qk,
                                  size_t dim_v)
{
    const size_t together = ATTN__SUM_BYTES / t.real_size;
    const size_t pad_qk = attn__padded(dim_qk, t.tile_rows);
    const size_t pad_v = attn__padded(dim_v, t.tile_rows);

    attn__dq_slot(a, slot, t, together, dim_qk, dim_v);
    /* All keys of the unit, loaded once. */
    slot->k = attn__take(a, ATTN__KEYS_PER_UNIT, dim_qk, t.real_size);
    slot->v = attn__take(a, ATTN__KEYS_PER_UNIT, dim_v, t.real_size);
    slot->dk = attn__take(a, ATTN__KEYS_PER_UNIT, pad_qk, t.real_size);
    slot->dv = attn__take(a, ATTN__KEYS_PER_UNIT, pad_v, t.real_size);
    slot->dk_run = attn__take(a, ATTN__KEYS_PER_UNIT, pad_qk, t.real_size);
    slot->dv_run = attn__take(a, ATTN__KEYS_PER_UNIT, pad_v, t.real_size);
    slot->q_rows = attn__take(a, together, pad_qk, t.real_size);
    slot->do_rows = attn__take(a, together, pad_v, t.real_size);
    if (t.parts == 0)
        return;
    slot->q_row_parts = attn__take_parts(a, t.parts, together, pad_qk);
    slot->do_row_parts = attn__take_parts(a, t.parts, together, pad_v);
}

/* Keys of one group: a function of the sequence's length alone, whole blocks.
 * dq is the sum of what each group gives, in ascending order. */
static inline int64_t attn__group_keys(int64_t len_k)
{
    const int64_t share = attn__ceil_div(len_k, ATTN__KEY_GROUPS);

    return attn__max_i64(ATTN__KEYS_PER_UNIT,
                         attn__ceil_div(share, ATTN__BLOCK_KEYS) *
                             ATTN__BLOCK_KEYS);
}

/* Groups of a sequence; at least one. Not fewer for a longer one. */
static inline int64_t attn__key_groups(int64_t len_k)
{
    return attn__max_i64(1, attn__ceil_div(len_k, attn__group_keys(len_k)));
}

/* What one group of keys gives to dq of `rows` rows of a KV head, its share: a
 * panel [dim_qk][tile_rows] for each tile, and where there are slopes a row
 * more for their gradient. Its bytes; false where they overflow. */
static inline bool attn__share_size(attn__tile_shape t, int64_t rows,
                                    int64_t dim_qk, bool slopes, size_t *size)
{
    const int64_t tiles = attn__ceil_div(rows, (int64_t)t.tile_rows);

    return attn__mul_size((size_t)tiles * t.tile_rows,
                          (size_t)dim_qk + slopes, size) &&
           attn__mul_size(*size, t.real_size, size);
}

/* dbias: one tile at a time, sums in fp64. */
static inline void attn__dbias_slot(attn__arena *a, attn__slot *slot,
                                    attn__tile_shape t, size_t dim_qk,
                                    size_t dim_v)
{
    attn__dq_slot(a, slot, t, t.tile_rows, dim_qk, dim_v);
    slot->sums = attn__take(a, ATTN__BLOCK_KEYS, t.tile_rows, sizeof(double));
}

#endif
