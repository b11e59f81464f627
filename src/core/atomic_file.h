/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that appears whole or not at all: written beside its place under a
 * temporary name, synced, and renamed over it. */
#ifndef ATTN_CORE_ATOMIC_FILE_H
#define ATTN_CORE_ATOMIC_FILE_H

#include "attn.h"

typedef struct attn__output {
    int fd; /* -1: closed */
    const char *path;
    char *temporary; /* NULL: there is no such file */
} attn__output;

/* A path that exists must be a regular file: a device is not replaced. */
attn_status attn__output_open(attn__output *output, const char *path,
                              attn_diag *diag);
attn_status attn__output_write(attn__output *output, const void *data,
                               size_t n, attn_diag *diag);
/* Everything is on the disk and under its name, or nothing has changed. */
attn_status attn__output_commit(attn__output *output, attn_diag *diag);
/* Remove what was not committed, free the rest. Always the last call. */
void attn__output_end(attn__output *output);

#endif
