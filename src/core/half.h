/* SPDX-License-Identifier: Apache-2.0
 *
 * bfloat16 and IEEE binary16 in plain C. To fp32 is exact; from fp32 rounds
 * to nearest, ties to even, keeps infinities and makes every NaN quiet. From
 * fp64 goes by way of a fp32 rounded to odd, which avoids rounding twice
 * (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
 */
#ifndef ATTN_CORE_HALF_H
#define ATTN_CORE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float attn__f32_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t attn__bits_of_f32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float attn__f32_of_bf16(uint16_t half)
{
    return attn__f32_of_bits((uint32_t)half << 16);
}

static inline uint16_t attn__bf16_of_f32(float value)
{
    const uint32_t bits = attn__bits_of_f32(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x0040u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* By masks and without branches, so that compilers make vectors of it. */
static inline float attn__f32_of_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    const uint32_t is_small = 0u - (uint32_t)(magnitude < 0x0400u);
    const uint32_t is_special = 0u - (uint32_t)(magnitude >= 0x7c00u);
    /* Zero or denormal, magnitude * 2^-24, as the distance above 2^-14. */
    const float above = attn__f32_of_bits((magnitude << 13) + 0x38800000u);
    const uint32_t small = attn__bits_of_f32(above - 0x1p-14f);
    const uint32_t normal = (magnitude << 13) + 0x38000000u;
    const uint32_t special = (magnitude << 13) | 0x7f800000u;

    return attn__f32_of_bits(sign | (small & is_small) |
                             (special & is_special) |
                             (normal & ~(is_small | is_special)));
}

static inline uint16_t attn__f16_of_f32(float value)
{
    const uint32_t bits = attn__bits_of_f32(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        /* Below 2^-14: adding 0.5 leaves magnitude / 2^-24, rounded to even
         * by the addition, in the low bits. */
        const float shifted = attn__f32_of_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (attn__bits_of_f32(shifted) - 0x3f000000u));
    }
    return (uint16_t)(sign |
                      ((magnitude - 0x38000000u + 0xfffu +
                        (magnitude >> 13 & 1u)) >> 13));
}

/* fp64 to fp32, rounded to odd: inexact results get a last bit of 1. */
static inline float attn__f32_odd_of_f64(double value)
{
    const float nearest = (float)value;
    uint32_t bits = attn__bits_of_f32(nearest);

    if ((double)nearest == value || value != value ||
        (bits & 0x7fffffffu) == 0x7f800000u)
        return nearest;
    if (!(bits & 1u)) {
        /* nearest is even: its neighbour on the side of value is odd. */
        const int away = (nearest > 0 || (nearest == 0 && value > 0))
                             ? value > (double)nearest
                             : value < (double)nearest;
        if (nearest == 0)
            bits = (value < 0 ? 0x80000001u : 1u);
        else
            bits = away ? bits + 1u : bits - 1u;
    }
    return attn__f32_of_bits(bits);
}

static inline uint16_t attn__bf16_of_f64(double value)
{
    return attn__bf16_of_f32(attn__f32_odd_of_f64(value));
}

static inline uint16_t attn__f16_of_f64(double value)
{
    return attn__f16_of_f32(attn__f32_odd_of_f64(value));
}

#endif
