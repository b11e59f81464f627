/* SPDX-License-Identifier: Apache-2.0
 *
 * Checking tensor views: what every public call asks of the ones it is given,
 * in one wording. Libraries beside the core compile it into themselves. */
#include "core/checked.h"
#include "core/diag.h"
#include "core/tensor.h"

#include <stdio.h>
#include <string.h>

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

const char *attn__shape_text(char *text, size_t size, int32_t rank,
                             const int64_t *shape)
{
    size_t used = (size_t)snprintf(text, size, "(");

    for (int32_t a = 0; a < rank && used < size; a++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld",
                                 a ? ", " : "", (long long)shape[a]);
    if (used < size)
        snprintf(text + used, size - used, ")");
    return text;
}

attn_status attn__check_shape(const attn_input *t, const char *name,
                              int32_t rank, const int64_t *shape,
                              attn_diag *diag)
{
    char want[64], got[64];
    bool same = t->rank == rank;

    ATTN__TRY(attn__check_view(t, name, diag));
    for (int32_t a = 0; same && a < rank; a++)
        same = t->shape[a] == shape[a];
    ATTN__REQUIRE(same, diag, ATTN_E_SHAPE, name,
                  "has shape %s, must be %s",
                  attn__shape_text(got, sizeof got, t->rank, t->shape),
                  attn__shape_text(want, sizeof want, rank, shape));
    return ATTN_OK;
}

attn_status attn__check_broadcast(const attn_input *t, const char *name,
                                  int32_t rank, const int64_t *shape,
                                  attn_diag *diag)
{
    char want[64], got[64];
    bool fits = t->rank <= rank;

    ATTN__TRY(attn__check_view(t, name, diag));
    for (int32_t a = 0; fits && a < t->rank; a++)
        fits = t->shape[a] == 1 || t->shape[a] == shape[rank - t->rank + a];
    ATTN__REQUIRE(fits, diag, ATTN_E_SHAPE, name,
                  "has shape %s, which does not broadcast to %s",
                  attn__shape_text(got, sizeof got, t->rank, t->shape),
                  attn__shape_text(want, sizeof want, rank, shape));
    return ATTN_OK;
}

bool attn__same_view(const attn_input *a, const attn_input *b)
{
    bool same = a->data == b->data && a->dtype == b->dtype &&
                a->rank == b->rank;

    for (int32_t axis = 0; same && axis < a->rank; axis++)
        same = a->shape[axis] == b->shape[axis] &&
               (a->stride[axis] == b->stride[axis] || a->shape[axis] == 1);
    return same;
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
