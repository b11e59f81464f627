/* SPDX-License-Identifier: Apache-2.0
 *
 * The exponential, tanh and its derivative on vectors.
 *
 *   e^x = 2^n (1 + r + r^2 q(r)),  n = rint(x log2 e),  r = x - n ln 2 in two
 *                                  steps
 *
 * Coefficients: tools/exp_coefficients.py (degree 6 for fp32, 11 for fp64).
 * Claims, checked by tests/unit/test_vector_math.c at every level: e^x within
 * 1.1 ulp and never falling, tanh within 2.5, its derivative within 5;
 * e^0 = 1; below 2^-126 (2^-1022) exactly 0, so -inf gives 0; NaN gives NaN;
 * +inf above 2^127.5 (2^1023.5), up to where n has a power. */

#if REAL_BITS == 64
#define EXP_LOW (-0x1.6232bdd7abcd2p9)
#define EXP_HIGH 0x1.62b7d369a5aa0p9
#define LOG2_E 0x1.71547652b82fep0
#define LN2_HIGH 0x1.62e42fee00000p-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#else
#define EXP_LOW (-0x1.5d589ep6f)
#define EXP_HIGH 0x1.61814ap6f
#define LOG2_E 0x1.715476p0f
#define LN2_HIGH 0x1.62ep-1f
#define LN2_LOW 0x1.0bfbe8p-15f
#endif

/* (e^r - 1 - r) / r^2 for abs(r) <= ln 2 / 2. Horner's rule in r^2 over pairs
 * of terms: by r alone, a vector waits twice as long for itself. */
static inline V exp_tail(V r, V r2)
{
#if REAL_BITS == 64
    const V q23 = v_fma(v_set1(0x1.55555555554fap-3), r,
                        v_set1(0x1.000000000000ap-1));
    const V q45 = v_fma(v_set1(0x1.1111111127b9dp-7), r,
                        v_set1(0x1.555555555088bp-5));
    const V q67 = v_fma(v_set1(0x1.a01a012a69c93p-13), r,
                        v_set1(0x1.6c16c184269bfp-10));
    const V q89 = v_fma(v_set1(0x1.71df25393e755p-19), r,
                        v_set1(0x1.a0199a1670064p-16));
    const V top = v_fma(v_set1(0x1.ad7f7d40f0e82p-26), r,
                        v_set1(0x1.28ad69021b1e8p-22));

    return v_fma(v_fma(v_fma(v_fma(top, r2, q89), r2, q67), r2, q45), r2,
                 q23);
#else
    const V q23 = v_fma(v_set1(0x1.555492p-3f), r, v_set1(0x1.fffffcp-2f));
    const V q45 = v_fma(v_set1(0x1.1239d4p-7f), r, v_set1(0x1.5558f2p-5f));
    const V top = v_set1(0x1.6a2448p-10f);

    return v_fma(v_fma(top, r2, q45), r2, q23);
#endif
}

/* x = n ln 2 + r; n comes as 2^n. */
static inline V exp_reduce(V x, V *two_n)
{
    const V shifted = v_fma(x, v_set1(LOG2_E), v_set1(ROUNDER));
    const V n = shifted - v_set1(ROUNDER);

    *two_n = v_power_of_2(shifted);
    return v_fma(n, v_set1(-LN2_LOW), v_fma(n, v_set1(-LN2_HIGH), x));
}

/* e^r - 1 for what a reduction leaves. r is added whole: 1 + r q would be
 * rounded, and e^x would fall here and there. */
static inline V exp_rest(V r)
{
    const V r2 = r * r;

    return v_fma(exp_tail(r, r2), r2, r);
}

/* e^x for x <= 0 (and a little above), where softmax lives. */
static inline V v_exp_negative(V x)
{
    V two_n;
    const V rest = exp_rest(exp_reduce(x, &two_n));

    return v_fma_unless(v_lt(x, v_set1(EXP_LOW)), two_n, rest, two_n);
}

/* e^(x + tail) for every x, where tail is what rounding took from x. */
static inline V v_exp_sum(V x, V tail)
{
    V two_n;
    const V rest = exp_rest(exp_reduce(x, &two_n) + tail);

    return v_select(
        v_lt(v_set1(EXP_HIGH), x), v_set1((REAL)INFINITY),
        v_fma_unless(v_lt(x, v_set1(EXP_LOW)), two_n, rest, two_n));
}

/* With e = e^(-2 abs(x)): tanh x = (1 - e) / (1 + e) near 0, where 1 - e is had
 * without cancellation, and 1 - 2 e / (1 + e) where that quotient is below 1/2,
 * so that half its error counts; with the sign of x. */
static inline V v_tanh(V x)
{
    V two_n;
    const V y = v_max(v_set1(EXP_LOW), v_abs(x) * v_set1(-2));
    const V rest = exp_rest(exp_reduce(y, &two_n));
    const V e = v_fma(two_n, rest, two_n);
    const V less = v_fma(v_set1(0) - two_n, rest, v_set1(1) - two_n);
    const VM far = v_lt(e + e + e, v_set1(1));
    const V q = v_select(far, e + e, less) / (v_set1(1) + e);

    return v_copysign(v_select(far, v_set1(1) - q, q), x);
}

/* 1 - tanh^2 x = 4 e / (1 + e)^2, e = e^(-2 abs(x)): no cancellation. */
static inline V v_tanh_slope(V x)
{
    const V e = v_exp_negative(v_abs(x) * v_set1(-2));
    const V d = v_set1(1) + e;

    return v_set1(4) * e / (d * d);
}
