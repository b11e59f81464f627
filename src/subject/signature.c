/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a signature. */
#include "subject/signature.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/diag.h"

static const struct {
    const char *name;
    attn_dtype dtype;
} types[] = {
    {"f64", ATTN_F64},     {"double", ATTN_F64}, {"float64", ATTN_F64},
    {"f32", ATTN_F32},     {"float", ATTN_F32},  {"float32", ATTN_F32},
    {"f16", ATTN_F16},     {"bool", ATTN_BOOL},  {"u8", ATTN_BOOL},
    {"i32", ATTN_I32},     {"int", ATTN_I32},    {"int32", ATTN_I32},
    {"i64", ATTN_I64},     {"long", ATTN_I64},   {"int64", ATTN_I64},
    {"size_t", ATTN_I64},
};

static const char *const outputs[] = {"out", "o", "output", "y", "result"};

static const char *skip(const char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

/* A word of letters, digits and underscores; cut to fit. */
static const char *word(const char *text, char *to, size_t size)
{
    size_t n = 0;

    text = skip(text);
    while (isalnum((unsigned char)*text) || *text == '_') {
        if (n + 1 < size)
            to[n++] = *text;
        text++;
    }
    to[n] = '\0';
    return skip(text);
}

static attn_status refuse(attn_diag *diag, const char *at, const char *rule)
{
    return attn__fail(diag, ATTN_E_ARG, "signature", "at '%.40s': %s", at,
                      rule);
}

static bool find_type(const char *name, attn_dtype *dtype)
{
    for (size_t x = 0; x < sizeof types / sizeof types[0]; x++) {
        if (strcmp(types[x].name, name) == 0) {
            *dtype = types[x].dtype;
            return true;
        }
    }
    return false;
}

static attn_status parse_lengths(attn__argument *a, const char **at,
                                 attn_diag *diag)
{
    const char *text = *at + 1; /* behind '[' */

    a->is_array = true;
    for (;;) {
        if (a->rank == ATTN__MOST_LENGTHS)
            return refuse(diag, text, "at most four lengths");
        text = word(text, a->lengths[a->rank], sizeof a->lengths[0]);
        if (!*a->lengths[a->rank])
            return refuse(diag, text, "a length is missing");
        a->rank++;
        if (*text == ']')
            break;
        if (*text != ',')
            return refuse(diag, text, "',' or ']' is wanted");
        text++;
    }
    *at = skip(text + 1);
    return ATTN_OK;
}

static attn_status parse_argument(attn__argument *a, const char **at,
                                  attn_diag *diag)
{
    char type[16];
    const char *text = word(*at, a->name, sizeof a->name);

    if (!*a->name)
        return refuse(diag, text, "a name is missing");
    *at = text;
    text = word(text, type, sizeof type);
    if (!find_type(type, &a->dtype))
        return refuse(diag, *at,
                      "a type is f64, f32, f16, bool, i32, i64, int or long");
    *at = text;
    if (*text == '[')
        ATTN__TRY(parse_lengths(a, at, diag));
    for (size_t x = 0; a->is_array && x < sizeof outputs / sizeof outputs[0];
         x++)
        a->is_output |= strcmp(a->name, outputs[x]) == 0;
    return ATTN_OK;
}

/* Scalars that are named as a length of some array. */
static void mark_lengths(attn__signature *s)
{
    for (int32_t x = 0; x < s->n; x++) {
        attn__argument *a = &s->arguments[x];

        for (int32_t y = 0; !a->is_array && y < s->n; y++) {
            const attn__argument *b = &s->arguments[y];

            for (int32_t r = 0; r < b->rank; r++)
                a->is_length |= strcmp(a->name, b->lengths[r]) == 0;
        }
    }
}

attn_status attn__signature_parse(attn__signature *s, const char *text,
                                  attn_diag *diag)
{
    bool writes = false;

    *s = (attn__signature){.n = 0};
    for (;;) {
        if (s->n == ATTN__MOST_ARGUMENTS)
            return refuse(diag, text, "too many parameters");
        ATTN__TRY(parse_argument(&s->arguments[s->n], &text, diag));
        writes |= s->arguments[s->n++].is_output;
        if (!*text)
            break;
        if (*text != ',')
            return refuse(diag, text, "',' is wanted");
        text++;
    }
    mark_lengths(s);
    if (!writes)
        return refuse(diag, text, "no array is named out");
    return attn__ok(diag);
}
