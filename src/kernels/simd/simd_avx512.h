/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector layer of the AVX-512 level (F, BW, DQ, VL): 64-byte vectors, fused
 * multiply-add, truth values in mask registers. Same names as simd_scalar.h.
 *
 * Before inclusion: REAL_BITS is 32 or 64, the width of REAL. */
#ifndef ATTN_KERNELS_SIMD_AVX512_H
#define ATTN_KERNELS_SIMD_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VECTOR_BYTES 64
#ifndef TILE_VECTORS
#define TILE_VECTORS 2
#endif
/* 12 x 2 sums, 2 vectors of queries and the broadcast: 27 of 32 registers. */
#define PRODUCT_ROWS 12

#if REAL_BITS == 64
typedef double REAL;
typedef int64_t REAL_INT;
typedef __mmask8 VM;
#define OP(name) _mm512_##name##_pd
#define OP_MASK(name) _mm512_mask_##name##_pd
#define OP_ZERO(name) _mm512_maskz_##name##_pd
#define OP_COMPARE(a, b, how) _mm512_cmp_pd_mask(a, b, how)
#else
typedef float REAL;
typedef int32_t REAL_INT;
typedef __mmask16 VM;
#define OP(name) _mm512_##name##_ps
#define OP_MASK(name) _mm512_mask_##name##_ps
#define OP_ZERO(name) _mm512_maskz_##name##_ps
#define OP_COMPARE(a, b, how) _mm512_cmp_ps_mask(a, b, how)
#endif

typedef REAL V __attribute__((vector_size(VECTOR_BYTES)));
typedef REAL_INT VI __attribute__((vector_size(VECTOR_BYTES)));

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
    return (V)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
#else
    return (V)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#endif
}

static inline void v_storeu(REAL *p, V a)
{
    OP(storeu)(p, a);
}

#if REAL_BITS == 32
static inline V v_of_bf16(const uint16_t *p)
{
    const __m256i halves = _mm256_loadu_si256((const __m256i_u *)p);

    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

static inline V v_of_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)p));
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
    return OP_COMPARE(a, b, _CMP_LT_OQ);
}

static inline VM v_le(V a, V b)
{
    return OP_COMPARE(a, b, _CMP_LE_OQ);
}

static inline VM v_eq(V a, V b)
{
    return OP_COMPARE(a, b, _CMP_EQ_OQ);
}

static inline VM v_ne(V a, V b)
{
    return OP_COMPARE(a, b, _CMP_NEQ_UQ);
}

static inline V v_select(VM mask, V yes, V no)
{
    return OP_MASK(mov)(no, mask, yes);
}

/* Masks in memory: all ones or zeros per lane. */
static inline VM v_mask_load(const REAL_INT *p)
{
#if REAL_BITS == 64
    return _mm512_movepi64_mask(_mm512_load_si512(p));
#else
    return _mm512_movepi32_mask(_mm512_load_si512(p));
#endif
}

static inline void v_mask_store(REAL_INT *p, VM mask)
{
#if REAL_BITS == 64
    _mm512_store_si512(p, _mm512_movm_epi64(mask));
#else
    _mm512_store_si512(p, _mm512_movm_epi32(mask));
#endif
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
    return OP_ZERO(fmadd)((VM)~zero, a, b, c);
}

/* The larger; b where either is NaN, as the instruction has it. */
static inline V v_max(V a, V b)
{
    return OP(max)(a, b);
}

static inline V v_abs(V a)
{
    return OP(abs)(a);
}

/* The sign of b on the size of a. */
static inline V v_copysign(V a, V b)
{
    const VI sign = (VI)v_set1((REAL)-0.0);

    return (V)(((VI)a & ~sign) | ((VI)b & sign));
}

static inline bool v_any(VM mask)
{
    return mask != 0;
}

/* LANES bytes, each as a number. */
static inline V v_of_bytes(const char *p)
{
#if REAL_BITS == 64
    return _mm512_cvtepi32_pd(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i_u *)p)));
#else
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i_u *)p)));
#endif
}

/* Within each quad of four vectors: a[i] lane k becomes a[k] lane i. */
#if REAL_BITS == 32
static inline void v_quads_transpose(V *a)
{
    const V x = _mm512_unpacklo_ps(a[0], a[1]);
    const V y = _mm512_unpackhi_ps(a[0], a[1]);
    const V z = _mm512_unpacklo_ps(a[2], a[3]);
    const V w = _mm512_unpackhi_ps(a[2], a[3]);

    a[0] = _mm512_shuffle_ps(x, z, 0x44);
    a[1] = _mm512_shuffle_ps(x, z, 0xee);
    a[2] = _mm512_shuffle_ps(y, w, 0x44);
    a[3] = _mm512_shuffle_ps(y, w, 0xee);
}

/* a[i] lane k becomes a[k] lane i: within quads, then the quads. */
static inline void v_transpose(V *a)
{
    for (ptrdiff_t i = 0; i < 16; i += 4)
        v_quads_transpose(a + i);
    for (ptrdiff_t i = 0; i < 4; i++) {
        const V x = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
        const V y = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
        const V z = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
        const V w = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xdd);

        a[i] = _mm512_shuffle_f32x4(x, y, 0x88);
        a[i + 4] = _mm512_shuffle_f32x4(z, w, 0x88);
        a[i + 8] = _mm512_shuffle_f32x4(x, y, 0xdd);
        a[i + 12] = _mm512_shuffle_f32x4(z, w, 0xdd);
    }
}
#else
static inline void v_quads_transpose(V *a)
{
    const __m512i low = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0);
    const __m512i high = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
    const V x = _mm512_unpacklo_pd(a[0], a[1]);
    const V y = _mm512_unpackhi_pd(a[0], a[1]);
    const V z = _mm512_unpacklo_pd(a[2], a[3]);
    const V w = _mm512_unpackhi_pd(a[2], a[3]);

    a[0] = _mm512_permutex2var_pd(x, low, z);
    a[1] = _mm512_permutex2var_pd(y, low, w);
    a[2] = _mm512_permutex2var_pd(x, high, z);
    a[3] = _mm512_permutex2var_pd(y, high, w);
}

static inline void v_transpose(V *a)
{
    V b[8];

    for (ptrdiff_t i = 0; i < 8; i += 2) {
        b[i] = _mm512_unpacklo_pd(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_pd(a[i], a[i + 1]);
    }
    for (ptrdiff_t i = 0; i < 2; i++) {
        const V x = _mm512_shuffle_f64x2(b[i], b[i + 2], 0x88);
        const V y = _mm512_shuffle_f64x2(b[i + 4], b[i + 6], 0x88);
        const V z = _mm512_shuffle_f64x2(b[i], b[i + 2], 0xdd);
        const V w = _mm512_shuffle_f64x2(b[i + 4], b[i + 6], 0xdd);

        a[i] = _mm512_shuffle_f64x2(x, y, 0x88);
        a[i + 2] = _mm512_shuffle_f64x2(z, w, 0x88);
        a[i + 4] = _mm512_shuffle_f64x2(x, y, 0xdd);
        a[i + 6] = _mm512_shuffle_f64x2(z, w, 0xdd);
    }
}
#endif

/* Quads: four lanes side by side. Quad i of the result: the four numbers at
 * p[i] + c. */
#define QUADS (LANES / 4)
#if REAL_BITS == 32
static inline V v_quads(const REAL *const *p, int64_t c)
{
    __m512 a = _mm512_castps128_ps512(_mm_loadu_ps(p[0] + c));

    a = _mm512_insertf32x4(a, _mm_loadu_ps(p[1] + c), 1);
    a = _mm512_insertf32x4(a, _mm_loadu_ps(p[2] + c), 2);
    return _mm512_insertf32x4(a, _mm_loadu_ps(p[3] + c), 3);
}

static inline __m256i quads_of_halves(const uint16_t *const *p, int64_t c)
{
    __m128i pair[2];

    for (ptrdiff_t i = 0; i < 2; i++)
        pair[i] = _mm_unpacklo_epi64(
            _mm_loadl_epi64((const __m128i_u *)(p[2 * i] + c)),
            _mm_loadl_epi64((const __m128i_u *)(p[2 * i + 1] + c)));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(pair[0]), pair[1],
                                   1);
}

static inline V v_quads_of_bf16(const uint16_t *const *p, int64_t c)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(
        _mm512_cvtepu16_epi32(quads_of_halves(p, c)), 16));
}

static inline V v_quads_of_f16(const uint16_t *const *p, int64_t c)
{
    return _mm512_cvtph_ps(quads_of_halves(p, c));
}

/* The four numbers at p, in every quad. */
static inline V v_quad_set(const REAL *p)
{
    return _mm512_broadcast_f32x4(_mm_loadu_ps(p));
}

#define PERMUTE_QUADS _mm512_permute_ps

/* Quad i to p + i step. */
static inline void v_quads_store(REAL *p, ptrdiff_t step, V a)
{
    _mm_storeu_ps(p, _mm512_castps512_ps128(a));
    _mm_storeu_ps(p + step, _mm512_extractf32x4_ps(a, 1));
    _mm_storeu_ps(p + 2 * step, _mm512_extractf32x4_ps(a, 2));
    _mm_storeu_ps(p + 3 * step, _mm512_extractf32x4_ps(a, 3));
}
#else
static inline V v_quads(const REAL *const *p, int64_t c)
{
    return _mm512_insertf64x4(
        _mm512_castpd256_pd512(_mm256_loadu_pd(p[0] + c)),
        _mm256_loadu_pd(p[1] + c), 1);
}

static inline V v_quad_set(const REAL *p)
{
    return _mm512_broadcast_f64x4(_mm256_loadu_pd(p));
}

#define PERMUTE_QUADS _mm512_permutex_pd

static inline void v_quads_store(REAL *p, ptrdiff_t step, V a)
{
    _mm256_storeu_pd(p, _mm512_castpd512_pd256(a));
    _mm256_storeu_pd(p + step, _mm512_extractf64x4_pd(a, 1));
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
