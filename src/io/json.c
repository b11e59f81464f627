/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of JSON. An escape is never shorter than what it stands for, so a
 * decoded string fits where the encoded one stood. */
#include "io/json.h"

#include <string.h>

#include "core/checked.h"
#include "core/diag.h"
#include "core/utf8.h"
#include "io/unicode.h"

#define JSON_REQUIRE(json, condition, ...)                                    \
    ATTN__REQUIRE(condition, (json)->diag, ATTN_E_FORMAT, "file",             \
                  __VA_ARGS__)

/* The four blanks of RFC 8259, section 2. */
static void skip_space(attn__json *json)
{
    while (json->at < json->n &&
           memchr(" \t\n\r", json->text[json->at], 4) != NULL)
        json->at++;
}

bool attn__json_accept(attn__json *json, char c)
{
    skip_space(json);
    if (json->at == json->n || json->text[json->at] != c)
        return false;
    json->at++;
    return true;
}

attn_status attn__json_expect(attn__json *json, char c)
{
    JSON_REQUIRE(json, attn__json_accept(json, c),
                 "header: byte %lld: '%c' must come here",
                 (long long)json->at, c);
    return ATTN_OK;
}

attn_status attn__json_end(attn__json *json)
{
    skip_space(json);
    JSON_REQUIRE(json, json->at == json->n,
                 "header: byte %lld: goes on behind its end",
                 (long long)json->at);
    return ATTN_OK;
}

attn_status attn__json_more(attn__json *json, char close, bool *more)
{
    *more = attn__json_accept(json, ',');
    return *more ? ATTN_OK : attn__json_expect(json, close);
}

/* ---------------------------------------------------------------- strings */

/* Four hexadecimal digits at `at`, or -1. */
static int32_t four_digits(const attn__json *json, int64_t at)
{
    int32_t value = 0;

    if (json->n - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const char c = json->text[at + i];
        const int32_t digit = c >= '0' && c <= '9'   ? c - '0'
                              : c >= 'a' && c <= 'f' ? c - 'a' + 10
                              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                     : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* The code point of the \u escape whose digits stand at json->at; 0 for none,
 * or for half a surrogate pair. */
static uint32_t unicode_escape(attn__json *json)
{
    const int32_t first = four_digits(json, json->at);
    int32_t second;

    json->at += 4;
    if (first < 0xd800 || first >= 0xe000)
        return first > 0 ? (uint32_t)first : 0;
    if (first >= 0xdc00 || json->n - json->at < 6 ||
        memcmp(json->text + json->at, "\\u", 2) != 0)
        return 0;
    second = four_digits(json, json->at + 2);
    json->at += 6;
    if (second < 0xdc00 || second >= 0xe000)
        return 0;
    return 0x10000u + ((uint32_t)(first - 0xd800) << 10) +
           (uint32_t)(second - 0xdc00);
}

/* The code point of an escape, json->at behind the backslash; 0 for none. */
static uint32_t escape(attn__json *json)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char c = json->at < json->n ? json->text[json->at++] : '\0';
    const char *found = c ? strchr(letters, c) : NULL;

    if (c == 'u')
        return unicode_escape(json);
    return found ? (uint32_t)meanings[found - letters] : 0;
}

/* The closing quote is where the terminator may go: the decoded string is
 * never longer than the encoded one. Bytes are looked at once and in order, so
 * what is decoded is never decoded again. */
attn_status attn__json_string(attn__json *json, char **string)
{
    char *to;

    ATTN__TRY(attn__json_expect(json, '"'));
    *string = to = json->text + json->at;
    while (json->at < json->n && json->text[json->at] != '"') {
        const int64_t at = json->at;
        uint32_t point = 0;
        int size;

        if (json->text[at] == '\\') {
            json->at++;
            point = escape(json);
            JSON_REQUIRE(json, point > 0, "header: byte %lld: no escape of a "
                         "character", (long long)at);
            to += attn__utf8_encode(point, to);
            continue;
        }
        size = attn__utf8_decode((const uint8_t *)json->text + at,
                                 json->n - at, &point);
        JSON_REQUIRE(json, size > 0 && point >= 0x20, "header: byte %lld: no "
                     "UTF-8, or a control character", (long long)at);
        memmove(to, json->text + at, (size_t)size);
        to += size;
        json->at += size;
    }
    JSON_REQUIRE(json, json->at < json->n, "header: ends in a string");
    json->at++;
    *to = '\0';
    return ATTN_OK;
}

/* ---------------------------------------------------------------- numbers */

static bool is_digit(const attn__json *json, int64_t at)
{
    return at < json->n && json->text[at] >= '0' && json->text[at] <= '9';
}

/* Digits to the end even where the value overflows: the two failures are told
 * apart, and "1e3" and "1.0" are no counts although JSON calls them numbers. */
attn_status attn__json_count(attn__json *json, int64_t *value)
{
    int64_t begin;
    bool fits = true;

    skip_space(json);
    begin = json->at;
    for (*value = 0; is_digit(json, json->at); json->at++)
        fits = fits && attn__mul_i64(*value, 10, value) &&
               attn__add_i64(*value, json->text[json->at] - '0', value);
    JSON_REQUIRE(json, json->at > begin &&
                     (json->text[begin] != '0' || json->at == begin + 1) &&
                     (json->at == json->n ||
                      !memchr(".eE", json->text[json->at], 3)),
                 "header: byte %lld: a whole number from 0 on must come here",
                 (long long)begin);
    ATTN__REQUIRE(fits, json->diag, ATTN_E_OVERFLOW, "file",
                  "header: byte %lld: a number above 2^63 - 1",
                  (long long)begin);
    return ATTN_OK;
}
