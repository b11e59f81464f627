/* SPDX-License-Identifier: Apache-2.0
 *
 * exp and ln of one double: below 2 ulp, exact at the ends, never falling. */
#include "kernels/real_math.h"

#include "unit.h"

#include <stdlib.h>

static double ulp_of(long double value)
{
    int exponent;

    frexpl(value, &exponent);
    return ldexp(1, (exponent > -1021 ? exponent : -1021) - 53);
}

/* Largest error over n numbers whose bits lie evenly between two. */
static double worst(double (*f)(double), long double (*right)(long double),
                    double low, double high, int64_t n)
{
    const int64_t from = attn__f64_bits(low), to = attn__f64_bits(high);
    const int64_t step = (to - from) / n;
    double most = 0;

    for (int64_t k = 0; k < n; k++) {
        const double x = attn__bits_f64(from + k * step + k % 7);
        const long double want = right(x);

        most = fmax(most, fabs((double)(f(x) - want)) / ulp_of(want));
    }
    return most;
}

UNIT(exp_is_below_two_ulp)
{
    assert_true(worst(attn__exp, expl, -0.0, -708.3, 400000) <= 2);
    assert_true(worst(attn__exp, expl, 0, 709, 400000) <= 2);
    assert_true(worst(attn__exp, expl, -0.1, -40, 400000) <= 2);
}

UNIT(ln_is_below_two_ulp)
{
    assert_true(worst(attn__log, logl, 0x1p-1074, 0x1.fffffffffffffp1023,
                      400000) <= 2);
    assert_true(worst(attn__log, logl, 0.5, 0.999999, 400000) <= 2);
    assert_true(worst(attn__log, logl, 1.0000001, 131072, 400000) <= 2);
}

/* lse = m + ln l where one key has all the weight: l - 1 is tiny. */
UNIT(ln_keeps_its_digits_at_one)
{
    double near = 1;

    assert_true(attn__log(1) == 0);
    for (int k = 1; k <= 52; k++) {
        near = 1 + ldexp(1, -k);
        assert_true(fabs((double)(attn__log(near) - logl(near))) <=
                    2 * ulp_of(logl(near)));
    }
}

UNIT(ends)
{
    const double inf = (double)INFINITY;

    assert_true(attn__exp(0) == 1 && attn__exp(-0.0) == 1);
    assert_true(attn__exp(-inf) == 0 && attn__exp(-709) == 0);
    assert_true(attn__exp(inf) == inf && attn__exp(710) == inf);
    assert_true(isnan(attn__exp((double)NAN)));
    assert_true(attn__log(0) == -inf && attn__log(-0.0) == -inf);
    assert_true(attn__log(inf) == inf);
    assert_true(isnan(attn__log((double)NAN)));
}

UNIT(neither_falls)
{
    double before_exp = 0, before_log = -(double)INFINITY;

    for (int k = 0; k < 1000000; k++) {
        const double x = -700 + k * 0x1.6p-10;
        const double y = 1 + k * 0x1p-30;

        assert_true(attn__exp(x) >= before_exp);
        assert_true(attn__log(y) >= before_log);
        before_exp = attn__exp(x);
        before_log = attn__log(y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_below_two_ulp),
        cmocka_unit_test(ln_is_below_two_ulp),
        cmocka_unit_test(ln_keeps_its_digits_at_one),
        cmocka_unit_test(ends),
        cmocka_unit_test(neither_falls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
