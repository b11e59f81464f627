/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of attention read out of arbitrary bytes: mostly right, and wrong in
 * every way that a caller can be wrong without lying about memory. Each tensor
 * has a block of exactly its size, so that ASan sees every step outside. */
#ifndef ATTN_TESTS_FUZZ_CALL_H
#define ATTN_TESTS_FUZZ_CALL_H

#include "attn.h"

#include <stdbool.h>

enum { FUZZ_MAX_BLOCKS = 32 };

typedef struct fuzz_block {
    unsigned char *data;
    size_t size;
    bool output;
} fuzz_block;

typedef struct fuzz_call {
    const uint8_t *at, *end; /* bytes not yet used; then zeros follow */
    uint64_t random;         /* fills tensors */
    attn_desc desc;
    attn_args args;
    fuzz_block blocks[FUZZ_MAX_BLOCKS];
    int n_blocks;
} fuzz_call;

/* Descriptor, inputs, and the outputs of forward. */
void fuzz_make_forward(fuzz_call *c, const uint8_t *data, size_t size);
/* d_o, and the outputs of backward; o and lse become inputs. */
void fuzz_make_backward(fuzz_call *c);
void fuzz_free(fuzz_call *c);

#endif
