/* SPDX-License-Identifier: Apache-2.0
 *
 * From the text of files to UTF-8, and through it. */
#include "io/unicode.h"

#include <string.h>

#include "core/utf8.h"

/* Leading byte by the size: 0xc0, 0xe0, 0xf0 are the high bits of 0xf00 >>
 * size. */
int attn__utf8_encode(uint32_t point, char *to)
{
    const int size = point < 0x80 ? 1 : point < 0x800 ? 2
                     : point < 0x10000 ? 3 : 4;

    if (size == 1) {
        to[0] = (char)point;
        return 1;
    }
    for (int i = size - 1; i > 0; i--, point >>= 6)
        to[i] = (char)(0x80 | (point & 0x3f));
    to[0] = (char)((0xf00u >> size & 0xf0u) | point);
    return size;
}

/* NumPy pads with zeros and cannot hold a string that ends in one; a zero with
 * text behind it comes from no string. */
int64_t attn__utf8_of_utf32(const uint8_t *from, int64_t n, char *to)
{
    const char *start = to;
    bool ended = false;

    for (int64_t i = 0; i < n; i++) {
        uint32_t point;

        memcpy(&point, from + 4 * i, sizeof point);
        if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000) ||
            (ended && point))
            return -1;
        ended = ended || !point;
        if (point)
            to += attn__utf8_encode(point, to);
    }
    *to = '\0';
    return to - start;
}

/* Zeros at the end are padding; elsewhere they would end the string early. */
int64_t attn__utf8_of_bytes(const uint8_t *from, int64_t n, char *to)
{
    uint32_t point;
    int size;

    while (n > 0 && from[n - 1] == 0)
        n--;
    for (int64_t at = 0; at < n; at += size) {
        size = attn__utf8_decode(from + at, n - at, &point);
        if (size == 0 || point == 0)
            return -1;
    }
    memcpy(to, from, (size_t)n);
    to[n] = '\0';
    return n;
}

uint32_t attn__utf8_next(const char *text, int64_t n, int64_t *at)
{
    uint32_t point;
    const int size = attn__utf8_decode((const uint8_t *)text + *at, n - *at,
                                       &point);

    *at += size;
    return size > 0 ? point : UINT32_MAX;
}

bool attn__is_plain_utf8(const char *text, int64_t n)
{
    uint32_t point;
    int size;

    for (int64_t at = 0; at < n; at += size) {
        size = attn__utf8_decode((const uint8_t *)text + at, n - at, &point);
        if (size == 0 || point < 0x20 || (point >= 0x7f && point < 0xa0))
            return false;
    }
    return true;
}
