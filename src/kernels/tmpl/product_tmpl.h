/* SPDX-License-Identifier: Apache-2.0
 *
 * The one matrix product under everything:
 *
 *   out[r][lanes] = sum over t of a[r * a_row + t * a_step] * b[t][lanes]
 *
 * a is read in place, one scalar at a time, at any two strides; b is a panel
 * of aligned vectors. Scores (a = K, b = Q^T), P V (a = V, b = P), dP, dQ, dK
 * and dV are all this product with other strides. Each element is one sum in
 * the order of t, starting from 0, whatever the register tile: its bits depend
 * on its own operands alone. Scores and dP are summed PRODUCT_STEPS steps at a
 * time, and then these parts: what a sum loses grows with how long it is large,
 * and e^s makes the loss of a large score the error of a row. */

#define PRODUCT_STEPS 32

typedef struct product {
    const REAL *a;
    ptrdiff_t a_row, a_step;
    const REAL *b;
    ptrdiff_t b_step; /* REALs between the panel's rows */
    ptrdiff_t steps;
} product;

/* What becomes of a finished vector: row r, vector v of the tile. */
typedef struct product_out {
    REAL *out;
    ptrdiff_t out_row; /* REALs between rows */
    const REAL *factor; /* NULL, or vectors [TILE_VECTORS] */
    REAL scale;
    bool further; /* of a sum in parts: not the first */
} product_out;

typedef enum product_end {
    PRODUCT_SCALE,  /* out = scale * sum, or scale * (out + sum) of parts */
    PRODUCT_UPDATE, /* out = out * factor + sum, factor per lane */
    PRODUCT_ADD     /* out = out + sum */
} product_end;

static inline void product_finish(product_end end, const product_out *o,
                                  ptrdiff_t r, ptrdiff_t v, V sum)
{
    REAL *at = o->out + r * o->out_row + v * LANES;

    if (end == PRODUCT_UPDATE)
        sum = v_fma(v_load(at), v_load(o->factor + v * LANES), sum);
    if (end == PRODUCT_ADD || (end == PRODUCT_SCALE && o->further))
        sum = v_load(at) + sum;
    if (end == PRODUCT_SCALE)
        sum = sum * v_set1(o->scale);
    v_store(at, sum);
}

/* `rows` is a constant where this is inlined, so that acc is registers. Rows
 * are reached in threes from one pointer: base, base + row, base + 2 row are
 * single addressing modes, and few registers hold them all. */
static inline __attribute__((always_inline)) void
product_rows(const ptrdiff_t rows, product_end end, const product *p,
             ptrdiff_t r0, const product_out *o)
{
    const ptrdiff_t a_row = p->a_row, a_step = p->a_step, b_step = p->b_step;
    const REAL *a[(PRODUCT_ROWS + 2) / 3], *b = p->b;
    V acc[PRODUCT_ROWS][TILE_VECTORS];

    UNROLL(PRODUCT_ROWS)
    for (ptrdiff_t r = 0; r < rows; r++) {
        if (r % 3 == 0)
            a[r / 3] = p->a + (r0 + r) * a_row;
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++)
            acc[r][v] = v_set1(0);
    }
    for (ptrdiff_t t = p->steps; t > 0; t--) {
        V lanes[TILE_VECTORS];

        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++)
            lanes[v] = v_load(b + v * LANES);
        UNROLL(PRODUCT_ROWS)
        for (ptrdiff_t r = 0; r < rows; r++) {
            const V scalar = v_set1(a[r / 3][r % 3 * a_row]);

            for (ptrdiff_t v = 0; v < TILE_VECTORS; v++)
                acc[r][v] = v_fma(scalar, lanes[v], acc[r][v]);
            if (r % 3 == 2 || r == rows - 1)
                a[r / 3] += a_step;
        }
        b += b_step;
    }
    UNROLL(PRODUCT_ROWS)
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++)
            product_finish(end, o, r0 + r, v, acc[r][v]);
}

/* The same; scores and dP part by part, while their rows of a are near. */
static inline __attribute__((always_inline)) void
product_parts(const ptrdiff_t rows, product_end end, const product *p,
              ptrdiff_t r0, const product_out *o)
{
    product part = *p;
    product_out to = *o;

    if (end != PRODUCT_SCALE) {
        product_rows(rows, end, p, r0, o);
        return;
    }
    do {
        const bool last = part.steps <= PRODUCT_STEPS;
        const ptrdiff_t left = part.steps - PRODUCT_STEPS;

        to.scale = last ? o->scale : 1;
        part.steps = last ? part.steps : PRODUCT_STEPS;
        product_rows(rows, end, &part, r0, &to);
        to.further = true;
        part.a += PRODUCT_STEPS * part.a_step;
        part.b += PRODUCT_STEPS * part.b_step;
        part.steps = left;
    } while (part.steps > 0);
}

/* Register tiles as even as they go: short ones would wait for latency. */
static inline __attribute__((always_inline)) void
product_all(product_end end, const product *p, ptrdiff_t rows,
            const product_out *o)
{
    const ptrdiff_t part = PRODUCT_ROWS * 2 / 3;
    ptrdiff_t r = 0;

    while (rows - r >= PRODUCT_ROWS && rows - r != 2 * part) {
        product_parts(PRODUCT_ROWS, end, p, r, o);
        r += PRODUCT_ROWS;
    }
    for (; r + part <= rows; r += part)
        product_parts(part, end, p, r, o);
    for (; r + 2 <= rows; r += 2)
        product_parts(2, end, p, r, o);
    for (; r < rows; r++)
        product_parts(1, end, p, r, o);
}

static APART void product_scale(const product *p, ptrdiff_t rows,
                                const product_out *o)
{
    product_all(PRODUCT_SCALE, p, rows, o);
}

static APART void product_update(const product *p, ptrdiff_t rows,
                                 const product_out *o)
{
    product_all(PRODUCT_UPDATE, p, rows, o);
}

static APART void product_add(const product *p, ptrdiff_t rows,
                              const product_out *o)
{
    product_all(PRODUCT_ADD, p, rows, o);
}

static inline void product_run(product_end end, const product *p,
                               ptrdiff_t rows, const product_out *o)
{
    if (end == PRODUCT_SCALE)
        product_scale(p, rows, o);
    else if (end == PRODUCT_UPDATE)
        product_update(p, rows, o);
    else
        product_add(p, rows, o);
}

/* The same sums without the terms of hidden pairs: `seen` has the shape of b
 * (a mask per term and lane), or, where by_row is set, a mask per element of
 * a at the same strides. Taken only where an ordinary run came out non-finite,
 * so that 0 * NaN of a pair that is hidden cannot reach a row. */
static inline void product_careful(product_end end, const product *p,
                                   ptrdiff_t rows, const product_out *o,
                                   const REAL_INT *seen, bool by_row)
{
    for (ptrdiff_t r = 0; r < rows; r++) {
        for (ptrdiff_t v = 0; v < TILE_VECTORS; v++) {
            V acc = v_set1(0);

            for (ptrdiff_t t = 0; t < p->steps; t++) {
                const ptrdiff_t at = r * p->a_row + t * p->a_step;
                const V sum = v_fma(v_set1(p->a[at]),
                                    v_load(p->b + t * p->b_step + v * LANES),
                                    acc);

                if (by_row)
                    acc = seen[at] ? sum : acc;
                else
                    acc = v_select(
                        v_mask_load(seen + t * p->b_step + v * LANES), sum,
                        acc);
            }
            product_finish(end, o, r, v, acc);
        }
    }
}
