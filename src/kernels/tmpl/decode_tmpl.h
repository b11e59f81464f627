/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward of few queries against many keys (decoding): one pass over K and V
 * at the speed of memory, by the products of few_rows_tmpl.h. Softmax and masks
 * are those of the other kernels, one vector of rows in the lanes, and so are
 * the bits.
 *
 * Keys are cut into segments of ATTN__SEGMENT_KEYS from key 0, each a unit of
 * its own whose state (m, l, acc) is joined with the others' in their order:
 *
 *   m = max(m1, m2)   l = l1 e^(m1 - m) + l2 e^(m2 - m)   acc likewise
 *
 * so few heads occupy many threads, and bits depend on len_k alone. */

#include "kernels/tmpl/few_rows_tmpl.h"

/* ------------------------------------------------------------------ blocks */

/* What is read next: while scores are formed, the values of their keys, then
 * the next block's keys; where lse alone is wanted, these from the start. */
typedef struct ahead {
    fetch values, keys;
} ahead;

static ahead ahead_of(const attn__problem *p, const attn__tile *tile,
                      const key_rows *rows, const key_rows *next)
{
    const int64_t during_scores = score_steps(p, tile, rows->n);

    if (!p->v.data)
        return (ahead){fetch_rows(next->k, next->n, p->dim_qk, during_scores),
                       fetch_rows(NULL, 0, 0, 1)};
    return (ahead){fetch_rows(rows->v, rows->n, p->dim_v, during_scores),
                   fetch_rows(next->k, next->n, p->dim_qk,
                              value_steps(p, tile, rows->n))};
}

static void decode_block(const attn__problem *p, const attn__unit *u,
                         const attn__slot *slot, attn__tile *tile,
                         const key_rows *rows, ahead *meanwhile, bool careful)
{
    const key_block block = {.j0 = rows->j0, .n = rows->n};

    if (mask_hides(p, tile, &block))
        return;
    decode_scores(p, slot, tile, rows, &meanwhile->values);
    scores_from_products(
        p, slot, tile, &block,
        (score_request){ATTN_STAGE_BIASED, false, careful, careful});
    decode_weights(slot, tile, block.n, &meanwhile->keys);
    if (p->dropout_p > 0)
        apply_dropout(p, u, tile, &block, slot->s, TILE_ROWS);
    if (!p->v.data)
        return;
    if (careful)
        decode_values_careful(slot, tile, rows, p->dim_v, &meanwhile->keys);
    else
        decode_values(slot, tile, rows, p->dim_v, &meanwhile->keys);
}

/* The part of a block that some row of the tile sees; see keys_clip. */
static key_rows rows_clip(const key_rows *rows, const attn__tile *tile)
{
    const int64_t j0 = attn__max_i64(rows->j0, tile->any.lo);
    const int64_t j1 = attn__min_i64(rows->j0 + rows->n, tile->any.hi);
    const int64_t skip = j0 < j1 ? j0 - rows->j0 : 0; /* nothing seen: any j0 */

    return (key_rows){j0, j1 - j0, rows->k + skip, rows->v + skip};
}

static void decode_start(const attn__problem *p, const attn__unit *u,
                         attn__tile *tile)
{
    attn__problem without = *p;

    if (u->segment > 0) /* the sink is in the first one */
        without.sinks = (attn__view){0};
    softmax_start(&without, tile);
    if (p->v.data)
        panel_zero(tile->acc, padded(p->dim_v) * TILE_ROWS);
}

/* Tiles [t0, t1) over the keys of the unit's segment that they see. */
static void decode_sweep(const attn__problem *p, const attn__unit *u,
                         const attn__sequence *seq, const attn__slot *slot,
                         size_t t0, size_t t1, bool careful)
{
    attn__interval any = {INT64_MAX, 0};
    int64_t end;
    block_rows places[2];
    key_rows block, next;
    size_t odd = 0;

    for (size_t t = t0; t < t1; t++) {
        decode_start(p, u, &slot->tiles[t]);
        any.lo = attn__min_i64(any.lo, slot->tiles[t].any.lo);
        any.hi = attn__max_i64(any.hi, slot->tiles[t].any.hi);
    }
    end = attn__min_i64(any.hi, u->key1);
    next = rows_find(p, u, seq,
                     attn__max_i64(any.lo / ATTN__BLOCK_KEYS *
                                       ATTN__BLOCK_KEYS, u->key0),
                     end, &places[0]);
    while (next.n > 0) {
        ahead meanwhile;

        odd = 1 - odd;
        block = next;
        next = rows_find(p, u, seq, block.j0 + ATTN__BLOCK_KEYS, end,
                         &places[odd]);
        meanwhile = ahead_of(p, &slot->tiles[t0], &block, &next);
        rows_gather(&p->k, p->dim_qk, block.n, slot->k, block.k);
        if (p->v.data)
            rows_gather(&p->v, p->dim_v, block.n, slot->v, block.v);
        for (size_t t = t0; t < t1; t++) {
            const key_rows part = rows_clip(&block, &slot->tiles[t]);

            if (part.n > 0)
                decode_block(p, u, slot, &slot->tiles[t], &part, &meanwhile,
                             careful);
        }
    }
}

/* ------------------------------------------------------------------ states */

/* The state of a row after a segment: m, l, acc. */
static REAL *state_at(const attn__problem *p, const attn__unit *u,
                      int64_t segment, int64_t row)
{
    return (REAL *)u->states +
           (segment * (u->row1 - u->row0) + row) * (2 + p->dim_v);
}

static void state_store(const attn__problem *p, const attn__unit *u,
                        const attn__tile *tile, int64_t row0)
{
    for (int64_t lane = 0; lane < tile->n; lane++) {
        REAL *state = state_at(p, u, u->segment, row0 + lane);

        state[0] = ((const REAL *)tile->m)[lane];
        state[1] = ((const REAL *)tile->l)[lane];
        if (p->v.data)
            memcpy(state + 2,
                   (const REAL *)tile->acc + lane * padded(p->dim_v),
                   (size_t)p->dim_v * sizeof *state);
    }
}

/* Row `lane` of the tile becomes what it and a later segment's state make. */
static void state_join(const attn__problem *p, attn__tile *tile, int64_t lane,
                       const REAL *state, V mine, V other)
{
    REAL *l = (REAL *)tile->l + lane;
    REAL *acc = (REAL *)tile->acc + lane * padded(p->dim_v);
    REAL a[VECTOR_BYTES / sizeof(REAL)]
        __attribute__((aligned(VECTOR_BYTES)));
    REAL b[VECTOR_BYTES / sizeof(REAL)]
        __attribute__((aligned(VECTOR_BYTES)));

    v_store(a, mine);
    v_store(b, other);
    *l = *l * a[lane] + state[1] * b[lane];
    for (int64_t c = 0; p->v.data && c < p->dim_v; c++)
        acc[c] = acc[c] * a[lane] + state[2 + c] * b[lane];
}

/* All segments of the sequence into the tile, ascending. */
static void states_join(const attn__problem *p, const attn__unit *u,
                        attn__tile *tile, int64_t row0, int64_t len_k)
{
    REAL *m = tile->m, *m_next = tile->factor;

    for (int64_t lane = 0; lane < TILE_ROWS; lane++) {
        const int64_t row = row0 + attn__min_i64(lane, tile->n - 1);
        const REAL *state = state_at(p, u, 0, row);

        m[lane] = state[0];
        ((REAL *)tile->l)[lane] = state[1];
        if (p->v.data)
            memcpy((REAL *)tile->acc + lane * padded(p->dim_v), state + 2,
                   (size_t)p->dim_v * sizeof *state);
    }
    for (int64_t s = 1; s * ATTN__SEGMENT_KEYS < len_k; s++) {
        V before, other, top;

        for (int64_t lane = 0; lane < TILE_ROWS; lane++)
            m_next[lane] = state_at(
                p, u, s, row0 + attn__min_i64(lane, tile->n - 1))[0];
        before = v_load(m);
        other = v_load(m_next);
        top = v_max(other, before);
        v_store(m, top);
        for (int64_t lane = 0; lane < tile->n; lane++)
            state_join(p, tile, lane, state_at(p, u, s, row0 + lane),
                       v_exp_negative(before - softmax_base(top)),
                       v_exp_negative(other - softmax_base(top)));
    }
}

/* ------------------------------------------------------------------- kernel */

/* Numbers to an output's row, rounded. */
static void row_store(ELEM *to, ptrdiff_t step, const REAL *from, int64_t dim)
{
    int64_t c = 0;

    if (step == 1)
        for (; c + LANES <= dim; c += LANES)
            elems_store(to + c, v_load(from + c));
    for (; c < dim; c++)
        to[c * step] = elem_round(from[c]);
}

/* o = acc (1 / l), as forward_finish has it. */
static void decode_store(const attn__problem *p, const attn__unit *u,
                         const attn__sequence *seq, const attn__tile *tile)
{
    const attn__target *out = &p->out_o;
    const REAL none = p->empty_rows == ATTN_EMPTY_NAN ? (REAL)NAN : 0;

    for (int64_t lane = 0; lane < tile->n; lane++) {
        const REAL l = ((const REAL *)tile->l)[lane];
        const V share = v_set1(1 / l);
        REAL *acc = (REAL *)tile->acc + lane * padded(p->dim_v);
        ELEM *row = (ELEM *)(void *)out->data + u->b * out->stride[0] +
                    tile->h[lane] * out->stride[1] +
                    (seq->q_start + tile->i[lane]) * out->stride[2];

        for (int64_t c = 0; c < p->dim_v; c += LANES)
            v_store(acc + c, l == 0 ? v_set1(none)
                                    : v_load(acc + c) * share + v_set1(0));
        row_store(row, out->stride[3], acc, p->dim_v);
    }
}

static bool rows_are_finite(const attn__problem *p, const attn__tile *tile)
{
    const ptrdiff_t row = padded(p->dim_v);

    return panel_is_finite(tile->acc, tile->n * row / LANES);
}

static void decode_tile(const attn__problem *p, const attn__unit *u,
                        const attn__sequence *seq, const attn__slot *slot,
                        size_t t)
{
    attn__tile *tile = &slot->tiles[t];
    const int64_t row0 = (int64_t)t * TILE_ROWS;

    if (u->segment < 0)
        states_join(p, u, tile, row0, seq->len_k);
    else if (p->v.data && !rows_are_finite(p, tile))
        decode_sweep(p, u, seq, slot, t, t + 1, true);
    if (u->segment >= 0 && u->states) {
        state_store(p, u, tile, row0);
        return;
    }
    if (p->v.data)
        decode_store(p, u, seq, tile);
    if (p->out_lse.data)
        softmax_store_lse(p, u, seq, tile);
}

void KERNEL(decode)(const attn__problem *p, const attn__unit *u, void *memory)
{
    const attn__sequence seq = attn__sequence_of(p, u->b);
    attn__arena arena = {memory, 0, false};
    attn__slot slot;
    size_t n = 0;

    attn__decode_slot(&arena, &slot, tile_shape, (size_t)p->macro_rows,
                      (size_t)p->dim_qk, (size_t)p->dim_v);
    for (int64_t r0 = u->row0; r0 < u->row1; r0 += TILE_ROWS) {
        attn__tile *tile = &slot.tiles[n++];

        tile_place(tile, p, u, &seq, r0);
        tile_pack(tile->q, tile, &p->q, u->b, seq.q_start, p->dim_qk);
    }
    if (u->segment >= 0)
        decode_sweep(p, u, &seq, &slot, 0, n, false);
    for (size_t t = 0; t < n; t++)
        decode_tile(p, u, &seq, &slot, t);
}
