/* SPDX-License-Identifier: Apache-2.0
 *
 * The C library would write decimal commas where the host asks for them, so
 * digits are made here of integers. */
#include "picture/ticks.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define MOST_DECIMALS 6
#define MOST_DIGITS 1e15 /* an integer that a double holds with room to spare */

/* 1, 2 or 5 times a power of ten, not below `least`; *power is the ten's. */
static double round_up(double least, int *power)
{
    static const double factors[] = {1, 2, 5};

    *power = (int)floor(log10(least));
    for (;; ++*power)
        for (int i = 0; i < 3; i++) {
            const double step = factors[i] * pow(10, *power);

            /* log10 and pow are not exact: 0.1 must be found for 0.1. */
            if (step >= least * (1 - 1e-9))
                return step;
        }
}

int64_t attn__round_step(double least)
{
    int power;

    return least <= 1 ? 1 : (int64_t)(round_up(least, &power) + 0.5);
}

attn__ticks attn__ticks_of(double low, double high, int64_t most)
{
    /* Halves, so that the span of the largest doubles is finite. */
    const double span = (0.5 * high - 0.5 * low) / (0.5 * (double)(most - 1));
    attn__ticks ticks = {0, 0, 0, 0};
    int power;
    double first, last;

    ticks.step = round_up(fmax(fmin(span, 1e308), 1e-300), &power);
    first = ceil(low / ticks.step - 1e-9);
    last = floor(high / ticks.step + 1e-9);
    /* Far from zero the ticks of a short span are beyond a double's digits. */
    if (!(fabs(first) < MOST_DIGITS && fabs(last) < MOST_DIGITS))
        return ticks;
    ticks.first = (int64_t)first;
    ticks.n = (int64_t)(last - first) + 1;
    ticks.decimals = power >= 0 ? 0 : -power;
    if (ticks.decimals > MOST_DECIMALS ||
        fmax(fabs(low), fabs(high)) >= 1e6)
        ticks.decimals = -1;
    return ticks;
}

/* Two significant digits and an exponent: "1.5e-07", or "3e-07". */
static void format_exponent(char text[ATTN__NUMBER_SIZE], double value)
{
    const char *sign = value < 0 ? "-" : "";
    const double size = fabs(value);
    int power = (int)floor(log10(size));
    int64_t digits;

    /* In two steps: the power of a denormal is beyond a double. */
    digits = (int64_t)(size / pow(10, power / 2) / pow(10, power - power / 2) *
                           10 + 0.5);
    if (digits >= 100) {
        digits /= 10;
        power++;
    }
    if (digits % 10)
        snprintf(text, ATTN__NUMBER_SIZE, "%s%d.%de%d", sign,
                 (int)(digits / 10), (int)(digits % 10), power);
    else
        snprintf(text, ATTN__NUMBER_SIZE, "%s%de%d", sign, (int)(digits / 10),
                 power);
}

/* scaled / 10^decimals, from the last digit to the first. */
static void format_fixed(char text[ATTN__NUMBER_SIZE], int64_t scaled,
                         bool negative, int decimals)
{
    char digits[ATTN__NUMBER_SIZE];
    int n = 0;

    negative = negative && scaled != 0;
    for (int i = 0; i <= decimals || scaled != 0; i++) {
        if (i == decimals && decimals > 0)
            digits[n++] = '.';
        digits[n++] = (char)('0' + scaled % 10);
        scaled /= 10;
    }
    if (negative)
        digits[n++] = '-';
    for (int i = 0; i < n; i++)
        text[i] = digits[n - 1 - i];
    text[n] = '\0';
}

void attn__format(char text[ATTN__NUMBER_SIZE], double value, int decimals)
{
    int64_t unit = 1;

    for (int i = 0; i < decimals; i++)
        unit *= 10;
    if (isnan(value)) {
        snprintf(text, ATTN__NUMBER_SIZE, "NaN");
    } else if (isinf(value)) {
        snprintf(text, ATTN__NUMBER_SIZE, value < 0 ? "-inf" : "inf");
    } else if (value == 0) {
        format_fixed(text, 0, false, decimals > 0 ? decimals : 0);
    } else if (decimals < 0 || fabs(value) * (double)unit >= MOST_DIGITS) {
        format_exponent(text, value);
    } else {
        format_fixed(text, (int64_t)(fabs(value) * (double)unit + 0.5),
                     value < 0, decimals);
    }
}
