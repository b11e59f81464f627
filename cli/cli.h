/* SPDX-License-Identifier: Apache-2.0
 *
 * What every verb sees: exit codes, and how to talk. Data goes to stdout, talk
 * to stderr, each line with the verb's name. */
#ifndef ATTN_CLI_H
#define ATTN_CLI_H

#include <stdbool.h>

#include "attn.h"

#if defined(__GNUC__)
#define CLI_PRINTF(format_index, first_arg)                                   \
    __attribute__((format(printf, format_index, first_arg)))
#else
#define CLI_PRINTF(format_index, first_arg)
#endif

enum {
    CLI_GO = -1,     /* nothing to report yet: go on */
    CLI_OK = 0,      /* fine */
    CLI_FINDING = 1, /* a bug or a difference was found */
    CLI_USAGE = 2,   /* words, or shapes and options, that contradict */
    CLI_INPUT = 3    /* something could not be read, run or written */
};

typedef struct cli_verb {
    const char *name, *help;
    /* argv[0] is the verb. Returns the exit code. */
    int (*run)(int argc, char **argv);
} cli_verb;

#define CLI_VERB(name, help) int cmd_##name(int argc, char **argv);
#include "verbs.def"
#undef CLI_VERB

/* The name that the lines below begin with; main sets it. */
void cli_speak_as(const char *verb);
/* "attn VERB: ..." on stderr; returns `code`. */
int cli_fail(int code, const char *format, ...) CLI_PRINTF(2, 3);
/* "attn VERB: note: ..." on stderr. */
void cli_note(const char *format, ...) CLI_PRINTF(1, 2);
/* The library's refusal as "attn VERB: field: sentence": usage, or if nobody
 * is to blame (memory, the system) input. */
int cli_refused(const attn_diag *diag);
/* The same for a file that could not be read: "attn VERB: PATH: sentence". */
int cli_file_refused(const char *path, const attn_diag *diag);
int cli_no_memory(void);
/* Whether stdout is a terminal that wants colour. */
bool cli_colour(void);

#endif
