/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product of one unit: columns of b in the lanes, rows of a read as
 * scalars, in place where their type is that of the sums. For each block of k
 *
 *   acc[row][column] += sum over the block of a[row][t] b[t][column]
 *
 * with the block's sum formed on its own first. An element's terms come in the
 * order of batch and k whatever the unit, so its bits depend on nothing else.
 */

#include "kernels/gemm.h"

#define TILE_COLUMNS ((ptrdiff_t)TILE_VECTORS * LANES)

_Static_assert(TILE_VECTORS * VECTOR_BYTES / sizeof(REAL) <=
                       ATTN__MAX_TILE_ROWS &&
                   ATTN__GEMM_COLUMNS %
                           (TILE_VECTORS * VECTOR_BYTES / sizeof(REAL)) ==
                       0,
               "tiles must fill the slot's pieces");

/* One step of a unit: batch s of the sum, terms [k0, k0 + n). */
typedef struct gemm_step {
    int64_t s, k0, n;
} gemm_step;

static inline const ELEM *gemm_at(const attn__view *view, int64_t batch,
                                  int64_t row, int64_t column)
{
    return (const ELEM *)(const void *)view->data + batch * view->stride[1] +
           row * view->stride[2] + column * view->stride[3];
}

/* Rows of the unit of a as a product's left side. */
static product gemm_left(const attn__gemm *g, const attn__gemm_unit *u,
                         const attn__gemm_slot *slot, const gemm_step *step)
{
    const ELEM *a = gemm_at(&g->a, u->batch + step->s, u->row0, step->k0);
    const ptrdiff_t row = g->a.stride[2], column = g->a.stride[3];
#if STORAGE_IS_REAL
    const product in_place = {a,           row,          column,
                              slot->panel, TILE_COLUMNS, step->n};

    return in_place;
#else
    const product copied = {slot->a,     ATTN__GEMM_BLOCK, 1,
                            slot->panel, TILE_COLUMNS,     step->n};
    REAL *to = slot->a;

    for (int64_t r = 0; r < u->row1 - u->row0; r++)
        for (int64_t t = 0; t < step->n; t++)
            to[r * ATTN__GEMM_BLOCK + t] =
                elem_load(a[r * row + t * column]);
    return copied;
#endif
}

/* panel[t][lane] = b[k0 + t][column0 + lane]; lanes beyond n are 0. In the
 * order of memory: rows of b, or, where it is transposed, columns. */
static void gemm_pack(const attn__gemm *g, const attn__gemm_unit *u,
                      const attn__gemm_slot *slot, const gemm_step *step,
                      int64_t column0)
{
    const int64_t n = attn__min_i64(TILE_COLUMNS, u->column1 - column0);
    const ELEM *b = gemm_at(&g->b, u->batch + step->s, step->k0, column0);
    const ptrdiff_t row = g->b.stride[2], column = g->b.stride[3];
    REAL *panel = slot->panel;

    if (n == TILE_COLUMNS && column == 1) {
        for (int64_t t = 0; t < step->n; t++)
            for (ptrdiff_t lane = 0; lane < TILE_COLUMNS; lane++)
                panel[t * TILE_COLUMNS + lane] = elem_load(b[t * row + lane]);
        return;
    }
    for (ptrdiff_t lane = 0; lane < n; lane++)
        for (int64_t t = 0; t < step->n; t++)
            panel[t * TILE_COLUMNS + lane] =
                elem_load(b[t * row + lane * column]);
    for (ptrdiff_t lane = n; lane < TILE_COLUMNS; lane++)
        for (int64_t t = 0; t < step->n; t++)
            panel[t * TILE_COLUMNS + lane] = 0;
}

/* c = round(acc + d) of one row and tile. */
static void gemm_store(const attn__gemm *g, int64_t batch, int64_t row,
                       int64_t column, ptrdiff_t n, const REAL *acc)
{
    const int64_t d_at = batch * g->d.stride[1] + row * g->d.stride[2] +
                         column * g->d.stride[3];
    const int64_t c_at = batch * g->c.stride[1] + row * g->c.stride[2] +
                         column * g->c.stride[3];

    for (ptrdiff_t lane = 0; lane < n; lane++) {
        const int64_t to = c_at + lane * g->c.stride[3];
        REAL sum = acc[lane];

        if (g->d.data)
            sum += real_of(read_any(g->d.data, g->d.dtype,
                                    d_at + lane * g->d.stride[3]));
        if (g->c.dtype == g->a.dtype)
            ((ELEM *)(void *)g->c.data)[to] = elem_round(sum);
        else
            write_any(g->c.data, g->c.dtype, to, (double)sum);
    }
}

static void gemm_finish(const attn__gemm *g, const attn__gemm_unit *u,
                        const REAL *acc)
{
    for (int64_t j = u->column0; j < u->column1; j += TILE_COLUMNS)
        for (int64_t r = u->row0; r < u->row1; r++)
            gemm_store(g, u->batch, r, j,
                       attn__min_i64(TILE_COLUMNS, u->column1 - j),
                       acc + (j - u->column0) * ATTN__GEMM_ROWS +
                           (r - u->row0) * TILE_COLUMNS);
}

void KERNEL(gemm)(const attn__gemm *g, const attn__gemm_unit *u, void *memory)
{
    const int64_t rows = u->row1 - u->row0;
    attn__arena arena = {memory, 0, false};
    attn__gemm_slot slot;
    REAL *acc;

    attn__gemm_take(&arena, &slot, sizeof(REAL));
    acc = slot.acc;
    memset(acc, 0, sizeof(REAL) * ATTN__GEMM_ROWS * ATTN__GEMM_COLUMNS);
    for (int64_t s = 0; s < g->sum; s++)
        for (int64_t k0 = 0; k0 < g->k; k0 += ATTN__GEMM_BLOCK) {
            const gemm_step step = {
                s, k0, attn__min_i64(ATTN__GEMM_BLOCK, g->k - k0)};
            const product p = gemm_left(g, u, &slot, &step);

            for (int64_t j = u->column0; j < u->column1; j += TILE_COLUMNS) {
                const product_out out = {
                    acc + (j - u->column0) * ATTN__GEMM_ROWS, TILE_COLUMNS,
                    NULL, 1, false};

                gemm_pack(g, u, &slot, &step, j);
                product_run(PRODUCT_ADD, &p, rows, &out);
            }
        }
    gemm_finish(g, u, acc);
}
