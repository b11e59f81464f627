/* SPDX-License-Identifier: Apache-2.0
 *
 * The dictionary in a .npy header. It is a Python literal, but not any: the
 * grammar below is all that is accepted, read by hand, never evaluated.
 *
 *   header  = "{" [ item { "," item } [ "," ] ] "}" { " " } newline
 *   item    = "'descr'" ":" ( string | list )       list: structured, refused
 *           | "'fortran_order'" ":" ( "True" | "False" )
 *           | "'shape'" ":" "(" [ number "," [ numbers [ "," ] ] ] ")"
 *   numbers = number { "," number }
 *
 * with blanks between tokens, each item exactly once, in any order. */
#include <string.h>

#include "core/checked.h"
#include "core/diag.h"
#include "io/npy_header.h"

/* Nesting of a structured descr; NumPy writes four levels at most for one
 * nested record, and whatever is inside is refused anyway. */
#define MAX_NESTING 8

/* What is left to read, and what a failure needs to say where it was. */
typedef struct cursor {
    const char *start, *at, *end;
    int major;
    const char *name;
    attn_diag *diag;
} cursor;

/* A part of the header's text; not terminated. */
typedef struct slice {
    const char *text;
    size_t n;
} slice;

/* Every place where the grammar can fail says what it expected and at which
 * byte. */
static attn_status syntax(const cursor *c, const char *expected)
{
    return attn__fail(c->diag, ATTN_E_FORMAT, c->name,
                      "byte %lld of the header's dictionary: expected %s",
                      (long long)(c->at - c->start), expected);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Python allows more kinds of blanks; NumPy writes one. */
static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' ||
                              *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

/* Skip blanks, then `token` if it comes next. */
static bool take(cursor *c, const char *token)
{
    const size_t n = strlen(token);

    skip_space(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, token, n) != 0)
        return false;
    c->at += n;
    return true;
}

/* A quoted string without escapes; `string` is what the quotes hold. */
static bool take_string(cursor *c, slice *string)
{
    const char *close;
    char quote;

    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return false;
    quote = *c->at;
    close = memchr(c->at + 1, quote, (size_t)(c->end - c->at - 1));
    if (!close || memchr(c->at, '\\', (size_t)(close - c->at)) ||
        memchr(c->at, '\n', (size_t)(close - c->at)))
        return false;
    *string = (slice){c->at + 1, (size_t)(close - c->at - 1)};
    c->at = close + 1;
    return true;
}

/* A list as NumPy writes structured types: strings, numbers, tuples, lists.
 * Only brackets are matched: it is refused in any case, but a file that is
 * no list at all shall be told so. */
static attn_status skip_list(cursor *c)
{
    char closers[MAX_NESTING];
    int depth = 0;
    slice string;

    do {
        skip_space(c);
        if (c->at == c->end)
            return syntax(c, "the end of a list");
        if (*c->at == '[' || *c->at == '(') {
            if (depth == MAX_NESTING)
                return syntax(c, "less nesting");
            closers[depth++] = *c->at++ == '[' ? ']' : ')';
        } else if (*c->at == closers[depth - 1]) {
            depth--;
            c->at++;
        } else if (*c->at == ',' || is_digit(*c->at)) {
            c->at++;
        } else if (!take_string(c, &string)) {
            return syntax(c, "a list of strings and tuples");
        }
    } while (depth > 0);
    return ATTN_OK;
}

/* Digits without a sign, as a shape has them. */
static attn_status take_number(cursor *c, int64_t *value)
{
    skip_space(c);
    if (c->at == c->end || !is_digit(*c->at))
        return syntax(c, "a number >= 0");
    if (*c->at == '0' && c->at + 1 < c->end && is_digit(c->at[1]))
        return syntax(c, "a number without leading zeros");
    *value = 0;
    for (; c->at < c->end && is_digit(*c->at); c->at++)
        ATTN__REQUIRE(attn__mul_i64(*value, 10, value) &&
                          attn__add_i64(*value, *c->at - '0', value),
                      c->diag, ATTN_E_OVERFLOW, c->name,
                      "shape has a number above 2^63 - 1");
    /* Python 2 wrote long integers with a suffix; version 3 came later. */
    if (c->major < 3 && c->at < c->end && *c->at == 'L')
        c->at++;
    return ATTN_OK;
}

/* Axes beyond ATTN_ARRAY_MAX_RANK are counted, not kept. */
static attn_status take_shape(cursor *c, attn__npy_header *header)
{
    if (!take(c, "("))
        return syntax(c, "a tuple");
    while (!take(c, ")")) {
        int64_t size = 0;

        ATTN__TRY(take_number(c, &size));
        if (header->rank < ATTN_ARRAY_MAX_RANK)
            header->shape[header->rank] = size;
        header->rank++;
        if (take(c, ","))
            continue;
        /* "(3)" is a number to Python: one axis needs its comma. */
        if (header->rank == 1 || !take(c, ")"))
            return syntax(c, "','");
        break;
    }
    return ATTN_OK;
}

/* The type string is kept as text: what it means is npy_type.c's business. */
static attn_status take_descr(cursor *c, slice *descr)
{
    skip_space(c);
    if (c->at < c->end && *c->at == '[') {
        descr->text = c->at;
        ATTN__TRY(skip_list(c));
        descr->n = (size_t)(c->at - descr->text);
        return ATTN_OK;
    }
    return take_string(c, descr) ? ATTN_OK : syntax(c, "a string or a list");
}

/* Python's two words, not 0 or 1, which NumPy refuses too. */
static attn_status take_order(cursor *c, bool *fortran)
{
    if (take(c, "True"))
        *fortran = true;
    else if (take(c, "False"))
        *fortran = false;
    else
        return syntax(c, "True or False");
    return ATTN_OK;
}

static const char *const keys[] = {"descr", "fortran_order", "shape"};

/* One "key: value"; `seen` has a bit per key. */
static attn_status take_item(cursor *c, attn__npy_header *header, slice *descr,
                             unsigned *seen)
{
    slice key;
    size_t k = 0;

    if (!take_string(c, &key))
        return syntax(c, "a key");
    while (k < 3 && (key.n != strlen(keys[k]) ||
                     memcmp(key.text, keys[k], key.n) != 0))
        k++;
    ATTN__REQUIRE(k < 3, c->diag, ATTN_E_FORMAT, c->name,
                  "the header's dictionary has a key other than descr, "
                  "fortran_order and shape");
    ATTN__REQUIRE(!(*seen & 1u << k), c->diag, ATTN_E_DUPLICATE, c->name,
                  "the header's dictionary has '%s' twice", keys[k]);
    *seen |= 1u << k;
    if (!take(c, ":"))
        return syntax(c, "':'");
    if (k == 0)
        return take_descr(c, descr);
    return k == 1 ? take_order(c, &header->fortran) : take_shape(c, header);
}

/* count and data_size from shape and type. A zero axis makes the count zero,
 * but the other axes must still fit, as NumPy wants it. */
static attn_status measure(attn__npy_header *header, const char *name,
                           attn_diag *diag)
{
    int64_t size = header->type.item_size;

    header->count = 1;
    for (int32_t a = 0; a < header->rank; a++) {
        header->count *= header->shape[a] > 0;
        ATTN__REQUIRE(header->shape[a] == 0 ||
                          attn__mul_i64(size, header->shape[a], &size),
                      diag, ATTN_E_OVERFLOW, name,
                      "the product of shape and element size exceeds 2^63 - 1");
    }
    header->data_size = header->count * size;
    header->count = header->data_size / header->type.item_size;
    return ATTN_OK;
}

/* Syntax first, then types and sizes: a file that is no .npy at all is told
 * so, whatever else would be wrong with it. */
attn_status attn__npy_dict_parse(const char *text, size_t n, int major,
                                 attn__npy_header *header, const char *name,
                                 attn_diag *diag)
{
    cursor c = {text, text, text + n, major, name, diag};
    slice descr = {NULL, 0};
    unsigned seen = 0;

    memset(header, 0, sizeof *header);
    if (n == 0 || text[n - 1] != '\n')
        return attn__fail(diag, ATTN_E_FORMAT, name,
                          "the header does not end in a newline");
    if (*text != '{')
        return syntax(&c, "'{'");
    c.at++;
    while (!take(&c, "}")) {
        ATTN__TRY(take_item(&c, header, &descr, &seen));
        if (take(&c, ","))
            continue;
        if (!take(&c, "}"))
            return syntax(&c, "',' or '}'");
        break;
    }
    while (c.at < c.end && *c.at == ' ')
        c.at++;
    if (c.at != c.end - 1)
        return syntax(&c, "blanks and a newline");
    ATTN__REQUIRE(seen == 7, diag, ATTN_E_FORMAT, name,
                  "the header's dictionary lacks '%s'",
                  keys[!(seen & 1) ? 0 : !(seen & 2) ? 1 : 2]);
    if (descr.text[0] == '[') {
        memcpy(header->type.format, "structured", sizeof "structured");
        return attn__fail(diag, ATTN_E_UNSUPPORTED, name,
                          "is an array of records; save its fields as arrays");
    }
    ATTN__TRY(attn__npy_type_parse(descr.text, descr.n, &header->type, name,
                                   diag));
    ATTN__REQUIRE(header->rank <= ATTN_ARRAY_MAX_RANK, diag, ATTN_E_LIMIT,
                  name, "has %d axes; at most %d are read", (int)header->rank,
                  ATTN_ARRAY_MAX_RANK);
    return measure(header, name, diag);
}
