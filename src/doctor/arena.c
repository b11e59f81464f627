/* SPDX-License-Identifier: Apache-2.0
 *
 * A list of blocks. */
#include "doctor/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

typedef struct attn__arena_block {
    struct attn__arena_block *next;
    double data[];
} attn__arena_block;

void *attn__arena_take(attn__arena *arena, int64_t n, size_t size)
{
    size_t bytes = 0;
    attn__arena_block *block = NULL;

    if (n >= 0 && attn__mul_size((size_t)n, size, &bytes) &&
        attn__add_size(bytes, sizeof *block, &bytes))
        block = attn__calloc(bytes, 1);
    if (!block) {
        arena->failed = true;
        return NULL;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    return block->data;
}

double *attn__arena_doubles(attn__arena *arena, int64_t n)
{
    return attn__arena_take(arena, n, sizeof(double));
}

void *attn__arena_copy(attn__arena *arena, const void *x, int64_t n,
                       size_t size)
{
    void *y = attn__arena_take(arena, n, size);

    if (y && n > 0)
        memcpy(y, x, (size_t)n * size);
    return y;
}

const char *attn__arena_text(attn__arena *arena, const char *format, ...)
{
    va_list args, again;
    int length;
    char *text = NULL;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    if (length >= 0)
        text = attn__arena_take(arena, (int64_t)length + 1, 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
    return text ? text : "";
}

void attn__arena_close(attn__arena *arena)
{
    while (arena->blocks) {
        attn__arena_block *next = arena->blocks->next;

        attn__free(arena->blocks);
        arena->blocks = next;
    }
    arena->failed = false;
}
