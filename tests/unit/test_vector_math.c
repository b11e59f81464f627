/* SPDX-License-Identifier: Apache-2.0
 *
 * exp, tanh and its derivative on vectors, against the C library in the next
 * wider type: the claims that exp_tmpl.h makes.
 *
 *   test_vector_math         every 997th fp32, 10^6 fp64
 *   test_vector_math --all   every non-positive fp32, 10^7 fp64 */
#include "vector_math.h"

#include "unit.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 4096

static const vector_math *const instances[] = {&vector_math_f32_scalar,
                                               &vector_math_f64_scalar};
static bool all_inputs;

typedef struct claim {
    const char *name;
    size_t function; /* offset in vector_math */
    double (*right)(double); /* 29 bits to spare for fp32 */
    long double (*right_wide)(long double);
    double ulps_32, ulps_64;
    double low_32, low_64; /* from 0 down to here */
} claim;

/* 1 - tanh^2 without its cancellation. */
static long double slope_wide(long double x)
{
    const long double c = coshl(x);

    return 1 / (c * c);
}

static double slope(double x)
{
    const double c = cosh(x);

    return 1 / (c * c);
}

/* Below these, exp is 0, and tanh and its slope are those of the last binade
 * before: -1, and less than any weight. */
static const claim claims[] = {
    {"exp", offsetof(vector_math, exp), exp, expl, 1, 1.1, -0x1.5d589ep6,
     -0x1.6232bdd7abcd2p9},
    {"tanh", offsetof(vector_math, tanh), tanh, tanhl, 3, 3, -12, -22},
    {"tanh_slope", offsetof(vector_math, tanh_slope), slope, slope_wide, 5, 5,
     -40, -350},
};

typedef void function(const void *x, void *y, ptrdiff_t n);

static function *function_of(const vector_math *m, const claim *c)
{
    function *f;

    memcpy(&f, (const char *)m + c->function, sizeof f);
    return f;
}

/* ------------------------------------------------------------------ inputs */

/* A walk over the non-positive numbers, from -0 down. */
typedef struct walk {
    uint64_t bits, step, last;
    int width;
} walk;

static walk walk_of(int width, double low)
{
    walk w = {UINT64_C(1) << (width - 1), 1, 0, width};

    if (width == 32) {
        const float last = (float)low;
        uint32_t bits;

        memcpy(&bits, &last, sizeof bits);
        w.last = bits;
        w.step = all_inputs ? 1 : 997;
    } else {
        memcpy(&w.last, &low, sizeof low);
        w.step = (w.last - w.bits) / (all_inputs ? 10000000 : 1000000);
    }
    return w;
}

/* Fill x; returns how many. */
static ptrdiff_t walk_on(walk *w, void *x)
{
    ptrdiff_t n = 0;

    for (; n < BATCH && w->bits <= w->last; n++, w->bits += w->step) {
        const uint32_t low = (uint32_t)w->bits;

        if (w->width == 32)
            memcpy((char *)x + 4 * n, &low, sizeof low);
        else
            memcpy((char *)x + 8 * n, &w->bits, sizeof w->bits);
    }
    return n;
}

static double element(const vector_math *m, const void *x, ptrdiff_t i)
{
    return m->bits == 32 ? (double)((const float *)x)[i]
                         : ((const double *)x)[i];
}

/* The distance of numbers of that size, in `bits`. */
static double ulp_of(int bits, long double value)
{
    int exponent;

    frexpl(value, &exponent);
    return bits == 32 ? ldexp(1, (exponent > -125 ? exponent : -125) - 24)
                      : ldexp(1, (exponent > -1021 ? exponent : -1021) - 53);
}

/* ------------------------------------------------------------------ claims */

static void check_claim(const vector_math *m, const claim *c)
{
    walk w = walk_of(m->bits, m->bits == 32 ? c->low_32 : c->low_64);
    char *x = aligned_alloc(64, BATCH * 8), *y = aligned_alloc(64, BATCH * 8);
    double before = (double)INFINITY, worst = 0, where = 0;
    ptrdiff_t n;

    memset(x, 0, BATCH * 8);
    while ((n = walk_on(&w, x)) > 0) {
        function_of(m, c)(x, y, BATCH);
        for (ptrdiff_t i = 0; i < n; i++) {
            const double in = element(m, x, i), got = element(m, y, i);
            const long double want = m->bits == 32
                                         ? (long double)c->right(in)
                                         : c->right_wide(in);
            const double error = fabs((double)(got - want)) /
                                 ulp_of(m->bits, want);

            if (!(error <= worst)) {
                worst = error;
                where = in;
            }
            if (c->right == exp)
                assert_true(got <= before); /* exp never turns back */
            before = got;
        }
    }
    print_message("%s of %s: at most %.3f ulp, at %a\n", c->name, m->name,
                  worst, where);
    assert_true(worst <= (m->bits == 32 ? c->ulps_32 : c->ulps_64));
    free(x);
    free(y);
}

UNIT(errors_are_below_the_claims)
{
    for (size_t k = 0; k < COUNT(instances); k++)
        for (size_t n = 0; n < COUNT(claims); n++)
            check_claim(instances[k], &claims[n]);
}

/* ---------------------------------------------------------- special values */

typedef struct special {
    double x, exp, tanh, slope;
} special;

/* What NaN gives is NaN; checked apart. */
static void check_specials(const vector_math *m, const special *rows,
                           size_t n_rows)
{
    double x[16] __attribute__((aligned(64))) = {0};
    double y[16] __attribute__((aligned(64)));
    function *const each[] = {m->exp, m->tanh, m->tanh_slope};

    for (size_t r = 0; r < n_rows; r++)
        for (size_t k = 0; k < COUNT(each); k++) {
            const double want[] = {rows[r].exp, rows[r].tanh, rows[r].slope};
            const float narrow = (float)rows[r].x;
            double got;

            if (m->bits == 32)
                memcpy(x, &narrow, sizeof narrow);
            else
                x[0] = rows[r].x;
            each[k](x, y, 16);
            got = element(m, y, 0);
            if (isnan(want[k])) {
                assert_true(isnan(got));
                continue;
            }
            if (got != want[k] || signbit(got) != signbit(want[k]))
                fail_msg("%s, function %zu of %a is %a, must be %a", m->name,
                         k, rows[r].x, got, want[k]);
        }
}

UNIT(special_values)
{
    const double inf = (double)INFINITY, nan = (double)NAN;
    const special both[] = {
        {0, 1, 0, 1},     {-0.0, 1, -0.0, 1},   {inf, inf, 1, 0},
        {-inf, 0, -1, 0}, {nan, nan, nan, nan}, {-1e30, 0, -1, 0},
        {1e30, inf, 1, 0},
    };
    /* The ends of exp: the last number not flushed, and the first that is. */
    const special ends_32[] = {{-0x1.5d58a0p6, 0, -1, 0},
                               {0x1.62e430p6, inf, 1, 0}};
    const special ends_64[] = {{-0x1.6232bdd7abcd3p9, 0, -1, 0},
                               {0x1.62e42fefa39f0p9, inf, 1, 0}};

    for (size_t k = 0; k < COUNT(instances); k++) {
        check_specials(instances[k], both, COUNT(both));
        if (instances[k]->bits == 32)
            check_specials(instances[k], ends_32, COUNT(ends_32));
        else
            check_specials(instances[k], ends_64, COUNT(ends_64));
    }
}

/* Above 0 exp serves where a row's lse is a little below its largest score. */
UNIT(exp_of_positive_numbers)
{
    float x[16] __attribute__((aligned(64)));
    float y[16] __attribute__((aligned(64)));

    for (int step = 0; step < 88 * 64; step++) {
        for (int i = 0; i < 16; i++)
            x[i] = (float)(step * 16 + i) * 0x1p-10f;
        vector_math_f32_scalar.exp(x, y, 16);
        for (int i = 0; i < 16; i++) {
            const double want = exp((double)x[i]);

            assert_true(fabs((double)y[i] - want) <= ulp_of(32, want));
        }
    }
}

/* Odd and even to the bit. */
UNIT(the_sign_of_x_does_not_change_the_size_of_tanh)
{
    float x[16] __attribute__((aligned(64)));
    float y[16] __attribute__((aligned(64)));
    float minus[16] __attribute__((aligned(64)));

    for (int step = 0; step < 1000; step++) {
        for (int i = 0; i < 8; i++)
            x[i + 8] = -(x[i] = (float)(step * 8 + i + 1) * 0x1.23p-9f);
        vector_math_f32_scalar.tanh(x, y, 16);
        for (int i = 0; i < 8; i++)
            assert_true(y[i] == -y[i + 8] && y[i] > 0 && y[i] <= 1);
        vector_math_f32_scalar.tanh_slope(x, minus, 16);
        for (int i = 0; i < 8; i++)
            assert_true(minus[i] == minus[i + 8]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_below_the_claims),
        cmocka_unit_test(special_values),
        cmocka_unit_test(exp_of_positive_numbers),
        cmocka_unit_test(the_sign_of_x_does_not_change_the_size_of_tanh),
    };

    all_inputs = argc > 1 && strcmp(argv[1], "--all") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
