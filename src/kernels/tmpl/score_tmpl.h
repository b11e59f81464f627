/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of a tile against a block of keys: s[key][lane], from the product to
 * the masked form that softmax takes. Forward, backward and weights all come
 * here, so all see the same bits. */

/* What the scores of a block are wanted for. */
typedef struct score_request {
    attn_stage stage; /* RAW, SOFTCAPPED or BIASED (masked) */
    bool slopes;      /* also store d softcap / d raw in slot->bent */
    bool careful;     /* as if some pair were hidden, wherever the block is */
    bool seen;        /* fill slot->seen */
} score_request;

static void score_softcap(const attn__problem *p, const attn__slot *slot,
                          int64_t n, bool slopes)
{
    const V cap = v_set1((REAL)p->softcap);
    REAL *s = slot->s, *bent = slot->bent;

    for (ptrdiff_t at = 0; at < n * TILE_ROWS; at += LANES) {
        const V x = v_load(s + at) / cap;

        v_store(s + at, cap * v_tanh(x));
        if (slopes)
            v_store(bent + at, v_tanh_slope(x));
    }
}

/* Whether all lanes have one row of `rows`: a broadcast mask or bias. */
static bool rows_are_one(const char *const *rows)
{
    for (ptrdiff_t lane = 1; lane < TILE_ROWS; lane++)
        if (rows[lane] != rows[0])
            return false;
    return true;
}

/* Element j of a lane's row of the bias. */
static inline REAL bias_at(const attn__problem *p, const char *row, int64_t j)
{
    return real_of(read_any(row, p->bias.dtype, j * p->bias.stride[3]));
}

/* LANES of them from j on, where they are REALs side by side. */
static inline V bias_load(const char *row, int64_t j)
{
    return v_loadu((const REAL *)(const void *)row + j);
}

/* slot->bias[key][lane] from each lane's row of the bias. */
static void score_gather_bias(const attn__problem *p, const attn__slot *slot,
                              const attn__tile *tile, const key_block *block)
{
    const bool reals = p->bias.stride[3] == 1 &&
                       p->bias.dtype == (REAL_BITS == 64 ? ATTN_F64 : ATTN_F32);
    const int64_t squares = reals ? block->n / LANES * LANES : 0;
    REAL *bias = slot->bias;

    if (rows_are_one(tile->bias)) {
        for (int64_t j = 0; j < block->n; j++)
            for (ptrdiff_t v = 0; v < TILE_VECTORS; v++)
                v_store(bias + j * TILE_ROWS + v * LANES,
                        v_set1(bias_at(p, tile->bias[0], block->j0 + j)));
        return;
    }
    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane += LANES)
        for (int64_t j = 0; j < squares; j += LANES) {
            V square[VECTOR_BYTES / sizeof(REAL)];

            for (ptrdiff_t i = 0; i < LANES; i++)
                square[i] = bias_load(tile->bias[lane + i], block->j0 + j);
            v_transpose(square);
            for (ptrdiff_t i = 0; i < LANES; i++)
                v_store(bias + (j + i) * TILE_ROWS + lane, square[i]);
        }
    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++)
        for (int64_t j = squares; j < block->n; j++)
            bias[j * TILE_ROWS + lane] =
                bias_at(p, tile->bias[lane], block->j0 + j);
}

static void score_add_bias(const attn__slot *slot, int64_t n)
{
    REAL *s = slot->s;
    const REAL *bias = slot->bias;

    for (ptrdiff_t at = 0; at < n * TILE_ROWS; at += LANES)
        v_store(s + at, v_load(s + at) + v_load(bias + at));
}

/* p - j0 of each lane, high + low: both are exact below 2^44. */
typedef struct distance {
    V high, low;
} distance;

static inline distance distance_from(const attn__tile *tile, int64_t j0,
                                     ptrdiff_t v)
{
    REAL high[VECTOR_BYTES / sizeof(REAL)]
        __attribute__((aligned(VECTOR_BYTES)));
    REAL low[VECTOR_BYTES / sizeof(REAL)]
        __attribute__((aligned(VECTOR_BYTES)));

    for (ptrdiff_t lane = 0; lane < LANES; lane++) {
        const int64_t from = tile->p[v * LANES + lane] - j0;

        low[lane] = (REAL)(from % (1 << 20));
        high[lane] = (REAL)(from - from % (1 << 20));
    }
    return (distance){v_load(high), v_load(low)};
}

/* abs(p - j) for key j0 + j, rounded once: where the block begins, which other
 * rows decide, does not show. */
static inline V key_distance(distance from, int64_t j)
{
    return v_abs(from.high + (from.low - v_set1((REAL)j)));
}

static void score_add_alibi(const attn__slot *slot, const attn__tile *tile,
                            const key_block *block)
{
    distance from[TILE_VECTORS];
    V slope[TILE_VECTORS];
    REAL *s = slot->s;

    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        from[v] = distance_from(tile, block->j0, v);
        slope[v] = v_load((const REAL *)tile->slope + v * LANES);
    }
    for (int64_t j = 0; j < block->n; j++)
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
            REAL *at = s + j * TILE_ROWS + v * LANES;

            v_store(at, v_load(at) - slope[v] * key_distance(from[v], j));
        }
}

/* Bit 0: some of n bytes is 0; bit 1: some is not. */
static inline unsigned mask_kinds(const char *row, int64_t n, int64_t step)
{
    unsigned char hidden = 0, seen = 0;

    for (int64_t j = 0; j < n; j++) {
        hidden |= row[j * step] == 0;
        seen |= row[j * step] != 0;
    }
    return hidden | (unsigned)seen << 1;
}

/* Which pairs of a block the boolean mask lets through. */
static attn__block_class mask_classify(const attn__problem *p,
                                       const attn__tile *tile,
                                       const key_block *block)
{
    const int64_t step = p->mask.stride[3];
    const ptrdiff_t rows = rows_are_one(tile->mask) ? 1 : (ptrdiff_t)tile->n;
    unsigned kinds = 0;

    for (ptrdiff_t lane = 0; lane < rows && kinds != 3; lane++) {
        const char *row = tile->mask[lane] + block->j0 * step;

        kinds |= step == 1 ? mask_kinds(row, block->n, 1) /* vectors */
                           : mask_kinds(row, block->n, step);
    }
    return kinds == 1   ? ATTN__BLOCK_EMPTY
           : kinds == 2 ? ATTN__BLOCK_FULL
                        : ATTN__BLOCK_EDGE;
}

/* Whether a mask hides all of a block, which then need not be computed: what it
 * would add is zeros. */
static inline bool mask_hides(const attn__problem *p, const attn__tile *tile,
                              const key_block *block)
{
    return p->mask.data &&
           mask_classify(p, tile, block) == ATTN__BLOCK_EMPTY;
}

/* slot->seen[key][lane] = all ones where the boolean mask lets through. */
static void score_gather_mask(const attn__problem *p, const attn__slot *slot,
                              const attn__tile *tile, const key_block *block)
{
    const int64_t step = p->mask.stride[3];
    const int64_t squares = step == 1 ? block->n / LANES * LANES : 0;
    REAL_INT *seen = slot->seen;

    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane += LANES)
        for (int64_t j = 0; j < squares; j += LANES) {
            V square[VECTOR_BYTES / sizeof(REAL)];

            for (ptrdiff_t i = 0; i < LANES; i++)
                square[i] = v_of_bytes(tile->mask[lane + i] + block->j0 + j);
            v_transpose(square);
            for (ptrdiff_t i = 0; i < LANES; i++)
                v_mask_store(seen + (j + i) * TILE_ROWS + lane,
                             v_ne(square[i], v_set1(0)));
        }
    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++) {
        const char *row = tile->mask[lane] + block->j0 * step;

        for (int64_t j = squares; j < block->n; j++)
            seen[j * TILE_ROWS + lane] = row[j * step] ? -1 : 0;
    }
}

/* An end of a row's interval, within the block. */
static inline REAL within_block(int64_t key, const key_block *block)
{
    return (REAL)(attn__max_i64(block->j0,
                                attn__min_i64(key, block->j0 + block->n)) -
                  block->j0);
}

/* Select -inf where a pair is hidden, and, to `note` it, put into slot->seen
 * what is not: a score that is -inf by itself hides its key too. */
static inline __attribute__((always_inline)) void
score_mask(const attn__problem *p, const attn__slot *slot,
           const attn__tile *tile, const key_block *block, const bool note,
           const bool by_mask)
{
    const V hidden = v_set1((REAL)-INFINITY);
    REAL lo[ATTN__MAX_TILE_ROWS] __attribute__((aligned(VECTOR_BYTES)));
    REAL hi[ATTN__MAX_TILE_ROWS] __attribute__((aligned(VECTOR_BYTES)));

    if (by_mask)
        score_gather_mask(p, slot, tile, block);
    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++) {
        lo[lane] = within_block(tile->see[lane].lo, block);
        hi[lane] = within_block(tile->see[lane].hi, block);
    }
    for (int64_t j = 0; j < block->n; j++)
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
            const ptrdiff_t at = j * TILE_ROWS + v * LANES;
            REAL *s = (REAL *)slot->s + at;
            REAL_INT *seen = (REAL_INT *)slot->seen + at;
            const V key = v_set1((REAL)j);
            VM see = v_le(v_load(lo + v * LANES), key) &
                     v_lt(key, v_load(hi + v * LANES));

            if (by_mask)
                see &= v_mask_load(seen);
            if (p->bias.data)
                see &= v_ne(v_load((const REAL *)slot->bias + at), hidden);
            v_store(s, v_select(see, v_load(s), hidden));
            if (note)
                v_mask_store(seen, see & v_ne(v_load(s), hidden));
        }
}

/* From products in slot->s to what is wanted of `block`; returns whether
 * slot->seen was filled (if not, every pair is visible, as far as geometry and
 * masks go). */
static bool scores_from_products(const attn__problem *p,
                                 const attn__slot *slot,
                                 const attn__tile *tile,
                                 const key_block *block, score_request want)
{
    const bool by_mask =
        p->mask.data && mask_classify(p, tile, block) != ATTN__BLOCK_FULL;
    const bool edge =
        by_mask || p->bias.data || want.careful ||
        attn__classify(tile->any, tile->all, block->j0,
                       block->j0 + block->n) != ATTN__BLOCK_FULL;

    if (want.stage == ATTN_STAGE_RAW)
        return false;
    if (p->softcap > 0)
        score_softcap(p, slot, block->n, want.slopes);
    if (want.stage == ATTN_STAGE_SOFTCAPPED)
        return false;
    if (p->bias.data) {
        score_gather_bias(p, slot, tile, block);
        score_add_bias(slot, block->n);
    }
    if (p->slopes.data)
        score_add_alibi(slot, tile, block);
    if (edge && want.seen)
        score_mask(p, slot, tile, block, true, by_mask);
    else if (edge)
        score_mask(p, slot, tile, block, false, by_mask);
    return edge && want.seen;
}

/* The same from the block's keys. */
static inline bool tile_scores(const attn__problem *p,
                               const attn__slot *slot,
                               const attn__tile *tile,
                               const key_block *block, score_request want)
{
    score_product(p, slot, tile, block);
    return scores_from_products(p, slot, tile, block, want);
}

/* Multiply values [key][lane], rows `step` apart, by the dropout factor, 0
 * where dropped. */
static void apply_dropout(const attn__problem *p, const attn__unit *u,
                          const attn__tile *tile, const key_block *block,
                          REAL *values, ptrdiff_t step)
{
    const REAL factor = (REAL)attn__dropout_factor(p->dropout_p);

    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++) {
        const uint32_t head =
            (uint32_t)(u->b * p->heads_q + tile->h[lane]);
        const int64_t i = tile->i[lane] + p->dropout_start[0];

        attn__philox words = {{0}};

        for (int64_t j = 0; j < block->n; j++) {
            const int64_t key = block->j0 + j + p->dropout_start[1];

            if (j == 0 || key % 4 == 0)
                words = attn__dropout_words(&p->dropout, head, (uint32_t)i,
                                            (uint32_t)(key >> 2));
            values[j * step + lane] *=
                words.word[key & 3] >= p->dropout.threshold ? factor : 0;
        }
    }
}
