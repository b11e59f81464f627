/* SPDX-License-Identifier: Apache-2.0
 *
 * attn lab: runs one of the experiments of attn_lab.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab_verb.h"
#include "nearest.h"
#include "picture_out.h"
#include "print_arrays.h"
#include "progress.h"
#include "words.h"

typedef struct lab_options {
    attn_lab_data data;
    int64_t batch, head;
    const char *plot;
    bool json;
} lab_options;

/* ----------------------------------------------------------------- options */

static int set_seed(void *target, const char *name, const char *value)
{
    int64_t seed = 0;
    const int code = cli_integer(name, value, 0, INT64_MAX, &seed);

    ((lab_options *)target)->data.seed = (uint64_t)seed;
    return code;
}

static int set_len(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 4096,
                       &((lab_options *)target)->data.len);
}

static int set_dim(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 1024,
                       &((lab_options *)target)->data.dim);
}

static int set_heads(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 1024,
                       &((lab_options *)target)->data.heads);
}

static int set_head(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 0, INT32_MAX,
                       &((lab_options *)target)->head);
}

static int set_batch(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 0, INT32_MAX,
                       &((lab_options *)target)->batch);
}

static int set_plot(void *target, const char *name, const char *value)
{
    (void)name;
    ((lab_options *)target)->plot = value;
    return cli_picture_path("--plot", value);
}

static int set_json(void *target, const char *name, const char *value)
{
    (void)name;
    (void)value;
    ((lab_options *)target)->json = true;
    return CLI_GO;
}

static const cli_option options[] = {
    {"seed", "=N", "of random data; default 0", set_seed},
    {"len", "=N", "tokens of random data", set_len},
    {"dim", "=N", "numbers in a query", set_dim},
    {"heads", "=H", "of the experiment heads; default 4", set_heads},
    {"head", "=H", "which head of a file's q, k and v; default 0", set_head},
    {"batch", "=B", "default 0", set_batch},
    {"plot", "=A.png|A.svg", "also draw it", set_plot},
    {"json", NULL, "the table as JSON", set_json},
};

static const char about[] =
    "Runs a classic experiment on attention: a table, and what it teaches.\n"
    "attn lab alone lists them.\n\n"
    "IN is as in attn run: either q, k and v (self-attention), or x with any\n"
    "of w_q, w_k and w_v, (d_in, d_out), applied as x @ w. What is not given\n"
    "is random, the same for the same --seed.\n";

static const char *const known[] = {"q", "k", "v", "x", "w_q", "w_k", "w_v",
                                    "tokens", NULL};

/* -------------------------------------------------------------------- verb */

static int list(void)
{
    for (int64_t i = 0; i < attn_lab_count(); i++)
        printf("%-12s %s\n", attn_lab_name(i), attn_lab_about(i));
    return CLI_OK;
}

static int list_as_json(void)
{
    cli_json_begin("lab-list-1");
    fputs(", \"experiments\": [", stdout);
    for (int64_t i = 0; i < attn_lab_count(); i++)
        printf("%s\n  {\"name\": \"%s\", \"about\": \"%s\"}", i > 0 ? "," : "",
               attn_lab_name(i), attn_lab_about(i));
    puts("\n]}");
    return CLI_OK;
}

static int check_name(const char *name)
{
    cli_nearest nearest = {name, strlen(name), NULL, 0};
    char hint[64];

    for (int64_t i = 0; i < attn_lab_count(); i++) {
        if (strcmp(attn_lab_name(i), name) == 0)
            return CLI_GO;
        cli_nearest_offer(&nearest, attn_lab_name(i));
    }
    cli_nearest_text(&nearest, "", hint, sizeof hint);
    return cli_fail(CLI_USAGE, "'%s' is no experiment; attn lab lists them%s",
                    name, hint);
}

static int experiment(const char *name, const lab_options *o)
{
    attn_lab_result result;
    attn_diag diag;
    int code = CLI_GO;

    cli_progress("computing", 0, 1);
    if (attn_lab_run(name, &o->data, &result, &diag) != ATTN_OK)
        return cli_refused(&diag);
    if (o->plot)
        code = cli_lab_plot(&result, o->plot, o->data.tokens);
    cli_progress_end();
    if (code == CLI_GO && o->json)
        cli_lab_json(name, &result);
    else if (code == CLI_GO)
        cli_lab_print(&result);
    attn_lab_free(&result);
    return code == CLI_GO ? CLI_OK : code;
}

int cmd_lab(int argc, char **argv)
{
    lab_options o = {.batch = 0};
    cli_inputs inputs = {NULL, 0, known};
    const cli_group group = {"Options:", options,
                             sizeof options / sizeof options[0], &o};
    const cli_usage usage = {"attn lab [NAME [IN]...] [OPTION]...", about,
                             &group, 1};
    void *memory = NULL;
    int n, code;

    attn_lab_data_init(&o.data);
    code = cli_parse(&usage, argc, argv, &n);
    if (code == CLI_GO && n == 0)
        return o.json ? list_as_json() : list();
    if (code == CLI_GO)
        code = check_name(argv[0]);
    if (code == CLI_GO && n > 1)
        code = cli_inputs_read(&inputs, known, argv + 1, n - 1);
    if (code == CLI_GO)
        code = cli_lab_take(&inputs, strcmp(argv[0], "heads") == 0, o.batch,
                            o.head, &o.data, &memory);
    if (code == CLI_GO)
        code = experiment(argv[0], &o);
    free(memory);
    cli_inputs_free(&inputs);
    return code;
}
