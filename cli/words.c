/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing command lines, and printing help from the same tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "words.h"

#define HELP_COLUMN 30

/* ------------------------------------------------------------------- help */

static void print_option(const cli_option *o)
{
    char words[128];
    const char *line = o->help;
    const int one_letter = o->name[1] == '\0';

    /* "-o X", but "--scale=X". */
    snprintf(words, sizeof words, "  %s%s%s%s", one_letter ? "-" : "--",
             o->name, one_letter && o->value ? " " : "",
             !o->value ? "" : one_letter ? o->value + 1 : o->value);
    printf("%-*s", HELP_COLUMN, words);
    if (strlen(words) >= HELP_COLUMN)
        printf("\n%*s", HELP_COLUMN, "");
    while (*line) {
        const int n = (int)strcspn(line, "\n");

        printf("%.*s\n", n, line);
        line += n + (line[n] == '\n');
        if (*line)
            printf("%*s", HELP_COLUMN, "");
    }
}

static void print_help(const cli_usage *usage)
{
    printf("usage: %s\n\n%s", usage->synopsis, usage->about);
    for (size_t g = 0; g < usage->n_groups; g++) {
        printf("\n%s\n", usage->groups[g].title);
        for (size_t i = 0; i < usage->groups[g].n; i++)
            print_option(&usage->groups[g].options[i]);
    }
}

/* The same for completions: "--name", what its value looks like and its help,
 * a line for each option, with tabs between. */
static void print_words(const cli_usage *usage)
{
    for (size_t g = 0; g < usage->n_groups; g++)
        for (size_t i = 0; i < usage->groups[g].n; i++) {
            const cli_option *o = &usage->groups[g].options[i];

            printf("%s%s\t%s\t", o->name[1] ? "--" : "-", o->name,
                   o->value ? o->value : "");
            for (const char *c = o->help; *c; c++)
                putchar(*c == '\n' ? ' ' : *c);
            putchar('\n');
        }
}

/* ---------------------------------------------------------------- parsing */

static const cli_option *find(const cli_usage *usage, const char *name,
                              size_t n, void **target)
{
    for (size_t g = 0; g < usage->n_groups; g++) {
        const cli_group *group = &usage->groups[g];

        for (size_t i = 0; i < group->n; i++) {
            const cli_option *o = &group->options[i];

            if (strlen(o->name) == n && memcmp(o->name, name, n) == 0) {
                *target = group->target;
                return o;
            }
        }
    }
    return NULL;
}

/* The option that was meant, perhaps. */
static int no_option(const cli_usage *usage, const char *verb,
                     const char *word, const char *name, size_t n)
{
    cli_nearest nearest = {name, n, NULL, 0};
    char hint[64];

    for (size_t g = 0; g < usage->n_groups; g++)
        for (size_t i = 0; i < usage->groups[g].n; i++)
            if (n > 1 && usage->groups[g].options[i].name[1])
                cli_nearest_offer(&nearest, usage->groups[g].options[i].name);
    cli_nearest_text(&nearest, "--", hint, sizeof hint);
    return cli_fail(CLI_USAGE, "%.*s: no such option (attn %s --help lists "
                    "them)%s", (int)(name + n - word), word, verb, hint);
}

/* Whether `word` is one of the values that "[=A|B]" offers. A value that may be
 * left out is looked for in the next word only where that can't be a file. */
static bool is_offered(const char *value, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = value + 2; *at; at += *at == '|') {
        const size_t length = strcspn(at, "|]");

        if (length == n && memcmp(at, word, n) == 0)
            return true;
        at += length;
        if (*at == ']')
            break;
    }
    return false;
}

/* The option at argv[*i]; *i moves on if its value is the next word. */
static int take_option(const cli_usage *usage, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    const bool is_long = word[1] == '-';
    const char *name = word + (is_long ? 2 : 1);
    const size_t n = is_long ? strcspn(name, "=") : 1;
    const char *value = NULL;
    void *target = NULL;
    const cli_option *o = find(usage, name, n, &target);

    if (!o || (is_long && n == 1))
        return no_option(usage, argv[0], word, name, n);
    if (is_long && name[n] == '=')
        value = name + n + 1;
    else if (!is_long && name[1])
        value = name + 1; /* -oOUT */
    if (value && !o->value)
        return cli_fail(CLI_USAGE, "--%s: takes no value, got '%s'", o->name,
                        value);
    if (!value && o->value && o->value[0] == '=') {
        if (*i + 1 == argc)
            return cli_fail(CLI_USAGE, "%s: needs a value, %s", word,
                            o->value + 1);
        value = argv[++*i];
    } else if (!value && o->value && *i + 1 < argc &&
               is_offered(o->value, argv[*i + 1])) {
        value = argv[++*i];
    }
    return o->set(target, o->name, value);
}

int cli_parse(const cli_usage *usage, int argc, char **argv, int *n)
{
    bool options = true;
    int code = CLI_GO, operands = 1;

    for (int i = 1; i < argc && code == CLI_GO; i++) {
        char *word = argv[i];

        if (!options || word[0] != '-' || word[1] == '\0') {
            argv[operands++] = word;
        } else if (strcmp(word, "--") == 0) {
            options = false;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            print_help(usage);
            code = CLI_OK;
        } else if (strcmp(word, "--words") == 0) {
            print_words(usage);
            code = CLI_OK;
        } else {
            code = take_option(usage, argc, argv, &i);
        }
    }
    *n = operands - 1;
    for (int i = 0; i < *n; i++)
        argv[i] = argv[i + 1];
    return code;
}

/* ----------------------------------------------------------------- values */

int cli_number(const char *name, const char *text, double *value)
{
    char *end;

    *value = strtod(text, &end);
    if (end == text || *end || strchr(" \t\n\v\f\r", text[0]))
        return cli_fail(CLI_USAGE, "--%s: '%s' is not a number", name, text);
    return CLI_GO;
}

int cli_integer(const char *name, const char *text, int64_t least,
                int64_t most, int64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoll(text, &end, 10);
    if (end == text || *end || strchr(" \t\n\v\f\r", text[0]))
        return cli_fail(CLI_USAGE, "--%s: '%s' is not an integer", name, text);
    if (errno == ERANGE || *value < least || *value > most)
        return cli_fail(CLI_USAGE, "--%s: %s is not in %lld to %lld", name,
                        text, (long long)least, (long long)most);
    return CLI_GO;
}

int cli_choice(const char *name, const char *text, const char *const *words,
               int n, int *value)
{
    char list[128] = "";

    for (int i = 0; i < n; i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i;
            return CLI_GO;
        }
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                 i == 0 ? "" : i == n - 1 ? " or " : ", ", words[i]);
    }
    return cli_fail(CLI_USAGE, "--%s: '%s' is not %s", name, text, list);
}

int cli_split(char *text, char separator, char **parts, int n)
{
    int found = 0;

    for (;;) {
        char *end = strchr(text, separator);

        if (found == n)
            return n + 1;
        parts[found++] = text;
        if (!end)
            return found;
        *end = '\0';
        text = end + 1;
    }
}
