/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of .npz files: a ZIP archive of .npy members. The structure is
 * judged by zip_directory.c; libzip then unpacks the members and checks their
 * CRC, reading through our source, and must have understood the archive in
 * the same way. (libzip's own memory does not come from the allocator hook.) */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/diag.h"
#include "io/npy_header.h"
#include "io/reader.h"
#include "io/zip_directory.h"

/* file->state. A read that fails is remembered, because libzip would tell us
 * no more than that one did. */
typedef struct npz {
    attn__zip_directory directory;
    zip_t *archive;
    const attn__source *source;
    int64_t at; /* where libzip reads next */
    attn_status status; /* of the last read that failed */
    attn_diag failure;
} npz;

/* A member as a stream, whose end is the end of its data unpacked. */
typedef struct member_stream {
    attn__stream base;
    npz *state;
    zip_file_t *member;
} member_stream;

/* ------------------------------------------------- libzip reads from us */

/* No more than is left: at the end libzip expects 0 bytes, not an error. */
static zip_int64_t source_read(npz *state, void *data, zip_uint64_t n)
{
    const int64_t left = state->source->size - state->at;

    if (n > (uint64_t)left)
        n = (uint64_t)left;
    state->status = attn__source_read(state->source, state->at, data,
                                      (size_t)n, &state->failure);
    if (state->status != ATTN_OK)
        return -1;
    state->at += (int64_t)n;
    return (zip_int64_t)n;
}

/* libzip asks for the size to find the end of the archive. */
static zip_int64_t source_stat(const npz *state, zip_stat_t *info)
{
    zip_stat_init(info);
    info->valid = ZIP_STAT_SIZE;
    info->size = (zip_uint64_t)state->source->size;
    return (zip_int64_t)sizeof *info;
}

/* Any code of an error will do: zip_failure goes by our own status first. */
static zip_int64_t source_error(void *data, zip_uint64_t n)
{
    const int codes[2] = {ZIP_ER_READ, EIO};

    if (n < sizeof codes)
        return -1;
    memcpy(data, codes, sizeof codes);
    return (zip_int64_t)sizeof codes;
}

/* The callback that makes a zip_source of our file: reading and seeking. */
static zip_int64_t source_command(void *context, void *data, zip_uint64_t n,
                                  zip_source_cmd_t command)
{
    npz *state = context;
    zip_int64_t at;

    switch (command) {
    case ZIP_SOURCE_OPEN:
        state->at = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return source_read(state, data, n);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_STAT:
        return source_stat(state, data);
    case ZIP_SOURCE_ERROR:
        return source_error(data, n);
    case ZIP_SOURCE_SEEK:
        at = zip_source_seek_compute_offset(
            (zip_uint64_t)state->at, (zip_uint64_t)state->source->size, data, n,
            NULL);
        if (at < 0)
            return -1;
        state->at = at;
        return 0;
    case ZIP_SOURCE_TELL:
        return state->at;
    case ZIP_SOURCE_SUPPORTS:
        return ZIP_SOURCE_SUPPORTS_SEEKABLE;
    default:
        return -1;
    }
}

/* ---------------------------------------------------- we read from libzip */

/* "Truncated", a code of its own since libzip 1.11. */
#ifdef ZIP_ER_TRUNCATED_ZIP
#define ER_TRUNCATED ZIP_ER_TRUNCATED_ZIP
#else
#define ER_TRUNCATED ZIP_ER_NOZIP
#endif

/* Whether memory is what libzip lacked. It says so, or zlib does; and where it
 * looks for the end record it forgets why it found none, although there is
 * one: we have seen it. (Observed with 1.7.3 and 1.11.3, one allocation
 * failing at a time.) */
static bool is_memory(const zip_error_t *error)
{
    const int code = zip_error_code_zip(error);

    return code == ZIP_ER_MEMORY || code == ZIP_ER_NOZIP ||
           code == ER_TRUNCATED ||
           (code == ZIP_ER_ZLIB && zip_error_code_system(error) == Z_MEM_ERROR);
}

/* What went wrong in libzip: our own read, memory, or the bytes. */
static attn_status zip_failure(const npz *state, zip_error_t *error,
                               const char *name, attn_diag *diag)
{
    if (state->status != ATTN_OK) {
        if (diag)
            *diag = state->failure;
        return state->status;
    }
    if (is_memory(error))
        return attn__fail(diag, ATTN_E_NOMEM, name, "no memory for libzip");
    if (zip_error_code_zip(error) == ZIP_ER_CRC)
        return attn__fail(diag, ATTN_E_FORMAT, name,
                          "has other data than its CRC says");
    return attn__fail(diag, ATTN_E_FORMAT, name, "cannot be unpacked: %s",
                      zip_error_strerror(error));
}

/* Let libzip read the archive. Its source lives as long as the archive. */
static attn_status open_archive(npz *state, attn_diag *diag)
{
    zip_error_t error;
    zip_source_t *source;
    attn_status status = ATTN_OK;

    zip_error_init(&error);
    source = zip_source_function_create(source_command, state, &error);
    if (source)
        state->archive = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (!state->archive)
        status = zip_failure(state, &error, "file", diag);
    if (source && !state->archive)
        zip_source_free(source);
    zip_error_fini(&error);
    return status;
}

/* Another reading of the same bytes by libzip would be a trap. */
static attn_status compare_archive(const npz *state, attn_diag *diag)
{
    const int64_t n = zip_get_num_entries(state->archive, 0);
    zip_stat_t info;

    ATTN__REQUIRE(n == state->directory.n, diag, ATTN_E_FORMAT, "file",
                  "is an ambiguous archive: libzip sees %lld members of %lld",
                  (long long)n, (long long)state->directory.n);
    for (int64_t i = 0; i < n; i++) {
        const attn__zip_member *m = &state->directory.members[i];
        const char *name = zip_get_name(state->archive, (zip_uint64_t)i,
                                        ZIP_FL_ENC_RAW);

        ATTN__REQUIRE(name && strcmp(name, m->name) == 0 &&
                          zip_stat_index(state->archive, (zip_uint64_t)i, 0,
                                         &info) == 0 &&
                          info.size == (zip_uint64_t)m->size &&
                          info.comp_size == (zip_uint64_t)m->packed &&
                          info.comp_method == m->method && info.crc == m->crc,
                      diag, ATTN_E_FORMAT, m->name,
                      "is ambiguous: libzip reads the directory differently");
    }
    return ATTN_OK;
}

/* libzip may give less than was asked for, and gives 0 at the end of a member,
 * which comes early if the archive lies about sizes. */
static attn_status read_member(attn__stream *stream, void *data, size_t n,
                               attn_diag *diag)
{
    member_stream *s = (member_stream *)stream;
    char *at = data;

    while (n > 0) {
        const zip_int64_t got = zip_fread(s->member, at, n);

        if (got < 0)
            return zip_failure(s->state, zip_file_get_error(s->member),
                               stream->name, diag);
        ATTN__REQUIRE(got > 0, diag, ATTN_E_TRUNCATED, stream->name,
                      "unpacks to fewer bytes than the archive says");
        at += got;
        n -= (size_t)got;
    }
    return ATTN_OK;
}

/* The end of the data must be the end of the member; only there does libzip
 * compare the CRC. */
static attn_status end_member(member_stream *s, attn_diag *diag)
{
    char byte;
    const zip_int64_t got = zip_fread(s->member, &byte, 1);

    if (got < 0)
        return zip_failure(s->state, zip_file_get_error(s->member),
                           s->base.name, diag);
    ATTN__REQUIRE(got == 0, diag, ATTN_E_FORMAT, s->base.name,
                  "unpacks to more bytes than the archive says");
    return ATTN_OK;
}

/* Start reading member `index`; the caller closes s->member. libzip keeps a
 * member's own place, so several could be open; we never need two. */
static attn_status open_member(npz *state, int64_t index, const char *name,
                               member_stream *s, attn_diag *diag)
{
    s->base = (attn__stream){name, state->directory.members[index].size,
                             read_member};
    s->state = state;
    s->member = zip_fopen_index(state->archive, (zip_uint64_t)index, 0);
    if (!s->member)
        return zip_failure(state, zip_get_error(state->archive), name, diag);
    return ATTN_OK;
}

/* ------------------------------------------------------------- the reader */

/* A local header, or the end record of an archive without members. */
static bool probe(const uint8_t *head, size_t n)
{
    return n >= 4 && (memcmp(head, "PK\3\4", 4) == 0 ||
                      memcmp(head, "PK\5\6", 4) == 0); /* no members */
}

/* Other members are listed, so that nothing in an archive is invisible, but
 * not loaded. ".npy" alone is no name. */
static bool is_npy(const char *name)
{
    const size_t n = strlen(name);

    return n > 4 && strcmp(name + n - 4, ".npy") == 0;
}

/* Read the header of member `index`. One that is well-formed but not loadable
 * leaves its status in the entry. */
static attn_status describe_member(npz *state, int64_t index,
                                   attn_entry *entry, attn_diag *diag)
{
    char *name = state->directory.members[index].name;
    member_stream s;
    attn__npy_header header;
    attn_status status;

    if (!is_npy(name)) {
        entry->status = ATTN_E_UNSUPPORTED;
        return attn__entry_name(entry, name, "", diag);
    }
    ATTN__TRY(open_member(state, index, name, &s, diag));
    status = attn__npy_read_header(&s.base, &header, diag);
    zip_fclose(s.member);
    if (status != ATTN_OK && status != ATTN_E_UNSUPPORTED &&
        status != ATTN_E_LIMIT)
        return status;
    attn__npy_entry(&header, status, entry);
    /* The entry is called without .npy; its member keeps the name. */
    name[strlen(name) - 4] = '\0';
    status = attn__entry_name(entry, name, header.type.format, diag);
    name[strlen(name)] = '.';
    return status;
}

/* Byte by byte: names that differ in letters' case are different arrays. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "q" and "q.npy" are different members and the same array. */
static attn_status check_names(const attn_file *file, attn_diag *diag)
{
    const size_t n = (size_t)file->n;
    const char **order = attn__realloc_array(NULL, n, sizeof *order);
    attn_status status = ATTN_OK;

    ATTN__REQUIRE(order, diag, ATTN_E_NOMEM, "file", "no memory for %zu names",
                  n);
    for (size_t i = 0; i < n; i++)
        order[i] = file->entries[i].name;
    qsort(order, n, sizeof *order, by_name);
    for (size_t i = 1; i < n && status == ATTN_OK; i++)
        if (strcmp(order[i - 1], order[i]) == 0)
            status = attn__fail(diag, ATTN_E_DUPLICATE, order[i],
                                "occurs twice in the file");
    attn__free(order);
    return status;
}

/* Every header is read now, so that one damaged member spoils the archive when
 * it is opened, whichever array is wanted. */
static attn_status open_npz(attn_file *file, attn_diag *diag)
{
    npz *state = attn__calloc(1, sizeof *state);

    ATTN__REQUIRE(state, diag, ATTN_E_NOMEM, "file", "no memory for a reader");
    file->state = state;
    state->source = &file->source;
    ATTN__TRY(attn__zip_directory_read(&file->source, &state->directory, diag));
    ATTN__TRY(open_archive(state, diag));
    ATTN__TRY(compare_archive(state, diag));
    file->entries = attn__calloc((size_t)state->directory.n,
                                 sizeof *file->entries);
    ATTN__REQUIRE(file->entries, diag, ATTN_E_NOMEM, "file",
                  "no memory for %lld entries", (long long)state->directory.n);
    file->n = state->directory.n;
    for (int64_t i = 0; i < file->n; i++)
        ATTN__TRY(describe_member(state, i, &file->entries[i], diag));
    return check_names(file, diag);
}

/* The data are judged while they are read: their length by the header, their
 * CRC at their end. */
static attn_status load_npz(attn_file *file, int64_t index, attn_array *array,
                            attn_diag *diag)
{
    npz *state = file->state;
    member_stream s;
    attn__npy_header header;
    attn_status status;

    ATTN__REQUIRE(is_npy(state->directory.members[index].name), diag,
                  ATTN_E_UNSUPPORTED, file->entries[index].name,
                  "is not a .npy member");
    state->status = ATTN_OK; /* of an earlier load that failed */
    ATTN__TRY(open_member(state, index, file->entries[index].name, &s, diag));
    status = attn__npy_read_header(&s.base, &header, diag);
    if (status == ATTN_OK)
        status = attn__npy_read_data(&s.base, &header, array, diag);
    if (status == ATTN_OK)
        status = end_member(&s, diag);
    zip_fclose(s.member);
    return status;
}

/* After a failure of any step of open_npz too. */
static void close_npz(attn_file *file)
{
    npz *state = file->state;

    if (!state)
        return;
    if (state->archive)
        zip_discard(state->archive);
    attn__zip_directory_free(&state->directory);
    attn__free(state);
}

const attn__reader attn__npz_reader = {"npz", NULL, probe, open_npz, load_npz,
                                       close_npz};
