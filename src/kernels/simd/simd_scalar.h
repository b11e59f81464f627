/* SPDX-License-Identifier: Apache-2.0
 *
 * The vector layer of the scalar level: GCC's and clang's portable vectors of
 * 32 bytes, which the compiler maps to whatever the baseline has. The other
 * levels' headers define the same names; nothing is here that no template
 * uses. Multiply and add round separately, on every machine, so this level
 * has the same bits everywhere.
 *
 * Before inclusion: REAL_BITS is 32 or 64, the width of REAL. */
#ifndef ATTN_KERNELS_SIMD_SCALAR_H
#define ATTN_KERNELS_SIMD_SCALAR_H

#include "core/half.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VECTOR_BYTES 32
/* Vectors of queries in a tile, and rows of the product's register tile. */
#ifndef TILE_VECTORS
#define TILE_VECTORS 2
#endif
#define PRODUCT_ROWS 6

#if REAL_BITS == 64
typedef double REAL;
typedef int64_t REAL_INT;
#else
typedef float REAL;
typedef int32_t REAL_INT;
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

/* The same at any address. */
static inline V v_loadu(const REAL *p)
{
    V a;

    memcpy(&a, p, sizeof a);
    return a;
}

static inline void v_storeu(REAL *p, V a)
{
    memcpy(p, &a, sizeof a);
}

#if REAL_BITS == 32
static inline V v_of_bf16(const uint16_t *p)
{
    V a;

    for (ptrdiff_t k = 0; k < LANES; k++)
        a[k] = attn__f32_of_bf16(p[k]);
    return a;
}

static inline V v_of_f16(const uint16_t *p)
{
    V a;

    for (ptrdiff_t k = 0; k < LANES; k++)
        a[k] = attn__f32_of_f16(p[k]);
    return a;
}
#endif

static inline V v_set1(REAL x)
{
#if REAL_BITS == 64
    return (V){x, x, x, x};
#else
    return (V){x, x, x, x, x, x, x, x};
#endif
}

/* a * b + c, rounded twice */
static inline V v_fma(V a, V b, V c)
{
    return a * b + c;
}

/* A truth value per lane. */
typedef VI VM;

static inline VM v_lt(V a, V b)
{
    return a < b;
}

static inline VM v_le(V a, V b)
{
    return a <= b;
}

static inline VM v_eq(V a, V b)
{
    return a == b;
}

static inline VM v_ne(V a, V b)
{
    return a != b;
}

static inline V v_select(VM mask, V yes, V no)
{
    return (V)((mask & (VI)yes) | (~mask & (VI)no));
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

/* The larger; b where either is NaN. */
static inline V v_max(V a, V b)
{
    return v_select(a > b, a, b);
}

static inline V v_abs(V a)
{
    return (V)((VI)a & ~(VI)v_set1((REAL)-0.0));
}

/* The sign of b on the size of a. */
static inline V v_copysign(V a, V b)
{
    const VI sign = (VI)v_set1((REAL)-0.0);

    return (V)(((VI)a & ~sign) | ((VI)b & sign));
}

/* Whether any lane's mask is set. */
static inline bool v_any(VM mask)
{
    REAL_INT any = 0;

    for (ptrdiff_t lane = 0; lane < LANES; lane++)
        any |= mask[lane];
    return any != 0;
}

/* LANES bytes, each as a number. */
static inline V v_of_bytes(const char *p)
{
    V a;

    for (ptrdiff_t k = 0; k < LANES; k++)
        a[k] = (REAL)p[k];
    return a;
}

/* a[i] lane k becomes a[k] lane i. */
static inline void v_transpose(V *a)
{
    for (ptrdiff_t i = 0; i < LANES; i++)
        for (ptrdiff_t k = 0; k < i; k++) {
            const REAL x = a[i][k];

            a[i][k] = a[k][i];
            a[k][i] = x;
        }
}

/* Within each quad of four vectors: a[i] lane k becomes a[k] lane i. */
static inline void v_quads_transpose(V *a)
{
    for (ptrdiff_t lane = 0; lane < LANES; lane++)
        for (ptrdiff_t i = lane % 4 + 1; i < 4; i++) {
            const ptrdiff_t other = lane / 4 * 4 + i;
            const REAL x = a[i][lane];

            a[i][lane] = a[lane % 4][other];
            a[lane % 4][other] = x;
        }
}

/* Quads: four lanes side by side. Quad i of the result: the four numbers at
 * p[i] + c. */
#define QUADS (LANES / 4)
static inline V v_quads(const REAL *const *p, int64_t c)
{
    V a;

    for (ptrdiff_t lane = 0; lane < LANES; lane++)
        a[lane] = p[lane / 4][c + lane % 4];
    return a;
}

#if REAL_BITS == 32
static inline V v_quads_of_bf16(const uint16_t *const *p, int64_t c)
{
    V a;

    for (ptrdiff_t lane = 0; lane < LANES; lane++)
        a[lane] = attn__f32_of_bf16(p[lane / 4][c + lane % 4]);
    return a;
}

static inline V v_quads_of_f16(const uint16_t *const *p, int64_t c)
{
    V a;

    for (ptrdiff_t lane = 0; lane < LANES; lane++)
        a[lane] = attn__f32_of_f16(p[lane / 4][c + lane % 4]);
    return a;
}
#endif

/* The four numbers at p, in every quad. */
static inline V v_quad_set(const REAL *p)
{
    V a;

    for (ptrdiff_t lane = 0; lane < LANES; lane++)
        a[lane] = p[lane % 4];
    return a;
}

/* Lane i < 4 of each quad in all its lanes. */
static inline V v_quad_spread(V a, int i)
{
    V b;

    for (ptrdiff_t lane = 0; lane < LANES; lane++)
        b[lane] = a[lane / 4 * 4 + i];
    return b;
}

/* Quad i to p + i step. */
static inline void v_quads_store(REAL *p, ptrdiff_t step, V a)
{
    for (ptrdiff_t lane = 0; lane < LANES; lane++)
        p[lane / 4 * step + lane % 4] = a[lane];
}

#endif
