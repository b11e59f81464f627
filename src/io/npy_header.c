/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes before the data of a .npy: magic, version, length, dictionary.
 * The length of the data must be what the dictionary says, to the byte, before
 * anybody allocates memory for them. */
#include "io/npy_header.h"

#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "io/reader.h"

/* Magic (0), version (6, 7) and length of the dictionary (8): 10 bytes in
 * version 1, where the length has 16 bits; 12 in 2 and 3, where it has 32. The
 * versions differ in nothing else that we read: 3 allows names of fields that
 * are not ASCII, and fields are refused. */
static attn_status read_preamble(attn__stream *stream, int *major,
                                 int64_t *length, int64_t *size,
                                 attn_diag *diag)
{
    uint8_t head[12];

    ATTN__REQUIRE(stream->size >= 10, diag, ATTN_E_TRUNCATED, stream->name,
                  "has %lld bytes, less than the smallest header",
                  (long long)stream->size);
    ATTN__TRY(stream->read(stream, head, 10, diag));
    ATTN__REQUIRE(memcmp(head, "PK\3\4", 4) != 0, diag, ATTN_E_UNSUPPORTED,
                  stream->name, "is an archive inside the archive");
    ATTN__REQUIRE(memcmp(head, ATTN__NPY_MAGIC, ATTN__NPY_MAGIC_SIZE) == 0,
                  diag, ATTN_E_FORMAT, stream->name,
                  "does not begin like a .npy");
    ATTN__REQUIRE(head[6] >= 1 && head[6] <= 3 && head[7] == 0, diag,
                  ATTN_E_UNSUPPORTED, stream->name,
                  "is .npy version %d.%d; 1.0, 2.0 and 3.0 are read", head[6],
                  head[7]);
    *major = head[6];
    *length = head[8] | head[9] << 8;
    *size = 10;
    if (*major > 1) {
        ATTN__REQUIRE(stream->size >= 12, diag, ATTN_E_TRUNCATED, stream->name,
                      "has %lld bytes, less than the smallest header",
                      (long long)stream->size);
        ATTN__TRY(stream->read(stream, head + 10, 2, diag));
        *length |= (int64_t)head[10] << 16 | (int64_t)head[11] << 24;
        *size = 12;
    }
    return ATTN_OK;
}

/* Both ways: too few bytes is a file cut short, too many is not the file that
 * its header describes. */
static attn_status check_data_size(const attn__npy_header *header,
                                   int64_t left, const char *name,
                                   attn_diag *diag)
{
    ATTN__REQUIRE(left >= header->data_size, diag, ATTN_E_TRUNCATED, name,
                  "has %lld bytes of data, shape and type need %lld",
                  (long long)left, (long long)header->data_size);
    ATTN__REQUIRE(left == header->data_size, diag, ATTN_E_FORMAT, name,
                  "has %lld bytes of data, %lld more than shape and type need",
                  (long long)left, (long long)(left - header->data_size));
    return ATTN_OK;
}

/* Memory for the header alone, bounded by ATTN__MAX_HEADER, and only as much
 * as the stream has. */
attn_status attn__npy_read_header(attn__stream *stream,
                                  attn__npy_header *header, attn_diag *diag)
{
    int major = 0;
    int64_t length = 0, size = 0;
    char *text;
    attn_status status;

    memset(header, 0, sizeof *header);
    ATTN__TRY(read_preamble(stream, &major, &length, &size, diag));
    ATTN__REQUIRE(length <= ATTN__MAX_HEADER, diag, ATTN_E_LIMIT, stream->name,
                  "has a header of %lld bytes; at most %d are read",
                  (long long)length, ATTN__MAX_HEADER);
    ATTN__REQUIRE(length <= stream->size - size, diag, ATTN_E_TRUNCATED,
                  stream->name, "has %lld bytes, its header needs %lld",
                  (long long)stream->size, (long long)(size + length));
    text = attn__alloc((size_t)length);
    ATTN__REQUIRE(text, diag, ATTN_E_NOMEM, stream->name,
                  "no memory for a header of %lld bytes", (long long)length);
    status = stream->read(stream, text, (size_t)length, diag);
    if (status == ATTN_OK)
        status = attn__npy_dict_parse(text, (size_t)length, major, header,
                                      stream->name, diag);
    attn__free(text);
    ATTN__TRY(status);
    return check_data_size(header, stream->size - size - length, stream->name,
                           diag);
}

/* A text array has dtype NONE, and a shape and count as any other. */
void attn__npy_entry(const attn__npy_header *header, attn_status status,
                     attn_entry *entry)
{
    entry->status = status;
    if (status != ATTN_OK)
        return;
    entry->dtype = header->type.dtype;
    entry->rank = header->rank;
    memcpy(entry->shape, header->shape, sizeof entry->shape);
    entry->count = header->count;
}
