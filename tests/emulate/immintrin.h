/* SPDX-License-Identifier: Apache-2.0
 *
 * The AVX-512 functions that the kernels use, in C for any x86-64 with AVX2,
 * lane by lane as Intel's Intrinsics Guide defines them. Found before the
 * compiler's own header where a build has the option `emulate`. */
#ifndef ATTN_TESTS_EMULATE_IMMINTRIN_H
#define ATTN_TESTS_EMULATE_IMMINTRIN_H

#include_next <immintrin.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EMULATED static inline __attribute__((unused))

typedef uint16_t emulated_u16 __attribute__((vector_size(64)));
typedef uint32_t emulated_u32 __attribute__((vector_size(64)));
typedef int32_t emulated_i32 __attribute__((vector_size(64)));
typedef int64_t emulated_i64 __attribute__((vector_size(64)));

/* For each real type: its vector, lanes, mask. */
#define EMULATE_REAL(suffix, real, vector, lanes, mask_type, fma_of, abs_of)  \
    EMULATED vector emulated_set1_##suffix(real x)                            \
    {                                                                         \
        vector r;                                                             \
                                                                              \
        for (int i = 0; i < lanes; i++)                                       \
            r[i] = x;                                                         \
        return r;                                                             \
    }                                                                         \
    EMULATED vector emulated_loadu_##suffix(const void *p)                    \
    {                                                                         \
        vector r;                                                             \
                                                                              \
        memcpy(&r, p, sizeof r);                                              \
        return r;                                                             \
    }                                                                         \
    EMULATED void emulated_storeu_##suffix(void *p, vector a)                 \
    {                                                                         \
        memcpy(p, &a, sizeof a);                                              \
    }                                                                         \
    EMULATED vector emulated_maskz_loadu_##suffix(mask_type m, const void *p) \
    {                                                                         \
        vector r = {0};                                                       \
                                                                              \
        for (int i = 0; i < lanes; i++)                                       \
            if (m >> i & 1)                                                   \
                r[i] = ((const real *)p)[i];                                  \
        return r;                                                             \
    }                                                                         \
    EMULATED vector emulated_fmadd_##suffix(vector a, vector b, vector c)     \
    {                                                                         \
        for (int i = 0; i < lanes; i++)                                       \
            c[i] = fma_of(a[i], b[i], c[i]);                                  \
        return c;                                                             \
    }                                                                         \
    EMULATED vector emulated_mask_mov_##suffix(vector no, mask_type m,        \
                                               vector yes)                    \
    {                                                                         \
        for (int i = 0; i < lanes; i++)                                       \
            if (m >> i & 1)                                                   \
                no[i] = yes[i];                                               \
        return no;                                                            \
    }                                                                         \
    EMULATED vector emulated_maskz_fmadd_##suffix(mask_type m, vector a,      \
                                                  vector b, vector c)         \
    {                                                                         \
        return emulated_mask_mov_##suffix(                                    \
            (vector){0}, m, emulated_fmadd_##suffix(a, b, c));                \
    }                                                                         \
    EMULATED vector emulated_max_##suffix(vector a, vector b)                 \
    {                                                                         \
        for (int i = 0; i < lanes; i++)                                       \
            a[i] = a[i] > b[i] ? a[i] : b[i];                                 \
        return a;                                                             \
    }                                                                         \
    EMULATED vector emulated_abs_##suffix(vector a)                           \
    {                                                                         \
        for (int i = 0; i < lanes; i++)                                       \
            a[i] = abs_of(a[i]);                                              \
        return a;                                                             \
    }                                                                         \
    EMULATED mask_type emulated_cmp_##suffix##_mask(vector a, vector b,       \
                                                    int how)                  \
    {                                                                         \
        mask_type m = 0;                                                      \
                                                                              \
        for (int i = 0; i < lanes; i++) {                                     \
            const int yes = how == _CMP_LT_OQ   ? a[i] < b[i]                 \
                            : how == _CMP_LE_OQ ? a[i] <= b[i]                \
                            : how == _CMP_EQ_OQ ? a[i] == b[i]                \
                                                : !(a[i] == b[i]);            \
                                                                              \
            m |= (mask_type)(yes << i);                                       \
        }                                                                     \
        return m;                                                             \
    }                                                                         \
    EMULATED vector emulated_unpack_##suffix(vector a, vector b, int high)    \
    {                                                                         \
        const int quarter = lanes / 4;                                        \
        vector r;                                                             \
                                                                              \
        for (int i = 0; i < lanes; i++) {                                     \
            const int from = i / quarter * quarter +                          \
                             (high ? quarter / 2 : 0) + i % quarter / 2;      \
                                                                              \
            r[i] = i % 2 ? b[from] : a[from];                                 \
        }                                                                     \
        return r;                                                             \
    }                                                                         \
    /* Quarters of a, a, b, b by two bits each. */                            \
    EMULATED vector emulated_quarters_##suffix(vector a, vector b, int how)   \
    {                                                                         \
        const int quarter = lanes / 4;                                        \
        vector r;                                                             \
                                                                              \
        for (int i = 0; i < lanes; i++) {                                     \
            const int q = i / quarter, from = how >> 2 * q & 3;               \
                                                                              \
            r[i] = (q < 2 ? a : b)[from * quarter + i % quarter];             \
        }                                                                     \
        return r;                                                             \
    }

EMULATE_REAL(ps, float, __m512, 16, __mmask16, fmaf, fabsf)
EMULATE_REAL(pd, double, __m512d, 8, __mmask8, fma, fabs)

#define _mm512_set1_ps emulated_set1_ps
#define _mm512_set1_pd emulated_set1_pd
#define _mm512_loadu_ps emulated_loadu_ps
#define _mm512_loadu_pd emulated_loadu_pd
#define _mm512_storeu_ps emulated_storeu_ps
#define _mm512_storeu_pd emulated_storeu_pd
#define _mm512_maskz_loadu_ps emulated_maskz_loadu_ps
#define _mm512_maskz_loadu_pd emulated_maskz_loadu_pd
#define _mm512_fmadd_ps emulated_fmadd_ps
#define _mm512_fmadd_pd emulated_fmadd_pd
#define _mm512_maskz_fmadd_ps emulated_maskz_fmadd_ps
#define _mm512_maskz_fmadd_pd emulated_maskz_fmadd_pd
#define _mm512_mask_mov_ps emulated_mask_mov_ps
#define _mm512_mask_mov_pd emulated_mask_mov_pd
#define _mm512_max_ps emulated_max_ps
#define _mm512_max_pd emulated_max_pd
#define _mm512_abs_ps emulated_abs_ps
#define _mm512_abs_pd emulated_abs_pd
#undef _mm512_cmp_ps_mask
#undef _mm512_cmp_pd_mask
#define _mm512_cmp_ps_mask emulated_cmp_ps_mask
#define _mm512_cmp_pd_mask emulated_cmp_pd_mask
#define _mm512_unpacklo_ps(a, b) emulated_unpack_ps(a, b, 0)
#define _mm512_unpackhi_ps(a, b) emulated_unpack_ps(a, b, 1)
#define _mm512_unpacklo_pd(a, b) emulated_unpack_pd(a, b, 0)
#define _mm512_unpackhi_pd(a, b) emulated_unpack_pd(a, b, 1)
#undef _mm512_shuffle_f32x4
#undef _mm512_shuffle_f64x2
#define _mm512_shuffle_f32x4 emulated_quarters_ps
#define _mm512_shuffle_f64x2 emulated_quarters_pd

#undef _mm512_shuffle_ps
#define _mm512_shuffle_ps emulated_shuffle_ps
EMULATED __m512 emulated_shuffle_ps(__m512 a, __m512 b, int how)
{
    __m512 r;

    for (int i = 0; i < 16; i++)
        r[i] = (i % 4 < 2 ? a : b)[i / 4 * 4 + (how >> 2 * (i % 4) & 3)];
    return r;
}

/* Quads: quarters of 16 floats, halves of 8 doubles. */
#define EMULATE_QUADS(suffix, vector, part, quads)                            \
    EMULATED vector emulated_insert_##suffix(vector a, part b, int at)        \
    {                                                                         \
        for (int i = 0; i < 4; i++)                                           \
            a[4 * at + i] = b[i];                                             \
        return a;                                                             \
    }                                                                         \
    EMULATED part emulated_extract_##suffix(vector a, int at)                 \
    {                                                                         \
        part r = {0};                                                         \
                                                                              \
        for (int i = 0; i < 4; i++)                                           \
            r[i] = a[4 * at + i];                                             \
        return r;                                                             \
    }                                                                         \
    EMULATED vector emulated_broadcast_##suffix(part b)                       \
    {                                                                         \
        vector a;                                                             \
                                                                              \
        for (int i = 0; i < 4 * quads; i++)                                   \
            a[i] = b[i % 4];                                                  \
        return a;                                                             \
    }                                                                         \
    EMULATED vector emulated_permute_##suffix(vector a, int how)              \
    {                                                                         \
        vector r;                                                             \
                                                                              \
        for (int i = 0; i < 4 * quads; i++)                                   \
            r[i] = a[i / 4 * 4 + (how >> 2 * (i % 4) & 3)];                   \
        return r;                                                             \
    }

EMULATE_QUADS(ps, __m512, __m128, 4)
EMULATE_QUADS(pd, __m512d, __m256d, 2)

#undef _mm512_insertf32x4
#undef _mm512_insertf64x4
#undef _mm512_extractf32x4_ps
#undef _mm512_extractf64x4_pd
#undef _mm512_permute_ps
#undef _mm512_permutex_pd
#define _mm512_insertf32x4 emulated_insert_ps
#define _mm512_insertf64x4 emulated_insert_pd
#define _mm512_extractf32x4_ps emulated_extract_ps
#define _mm512_extractf64x4_pd emulated_extract_pd
#define _mm512_castps128_ps512(a) emulated_insert_ps((__m512){0}, a, 0)
#define _mm512_castpd256_pd512(a) emulated_insert_pd((__m512d){0}, a, 0)
#define _mm512_castps512_ps128(a) emulated_extract_ps(a, 0)
#define _mm512_castpd512_pd256(a) emulated_extract_pd(a, 0)
#define _mm512_broadcast_f32x4 emulated_broadcast_ps
#define _mm512_broadcast_f64x4 emulated_broadcast_pd
#define _mm512_permute_ps emulated_permute_ps
#define _mm512_permutex_pd emulated_permute_pd

/* ------------------------------------------------------------- integers */

#define _mm512_set_epi64(h, g, f, e, d, c, b, a)                              \
    ((__m512i)(emulated_i64){a, b, c, d, e, f, g, h})

#define _mm512_permutex2var_pd emulated_permutex2var_pd
EMULATED __m512d emulated_permutex2var_pd(__m512d a, __m512i from, __m512d b)
{
    __m512d r;

    for (int i = 0; i < 8; i++) {
        const int64_t at = ((emulated_i64)from)[i];

        r[i] = (at & 8 ? b : a)[at & 7];
    }
    return r;
}

#define _mm512_load_si512 emulated_load_si512
EMULATED __m512i emulated_load_si512(const void *p)
{
    __m512i r;

    memcpy(&r, p, sizeof r);
    return r;
}

#define _mm512_store_si512 emulated_store_si512
EMULATED void emulated_store_si512(void *p, __m512i a)
{
    memcpy(p, &a, sizeof a);
}

#define _mm512_castsi512_ps(a) ((__m512)(a))
#define _mm512_set1_epi32(x) ((__m512i)((emulated_i32){0} + (x)))
#define _mm512_add_epi16(a, b)                                                \
    ((__m512i)((emulated_u16)(a) + (emulated_u16)(b)))
#undef _mm512_slli_epi32
#undef _mm512_srli_epi32
#define _mm512_slli_epi32(a, n) ((__m512i)((emulated_u32)(a) << (n)))
#define _mm512_srli_epi32(a, n) ((__m512i)((emulated_u32)(a) >> (n)))

/* Masks and vectors of lanes that are all ones or zeros. */
#define EMULATE_MASKS(bits, lanes, mask_type, vector)                         \
    EMULATED mask_type emulated_movepi##bits##_mask(__m512i a)                \
    {                                                                         \
        mask_type m = 0;                                                      \
                                                                              \
        for (int i = 0; i < lanes; i++)                                       \
            m |= (mask_type)((((vector)a)[i] < 0) << i);                      \
        return m;                                                             \
    }                                                                         \
    EMULATED __m512i emulated_movm_epi##bits(mask_type m)                     \
    {                                                                         \
        vector r;                                                             \
                                                                              \
        for (int i = 0; i < lanes; i++)                                       \
            r[i] = m >> i & 1 ? -1 : 0;                                       \
        return (__m512i)r;                                                    \
    }

EMULATE_MASKS(32, 16, __mmask16, emulated_i32)
EMULATE_MASKS(64, 8, __mmask8, emulated_i64)

#define _mm512_movepi32_mask emulated_movepi32_mask
#define _mm512_movepi64_mask emulated_movepi64_mask
#define _mm512_movm_epi32 emulated_movm_epi32
#define _mm512_movm_epi64 emulated_movm_epi64

/* Lanes of `from` become those of `to`, a number each. */
#define EMULATE_CONVERSION(name, to, to_lane, from, from_lane, lanes)         \
    EMULATED to emulated_##name(from a)                                       \
    {                                                                         \
        from_lane in[sizeof(from) / sizeof(from_lane)];                       \
        to_lane out[lanes];                                                   \
        to r;                                                                 \
                                                                              \
        memcpy(in, &a, sizeof in);                                            \
        for (int i = 0; i < lanes; i++)                                       \
            out[i] = (to_lane)in[i];                                          \
        memcpy(&r, out, sizeof r);                                            \
        return r;                                                             \
    }

EMULATE_CONVERSION(cvtepu16_epi32, __m512i, int32_t, __m256i, uint16_t, 16)
EMULATE_CONVERSION(cvtepi8_epi32, __m512i, int32_t, __m128i, int8_t, 16)
EMULATE_CONVERSION(cvtepi32_ps, __m512, float, __m512i, int32_t, 16)
EMULATE_CONVERSION(cvtepi32_pd, __m512d, double, __m256i, int32_t, 8)

#define _mm512_cvtepu16_epi32 emulated_cvtepu16_epi32
#define _mm512_cvtepi8_epi32 emulated_cvtepi8_epi32
#define _mm512_cvtepi32_ps emulated_cvtepi32_ps
#define _mm512_cvtepi32_pd emulated_cvtepi32_pd

#define _mm512_cvtph_ps emulated_cvtph_ps
EMULATED __m512 emulated_cvtph_ps(__m256i a)
{
    const __m256 half[2] = {_mm256_cvtph_ps(_mm256_castsi256_si128(a)),
                            _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1))};
    __m512 r;

    memcpy(&r, half, sizeof r);
    return r;
}

#define _mm512_permutex2var_epi16 emulated_permutex2var_epi16
EMULATED __m512i emulated_permutex2var_epi16(__m512i a, __m512i from,
                                             __m512i b)
{
    emulated_u16 r;

    for (int i = 0; i < 32; i++) {
        const unsigned at = ((emulated_u16)from)[i];

        r[i] = ((emulated_u16)(at & 32 ? b : a))[at & 31];
    }
    return (__m512i)r;
}

#define _mm512_mask_blend_epi16 emulated_mask_blend_epi16
EMULATED __m512i emulated_mask_blend_epi16(__mmask32 m, __m512i a, __m512i b)
{
    emulated_u16 r = (emulated_u16)a;

    for (int i = 0; i < 32; i++)
        if (m >> i & 1)
            r[i] = ((emulated_u16)b)[i];
    return (__m512i)r;
}

#define _mm512_max_epi32 emulated_max_epi32
EMULATED __m512i emulated_max_epi32(__m512i a, __m512i b)
{
    const emulated_i32 more = (emulated_i32)a > (emulated_i32)b;

    return (__m512i)(((emulated_i32)a & more) | ((emulated_i32)b & ~more));
}

#define _mm512_min_epu32 emulated_min_epu32
EMULATED __m512i emulated_min_epu32(__m512i a, __m512i b)
{
    const emulated_i32 less = (emulated_u32)a < (emulated_u32)b;

    return (__m512i)(((emulated_i32)a & less) | ((emulated_i32)b & ~less));
}

#undef _mm512_cmpgt_epi32_mask
#define _mm512_cmpgt_epi32_mask(a, b)                                         \
    emulated_movepi32_mask((__m512i)((emulated_i32)(a) > (emulated_i32)(b)))
#undef _mm512_cmplt_epu32_mask
#define _mm512_cmplt_epu32_mask(a, b)                                         \
    emulated_movepi32_mask((__m512i)((emulated_u32)(a) < (emulated_u32)(b)))

#include "emulated_tiles.h"

#endif
