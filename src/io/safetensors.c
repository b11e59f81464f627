/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of .safetensors: eight bytes with the length of a JSON header,
 *
 *     {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
 *      "__metadata__": {"KEY": "VALUE"}}
 *
 * and the data, which the tensors must fill without a hole or an overlap. The
 * header is parsed whole into `tensor`s, these are judged, and only then are
 * they entries. Metadata is checked and dropped. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/diag.h"
#include "io/json.h"
#include "io/npy_header.h"
#include "io/reader.h"
#include "io/unicode.h"

#define MOST_EXACT (INT64_C(1) << 53) /* what JSON's readers agree on */

/* One tensor as the header has it; the strings lie in its text. */
typedef struct tensor {
    char *name, *dtype;
    int64_t begin, end; /* in the data */
    int64_t rank;       /* may exceed what `shape` has room for */
    int64_t shape[ATTN_ARRAY_MAX_RANK];
    int64_t size;       /* product of the shape */
} tensor;

typedef struct header {
    char *text;
    int64_t data_size; /* of the file, behind the header */
    tensor *tensors;
    int64_t n, room;
    bool has_metadata;
} header;

/* Types of the format that have a meaning here; others (8-bit floats, complex)
 * make an entry unreadable. Integers load as those of a .npy do. */
static const struct {
    const char *dtype;
    char code; /* NumPy's, for attn__npy_read_data */
    int size;
    attn_dtype loaded;
} types[] = {
    {"F64", 'f', 8, ATTN_F64},  {"F32", 'f', 4, ATTN_F32},
    {"F16", 'f', 2, ATTN_F16},  {"BF16", 'V', 2, ATTN_BF16},
    {"BOOL", 'b', 1, ATTN_BOOL}, {"I32", 'i', 4, ATTN_I32},
    {"I8", 'i', 1, ATTN_I64},   {"I16", 'i', 2, ATTN_I64},
    {"I64", 'i', 8, ATTN_I64},  {"U8", 'u', 1, ATTN_I64},
    {"U16", 'u', 2, ATTN_I64},  {"U32", 'u', 4, ATTN_I64},
    {"U64", 'u', 8, ATTN_I64},
};

/* False for a type that is not read. */
static bool type_of(const char *dtype, attn__npy_type *type)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].dtype, dtype) != 0)
            continue;
        memset(type, 0, sizeof *type);
        type->code = types[i].code;
        type->item_size = types[i].size;
        type->dtype = types[i].loaded;
        type->swap = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__;
        return true;
    }
    return false;
}

/* ---------------------------------------------------------------- parsing */

/* A list of sizes, also an empty one: a number has no axes. */
static attn_status parse_shape(attn__json *json, tensor *t)
{
    bool more = !attn__json_accept(json, ']');

    while (more) {
        int64_t size;

        ATTN__TRY(attn__json_count(json, &size));
        /* More axes than we read make one entry unreadable, not the file. */
        if (t->rank < ATTN_ARRAY_MAX_RANK)
            t->shape[t->rank] = size;
        t->rank++;
        ATTN__TRY(attn__json_more(json, ']', &more));
    }
    return ATTN_OK;
}

/* [begin, end), in bytes of the data, the header not counted. */
static attn_status parse_offsets(attn__json *json, tensor *t)
{
    ATTN__TRY(attn__json_count(json, &t->begin));
    ATTN__TRY(attn__json_expect(json, ','));
    ATTN__TRY(attn__json_count(json, &t->end));
    return attn__json_expect(json, ']');
}

/* One "key: value" of a tensor; `seen` has a bit per key. Unknown keys are
 * refused: they could change what the known ones mean. */
static attn_status parse_item(attn__json *json, tensor *t, unsigned *seen)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    unsigned k = 0;
    char *key;

    ATTN__TRY(attn__json_string(json, &key));
    ATTN__TRY(attn__json_expect(json, ':'));
    while (k < 3 && strcmp(key, keys[k]) != 0)
        k++;
    ATTN__REQUIRE(k < 3, json->diag, ATTN_E_FORMAT, t->name,
                  "has a key other than dtype, shape and data_offsets");
    ATTN__REQUIRE(!(*seen & 1u << k), json->diag, ATTN_E_DUPLICATE, t->name,
                  "has '%s' twice", keys[k]);
    *seen |= 1u << k;
    if (k == 0)
        return attn__json_string(json, &t->dtype);
    ATTN__TRY(attn__json_expect(json, '['));
    return k == 1 ? parse_shape(json, t) : parse_offsets(json, t);
}

/* All three keys, once each, in any order. */
static attn_status parse_tensor(attn__json *json, tensor *t)
{
    unsigned seen = 0;
    bool more = true;

    ATTN__TRY(attn__json_expect(json, '{'));
    while (more) {
        ATTN__TRY(parse_item(json, t, &seen));
        ATTN__TRY(attn__json_more(json, '}', &more));
    }
    ATTN__REQUIRE(seen == 7, json->diag, ATTN_E_FORMAT, t->name,
                  "lacks dtype, shape or data_offsets");
    return ATTN_OK;
}

/* An object of strings. They are parsed, since the header must be JSON to its
 * end, and then forgotten. */
static attn_status parse_metadata(attn__json *json)
{
    bool more;
    char *text;

    ATTN__TRY(attn__json_expect(json, '{'));
    more = !attn__json_accept(json, '}');
    while (more) {
        ATTN__TRY(attn__json_string(json, &text));
        ATTN__TRY(attn__json_expect(json, ':'));
        ATTN__TRY(attn__json_string(json, &text));
        ATTN__TRY(attn__json_more(json, '}', &more));
    }
    return ATTN_OK;
}

/* Names are shown to people and become names of arrays. */
static attn_status check_name(const char *name, attn_diag *diag)
{
    const size_t n = strlen(name);

    ATTN__REQUIRE(n <= ATTN__MAX_NAME, diag, ATTN_E_LIMIT, "file",
                  "has a name of %zu bytes; at most %d are read", n,
                  ATTN__MAX_NAME);
    ATTN__REQUIRE(n > 0 && attn__is_plain_utf8(name, (int64_t)n), diag,
                  ATTN_E_FORMAT, "file",
                  "has a name that is empty or has control characters");
    return ATTN_OK;
}

/* Room for one more tensor, all zeros. Room doubles, so n tensors are moved at
 * most twice each; pointers into the array don't outlive the next call. */
static attn_status add_tensor(header *h, tensor **t, attn_diag *diag)
{
    ATTN__REQUIRE(h->n < ATTN__MAX_TENSORS, diag, ATTN_E_LIMIT, "file",
                  "has more than %d tensors", ATTN__MAX_TENSORS);
    if (h->n == h->room) {
        const int64_t room = h->room > 0 ? 2 * h->room : 16;
        tensor *grown = attn__realloc_array(h->tensors, (size_t)room,
                                            sizeof *grown);

        ATTN__REQUIRE(grown, diag, ATTN_E_NOMEM, "file",
                      "no memory for %lld tensors", (long long)room);
        h->tensors = grown;
        h->room = room;
    }
    *t = &h->tensors[h->n++];
    memset(*t, 0, sizeof **t);
    return ATTN_OK;
}

/* One "name: value" of the header. */
static attn_status parse_member(attn__json *json, header *h)
{
    tensor *t = NULL;
    char *name;

    ATTN__TRY(attn__json_string(json, &name));
    ATTN__TRY(attn__json_expect(json, ':'));
    if (strcmp(name, "__metadata__") == 0) {
        ATTN__REQUIRE(!h->has_metadata, json->diag, ATTN_E_DUPLICATE, "file",
                      "has __metadata__ twice");
        h->has_metadata = true;
        return parse_metadata(json);
    }
    ATTN__TRY(check_name(name, json->diag));
    ATTN__TRY(add_tensor(h, &t, json->diag));
    t->name = name;
    return parse_tensor(json, t);
}

/* Tensors are collected, not judged: of a file with several faults the same
 * one is reported, whatever order its header has. */
static attn_status parse(attn__json *json, header *h)
{
    bool more;

    ATTN__TRY(attn__json_expect(json, '{'));
    more = !attn__json_accept(json, '}');
    while (more) {
        ATTN__TRY(parse_member(json, h));
        ATTN__TRY(attn__json_more(json, '}', &more));
    }
    return attn__json_end(json);
}

/* ---------------------------------------------------------------- judging */

/* The product of the shape in elements and in bytes; axes that are not 0 must
 * fit in any case, as in a .npy. */
static attn_status check_size(tensor *t, attn_diag *diag)
{
    attn__npy_type type = {.item_size = 1};
    const bool known = type_of(t->dtype, &type);
    int64_t bytes = type.item_size;
    bool empty = false;

    if (t->rank > ATTN_ARRAY_MAX_RANK)
        return ATTN_OK; /* its entry says so */
    for (int64_t a = 0; a < t->rank; a++) {
        empty = empty || t->shape[a] == 0;
        ATTN__REQUIRE(t->shape[a] == 0 ||
                          attn__mul_i64(bytes, t->shape[a], &bytes),
                      diag, ATTN_E_OVERFLOW, t->name,
                      "the product of shape and element size exceeds 2^63 - 1");
    }
    bytes = empty ? 0 : bytes;
    t->size = bytes / type.item_size;
    ATTN__REQUIRE(!known || bytes == t->end - t->begin, diag, ATTN_E_FORMAT,
                  t->name, "has %lld bytes of data; its shape and type need "
                  "%lld", (long long)(t->end - t->begin), (long long)bytes);
    return ATTN_OK;
}

/* 2^53 because other readers keep numbers of JSON in doubles, and would see
 * other bytes beyond it. */
static attn_status check_offsets(const tensor *t, const header *h,
                                 attn_diag *diag)
{
    ATTN__REQUIRE(t->begin <= MOST_EXACT && t->end <= MOST_EXACT, diag,
                  ATTN_E_FORMAT, t->name, "has an offset above 2^53");
    ATTN__REQUIRE(t->begin <= t->end, diag, ATTN_E_FORMAT, t->name,
                  "ends at %lld, before it begins at %lld", (long long)t->end,
                  (long long)t->begin);
    ATTN__REQUIRE(t->end <= h->data_size, diag, ATTN_E_TRUNCATED, t->name,
                  "ends at byte %lld of %lld of the data", (long long)t->end,
                  (long long)h->data_size);
    return ATTN_OK;
}

/* For finding equal names by their neighbours. */
static int by_name(const void *a, const void *b)
{
    return strcmp(((const tensor *)a)->name, ((const tensor *)b)->name);
}

/* Tensors of no bytes come before what begins at the same place; names make
 * the order a total one. */
static int by_place(const void *a, const void *b)
{
    const tensor *s = a, *t = b;

    if (s->begin != t->begin)
        return s->begin < t->begin ? -1 : 1;
    if (s->end != t->end)
        return s->end < t->end ? -1 : 1;
    return strcmp(s->name, t->name);
}

/* qsort must not be given a null pointer, not even for nothing. */
static void sort(header *h, int (*order)(const void *, const void *))
{
    if (h->n > 0)
        qsort(h->tensors, (size_t)h->n, sizeof *h->tensors, order);
}

static attn_status check_names(header *h, attn_diag *diag)
{
    sort(h, by_name);
    for (int64_t i = 1; i < h->n; i++)
        ATTN__REQUIRE(strcmp(h->tensors[i - 1].name, h->tensors[i].name) != 0,
                      diag, ATTN_E_DUPLICATE, h->tensors[i].name,
                      "is there twice");
    return ATTN_OK;
}

/* Each byte of the data belongs to one tensor. The format asks for it: bytes
 * that no tensor names could hide something, shared ones could be given two
 * meanings. */
static attn_status check_cover(header *h, attn_diag *diag)
{
    int64_t at = 0;

    sort(h, by_place);
    for (int64_t i = 0; i < h->n; i++) {
        const tensor *t = &h->tensors[i];

        ATTN__REQUIRE(t->begin == at, diag, ATTN_E_FORMAT, t->name,
                      "begins at byte %lld of the data, where %lld is next: "
                      "%s", (long long)t->begin, (long long)at,
                      t->begin < at ? "an overlap" : "a hole");
        at = t->end;
    }
    ATTN__REQUIRE(at == h->data_size, diag, ATTN_E_FORMAT, "file",
                  "has %lld bytes behind its last tensor",
                  (long long)(h->data_size - at));
    return ATTN_OK;
}

/* Names, then each tensor, then all together. Afterwards every tensor's bytes
 * lie in the file, are as many as it needs, and nobody else's. */
static attn_status judge(header *h, attn_diag *diag)
{
    ATTN__TRY(check_names(h, diag));
    for (int64_t i = 0; i < h->n; i++) {
        ATTN__TRY(check_offsets(&h->tensors[i], h, diag));
        ATTN__TRY(check_size(&h->tensors[i], diag));
    }
    return check_cover(h, diag);
}

/* ---------------------------------------------------------------- opening */

/* Length and text of the header. The length is the first thing that a hostile
 * file lies about: it is held against the file's size, then against the policy,
 * and only then is it a size of memory. */
static attn_status read_text(const attn__source *source, header *h,
                             attn__json *json)
{
    uint8_t head[8];
    uint64_t n = 0;

    ATTN__REQUIRE(source->size >= 8, json->diag, ATTN_E_TRUNCATED, "file",
                  "has %lld bytes; the length of the header needs 8",
                  (long long)source->size);
    ATTN__TRY(attn__source_read(source, 0, head, sizeof head, json->diag));
    for (int i = 7; i >= 0; i--)
        n = n << 8 | head[i];
    ATTN__REQUIRE(n <= (uint64_t)source->size - 8, json->diag,
                  ATTN_E_TRUNCATED, "file",
                  "has %lld bytes; its header alone needs %llu",
                  (long long)source->size, (unsigned long long)n);
    ATTN__REQUIRE(n <= ATTN__MAX_JSON, json->diag, ATTN_E_LIMIT, "file",
                  "has a header of %llu bytes; at most %d are read",
                  (unsigned long long)n, ATTN__MAX_JSON);
    h->text = attn__alloc((size_t)n + 1);
    ATTN__REQUIRE(h->text, json->diag, ATTN_E_NOMEM, "file",
                  "no memory for a header of %llu bytes",
                  (unsigned long long)n);
    h->data_size = source->size - 8 - (int64_t)n;
    json->text = h->text;
    json->n = (int64_t)n;
    ATTN__TRY(attn__source_read(source, 8, h->text, (size_t)n, json->diag));
    ATTN__REQUIRE(n > 0 && h->text[0] == '{', json->diag, ATTN_E_FORMAT,
                  "file", "its header does not begin with '{'");
    return ATTN_OK;
}

/* A type or rank that we don't read is a status of the entry: the rest of a
 * model can still be loaded. */
static attn_status describe(const tensor *t, attn_entry *entry,
                            attn_diag *diag)
{
    attn__npy_type type;

    ATTN__TRY(attn__entry_name(entry, t->name, t->dtype, diag));
    if (!type_of(t->dtype, &type)) {
        entry->status = ATTN_E_UNSUPPORTED;
        return ATTN_OK;
    }
    if (t->rank > ATTN_ARRAY_MAX_RANK) {
        entry->status = ATTN_E_LIMIT;
        return ATTN_OK;
    }
    entry->dtype = type.dtype;
    entry->rank = (int32_t)t->rank;
    memcpy(entry->shape, t->shape, sizeof entry->shape);
    entry->count = t->size;
    return ATTN_OK;
}

/* In the order of the data, which is that of judge()'s last sort: loading all
 * entries reads the file once from front to back. */
static attn_status make_entries(attn_file *file, const header *h,
                                attn_diag *diag)
{
    const int64_t data_at = file->source.size - h->data_size;
    int64_t *begin;

    file->entries = attn__calloc((size_t)h->n, sizeof *file->entries);
    file->state = begin = attn__calloc((size_t)h->n, sizeof *begin);
    ATTN__REQUIRE(file->entries && begin, diag, ATTN_E_NOMEM, "file",
                  "no memory for %lld entries", (long long)h->n);
    file->n = h->n;
    for (int64_t i = 0; i < h->n; i++) {
        begin[i] = data_at + h->tensors[i].begin;
        ATTN__TRY(describe(&h->tensors[i], &file->entries[i], diag));
    }
    return ATTN_OK;
}

/* The header's text and tensors live until entries are made of them, and no
 * longer: an open file keeps names, shapes and offsets. */
static attn_status open_safetensors(attn_file *file, attn_diag *diag)
{
    header h = {NULL, 0, NULL, 0, 0, false};
    attn__json json = {NULL, 0, 0, diag};
    attn_status status = read_text(&file->source, &h, &json);

    if (status == ATTN_OK)
        status = parse(&json, &h);
    if (status == ATTN_OK)
        status = judge(&h, diag);
    if (status == ATTN_OK)
        status = make_entries(file, &h, diag);
    attn__free(h.tensors);
    attn__free(h.text);
    return status;
}

/* Data are little-endian and row-major, like a .npy's, so its reader serves. */
static attn_status load_safetensors(attn_file *file, int64_t index,
                                    attn_array *array, attn_diag *diag)
{
    const attn_entry *entry = &file->entries[index];
    const int64_t *begin = file->state; /* of each entry, in the file */
    attn__npy_header read = {.rank = entry->rank, .count = entry->count};
    attn__file_stream stream;

    if (!type_of(entry->format, &read.type))
        return attn__fail(diag, ATTN_E_UNSUPPORTED, entry->name,
                          "type '%.32s' is not read (F64 F32 F16 BF16, BOOL "
                          "and integers are)", entry->format);
    ATTN__REQUIRE(entry->status == ATTN_OK, diag, entry->status, entry->name,
                  "has more than %d axes", ATTN_ARRAY_MAX_RANK);
    memcpy(read.shape, entry->shape, sizeof read.shape);
    read.data_size = entry->count * read.type.item_size;
    stream = attn__stream_of(&file->source, entry->name, begin[index],
                             read.data_size);
    return attn__npy_read_data(&stream.base, &read, array, diag);
}

/* There is no magic; but who else has '{' as ninth byte? */
static bool probe(const uint8_t *head, size_t n)
{
    return n == 9 && head[8] == '{';
}

static void close_safetensors(attn_file *file)
{
    attn__free(file->state);
}

const attn__reader attn__safetensors_reader = {
    "safetensors", ".safetensors", probe, open_safetensors, load_safetensors,
    close_safetensors};
