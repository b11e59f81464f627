/* SPDX-License-Identifier: Apache-2.0
 *
 * Making tensor views. view.c checks those that callers made. */
#include "attn.h"

#include <string.h>

attn_tensor attn_dense(void *data, attn_dtype dtype, int32_t rank,
                       const int64_t *shape)
{
    attn_tensor t = {data, dtype, rank, {0}, {0}};
    uint64_t stride = 1;

    if (rank < 0 || rank > 4) /* for attn__check_view to refuse */
        return t;
    for (int32_t axis = rank - 1; axis >= 0; axis--) {
        t.shape[axis] = shape[axis];
        /* Wraps for absurd shapes, which attn__check_view then refuses. */
        t.stride[axis] = (int64_t)stride;
        stride *= (uint64_t)(shape[axis] > 0 ? shape[axis] : 1);
    }
    return t;
}

attn_tensor attn_bhsd(void *data, attn_dtype dtype, int64_t batch,
                      int64_t heads, int64_t len, int64_t dim)
{
    return attn_dense(data, dtype, 4, (int64_t[]){batch, heads, len, dim});
}

attn_tensor attn_bshd(void *data, attn_dtype dtype, int64_t batch,
                      int64_t heads, int64_t len, int64_t dim)
{
    attn_tensor t =
        attn_dense(data, dtype, 4, (int64_t[]){batch, len, heads, dim});
    const int64_t row = t.stride[1];

    t.shape[1] = heads;
    t.shape[2] = len;
    t.stride[1] = t.stride[2];
    t.stride[2] = row;
    return t;
}

attn_tensor attn_thd(void *data, attn_dtype dtype, int64_t total,
                     int64_t heads, int64_t dim)
{
    return attn_dense(data, dtype, 3, (int64_t[]){total, heads, dim});
}

attn_input attn_in(attn_tensor tensor)
{
    attn_input t = {tensor.data, tensor.dtype, tensor.rank, {0}, {0}};

    memcpy(t.shape, tensor.shape, sizeof t.shape);
    memcpy(t.stride, tensor.stride, sizeof t.stride);
    return t;
}

/* The views of const memory are made from NULL and then pointed at it, so
 * that const is never cast away. */
static attn_input pointed_at(attn_tensor shape, const void *data)
{
    attn_input t = attn_in(shape);

    t.data = data;
    return t;
}

attn_input attn_in_bhsd(const void *data, attn_dtype dtype, int64_t batch,
                        int64_t heads, int64_t len, int64_t dim)
{
    return pointed_at(attn_bhsd(NULL, dtype, batch, heads, len, dim), data);
}

attn_input attn_in_bshd(const void *data, attn_dtype dtype, int64_t batch,
                        int64_t heads, int64_t len, int64_t dim)
{
    return pointed_at(attn_bshd(NULL, dtype, batch, heads, len, dim), data);
}

attn_input attn_in_thd(const void *data, attn_dtype dtype, int64_t total,
                       int64_t heads, int64_t dim)
{
    return pointed_at(attn_thd(NULL, dtype, total, heads, dim), data);
}

attn_input attn_in_dense(const void *data, attn_dtype dtype, int32_t rank,
                         const int64_t *shape)
{
    return pointed_at(attn_dense(NULL, dtype, rank, shape), data);
}
