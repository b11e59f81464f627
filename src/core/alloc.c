/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator hook: two function pointers, set once by the host. */
#include "core/alloc.h"

#include "attn.h"
#include "core/checked.h"

#include <stdlib.h>
#include <string.h>

static void *(*realloc_hook)(void *ptr, size_t size) = realloc;
static void (*free_hook)(void *ptr) = free;

void attn_set_allocator(void *(*realloc_fn)(void *ptr, size_t size),
                        void (*free_fn)(void *ptr))
{
    realloc_hook = realloc_fn ? realloc_fn : realloc;
    free_hook = free_fn ? free_fn : free;
}

void *attn__alloc(size_t size)
{
    return realloc_hook(NULL, size ? size : 1);
}

void *attn__calloc(size_t n, size_t size)
{
    size_t bytes;
    void *ptr;

    if (!attn__mul_size(n, size, &bytes))
        return NULL;
    ptr = attn__alloc(bytes);
    if (ptr)
        memset(ptr, 0, bytes);
    return ptr;
}

void *attn__realloc_array(void *ptr, size_t n, size_t size)
{
    size_t bytes;

    if (!attn__mul_size(n, size, &bytes))
        return NULL;
    return realloc_hook(ptr, bytes ? bytes : 1);
}

void attn__free(void *ptr)
{
    if (ptr)
        free_hook(ptr);
}

char *attn__strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = attn__alloc(size);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}
