/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of attention options and its setters. Values that only the library
 * can judge (a NaN scale, a window of -5) are left to it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

static int set_scale(void *target, const char *name, const char *value)
{
    cli_attention *o = target;

    o->has_scale = true;
    return cli_number(name, value, &o->scale);
}

static int set_causal(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"top_left", "bottom_right"};
    int choice = -1; /* no corner */

    if (value && cli_choice(name, value, words, 2, &choice) != CLI_GO)
        return CLI_USAGE;
    ((cli_attention *)target)->causal =
        (cli_causal)(CLI_CAUSAL_TOP_LEFT + choice);
    return CLI_GO;
}

static int set_window(void *target, const char *name, const char *value)
{
    cli_attention *o = target;
    char text[64], *parts[2];

    if (strlen(value) >= sizeof text)
        return cli_fail(CLI_USAGE, "--%s: '%s' is not L,R", name, value);
    strcpy(text, value);
    if (cli_split(text, ',', parts, 2) != 2)
        return cli_fail(CLI_USAGE,
                        "--%s: '%s' is not L,R, two integers with -1 for "
                        "unbounded", name, value);
    if (cli_integer(name, parts[0], INT64_MIN, INT64_MAX, &o->window_left) !=
        CLI_GO)
        return CLI_USAGE;
    return cli_integer(name, parts[1], INT64_MIN, INT64_MAX, &o->window_right);
}

static int set_softcap(void *target, const char *name, const char *value)
{
    return cli_number(name, value, &((cli_attention *)target)->softcap);
}

static int set_empty_rows(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"zero", "nan"};
    int choice = 0;
    const int code = cli_choice(name, value, words, 2, &choice);

    ((cli_attention *)target)->empty_rows = (attn_empty_rows)choice;
    return code;
}

static int set_rope(void *target, const char *name, const char *value)
{
    return cli_rope_parse(name, value, &((cli_attention *)target)->rope);
}

/* A seed has all 64 bits. */
static int take_seed(const char *name, const char *text, uint64_t *seed)
{
    char *end;

    *seed = strtoull(text, &end, 10);
    if (strspn(text, "0123456789") != strlen(text) || !*text || *end ||
        strlen(text) > 20)
        return cli_fail(CLI_USAGE, "--%s: seed '%s' is not in 0 to 2^64 - 1",
                        name, text);
    return CLI_GO;
}

static int set_dropout(void *target, const char *name, const char *value)
{
    cli_attention *o = target;
    char text[128], *parts[3];
    int64_t offset = 0;
    int n = 0;

    if (strlen(value) < sizeof text) {
        strcpy(text, value);
        n = cli_split(text, ',', parts, 3);
    }
    if (n != 2 && n != 3)
        return cli_fail(CLI_USAGE, "--%s: '%s' is not P,SEED or P,SEED,OFFSET",
                        name, value);
    if (cli_number(name, parts[0], &o->dropout_p) != CLI_GO ||
        take_seed(name, parts[1], &o->seed) != CLI_GO ||
        (n == 3 && cli_integer(name, parts[2], 0, UINT32_MAX, &offset) !=
                       CLI_GO))
        return CLI_USAGE;
    o->offset = (uint32_t)offset;
    return CLI_GO;
}

static int set_dtype(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"f64", "f32", "bf16", "f16"};
    int choice = 0;
    const int code = cli_choice(name, value, words, 4, &choice);

    ((cli_attention *)target)->dtype = (attn_dtype)(ATTN_F64 + choice);
    return code;
}

static int set_precision(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"standard", "high"};
    int choice = 0;
    const int code = cli_choice(name, value, words, 2, &choice);

    ((cli_attention *)target)->precision = (attn_precision)choice;
    return code;
}

static int set_threads(void *target, const char *name, const char *value)
{
    return cli_integer(name, value, 1, 1024,
                       &((cli_attention *)target)->threads);
}

static int set_layout(void *target, const char *name, const char *value)
{
    static const char *const words[] = {"bhsd", "bshd"};
    int choice = 0;
    const int code = cli_choice(name, value, words, 2, &choice);

    ((cli_attention *)target)->bshd = choice == 1;
    return code;
}

static const cli_option options[] = {
    {"scale", "=X", "factor on q.k; default 1/sqrt(D)", set_scale},
    {"causal", "[=top_left|bottom_right]",
     "no key after the query; the corner is needed if q\n"
     "and k differ in length", set_causal},
    {"window", "=L,R", "keys from p - L to p + R; -1 = unbounded", set_window},
    {"softcap", "=X", "X tanh(score / X), before bias and mask", set_softcap},
    {"empty-rows", "=zero|nan", "o of a query that may see no key",
     set_empty_rows},
    {"rope", "=SPEC",
     "rotate q and k first; SPEC is a list of half or\n"
     "interleaved, base=X, rotary_dim=N, scaling=linear|\n"
     "dynamic|ntk|yarn|longrope|llama3, and its keys", set_rope},
    {"dropout", "=P,SEED[,OFFSET]", "drop weights by Philox4x32-10",
     set_dropout},
    {"layout", "=bhsd|bshd", "heads before or after the sequence axis",
     set_layout},
    {"dtype", "=f64|f32|bf16|f16", "convert q, k, v and do first", set_dtype},
    {"precision", "=standard|high", "of the weights inside bf16 and f16",
     set_precision},
    {"threads", "=N", "1 to 1024; results do not depend on it",
     set_threads},
};

void cli_attention_init(cli_attention *o)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);

    memset(o, 0, sizeof *o);
    o->window_left = o->window_right = -1;
    o->threads = processors < 1 ? 1 : processors > 1024 ? 1024 : processors;
}

cli_group cli_attention_group(cli_attention *target)
{
    return (cli_group){"Which attention:", options,
                       sizeof options / sizeof options[0], target};
}
