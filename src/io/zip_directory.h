/* SPDX-License-Identifier: Apache-2.0
 *
 * The structure of a ZIP archive, judged before libzip sees it, so that the
 * answer to a bad file is ours, and the same with every version of libzip.
 * Follows PKWARE's APPNOTE 6.3; where that is lax, this is strict: every byte
 * of the directory is accounted for, each local header repeats what the
 * directory says, members lie in the file and apart from each other. */
#ifndef ATTN_IO_ZIP_DIRECTORY_H
#define ATTN_IO_ZIP_DIRECTORY_H

#include "attn.h"

#include <stdbool.h>

#include "io/source.h"

/* What the directory says of a member and its local header has confirmed. */
typedef struct attn__zip_member {
    char *name; /* terminated; plain UTF-8; no path out of its folder */
    uint32_t crc;
    uint16_t flags, method;
    uint8_t needs; /* ten times the version of ZIP */
    int64_t packed, size; /* bytes in the file, and unpacked */
    int64_t begin, end;   /* of local header and data in the file */
} attn__zip_member;

typedef struct attn__zip_directory {
    attn__zip_member *members; /* in the order of the directory */
    int64_t n;
} attn__zip_directory;

/* Read and check the whole structure. On failure the directory is empty. */
attn_status attn__zip_directory_read(const attn__source *source,
                                     attn__zip_directory *directory,
                                     attn_diag *diag);
/* Whether a name stays inside a folder: relative, no "..", no empty parts (a
 * slash at the end marks a folder), no backslash, no drive. */
bool attn__zip_name_stays_inside(const char *name);
void attn__zip_directory_free(attn__zip_directory *directory);

#endif
