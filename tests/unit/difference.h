/* SPDX-License-Identifier: Apache-2.0
 *
 * The derivative of a loss by one number, by differences at four places: off by
 * h^4 times the fifth derivative over 30. */
#ifndef ATTN_TESTS_DIFFERENCE_H
#define ATTN_TESTS_DIFFERENCE_H

typedef double loss_of(void *problem);

static inline double loss_at(loss_of *loss, void *problem, double *x,
                             double step)
{
    const double before = *x;
    double value;

    *x = before + step;
    value = loss(problem);
    *x = before;
    return value;
}

static inline double difference(loss_of *loss, void *problem, double *x,
                                double h)
{
    return (8 * (loss_at(loss, problem, x, h) -
                 loss_at(loss, problem, x, -h)) -
            (loss_at(loss, problem, x, 2 * h) -
             loss_at(loss, problem, x, -2 * h))) /
           (12 * h);
}

#endif
