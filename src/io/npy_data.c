/* SPDX-License-Identifier: Apache-2.0
 *
 * The data of a .npy, into row-major memory of native byte order. It goes
 * piece by piece: read, swap, widen, place. The place of an element is its
 * turn in C order, and a walk over the axes in Fortran order. */
#include "io/npy_header.h"

#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/diag.h"
#include "io/unicode.h"
#include "io/reader.h"

#define PIECE 65536 /* bytes read at a time; larger elements one at a time */

/* Where the next element of the file goes. In Fortran order an odometer over
 * the axes: adding strides is cheaper than dividing for each element, and the
 * array is written once, without a transposed copy. */
typedef struct walk {
    int32_t rank;
    const int64_t *shape;
    int64_t index[ATTN_ARRAY_MAX_RANK], stride[ATTN_ARRAY_MAX_RANK];
    int64_t at; /* row-major index of the element */
} walk;

/* Strides of the row-major array that is being filled. */
static void walk_begin(walk *w, const attn__npy_header *header)
{
    int64_t stride = 1;

    memset(w, 0, sizeof *w);
    w->rank = header->rank;
    w->shape = header->shape;
    for (int32_t a = header->rank - 1; a >= 0; a--) {
        w->stride[a] = stride;
        stride *= header->shape[a];
    }
}

/* On to the next element, the first axis fastest. */
static void walk_on(walk *w)
{
    for (int32_t a = 0; a < w->rank; a++) {
        w->at += w->stride[a];
        if (++w->index[a] < w->shape[a])
            return;
        w->at -= w->stride[a] * w->shape[a];
        w->index[a] = 0;
    }
}

/* Reverse the bytes of each of n elements. In the piece, before anything looks
 * at them, so that the rest of the code knows one byte order. */
static void swap_bytes(uint8_t *data, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < n; i++, data += size) {
        for (int64_t b = 0; b < size / 2; b++) {
            const uint8_t byte = data[b];
            data[b] = data[size - 1 - b];
            data[size - 1 - b] = byte;
        }
    }
}

/* Widen n integers of the file to int64. Through memcpy, since pieces are not
 * aligned for their elements. */
#define WIDEN(ctype)                                                          \
    do {                                                                      \
        for (int64_t i = 0; i < n; i++) {                                     \
            ctype value;                                                      \
            memcpy(&value, from + i * (int64_t)sizeof value, sizeof value);   \
            to[i] = (int64_t)value;                                           \
        }                                                                     \
    } while (0)

/* Sizes and signs as in the table of npy_type.c. The bytes of a u8 above 2^63
 * - 1 become negative, by which convert() knows them. */
static void widen(char code, int64_t size, const uint8_t *from, int64_t n,
                  int64_t *to)
{
    const bool is_signed = code == 'i';

    if (size == 1 && is_signed)
        WIDEN(int8_t);
    else if (size == 1)
        WIDEN(uint8_t);
    else if (size == 2 && is_signed)
        WIDEN(int16_t);
    else if (size == 2)
        WIDEN(uint16_t);
    else if (size == 4)
        WIDEN(uint32_t);
    else
        WIDEN(int64_t);
}

/* n elements of the file, native byte order, as elements of the array. A bool
 * may be any byte in a file; in memory it is 0 or 1, on which kernels rely. */
static attn_status convert(const attn__npy_type *type, const uint8_t *from,
                           int64_t n, void *to, const char *name,
                           attn_diag *diag)
{
    if (type->code == 'b') {
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = from[i] != 0;
        return ATTN_OK;
    }
    if (type->dtype != ATTN_I64) {
        memcpy(to, from, (size_t)(n * type->item_size));
        return ATTN_OK;
    }
    widen(type->code, type->item_size, from, n, to);
    if (type->code == 'u' && type->item_size == 8)
        for (int64_t i = 0; i < n; i++)
            ATTN__REQUIRE(((const int64_t *)to)[i] >= 0, diag, ATTN_E_OVERFLOW,
                          name, "has an integer above 2^63 - 1");
    return ATTN_OK;
}

/* n elements of the piece to their places. In Fortran order they are converted
 * to `scratch` first, and then spread. */
static attn_status place(const attn__npy_header *header, const uint8_t *piece,
                         int64_t n, walk *w, attn_array *array, void *scratch,
                         const char *name, attn_diag *diag)
{
    const int64_t size = (int64_t)attn_dtype_size(header->type.dtype);
    uint8_t *data = array->data;

    if (!header->fortran) {
        void *to = data + w->at * size;
        w->at += n;
        return convert(&header->type, piece, n, to, name, diag);
    }
    ATTN__TRY(convert(&header->type, piece, n, scratch, name, diag));
    for (int64_t i = 0; i < n; i++) {
        memcpy(data + w->at * size, (const uint8_t *)scratch + i * size,
               (size_t)size);
        walk_on(w);
    }
    return ATTN_OK;
}

/* The same for strings: the text goes to *pool in the order of the file, the
 * pointers to their places. */
static attn_status place_text(const attn__npy_header *header,
                              const uint8_t *piece, int64_t n, walk *w,
                              attn_array *array, char **pool, const char *name,
                              attn_diag *diag)
{
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *from = piece + i * header->type.item_size;
        const int64_t length =
            header->type.code == 'U'
                ? attn__utf8_of_utf32(from, header->type.item_size / 4, *pool)
                : attn__utf8_of_bytes(from, header->type.item_size, *pool);

        ATTN__REQUIRE(length >= 0, diag, ATTN_E_FORMAT, name,
                      "has a string that is not Unicode text");
        array->text[w->at] = *pool;
        *pool += length + 1;
        if (header->fortran)
            walk_on(w);
        else
            w->at++;
    }
    return ATTN_OK;
}

/* One block: the pointers, then the strings. UTF-8 needs no more bytes than
 * the file has, and one for the terminator. */
static attn_status allocate_text(const attn__npy_header *header,
                                 attn_array *array, const char *name,
                                 attn_diag *diag)
{
    ATTN__REQUIRE(header->count <= ATTN__MAX_STRINGS, diag, ATTN_E_LIMIT, name,
                  "has %lld strings; at most %d are read",
                  (long long)header->count, ATTN__MAX_STRINGS);
    /* Both factors are limited to 2^20: no overflow. */
    array->text = attn__alloc(
        (size_t)header->count *
        ((size_t)header->type.item_size + 1 + sizeof(char *)));
    ATTN__REQUIRE(array->text, diag, ATTN_E_NOMEM, name,
                  "no memory for %lld strings", (long long)header->count);
    return ATTN_OK;
}

/* count elements of the loaded type. Only integers of fewer than 8 bytes grow,
 * so this is at most 8 times what the file's own size has justified. */
static attn_status allocate_data(const attn__npy_header *header,
                                 attn_array *array, const char *name,
                                 attn_diag *diag)
{
    size_t size;

    ATTN__REQUIRE((uint64_t)header->count <= SIZE_MAX &&
                      attn__mul_size((size_t)header->count,
                                     attn_dtype_size(header->type.dtype),
                                     &size),
                  diag, ATTN_E_OVERFLOW, name, "is too large to address");
    array->data = attn__alloc(size);
    ATTN__REQUIRE(array->data, diag, ATTN_E_NOMEM, name,
                  "no memory for %zu bytes", size);
    return ATTN_OK;
}

/* All the data, per_piece elements at a time. `piece` has room for them as
 * they are in the file, and behind that for the scratch of `place`. */
static attn_status read_pieces(attn__stream *stream,
                               const attn__npy_header *header,
                               attn_array *array, uint8_t *piece,
                               int64_t per_piece, attn_diag *diag)
{
    const attn__npy_type *type = &header->type;
    char *pool = array->text ? (char *)(array->text + header->count) : NULL;
    void *scratch = piece + per_piece * type->item_size;
    walk w;

    walk_begin(&w, header);
    for (int64_t done = 0; done < header->count; done += per_piece) {
        const int64_t n = attn__min_i64(per_piece, header->count - done);

        ATTN__TRY(stream->read(stream, piece, (size_t)(n * type->item_size),
                               diag));
        if (type->swap && type->code == 'U')
            swap_bytes(piece, n * (type->item_size / 4), 4);
        else if (type->swap)
            swap_bytes(piece, n, type->item_size);
        if (type->dtype == ATTN_NONE)
            ATTN__TRY(place_text(header, piece, n, &w, array, &pool,
                                 stream->name, diag));
        else
            ATTN__TRY(place(header, piece, n, &w, array, scratch,
                            stream->name, diag));
    }
    return ATTN_OK;
}

/* Memory: the array, whose size the header has justified against the stream,
 * and one piece. On failure the array keeps what it has so far, for the caller
 * to free. */
attn_status attn__npy_read_data(attn__stream *stream,
                                const attn__npy_header *header,
                                attn_array *array, attn_diag *diag)
{
    const int64_t per_piece =
        attn__max_i64(1, PIECE / header->type.item_size);
    uint8_t *piece;
    attn_status status;

    array->dtype = header->type.dtype;
    array->rank = header->rank;
    memcpy(array->shape, header->shape, sizeof array->shape);
    array->count = header->count;
    ATTN__TRY(array->dtype == ATTN_NONE
                  ? allocate_text(header, array, stream->name, diag)
                  : allocate_data(header, array, stream->name, diag));
    /* The piece as read, and the same elements widened to 8 bytes at most. */
    piece = attn__alloc((size_t)(per_piece * (header->type.item_size + 8)));
    ATTN__REQUIRE(piece, diag, ATTN_E_NOMEM, stream->name,
                  "no memory for a buffer");
    status = read_pieces(stream, header, array, piece, per_piece, diag);
    attn__free(piece);
    return status;
}
