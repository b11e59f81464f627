/* SPDX-License-Identifier: Apache-2.0
 *
 * Making tensor views, and checking the ones that callers made. */
#include "core/tensor.h"

#include "core/checked.h"
#include "core/diag.h"

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

bool attn__is_empty(const attn_input *t)
{
    for (int32_t axis = 0; axis < t->rank; axis++)
        if (t->shape[axis] == 0)
            return true;
    return false;
}

attn_status attn__check_view(const attn_input *t, const char *name,
                             attn_diag *diag)
{
    const size_t element = attn_dtype_size(t->dtype);
    int64_t low = 0, high = 0;

    ATTN__REQUIRE(element > 0, diag, ATTN_E_DTYPE, name,
                  "has the unknown element type %d", (int)t->dtype);
    ATTN__REQUIRE(t->rank >= 0 && t->rank <= 4, diag, ATTN_E_SHAPE, name,
                  "has rank %d; ranks are 0 to 4", (int)t->rank);
    for (int32_t axis = 0; axis < t->rank; axis++)
        ATTN__REQUIRE(t->shape[axis] >= 0, diag, ATTN_E_SHAPE, name,
                      "has the negative size %lld on axis %d",
                      (long long)t->shape[axis], (int)axis);
    if (attn__is_empty(t))
        return ATTN_OK;
    for (int32_t axis = 0; axis < t->rank; axis++) {
        int64_t span;
        const bool fits =
            attn__mul_i64(t->shape[axis] - 1, t->stride[axis], &span) &&
            attn__add_i64(span < 0 ? low : high, span,
                          span < 0 ? &low : &high);

        ATTN__REQUIRE(fits, diag, ATTN_E_OVERFLOW, name,
                      "stride %lld times size %lld on axis %d overflows",
                      (long long)t->stride[axis], (long long)t->shape[axis],
                      (int)axis);
    }
    ATTN__REQUIRE(low > -(INT64_C(1) << 59) && high < INT64_C(1) << 59, diag,
                  ATTN_E_OVERFLOW, name, "spans more than 2^59 elements");
    ATTN__REQUIRE(t->data, diag, ATTN_E_ARG, name,
                  "has elements but its data pointer is NULL");
    return ATTN_OK;
}

int64_t attn__load_index(const void *data, attn_dtype dtype, int64_t index)
{
    const char *at = (const char *)data +
                     index * (int64_t)attn_dtype_size(dtype);

    if (dtype == ATTN_I32) {
        int32_t value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}
