/* SPDX-License-Identifier: Apache-2.0
 *
 * NumPy's type strings, such as "<f4": byte order, kind, bytes. */
#include "io/npy_header.h"

#include <string.h>

#include "core/checked.h"
#include "core/diag.h"
#include "io/reader.h"

/* Fixed-size types; 'U' and 'S' have any size. Integers other than i4 become
 * i64, which holds all but the upper half of u8 (and its values are checked).
 * Complex numbers, dates and extended precision are not read: attention has no
 * meaning for them. */
static const struct {
    char code;
    int size;
    attn_dtype dtype;
} types[] = {
    {'f', 2, ATTN_F16}, {'f', 4, ATTN_F32}, {'f', 8, ATTN_F64},
    {'V', 2, ATTN_BF16}, /* bfloat16, as ml_dtypes writes it */
    {'b', 1, ATTN_BOOL}, {'i', 4, ATTN_I32}, {'i', 1, ATTN_I64},
    {'i', 2, ATTN_I64},  {'i', 8, ATTN_I64}, {'u', 1, ATTN_I64},
    {'u', 2, ATTN_I64},  {'u', 4, ATTN_I64}, {'u', 8, ATTN_I64},
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '?';
}

/* The decimal number that fills text[0..n-1], or -1. Up to nine digits: no
 * overflow, and enough for every size that is accepted. */
static int64_t number(const char *text, size_t n)
{
    int64_t value = 0;

    if (n == 0 || n > 9 || (n > 1 && text[0] == '0'))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

/* Whether elements in byte order `order` have to be swapped. '=' is our own
 * order by NumPy's rule, '|' says that there is none. */
static bool is_foreign(char order)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return order == '>';
#else
    return order == '<';
#endif
}

/* 'U' is UTF-32 in the file's byte order, 'S' bytes, which must be UTF-8. */
static attn_status text_type(attn__npy_type *type, int64_t size,
                             const char *name, attn_diag *diag)
{
    /* Elements of no bytes would let a tiny file ask for any number. */
    ATTN__REQUIRE(size > 0, diag, ATTN_E_UNSUPPORTED, name,
                  "strings of type '%s' have no length", type->format);
    type->item_size = type->code == 'U' ? 4 * size : size;
    ATTN__REQUIRE(type->item_size <= ATTN__MAX_STRING_BYTES, diag,
                  ATTN_E_LIMIT, name,
                  "strings of type '%s' exceed %d bytes each", type->format,
                  ATTN__MAX_STRING_BYTES);
    type->dtype = ATTN_NONE;
    return ATTN_OK;
}

/* The kinds of failure are told apart on purpose: E_FORMAT is a broken file,
 * E_UNSUPPORTED and E_LIMIT are arrays that `attn info` can still list. */
attn_status attn__npy_type_parse(const char *descr, size_t n,
                                 attn__npy_type *type, const char *name,
                                 attn_diag *diag)
{
    const size_t kept = n < sizeof type->format ? n : sizeof type->format - 1;
    int64_t size;

    memset(type, 0, sizeof *type);
    memcpy(type->format, descr, kept);
    ATTN__REQUIRE(n >= 2 && memchr("<>=|", descr[0], 4) &&
                      is_letter(descr[1]),
                  diag, ATTN_E_FORMAT, name,
                  "descr '%s' is no type such as '<f4'", type->format);
    ATTN__REQUIRE(descr[1] != 'O', diag, ATTN_E_UNSUPPORTED, name,
                  "is an array of Python objects: pickle is never loaded");
    size = number(descr + 2, n - 2);
    type->code = descr[1];
    type->swap = is_foreign(descr[0]);
    if (size >= 0 && (type->code == 'U' || type->code == 'S'))
        return text_type(type, size, name, diag);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].code != type->code || types[i].size != size)
            continue;
        if (size > 1 && descr[0] == '|' && type->code != 'V')
            break; /* no byte order, where there must be one */
        if (type->code == 'V' && type->swap)
            break; /* NumPy would not swap it, bfloat16 would need it */
        type->item_size = size;
        type->dtype = types[i].dtype;
        return ATTN_OK;
    }
    return attn__fail(diag, ATTN_E_UNSUPPORTED, name,
                      "type '%s' is not read (f2 f4 f8, V2 as bf16, integers, "
                      "b1, U and S are; pickle is never loaded)",
                      type->format);
}
