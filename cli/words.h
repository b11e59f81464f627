/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of a command line: options from tables, everything else operands.
 * An option is one row; its help is printed from the same row. */
#ifndef ATTN_CLI_WORDS_H
#define ATTN_CLI_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "cli.h"

typedef struct cli_option {
    const char *name;  /* without dashes; one letter takes one dash */
    const char *value; /* NULL: none; "=X": needed; "[=A|B]": may be left out */
    const char *help;
    /* Put `value` (NULL where left out) into `target`; CLI_GO or, having said
     * why, an exit code. */
    int (*set)(void *target, const char *name, const char *value);
} cli_option;

/* A table of options and what their setters write to. */
typedef struct cli_group {
    const char *title;
    const cli_option *options;
    size_t n;
    void *target;
} cli_group;

/* How a verb is called. */
typedef struct cli_usage {
    const char *synopsis; /* after "usage: " */
    const char *about;    /* paragraphs after it */
    const cli_group *groups;
    size_t n_groups;
} cli_usage;

/* Go through argv[1..]. Operands are moved to the front of argv, argv[0..] on
 * return, *n of them. "--name=X" and "--name X" are the same; the last one
 * given counts; "--" ends the options; --help prints and ends with CLI_OK, and
 * so does --words, which is --help for the shells' completions. */
int cli_parse(const cli_usage *usage, int argc, char **argv, int *n);

/* The value of option `name` as a number, whole, or complain. */
int cli_number(const char *name, const char *text, double *value);
int cli_integer(const char *name, const char *text, int64_t least,
                int64_t most, int64_t *value);
/* The index of `text` in the n words, or complain. */
int cli_choice(const char *name, const char *text, const char *const *words,
               int n, int *value);
/* Cut text (changed) at `separator` into at most n parts. Returns how many
 * there are, n + 1 for more than n. */
int cli_split(char *text, char separator, char **parts, int n);

#endif
