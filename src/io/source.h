/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a regular file, read at an offset, and a stream of bytes that
 * the .npy code reads without knowing whether they come from a file or out of
 * an archive. Reads are exact: all n bytes, or a status. */
#ifndef ATTN_IO_SOURCE_H
#define ATTN_IO_SOURCE_H

#include "attn.h"

/* `size` is that of the moment of opening, and everything is judged by it. */
typedef struct attn__source {
    int fd; /* -1: closed */
    int64_t size;
} attn__source;

/* Open a regular file to read; anything else (a directory, a pipe, a device)
 * is E_IO. Never blocks on a pipe. */
attn_status attn__source_open(attn__source *source, const char *path,
                              attn_diag *diag);
void attn__source_close(attn__source *source);
/* n bytes at `offset`. A file that has become shorter is E_TRUNCATED. */
attn_status attn__source_read(const attn__source *source, int64_t offset,
                              void *data, size_t n, attn_diag *diag);

/* A reader of bytes in their order, never backwards. It is the first member of
 * what really reads, whose own type `read` knows. */
typedef struct attn__stream {
    const char *name; /* of the array, for the diag */
    int64_t size;     /* bytes in all */
    attn_status (*read)(struct attn__stream *stream, void *data, size_t n,
                        attn_diag *diag);
} attn__stream;

/* A stream of `size` bytes of a file from `at` on. Several may read one source
 * at the same time, since each has its own place. */
typedef struct attn__file_stream {
    attn__stream base;
    const attn__source *source;
    int64_t at;
} attn__file_stream;

attn__file_stream attn__stream_of(const attn__source *source, const char *name,
                                  int64_t at, int64_t size);

#endif
