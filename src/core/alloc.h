/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator hook. Everything the library allocates comes through here, so
 * that a host can replace it and a test can make it fail. Written over the
 * public pair attn_realloc and attn_free, so that the libraries beside this
 * one share the hook. */
#ifndef ATTN_CORE_ALLOC_H
#define ATTN_CORE_ALLOC_H

#include <string.h>

#include "attn.h"
#include "core/checked.h"

/* Uninitialised memory, or NULL. Zero bytes give a pointer to be freed. */
static inline void *attn__alloc(size_t size)
{
    return attn_realloc(NULL, size);
}

/* The same, zeroed, for n elements; NULL also where n * size overflows. */
static inline void *attn__calloc(size_t n, size_t size)
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

/* Grow or shrink to n * size; on NULL the old block stands. */
static inline void *attn__realloc_array(void *ptr, size_t n, size_t size)
{
    size_t bytes;

    return attn__mul_size(n, size, &bytes) ? attn_realloc(ptr, bytes) : NULL;
}

/* Frees what the above gave; NULL is fine. */
static inline void attn__free(void *ptr)
{
    attn_free(ptr);
}

/* A copy of a string, or NULL. */
static inline char *attn__strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = attn__alloc(size);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}

#endif
