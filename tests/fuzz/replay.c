/* SPDX-License-Identifier: Apache-2.0
 *
 * A main for a fuzz target without libFuzzer: runs it over the files and
 * folders given, and over every beginning of each file, which is where
 * readers of lengths go wrong. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_inputs;

static void replay_file(const char *path)
{
    static uint8_t data[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t size;

    if (!file) {
        perror(path);
        exit(2);
    }
    size = fread(data, 1, sizeof data, file);
    fclose(file);
    for (size_t part = 0; part <= size; part++) {
        /* A copy of its own: ASan sees a read behind the end. */
        uint8_t *copy = malloc(part ? part : 1);

        if (!copy)
            exit(2);
        memcpy(copy, data, part);
        LLVMFuzzerTestOneInput(copy, part);
        free(copy);
        n_inputs++;
    }
}

static void replay_folder(DIR *folder, const char *name)
{
    const struct dirent *entry;

    while ((entry = readdir(folder))) {
        char path[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
        replay_file(path);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);

        if (folder) {
            replay_folder(folder, argv[i]);
            closedir(folder);
        } else {
            replay_file(argv[i]);
        }
    }
    printf("%d passed, 0 failed\n", n_inputs);
    return n_inputs > 0 ? 0 : 1;
}
