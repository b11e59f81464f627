/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting the elements of a question. */
#include "doctor/question.h"

uint32_t attn__sizes_asked(const attn__sizes *n)
{
    uint32_t asked = 0;

    if (n->heads_q != n->heads_kv)
        asked |= ASK_GROUPS;
    if (n->len_q != n->len_k)
        asked |= ASK_CROSS;
    if (n->dim_qk != n->dim_v)
        asked |= ASK_DIMS;
    if (n->batch > 1)
        asked |= ASK_BATCH;
    if (n->heads_q > 1)
        asked |= ASK_HEADS;
    return asked;
}

int64_t attn__count_rows(const attn__sizes *n)
{
    return n->batch * n->heads_q * n->len_q;
}

int64_t attn__count_pairs(const attn__sizes *n)
{
    return attn__count_rows(n) * n->len_k;
}

int64_t attn__count_q(const attn__sizes *n)
{
    return attn__count_rows(n) * n->dim_qk;
}

int64_t attn__count_k(const attn__sizes *n)
{
    return n->batch * n->heads_kv * n->len_k * n->dim_qk;
}

int64_t attn__count_v(const attn__sizes *n)
{
    return n->batch * n->heads_kv * n->len_k * n->dim_v;
}

int64_t attn__count_o(const attn__sizes *n)
{
    return attn__count_rows(n) * n->dim_v;
}

void attn__broadcast_strides(const int64_t shape[4], int64_t stride[4])
{
    int64_t step = 1;

    for (int axis = 3; axis >= 0; axis--) {
        stride[axis] = shape[axis] == 1 ? 0 : step;
        step *= shape[axis];
    }
}

int64_t attn__width_q(const attn__sizes *n)
{
    return n->heads_q * n->dim_qk;
}

int64_t attn__width_k(const attn__sizes *n)
{
    return n->heads_kv * n->dim_qk;
}

int64_t attn__width_v(const attn__sizes *n)
{
    return n->heads_kv * n->dim_v;
}

int64_t attn__width_o(const attn__sizes *n)
{
    return n->heads_q * n->dim_v;
}
