/* SPDX-License-Identifier: Apache-2.0
 *
 * A block of keys as rows of REAL: in place where memory already is that, else
 * copied (strided columns, colliding rows, 16-bit types, pages) into the slot.
 * Either way the same values enter the same sums. */

typedef struct key_block {
    int64_t j0, n; /* keys [j0, j0 + n) */
    const REAL *k, *v;
    ptrdiff_t k_row, v_row; /* REALs between keys */
    /* By tiles: keys left out at the front; steps of the whole block; keys
     * whose k or v has no parts, a bit each, counted without the skip. */
    int64_t skip, steps;
    uint16_t *k_parts, *v_parts, *k_columns;
    uint64_t odd_k, odd_v, odd_columns;
} key_block;

/* Key j of the sequence, KV head g. */
static const ELEM *key_at(const attn__problem *p, const attn__view *view,
                          int64_t b, const attn__sequence *seq, int64_t g,
                          int64_t j)
{
    if (p->block_table.data) {
        const int64_t page = attn__load_index(
            p->block_table.data, p->block_table.dtype,
            b * p->block_table.stride[2] +
                j / p->page_size * p->block_table.stride[3]);

        return elem_at(view, page, g, j % p->page_size);
    }
    return elem_at(view, b, g, seq->k_start + j);
}

/* Rows of a unit for which a block is worth copying. */
#define COPY_ROWS (4 * TILE_ROWS)
/* Bytes after which the first-level cache's sets begin anew, at most. */
#define SETS_BYTES 4096

/* Rows that lie a multiple of SETS_BYTES apart drive each other out of the
 * first-level cache: where many tiles read them, a copy is faster. */
static inline bool keys_collide(const attn__unit *u, const attn__view *view,
                                int64_t dim)
{
    const bool all_rows = u->row1 == 0; /* a unit of keys */
    const int64_t bytes = view->stride[2] * (int64_t)sizeof(ELEM);

    return view->stride[2] != dim && bytes % SETS_BYTES == 0 &&
           (all_rows || u->row1 - u->row0 >= COPY_ROWS);
}

/* Points rows at the keys of `view`, copying them to `copy` if need be. */
static inline const REAL *
keys_rows(const attn__problem *p, const attn__unit *u, const attn__view *view,
          const attn__sequence *seq, const key_block *block, int64_t dim,
          REAL *copy, ptrdiff_t *row)
{
    const int64_t b = u->b, g = u->kv_head;

#if STORAGE_IS_REAL
    if (!p->block_table.data && view->stride[3] == 1 &&
        !keys_collide(u, view, dim)) {
        *row = view->stride[2];
        return key_at(p, view, b, seq, g, block->j0);
    }
#endif
    for (int64_t j = 0; j < block->n; j++) {
        const ELEM *from = key_at(p, view, b, seq, g, block->j0 + j);
        int64_t c = 0;

        for (; view->stride[3] == 1 && c + LANES <= dim; c += LANES)
            v_storeu(copy + j * dim + c, elems_load(from + c));
        for (; c < dim; c++)
            copy[j * dim + c] = elem_load(from[c * view->stride[3]]);
    }
    *row = dim;
    return copy;
}

#if BY_TILES
#include "kernels/tmpl/by_tiles_tmpl.h"
#else
#include "kernels/tmpl/by_vectors_tmpl.h"
#endif

/* Keys from j0 on, at most a block and below j1, as block number `place` of
 * those that are loaded together. */
static inline key_block keys_load(const attn__problem *p,
                                  const attn__unit *u,
                                  const attn__sequence *seq,
                                  const attn__slot *slot, int64_t j0,
                                  int64_t j1, int64_t place)
{
    key_block block = {.j0 = j0,
                       .n = attn__min_i64(ATTN__BLOCK_KEYS, j1 - j0)};

    block.k = keys_rows(p, u, &p->k, seq, &block, p->dim_qk,
                        (REAL *)slot->k + place * ATTN__BLOCK_KEYS * p->dim_qk,
                        &block.k_row);
    if (p->v.data)
        block.v = keys_rows(p, u, &p->v, seq, &block, p->dim_v,
                            (REAL *)slot->v +
                                place * ATTN__BLOCK_KEYS * p->dim_v,
                            &block.v_row);
    keys_prepare(p, slot, &block, place);
    return block;
}

/* The part of a block within `any`, the keys that some row sees. A hidden key
 * adds zeros to sums, so leaving it out changes no bits. */
static inline key_block keys_clip(const key_block *block,
                                  attn__interval any)
{
    const int64_t j1 = attn__min_i64(block->j0 + block->n, any.hi);
    const int64_t first = attn__max_i64(any.lo - block->j0, 0);
    const int64_t skip = first / CLIP_KEYS * CLIP_KEYS;
    key_block part = *block;

    part.n = first < j1 - block->j0 ? j1 - block->j0 - skip : 0;
    if (part.n == 0)
        return part; /* nothing seen: skip may be anything */
    part.j0 += skip;
    part.skip = skip;
    part.k = block->k + skip * block->k_row;
    if (block->v)
        part.v = block->v + skip * block->v_row;
    return part;
}
