/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines to stderr. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "progress.h"

static const char *speaker = "attn";

void cli_speak_as(const char *verb)
{
    speaker = verb;
}

static void say(const char *kind, const char *format, va_list args)
{
    cli_progress_end();
    fprintf(stderr, strcmp(speaker, "attn") ? "attn %s: %s" : "%s: %s", speaker,
            kind);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int cli_fail(int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say("", format, args);
    va_end(args);
    return code;
}

void cli_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say("note: ", format, args);
    va_end(args);
}

/* C's names for what the command calls otherwise. */
static const char *our_name(const char *field)
{
    return strcmp(field, "d_o") == 0 ? "do" : field;
}

int cli_refused(const attn_diag *diag)
{
    const bool blameless = diag->status == ATTN_E_NOMEM ||
                           diag->status == ATTN_E_IO ||
                           diag->status == ATTN_E_WORKSPACE;

    return cli_fail(blameless ? CLI_INPUT : CLI_USAGE, "%s: %s",
                    our_name(diag->field), diag->message);
}

int cli_file_refused(const char *path, const attn_diag *diag)
{
    if (strcmp(diag->field, "file") == 0)
        return cli_fail(CLI_INPUT, "%s: %s", path, diag->message);
    return cli_fail(CLI_INPUT, "%s: %s: %s", path, diag->field, diag->message);
}

int cli_no_memory(void)
{
    return cli_fail(CLI_INPUT, "out of memory");
}

bool cli_colour(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && !(no && *no) &&
           !(term && strcmp(term, "dumb") == 0);
}
