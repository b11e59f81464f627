/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator hook: two function pointers, set once by the host. */
#include "core/alloc.h"

#include <stdlib.h>

static void *(*realloc_hook)(void *ptr, size_t size) = realloc;
static void (*free_hook)(void *ptr) = free;

void attn_set_allocator(void *(*realloc_fn)(void *ptr, size_t size),
                        void (*free_fn)(void *ptr))
{
    realloc_hook = realloc_fn ? realloc_fn : realloc;
    free_hook = free_fn ? free_fn : free;
}

void *attn_realloc(void *ptr, size_t size)
{
    return realloc_hook(ptr, size ? size : 1);
}

void attn_free(void *ptr)
{
    if (ptr)
        free_hook(ptr);
}
