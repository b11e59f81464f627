/* SPDX-License-Identifier: Apache-2.0
 *
 * Exponentials, tanh and its derivative on vectors.
 *
 *   e^x = 2^n (1 + r + r^2 q(r)),  n = rint(x log2 e),  r = x - n ln 2 in two
 *                                  steps
 *   2^x = 2^n (1 + r q(r)),        n = rint(x),  r = x - n exactly
 *
 * Coefficients: tools/exp_coefficients.py (degree 6 for fp32, 11 for fp64).
 * Claims, checked by tests/unit/test_vector_math.c: e^x and 2^x within 1 ulp
 * (fp64 1.1) and never falling, tanh within 3, its derivative within 5; e^0 =
 * 1; below 2^-126 (2^-1022) exactly 0, so -inf gives 0; NaN gives NaN; +inf
 * above the range. */

#if REAL_BITS == 64
#define EXP_LOW (-0x1.6232bdd7abcd2p9)
#define EXP_HIGH 0x1.62e42fefa39efp9
#define EXP2_LOW (-1022.0)
#define EXP2_HIGH 0x1.fffffffffffffp9
#define LOG2_E 0x1.71547652b82fep0
#define LN2_HIGH 0x1.62e42fee00000p-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define LARGEST_BASE 0x1p50
#else
#define EXP_LOW (-0x1.5d589ep6f)
#define EXP_HIGH 0x1.62e42ep6f
#define EXP2_LOW (-126.0f)
#define EXP2_HIGH 0x1.fffffep6f
#define LOG2_E 0x1.715476p0f
#define LN2_HIGH 0x1.62ep-1f
#define LN2_LOW 0x1.0bfbe8p-15f
#define LARGEST_BASE 0x1p21f
#endif

/* In double for every type: what is done once a row. */
#define LN2 0x1.62e42fefa39efp-1
#define LN2_TAIL 0x1.abc9e3b39803fp-56 /* ln 2 - LN2 */

/* (e^r - 1 - r) / r^2 for abs(r) <= ln 2 / 2 */
static inline V exp_tail(V r)
{
#if REAL_BITS == 64
    V q = v_fma(v_set1(0x1.ad7f7d40f0e82p-26), r,
                v_set1(0x1.28ad69021b1e8p-22));
    q = v_fma(q, r, v_set1(0x1.71df25393e755p-19));
    q = v_fma(q, r, v_set1(0x1.a0199a1670064p-16));
    q = v_fma(q, r, v_set1(0x1.a01a012a69c93p-13));
    q = v_fma(q, r, v_set1(0x1.6c16c184269bfp-10));
    q = v_fma(q, r, v_set1(0x1.1111111127b9dp-7));
    q = v_fma(q, r, v_set1(0x1.555555555088bp-5));
    q = v_fma(q, r, v_set1(0x1.55555555554fap-3));
    return v_fma(q, r, v_set1(0x1.000000000000ap-1));
#else
    V q = v_fma(v_set1(0x1.6a2448p-10f), r, v_set1(0x1.1239d4p-7f));
    q = v_fma(q, r, v_set1(0x1.5558f2p-5f));
    q = v_fma(q, r, v_set1(0x1.555492p-3f));
    return v_fma(q, r, v_set1(0x1.fffffcp-2f));
#endif
}

/* (2^r - 1) / r for abs(r) <= 1/2 */
static inline V exp2_tail(V r)
{
#if REAL_BITS == 64
    V q = v_fma(v_set1(0x1.e79bb37875860p-32), r,
                v_set1(0x1.e61b4fc4ab27ep-28));
    q = v_fma(q, r, v_set1(0x1.b5267ce2583c7p-24));
    q = v_fma(q, r, v_set1(0x1.62bfc79d2fa58p-20));
    q = v_fma(q, r, v_set1(0x1.ffcbfba97fab8p-17));
    q = v_fma(q, r, v_set1(0x1.4309130ed8da0p-13));
    q = v_fma(q, r, v_set1(0x1.5d87fe78cd6d4p-10));
    q = v_fma(q, r, v_set1(0x1.3b2ab6fba0119p-7));
    q = v_fma(q, r, v_set1(0x1.c6b08d7049fe8p-5));
    q = v_fma(q, r, v_set1(0x1.ebfbdff82c5a4p-3));
    return v_fma(q, r, v_set1(0x1.62e42fefa39efp-1));
#else
    V q = v_fma(v_set1(0x1.41fbbap-13f), r, v_set1(0x1.5f3e54p-10f));
    q = v_fma(q, r, v_set1(0x1.3b2d4cp-7f));
    q = v_fma(q, r, v_set1(0x1.c6aee8p-5f));
    q = v_fma(q, r, v_set1(0x1.ebfbdcp-3f));
    return v_fma(q, r, v_set1(0x1.62e430p-1f));
#endif
}

/* x = n ln 2 + r. */
static inline V exp_reduce(V x, V *n)
{
    V r;

    *n = v_rint(x * v_set1(LOG2_E));
    r = v_fma(*n, v_set1(-LN2_HIGH), x);
    return v_fma(*n, v_set1(-LN2_LOW), r);
}

static inline V v_exp(V x)
{
    V n;
    const V r = exp_reduce(x, &n);
    const V p = v_set1(1) + v_fma(r * r, exp_tail(r), r);
    V result = v_scale(p, n);

    result = v_select(v_lt(x, v_set1(EXP_LOW)), v_set1(0), result);
    result = v_select(v_lt(v_set1(EXP_HIGH), x), v_set1((REAL)INFINITY),
                      result);
    return v_select(v_ne(x, x), x, result);
}

/* 2^x for x <= 0 (and a little above, up to 1), where softmax lives. */
static inline V v_exp2_negative(V x)
{
    const V n = v_rint(x), r = x - n;
    const V p = v_fma(r, exp2_tail(r), v_set1(1));

    return v_scale_unless(v_lt(x, v_set1(EXP2_LOW)), p, n, x);
}

/* 2^x for every x. */
static inline V v_exp2(V x)
{
    return v_select(v_lt(v_set1(EXP2_HIGH), x), v_set1((REAL)INFINITY),
                    v_exp2_negative(x));
}

/* e^x - 1 for x <= 0, also near 0. */
static inline V v_expm1_negative(V x)
{
    V n;
    const V r = exp_reduce(x, &n);
    const V two_n = v_scale(v_set1(1), n);
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
