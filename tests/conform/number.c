/* SPDX-License-Identifier: Apache-2.0
 *
 * Storage types: from doubles and back. Rounding is to nearest, once. */
#include <string.h>

#include "conform.h"
#include "core/half.h"

static void store_one(attn_dtype dtype, double x, void *data, int64_t n)
{
    switch (dtype) {
    case ATTN_F64:
        ((double *)data)[n] = x;
        break;
    case ATTN_F32:
        ((float *)data)[n] = (float)x;
        break;
    case ATTN_BF16:
        ((uint16_t *)data)[n] = attn__bf16_of_f64(x);
        break;
    case ATTN_F16:
        ((uint16_t *)data)[n] = attn__f16_of_f64(x);
        break;
    case ATTN_BOOL:
        ((unsigned char *)data)[n] = x != 0;
        break;
    case ATTN_I32:
        ((int32_t *)data)[n] = (int32_t)x;
        break;
    case ATTN_I64:
        ((int64_t *)data)[n] = (int64_t)x;
        break;
    case ATTN_NONE:
        break;
    }
}

static double load_one(attn_dtype dtype, const void *data, int64_t n)
{
    switch (dtype) {
    case ATTN_F64:
        return ((const double *)data)[n];
    case ATTN_F32:
        return (double)((const float *)data)[n];
    case ATTN_BF16:
        return (double)attn__f32_of_bf16(((const uint16_t *)data)[n]);
    case ATTN_F16:
        return (double)attn__f32_of_f16(((const uint16_t *)data)[n]);
    case ATTN_BOOL:
        return ((const unsigned char *)data)[n] != 0;
    case ATTN_I32:
        return ((const int32_t *)data)[n];
    case ATTN_I64:
        return (double)((const int64_t *)data)[n];
    case ATTN_NONE:
        break;
    }
    return 0;
}

void *stored(test_case *c, attn_dtype dtype, const double *x, int64_t n)
{
    void *data = take(c, n, attn_dtype_size(dtype));

    for (int64_t i = 0; i < n; i++)
        store_one(dtype, x[i], data, i);
    return data;
}

void unstored(attn_dtype dtype, const void *data, int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = load_one(dtype, data, i);
}

void round_to(attn_dtype dtype, double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double element; /* room for any type */

        store_one(dtype, x[i], &element, 0);
        x[i] = load_one(dtype, &element, 0);
    }
}

attn_dtype dtype_of_word(const char *word)
{
    static const struct {
        const char *word;
        attn_dtype dtype;
    } rows[] = {
        {"float64", ATTN_F64}, {"float32", ATTN_F32}, {"bfloat16", ATTN_BF16},
        {"float16", ATTN_F16}, {"bool", ATTN_BOOL},   {"int32", ATTN_I32},
        {"int64", ATTN_I64},
    };

    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        if (strcmp(rows[r].word, word) == 0)
            return rows[r].dtype;
    }
    return ATTN_NONE;
}
