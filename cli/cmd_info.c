/* SPDX-License-Identifier: Apache-2.0
 *
 * attn info: the CPU and the kernels, or the entries of a file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attn_io.h"
#include "attn_picture.h"
#include "print_arrays.h"
#include "words.h"

static int set_json(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    *(bool *)target = true;
    return CLI_GO;
}

static const cli_option options[] = {{"json", NULL, "as JSON", set_json}};

static const char about[] =
    "Without FILE: the processor, what it offers, which kernels run on it.\n"
    "With FILE: name, shape and type of every array that it holds.\n";

/* ------------------------------------------------------------ the machine */

/* The whole text of a describing function, to be freed, or NULL. */
static char *text_of(size_t (*describe)(char *text, size_t size))
{
    const size_t size = describe(NULL, 0) + 1;
    char *text = malloc(size);

    if (text)
        describe(text, size);
    return text;
}

/* A list of the lines of `text`, which is changed. */
static void json_lines(char *text)
{
    const char *separator = "";

    putchar('[');
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        fputs(separator, stdout);
        cli_json_string(line);
        separator = ",\n  ";
    }
    putchar(']');
}

static int info_machine(bool json)
{
    const uint32_t v = attn_version();
    char *cpu = text_of(attn_cpu_describe);
    char *kernels = text_of(attn_kernels_describe);
    char *reads = text_of(attn_file_formats);
    int code = CLI_OK;

    if (!cpu || !kernels || !reads) {
        code = cli_no_memory();
    } else if (json) {
        cli_json_begin("info-1");
        printf(", \"version\": \"%u.%u.%u\", \"cpu\": ", (unsigned)(v >> 16),
               (unsigned)(v >> 8 & 0xff), (unsigned)(v & 0xff));
        cli_json_string(cpu);
        printf(", \"level\": \"%s\", \"reads\": \"%s\", \"draws\": \"%s\", "
               "\"kernels\": ",
               attn_isa_name(attn_cpu_isa()), reads, attn_picture_formats());
        json_lines(kernels);
        puts("}");
    } else {
        printf("attn %u.%u.%u\n%s\nlevel in use: %s\nreads: %s\ndraws: "
               "%s\n\n%s",
               (unsigned)(v >> 16), (unsigned)(v >> 8 & 0xff),
               (unsigned)(v & 0xff), cpu, attn_isa_name(attn_cpu_isa()), reads,
               attn_picture_formats(), kernels);
    }
    free(cpu);
    free(reads);
    free(kernels);
    return code;
}

/* ---------------------------------------------------------------- a file */

static const char *type_of(const attn_entry *e)
{
    if (e->status != ATTN_OK)
        return "-";
    return e->dtype == ATTN_NONE ? "text" : attn_dtype_name(e->dtype);
}

static void print_entry(const attn_entry *e, int width)
{
    char shape[128] = "-";

    if (e->status == ATTN_OK)
        cli_shape_text(e->rank, e->shape, shape, sizeof shape);
    printf("%-*s %-16s %-5s %s", width, e->name, shape, type_of(e), e->format);
    puts(e->status == ATTN_OK ? "" : *e->format ? ", cannot be loaded"
                                                : "cannot be loaded");
}

static void json_entry(const attn_entry *e)
{
    fputs("{\"name\": ", stdout);
    cli_json_string(e->name);
    fputs(", \"format\": ", stdout);
    cli_json_string(e->format);
    printf(", \"status\": \"%s\"", attn_status_name(e->status));
    if (e->status == ATTN_OK) {
        printf(", \"dtype\": \"%s\", \"shape\": [", type_of(e));
        for (int32_t a = 0; a < e->rank; a++)
            printf("%s%" PRId64, a > 0 ? ", " : "", e->shape[a]);
        putchar(']');
    }
    putchar('}');
}

static void list_entries(const attn_file *file, bool json)
{
    const int64_t n = attn_file_count(file);
    int width = 12; /* of the longest name; at most 1024, as files may have */

    if (json) {
        cli_json_begin("file-1");
        printf(", \"format\": \"%s\", \"arrays\": [", attn_file_format(file));
        for (int64_t i = 0; i < n; i++) {
            fputs(i > 0 ? ",\n  " : "\n  ", stdout);
            json_entry(attn_file_entry(file, i));
        }
        puts(n > 0 ? "\n]}" : "]}");
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int length = (int)strlen(attn_file_entry(file, i)->name);

        width = length > width ? length : width;
    }
    printf("%-*s %-16s %-5s %s\n", width, "name", "shape", "dtype",
           "as stored");
    for (int64_t i = 0; i < n; i++)
        print_entry(attn_file_entry(file, i), width);
}

static int info_file(const char *path, bool json)
{
    attn_file *file;
    attn_diag diag;

    if (attn_file_open(path, &file, &diag) != ATTN_OK)
        return cli_file_refused(path, &diag);
    list_entries(file, json);
    attn_file_close(file);
    return CLI_OK;
}

int cmd_info(int argc, char **argv)
{
    bool json = false;
    const cli_group group = {"Options:", options, 1, &json};
    const cli_usage usage = {"attn info [FILE] [OPTION]...", about, &group, 1};
    int n;
    const int code = cli_parse(&usage, argc, argv, &n);

    if (code != CLI_GO)
        return code;
    if (n > 1)
        return cli_fail(CLI_USAGE, "'%s': one file at a time", argv[1]);
    return n == 0 ? info_machine(json) : info_file(argv[0], json);
}
