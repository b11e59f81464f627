/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of checking one call's arguments. */
#ifndef ATTN_RUN_CHECKER_H
#define ATTN_RUN_CHECKER_H

#include "run/run.h"

typedef struct checker {
    const attn_desc *desc;
    const attn_args *args;
    attn_pass pass;
    attn_diag *diag;
    bool varlen, paged;
    int64_t len_k; /* of the key axis, found from k or the block table */
} checker;

/* Every rule of a call, in the order of attn_args. `out` and `rows` are those
 * of attn_weights. Fills in c->len_k. Reads index arrays, and of all other
 * tensors only what describes them: their elements may be anything, NaN too. */
attn_status attn__check_call(checker *c, const attn_tensor *out,
                             const attn_rows *rows);

/* Outputs of the call overlap neither themselves, nor each other, nor any
 * input. Comes last: it trusts shapes and strides. */
attn_status attn__check_apart(const checker *c, const attn_tensor *out);

#endif
