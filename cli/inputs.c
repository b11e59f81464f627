/* SPDX-License-Identifier: Apache-2.0
 *
 * Collecting arrays. Only what a verb knows is loaded, so a file may hold
 * anything else, of any size. */
#include "inputs.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define LISTED 8 /* ignored arrays that are named */

attn_array *cli_input(const cli_inputs *inputs, const char *name)
{
    for (int i = 0; i < inputs->n; i++)
        if (strcmp(inputs->arrays[i].name, name) == 0)
            return &inputs->arrays[i];
    return NULL;
}

void cli_inputs_free(cli_inputs *inputs)
{
    for (int i = 0; i < inputs->n; i++)
        attn_array_free(&inputs->arrays[i]);
    free(inputs->arrays);
    inputs->arrays = NULL;
    inputs->n = 0;
}

int cli_inputs_add(cli_inputs *inputs, attn_array *array)
{
    attn_array *grown = realloc(inputs->arrays,
                                (size_t)(inputs->n + 1) * sizeof *grown);

    if (!grown) {
        attn_array_free(array);
        return cli_no_memory();
    }
    inputs->arrays = grown;
    inputs->arrays[inputs->n++] = *array;
    return CLI_GO;
}

static const char *known_name(const cli_inputs *inputs, const char *name)
{
    for (const char *const *known = inputs->known; *known; known++)
        if (strcasecmp(*known, name) == 0)
            return *known;
    return NULL;
}

/* Load entry `index` of an open file as `name`, replacing an earlier one. */
static int load(cli_inputs *inputs, attn_file *file, int64_t index,
                const char *name, const char *path)
{
    attn_array array, *earlier = cli_input(inputs, name);
    attn_diag diag;
    char *renamed;

    if (attn_file_load(file, index, &array, &diag) != ATTN_OK)
        return cli_file_refused(path, &diag);
    renamed = attn_realloc(array.name, strlen(name) + 1);
    if (renamed)
        strcpy(array.name = renamed, name);
    if (renamed && earlier) {
        cli_note("%s: taken from %s, which comes last", name, path);
        attn_array_free(earlier);
        *earlier = array;
        return CLI_GO;
    }
    if (renamed)
        return cli_inputs_add(inputs, &array);
    attn_array_free(&array);
    return cli_no_memory();
}

/* Which entries of a file were left out, in one line. */
static void note_ignored(const cli_inputs *inputs, const attn_file *file,
                         const char *path)
{
    char list[LISTED * 40] = "";
    int64_t ignored = 0;

    for (int64_t i = 0; i < attn_file_count(file); i++) {
        const char *name = attn_file_entry(file, i)->name;
        const char *known = known_name(inputs, name);
        const size_t used = strlen(list);

        if (known && attn_file_find(file, known) == i)
            continue;
        if (ignored++ < LISTED)
            snprintf(list + used, sizeof list - used, "%s%.36s",
                     used ? ", " : "", name);
    }
    if (ignored > LISTED)
        cli_note("%s: ignored %s and %lld more", path, list,
                 (long long)(ignored - LISTED));
    else if (ignored > 0)
        cli_note("%s: ignored %s", path, list);
}

/* FILE: every array whose name is known. */
static int read_all(cli_inputs *inputs, const char *path)
{
    attn_file *file;
    attn_diag diag;
    int code = CLI_GO;

    if (attn_file_open(path, &file, &diag) != ATTN_OK)
        return cli_file_refused(path, &diag);
    for (int i = 0; inputs->known[i] && code == CLI_GO; i++) {
        const int64_t index = attn_file_find(file, inputs->known[i]);

        if (index >= 0)
            code = load(inputs, file, index, inputs->known[i], path);
    }
    if (code == CLI_GO)
        note_ignored(inputs, file, path);
    attn_file_close(file);
    return code;
}

/* NAME=FILE:KEY: one array; without a key the only one, or NAME. */
static int read_one(cli_inputs *inputs, const char *name, const char *path,
                    const char *key)
{
    attn_file *file;
    attn_diag diag;
    int64_t index;
    int code;

    if (attn_file_open(path, &file, &diag) != ATTN_OK)
        return cli_file_refused(path, &diag);
    index = attn_file_find(file, key ? key : name);
    if (index < 0 && !key && attn_file_count(file) == 1)
        index = 0;
    if (index >= 0)
        code = load(inputs, file, index, name, path);
    else if (key)
        code = cli_fail(CLI_INPUT, "%s: %s: the file holds no array '%s'",
                        path, name, key);
    else
        code = cli_fail(CLI_INPUT,
                        "%s: %s: the file holds %lld arrays, none of that "
                        "name; say %s=%s:KEY", path, name,
                        (long long)attn_file_count(file), name, path);
    attn_file_close(file);
    return code;
}

/* The length of NAME in NAME=FILE, 0 where the operand is just a file. */
static size_t name_length(const char *operand)
{
    const size_t n = strspn(operand, "abcdefghijklmnopqrstuvwxyz_0123456789"
                                     "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return operand[n] == '=' ? n : 0;
}

static int read_operand(cli_inputs *inputs, char *operand)
{
    const size_t n = name_length(operand);
    char *path = operand + n + 1, *colon;
    const char *name;

    if (n == 0)
        return read_all(inputs, operand);
    operand[n] = '\0';
    name = known_name(inputs, operand);
    if (!name) {
        cli_note("%s: ignored, no array of that name is known", operand);
        return CLI_GO;
    }
    colon = strrchr(path, ':');
    if (!colon || access(path, F_OK) == 0)
        return read_one(inputs, name, path, NULL);
    *colon = '\0';
    return read_one(inputs, name, path, colon + 1);
}

int cli_inputs_read(cli_inputs *inputs, const char *const *known,
                    char **operands, int n)
{
    int code = CLI_GO;

    *inputs = (cli_inputs){NULL, 0, known};
    for (int i = 0; i < n && code == CLI_GO; i++) {
        cli_progress("reading file", i, n);
        code = read_operand(inputs, operands[i]);
    }
    cli_progress_end();
    return code;
}
