/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums and products of gradients. */
#include "doctor/identities.h"

#include <math.h>

static double product(const double *x, const double *y, int64_t n)
{
    double sum = 0;

    for (int64_t e = 0; e < n; e++)
        sum += x[e] * y[e];
    return sum;
}

static double size(const double *x, int64_t n)
{
    return sqrt(product(x, x, n));
}

/* |x - y| against the size of what was added up. */
static double apart(double x, double y, double scale)
{
    return scale > 0 ? fabs(x - y) / scale : fabs(x - y);
}

/* The largest |sum over rows of x| of any head and channel. */
static double worst_sum(const double *x, int64_t heads, int64_t rows,
                        int64_t dim)
{
    const double all = size(x, heads * rows * dim);
    double worst = 0;

    for (int64_t h = 0; h < heads; h++) {
        for (int64_t c = 0; c < dim; c++) {
            double sum = 0;

            for (int64_t r = 0; r < rows; r++)
                sum += x[(h * rows + r) * dim + c];
            worst = fmax(worst, apart(sum, 0, all));
        }
    }
    return worst;
}

/* sum_j dv_j against sum_i d_o_i over the query heads of each KV head. */
static double values_apart(const attn__question *q, const double *dv)
{
    const attn__sizes *n = &q->n;
    const int64_t rows = n->heads_q / n->heads_kv * n->len_q;
    const double all = size(q->d_o, attn__count_o(n));
    double worst = 0;

    for (int64_t g = 0; g < n->batch * n->heads_kv; g++) {
        for (int64_t c = 0; c < n->dim_v; c++) {
            double left = 0, right = 0;

            for (int64_t j = 0; j < n->len_k; j++)
                left += dv[(g * n->len_k + j) * n->dim_v + c];
            for (int64_t r = 0; r < rows; r++)
                right += q->d_o[(g * rows + r) * n->dim_v + c];
            worst = fmax(worst, apart(left, right, all));
        }
    }
    return worst;
}

attn__identities attn__check_identities(const attn__question *q)
{
    const attn__sizes *n = &q->n;
    const int64_t n_q = attn__count_q(n), n_k = attn__count_k(n);
    const int64_t n_v = attn__count_v(n), n_o = attn__count_o(n);
    const double *dq = q->answer, *dk = dq + n_q, *dv = dk + n_k;
    const bool sink = q->asked & ASK_SINKS;
    attn__identities x = {NAN, NAN, NAN, NAN};

    if (!sink && !(q->asked & ASK_SOFTCAP))
        x.keys =
            worst_sum(dk, n->batch * n->heads_kv, n->len_k, n->dim_qk);
    if (!sink && !(q->asked & (ASK_MASK | ASK_LENGTHS | ASK_CAUSAL)))
        x.values = values_apart(q, dv);
    if (q->o)
        x.output = apart(product(dv, q->v, n_v), product(q->d_o, q->o, n_o),
                         size(q->d_o, n_o) * size(q->o, n_o));
    x.product = apart(product(q->q, dq, n_q), product(q->k, dk, n_k),
                      size(q->q, n_q) * size(dq, n_q) +
                          size(q->k, n_k) * size(dk, n_k));
    return x;
}
