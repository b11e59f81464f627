/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-8 by the book (RFC 3629): shortest forms, no surrogates, nothing above
 * U+10FFFF. */
#ifndef ATTN_CORE_UTF8_H
#define ATTN_CORE_UTF8_H

#include <stdint.h>

/* Bytes of the well-formed sequence at from[0..n-1], n > 0; 0 if there is
 * none. *point is what it encodes. */
static inline int attn__utf8_decode(const uint8_t *from, int64_t n,
                                    uint32_t *point)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t b = from[0];
    const int size = b < 0x80 ? 1 : b < 0xc0 ? 0 : b < 0xe0 ? 2
                     : b < 0xf0 ? 3 : b < 0xf8 ? 4 : 0;

    if (size == 0 || size > n)
        return 0;
    *point = size == 1 ? b : b & (0x7fu >> size);
    for (int i = 1; i < size; i++) {
        if ((from[i] & 0xc0) != 0x80)
            return 0;
        *point = *point << 6 | (from[i] & 0x3f);
    }
    if (*point < least[size] || *point > 0x10ffff ||
        (*point >= 0xd800 && *point < 0xe000))
        return 0;
    return size;
}

#endif
