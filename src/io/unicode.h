/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of arrays and names: UTF-8 in memory, UTF-32 or bytes in files. */
#ifndef ATTN_IO_UNICODE_H
#define ATTN_IO_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

/* The 1 to 4 bytes of a code point that is one; how many. No terminator. */
int attn__utf8_encode(uint32_t point, char *to);
/* n UTF-32 code points of native byte order, padded with zeros, as a
 * terminated UTF-8 string: to[] has room for 4 n + 1 bytes. Returns its
 * length, or -1 where a code point is none or zero is followed by text. */
int64_t attn__utf8_of_utf32(const uint8_t *from, int64_t n, char *to);
/* The same for n bytes that must be UTF-8; to[] has room for n + 1. */
int64_t attn__utf8_of_bytes(const uint8_t *from, int64_t n, char *to);
/* The code point at text[*at] of n bytes, and *at beyond it; UINT32_MAX where
 * there is no UTF-8. */
uint32_t attn__utf8_next(const char *text, int64_t n, int64_t *at);
/* Whether text[0..n-1] is UTF-8 without control characters. */
bool attn__is_plain_utf8(const char *text, int64_t n);

#endif
