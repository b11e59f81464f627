/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16 and f16: every one of the 65536 values both ways, every boundary
 * between two neighbours, and random fp32 and fp64 numbers, against rounding
 * done with rint() on scaled doubles, which shares nothing with the code. */
#include "core/half.h"

#include "unit.h"

#include <math.h>
#include <stdbool.h>

/* One of the two formats, as IEEE 754 would describe it. */
typedef struct format {
    int fraction;      /* bits after the point */
    int min_exponent;  /* of the smallest normal number */
    uint16_t infinity; /* its bits */
    float (*widen)(uint16_t half);
    uint16_t (*from_f32)(float value);
    uint16_t (*from_f64)(double value);
} format;

static const format formats[] = {
    {7, -126, 0x7f80, attn__f32_of_bf16, attn__bf16_of_f32, attn__bf16_of_f64},
    {10, -14, 0x7c00, attn__f32_of_f16, attn__f16_of_f32, attn__f16_of_f64},
};

/* The value of positive finite bits, from the definition. */
static double value_of(const format *f, uint16_t bits)
{
    const int exponent = bits >> f->fraction;
    const int fraction = bits & ((1 << f->fraction) - 1);

    if (exponent == 0)
        return ldexp(fraction, f->min_exponent - f->fraction);
    return ldexp(fraction + (1 << f->fraction),
                 f->min_exponent - f->fraction + exponent - 1);
}

/* Nearest, ties to even, by rint in the default rounding mode. Scaling by a
 * power of two is exact here, so rint rounds once. */
static uint16_t nearest(const format *f, double value)
{
    const double x = fabs(value);
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    double units;
    int exponent;

    if (isnan(value))
        return 0xffff; /* callers look at NaN themselves */
    if (isinf(value))
        return sign | f->infinity;
    exponent = x == 0 ? f->min_exponent : ilogb(x);
    if (exponent < f->min_exponent)
        exponent = f->min_exponent;
    units = rint(ldexp(x, f->fraction - exponent));
    /* Bits count upward through the binades, so the integer adds up. */
    units += ldexp(exponent - f->min_exponent, f->fraction);
    return sign | (units > f->infinity ? f->infinity : (uint16_t)units);
}

static bool is_nan(const format *f, uint16_t bits)
{
    return (bits & 0x7fff) > f->infinity;
}

UNIT(every_value_widens_by_the_definition)
{
    for (size_t n = 0; n < COUNT(formats); n++) {
        const format *f = &formats[n];

        for (uint32_t bits = 0; bits < f->infinity; bits++) {
            const double value = value_of(f, (uint16_t)bits);

            assert_true((double)f->widen((uint16_t)bits) == value);
            assert_true((double)f->widen((uint16_t)(bits | 0x8000)) == -value);
        }
        assert_true(f->widen(f->infinity) == INFINITY);
        assert_true(f->widen(f->infinity | 0x8000) == -INFINITY);
        assert_true(signbit(f->widen(0x8000)));
    }
}

UNIT(every_value_survives_the_round_trip)
{
    for (size_t n = 0; n < COUNT(formats); n++) {
        const format *f = &formats[n];

        for (uint32_t b = 0; b < 65536; b++) {
            const uint16_t bits = (uint16_t)b;
            const float wide = f->widen(bits);

            if (is_nan(f, bits)) {
                assert_true(isnan(wide));
                assert_true(is_nan(f, f->from_f32(wide)));
                assert_true(is_nan(f, f->from_f64((double)wide)));
            } else {
                assert_int_equal(f->from_f32(wide), bits);
                assert_int_equal(f->from_f64((double)wide), bits);
            }
        }
    }
}

/* Half-way between two neighbours goes to the even one, and the nearest
 * numbers on both sides of it to their own side. The last boundary is the one
 * between the largest number and infinity. */
UNIT(every_boundary_is_where_it_belongs)
{
    for (size_t n = 0; n < COUNT(formats); n++) {
        const format *f = &formats[n];

        for (uint32_t b = 0; b < f->infinity; b++) {
            const uint16_t low = (uint16_t)b, high = (uint16_t)(b + 1);
            const uint16_t even = low & 1 ? high : low;
            const double half_way =
                (value_of(f, low) + value_of(f, high)) / 2;
            const float middle = (float)half_way;

            assert_true((double)middle == half_way);
            assert_int_equal(f->from_f32(middle), even);
            assert_int_equal(f->from_f32(nextafterf(middle, 0)), low);
            assert_int_equal(f->from_f32(nextafterf(middle, INFINITY)), high);
            assert_int_equal(f->from_f32(-middle), even | 0x8000);
            assert_int_equal(f->from_f64(half_way), even);
            assert_int_equal(f->from_f64(nextafter(half_way, 0)), low);
            assert_int_equal(f->from_f64(nextafter(half_way, INFINITY)), high);
            assert_int_equal(f->from_f64(-nextafter(half_way, 0)),
                             low | 0x8000);
        }
    }
}

/* xorshift64*, so that a failure is found again. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

UNIT(random_bits_round_as_rint_does)
{
    uint64_t seed = 42;

    for (int trial = 0; trial < 1000000; trial++) {
        const uint64_t bits = draw(&seed);
        const float f32 = attn__f32_of_bits((uint32_t)bits);
        /* A fp64 of fp32's range, so that not all of them overflow. */
        const double f64 =
            ldexp((double)(int64_t)bits, (int)(bits % 300) - 210);

        for (size_t n = 0; n < COUNT(formats); n++) {
            const format *f = &formats[n];

            if (isnan(f32))
                assert_true(is_nan(f, f->from_f32(f32)));
            else
                assert_int_equal(f->from_f32(f32), nearest(f, (double)f32));
            assert_int_equal(f->from_f64(f64), nearest(f, f64));
        }
    }
}

UNIT(the_ends_of_the_range)
{
    static const double ends[] = {
        0.0, -0.0, INFINITY, -INFINITY, 0x1p-1074, -0x1p-1074, 0x1.fffffep127,
        0x1.fffffffp127, 0x1.ffp127, 0x1.fep127, 1e300, -1e300, 65504, 65519.9,
        65520, 65536, 0x1p-24, 0x1p-25, 0x1.000001p-25, 0x1p-133, 0x1p-134,
        0x1.0000001p-134, 0x1p-149, 0x1p-150, 0x1.8p-149};

    for (size_t e = 0; e < COUNT(ends); e++)
        for (size_t n = 0; n < COUNT(formats); n++)
            assert_int_equal(formats[n].from_f64(ends[e]),
                             nearest(&formats[n], ends[e]));
}

UNIT(nan_stays_nan_and_becomes_quiet)
{
    static const uint32_t nans[] = {0x7f800001, 0x7fc00000, 0x7fffffff,
                                    0xff800001, 0xffffffff, 0x7f802000};

    for (size_t i = 0; i < COUNT(nans); i++) {
        const uint16_t bf16 = attn__bf16_of_f32(attn__f32_of_bits(nans[i]));
        const uint16_t f16 = attn__f16_of_f32(attn__f32_of_bits(nans[i]));
        const uint16_t sign = (uint16_t)(nans[i] >> 16 & 0x8000);

        assert_int_equal(bf16 & 0x7fc0, 0x7fc0);
        assert_int_equal(f16 & 0x7e00, 0x7e00);
        assert_int_equal(bf16 & 0x8000, sign);
        assert_int_equal(f16 & 0x8000, sign);
    }
    assert_true(is_nan(&formats[0], attn__bf16_of_f64((double)NAN)));
    assert_true(is_nan(&formats[1], attn__f16_of_f64((double)NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_widens_by_the_definition),
        cmocka_unit_test(every_value_survives_the_round_trip),
        cmocka_unit_test(every_boundary_is_where_it_belongs),
        cmocka_unit_test(random_bits_round_as_rint_does),
        cmocka_unit_test(the_ends_of_the_range),
        cmocka_unit_test(nan_stays_nan_and_becomes_quiet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
