/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward of few queries against many keys (decoding): one pass over K and V
 * at the speed of memory. Softmax and masks are those of the other kernels, one
 * vector of rows in the lanes; in the products lanes are keys and columns of v,
 * so that four rows already fill the machine. Every sum has the order that it
 * has in the other kernels, and so the same bits. K and V are read in place,
 * whatever their type, page or stride, and fetched ahead.
 *
 * Keys are cut into segments of ATTN__SEGMENT_KEYS from key 0, each a unit of
 * its own whose state (m, l, acc) is joined with the others' in their order:
 *
 *   m = max(m1, m2)   l = l1 e^(m1 - m) + l2 e^(m2 - m)   acc likewise
 *
 * so few heads occupy many threads, and bits depend on len_k alone. */

/* Most rows whose products are summed together. */
#define FEW_ROWS 4
/* Vectors of keys, and of columns of v, beside them: sums are registers, and
 * enough of them that none waits for itself. */
#define KEY_VECTORS 2
#define VALUE_VECTORS (VECTOR_BYTES == 64 ? 4 : 2)
#define SCORE_KEYS (KEY_VECTORS * LANES)
/* Keys whose values are added between two looks ahead. */
#define VALUE_KEYS 8
#define LINE_BYTES 64

/* Where the keys [j0, j0 + n) of a block lie. */
typedef struct key_rows {
    int64_t j0, n;
    const ELEM *k[ATTN__BLOCK_KEYS], *v[ATTN__BLOCK_KEYS];
} key_rows;

static ptrdiff_t padded(int64_t dim)
{
    return (ptrdiff_t)attn__padded((size_t)dim, (size_t)LANES);
}

/* ------------------------------------------------------------------- keys */

static void rows_of(const attn__problem *p, const attn__view *view,
                    const attn__unit *u, const attn__sequence *seq,
                    int64_t j0, int64_t n, const ELEM **rows)
{
    const bool paged = p->block_table.data;

    for (int64_t j = 0; j < n; j++)
        rows[j] = j == 0 || (paged && (j0 + j) % p->page_size == 0)
                      ? key_at(p, view, u->b, seq, u->kv_head, j0 + j)
                      : rows[j - 1] + view->stride[2];
}

static key_rows rows_find(const attn__problem *p, const attn__unit *u,
                          const attn__sequence *seq, int64_t j0, int64_t end)
{
    key_rows rows;

    rows.j0 = j0;
    rows.n = attn__max_i64(0, attn__min_i64(ATTN__BLOCK_KEYS, end - j0));
    rows_of(p, &p->k, u, seq, j0, rows.n, rows.k);
    if (p->v.data)
        rows_of(p, &p->v, u, seq, j0, rows.n, rows.v);
    return rows;
}

/* Rows whose columns lie apart are copied, so that vectors can be loaded. */
static void rows_gather(const attn__view *view, int64_t dim, int64_t n,
                        ELEM *copy, const ELEM **rows)
{
    if (view->stride[3] == 1)
        return;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t c = 0; c < dim; c++)
            copy[j * dim + c] = rows[j][c * view->stride[3]];
        rows[j] = copy + j * dim;
    }
}

/* What will be read next is asked for now, row by row in its order and evenly
 * over the steps of what is done meanwhile: memory has something to do all the
 * time, and nobody waits for a burst. Into the second-level cache: a processor
 * can wait for more lines there than in the first. */
typedef struct fetch {
    const ELEM *const *rows;
    int64_t n, left, size; /* rows, those to come, bytes of a row */
    int64_t steps, credit; /* n rows for so many steps */
} fetch;

static fetch fetch_rows(const ELEM *const *rows, int64_t n, int64_t dim,
                        int64_t steps)
{
    return (fetch){rows, n, n, dim * (int64_t)sizeof **rows,
                   attn__max_i64(steps, 1), 0};
}

static inline void fetch_step(fetch *f)
{
    f->credit += f->n;
    for (; f->left > 0 && f->credit >= f->steps; f->credit -= f->steps) {
        const char *row = (const char *)f->rows[f->n - f->left--];

        for (int64_t at = 0; at < f->size; at += LINE_BYTES)
            __builtin_prefetch(row + at, 0, 2);
    }
}

/* --------------------------------------------------------------- products */

/* Calls f(rows, lane) for the rows of a tile, as many at a time as pay. */
#define FOR_FEW_ROWS(tile, f)                                                 \
    for (ptrdiff_t lane = 0; lane < (tile)->n; lane += FEW_ROWS) {            \
        if ((tile)->n - lane == 1)                                            \
            f(1, lane);                                                       \
        else if ((tile)->n - lane == 2)                                       \
            f(2, lane);                                                       \
        else                                                                  \
            f(FEW_ROWS, lane);                                                \
    }

/* sum[row][vector of keys] += q k for `rows` rows, `vectors` vectors of keys,
 * and one part of the columns: in the order that the product has. */
static inline __attribute__((always_inline)) void
scores_update(const ptrdiff_t rows, const ptrdiff_t vectors,
              const V (*k)[KEY_VECTORS], const REAL *q, ptrdiff_t columns,
              V (*sum)[KEY_VECTORS])
{
    V acc[FEW_ROWS][KEY_VECTORS];

    UNROLL(4)
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t i = 0; i < vectors; i++)
            acc[r][i] = v_set1(0);
    for (ptrdiff_t c = 0; c < columns; c++) {
        V keys[KEY_VECTORS];

        for (ptrdiff_t i = 0; i < vectors; i++)
            keys[i] = k[c][i];
        UNROLL(4)
        for (ptrdiff_t r = 0; r < rows; r++) {
            const V scalar = v_set1(q[c * TILE_ROWS + r]);

            for (ptrdiff_t i = 0; i < vectors; i++)
                acc[r][i] = v_fma(keys[i], scalar, acc[r][i]);
        }
    }
    UNROLL(4)
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t i = 0; i < vectors; i++)
            sum[r][i] = sum[r][i] + acc[r][i];
}

/* k[column][i] = LANES keys' columns from c on. */
static inline void keys_transpose(const ELEM *const *keys, int64_t c,
                                  int64_t dim, V (*k)[KEY_VECTORS],
                                  ptrdiff_t vector)
{
    const bool whole = dim - c >= LANES;
    V square[VECTOR_BYTES / sizeof(REAL)];

    UNROLL(16)
    for (ptrdiff_t i = 0; i < LANES; i++)
        square[i] = whole ? elems_load(keys[i] + c)
                          : elems_load_some(keys[i] + c, dim - c);
    v_transpose(square);
    UNROLL(16)
    for (ptrdiff_t i = 0; i < LANES; i++)
        k[i][vector] = square[i];
}

/* sum[row][vector] = q k of `vectors` vectors of keys; a step of `meanwhile`
 * for each square. */
static inline __attribute__((always_inline)) void
scores_of_vectors(const ptrdiff_t vectors, const attn__tile *tile,
                  const ELEM *const *keys, int64_t dim,
                  V (*sum)[KEY_VECTORS], fetch *meanwhile)
{
    for (ptrdiff_t r = 0; r < TILE_ROWS; r++)
        for (ptrdiff_t i = 0; i < vectors; i++)
            sum[r][i] = v_set1(0);
    for (int64_t c0 = 0; c0 < dim; c0 += PRODUCT_STEPS) {
        const int64_t n = attn__min_i64(PRODUCT_STEPS, dim - c0);
        const REAL *q = (const REAL *)tile->q + c0 * TILE_ROWS;
        V k[PRODUCT_STEPS][KEY_VECTORS];

        for (int64_t c = 0; c < n; c += LANES)
            for (ptrdiff_t i = 0; i < vectors; i++) {
                keys_transpose(keys + i * LANES, c0 + c, dim, k + c, i);
                fetch_step(meanwhile);
            }
#define UPDATE(rows, lane)                                                    \
    scores_update(rows, vectors, k, q + lane, n, sum + lane)
        FOR_FEW_ROWS(tile, UPDATE)
#undef UPDATE
    }
}

static APART void scores_of_keys(const attn__tile *tile,
                                 const ELEM *const *keys, int64_t dim,
                                 V (*sum)[KEY_VECTORS], fetch *meanwhile)
{
    scores_of_vectors(KEY_VECTORS, tile, keys, dim, sum, meanwhile);
}

static APART void scores_of_few_keys(const attn__tile *tile,
                                     const ELEM *const *keys, int64_t dim,
                                     V (*sum)[KEY_VECTORS], fetch *meanwhile)
{
    scores_of_vectors(1, tile, keys, dim, sum, meanwhile);
}

/* slot->s = scale q k of a block, meanwhile fetching its values or, where lse
 * alone is wanted, the next block's keys. */
static void decode_scores(const attn__problem *p, const attn__slot *slot,
                          const attn__tile *tile, const key_rows *rows,
                          const key_rows *next)
{
    const int64_t steps = attn__ceil_div(rows->n, SCORE_KEYS) * KEY_VECTORS *
                          attn__ceil_div(p->dim_qk, LANES);
    fetch meanwhile =
        p->v.data ? fetch_rows(rows->v, rows->n, p->dim_v, steps)
                  : fetch_rows(next->k, next->n, p->dim_qk, steps);

    for (int64_t j = 0; j < rows->n; j += SCORE_KEYS) {
        const ptrdiff_t vectors =
            rows->n - j <= LANES ? 1 : KEY_VECTORS; /* that hold keys */
        const ELEM *k[SCORE_KEYS];
        V sum[VECTOR_BYTES / sizeof(REAL)][KEY_VECTORS];

        for (ptrdiff_t i = 0; i < vectors * LANES; i++)
            k[i] = rows->k[attn__min_i64(j + i, rows->n - 1)];
        (vectors == 1 ? scores_of_few_keys : scores_of_keys)(
            tile, k, p->dim_qk, sum, &meanwhile);
        for (ptrdiff_t i = 0; i < vectors; i++) {
            REAL *s = (REAL *)slot->s + (j + i * LANES) * TILE_ROWS;
            V square[VECTOR_BYTES / sizeof(REAL)];

            for (ptrdiff_t r = 0; r < TILE_ROWS; r++)
                square[r] = sum[r][i] * v_set1((REAL)p->scale);
            v_transpose(square);
            for (ptrdiff_t key = 0; key < LANES; key++)
                v_store(s + key * TILE_ROWS, square[key]);
        }
    }
}

/* acc = acc factor + sum_j s_j v_j for `rows` rows and `vectors` vectors of
 * columns from c on. `careful`: without the terms of hidden pairs. */
static inline __attribute__((always_inline)) void
values_update(const ptrdiff_t rows, const ptrdiff_t vectors,
              const bool careful, const attn__slot *slot,
              const attn__tile *tile, const key_rows *keys, ptrdiff_t lane,
              int64_t c, int64_t dim, fetch *meanwhile)
{
    const REAL *weights = (const REAL *)slot->s + lane;
    const REAL_INT *seen = (const REAL_INT *)slot->seen + lane;
    const ptrdiff_t row = padded(dim);
    V sum[FEW_ROWS][VALUE_VECTORS];

    UNROLL(4)
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t i = 0; i < vectors; i++)
            sum[r][i] = v_set1(0);
    for (int64_t j0 = 0; j0 < keys->n; j0 += VALUE_KEYS) {
        const int64_t j1 = attn__min_i64(j0 + VALUE_KEYS, keys->n);

        fetch_step(meanwhile);
        for (int64_t j = j0; j < j1; j++) {
            V value[VALUE_VECTORS];

            UNROLL(4)
            for (ptrdiff_t i = 0; i < vectors; i++)
                value[i] = vectors > 1 || dim - c >= LANES
                               ? elems_load(keys->v[j] + c + i * LANES)
                               : elems_load_some(keys->v[j] + c, dim - c);
            UNROLL(4)
            for (ptrdiff_t r = 0; r < rows; r++) {
                const V weight = v_set1(weights[j * TILE_ROWS + r]);

                if (careful && !seen[j * TILE_ROWS + r])
                    continue;
                for (ptrdiff_t i = 0; i < vectors; i++)
                    sum[r][i] = v_fma(weight, value[i], sum[r][i]);
            }
        }
    }
    UNROLL(4)
    for (ptrdiff_t r = 0; r < rows; r++) {
        const V factor = v_set1(((const REAL *)tile->factor)[lane + r]);
        REAL *acc = (REAL *)tile->acc + (lane + r) * row + c;

        for (ptrdiff_t i = 0; i < vectors; i++)
            v_store(acc + i * LANES,
                    v_fma(v_load(acc + i * LANES), factor, sum[r][i]));
    }
}

static inline __attribute__((always_inline)) void
values_of_rows(const ptrdiff_t rows, const bool careful,
               const attn__slot *slot, const attn__tile *tile,
               const key_rows *keys, ptrdiff_t lane, int64_t dim,
               fetch *meanwhile)
{
    int64_t c = 0;

    for (; c + VALUE_VECTORS * LANES <= dim; c += VALUE_VECTORS * LANES)
        values_update(rows, VALUE_VECTORS, careful, slot, tile, keys, lane, c,
                      dim, meanwhile);
    for (; c < dim; c += LANES)
        values_update(rows, 1, careful, slot, tile, keys, lane, c, dim,
                      meanwhile);
}

/* All rows of a tile, meanwhile fetching the next block's keys. */
static APART void decode_values(const attn__slot *slot, const attn__tile *tile,
                                const key_rows *keys, int64_t dim,
                                fetch *meanwhile)
{
#define VALUES(rows, lane)                                                    \
    values_of_rows(rows, false, slot, tile, keys, lane, dim, meanwhile)
    FOR_FEW_ROWS(tile, VALUES)
#undef VALUES
}

/* The same without the terms of hidden pairs. */
static APART void decode_values_careful(const attn__slot *slot,
                                        const attn__tile *tile,
                                        const key_rows *keys, int64_t dim,
                                        fetch *meanwhile)
{
    for (ptrdiff_t lane = 0; lane < tile->n; lane += FEW_ROWS)
        values_of_rows(FEW_ROWS, true, slot, tile, keys, lane, dim,
                       meanwhile);
}

/* ------------------------------------------------------------------ blocks */

static void decode_block(const attn__problem *p, const attn__unit *u,
                         const attn__slot *slot, attn__tile *tile,
                         const key_rows *rows, const key_rows *next,
                         bool careful)
{
    fetch keys = fetch_rows(next->k, next->n, p->dim_qk,
                            attn__ceil_div(rows->n, VALUE_KEYS) *
                                attn__ceil_div(p->dim_v,
                                               VALUE_VECTORS * LANES));
    const key_block block = {.j0 = rows->j0, .n = rows->n};

    if (mask_hides(p, tile, &block))
        return;
    decode_scores(p, slot, tile, rows, next);
    scores_from_products(
        p, slot, tile, &block,
        (score_request){ATTN_STAGE_BIASED, false, careful, careful});
    softmax_block(slot, tile, block.n);
    if (p->dropout_p > 0)
        apply_dropout(p, u, tile, &block, slot->s, TILE_ROWS);
    if (!p->v.data)
        return;
    if (careful)
        decode_values_careful(slot, tile, rows, p->dim_v, &keys);
    else
        decode_values(slot, tile, rows, p->dim_v, &keys);
}

/* The part of a block that some row of the tile sees; see keys_clip. */
static key_rows rows_clip(const key_rows *rows, const attn__tile *tile)
{
    const int64_t j0 = attn__max_i64(rows->j0, tile->any.lo);
    const int64_t j1 = attn__min_i64(rows->j0 + rows->n, tile->any.hi);
    key_rows part;

    part.j0 = j0;
    part.n = j1 - j0;
    for (int64_t j = 0; j < part.n; j++) {
        part.k[j] = rows->k[j0 - rows->j0 + j];
        part.v[j] = rows->v[j0 - rows->j0 + j];
    }
    return part;
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
    key_rows next;

    for (size_t t = t0; t < t1; t++) {
        decode_start(p, u, &slot->tiles[t]);
        any.lo = attn__min_i64(any.lo, slot->tiles[t].any.lo);
        any.hi = attn__max_i64(any.hi, slot->tiles[t].any.hi);
    }
    end = attn__min_i64(any.hi, u->key1);
    next = rows_find(p, u, seq,
                     attn__max_i64(any.lo / ATTN__BLOCK_KEYS *
                                       ATTN__BLOCK_KEYS, u->key0), end);
    while (next.n > 0) {
        key_rows block = next;

        next = rows_find(p, u, seq, block.j0 + ATTN__BLOCK_KEYS, end);
        rows_gather(&p->k, p->dim_qk, block.n, slot->k, block.k);
        if (p->v.data)
            rows_gather(&p->v, p->dim_v, block.n, slot->v, block.v);
        for (size_t t = t0; t < t1; t++) {
            const key_rows part = rows_clip(&block, &slot->tiles[t]);

            if (part.n > 0)
                decode_block(p, u, slot, &slot->tiles[t], &part, &next,
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

/* o = acc (1 / l), as forward_finish has it. */
static void decode_store(const attn__problem *p, const attn__unit *u,
                         const attn__sequence *seq, const attn__tile *tile)
{
    const attn__target *out = &p->out_o;
    const REAL none = p->empty_rows == ATTN_EMPTY_NAN ? (REAL)NAN : 0;

    for (int64_t lane = 0; lane < tile->n; lane++) {
        const REAL l = ((const REAL *)tile->l)[lane], share = 1 / l;
        const REAL *acc = (const REAL *)tile->acc + lane * padded(p->dim_v);
        ELEM *row = (ELEM *)(void *)out->data + u->b * out->stride[0] +
                    tile->h[lane] * out->stride[1] +
                    (seq->q_start + tile->i[lane]) * out->stride[2];

        for (int64_t c = 0; c < p->dim_v; c++)
            row[c * out->stride[3]] =
                elem_round(l == 0 ? none : acc[c] * share + 0);
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
