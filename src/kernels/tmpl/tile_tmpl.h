/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile: TILE_ROWS rows (query, head) of one KV head, in the lanes. Loading
 * puts their q (and d_o) into panels [dim][lane], and works out what each row
 * sees. */

#define TILE_ROWS ((ptrdiff_t)TILE_VECTORS * LANES)

static const attn__tile_shape tile_shape = {sizeof(REAL), (size_t)TILE_ROWS,
                                            TILE_PARTS};

static inline const ELEM *elem_at(const attn__view *view, int64_t b, int64_t h,
                                  int64_t i)
{
    return (const ELEM *)(const void *)view->data + b * view->stride[0] +
           h * view->stride[1] + i * view->stride[2];
}

static const char *row_at(const attn__view *view, int64_t b, int64_t h,
                          int64_t i)
{
    const int64_t at = b * view->stride[0] + h * view->stride[1] +
                       i * view->stride[2];

    return view->data + at * (int64_t)attn_dtype_size(view->dtype);
}

/* Which rows, where they stand, what they see. */
static void tile_place(attn__tile *tile, const attn__problem *p,
                       const attn__unit *u, const attn__sequence *seq,
                       int64_t r0)
{
    int64_t q = r0 / u->n_heads, head = r0 % u->n_heads;

    tile->n = attn__min_i64(TILE_ROWS, u->row1 - r0);
    tile->any = (attn__interval){INT64_MAX, 0};
    tile->all = (attn__interval){0, INT64_MAX};
    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane++) {
        const int64_t h = u->head0 + head;
        const int64_t i = u->rows ? u->rows[q] : q;
        const attn__interval see =
            attn__visible_keys(&p->geometry, i + seq->q_offset, seq->len_k);

        tile->h[lane] = h;
        tile->i[lane] = i;
        tile->p[lane] = i + seq->q_offset;
        tile->see[lane] = see;
        if (see.lo < see.hi) {
            tile->any.lo = attn__min_i64(tile->any.lo, see.lo);
            tile->any.hi = attn__max_i64(tile->any.hi, see.hi);
        }
        tile->all.lo = attn__max_i64(tile->all.lo, see.lo);
        tile->all.hi = attn__min_i64(tile->all.hi, see.hi);
        if (p->mask.data)
            tile->mask[lane] = row_at(&p->mask, u->b, h, i);
        if (p->bias.data)
            tile->bias[lane] = row_at(&p->bias, u->b, h, i);
        if (p->slopes.data)
            ((REAL *)tile->slope)[lane] =
                real_of(read_any(p->slopes.data, p->slopes.dtype,
                                 u->b * p->slopes.stride[2] +
                                     h * p->slopes.stride[3]));
        if (lane < tile->n - 1 && ++head == u->n_heads) {
            head = 0;
            q++;
        }
    }
}

/* panel[c][lane] = element c of each lane's row of `view`, by fours where
 * columns are neighbours. */
static inline void tile_pack(REAL *panel, const attn__tile *tile,
                             const attn__view *view, int64_t b,
                             int64_t row_start, int64_t dim)
{
    const int64_t step = view->stride[3];
    const int64_t fours = step == 1 ? dim / 4 * 4 : 0;

    for (ptrdiff_t lane = 0; lane < TILE_ROWS; lane += LANES) {
        const ELEM *row[VECTOR_BYTES / sizeof(REAL)];

        for (ptrdiff_t i = 0; i < LANES; i++)
            row[i] = elem_at(view, b, tile->h[lane + i],
                             row_start + tile->i[lane + i]);
        for (int64_t c = 0; c < fours; c += 4) {
            V column[4];

            elems_columns(row, c, 4, column);
            for (ptrdiff_t k = 0; k < 4; k++)
                v_store(panel + (c + k) * TILE_ROWS + lane, column[k]);
        }
        for (ptrdiff_t i = 0; i < LANES; i++)
            for (int64_t c = fours; c < dim; c++)
                panel[c * TILE_ROWS + lane + i] = elem_load(row[i][c * step]);
    }
}

/* The squares of tile_unpack: columns [0, return value) of LANES used lanes. */
static inline int64_t tile_unpack_squares(const REAL *panel, int64_t dim,
                                          ELEM *const *row)
{
    int64_t c = 0;

    for (; c + LANES <= dim; c += LANES) {
        V square[VECTOR_BYTES / sizeof(REAL)];

        UNROLL(16)
        for (ptrdiff_t i = 0; i < LANES; i++)
            square[i] = v_load(panel + (c + i) * TILE_ROWS);
        v_transpose(square);
        UNROLL(16)
        for (ptrdiff_t i = 0; i < LANES; i++)
            elems_store(row[i] + c, square[i]);
    }
    return c;
}

/* Write panel[c][lane] to each used lane's row of an output. */
static inline void tile_unpack(const REAL *panel, const attn__tile *tile,
                               const attn__target *out, int64_t b,
                               int64_t row_start, int64_t dim)
{
    const int64_t step = out->stride[3];

    for (ptrdiff_t lane = 0; lane < tile->n; lane += LANES) {
        const ptrdiff_t used = attn__min_i64(LANES, tile->n - lane);
        ELEM *row[VECTOR_BYTES / sizeof(REAL)];
        int64_t done = 0;

        for (ptrdiff_t i = 0; i < used; i++)
            row[i] = (ELEM *)(void *)out->data + b * out->stride[0] +
                     tile->h[lane + i] * out->stride[1] +
                     (row_start + tile->i[lane + i]) * out->stride[2];
        if (step == 1 && used == LANES)
            done = tile_unpack_squares(panel + lane, dim, row);
        for (ptrdiff_t i = 0; i < used; i++)
            for (int64_t c = done; c < dim; c++)
                row[i][c * step] =
                    elem_round(panel[c * TILE_ROWS + lane + i]);
    }
}

/* Whether any of the used lanes of a panel holds an infinity or NaN. */
static inline bool panel_is_finite(const REAL *panel, int64_t vectors)
{
    for (int64_t i = 0; i < vectors; i++) {
        const V x = v_load(panel + i * LANES);

        if (v_any(v_ne(x - x, v_set1(0))))
            return false;
    }
    return true;
}

static inline void panel_zero(REAL *panel, int64_t n)
{
    memset(panel, 0, (size_t)n * sizeof *panel);
}
