/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the directory of a ZIP archive lies: its end record, and the 64-bit
 * one that may stand before it. */
#ifndef ATTN_IO_ZIP_END_H
#define ATTN_IO_ZIP_END_H

#include "attn.h"

#include "io/source.h"

typedef struct attn__zip_end {
    int64_t n;            /* members */
    int64_t offset, size; /* of the directory, which ends at its end record */
} attn__zip_end;

/* Find and check the end records. Afterwards offset + size is a place in the
 * file, and nothing lies between the directory and its end. */
attn_status attn__zip_end_read(const attn__source *source, attn__zip_end *end,
                               attn_diag *diag);

#endif
