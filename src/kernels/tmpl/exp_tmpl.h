/* SPDX-License-Identifier: Apache-2.0
 *
 * exp, tanh and its derivative on vectors.
 *
 * e^x = 2^n (1 + (r + r^2 q(r))), n = rint(x log2 e), r = x - n ln 2 in two
 * steps. Coefficients: tools/exp_coefficients.py (degree 6 for fp32, 11 for
 * fp64). Claims, checked by tests/unit/test_vector_math.c: e^x within 1 ulp
 * (fp64 1.1) and never falling, tanh within 3, its derivative within 5; e^0 =
 * 1; below 2^-126 (2^-1022) exactly 0, so -inf gives 0; NaN gives NaN; +inf
 * above the range. */

#if REAL_BITS == 64
#define EXP_LOW (-0x1.6232bdd7abcd2p9)
#define EXP_HIGH 0x1.62e42fefa39efp9
#define LOG2_E 0x1.71547652b82fep0
#define LN2_HIGH 0x1.62e42fee00000p-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define ROUNDER 0x1.8p52
#define MANTISSA_BITS 52
#else
#define EXP_LOW (-0x1.5d589ep6f)
#define EXP_HIGH 0x1.62e42ep6f
#define LOG2_E 0x1.715476p0f
#define LN2_HIGH 0x1.62ep-1f
#define LN2_LOW 0x1.0bfbe8p-15f
#define ROUNDER 0x1.8p23f
#define MANTISSA_BITS 23
#endif

/* (e^r - 1 - r) / r^2 for abs(r) <= ln 2 / 2 */
static inline V exp_tail(V r)
{
#if REAL_BITS == 64
    V q = v_set1(0x1.ad7f49a04ed4ep-26);
    q = v_fma(q, r, v_set1(0x1.28ad69d0904ccp-22));
    q = v_fma(q, r, v_set1(0x1.71df255744966p-19));
    q = v_fma(q, r, v_set1(0x1.a0199a159cd55p-16));
    q = v_fma(q, r, v_set1(0x1.a01a012a5d8e6p-13));
    q = v_fma(q, r, v_set1(0x1.6c16c18426e12p-10));
    q = v_fma(q, r, v_set1(0x1.1111111127bbdp-7));
    q = v_fma(q, r, v_set1(0x1.555555555088ap-5));
    q = v_fma(q, r, v_set1(0x1.55555555554fap-3));
    return v_fma(q, r, v_set1(0x1.000000000000ap-1));
#else
    V q = v_fma(v_set1(0x1.6a2448p-10f), r, v_set1(0x1.1239d4p-7f));
    q = v_fma(q, r, v_set1(0x1.5558f2p-5f));
    q = v_fma(q, r, v_set1(0x1.555492p-3f));
    return v_fma(q, r, v_set1(0x1.fffffcp-2f));
#endif
}

/* x = n ln 2 + r; n also as an integer shifted into the exponent's place. */
static inline V exp_reduce(V x, VI *exponent, V *n)
{
    const V shifted = v_fma(x, v_set1(LOG2_E), v_set1(ROUNDER));
    V r;

    *n = shifted - v_set1(ROUNDER);
    *exponent = ((VI)shifted - (VI)v_set1(ROUNDER)) << MANTISSA_BITS;
    r = v_fma(*n, v_set1(-LN2_HIGH), x);
    return v_fma(*n, v_set1(-LN2_LOW), r);
}

static inline V v_exp(V x)
{
    VI exponent;
    V n;
    const V r = exp_reduce(x, &exponent, &n);
    const V p = v_set1(1) + v_fma(r * r, exp_tail(r), r);
    V result = (V)((VI)p + exponent);

    result = v_select(v_lt(x, v_set1(EXP_LOW)), v_set1(0), result);
    result = v_select(v_lt(v_set1(EXP_HIGH), x), v_set1((REAL)INFINITY), result);
    return v_select(v_ne(x, x), x, result);
}

/* e^x - 1 for x <= 0, also near 0. */
static inline V v_expm1_negative(V x)
{
    VI exponent;
    V n;
    const V r = exp_reduce(x, &exponent, &n);
    const V two_n = (V)((VI)v_set1(1) + exponent);
    const V small = v_fma(r * r, exp_tail(r), r); /* e^r - 1 */
    const V result = v_fma(two_n, small, two_n - v_set1(1));

    return v_select(v_lt(x, v_set1(EXP_LOW)), v_set1(-1), result);
}

/* tanh x = -u / (2 + u), u = e^(-2 abs(x)) - 1, with the sign of x. */
static inline V v_tanh(V x)
{
    const V u = v_expm1_negative(v_abs(x) * v_set1(-2));
    const V t = (v_set1(0) - u) / (v_set1(2) + u);

    return v_select(v_ne(x, x), x, v_copysign(t, x));
}

/* 1 - tanh^2 x = 4 e / (1 + e)^2, e = e^(-2 abs(x)): no cancellation. */
static inline V v_tanh_slope(V x)
{
    const V e = v_exp(v_abs(x) * v_set1(-2));
    const V d = v_set1(1) + e;

    return v_set1(4) * e / (d * d);
}
