/* SPDX-License-Identifier: Apache-2.0
 *
 * Little-endian numbers and the signatures of ZIP's records. */
#ifndef ATTN_IO_ZIP_BYTES_H
#define ATTN_IO_ZIP_BYTES_H

#include <stdint.h>

#define ATTN__ZIP_LOCAL 0x04034b50u
#define ATTN__ZIP_CENTRAL 0x02014b50u
#define ATTN__ZIP_END 0x06054b50u
#define ATTN__ZIP_END64 0x06064b50u
#define ATTN__ZIP_LOCATOR64 0x07064b50u
/* Stands for "see the ZIP64 record". */
#define ATTN__ZIP_SEE64 0xffffffffu

#define ATTN__ZIP_ENCRYPTED 0x2041u /* bits 0, 6 and 13 */
#define ATTN__ZIP_DESCRIPTOR 0x0008u
#define ATTN__ZIP_UTF8 0x0800u
/* What else a writer may set: two bits of deflate's effort. */
#define ATTN__ZIP_KNOWN_FLAGS 0x080eu

/* By bytes: no alignment, no byte order of the machine. The puts return the
 * place behind what they have written. */
static inline uint16_t attn__get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t attn__get32(const uint8_t *p)
{
    return attn__get16(p) | (uint32_t)attn__get16(p + 2) << 16;
}

static inline uint64_t attn__get64(const uint8_t *p)
{
    return attn__get32(p) | (uint64_t)attn__get32(p + 4) << 32;
}

static inline uint8_t *attn__put16(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
    return p + 2;
}

static inline uint8_t *attn__put32(uint8_t *p, uint32_t value)
{
    return attn__put16(attn__put16(p, value & 0xffffu), value >> 16);
}

static inline uint8_t *attn__put64(uint8_t *p, uint64_t value)
{
    return attn__put32(attn__put32(p, (uint32_t)value),
                       (uint32_t)(value >> 32));
}

#endif
