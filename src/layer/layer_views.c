/* SPDX-License-Identifier: Apache-2.0
 *
 * The same memory seen otherwise: weights transposed or cut out of a packed
 * matrix, heads side by side or apart. */
#include "layer/layer_steps.h"

#include <string.h>

attn_tensor attn_layer_grad_transposed(attn_tensor matrix)
{
    attn_tensor t = matrix;

    t.shape[0] = matrix.shape[1];
    t.shape[1] = matrix.shape[0];
    t.stride[0] = matrix.stride[1];
    t.stride[1] = matrix.stride[0];
    return t;
}

attn_input attn_layer_transposed(attn_input matrix)
{
    attn_input t = matrix;

    t.shape[0] = matrix.shape[1];
    t.shape[1] = matrix.shape[0];
    t.stride[0] = matrix.stride[1];
    t.stride[1] = matrix.stride[0];
    return t;
}

/* The bytes from a packed tensor's first column to column `first`. Columns
 * that do not exist become a shape that a run refuses. */
static bool find_columns(const attn_input *packed, int64_t first, int64_t n,
                         int64_t *shape, ptrdiff_t *bytes)
{
    const int32_t last = packed->rank - 1;

    *bytes = 0;
    if (last < 0 || last > 3)
        return false;
    if (first < 0 || n < 0 || first > packed->shape[last] ||
        n > packed->shape[last] - first) {
        *shape = -1;
        return true;
    }
    *shape = n;
    if (packed->data)
        *bytes = (ptrdiff_t)(first * packed->stride[last] *
                             (int64_t)attn_dtype_size(packed->dtype));
    return true;
}

attn_input attn_layer_columns(attn_input packed, int64_t first, int64_t n)
{
    attn_input t = packed;
    ptrdiff_t bytes;

    if (find_columns(&packed, first, n, &t.shape[(packed.rank - 1) & 3],
                     &bytes) && bytes)
        t.data = (const char *)packed.data + bytes;
    return t;
}

attn_tensor attn_layer_grad_columns(attn_tensor packed, int64_t first,
                                    int64_t n)
{
    const attn_input in = attn_in(packed);
    attn_tensor t = packed;
    ptrdiff_t bytes;

    if (find_columns(&in, first, n, &t.shape[(packed.rank - 1) & 3],
                     &bytes) && bytes)
        t.data = (char *)packed.data + bytes;
    return t;
}

attn_tensor attn__layer_flat(attn_tensor t)
{
    const int64_t shape[3] = {t.shape[0], t.shape[2], t.shape[1] * t.shape[3]};

    return attn_dense(t.data, t.dtype, 3, shape);
}

attn_tensor attn__layer_heads(attn_tensor t, int64_t heads, int64_t dim)
{
    const attn_tensor split = {
        t.data, t.dtype, 4,
        {t.shape[0], heads, t.shape[1], dim},
        {t.stride[0], dim * t.stride[2], t.stride[1], t.stride[2]}};

    return split;
}
