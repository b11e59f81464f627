/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector layer of the AVX2 level (with FMA): 32-byte vectors, fused
 * multiply-add. Same names as simd_scalar.h.
 *
 * Before inclusion: REAL_BITS is 32 or 64, the width of REAL. */
#ifndef ATTN_KERNELS_SIMD_AVX2_H
#define ATTN_KERNELS_SIMD_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VECTOR_BYTES 32
#ifndef TILE_VECTORS
#define TILE_VECTORS 2
#endif
/* 6 x 2 sums, 2 vectors of queries and the broadcast: 15 of 16 registers. */
#define PRODUCT_ROWS 6

#if REAL_BITS == 64
typedef double REAL;
typedef int64_t REAL_INT;
#define OP(name) _mm256_##name##_pd
#else
typedef float REAL;
typedef int32_t REAL_INT;
#define OP(name) _mm256_##name##_ps
#endif

typedef REAL V __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL_INT VI __attribute__((vector_size(VECTOR_BYTES)));
/* A truth value per lane: all ones or zeros. */
typedef VI VM;

#define LANES ((ptrdiff_t)(VECTOR_BYTES / sizeof(REAL)))

static inline V v_load(const REAL *p)
{
    return *(const V *)p;
}

static inline void v_store(REAL *p, V a)
{
    *(V *)p = a;
}

static inline V v_loadu(const REAL *p)
{
    return OP(loadu)(p);
}

/* The first n < LANES, then zeros; nothing behind them is read. */
#define V_LOADS_SOME 1
static inline V v_load_some(const REAL *p, int64_t n)
{
#if REAL_BITS == 64
    const VI lanes = {0, 1, 2, 3};
#else
    const VI lanes = {0, 1, 2, 3, 4, 5, 6, 7};
#endif

    return OP(maskload)(p, (__m256i)(lanes < (VI){0} + (REAL_INT)n));
}

static inline void v_storeu(REAL *p, V a)
{
    OP(storeu)(p, a);
}

#if REAL_BITS == 32
/* One shuffle: each half to the upper half of its lane. */
static inline V v_of_bf16(const uint16_t *p)
{
    const __m256i upper = _mm256_setr_epi8(
        -1, -1, 0, 1, -1, -1, 2, 3, -1, -1, 4, 5, -1, -1, 6, 7,
        -1, -1, 8, 9, -1, -1, 10, 11, -1, -1, 12, 13, -1, -1, 14, 15);
    const __m128i halves = _mm_loadu_si128((const __m128i_u *)p);

    return _mm256_castsi256_ps(
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(halves), upper));
}

static inline V v_of_f16(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)p));
}
#endif

static inline V v_set1(REAL x)
{
    return OP(set1)(x);
}

/* a * b + c, rounded once */
static inline V v_fma(V a, V b, V c)
{
    return OP(fmadd)(a, b, c);
}

static inline VM v_lt(V a, V b)
{
    return (VM)OP(cmp)(a, b, _CMP_LT_OQ);
}

static inline VM v_le(V a, V b)
{
    return (VM)OP(cmp)(a, b, _CMP_LE_OQ);
}

static inline VM v_eq(V a, V b)
{
    return (VM)OP(cmp)(a, b, _CMP_EQ_OQ);
}

static inline VM v_ne(V a, V b)
{
    return (VM)OP(cmp)(a, b, _CMP_NEQ_UQ);
}

static inline V v_select(VM mask, V yes, V no)
{
    return OP(blendv)(no, yes, (V)mask);
}

/* Masks in memory: all ones or zeros per lane. */
static inline VM v_mask_load(const REAL_INT *p)
{
    return *(const VI *)p;
}

static inline void v_mask_store(REAL_INT *p, VM mask)
{
    *(VI *)p = mask;
}

/* 1.5 * 2^52 (2^23) and the bias of exponents: a sum with it is rounded to an
 * integer, whose low bits are an exponent. Of use below 2^51 (2^22). */
#if REAL_BITS == 64
#define ROUNDER (0x1.8p52 + 1023)
#define MANTISSA_BITS 52
#else
#define ROUNDER (0x1.8p23f + 127)
#define MANTISSA_BITS 23
#endif

/* 2^n, where that is a normal number, n given as n + ROUNDER. */
static inline V v_power_of_2(V n)
{
    return (V)((VI)n << MANTISSA_BITS);
}

/* a * b + c; 0 where `zero` is set, whatever they are. */
static inline V v_fma_unless(VM zero, V a, V b, V c)
{
    return v_select(zero, v_set1(0), v_fma(a, b, c));
}

/* The larger; b where either is NaN, as the instruction has it. */
static inline V v_max(V a, V b)
{
    return OP(max)(a, b);
}

static inline V v_abs(V a)
{
    return OP(andnot)(v_set1((REAL)-0.0), a);
}

/* The sign of b on the size of a. */
static inline V v_copysign(V a, V b)
{
    const VI sign = (VI)v_set1((REAL)-0.0);

    return (V)(((VI)a & ~sign) | ((VI)b & sign));
}

static inline bool v_any(VM mask)
{
    return OP(movemask)((V)mask) != 0;
}

/* LANES bytes, each as a number. */
static inline V v_of_bytes(const char *p)
{
#if REAL_BITS == 64
    int32_t bytes;

    memcpy(&bytes, p, sizeof bytes);
    return _mm256_cvtepi32_pd(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(bytes)));
#else
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i_u *)p)));
#endif
}

/* Within each quad of four vectors: a[i] lane k becomes a[k] lane i. */
#if REAL_BITS == 32
static inline void v_quads_transpose(V *a)
{
    const V x = _mm256_unpacklo_ps(a[0], a[1]);
    const V y = _mm256_unpackhi_ps(a[0], a[1]);
    const V z = _mm256_unpacklo_ps(a[2], a[3]);
    const V w = _mm256_unpackhi_ps(a[2], a[3]);

    a[0] = _mm256_shuffle_ps(x, z, 0x44);
    a[1] = _mm256_shuffle_ps(x, z, 0xee);
    a[2] = _mm256_shuffle_ps(y, w, 0x44);
    a[3] = _mm256_shuffle_ps(y, w, 0xee);
}

/* a[i] lane k becomes a[k] lane i. */
static inline void v_transpose(V *a)
{
    v_quads_transpose(a);
    v_quads_transpose(a + 4);
    for (ptrdiff_t i = 0; i < 4; i++) {
        const V x = a[i], y = a[i + 4];

        a[i] = _mm256_permute2f128_ps(x, y, 0x20);
        a[i + 4] = _mm256_permute2f128_ps(x, y, 0x31);
    }
}
#else
static inline void v_transpose(V *a)
{
    const V x = _mm256_unpacklo_pd(a[0], a[1]);
    const V y = _mm256_unpackhi_pd(a[0], a[1]);
    const V z = _mm256_unpacklo_pd(a[2], a[3]);
    const V w = _mm256_unpackhi_pd(a[2], a[3]);

    a[0] = _mm256_permute2f128_pd(x, z, 0x20);
    a[1] = _mm256_permute2f128_pd(y, w, 0x20);
    a[2] = _mm256_permute2f128_pd(x, z, 0x31);
    a[3] = _mm256_permute2f128_pd(y, w, 0x31);
}

static inline void v_quads_transpose(V *a)
{
    v_transpose(a);
}
#endif

/* Quads: four lanes side by side. Quad i of the result: the four numbers at
 * p[i] + c. */
#define QUADS (LANES / 4)
#if REAL_BITS == 32
static inline V v_quads(const REAL *const *p, int64_t c)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p[0] + c)),
                                _mm_loadu_ps(p[1] + c), 1);
}

/* Four halves at the foot of each quad, then to the upper half of its lanes. */
static inline V v_quads_of_bf16(const uint16_t *const *p, int64_t c)
{
    int64_t four[2];
    __m256i halves;

    memcpy(&four[0], p[0] + c, sizeof four[0]);
    memcpy(&four[1], p[1] + c, sizeof four[1]);
    halves = _mm256_blend_epi32(_mm256_set1_epi64x(four[0]),
                                _mm256_set1_epi64x(four[1]), 0xf0);
    return _mm256_castsi256_ps(
        _mm256_unpacklo_epi16(_mm256_setzero_si256(), halves));
}

static inline V v_quads_of_f16(const uint16_t *const *p, int64_t c)
{
    const __m128d low = _mm_load_sd((const double *)(const void *)(p[0] + c));

    return _mm256_cvtph_ps(_mm_castpd_si128(
        _mm_loadh_pd(low, (const double *)(const void *)(p[1] + c))));
}

/* The four numbers at p, in every quad. */
static inline V v_quad_set(const REAL *p)
{
    return _mm256_broadcast_ps((const __m128 *)(const void *)p);
}

#define PERMUTE_QUADS _mm256_permute_ps

/* Quad i to p + i step. */
static inline void v_quads_store(REAL *p, ptrdiff_t step, V a)
{
    _mm_storeu_ps(p, _mm256_castps256_ps128(a));
    _mm_storeu_ps(p + step, _mm256_extractf128_ps(a, 1));
}
#else
static inline V v_quads(const REAL *const *p, int64_t c)
{
    return v_loadu(p[0] + c);
}

static inline V v_quad_set(const REAL *p)
{
    return v_loadu(p);
}

#define PERMUTE_QUADS _mm256_permute4x64_pd

static inline void v_quads_store(REAL *p, ptrdiff_t step, V a)
{
    (void)step;
    v_storeu(p, a);
}
#endif

/* Lane i < 4 of each quad in all its lanes. */
static inline V v_quad_spread(V a, int i)
{
    switch (i) {
    case 0:
        return PERMUTE_QUADS(a, 0x00);
    case 1:
        return PERMUTE_QUADS(a, 0x55);
    case 2:
        return PERMUTE_QUADS(a, 0xaa);
    default:
        return PERMUTE_QUADS(a, 0xff);
    }
}

#endif
