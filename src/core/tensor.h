/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of tensor views beyond attn.h: are they there, do they fit in
 * memory, do two of them share bytes. */
#ifndef ATTN_CORE_TENSOR_H
#define ATTN_CORE_TENSOR_H

#include "attn.h"

#include <stdbool.h>

static inline bool attn__given(const attn_input *t)
{
    return t->dtype != ATTN_NONE;
}

static inline bool attn__asked(const attn_tensor *t)
{
    return t->dtype != ATTN_NONE;
}

static inline bool attn__is_float(attn_dtype dtype)
{
    return dtype == ATTN_F64 || dtype == ATTN_F32 || dtype == ATTN_BF16 ||
           dtype == ATTN_F16;
}

static inline bool attn__is_index(attn_dtype dtype)
{
    return dtype == ATTN_I32 || dtype == ATTN_I64;
}

/* Whether any axis has no elements. */
bool attn__is_empty(const attn_input *t);

/* Rank, shape and strides are possible, data is there if there are elements,
 * every byte offset fits. `name` is the field of the diag. */
attn_status attn__check_view(const attn_input *t, const char *name,
                             attn_diag *diag);

/* "(2, 8, 17, 64)", cut to size. */
const char *attn__shape_text(char *text, size_t size, int32_t rank,
                             const int64_t *shape);

/* attn__check_view, and the shape is exactly that. */
attn_status attn__check_shape(const attn_input *t, const char *name,
                              int32_t rank, const int64_t *shape,
                              attn_diag *diag);

/* attn__check_view, and with ranks right-aligned each axis is 1 or that of
 * `shape`. */
attn_status attn__check_broadcast(const attn_input *t, const char *name,
                                  int32_t rank, const int64_t *shape,
                                  attn_diag *diag);

/* Whether a and b are the same elements in the same order. */
bool attn__same_view(const attn_input *a, const attn_input *b);

/* Whether two different indices of t may name the same bytes. */
bool attn__self_overlaps(const attn_input *t);

/* Whether a and b may share bytes. Views that interleave in one buffer, such
 * as the q, k and v of a packed QKV tensor, are found to be apart. */
bool attn__overlaps(const attn_input *a, const attn_input *b);

/* Element `index` (in elements) of an int32 or int64 tensor. */
int64_t attn__load_index(const void *data, attn_dtype dtype, int64_t index);

#endif
