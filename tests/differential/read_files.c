/* SPDX-License-Identifier: Apache-2.0
 *
 * read_files: for each path on stdin, what is in the file, as
 *
 *   array NAME FORMAT TYPE SHAPE CRC      (text: each string, then a zero)
 *   refused NAME STATUS SENTENCE          (an entry)
 *   failed STATUS SENTENCE                (the file)
 *   done */
#include <stdio.h>
#include <string.h>

#include "attn_io.h"

static unsigned crc_of(unsigned crc, const void *data, size_t n)
{
    const unsigned char *at = data;

    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void print_array(const attn_entry *entry, const attn_array *a)
{
    unsigned crc = 0;

    printf("array\t%s\t%s\t%s\t(", a->name, entry->format,
           a->text ? "text" : attn_dtype_name(a->dtype));
    for (int axis = 0; axis < a->rank; axis++)
        printf("%lld,", (long long)a->shape[axis]);
    if (a->data)
        crc = crc_of(0, a->data, (size_t)a->count * attn_dtype_size(a->dtype));
    for (int64_t i = 0; a->text && i < a->count; i++)
        crc = crc_of(crc, a->text[i], strlen(a->text[i]) + 1);
    printf(")\t%08x\n", crc);
}

static void print_file(const char *path)
{
    attn_file *file;
    attn_diag diag;

    if (attn_file_open(path, &file, &diag) != ATTN_OK) {
        printf("failed\t%s\t%s\n", attn_status_name(diag.status),
               diag.message);
        return;
    }
    for (int64_t i = 0; i < attn_file_count(file); i++) {
        const attn_entry *entry = attn_file_entry(file, i);
        attn_array array;

        if (attn_file_load(file, i, &array, &diag) == ATTN_OK)
            print_array(entry, &array);
        else
            printf("refused\t%s\t%s\t%s\n", entry->name,
                   attn_status_name(diag.status), diag.message);
        attn_array_free(&array);
    }
    attn_file_close(file);
}

int main(void)
{
    char path[4096];

    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = '\0';
        print_file(path);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
