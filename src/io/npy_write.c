/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing .npy: a header that NumPy's own parser would have written, then the
 * memory as it is. The bytes depend on nothing but the array. */
#include "io/npy_write.h"

#include <stdio.h>
#include <string.h>

#include "core/checked.h"
#include "core/diag.h"
#include "io/npy_header.h"
#include "io/unicode.h"

#define PREAMBLE 10
#define ALIGNMENT 64 /* of the data in the file, as NumPy has it */
#define PIECE 1024   /* code points converted at a time */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER '<'
#else
#define ORDER '>'
#endif

/* NumPy's code of each type, without the byte order; NULL for no type. bf16 is
 * V2, as ml_dtypes writes it, since NumPy has no code for it. */
static const char *code_of(attn_dtype dtype)
{
    switch (dtype) {
    case ATTN_F64:
        return "f8";
    case ATTN_F32:
        return "f4";
    case ATTN_F16:
        return "f2";
    case ATTN_BF16:
        return "V2";
    case ATTN_I32:
        return "i4";
    case ATTN_I64:
        return "i8";
    case ATTN_BOOL:
        return "b1";
    default:
        return NULL;
    }
}

/* Code points of a string, or -1 if it is not UTF-8. */
static int64_t width_of(const char *text)
{
    const int64_t n = (int64_t)strlen(text);
    int64_t width = 0;

    for (int64_t at = 0; at < n; width++)
        if (attn__utf8_next(text, n, &at) == UINT32_MAX)
            return -1;
    return width;
}

/* Text is written as UTF-32 of one width, so the longest string is measured
 * first. */
static attn_status check_text(const attn_array *array, const char *name,
                              attn__npy_layout *layout, attn_diag *diag)
{
    layout->width = 1; /* NumPy has no strings of length 0 */
    for (int64_t i = 0; i < array->count; i++) {
        const int64_t width = array->text[i] ? width_of(array->text[i]) : -1;

        ATTN__REQUIRE(width >= 0, diag, ATTN_E_FORMAT, name,
                      "string %lld is not UTF-8", (long long)i);
        layout->width = attn__max_i64(layout->width, width);
    }
    return ATTN_OK;
}

static attn_status check_array(const attn_array *array, const char *name,
                               attn__npy_layout *layout, attn_diag *diag)
{
    const bool is_text = array->dtype == ATTN_NONE;
    int64_t count = 1;

    ATTN__REQUIRE(array->rank >= 0 && array->rank <= ATTN_ARRAY_MAX_RANK, diag,
                  ATTN_E_SHAPE, name, "rank %d is not in 0 to %d",
                  (int)array->rank, ATTN_ARRAY_MAX_RANK);
    for (int32_t a = 0; a < array->rank; a++)
        ATTN__REQUIRE(array->shape[a] >= 0 &&
                          attn__mul_i64(count, array->shape[a], &count),
                      diag, ATTN_E_SHAPE, name,
                      "shape[%d] = %lld is negative or too large", (int)a,
                      (long long)array->shape[a]);
    ATTN__REQUIRE(count == array->count, diag, ATTN_E_MISMATCH, name,
                  "count %lld is not the product of the shape, %lld",
                  (long long)array->count, (long long)count);
    ATTN__REQUIRE(is_text || code_of(array->dtype), diag, ATTN_E_DTYPE, name,
                  "type %d is unknown", (int)array->dtype);
    ATTN__REQUIRE(count == 0 || (is_text ? array->text != NULL
                                         : array->data != NULL),
                  diag, ATTN_E_ARG, name, "has no data");
    layout->data_size = (int64_t)attn_dtype_size(array->dtype);
    if (is_text) {
        ATTN__TRY(check_text(array, name, layout, diag));
        layout->data_size = 4 * layout->width;
    }
    ATTN__REQUIRE(attn__mul_i64(layout->data_size, count, &layout->data_size),
                  diag, ATTN_E_OVERFLOW, name, "is too large for a file");
    return ATTN_OK;
}

/* Append to text[*n], which has room for every header: eight numbers of 19
 * digits and a hundred characters around them. */
static void append(attn__npy_layout *layout, const char *text)
{
    const size_t n = strlen(text);

    memcpy(layout->header + layout->header_size, text, n);
    layout->header_size += (int64_t)n;
}

/* `format` is one of ours, with one %lld. */
static void append_number(attn__npy_layout *layout, const char *format,
                          int64_t value)
{
    char text[32];

    snprintf(text, sizeof text, format, (long long)value);
    append(layout, text);
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 *
 * padded with blanks to a multiple of 64 with its newline, so that the data
 * can be mapped aligned. Version 1.0 has 16 bits for the length, which is at
 * most 310. */
static void make_header(const attn_array *array, attn__npy_layout *layout)
{
    const char order[2] = {array->dtype == ATTN_BOOL ? '|' : ORDER, '\0'};
    int64_t length;

    memcpy(layout->header, ATTN__NPY_MAGIC "\1\0", 8);
    layout->header_size = PREAMBLE;
    append(layout, "{'descr': '");
    append(layout, order);
    if (array->dtype == ATTN_NONE)
        append_number(layout, "U%lld", layout->width);
    else
        append(layout, code_of(array->dtype));
    append(layout, "', 'fortran_order': False, 'shape': (");
    for (int32_t a = 0; a < array->rank; a++)
        append_number(layout, a == 0 ? "%lld" : ", %lld", array->shape[a]);
    append(layout, array->rank == 1 ? ",), }" : "), }");
    while ((layout->header_size + 1) % ALIGNMENT != 0)
        append(layout, " ");
    append(layout, "\n");
    length = layout->header_size - PREAMBLE;
    layout->header[8] = (char)(length & 0xff);
    layout->header[9] = (char)(length >> 8);
}

attn_status attn__npy_layout_of(const attn_array *array,
                                attn__npy_layout *layout, attn_diag *diag)
{
    memset(layout, 0, sizeof *layout);
    ATTN__TRY(check_array(array, array->name ? array->name : "array", layout,
                          diag));
    make_header(array, layout);
    return ATTN_OK;
}

/* One string, padded with zeros to the width of all. In pieces, so that a long
 * string needs no memory of its own. */
static attn_status emit_string(const char *text, int64_t width,
                               attn__sink *sink, attn_diag *diag)
{
    const int64_t n = (int64_t)strlen(text);
    uint32_t piece[PIECE];

    for (int64_t at = 0; width > 0; width -= PIECE) {
        const int64_t points = attn__min_i64(width, PIECE);

        for (int64_t i = 0; i < points; i++)
            piece[i] = at < n ? attn__utf8_next(text, n, &at) : 0;
        ATTN__TRY(sink->write(sink, piece, (size_t)points * sizeof piece[0],
                              diag));
    }
    return ATTN_OK;
}

/* Bytes of memory as they are: the byte order of this machine is in the
 * header. */
attn_status attn__npy_emit(const attn_array *array,
                           const attn__npy_layout *layout, attn__sink *sink,
                           attn_diag *diag)
{
    ATTN__TRY(sink->write(sink, layout->header, (size_t)layout->header_size,
                          diag));
    if (array->dtype != ATTN_NONE)
        return sink->write(sink, array->data, (size_t)layout->data_size, diag);
    for (int64_t i = 0; i < array->count; i++)
        ATTN__TRY(emit_string(array->text[i], layout->width, sink, diag));
    return ATTN_OK;
}

static attn_status write_file(attn__sink *sink, const void *data, size_t n,
                              attn_diag *diag)
{
    return attn__output_write(((attn__file_sink *)sink)->output, data, n, diag);
}

attn__file_sink attn__file_sink_to(attn__output *output)
{
    return (attn__file_sink){{write_file}, output};
}

/* Through a file beside the target that takes its place when complete: whoever
 * reads `path` sees the old file or the new one, and after a failure the old
 * one. */
attn_status attn_npy_write(const char *path, const attn_array *array,
                           attn_diag *diag)
{
    attn__npy_layout layout;
    attn__output output;
    attn__file_sink sink = attn__file_sink_to(&output);
    attn_status status;

    ATTN__REQUIRE(path, diag, ATTN_E_ARG, "path", "must not be NULL");
    ATTN__REQUIRE(array, diag, ATTN_E_ARG, "array", "must not be NULL");
    ATTN__TRY(attn__npy_layout_of(array, &layout, diag));
    status = attn__output_open(&output, path, diag);
    if (status == ATTN_OK)
        status = attn__npy_emit(array, &layout, &sink.base, diag);
    if (status == ATTN_OK)
        status = attn__output_commit(&output, diag);
    attn__output_end(&output);
    return status == ATTN_OK ? attn__ok(diag) : status;
}
