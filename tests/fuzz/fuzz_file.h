/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening bytes as a file of arrays and checking what is promised of it. */
#ifndef ATTN_TESTS_FUZZ_FILE_H
#define ATTN_TESTS_FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Write the bytes into a file in memory, open it, load every entry. */
void fuzz_file(const uint8_t *data, size_t size);

#endif
