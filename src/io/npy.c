/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of .npy files: one array, named by the file's stem. */
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "io/npy_header.h"
#include "io/reader.h"

static attn__file_stream stream_of(const attn_file *file)
{
    return attn__stream_of(&file->source, file->stem, 0, file->source.size);
}

/* The magic begins with a byte with which no text in UTF-8 can begin. */
static bool probe(const uint8_t *head, size_t n)
{
    return n >= ATTN__NPY_MAGIC_SIZE &&
           memcmp(head, ATTN__NPY_MAGIC, ATTN__NPY_MAGIC_SIZE) == 0;
}

/* One entry, without reading the data. A type that is well-formed but not read
 * is a failure here, unlike in an archive: there is nothing else to load. */
static attn_status open_npy(attn_file *file, attn_diag *diag)
{
    attn__file_stream s = stream_of(file);
    attn__npy_header header;

    ATTN__TRY(attn__npy_read_header(&s.base, &header, diag));
    file->entries = attn__calloc(1, sizeof *file->entries);
    ATTN__REQUIRE(file->entries, diag, ATTN_E_NOMEM, "file",
                  "no memory for an entry");
    file->n = 1;
    attn__npy_entry(&header, ATTN_OK, file->entries);
    return attn__entry_name(file->entries, file->stem, header.type.format,
                            diag);
}

/* The header is parsed once more rather than kept: it is short, and a file
 * that was changed in between is found out. */
static attn_status load_npy(attn_file *file, int64_t index, attn_array *array,
                            attn_diag *diag)
{
    attn__file_stream s = stream_of(file);
    attn__npy_header header;

    (void)index;
    ATTN__TRY(attn__npy_read_header(&s.base, &header, diag));
    return attn__npy_read_data(&s.base, &header, array, diag);
}

static void close_npy(attn_file *file)
{
    (void)file;
}

const attn__reader attn__npy_reader = {"npy", NULL, probe, open_npy, load_npy,
                                       close_npy};
