/* SPDX-License-Identifier: Apache-2.0
 *
 * The signature of a C function, in words:
 *
 *   q f32[n,d], k f32[m,d], v f32[m,e], out f32[n,e], n int, d int, m int
 *
 * A parameter is a name, a type (f64 f32 f16 bool i32 i64 int long double
 * float size_t) and for arrays their lengths, which name each other: a scalar
 * parameter with the name of a length gets that length. `out` (or o, output,
 * y, result) is what the function writes. */
#ifndef ATTN_SUBJECT_SIGNATURE_H
#define ATTN_SUBJECT_SIGNATURE_H

#include <stdbool.h>

#include "attn_doctor.h"

enum { ATTN__MOST_ARGUMENTS = 32, ATTN__MOST_LENGTHS = 4 };

typedef struct attn__argument {
    char name[32];
    attn_dtype dtype; /* of the elements, or of the scalar */
    bool is_array, is_output, is_length;
    int32_t rank;
    char lengths[ATTN__MOST_LENGTHS][16];
} attn__argument;

typedef struct attn__signature {
    attn__argument arguments[ATTN__MOST_ARGUMENTS];
    int32_t n;
} attn__signature;

/* E_ARG says where the text is not understood. */
attn_status attn__signature_parse(attn__signature *signature, const char *text,
                                  attn_diag *diag);

#endif
