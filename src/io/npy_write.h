/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a .npy, version 1.0 and C order, given piece by piece to a sink:
 * a file, or a checksum. */
#ifndef ATTN_IO_NPY_WRITE_H
#define ATTN_IO_NPY_WRITE_H

#include "attn_io.h"

#include "core/atomic_file.h"

/* Where bytes go. The same code gives them to a checksum and to a file, so that
 * an archive can say before its data what they will be. */
typedef struct attn__sink {
    attn_status (*write)(struct attn__sink *sink, const void *data, size_t n,
                         attn_diag *diag);
} attn__sink;

/* What is known of an array before its bytes are made. */
typedef struct attn__npy_layout {
    char header[320];
    int64_t header_size, data_size;
    int64_t width; /* text: code points of the longest string, at least 1 */
} attn__npy_layout;

/* Check the array and make its header. An array comes from the caller, who may
 * have filled it in by hand: shape, count and data must agree. */
attn_status attn__npy_layout_of(const attn_array *array,
                                attn__npy_layout *layout, attn_diag *diag);
/* Header and data: exactly header_size + data_size bytes. */
attn_status attn__npy_emit(const attn_array *array,
                           const attn__npy_layout *layout, attn__sink *sink,
                           attn_diag *diag);

typedef struct attn__file_sink {
    attn__sink base;
    attn__output *output;
} attn__file_sink;

attn__file_sink attn__file_sink_to(attn__output *output);

#endif
