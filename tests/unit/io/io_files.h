/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to files and files to statuses, for the tests of src/io. */
#ifndef ATTN_TESTS_IO_FILES_H
#define ATTN_TESTS_IO_FILES_H

#include "attn_io.h"

#include <stdbool.h>

/* Bytes that grow. */
typedef struct bytes {
    unsigned char *data;
    size_t n, room;
} bytes;

void add(bytes *b, const void *data, size_t n);
void add_text(bytes *b, const char *text);
void add_zeros(bytes *b, size_t n);
void add_le(bytes *b, unsigned long long value, int n);
void set_le(bytes *b, size_t at, unsigned long long value, int n);
void drop(bytes *b);

/* A .npy: magic, version, dictionary padded to a newline, n_data zeros. */
bytes npy_of(int major, const char *dictionary, size_t n_data);
/* The usual dictionary. */
bytes npy_array(const char *descr, const char *shape, size_t n_data);

/* A place in a folder of our own; the path stays valid until the next call of
 * this or of the next two. */
const char *path_of(const char *name);
/* A file of these bytes there. */
const char *file_of(const bytes *b, const char *name);
/* The bytes of a file there, to be dropped. */
bytes contents_of(const char *name);
/* Remove the folder. For cmocka's group teardown. */
int remove_files(void **state);

/* Open the file and load every entry: the first status that is not OK. With
 * `diag` its sentence. Opens twice and fails the test if the answers differ.
 */
attn_status read_all(const char *path, attn_diag *diag);

#endif
