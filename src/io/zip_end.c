/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding the directory from the end of the file. The records that describe
 * it must meet without a gap, as in every archive written in one go; so no
 * offset needs to be guessed, and none can point into something else. */
#include "io/zip_end.h"

#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/diag.h"
#include "io/zip_bytes.h"

/* APPNOTE 4.3.16, 4.3.14 and 4.3.15: sizes without what has any length. */
#define END_SIZE 22
#define END64_SIZE 56
#define LOCATOR_SIZE 20
#define COMMENT_MAX 65535

/* The last end record in tail[0..n-1], the end of the file: *at is its place,
 * which must be followed by its comment and nothing else. A comment may contain
 * the signature of an end record, and readers differ in which they take: here
 * such a file is refused, since the last one does not end the file. */
static attn_status find_end(const uint8_t *tail, int64_t n, int64_t *at,
                            attn_diag *diag)
{
    int64_t i = n - END_SIZE;

    while (i >= 0 && attn__get32(tail + i) != ATTN__ZIP_END)
        i--;
    ATTN__REQUIRE(i >= 0, diag, ATTN_E_TRUNCATED, "file",
                  "has no archive directory: it ends early");
    ATTN__REQUIRE(attn__get16(tail + i + 20) == n - i - END_SIZE, diag,
                  ATTN_E_FORMAT, "file",
                  "does not end where its archive ends");
    *at = i;
    return ATTN_OK;
}

/* The end record, at *at of the file, copied to end[0..END_SIZE-1]:
 *
 *      0 signature          4 volume            6 volume of the directory
 *      8 members in it     10 members          12 size of the directory
 *     16 offset of it      20 length of the comment that follows */
static attn_status read_end(const attn__source *source, uint8_t *end,
                            int64_t *at, attn_diag *diag)
{
    const int64_t n = attn__min_i64(source->size, END_SIZE + COMMENT_MAX);
    uint8_t *tail;
    attn_status status;

    ATTN__REQUIRE(n >= END_SIZE, diag, ATTN_E_TRUNCATED, "file",
                  "has %lld bytes, less than the smallest archive",
                  (long long)n);
    tail = attn__alloc((size_t)n);
    ATTN__REQUIRE(tail, diag, ATTN_E_NOMEM, "file", "no memory for a buffer");
    status = attn__source_read(source, source->size - n, tail, (size_t)n, diag);
    if (status == ATTN_OK)
        status = find_end(tail, n, at, diag);
    if (status == ATTN_OK) {
        memcpy(end, tail + *at, END_SIZE);
        *at += source->size - n;
    }
    attn__free(tail);
    return status;
}

/* A 64-bit field, that the narrow one of the end record either repeats or
 * refers to by all its bits set. */
static attn_status wide_field(uint64_t wide, uint64_t narrow, uint64_t refers,
                              int64_t *value, attn_diag *diag)
{
    ATTN__REQUIRE(wide <= INT64_MAX, diag, ATTN_E_OVERFLOW, "file",
                  "the archive's ZIP64 record has a number above 2^63 - 1");
    ATTN__REQUIRE(narrow == refers || narrow == wide, diag, ATTN_E_FORMAT,
                  "file", "the archive's two end records disagree");
    *value = (int64_t)wide;
    return ATTN_OK;
}

/* The 64-bit record whose locator stands at `locator_at`:
 *
 *      0 signature          4 size of what follows (64 bits)
 *     12, 14 versions      16, 20 volumes      24, 32 members (64 bits)
 *     40 size of the directory (64 bits)       48 offset of it (64 bits)
 *
 * It is found by the locator's offset (at 8) and must end where the locator
 * begins: its size says so, and only then are its fields believed. */
static attn_status read_end64(const attn__source *source,
                              const uint8_t *locator, int64_t locator_at,
                              const uint8_t *narrow, attn__zip_end *end,
                              int64_t *at, attn_diag *diag)
{
    const uint64_t offset = attn__get64(locator + 8);
    uint8_t wide[END64_SIZE];

    ATTN__REQUIRE(offset <= INT64_MAX - END64_SIZE, diag, ATTN_E_OVERFLOW,
                  "file", "the archive's ZIP64 record lies beyond 2^63");
    ATTN__REQUIRE((int64_t)offset + END64_SIZE <= locator_at, diag,
                  ATTN_E_FORMAT, "file",
                  "the archive's ZIP64 record is not before its locator");
    ATTN__TRY(attn__source_read(source, (int64_t)offset, wide, END64_SIZE,
                                diag));
    ATTN__REQUIRE(attn__get32(wide) == ATTN__ZIP_END64 &&
                      attn__get64(wide + 4) ==
                          (uint64_t)(locator_at - (int64_t)offset - 12),
                  diag, ATTN_E_FORMAT, "file",
                  "the archive's ZIP64 record is damaged");
    ATTN__REQUIRE(attn__get32(wide + 16) == 0 && attn__get32(wide + 20) == 0 &&
                      attn__get64(wide + 24) == attn__get64(wide + 32),
                  diag, ATTN_E_UNSUPPORTED, "file",
                  "is an archive in several volumes");
    ATTN__TRY(wide_field(attn__get64(wide + 32), attn__get16(narrow + 10),
                         0xffffu, &end->n, diag));
    ATTN__TRY(wide_field(attn__get64(wide + 40), attn__get32(narrow + 12),
                         ATTN__ZIP_SEE64, &end->size, diag));
    ATTN__TRY(wide_field(attn__get64(wide + 48), attn__get32(narrow + 16),
                         ATTN__ZIP_SEE64, &end->offset, diag));
    *at = (int64_t)offset;
    return ATTN_OK;
}

/* The 64-bit record counts where its locator stands before the end record,
 * whether or not the narrow fields refer to it; both must then agree. */
attn_status attn__zip_end_read(const attn__source *source, attn__zip_end *end,
                               attn_diag *diag)
{
    uint8_t narrow[END_SIZE] = {0}, locator[LOCATOR_SIZE] = {0};
    int64_t at = 0, ends;

    ATTN__TRY(read_end(source, narrow, &at, diag));
    ATTN__REQUIRE(attn__get32(narrow + 4) == 0 &&
                      attn__get16(narrow + 8) == attn__get16(narrow + 10),
                  diag, ATTN_E_UNSUPPORTED, "file",
                  "is an archive in several volumes");
    end->n = attn__get16(narrow + 10);
    end->size = attn__get32(narrow + 12);
    end->offset = attn__get32(narrow + 16);
    if (at >= LOCATOR_SIZE)
        ATTN__TRY(attn__source_read(source, at - LOCATOR_SIZE, locator,
                                    LOCATOR_SIZE, diag));
    if (attn__get32(locator) == ATTN__ZIP_LOCATOR64)
        ATTN__TRY(read_end64(source, locator, at - LOCATOR_SIZE, narrow, end,
                             &at, diag));
    ATTN__REQUIRE(attn__add_i64(end->offset, end->size, &ends), diag,
                  ATTN_E_OVERFLOW, "file",
                  "offset and size of the archive's directory exceed 2^63");
    ATTN__REQUIRE(ends == at, diag, ATTN_E_FORMAT, "file",
                  "the archive's directory ends at byte %lld, its end record "
                  "begins at %lld", (long long)ends, (long long)at);
    return ATTN_OK;
}
