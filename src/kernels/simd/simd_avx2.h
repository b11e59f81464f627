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

#define VECTOR_BYTES 32
#define TILE_VECTORS 2
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

/* 1.5 * 2^52 (2^23): adding it rounds to an integer, which then stands in the
 * low bits. Of use below 2^51 (2^22). */
#if REAL_BITS == 64
#define ROUNDER 0x1.8p52
#define MANTISSA_BITS 52
#else
#define ROUNDER 0x1.8p23f
#define MANTISSA_BITS 23
#endif

/* p * 2^n, n given as n + ROUNDER, where p and the result are normal. */
static inline V v_scale(V p, V shifted)
{
    return (V)((VI)p + ((VI)shifted << MANTISSA_BITS));
}

/* The same, 0 where `zero` is set and x, of which n is the integer, where x is
 * NaN. */
static inline V v_scale_unless(VM zero, V p, V shifted, V x)
{
    return v_select(v_ne(x, x), x,
                    v_select(zero, v_set1(0), v_scale(p, shifted)));
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

#endif
