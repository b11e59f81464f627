/* SPDX-License-Identifier: Apache-2.0
 *
 * The matrix product by a CBLAS, in builds that ask for one: f64 and f32,
 * matrices with unit stride along one axis. Everything else is left to our own
 * kernels. The order of sums, and the threads, are that library's. */
#include "core/element.h"
#include "run/gemm_blas.h"

#include ATTN_CBLAS
#include <limits.h>

/* A matrix as CBLAS takes it, in row-major order or in column-major. The
 * enumerations' names differ between libraries; int takes them all. */
typedef struct blas_matrix {
    int transpose;
    int leading;
    bool fits;
} blas_matrix;

/* `along` is the stride that has to be 1, of `n` elements; `across` that of
 * the `lines`. Strides of axes with one element mean nothing. */
static bool is_lines(int64_t lines, int64_t n, int64_t across, int64_t along,
                     int *leading)
{
    const int64_t least = n > 1 ? n : 1;
    const int64_t stride = lines > 1 ? across : least;

    *leading = (int)stride;
    return (along == 1 || n <= 1) && stride >= least && stride <= INT_MAX;
}

/* A matrix of `rows` lines, or else its transpose; `fits` says that one of
 * them has unit stride. */
static blas_matrix matrix_of(const int64_t *stride, int64_t rows,
                             int64_t columns, int order)
{
    blas_matrix m = {CblasNoTrans, 1, true};

    if (is_lines(rows, columns, stride[2], stride[3], &m.leading)) {
        m.transpose = order == CblasRowMajor ? CblasNoTrans : CblasTrans;
        return m;
    }
    m.fits = is_lines(columns, rows, stride[3], stride[2], &m.leading);
    m.transpose = order == CblasColMajor ? CblasNoTrans : CblasTrans;
    return m;
}

/* c = d, or c is d already, or c = 0. */
static void start(const attn__gemm *g, int64_t batch)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            const int64_t from = batch * g->d.stride[1] +
                                 i * g->d.stride[2] + j * g->d.stride[3];
            const int64_t to = batch * g->c.stride[1] + i * g->c.stride[2] +
                               j * g->c.stride[3];

            attn__write(g->c.data, g->c.dtype, to,
                        g->d.data ? attn__read(g->d.data, g->d.dtype, from)
                                  : 0);
        }
}

/* c += a b of one batch of a and b. */
static void multiply(const attn__gemm *g, int order,
                     const blas_matrix *a, const blas_matrix *b, int leading,
                     int64_t batch, int64_t source)
{
    const int64_t at_a = source * g->a.stride[1];
    const int64_t at_b = source * g->b.stride[1];
    const int64_t at_c = batch * g->c.stride[1];
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k;

    if (g->a.dtype == ATTN_F64)
        cblas_dgemm(order, a->transpose, b->transpose, m, n, k, 1,
                    (const double *)(const void *)g->a.data + at_a,
                    a->leading,
                    (const double *)(const void *)g->b.data + at_b,
                    b->leading, 1, (double *)(void *)g->c.data + at_c,
                    leading);
    else
        cblas_sgemm(order, a->transpose, b->transpose, m, n, k, 1,
                    (const float *)(const void *)g->a.data + at_a, a->leading,
                    (const float *)(const void *)g->b.data + at_b, b->leading,
                    1, (float *)(void *)g->c.data + at_c, leading);
}

/* d is written to c first and the product added to it, so that one call of the
 * library does both, and a sum over batches is as many calls. */
bool attn__gemm_by_blas(const attn__gemm *g)
{
    const int64_t *stride = g->c.stride;
    int leading;
    const bool by_rows = is_lines(g->m, g->n, stride[2], stride[3], &leading);
    const int order = by_rows ? CblasRowMajor : CblasColMajor;
    const blas_matrix a = matrix_of(g->a.stride, g->m, g->k, order);
    const blas_matrix b = matrix_of(g->b.stride, g->k, g->n, order);

    if ((g->a.dtype != ATTN_F64 && g->a.dtype != ATTN_F32) ||
        g->c.dtype != g->a.dtype || g->m > INT_MAX || g->n > INT_MAX ||
        g->k > INT_MAX || !a.fits || !b.fits)
        return false;
    if (!by_rows && !is_lines(g->n, g->m, stride[3], stride[2], &leading))
        return false;
    for (int64_t batch = 0; batch < g->batch; batch++) {
        start(g, batch);
        for (int64_t s = 0; s < g->sum && g->k > 0; s++)
            multiply(g, order, &a, &b, leading, batch, batch + s);
    }
    return true;
}
