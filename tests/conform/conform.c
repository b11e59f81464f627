/* SPDX-License-Identifier: Apache-2.0
 *
 * conform [-v] DIR...: run every case of each folder's index.json. Prints one
 * line per failure, with -v one per case, and at last the two counts. Exits
 * with 0 if nothing failed, 1 if something did, 2 if called wrongly. */
#include <stdio.h>
#include <string.h>

#include "conform.h"

typedef struct tally {
    long passed, failed;
} tally;

static void fail_folder(const char *folder, const char *why, tally *t)
{
    printf("FAIL %s: %s\n", folder, why);
    t->failed++;
}

static void run_cases(const char *folder, const json_t *cases, bool verbose,
                      tally *t)
{
    for (size_t n = 0; n < json_array_size(cases); n++) {
        const json_t *entry = json_array_get(cases, n);
        const char *name = json_string_value(json_object_get(entry, "name"));

        if (!name)
            fail_folder(folder, "a case without a name in index.json", t);
        else if (case_run(folder, name, verbose))
            t->passed++;
        else
            t->failed++;
        fflush(stdout);
    }
}

static void run_folder(const char *folder, bool verbose, tally *t)
{
    char path[1024];
    json_error_t error;
    json_t *index, *cases;

    snprintf(path, sizeof path, "%s/index.json", folder);
    index = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    cases = json_object_get(index, "cases");
    if (!index)
        fail_folder(folder, error.text, t);
    else if (!json_is_array(cases) || json_array_size(cases) == 0)
        fail_folder(folder, "index.json lists no cases", t);
    else
        run_cases(folder, cases, verbose, t);
    json_decref(index);
}

int main(int argc, char **argv)
{
    const bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
    const int first = verbose ? 2 : 1;
    tally t = {0, 0};

    if (first >= argc || argv[first][0] == '-') {
        fprintf(stderr, "usage: conform [-v] DIR...\n");
        return 2;
    }
    for (int i = first; i < argc; i++)
        run_folder(argv[i], verbose, &t);
    printf("%ld passed, %ld failed\n", t.passed, t.failed);
    return t.failed > 0;
}
