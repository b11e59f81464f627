/* SPDX-License-Identifier: Apache-2.0
 *
 * Files for tests, in a temporary folder. */
#include "io_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"

static char folder[64];
static char path[128];
static char names[64][40]; /* made so far, for removal */
static int n_names;

/* Room for n more. It doubles: a step a call took most of the tests' time under
 * a sanitizer, which copies at each. */
static void grow(bytes *b, size_t n)
{
    if (b->data && b->n + n < b->room)
        return;
    b->room = 2 * (b->n + n) + 1;
    b->data = realloc(b->data, b->room);
    assert_non_null(b->data);
}

void add(bytes *b, const void *data, size_t n)
{
    grow(b, n);
    if (n > 0)
        memcpy(b->data + b->n, data, n);
    b->n += n;
}

void add_text(bytes *b, const char *text)
{
    add(b, text, strlen(text));
}

void add_zeros(bytes *b, size_t n)
{
    grow(b, n);
    memset(b->data + b->n, 0, n);
    b->n += n;
}

void add_le(bytes *b, unsigned long long value, int n)
{
    add_zeros(b, (size_t)n);
    set_le(b, b->n - (size_t)n, value, n);
}

void set_le(bytes *b, size_t at, unsigned long long value, int n)
{
    for (int i = 0; i < n; i++)
        b->data[at + (size_t)i] = (unsigned char)(value >> 8 * i);
}

void drop(bytes *b)
{
    free(b->data);
    *b = (bytes){0};
}

bytes npy_of(int major, const char *dictionary, size_t n_data)
{
    const size_t preamble = major == 1 ? 10 : 12;
    const size_t n = strlen(dictionary);
    const size_t padding = (64 - (preamble + n + 1) % 64) % 64;
    bytes b = {0};

    add(&b, "\x93NUMPY", 6);
    add_le(&b, (unsigned)major, 1);
    add_le(&b, 0, 1);
    add_le(&b, n + padding + 1, major == 1 ? 2 : 4);
    add_text(&b, dictionary);
    for (size_t i = 0; i < padding; i++)
        add_text(&b, " ");
    add_text(&b, "\n");
    add_zeros(&b, n_data);
    return b;
}

bytes npy_array(const char *descr, const char *shape, size_t n_data)
{
    char dictionary[256];

    snprintf(dictionary, sizeof dictionary,
             "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
             shape);
    return npy_of(1, dictionary, n_data);
}

const char *path_of(const char *name)
{
    int i = 0;

    if (!folder[0]) {
        strcpy(folder, "io-test-XXXXXX");
        assert_non_null(mkdtemp(folder));
    }
    while (i < n_names && strcmp(names[i], name) != 0)
        i++;
    assert_true(i < 64 && strlen(name) < 40);
    strcpy(names[i], name);
    n_names += i == n_names;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

const char *file_of(const bytes *b, const char *name)
{
    FILE *file = fopen(path_of(name), "wb");

    assert_non_null(file);
    if (b->n > 0)
        assert_int_equal(fwrite(b->data, 1, b->n, file), b->n);
    assert_int_equal(fclose(file), 0);
    return path;
}

bytes contents_of(const char *name)
{
    bytes b = {0};
    FILE *file = fopen(path_of(name), "rb");
    char piece[4096];
    size_t n;

    assert_non_null(file);
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        add(&b, piece, n);
    fclose(file);
    return b;
}

int remove_files(void **state)
{
    (void)state;
    for (int i = 0; i < n_names; i++) {
        snprintf(path, sizeof path, "%s/%.39s", folder, names[i]);
        unlink(path);
    }
    if (folder[0])
        rmdir(folder);
    folder[0] = '\0';
    n_names = 0;
    return 0;
}

static attn_status read_once(const char *name, attn_diag *diag)
{
    attn_file *file;
    attn_status status = attn_file_open(name, &file, diag);

    if (status != ATTN_OK) {
        assert_null(file);
        return status;
    }
    for (int64_t i = 0; i < attn_file_count(file) && !status; i++) {
        const attn_entry *entry = attn_file_entry(file, i);
        attn_array array;

        status = attn_file_load(file, i, &array, diag);
        if (entry->status != ATTN_OK)
            assert_int_equal(status, entry->status);
        if (status == ATTN_OK) {
            assert_string_equal(array.name, entry->name);
            assert_int_equal(array.dtype, entry->dtype);
            assert_int_equal(array.rank, entry->rank);
            assert_memory_equal(array.shape, entry->shape, sizeof array.shape);
            assert_int_equal(array.count, entry->count);
        }
        attn_array_free(&array);
    }
    attn_file_close(file);
    return status;
}

attn_status read_all(const char *name, attn_diag *diag)
{
    attn_diag first = {0}, second = {0};
    const attn_status status = read_once(name, &first);

    assert_int_equal(read_once(name, &second), status);
    assert_string_equal(first.message, second.message);
    assert_int_equal(read_once(name, NULL), status);
    if (status != ATTN_OK) {
        assert_int_equal(first.status, status);
        assert_true(first.field[0] != '\0' && first.message[0] != '\0');
    }
    if (diag)
        *diag = first;
    return status;
}
