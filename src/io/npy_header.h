/* SPDX-License-Identifier: Apache-2.0
 *
 * The header of a .npy: which elements, in which order, of which shape. The
 * format is NumPy's (numpy.lib.format): a magic, a version, a length, and a
 * Python dictionary, of which we read the one form that NumPy writes. */
#ifndef ATTN_IO_NPY_HEADER_H
#define ATTN_IO_NPY_HEADER_H

#include "attn_io.h"

#include <stdbool.h>

#include "io/source.h"

#define ATTN__NPY_MAGIC "\x93NUMPY"
#define ATTN__NPY_MAGIC_SIZE 6

/* The element type. `code` is NumPy's: f i u b V U S. */
typedef struct attn__npy_type {
    char format[16];   /* as the file spells it */
    char code;
    bool swap;         /* the other byte order than ours */
    int64_t item_size; /* bytes of one element in the file */
    attn_dtype dtype;  /* of the loaded array; ATTN_NONE for text */
} attn__npy_type;

typedef struct attn__npy_header {
    attn__npy_type type;
    bool fortran; /* the first axis is the fastest */
    int32_t rank;
    int64_t shape[ATTN_ARRAY_MAX_RANK];
    int64_t count;     /* product of shape */
    int64_t data_size; /* count * item_size: what is left of the stream */
} attn__npy_header;

/* What `descr` (n characters, without quotes) means. E_FORMAT for no type at
 * all, E_UNSUPPORTED or E_LIMIT for one that we don't load. */
attn_status attn__npy_type_parse(const char *descr, size_t n,
                                 attn__npy_type *type, const char *name,
                                 attn_diag *diag);

/* Parse the dictionary text[0..n-1] of a file of version `major`. On
 * E_UNSUPPORTED and E_LIMIT header->type.format is set as far as it is known,
 * on any other failure nothing. */
attn_status attn__npy_dict_parse(const char *text, size_t n, int major,
                                 attn__npy_header *header, const char *name,
                                 attn_diag *diag);

/* Read and check everything before the data. On success the stream stands at
 * the data, and exactly header->data_size bytes are left of its size. */
attn_status attn__npy_read_header(attn__stream *stream,
                                  attn__npy_header *header, attn_diag *diag);

/* Describe the array for the caller: all of `entry` but its strings. With a
 * status other than OK there is nothing but the status. */
void attn__npy_entry(const attn__npy_header *header, attn_status status,
                     attn_entry *entry);

/* Read the data into `array` (zeroed; the caller frees it on failure). */
attn_status attn__npy_read_data(attn__stream *stream,
                                const attn__npy_header *header,
                                attn_array *array, attn_diag *diag);

#endif
