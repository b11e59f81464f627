/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing --rope. One table has every key that is a number. */
#include <stdlib.h>
#include <string.h>

#include "rope_option.h"
#include "words.h"

#define PARTS 32

#define REAL(field) offsetof(attn_rope_desc, field), true
#define WHOLE(field) offsetof(attn_rope_desc, field), false

static const struct {
    const char *key;
    size_t offset;
    bool is_real; /* double, else int64_t */
} keys[] = {
    {"base", REAL(base)},
    {"rope_theta", REAL(base)},
    {"factor", REAL(factor)},
    {"attention_factor", REAL(attention_factor)},
    {"beta_fast", REAL(beta_fast)},
    {"beta_slow", REAL(beta_slow)},
    {"mscale", REAL(mscale)},
    {"mscale_all_dim", REAL(mscale_all_dim)},
    {"low_freq_factor", REAL(low_freq_factor)},
    {"high_freq_factor", REAL(high_freq_factor)},
    {"rotary_dim", WHOLE(rotary_dim)},
    {"original_max_position", WHOLE(original_max_position)},
    {"original_max_position_embeddings", WHOLE(original_max_position)},
    {"max_position", WHOLE(max_position)},
    {"max_position_embeddings", WHOLE(max_position)},
    {"seq_len", WHOLE(seq_len)},
};

/* In the order of attn_rope_scaling. */
static const char *const scalings[] = {"plain", "linear",   "dynamic", "ntk",
                                       "yarn",  "longrope", "llama3"};

/* "1:1.5:2" */
static int factors(const char *name, const char *key, char *text,
                   double *values, int64_t *n)
{
    char *part = text;
    int64_t found = 0;

    while (part) {
        char *end = strchr(part, ':');
        int code;

        if (end)
            *end++ = '\0';
        if (found == CLI_ROPE_FACTORS)
            return cli_fail(CLI_USAGE, "--%s: %s has more than %d numbers",
                            name, key, CLI_ROPE_FACTORS);
        code = cli_number(name, part, &values[found++]);
        if (code != CLI_GO)
            return code;
        part = end;
    }
    if (*n != 0 && *n != found)
        return cli_fail(CLI_USAGE, "--%s: short_factor and long_factor have "
                        "different lengths, %lld and %lld", name,
                        (long long)*n, (long long)found);
    *n = found;
    return CLI_GO;
}

static int number(const char *name, const char *key, const char *value,
                  cli_rope *rope)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char *field = (char *)&rope->desc + keys[i].offset;

        if (strcmp(key, keys[i].key) != 0)
            continue;
        return keys[i].is_real
                   ? cli_number(name, value, (double *)(void *)field)
                   : cli_integer(name, value, 0, INT64_MAX,
                                 (int64_t *)(void *)field);
    }
    return cli_fail(CLI_USAGE, "--%s: '%s' is no key of rope", name, key);
}

static int pair(const char *name, const char *key, char *value, cli_rope *rope)
{
    static const char *const truth[] = {"true", "false"};
    int choice = 0, code;

    if (strcmp(key, "scaling") == 0 || strcmp(key, "rope_type") == 0 ||
        strcmp(key, "type") == 0) {
        code = cli_choice(name, value, scalings, 7, &choice);
        rope->desc.scaling = (attn_rope_scaling)choice;
        return code;
    }
    if (strcmp(key, "truncate") == 0) {
        code = cli_choice(name, value, truth, 2, &choice);
        rope->desc.no_truncate = choice;
        return code;
    }
    if (strcmp(key, "short_factor") == 0)
        return factors(name, key, value, rope->short_factor,
                       &rope->desc.n_factors);
    if (strcmp(key, "long_factor") == 0)
        return factors(name, key, value, rope->long_factor,
                       &rope->desc.n_factors);
    return number(name, key, value, rope);
}

static int word(const char *name, char *text, cli_rope *rope)
{
    char *equals = strchr(text, '=');

    if (equals) {
        *equals = '\0';
        return pair(name, text, equals + 1, rope);
    }
    if (strcmp(text, "interleaved") == 0 || strcmp(text, "half") == 0) {
        rope->desc.interleaved = text[0] == 'i';
        return CLI_GO;
    }
    return cli_fail(CLI_USAGE,
                    "--%s: '%s' is neither interleaved, half nor KEY=VALUE",
                    name, text);
}

int cli_rope_parse(const char *name, const char *text, cli_rope *rope)
{
    char *copy, *parts[PARTS];
    int n, code = CLI_GO;

    memset(rope, 0, sizeof *rope);
    rope->given = true;
    attn_rope_init(&rope->desc);
    copy = strdup(text);
    if (!copy)
        return cli_no_memory();
    n = cli_split(copy, ',', parts, PARTS);
    if (n > PARTS)
        code = cli_fail(CLI_USAGE, "--%s: more than %d keys", name, PARTS);
    for (int i = 0; i < n && code == CLI_GO; i++)
        code = word(name, parts[i], rope);
    free(copy);
    return code;
}

attn_rope_desc cli_rope_desc(const cli_rope *rope)
{
    attn_rope_desc desc = rope->desc;

    if (desc.n_factors > 0) {
        desc.short_factor = rope->short_factor;
        desc.long_factor = rope->long_factor;
    }
    return desc;
}
