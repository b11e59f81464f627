/* SPDX-License-Identifier: Apache-2.0
 *
 * The layouts that subjects use, and how the doctor's own (batch, heads, len,
 * dim) lies in them. */
#include <ctype.h>
#include <string.h>

#include "doctor/binding.h"

static const attn__layout_facts facts[LAYOUT_N] = {
    [LAYOUT_BHSD] = {"bhsd", .batch = true, .heads = true, .heads_first = true},
    [LAYOUT_HSD] = {"hsd", .heads = true, .heads_first = true},
    [LAYOUT_SD] = {"sd", .heads_first = true},
    [LAYOUT_BSHD] = {"bshd", .batch = true, .heads = true},
    [LAYOUT_SHD] = {"shd", .heads = true},
    [LAYOUT_BSD] = {"bsd", .batch = true, .heads_first = true},
    [LAYOUT_BSE] = {"bse", .batch = true, .heads = true, .packed = true},
    [LAYOUT_SE] = {"se", .heads = true, .packed = true},
    [LAYOUT_BHDS] = {"bhds", .batch = true, .heads = true, .heads_first = true,
                     .dim_first = true},
    [LAYOUT_HDS] = {"hds", .heads = true, .heads_first = true,
                    .dim_first = true},
    [LAYOUT_BDS] = {"bds", .batch = true, .heads_first = true,
                    .dim_first = true},
    [LAYOUT_DS] = {"ds", .heads_first = true, .dim_first = true},
    [LAYOUT_SBHD] = {"sbhd", .batch = true, .heads = true,
                     .length_first = true},
    [LAYOUT_SBD] = {"sbd", .batch = true, .heads_first = true,
                    .length_first = true},
    [LAYOUT_SBE] = {"sbe", .batch = true, .heads = true, .packed = true,
                    .length_first = true},
};

const attn__layout_facts *attn__layout_facts_of(attn__layout layout)
{
    return &facts[layout];
}

int attn__layout_of(const char *name)
{
    char low[8] = "";

    for (size_t n = 0; name[n] && n + 1 < sizeof low; n++)
        low[n] = (char)tolower((unsigned char)name[n]);
    for (int x = 0; x < LAYOUT_N; x++) {
        if (strcmp(low, facts[x].name) == 0)
            return x;
    }
    return -1;
}

bool attn__layout_holds(attn__layout layout, const attn__sizes *n)
{
    const attn__layout_facts *f = &facts[layout];

    return (f->batch || n->batch == 1) &&
           (f->heads || (n->heads_q == 1 && n->heads_kv == 1));
}

int32_t attn__layout_shape(attn__layout layout, const int64_t n[4],
                           int64_t shape[4])
{
    const attn__layout_facts *f = &facts[layout];
    int32_t rank = 0;

    if (f->length_first)
        shape[rank++] = n[2];
    if (f->batch)
        shape[rank++] = n[0];
    if (f->heads && f->heads_first)
        shape[rank++] = n[1];
    if (f->dim_first)
        shape[rank++] = n[3];
    if (!f->length_first)
        shape[rank++] = n[2];
    if (f->heads && !f->heads_first && !f->packed)
        shape[rank++] = n[1];
    if (!f->dim_first)
        shape[rank++] = f->packed ? n[1] * n[3] : n[3];
    return rank;
}

int64_t attn__layout_at(attn__layout layout, const int64_t n[4], int64_t x)
{
    const int64_t c = x % n[3], i = x / n[3] % n[2];
    const int64_t h = x / n[3] / n[2] % n[1], b = x / n[3] / n[2] / n[1];

    if (facts[layout].length_first)
        return ((i * n[0] + b) * n[1] + h) * n[3] + c;
    if (facts[layout].dim_first)
        return ((b * n[1] + h) * n[3] + c) * n[2] + i;
    if (facts[layout].heads_first)
        return x;
    return ((b * n[2] + i) * n[1] + h) * n[3] + c;
}
