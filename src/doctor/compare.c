/* SPDX-License-Identifier: Apache-2.0
 *
 * How close is close: the tolerance of an answer.
 *
 * A weight whose score has the error d has the relative error d, and the sum
 * over keys adds its own, so an output is off by at most about
 *
 *   u (sqrt(D + 4) max|s| + sqrt(Lk) + 4) max|v|
 *
 * for rounding errors that are independent (u the unit roundoff). Four times
 * that, as for our own kernels, and another four for exps and summation
 * orders that are not ours; none of these for 16 bits, where even four times
 * would let wrong formulas pass. */
#include <math.h>

#include "doctor/match.h"

double attn__unit(attn__tier tier)
{
    static const double unit[TIER_N] = {0x1p-53, 0x1p-24, 0x1p-11};

    return unit[tier];
}

static double largest(const double *x, int64_t n)
{
    double max = 0;

    for (int64_t e = 0; e < n; e++) {
        if (isfinite(x[e]))
            max = fmax(max, fabs(x[e]));
    }
    return max;
}

/* Largest possible |q||k| scale, from the largest norms; the options add. */
static double score_size(const attn__work *w, const attn__question *q)
{
    const double dim = (double)q->n.dim_qk;
    double size = fabs(w->scale) * largest(w->q, attn__count_q(&q->n)) *
                  largest(w->k, attn__count_k(&q->n)) * sqrt(dim);

    if (q->bias)
        size += largest(q->bias, q->bias_shape[0] * q->bias_shape[1] *
                                     q->bias_shape[2] * q->bias_shape[3]);
    if (w->slopes)
        size += largest(w->slopes, q->n.heads_q) * (double)q->n.len_k;
    return size;
}

static double tolerance(const attn__work *w, const attn__question *q,
                        attn__tier tier)
{
    const double terms =
        sqrt((double)q->n.dim_qk + 4) * score_size(w, q) +
        sqrt((double)q->n.len_k) + 4;
    const double size = fmax(largest(w->answer, w->n_answer),
                             largest(w->v, attn__count_v(&q->n)));
    const double factor = tier == TIER_F16 ? 1 : 16;
    const double layer = q->layer.x ? sqrt((double)q->layer.model) + 4 : 1;

    return factor * attn__unit(tier) * terms * size * layer;
}

attn__closeness attn__compare(const attn__work *w, const attn__question *q,
                              attn__tier tier)
{
    const double allowed = tolerance(w, q, tier);
    attn__closeness c = {0};

    if (w->n_answer != q->n_answer)
        return (attn__closeness){.worst = INFINITY};
    for (int64_t x = 0; x < q->n_answer; x++) {
        const double p = w->answer[x], a = q->answer[x];
        double error;

        if (isnan(p)) { /* nothing visible: 0 or NaN is what one expects */
            c.compared += a == 0 || !isfinite(a);
            continue;
        }
        c.compared++;
        if (isinf(p))
            error = isfinite(a) ? INFINITY : 0;
        else
            error = isfinite(a) ? fabs(a - p) / allowed : INFINITY;
        c.worst = fmax(c.worst, error);
        if (c.worst > 1)
            return c;
    }
    return c;
}
