/* SPDX-License-Identifier: Apache-2.0
 *
 * exp and ln of one double, for what is done once per row: row statistics and
 * merging. Our own, so that bits do not depend on the C library. Errors below
 * 2 ulp on the ranges used (tests/unit/test_real_math.c). */
#ifndef ATTN_KERNELS_REAL_MATH_H
#define ATTN_KERNELS_REAL_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* ln 2 in two parts; the first has 32 trailing zero bits, so that its product
 * with an exponent is exact. */
#define ATTN__LN2_HI 0x1.62e42fee00000p-1
#define ATTN__LN2_LO 0x1.a39ef35793c76p-33

/* 1.5 * 2^52: adding it rounds a small double to an integer, which then
 * stands in the low bits. */
#define ATTN__ROUND_F64 0x1.8p52

static inline double attn__bits_f64(int64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline int64_t attn__f64_bits(double value)
{
    int64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* e^x for x <= 709; 0 where it would be below 2^-1022; NaN for NaN.
 * Coefficients: tools/exp_coefficients.py. */
static inline double attn__exp(double x)
{
    double shifted, n, r, q;

    if (x < -0x1.6232bdd7abcd2p9) /* -1022 ln 2 */
        return 0;
    if (!(x <= 709))
        return x != x ? x : INFINITY;
    shifted = x * 0x1.71547652b82fep0 + ATTN__ROUND_F64;
    n = shifted - ATTN__ROUND_F64;
    r = (x - n * ATTN__LN2_HI) - n * ATTN__LN2_LO;
    q = 0x1.ad7f7d40f0e82p-26;
    q = q * r + 0x1.28ad69021b1e8p-22;
    q = q * r + 0x1.71df25393e755p-19;
    q = q * r + 0x1.a0199a1670064p-16;
    q = q * r + 0x1.a01a012a69c93p-13;
    q = q * r + 0x1.6c16c184269bfp-10;
    q = q * r + 0x1.1111111127b9dp-7;
    q = q * r + 0x1.555555555088bp-5;
    q = q * r + 0x1.55555555554fap-3;
    q = q * r + 0x1.000000000000ap-1;
    return (1 + (r + r * r * q)) * attn__bits_f64(((int64_t)n + 1023) << 52);
}

/* ln x for x in [0, inf]; NaN for NaN. ln x = e ln 2 + 2 atanh(s) with
 * s = (m - 1) / (m + 1), m in [sqrt 1/2, sqrt 2): abs(s) < 0.1716, and the
 * series of atanh is below 2^-56 after twelve terms. */
static inline double attn__log(double x)
{
    int64_t bits = attn__f64_bits(x), exponent;
    double m, s, s2, tail, series = 0;

    if (x == 0)
        return -INFINITY;
    if (!(x < INFINITY))
        return x;
    exponent = 0;
    if (x < 0x1p-1022) {
        bits = attn__f64_bits(x * 0x1p54);
        exponent = -54;
    }
    /* Subtracting the bits of sqrt(1/2) puts the exponent of m at 0 or -1. */
    exponent += (bits - attn__f64_bits(0x1.6a09e667f3bcdp-1)) >> 52;
    m = attn__bits_f64(bits - (exponent + (x < 0x1p-1022 ? 54 : 0)) *
                                  (INT64_C(1) << 52));
    s = (m - 1) / (m + 1);
    s2 = s * s;
    for (int k = 25; k >= 3; k -= 2)
        series = series * s2 + 1.0 / k;
    tail = 2 * s * s2 * series + (double)exponent * ATTN__LN2_LO;
    return (double)exponent * ATTN__LN2_HI + (2 * s + tail);
}

#endif
