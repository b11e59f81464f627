/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of one examination: taken piece by piece, given back at once. A
 * failed take sets `failed` for good, so that a builder may take all it needs
 * and look once. */
#ifndef ATTN_DOCTOR_ARENA_H
#define ATTN_DOCTOR_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/diag.h"

typedef struct attn__arena {
    struct attn__arena_block *blocks;
    bool failed;
} attn__arena;

/* n zeroed elements, or NULL. */
void *attn__arena_take(attn__arena *arena, int64_t n, size_t size);
double *attn__arena_doubles(attn__arena *arena, int64_t n);
/* n elements of `size` bytes, copied, or NULL. */
void *attn__arena_copy(attn__arena *arena, const void *x, int64_t n,
                       size_t size);
/* A formatted string; "" where memory is short. */
const char *attn__arena_text(attn__arena *arena, const char *format, ...)
    ATTN__PRINTF(2, 3);
void attn__arena_close(attn__arena *arena);

#endif
