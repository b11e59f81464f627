/* SPDX-License-Identifier: Apache-2.0
 *
 * A reader of JSON for grammars that are fixed: the caller knows which value
 * must come next, so there is no tree, no depth and no memory. Strings are
 * decoded in place. The grammar is RFC 8259's; what is refused beyond it are
 * NUL characters. (A general parser would have its own memory, and would not
 * stop at the caller's limits.) */
#ifndef ATTN_IO_JSON_H
#define ATTN_IO_JSON_H

#include <stdbool.h>

#include "attn.h"

typedef struct attn__json {
    char *text; /* changed: decoded strings lie where they stood */
    int64_t n, at;
    attn_diag *diag;
} attn__json;

/* Skip space, and `c` if it comes next. Structure is walked with these and
 * `more`, by callers whose grammar bounds the depth. */
bool attn__json_accept(attn__json *json, char c);
/* The same, or E_FORMAT. */
attn_status attn__json_expect(attn__json *json, char c);
/* Only space until the end, or E_FORMAT. */
attn_status attn__json_end(attn__json *json);
/* A string: terminated UTF-8, which stays where it is, as long as the text. */
attn_status attn__json_string(attn__json *json, char **string);
/* A whole number from 0 on: E_FORMAT for others, E_OVERFLOW above 2^63 - 1. */
attn_status attn__json_count(attn__json *json, int64_t *value);
/* After an element of a list or object that ends with `close`: whether there
 * is one more. */
attn_status attn__json_more(attn__json *json, char close, bool *more);

#endif
