/* SPDX-License-Identifier: Apache-2.0
 *
 * attn VERB: finds the verb and runs it. A new verb is a line in verbs.def and
 * a file cmd_<verb>.c. */
#include <stdio.h>
#include <string.h>

#include "attn.h"
#include "cli.h"
#include "nearest.h"
#include "progress.h"

static const cli_verb verbs[] = {
#define CLI_VERB(name, help) {#name, help, cmd_##name},
#include "verbs.def"
#undef CLI_VERB
};

static void print_help(FILE *to)
{
    fputs("usage: attn VERB [ARGUMENT]...\n\n", to);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        fprintf(to, "  %-8s %s\n", verbs[i].name, verbs[i].help);
    fputs("\nattn VERB --help tells more. Exit codes: 0 fine, 1 a finding, "
          "2 usage, 3 input.\n",
          to);
}

/* The verbs as `attn VERB --words` has options, for completions. */
static void print_words(void)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        printf("%s\t\t%s\n", verbs[i].name, verbs[i].help);
}

static int print_version(void)
{
    const uint32_t v = attn_version();

    printf("attn %u.%u.%u\n", (unsigned)(v >> 16), (unsigned)(v >> 8 & 0xff),
           (unsigned)(v & 0xff));
    return CLI_OK;
}

/* What was printed may not have arrived, as on a full disk. */
static int finish(int code)
{
    bool lost;

    cli_progress_end();
    lost = fflush(stdout) != 0 || ferror(stdout);
    return lost ? cli_fail(CLI_INPUT, "cannot write to stdout") : code;
}

static int no_verb(const char *word)
{
    cli_nearest nearest = {word, strlen(word), NULL, 0};
    char hint[64];

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        cli_nearest_offer(&nearest, verbs[i].name);
    cli_nearest_text(&nearest, "", hint, sizeof hint);
    return cli_fail(CLI_USAGE, "'%s' is no verb; attn --help lists them%s",
                    word, hint);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return finish(CLI_OK);
    }
    if (strcmp(argv[1], "--words") == 0) {
        print_words();
        return finish(CLI_OK);
    }
    if (strcmp(argv[1], "--version") == 0)
        return finish(print_version());
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(argv[1], verbs[i].name) == 0) {
            cli_speak_as(verbs[i].name);
            return finish(verbs[i].run(argc - 1, argv + 1));
        }
    }
    return no_verb(argv[1]);
}
