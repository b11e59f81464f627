/* SPDX-License-Identifier: Apache-2.0
 *
 * The allocator hook. Everything the library allocates comes through here, so
 * that a host can replace it and a test can make it fail. */
#ifndef ATTN_CORE_ALLOC_H
#define ATTN_CORE_ALLOC_H

#include <stddef.h>

/* Uninitialised memory, or NULL. Zero bytes give a pointer to be freed. */
void *attn__alloc(size_t size);
/* The same, zeroed, for n elements; NULL also where n * size overflows. */
void *attn__calloc(size_t n, size_t size);
/* Grow or shrink to n * size; on NULL the old block stands. */
void *attn__realloc_array(void *ptr, size_t n, size_t size);
/* Frees what the above gave; NULL is fine. */
void attn__free(void *ptr);
/* A copy of a string, or NULL. */
char *attn__strdup(const char *text);

#endif
