/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores, weights and row entropies as arrays. Two sweeps over the keys: the
 * first is the forward's without values (m, l), the second forms the scores
 * again and writes rows of the chosen stage. Runs after a forward or alone,
 * and never touches o, so o has the same bits with or without it.
 *
 *   entropy = sum_j p_j (ln l - x_j),  p_j = e^x_j / l,  x_j = s_j - m
 *
 * which has no cancellation: x_j <= 0, and l >= 1. */

static inline REAL *entropy_of(const attn__tile *tile)
{
    return tile->delta; /* free in the forward pass */
}

/* Scores to weights in place, 0 where hidden; entropy grows by the block. */
static void weights_block(const attn__problem *p, const attn__slot *slot,
                          const attn__tile *tile, int64_t n)
{
    const V none = v_set1(p->empty_rows == ATTN_EMPTY_NAN ? (REAL)NAN : 0);

    for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
        const V l = v_load((const REAL *)tile->l + v * LANES);
        const V m = softmax_base(v_load((const REAL *)tile->m + v * LANES));
        const V log_l = v_load((const REAL *)tile->factor + v * LANES);
        REAL *entropy = entropy_of(tile) + v * LANES;
        V sum = v_set1(0);

        for (int64_t j = 0; j < n; j++) {
            const ptrdiff_t at = j * TILE_ROWS + v * LANES;
            REAL *s = (REAL *)slot->s + at;
            const V x = v_load(s) - m;
            V weight = v_exp_negative(x) / l;
            /* p ln p is 0 at p = 0, where x may be infinite. */
            V term = v_select(v_eq(weight, v_set1(0)), v_set1(0),
                              weight * (log_l - x));
            /* Hidden pairs are those with a score of -inf, in NaN rows too. */
            const VM seen = v_ne(v_load(s), v_set1((REAL)-INFINITY));

            weight = v_select(seen, weight, v_set1(0));
            term = v_select(seen, term, v_set1(0));
            weight = v_select(v_eq(l, v_set1(0)), none, weight);
            sum = sum + term;
            v_store(s, weight);
        }
        v_store(entropy, v_load(entropy) + sum);
    }
}

/* What a key block outside every row's reach holds, in one lane. */
static REAL weights_hidden(const attn__problem *p, const attn__tile *tile,
                           int64_t lane)
{
    if (p->stage == ATTN_STAGE_BIASED)
        return (REAL)-INFINITY;
    return p->empty_rows == ATTN_EMPTY_NAN && p->stage == ATTN_STAGE_PROBS &&
                   ((const REAL *)tile->l)[lane] == 0
               ? (REAL)NAN
               : 0;
}

/* Columns [j0, j0 + n) of the tile's rows; values NULL: all hidden. */
static void weights_store(const attn__problem *p, const attn__unit *u,
                          const attn__tile *tile, int64_t r0, int64_t j0,
                          int64_t n, const REAL *values)
{
    const attn__target *out = &p->weights;

    for (int64_t lane = 0; lane < tile->n; lane++) {
        const int64_t h = tile->h[lane] - u->head0 + u->out_head;
        const int64_t row =
            u->rows ? u->out_row + r0 + lane : tile->i[lane];
        const int64_t at = u->b * out->stride[0] + h * out->stride[1] +
                           row * out->stride[2];

        for (int64_t j = 0; j < n; j++)
            write_any(out->data, out->dtype, at + (j0 + j) * out->stride[3],
                      (double)(values ? values[j * TILE_ROWS + lane]
                                      : weights_hidden(p, tile, lane)));
    }
}

static void weights_tile(const attn__problem *p, const attn__unit *u,
                         const attn__slot *slot, const attn__tile *tile,
                         int64_t r0, const key_block *block)
{
    const bool probs = p->stage == ATTN_STAGE_PROBS;
    const attn_stage stage = probs ? ATTN_STAGE_BIASED : p->stage;

    tile_scores(p, slot, tile, block,
                (score_request){stage, false, false, false});
    if (probs)
        weights_block(p, slot, tile, block->n);
    if (p->weights.data)
        weights_store(p, u, tile, r0, block->j0, block->n, slot->s);
}

/* Raw scores are wanted at every pair, masked ones only where a row sees. */
static bool weights_computed(const attn__problem *p, const attn__tile *tile,
                             int64_t j0, int64_t j1)
{
    return p->stage <= ATTN_STAGE_SOFTCAPPED ||
           attn__classify(tile->any, tile->all, j0, j1) != ATTN__BLOCK_EMPTY;
}

static void weights_sweep(const attn__problem *p, const attn__unit *u,
                          const attn__sequence *seq, const attn__slot *slot,
                          size_t n)
{
    /* Keys past the sequence's length are in the array, unless it is paged:
     * then they are not read, and count as hidden. */
    const bool all_keys = p->stage <= ATTN_STAGE_SOFTCAPPED &&
                          !p->block_table.data;
    const int64_t end = all_keys ? p->len_k : seq->len_k;

    for (int64_t j0 = 0; j0 < p->len_k; j0 += ATTN__BLOCK_KEYS) {
        const int64_t j1 = attn__min_i64(j0 + ATTN__BLOCK_KEYS, p->len_k);
        const int64_t read = attn__max_i64(j0, attn__min_i64(j1, end));
        key_block block = {0};

        if (read > j0)
            block = keys_load(p, u, seq, slot, j0, read, 0);
        for (size_t t = 0; t < n; t++) {
            const attn__tile *tile = &slot->tiles[t];
            const int64_t r0 = u->row0 + (int64_t)t * TILE_ROWS;
            const bool computed =
                read > j0 && weights_computed(p, tile, j0, read);
            const int64_t from = computed ? read : j0;

            if (computed)
                weights_tile(p, u, slot, tile, r0, &block);
            if (p->weights.data)
                weights_store(p, u, tile, r0, from, j1 - from, NULL);
        }
    }
}

static void weights_store_entropy(const attn__problem *p, const attn__unit *u,
                                  const attn__sequence *seq,
                                  const attn__tile *tile)
{
    const REAL *l = tile->l;

    for (int64_t lane = 0; lane < tile->n; lane++) {
        double entropy = (double)entropy_of(tile)[lane];

        if (l[lane] == 0)
            entropy = p->empty_rows == ATTN_EMPTY_NAN ? (double)NAN : 0;
        write_any(p->entropy.data, p->entropy.dtype,
                  row_index(&p->entropy, tile, lane, u->b, seq->q_start),
                  entropy);
    }
}

/* factor = ln l, entropy = 0: what the second sweep needs of the first. */
static void weights_prepare(attn__tile *tile)
{
    const REAL *l = tile->l;
    REAL *log_l = tile->factor;

    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++)
        log_l[lane] = (REAL)attn__log((double)l[lane]);
    panel_zero(entropy_of(tile), TILE_ROWS);
}

void KERNEL(weights)(const attn__problem *problem, const attn__unit *u,
                     void *memory)
{
    const attn__sequence seq = attn__sequence_of(problem, u->b);
    attn__problem keys_only = *problem;
    attn__arena arena = {memory, 0, false};
    attn__slot slot;
    size_t n;

    keys_only.v = (attn__view){0};
    keys_only.dropout_p = 0;
    attn__forward_slot(&arena, &slot, tile_shape,
                       (size_t)problem->macro_rows, (size_t)problem->dim_qk,
                       (size_t)problem->dim_v);
    n = forward_load(&keys_only, u, &seq, &slot);
    if (problem->stage == ATTN_STAGE_PROBS) {
        forward_sweep(&keys_only, u, &seq, &slot, 0, n, false);
        for (size_t t = 0; t < n; t++)
            weights_prepare(&slot.tiles[t]);
    }
    weights_sweep(&keys_only, u, &seq, &slot, n);
    for (size_t t = 0; t < n && problem->entropy.data; t++)
        weights_store_entropy(problem, u, &seq, &slot.tiles[t]);
}
