/* SPDX-License-Identifier: Apache-2.0
 *
 * One element of any float tensor as a double, for the functions beside
 * attention, which move little data and are not on the fast path. */
#ifndef ATTN_CORE_ELEMENT_H
#define ATTN_CORE_ELEMENT_H

#include "core/half.h"
#include "core/tensor.h"

static inline double attn__read(const void *data, attn_dtype dtype,
                                int64_t index)
{
    switch (dtype) {
    case ATTN_F64:
        return ((const double *)data)[index];
    case ATTN_F32:
        return (double)((const float *)data)[index];
    case ATTN_BF16:
        return (double)attn__f32_of_bf16(((const uint16_t *)data)[index]);
    default:
        return (double)attn__f32_of_f16(((const uint16_t *)data)[index]);
    }
}

static inline void attn__write(void *data, attn_dtype dtype, int64_t index,
                               double x)
{
    switch (dtype) {
    case ATTN_F64:
        ((double *)data)[index] = x;
        return;
    case ATTN_F32:
        ((float *)data)[index] = (float)x;
        return;
    case ATTN_BF16:
        ((uint16_t *)data)[index] = attn__bf16_of_f64(x);
        return;
    default:
        ((uint16_t *)data)[index] = attn__f16_of_f64(x);
        return;
    }
}

#endif
