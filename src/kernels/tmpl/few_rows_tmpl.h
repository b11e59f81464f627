/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of few rows with a block of keys, and the softmax between them: what
 * decode_tmpl.h does for each block. Their lanes are keys and columns of v, so
 * that four rows already fill the machine. K and V are read in place, whatever
 * their type, page or stride, and fetched ahead. Every sum has the order that
 * it has in product_tmpl.h. */

/* Most rows whose products are summed together. */
#define FEW_ROWS 4
/* Vectors of keys, and of columns of v, beside them: sums are registers, and
 * enough of them that none waits for itself. */
#define KEY_VECTORS 2
#define SCORE_KEYS (KEY_VECTORS * LANES)
#define SCORE_SUMS (KEY_VECTORS * FEW_ROWS)
#define VALUE_SUMS (VECTOR_BYTES == 64 ? 16 : 8)
/* Up to so many rows, lanes of the scores are keys, above it rows of keys: with
 * 32 registers, four columns of keys can stay at hand for four rows. */
#define COLUMN_ROWS (VECTOR_BYTES == 64 ? 4 : 2)
/* Keys whose weights are formed, and whose values are added, between two looks
 * ahead. */
#define WEIGHT_KEYS 4
#define VALUE_KEYS 8
#define LINE_BYTES 64

/* Where the keys [j0, j0 + n) lie. */
typedef struct key_rows {
    int64_t j0, n;
    const ELEM **k, **v;
} key_rows;

/* Those of a block. */
typedef struct block_rows {
    const ELEM *k[ATTN__BLOCK_KEYS], *v[ATTN__BLOCK_KEYS];
} block_rows;

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

    for (int64_t j = 0; j < n;) {
        const int64_t page_end =
            paged ? p->page_size - (j0 + j) % p->page_size : n;
        const int64_t run = attn__min_i64(n - j, page_end);
        const ELEM *row = key_at(p, view, u->b, seq, u->kv_head, j0 + j);

        for (int64_t i = 0; i < run; i++)
            rows[j + i] = row + i * view->stride[2];
        j += run;
    }
}

static key_rows rows_find(const attn__problem *p, const attn__unit *u,
                          const attn__sequence *seq, int64_t j0, int64_t end,
                          block_rows *at)
{
    const int64_t n =
        attn__max_i64(0, attn__min_i64(ATTN__BLOCK_KEYS, end - j0));

    rows_of(p, &p->k, u, seq, j0, n, at->k);
    if (p->v.data)
        rows_of(p, &p->v, u, seq, j0, n, at->v);
    return (key_rows){j0, n, at->k, at->v};
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

/* Two forms of a product of columns [c, c + n), n <= 4. Keys in the lanes,
 * acc[r vectors + i] for row r and vector i of keys: the keys' fours are
 * transposed, and each column meets each row. */
static inline __attribute__((always_inline)) void
scores_by_columns(const ptrdiff_t rows, const ptrdiff_t vectors,
                  const ELEM *const *keys, int64_t c, const int64_t n,
                  const REAL *q, V *acc)
{
    UNROLL(2)
    for (ptrdiff_t i = 0; i < vectors; i++) {
        V column[4];

        elems_columns(keys + i * LANES, c, n, column);
        UNROLL(4)
        for (ptrdiff_t k = 0; k < 4; k++) {
            if (k >= n)
                break;
            UNROLL(4)
            for (ptrdiff_t r = 0; r < rows; r++)
                acc[r * vectors + i] =
                    v_fma(column[k], v_set1(q[(c + k) * TILE_ROWS + r]),
                          acc[r * vectors + i]);
        }
    }
}

/* Four rows of QUADS keys in the lanes, acc[i] for the i-th of so many keys:
 * each column of a key is spread over its quad, and meets all rows. */
static inline __attribute__((always_inline)) void
scores_by_quads(const ptrdiff_t vectors, const ELEM *const *keys, int64_t c,
                const int64_t n, const REAL *q, V *acc)
{
    V column[4];

    UNROLL(4)
    for (ptrdiff_t k = 0; k < 4; k++)
        column[k] = k < n ? v_quad_set(q + (c + k) * TILE_ROWS) : v_set1(0);
    UNROLL(8)
    for (ptrdiff_t i = 0; i < vectors; i++) {
        const ELEM *const *at = keys + i * QUADS;
        const V key = n == 4 ? elems_quads(at, c) : elems_quads_some(at, c, n);

        UNROLL(4)
        for (int k = 0; k < 4; k++)
            if (k < n)
                acc[i] = v_fma(v_quad_spread(key, k), column[k], acc[i]);
    }
}

/* Sums with keys in the lanes to s[key][row]; rows up to four get 0. */
static inline __attribute__((always_inline)) void
scores_put_columns(const ptrdiff_t rows, const ptrdiff_t vectors, const V *sum,
                   REAL *s)
{
    for (ptrdiff_t i = 0; i < vectors; i++) {
        V key[4];

        UNROLL(4)
        for (ptrdiff_t r = 0; r < 4; r++)
            key[r] = r < rows ? sum[r * vectors + i] : v_set1(0);
        v_quads_transpose(key);
        for (ptrdiff_t k = 0; k < 4; k++)
            v_quads_store(s + (i * LANES + k) * TILE_ROWS, 4 * TILE_ROWS,
                          key[k]);
    }
}

/* s[key][lane] = scale q k of `vectors` vectors of keys and of `rows` rows from
 * `lane` on, by one of the forms, in the order that the product has. */
static inline __attribute__((always_inline)) void
scores_of_rows(const ptrdiff_t rows, const ptrdiff_t vectors,
               const attn__tile *tile, ptrdiff_t lane,
               const ELEM *const *keys, int64_t dim, REAL scale, REAL *s,
               fetch *meanwhile)
{
    const bool by_columns = rows <= COLUMN_ROWS;
    const ptrdiff_t sums = (by_columns ? rows : 4) * vectors;
    const REAL *q = (const REAL *)tile->q + lane;
    V sum[SCORE_SUMS];

    UNROLL(8)
    for (ptrdiff_t i = 0; i < sums; i++)
        sum[i] = v_set1(0);
    for (int64_t c = 0; c < dim;) {
        const int64_t end = attn__min_i64(c + PRODUCT_STEPS, dim);
        V acc[SCORE_SUMS];

        UNROLL(8)
        for (ptrdiff_t i = 0; i < sums; i++)
            acc[i] = v_set1(0);
#define ADD(n)                                                                \
    (by_columns ? scores_by_columns(rows, vectors, keys, c, n, q, acc)        \
                : scores_by_quads(sums, keys, c, n, q, acc))
        for (; c + 4 <= end; c += 4) {
            ADD(4);
            fetch_step(meanwhile);
        }
        if (c < end) {
            ADD(end - c);
            fetch_step(meanwhile);
        }
#undef ADD
        c = end;
        UNROLL(8)
        for (ptrdiff_t i = 0; i < sums; i++)
            sum[i] = sum[i] + acc[i];
    }
    UNROLL(8)
    for (ptrdiff_t i = 0; i < sums; i++)
        sum[i] = sum[i] * v_set1(scale);
    if (by_columns)
        scores_put_columns(rows, vectors, sum, s + lane);
    else
        for (ptrdiff_t i = 0; i < sums; i++)
            v_quads_store(s + i * QUADS * TILE_ROWS + lane, TILE_ROWS, sum[i]);
}

/* The same for all rows of a tile, and SCORE_KEYS keys or one vector. */
static APART void scores_of_keys(const attn__tile *tile,
                                 const ELEM *const *keys, int64_t dim,
                                 REAL scale, REAL *s, fetch *meanwhile)
{
#define SCORES(rows, lane)                                                    \
    scores_of_rows(rows, KEY_VECTORS, tile, lane, keys, dim, scale, s,        \
                   meanwhile)
    FOR_FEW_ROWS(tile, SCORES)
#undef SCORES
}

static APART void scores_of_few_keys(const attn__tile *tile,
                                     const ELEM *const *keys, int64_t dim,
                                     REAL scale, REAL *s, fetch *meanwhile)
{
#define SCORES(rows, lane)                                                    \
    scores_of_rows(rows, 1, tile, lane, keys, dim, scale, s, meanwhile)
    FOR_FEW_ROWS(tile, SCORES)
#undef SCORES
}

/* Looks ahead while scores are formed, and while weights and values are. */
static int64_t score_steps(const attn__problem *p, const attn__tile *tile,
                           int64_t n)
{
    return attn__ceil_div(n, SCORE_KEYS) * attn__ceil_div(p->dim_qk, 4) *
           attn__ceil_div(tile->n, 4);
}

static int64_t value_steps(const attn__problem *p, const attn__tile *tile,
                           int64_t n)
{
    return attn__ceil_div(n, WEIGHT_KEYS) +
           attn__ceil_div(n, VALUE_KEYS) *
               attn__ceil_div(p->dim_v * attn__min_i64(tile->n, FEW_ROWS),
                              VALUE_SUMS * LANES) *
               attn__ceil_div(tile->n, FEW_ROWS);
}

/* slot->s = scale q k of some keys. */
static void decode_scores(const attn__problem *p, const attn__slot *slot,
                          const attn__tile *tile, const key_rows *rows,
                          fetch *meanwhile)
{
    for (int64_t j = 0; j < rows->n; j += SCORE_KEYS) {
        const bool few = rows->n - j <= LANES;
        REAL *s = (REAL *)slot->s + j * TILE_ROWS;
        const ELEM *k[SCORE_KEYS];

        for (ptrdiff_t i = 0; i < SCORE_KEYS; i++)
            k[i] = rows->k[attn__min_i64(j + i, rows->n - 1)];
        if (tile->n <= TILE_ROWS - 4) /* lanes without rows */
            for (ptrdiff_t i = 0; i < SCORE_KEYS; i++)
                v_store(s + i * TILE_ROWS, v_set1(0));
        (few ? scores_of_few_keys : scores_of_keys)(
            tile, k, p->dim_qk, (REAL)p->scale, s, meanwhile);
    }
}

/* softmax_weights where four lanes hold all rows: QUADS keys at a time. */
static inline V weights_of_quads(REAL *s, int64_t n, V m, V sum)
{
    for (int64_t j = 0; j < n; j += QUADS) {
        const REAL *at[QUADS];

        for (ptrdiff_t i = 0; i < QUADS; i++)
            at[i] = s + (j + i) * TILE_ROWS;
        v_quads_store(s + j * TILE_ROWS, TILE_ROWS,
                      v_exp_negative(v_quads(at, 0) - m));
        for (ptrdiff_t i = 0; i < QUADS && j + i < n; i++)
            sum = sum + v_quad_set(at[i]);
    }
    return sum;
}

/* Scores to weights, as softmax_block has it. */
static void decode_weights(const attn__slot *slot, attn__tile *tile, int64_t n,
                           fetch *meanwhile)
{
    const bool quads = QUADS > 1 && tile->n <= 4;
    const V before = v_load(tile->m);
    V m, sum = v_set1(0);

    softmax_top(slot, tile, n);
    m = softmax_base(quads ? v_quad_set(tile->m) : v_load(tile->m));
    for (int64_t j = 0; j < n; j += WEIGHT_KEYS) {
        const int64_t keys = attn__min_i64(WEIGHT_KEYS, n - j);
        REAL *s = (REAL *)slot->s + j * TILE_ROWS;

        sum = quads ? weights_of_quads(s, keys, m, sum)
                    : softmax_weights(s, keys, m, sum);
        fetch_step(meanwhile);
    }
    softmax_forward(tile, 0, before, m, sum);
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
    V sum[FEW_ROWS][VALUE_SUMS];

    UNROLL(4)
    for (ptrdiff_t r = 0; r < rows; r++)
        UNROLL(16)
        for (ptrdiff_t i = 0; i < vectors; i++)
            sum[r][i] = v_set1(0);
    for (int64_t j0 = 0; j0 < keys->n; j0 += VALUE_KEYS) {
        const int64_t j1 = attn__min_i64(j0 + VALUE_KEYS, keys->n);

        fetch_step(meanwhile);
        for (int64_t j = j0; j < j1; j++) {
            V value[VALUE_SUMS];

            UNROLL(16)
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
    const ptrdiff_t vectors = VALUE_SUMS / rows;
    int64_t c = 0;

    for (; c + vectors * LANES <= dim; c += vectors * LANES)
        values_update(rows, vectors, careful, slot, tile, keys, lane, c, dim,
                      meanwhile);
    for (; c + 2 * LANES <= dim; c += 2 * LANES)
        values_update(rows, 2, careful, slot, tile, keys, lane, c, dim,
                      meanwhile);
    for (; c < dim; c += LANES)
        values_update(rows, 1, careful, slot, tile, keys, lane, c, dim,
                      meanwhile);
}

/* All rows of a tile. */
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
