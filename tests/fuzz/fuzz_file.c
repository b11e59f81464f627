/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes as a file: every entry that opens must load or say why not, be
 * what it was announced as, and cost no more memory than the file's size
 * justifies (deflate makes at most 1032 bytes of one, and an integer of one
 * byte becomes one of eight). */
#define _GNU_SOURCE /* memfd_create */
#include "fuzz_file.h"

#include "attn_io.h"
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check_failure(attn_status status, const attn_diag *diag)
{
    PROPERTY(diag->status == status);
    PROPERTY(diag->field[0] != '\0' && diag->message[0] != '\0');
    PROPERTY(memchr(diag->field, '\0', sizeof diag->field));
    PROPERTY(memchr(diag->message, '\0', sizeof diag->message));
}

static void check_array(const attn_entry *entry, const attn_array *array)
{
    int64_t count = 1;

    PROPERTY(entry->status == ATTN_OK);
    PROPERTY(array->dtype == entry->dtype && array->rank == entry->rank);
    PROPERTY(array->rank >= 0 && array->rank <= ATTN_ARRAY_MAX_RANK);
    for (int32_t axis = 0; axis < array->rank; axis++) {
        PROPERTY(array->shape[axis] == entry->shape[axis]);
        PROPERTY(array->shape[axis] >= 0);
        count *= array->shape[axis];
    }
    PROPERTY(array->count == count && entry->count == count);
    PROPERTY((array->text != NULL) == (array->dtype == ATTN_NONE));
    PROPERTY((array->data != NULL) == (array->dtype != ATTN_NONE));
    if (count == 0)
        return;
    /* The ends of the memory are there to be read. */
    (void)attn_array_value(array, 0);
    (void)attn_array_value(array, count - 1);
    for (int64_t i = 0; array->text && i < count; i++)
        PROPERTY(strlen(array->text[i]) < SIZE_MAX);
}

static void check_entry(attn_file *file, int64_t index)
{
    const attn_entry *entry = attn_file_entry(file, index);
    const attn_array zeros = {0};
    attn_array array;
    attn_diag diag;
    attn_status status;

    PROPERTY(entry && entry->name && entry->format);
    PROPERTY(attn_file_find(file, entry->name) >= 0);
    memset(&array, 0xa5, sizeof array);
    status = attn_file_load(file, index, &array, &diag);
    if (status == ATTN_OK) {
        check_array(entry, &array);
        attn_array_free(&array);
    } else {
        check_failure(status, &diag);
    }
    PROPERTY(memcmp(&array, &zeros, sizeof array) == 0);
}

static void check_path(const char *path)
{
    attn_file *file = NULL;
    attn_diag diag;
    const attn_status status = attn_file_open(path, &file, &diag);

    if (status != ATTN_OK) {
        check_failure(status, &diag);
        PROPERTY(!file);
    } else {
        for (int64_t i = 0; i < attn_file_count(file); i++)
            check_entry(file, i);
        attn_file_close(file);
    }
    PROPERTY(fuzz_live_blocks() == 0);
}

void fuzz_file(const uint8_t *data, size_t size)
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char path[64];

    PROPERTY(fd >= 0);
    PROPERTY(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    fuzz_count_memory(9 * 1032 * size + (16u << 20));
    check_path(path);
    close(fd);
}
