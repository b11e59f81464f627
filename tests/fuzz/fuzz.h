/* SPDX-License-Identifier: Apache-2.0
 *
 * What all fuzz targets share: the entry point, a check that stays in release
 * builds, and an allocator that counts. */
#ifndef ATTN_TESTS_FUZZ_H
#define ATTN_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Says which property failed and ends the process, so that libFuzzer keeps
 * the input. */
#define PROPERTY(condition)                                                   \
    ((condition) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #condition))
void fuzz_failed(const char *file, int line, const char *condition);

/* Route the library's memory through counters; blocks above `limit` bytes in
 * all are a failure. */
void fuzz_count_memory(size_t limit);
/* Blocks that are not freed. */
long fuzz_live_blocks(void);

#endif
