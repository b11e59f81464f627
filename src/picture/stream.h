/* SPDX-License-Identifier: Apache-2.0
 *
 * Where bytes go: a file that appears when complete, or memory. The first
 * failure is kept and later bytes are dropped, so that writers need not ask
 * after each. */
#ifndef ATTN_PICTURE_STREAM_H
#define ATTN_PICTURE_STREAM_H

#include <stdbool.h>

#include "core/atomic_file.h"
#include "core/diag.h"

#define ATTN__STREAM_BUFFER 8192

typedef struct attn__stream {
    bool to_file;
    attn__output output;
    unsigned char *memory; /* NULL until the first byte */
    size_t size, room;
    attn_status status;
    attn_diag diag; /* of the first failure */
    unsigned char buffer[ATTN__STREAM_BUFFER];
    size_t buffered;
} attn__stream;

/* To `path`, or to memory if it is NULL. */
void attn__stream_open(attn__stream *stream, const char *path);
void attn__stream_put(attn__stream *stream, const void *data, size_t n);
void attn__stream_text(attn__stream *stream, const char *text);
/* A number with at most two decimals, in every locale with a point. */
void attn__stream_number(attn__stream *stream, double value);
/* Complete what was written, or undo it. Returns the first failure. Memory
 * goes to *data, with a zero byte behind it that *size leaves out. */
attn_status attn__stream_close(attn__stream *stream, void **data,
                               size_t *size, attn_diag *diag);

#endif
