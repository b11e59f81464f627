/* SPDX-License-Identifier: Apache-2.0
 *
 * Merging: the weights e^(lse_i - lse), whatever their size, and parts that
 * saw nothing. */
#include "attn.h"

#include "unit.h"

#include <math.h>
#include <string.h>

#define ROWS 3
#define DIM 2

typedef struct part {
    double o[ROWS * DIM], lse[ROWS];
} part;

static const int64_t o_shape[4] = {1, 1, ROWS, DIM};
static const int64_t lse_shape[3] = {1, 1, ROWS};

static attn_tensor o_of(part *p)
{
    return attn_dense(p->o, ATTN_F64, 4, o_shape);
}

static attn_tensor lse_of(part *p)
{
    return attn_dense(p->lse, ATTN_F64, 3, lse_shape);
}

static part merged(part a, part b)
{
    part out;

    memset(&out, 0xa5, sizeof out);
    assert_int_equal(attn_merge(attn_in(o_of(&a)), attn_in(lse_of(&a)),
                                attn_in(o_of(&b)), attn_in(lse_of(&b)),
                                o_of(&out), lse_of(&out), NULL),
                     ATTN_OK);
    return out;
}

/* exp and ln are off by 2 ulp each, four roundings more; lse adds its own. */
static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 16 * 0x1p-53 * fmax(fabs(want), 1)))
        fail_msg("%.17g, must be %.17g", got, want);
}

UNIT(weights_are_those_of_the_sums)
{
    /* e^0 = 1 and e^ln 3 = 3: a quarter and three quarters; lse = ln 4. */
    const part a = {{4, 8, 4, 8, 4, 8}, {0, 1000, -1000}};
    const part b = {{8, 0, 8, 0, 8, 0},
                    {log(3), 1000 + log(3), -1000 + log(3)}};
    const part out = merged(a, b), back = merged(b, a);

    for (int i = 0; i < ROWS; i++) {
        /* ln 3 + 1000 is rounded: by 2^-44, and the weights with it */
        const double slack = i ? 0x1p-43 : 0;

        assert_true(fabs(out.o[2 * i] - 7) <= 8 * slack + 0x1p-49);
        assert_true(fabs(out.o[2 * i + 1] - 2) <= 8 * slack + 0x1p-49);
        assert_near(out.lse[i], a.lse[i] + log(4));
        assert_true(fabs(back.o[2 * i] - out.o[2 * i]) <= 0x1p-49);
    }
}

UNIT(far_apart_the_larger_is_all)
{
    const part a = {{4, 8, 4, 8, 4, 8}, {0, 5000, -5000}};
    const part b = {{1, 1, 1, 1, 1, 1}, {-800, -5000, -12000}};
    const part out = merged(a, b);

    assert_memory_equal(&out, &a, sizeof out);
}

/* A part that saw nothing weighs nothing, whatever its o holds. */
UNIT(empty_parts)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    const part some = {{4, 8, 4, 8, 4, 8}, {0, 1, 2}};
    const part none = {{nan, nan, nan, inf, 1, 2}, {-inf, -inf, -inf}};
    const part left = merged(some, none), right = merged(none, some);
    const part both = merged(none, none);

    assert_memory_equal(&left, &some, sizeof left);
    assert_memory_equal(&right, &some, sizeof right);
    for (int i = 0; i < ROWS; i++) {
        assert_true(both.lse[i] == -inf);
        assert_true(both.o[2 * i] == 0 && both.o[2 * i + 1] == 0);
    }
}

UNIT(nan_and_infinity_come_out_as_nan)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    const part some = {{4, 8, 4, 8, 4, 8}, {0, 1, 2}};
    const part odd = {{1, 1, 1, 1, nan, 1}, {nan, inf, 2}};
    const part out = merged(some, odd);

    assert_true(isnan(out.lse[0]) && isnan(out.o[0]) && isnan(out.o[1]));
    assert_true(isnan(out.o[2]) && isnan(out.o[3]));
    assert_true(isnan(out.o[4]) && !isnan(out.o[5]));
}

UNIT(the_outputs_may_be_the_inputs)
{
    const part a = {{4, 8, 4, 8, 4, 8}, {0, 1, -3}};
    const part b = {{8, 0, 8, 0, 8, 0}, {1, 1, 4}};
    const part apart = merged(a, b);
    part in = a, other = b;

    assert_int_equal(attn_merge(attn_in(o_of(&in)), attn_in(lse_of(&in)),
                                attn_in(o_of(&other)),
                                attn_in(lse_of(&other)), o_of(&in),
                                lse_of(&in), NULL),
                     ATTN_OK);
    assert_memory_equal(&in, &apart, sizeof in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_those_of_the_sums),
        cmocka_unit_test(far_apart_the_larger_is_all),
        cmocka_unit_test(empty_parts),
        cmocka_unit_test(nan_and_infinity_come_out_as_nan),
        cmocka_unit_test(the_outputs_may_be_the_inputs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
