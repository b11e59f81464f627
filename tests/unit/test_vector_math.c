/* SPDX-License-Identifier: Apache-2.0
 *
 * exp, tanh and its derivative on vectors at every level that the CPU has,
 * against the C library in the next wider type: the claims of exp_tmpl.h.
 *
 *   test_vector_math         every 997th fp32, 10^6 fp64
 *   test_vector_math --all   every fp32 with a sign, NaNs too; 10^7 fp64 */
#include "vector_math.h"

#include "core/cpu.h"
#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 4096

static const struct {
    const vector_math *math;
    unsigned needs;
    attn_isa isa;
} instances[] = {
    {&vector_math_f32_scalar, 0, ATTN_ISA_SCALAR},
    {&vector_math_f64_scalar, 0, ATTN_ISA_SCALAR},
#ifdef __x86_64__
    {&vector_math_f32_avx2, ATTN__CPU_AVX2_FMA, ATTN_ISA_AVX2},
    {&vector_math_f64_avx2, ATTN__CPU_AVX2_FMA, ATTN_ISA_AVX2},
    {&vector_math_f32_avx512, ATTN__CPU_AVX512, ATTN_ISA_AVX512},
    {&vector_math_f64_avx512, ATTN__CPU_AVX512, ATTN_ISA_AVX512},
#endif
};

static bool all_inputs;

/* Instance k, or NULL where this CPU cannot run it. */
static const vector_math *instance(size_t k)
{
    return attn__cpu_runs(instances[k].needs, instances[k].isa, ATTN_ISA_BEST)
               ? instances[k].math
               : NULL;
}

/* ------------------------------------------------------------------ claims */

typedef struct claim {
    const char *name;
    size_t function;         /* offset in vector_math */
    double (*right)(double); /* 29 bits to spare for fp32 */
    long double (*right_wide)(long double);
    double ulps_32, ulps_64;
    double low_32, low_64; /* the claim is about [low, -0] */
    bool flushes;          /* below low the result is 0, and nothing else */
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

/* Below these tanh is -1, and its slope less than any weight. exp is claimed
 * down to the last input with a normal result. */
#define EXP_LOW_32 (-0x1.5d589ep6)
#define EXP_LOW_64 (-0x1.6232bdd7abcd2p9)
static const claim claims[] = {
    {"exp", offsetof(vector_math, exp), exp, expl, 1.1, 1.1, EXP_LOW_32,
     EXP_LOW_64, true},
    {"exp_negative", offsetof(vector_math, exp_negative), exp, expl, 1.1, 1.1,
     EXP_LOW_32, EXP_LOW_64, true},
    {"tanh", offsetof(vector_math, tanh), tanh, tanhl, 2.5, 2.5, -12, -22,
     false},
    {"tanh_slope", offsetof(vector_math, tanh_slope), slope, slope_wide, 5, 5,
     -40, -350, false},
};

static vector_function *function_of(const vector_math *m, const claim *c)
{
    vector_function *f;

    memcpy(&f, (const char *)m + c->function, sizeof f);
    return f;
}

/* ------------------------------------------------------------------ inputs */

/* A walk over the numbers with a sign, from -0 down. */
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

static double element(int bits, const void *x, ptrdiff_t i)
{
    return bits == 32 ? (double)((const float *)x)[i]
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

/* ------------------------------------------------------------------ checks */

/* What one instance has shown of one claim. */
typedef struct finding {
    double before, worst, where;
} finding;

static void check_batch(const vector_math *m, const claim *c, finding *found,
                        const void *x, const long double *want, ptrdiff_t n)
{
    static char y[BATCH * 8] __attribute__((aligned(64)));

    function_of(m, c)(x, y, BATCH);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double got = element(m->bits, y, i);
        const double error =
            fabs((double)(got - want[i])) / ulp_of(m->bits, want[i]);

        if (!(error <= found->worst)) {
            found->worst = error;
            found->where = element(m->bits, x, i);
        }
        if (c->flushes && !(got <= found->before)) /* exp never turns back */
            fail_msg("%s of %s rises at %a", c->name, m->name,
                     element(m->bits, x, i));
        found->before = got;
    }
}

static void check_claim(int bits, const claim *c)
{
    static char x[BATCH * 8] __attribute__((aligned(64)));
    static long double want[BATCH];
    finding found[COUNT(instances)];
    walk w = walk_of(bits, bits == 32 ? c->low_32 : c->low_64);
    ptrdiff_t n;

    for (size_t k = 0; k < COUNT(instances); k++)
        found[k] = (finding){(double)INFINITY, 0, 0};
    while ((n = walk_on(&w, x)) > 0) {
        for (ptrdiff_t i = 0; i < n; i++)
            want[i] = bits == 32
                          ? (long double)c->right(element(bits, x, i))
                          : c->right_wide(element(bits, x, i));
        for (size_t k = 0; k < COUNT(instances); k++)
            if (instance(k) && instance(k)->bits == bits)
                check_batch(instance(k), c, &found[k], x, want, n);
    }
    for (size_t k = 0; k < COUNT(instances); k++) {
        if (!instance(k) || instance(k)->bits != bits)
            continue;
        print_message("%s of %s: at most %.3f ulp, at %a\n", c->name,
                      instance(k)->name, found[k].worst, found[k].where);
        if (bits == 32)
            assert_true(found[k].worst <= c->ulps_32);
        else if (long_double_is_wide())
            assert_true(found[k].worst <= c->ulps_64);
    }
}

UNIT(errors_are_below_the_claims)
{
    for (size_t n = 0; n < COUNT(claims); n++) {
        check_claim(32, &claims[n]);
        check_claim(64, &claims[n]);
    }
}

/* Everything with a sign beyond the claim: numbers down to -inf give 0, NaNs
 * NaN. */
static void check_beyond(const vector_math *m, const claim *c)
{
    static char x[BATCH * 8] __attribute__((aligned(64)));
    static char y[BATCH * 8] __attribute__((aligned(64)));
    walk w = walk_of(m->bits, m->bits == 32 ? c->low_32 : c->low_64);
    ptrdiff_t n;

    w.bits = w.last + 1;
    w.last = UINT64_MAX >> (64 - m->bits);
    if (m->bits == 64) {
        w.step = (w.last - w.bits) / 1000000;
        w.last -= w.step; /* so that the step past it is a number too */
    }
    while ((n = walk_on(&w, x)) > 0) {
        function_of(m, c)(x, y, BATCH);
        for (ptrdiff_t i = 0; i < n; i++) {
            const double got = element(m->bits, y, i);

            if (isnan(element(m->bits, x, i)))
                assert_true(isnan(got));
            else
                assert_true(got == 0 && !signbit(got));
        }
    }
}

UNIT(exp_flushes_to_0_and_keeps_nan)
{
    for (size_t k = 0; k < COUNT(instances); k++)
        for (size_t n = 0; n < COUNT(claims); n++)
            if (instance(k) && claims[n].flushes)
                check_beyond(instance(k), &claims[n]);
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
    vector_function *const each[] = {m->exp, m->tanh, m->tanh_slope,
                                     m->exp_negative};

    for (size_t r = 0; r < n_rows; r++)
        for (size_t k = 0; k < COUNT(each); k++) {
            const double want[] = {rows[r].exp, rows[r].tanh, rows[r].slope,
                                   rows[r].exp};
            const float narrow = (float)rows[r].x;
            double got;

            if (k == 3 && rows[r].x > 0)
                continue; /* not promised */
            if (m->bits == 32)
                memcpy(x, &narrow, sizeof narrow);
            else
                x[0] = rows[r].x;
            each[k](x, y, 16);
            got = element(m->bits, y, 0);
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
        if (!instance(k))
            continue;
        check_specials(instance(k), both, COUNT(both));
        if (instance(k)->bits == 32)
            check_specials(instance(k), ends_32, COUNT(ends_32));
        else
            check_specials(instance(k), ends_64, COUNT(ends_64));
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
        for (size_t k = 0; k < COUNT(instances); k++) {
            if (!instance(k) || instance(k)->bits != 32)
                continue;
            instance(k)->exp(x, y, 16);
            for (int i = 0; i < 16; i++) {
                const double want = exp((double)x[i]);

                assert_true(fabs((double)y[i] - want) <= ulp_of(32, want));
            }
        }
    }
}

/* Odd and even to the bit. */
static void check_symmetry(const vector_math *m)
{
    float x[16] __attribute__((aligned(64)));
    float y[16] __attribute__((aligned(64)));

    for (int step = 0; step < 1000; step++) {
        for (int i = 0; i < 8; i++)
            x[i + 8] = -(x[i] = (float)(step * 8 + i + 1) * 0x1.23p-9f);
        m->tanh(x, y, 16);
        for (int i = 0; i < 8; i++)
            assert_true(y[i] == -y[i + 8] && y[i] > 0 && y[i] <= 1);
        m->tanh_slope(x, y, 16);
        for (int i = 0; i < 8; i++)
            assert_true(y[i] == y[i + 8]);
    }
}

UNIT(the_sign_of_x_does_not_change_the_size_of_tanh)
{
    for (size_t k = 0; k < COUNT(instances); k++)
        if (instance(k) && instance(k)->bits == 32)
            check_symmetry(instance(k));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_below_the_claims),
        cmocka_unit_test(exp_flushes_to_0_and_keeps_nan),
        cmocka_unit_test(special_values),
        cmocka_unit_test(exp_of_positive_numbers),
        cmocka_unit_test(the_sign_of_x_does_not_change_the_size_of_tanh),
    };

    all_inputs = argc > 1 && strcmp(argv[1], "--all") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
