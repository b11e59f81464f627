/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays between pages that must not be touched. */
#define _DEFAULT_SOURCE
#include "kernelcheck.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *guard_alloc(memory *m, rng *r, size_t size, size_t align)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t body = (size + page) / page * page;
    guarded *g = &m->block[m->n];
    unsigned char *map;

    if (m->n == MAX_BLOCKS)
        abort();
    map = mmap(NULL, body + 2 * page, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED || mprotect(map, page, PROT_NONE) != 0 ||
        mprotect(map + page + body, page, PROT_NONE) != 0) {
        perror("kernelcheck: mmap");
        exit(3);
    }
    g->map = map;
    g->map_size = body + 2 * page;
    g->size = size;
    /* Against the page behind (reads too far) or before (too early). */
    g->data = rng_one_in(r, 3) ? map + page
                               : map + page + (body - size) / align * align;
    memset(map + page, 0xA5, body);
    m->n++;
    return g->data;
}

void guard_free(memory *m)
{
    while (m->n > 0) {
        m->n--;
        munmap(m->block[m->n].map, m->block[m->n].map_size);
    }
}
