/* SPDX-License-Identifier: Apache-2.0
 *
 * The shared part of the fuzz targets. Each block carries its size in front,
 * so that the sum in use is known. */
#include "fuzz.h"

#include "attn.h"

#include <stdio.h>
#include <stdlib.h>

/* In front of each block; keeps the alignment of malloc. */
typedef union header {
    size_t size;
    max_align_t align;
} header;

static size_t in_use, most;
static long live;

void fuzz_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: property does not hold: %s\n", file, line,
            condition);
    abort();
}

static void *counted_realloc(void *ptr, size_t size)
{
    header *old = ptr ? (header *)ptr - 1 : NULL;
    const size_t before = old ? old->size : 0;
    header *block;

    PROPERTY(size <= most && in_use - before + size <= most);
    block = realloc(old, sizeof *block + size);
    if (!block)
        return NULL;
    in_use += size - before;
    live += !old;
    block->size = size;
    return block + 1;
}

static void counted_free(void *ptr)
{
    header *block = (header *)ptr - 1;

    in_use -= block->size;
    live--;
    free(block);
}

void fuzz_count_memory(size_t limit)
{
    most = limit;
    in_use = 0;
    live = 0;
    attn_set_allocator(counted_realloc, counted_free);
}

long fuzz_live_blocks(void)
{
    return live;
}
