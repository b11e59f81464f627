/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements between memory and REAL. Before inclusion: STORAGE is one of the
 * four below, the type of q, k, v, o and their gradients. */

#include "core/half.h"

#define STORAGE_F64 1
#define STORAGE_F32 2
#define STORAGE_BF16 3
#define STORAGE_F16 4

#if STORAGE == STORAGE_F64
typedef double ELEM;
#elif STORAGE == STORAGE_F32
typedef float ELEM;
#else
typedef uint16_t ELEM;
#endif

/* Whether a block of memory can be multiplied in place. */
#define STORAGE_IS_REAL (STORAGE == STORAGE_F64 || STORAGE == STORAGE_F32)

static inline REAL elem_load(ELEM e)
{
#if STORAGE == STORAGE_BF16
    return attn__f32_of_bf16(e);
#elif STORAGE == STORAGE_F16
    return attn__f32_of_f16(e);
#else
    return e;
#endif
}

/* LANES neighbours, at any address. */
static inline V elems_load(const ELEM *from)
{
#if STORAGE == STORAGE_BF16
    return v_of_bf16(from);
#elif STORAGE == STORAGE_F16
    return v_of_f16(from);
#else
    return v_loadu(from);
#endif
}

/* The first n < LANES of them, then zeros; nothing behind them is read. */
static inline V elems_load_some(const ELEM *from, int64_t n)
{
#if STORAGE_IS_REAL && defined(V_LOADS_SOME)
    return v_load_some(from, n);
#else
    ELEM some[VECTOR_BYTES / sizeof(REAL)] = {0};

    memcpy(some, from, (size_t)n * sizeof *some);
    return elems_load(some);
#endif
}

/* Quads of columns [c, c + 4) of QUADS rows. */
static inline V elems_quads(const ELEM *const *rows, int64_t c)
{
#if STORAGE == STORAGE_BF16
    return v_quads_of_bf16(rows, c);
#elif STORAGE == STORAGE_F16
    return v_quads_of_f16(rows, c);
#else
    return v_quads(rows, c);
#endif
}

/* The same of n < 4 columns, then zeros; nothing behind them is read. */
static inline V elems_quads_some(const ELEM *const *rows, int64_t c,
                                 ptrdiff_t n)
{
    ELEM some[QUADS][4] = {{0}};
    const ELEM *at[QUADS];

    for (ptrdiff_t i = 0; i < QUADS; i++) {
        memcpy(some[i], rows[i] + c, (size_t)n * sizeof *rows[i]);
        at[i] = some[i];
    }
    return elems_quads(at, 0);
}

/* column[k] = column c + k of LANES rows, a row a lane; n <= 4 columns. */
static inline void elems_columns(const ELEM *const *rows, int64_t c,
                                 const int64_t n, V *column)
{
    UNROLL(4)
    for (ptrdiff_t i = 0; i < 4; i++) {
        const ELEM *at[QUADS];

        for (ptrdiff_t quad = 0; quad < QUADS; quad++)
            at[quad] = rows[4 * quad + i];
        column[i] = n == 4 ? elems_quads(at, c) : elems_quads_some(at, c, n);
    }
    v_quads_transpose(column);
}

static inline ELEM elem_round(REAL x)
{
#if STORAGE == STORAGE_BF16
    return attn__bf16_of_f32(x);
#elif STORAGE == STORAGE_F16
    return attn__f16_of_f32(x);
#else
    return x;
#endif
}

/* LANES neighbours, each rounded. */
static inline void elems_store(ELEM *to, V x)
{
#if STORAGE_IS_REAL
    v_storeu(to, x);
#else
    REAL values[VECTOR_BYTES / sizeof(REAL)]
        __attribute__((aligned(VECTOR_BYTES)));

    v_store(values, x);
    for (ptrdiff_t i = 0; i < LANES; i++)
        to[i] = elem_round(values[i]);
#endif
}

/* Any float type, for the small inputs: bias, slopes, sinks, lse. */
static inline double read_any(const char *data, attn_dtype dtype,
                              int64_t index)
{
    switch (dtype) {
    case ATTN_F64:
        return ((const double *)(const void *)data)[index];
    case ATTN_F32:
        return (double)((const float *)(const void *)data)[index];
    case ATTN_BF16:
        return (double)attn__f32_of_bf16(
            ((const uint16_t *)(const void *)data)[index]);
    default:
        return (double)attn__f32_of_f16(
            ((const uint16_t *)(const void *)data)[index]);
    }
}

static inline void write_any(char *data, attn_dtype dtype, int64_t index,
                             double x)
{
    switch (dtype) {
    case ATTN_F64:
        ((double *)(void *)data)[index] = x;
        return;
    case ATTN_F32:
        ((float *)(void *)data)[index] = (float)x;
        return;
    case ATTN_BF16:
        ((uint16_t *)(void *)data)[index] = attn__bf16_of_f64(x);
        return;
    default:
        ((uint16_t *)(void *)data)[index] = attn__f16_of_f64(x);
        return;
    }
}

/* To REAL, a finite number staying finite: a huge fp64 bias is not a mask. */
static inline REAL real_of(double x)
{
#if REAL_BITS == 32
    if (fabs(x) > (double)FLT_MAX && fabs(x) < (double)INFINITY)
        return x > 0 ? FLT_MAX : -FLT_MAX;
#endif
    return (REAL)x;
}
