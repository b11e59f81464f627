/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening a file of any known format. A new format is one file with an
 * attn__reader and one row of the table below. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "io/reader.h"

static const attn__reader *const readers[] = {
    &attn__npy_reader,
    &attn__npz_reader,
    &attn__safetensors_reader, /* without a magic: last */
};

/* Formats that this build can load, with a blank between, as snprintf counts.
 */
size_t attn_file_formats(char *text, size_t size)
{
    char all[64] = "";
    size_t n = 0;

    for (size_t r = 0; r < sizeof readers / sizeof readers[0]; r++)
        if (readers[r]->load)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s%s",
                                  n > 0 ? " " : "", readers[r]->format);
    return (size_t)snprintf(text, size, "%s", all);
}

/* The file name without folders and without the last extension. */
static char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *stem = attn__strdup(slash ? slash + 1 : path);
    char *dot = stem ? strrchr(stem, '.') : NULL;

    if (dot && dot != stem)
        *dot = '\0';
    return stem;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), size = strlen(end);

    return n >= size && strcmp(text + n - size, end) == 0;
}

/* By the first bytes, which do not lie; .safetensors has none of its own and
 * goes by its name. */
static bool is_ours(const attn__reader *reader, const uint8_t *head, size_t n,
                    const char *path)
{
    return reader->probe(head, n) ||
           (reader->extension && ends_with(path, reader->extension));
}

/* The first reader that says the file is its own decides: a damaged file is an
 * error of its format, never a reason to try the next. */
static attn_status open_reader(attn_file *file, const char *path,
                               attn_diag *diag)
{
    uint8_t head[9];
    const size_t n = file->source.size < 9 ? (size_t)file->source.size : 9;

    ATTN__REQUIRE(n > 0, diag, ATTN_E_FORMAT, "file", "is empty");
    ATTN__TRY(attn__source_read(&file->source, 0, head, n, diag));
    for (size_t r = 0; r < sizeof readers / sizeof readers[0]; r++) {
        if (!is_ours(readers[r], head, n, path))
            continue;
        file->reader = readers[r];
        return file->reader->open(file, diag);
    }
    return attn__fail(diag, ATTN_E_FORMAT, "file",
                      "begins like no known format (.npy, .npz, "
                      ".safetensors)");
}

/* *file is NULL after any failure, and all that was taken is given back; the
 * diag of the first failure stands. */
attn_status attn_file_open(const char *path, attn_file **file, attn_diag *diag)
{
    attn_status status;

    ATTN__REQUIRE(file, diag, ATTN_E_ARG, "file", "must not be NULL");
    *file = NULL;
    ATTN__REQUIRE(path, diag, ATTN_E_ARG, "path", "must not be NULL");
    *file = attn__calloc(1, sizeof **file);
    ATTN__REQUIRE(*file, diag, ATTN_E_NOMEM, "file", "no memory for a file");
    (*file)->source.fd = -1;
    (*file)->stem = stem_of(path);
    if ((*file)->stem)
        status = attn__source_open(&(*file)->source, path, diag);
    else
        status = attn__fail(diag, ATTN_E_NOMEM, "file", "no memory for a name");
    if (status == ATTN_OK)
        status = open_reader(*file, path, diag);
    if (status != ATTN_OK) {
        attn_file_close(*file);
        *file = NULL;
        return status;
    }
    return attn__ok(diag);
}

/* Takes a file in any state of being opened. */
void attn_file_close(attn_file *file)
{
    if (!file)
        return;
    if (file->reader)
        file->reader->close(file);
    for (int64_t i = 0; file->entries && i < file->n; i++) {
        attn__free((void *)(uintptr_t)file->entries[i].name);
        attn__free((void *)(uintptr_t)file->entries[i].format);
    }
    attn__free(file->entries);
    attn__free(file->stem);
    attn__source_close(&file->source);
    attn__free(file);
}

/* Strings and entries belong to the file, until it is closed. */
const char *attn_file_format(const attn_file *file)
{
    return file->reader->format;
}

int64_t attn_file_count(const attn_file *file)
{
    return file->n;
}

const attn_entry *attn_file_entry(const attn_file *file, int64_t index)
{
    return index >= 0 && index < file->n ? &file->entries[index] : NULL;
}

/* A name as it stands wins over one in other letters: "Q" finds "q", but not
 * where there is a "Q" too. */
int64_t attn_file_find(const attn_file *file, const char *name)
{
    for (int64_t i = 0; i < file->n; i++)
        if (strcmp(file->entries[i].name, name) == 0)
            return i;
    for (int64_t i = 0; i < file->n; i++)
        if (strcasecmp(file->entries[i].name, name) == 0)
            return i;
    return -1;
}

/* The array owns its memory and outlives the file. On failure it is all zeros
 * and needs no attn_array_free, though that does no harm. */
attn_status attn_file_load(attn_file *file, int64_t index, attn_array *array,
                           attn_diag *diag)
{
    attn_status status;

    ATTN__REQUIRE(array, diag, ATTN_E_ARG, "array", "must not be NULL");
    memset(array, 0, sizeof *array);
    ATTN__REQUIRE(file, diag, ATTN_E_ARG, "file", "must not be NULL");
    ATTN__REQUIRE(index >= 0 && index < file->n, diag, ATTN_E_ARG, "index",
                  "%lld is not below the %lld entries of the file",
                  (long long)index, (long long)file->n);
    array->name = attn__strdup(file->entries[index].name);
    if (array->name)
        status = file->reader->load(file, index, array, diag);
    else
        status = attn__fail(diag, ATTN_E_NOMEM, "array",
                            "no memory for a name");
    if (status != ATTN_OK) {
        attn_array_free(array);
        return status;
    }
    return attn__ok(diag);
}

attn_status attn__entry_name(attn_entry *entry, const char *name,
                             const char *format, attn_diag *diag)
{
    entry->name = attn__strdup(name);
    entry->format = attn__strdup(format);
    ATTN__REQUIRE(entry->name && entry->format, diag, ATTN_E_NOMEM, "file",
                  "no memory for the names of arrays");
    return ATTN_OK;
}
