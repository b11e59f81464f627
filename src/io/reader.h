/* SPDX-License-Identifier: Apache-2.0
 *
 * What a file format is to the rest: one attn__reader, a row of the table in
 * file.c. A reader fills entries when the file is opened and loads one entry
 * at a time. Every length it meets is hostile until checked against the size
 * of the file. docs/formats.md lists what each format accepts. */
#ifndef ATTN_IO_READER_H
#define ATTN_IO_READER_H

#include "attn_io.h"

#include <stdbool.h>

#include "io/source.h"

/* Policy, not format: larger is E_LIMIT, so that a small file can't make its
 * reader work or allocate without bound. Far above what real files have. */
#define ATTN__MAX_HEADER 65536            /* bytes of a .npy header */
#define ATTN__MAX_STRINGS (1 << 20)       /* strings in a text array */
#define ATTN__MAX_STRING_BYTES (1 << 20)  /* bytes of one string */
#define ATTN__MAX_MEMBERS 65535           /* members of an archive */
#define ATTN__MAX_NAME 1024               /* bytes of a member's name */
#define ATTN__MAX_JSON 100000000          /* bytes of a .safetensors header */
#define ATTN__MAX_TENSORS 100000          /* tensors of a .safetensors */
#define ATTN__MAX_INFLATED (INT64_C(1) << 36) /* bytes of a deflated member */
/* Deflate cannot do better than 258 bytes for 2 bits: 1032 to 1. */
#define ATTN__MAX_RATIO 1032

/* Readers are constants: one call of a library at a time is not asked for, and
 * files don't know of each other. */
typedef struct attn__reader {
    const char *format;
    /* Of files that are ours whatever they begin with; NULL: none. */
    const char *extension;
    /* Whether a file that begins with these n bytes (up to 9) is ours. */
    bool (*probe)(const uint8_t *head, size_t n);
    /* Fill file->entries, file->n and file->state. On failure close is
     * called all the same. */
    attn_status (*open)(attn_file *file, attn_diag *diag);
    /* Fill `array`, all zeros when called. On failure the caller frees it.
     * NULL for a format that this build refuses (npz_absent.c). */
    attn_status (*load)(attn_file *file, int64_t index, attn_array *array,
                        attn_diag *diag);
    /* Free file->state. */
    void (*close)(attn_file *file);
} attn__reader;

extern const attn__reader attn__npy_reader, attn__npz_reader;
extern const attn__reader attn__safetensors_reader;

/* Entries are cleared with attn__calloc by the reader; names and formats are
 * freed by attn_file_close. */
struct attn_file {
    const attn__reader *reader;
    attn__source source;
    char *stem; /* of the path, for formats without names */
    attn_entry *entries;
    int64_t n;
    void *state;
};

/* Fill `entry` with copies of the two strings, which the file then owns, also
 * where only one could be had. */
attn_status attn__entry_name(attn_entry *entry, const char *name,
                             const char *format, attn_diag *diag);

#endif
