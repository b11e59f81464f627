/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the reference in double may be from the exact result, element by
 * element, from the operations that it does. With u = 2^-53, d = D, n = Lk and
 * per row S = the largest sum of the sizes that make a score (|scale| sum
 * |q||k|, |bias|, |alibi|), to first order in u:
 *
 *   s      (d + 4) S u          d products and sums, scale, softcap, 2 adds
 *   p      E p, E = (4 (d + 4) S + 2 n + 16) u     exp of s - m, sum, division
 *   lse    ((d + 5) S + n + 8 + 2 |lse|) u
 *   o      (E + (n + 4) u) sum p f |v|
 *   dp     (dv + 3) u R         R_i = max over visible j of f sum |d_o||v|
 *   ds     C p (2 R + |dlse|),  C = 3 E + (2 dv + n + 16) u
 *   dr     adds (4 + 2 (d + 4) S / softcap) u p (2 R + |dlse|) with a softcap
 *   dq dk dbias dslopes         sums of N such terms: (C + cap + (N + 4) u)
 *                               sum p (2 R + |dlse|) |factor|
 *   dv     (E + (N + 4) u) sum p f |d_o|
 *   dsinks (C + lse's bound + (N + 4) u) sum p_sink (2 R + |dlse|)
 *
 * E counts s twice (in s and in what is subtracted), C counts p in ds, in
 * delta and in dp. */
#ifndef ATTN_TESTS_REF_BOUNDS_H
#define ATTN_TESTS_REF_BOUNDS_H

#include "ref_case.h"

/* Shaped as the results; NULL where the case has no such gradient. */
typedef struct ref_bounds {
    long double *weights, *lse, *o, *entropy;
    long double *dq, *dk, *dv, *dbias, *dslopes, *dsinks;
} ref_bounds;

/* `exact`: the case's results in long double. */
ref_bounds ref_bounds_open(const ref_case *c, const ref_outputs *exact);
void ref_bounds_close(ref_bounds *b);

#endif
