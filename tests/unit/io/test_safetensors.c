/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading .safetensors: what is accepted and what it becomes, and the answer
 * to every hostile header of docs/formats.md. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "io_files.h"

/* Length, header, data of zeros. */
static bytes tensors_of(const char *header, size_t n_data)
{
    bytes b = {0};

    add_le(&b, strlen(header), 8);
    add_text(&b, header);
    add_zeros(&b, n_data);
    return b;
}

static attn_status answer(const bytes *b, attn_diag *diag)
{
    return read_all(file_of(b, "a.safetensors"), diag);
}

#define TENSOR(name, dtype, shape, offsets)                                   \
    "\"" name "\": {\"dtype\": \"" dtype "\", \"shape\": " shape              \
    ", \"data_offsets\": " offsets "}"
#define A TENSOR("a", "F32", "[3]", "[0, 12]")
#define ONE(shape, offsets) "{" TENSOR("a", "F32", shape, offsets) "}"
#define ALL_OF(dtype, offsets) "{" TENSOR("a", dtype, "[3]", offsets) "}"

static const struct {
    const char *header;
    size_t n_data;
    attn_status status;
} headers[] = {
    /* Good ones. */
    {"{" A "}", 12, ATTN_OK},
    {"{}", 0, ATTN_OK},
    {"{\"__metadata__\": {}}", 0, ATTN_OK},
    {"{\"__metadata__\": {\"format\": \"pt\", \"x\": \"\"}, " A "}", 12,
     ATTN_OK},
    {"{" A ", \"__metadata__\": {}}   \n", 12, ATTN_OK},
    {"{\"a\":{\"data_offsets\":[0,12],\"shape\":[3],\"dtype\":\"F32\"}}", 12,
     ATTN_OK},
    {"{\t\"a\" : { \"dtype\" :\"F32\" ,\n\"shape\" : [ 3 ] ,\r"
     "\"data_offsets\":[ 0 , 12 ] } }", 12, ATTN_OK},
    {ONE("[]", "[0, 4]"), 4, ATTN_OK},
    {ONE("[0]", "[0, 0]"), 0, ATTN_OK},
    {ONE("[5, 0, 7]", "[0, 0]"), 0, ATTN_OK},
    {ONE("[1, 1, 1, 1, 1, 1, 1, 3]", "[0, 12]"), 12, ATTN_OK},
    {"{" TENSOR("b", "F32", "[1]", "[12, 16]") ", " A "}", 16, ATTN_OK},
    /* Data begin where they begin: a byte, and then floats. */
    {"{" TENSOR("a", "U8", "[1]", "[0, 1]") ", "
     TENSOR("b", "F64", "[2]", "[1, 17]") "}", 17, ATTN_OK},
    /* A tensor of no bytes shares its place with the next, as the format's
     * own library writes it. */
    {"{" TENSOR("n", "F32", "[0, 2]", "[0, 0]") ", " A "}", 12, ATTN_OK},
    {"{" A ", " TENSOR("n", "F32", "[0]", "[12, 12]") "}", 12, ATTN_OK},
    {"{" A ", " TENSOR("n", "F32", "[0]", "[4, 4]") "}", 12, ATTN_E_FORMAT},
    /* Names, in all escapes. */
    {"{" TENSOR("\\u0041\\n", "F32", "[3]", "[0, 12]") "}", 12,
     ATTN_E_FORMAT},
    {"{" TENSOR("\\u00e9\\ud83d\\ude00\\\"\\\\\\/", "F32", "[3]", "[0, 12]")
     "}", 12, ATTN_OK},
    {"{" TENSOR("\xc3\xa9", "F32", "[3]", "[0, 12]") "}", 12, ATTN_OK},
    {"{" TENSOR("", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" TENSOR("\\u0000", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" TENSOR("\\ud800", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" TENSOR("\\ud800\\u0041", "F32", "[3]", "[0, 12]") "}", 12,
     ATTN_E_FORMAT},
    {"{" TENSOR("\\udc00", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" TENSOR("\\u00g0", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" TENSOR("\\x41", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" TENSOR("\n", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    /* No UTF-8: alone, overlong, a surrogate, cut. */
    {"{" TENSOR("\xff", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" TENSOR("\xc0\xaf", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" TENSOR("\xed\xa0\x80", "F32", "[3]", "[0, 12]") "}", 12,
     ATTN_E_FORMAT},
    {"{\"\xc3", 12, ATTN_E_FORMAT},
    {"{\"__metadata__\": {\"x\": \"\xff\"}}", 0, ATTN_E_FORMAT},
    /* Twice. */
    {"{" A ", " A "}", 12, ATTN_E_DUPLICATE},
    {"{" A ", " TENSOR("\\u0061", "F32", "[0]", "[12, 12]") "}", 12,
     ATTN_E_DUPLICATE},
    {"{\"__metadata__\": {}, \"__metadata__\": {}}", 0, ATTN_E_DUPLICATE},
    {"{\"a\": {\"dtype\": \"F32\", \"dtype\": \"F32\", \"shape\": [3], "
     "\"data_offsets\": [0, 12]}}", 12, ATTN_E_DUPLICATE},
    /* Keys: missing, others, values of other types. */
    {"{\"a\": {}}", 12, ATTN_E_FORMAT},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [3]}}", 12, ATTN_E_FORMAT},
    {"{\"a\": {\"shape\": [3], \"data_offsets\": [0, 12]}}", 12,
     ATTN_E_FORMAT},
    {"{\"a\": {\"dtype\": \"F32\", \"data_offsets\": [0, 12]}}", 12,
     ATTN_E_FORMAT},
    {"{\"a\": {\"dtype\": \"F32\", \"shape\": [3], \"data_offsets\": [0, 12],"
     " \"more\": 1}}", 12, ATTN_E_FORMAT},
    {"{\"a\": {\"dtype\": 4, \"shape\": [3], \"data_offsets\": [0, 12]}}", 12,
     ATTN_E_FORMAT},
    {"{\"a\": 3}", 0, ATTN_E_FORMAT},
    {"{\"a\": null}", 0, ATTN_E_FORMAT},
    {"{\"__metadata__\": {\"a\": 1}}", 0, ATTN_E_FORMAT},
    {"{\"__metadata__\": []}", 0, ATTN_E_FORMAT},
    {ONE("3", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[\"3\"]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[[3]]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[3,]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[3 1]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[3.0]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[-3]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[+3]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[03]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[3e0]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[true]", "[0, 12]"), 12, ATTN_E_FORMAT},
    /* Offsets. */
    {ONE("[3]", "[-1, 11]"), 12, ATTN_E_FORMAT},
    {ONE("[3]", "[0.0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[3]", "[0, 1.2e1]"), 12, ATTN_E_FORMAT},
    {ONE("[3]", "[0]"), 12, ATTN_E_FORMAT},
    {ONE("[3]", "[0, 12, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[3]", "[0, 9007199254740993]"), 12, ATTN_E_FORMAT},
    {ONE("[3]", "[9007199254740993, 9007199254741005]"), 12, ATTN_E_FORMAT},
    {ONE("[3]", "[0, 9223372036854775808]"), 12, ATTN_E_OVERFLOW},
    {ONE("[3]", "[12, 0]"), 12, ATTN_E_FORMAT},
    {ONE("[3]", "[0, 12]"), 11, ATTN_E_TRUNCATED},
    {ONE("[3]", "[0, 12]"), 0, ATTN_E_TRUNCATED},
    {ONE("[3]", "[4, 16]"), 16, ATTN_E_FORMAT},   /* a hole in front */
    {ONE("[3]", "[0, 12]"), 13, ATTN_E_FORMAT},   /* and behind */
    {"{}", 1, ATTN_E_FORMAT},
    {"{" A ", " TENSOR("b", "F32", "[1]", "[16, 20]") "}", 20,
     ATTN_E_FORMAT},                              /* and between */
    {"{" A ", " TENSOR("b", "F32", "[1]", "[8, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" A ", " TENSOR("b", "F32", "[3]", "[0, 12]") "}", 12, ATTN_E_FORMAT},
    {"{" A ", " TENSOR("b", "F32", "[2]", "[8, 16]") "}", 16, ATTN_E_FORMAT},
    /* Shapes against bytes. */
    {ONE("[2]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[4]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[0]", "[0, 12]"), 12, ATTN_E_FORMAT},
    {ONE("[4294967296, 4294967296]", "[0, 0]"), 0, ATTN_E_OVERFLOW},
    {ONE("[4294967296, 4294967296, 0]", "[0, 0]"), 0, ATTN_E_OVERFLOW},
    {ONE("[4611686018427387905]", "[0, 4]"), 4, ATTN_E_OVERFLOW},
    {ONE("[9223372036854775807, 2, 1]", "[0, 0]"), 0, ATTN_E_OVERFLOW},
    {ONE("[9223372036854775808]", "[0, 12]"), 12, ATTN_E_OVERFLOW},
    {ONE("[1, 1, 1, 1, 1, 1, 1, 1, 3]", "[0, 12]"), 12, ATTN_E_LIMIT},
    /* Types. */
    {ALL_OF("F8_E4M3", "[0, 3]"), 3, ATTN_E_UNSUPPORTED},
    {ALL_OF("C64", "[0, 24]"), 24, ATTN_E_UNSUPPORTED},
    {ALL_OF("f32", "[0, 12]"), 12, ATTN_E_UNSUPPORTED},
    {ALL_OF("", "[0, 12]"), 12, ATTN_E_UNSUPPORTED},
    /* Syntax around it. */
    {"", 0, ATTN_E_FORMAT},
    {" {" A "}", 12, ATTN_E_FORMAT},
    {"[]", 0, ATTN_E_FORMAT},
    {"{", 0, ATTN_E_FORMAT},
    {"{" A, 12, ATTN_E_FORMAT},
    {"{" A ",}", 12, ATTN_E_FORMAT},
    {"{," A "}", 12, ATTN_E_FORMAT},
    {"{" A "}}", 12, ATTN_E_FORMAT},
    {"{" A "} x", 12, ATTN_E_FORMAT},
    {"{'a': {}}", 0, ATTN_E_FORMAT},
    {"{a: {}}", 0, ATTN_E_FORMAT},
    {"{\"a\" {}}", 0, ATTN_E_FORMAT},
    {"{\"a", 0, ATTN_E_FORMAT},
    {"{\"a\\", 0, ATTN_E_FORMAT},
    {"{\"a\\u00", 0, ATTN_E_FORMAT},
    {"{\"a\": {\"shape\": [3", 0, ATTN_E_FORMAT},
};

UNIT(every_header_gets_its_answer)
{
    for (size_t i = 0; i < COUNT(headers); i++) {
        bytes b = tensors_of(headers[i].header, headers[i].n_data);
        attn_diag diag;
        const attn_status status = answer(&b, &diag);

        if (status != headers[i].status)
            print_error("%s: %s %s, expected %s\n", headers[i].header,
                        attn_status_name(status), diag.message,
                        attn_status_name(headers[i].status));
        assert_int_equal(status, headers[i].status);
        drop(&b);
    }
}

/* The length field replaced; the file has 74 bytes behind it. */
static const struct {
    unsigned long long length;
    attn_status status;
} lengths[] = {
    {0, ATTN_E_FORMAT},
    {1, ATTN_E_FORMAT},
    {61, ATTN_E_FORMAT},
    {74, ATTN_E_FORMAT}, /* zeros behind the end of JSON */
    {75, ATTN_E_TRUNCATED},
    {100000001, ATTN_E_TRUNCATED},
    {UINT64_C(1) << 63, ATTN_E_TRUNCATED},
    {UINT64_MAX, ATTN_E_TRUNCATED},
    {UINT64_MAX - 7, ATTN_E_TRUNCATED}, /* + 8 wraps to 0 */
};

UNIT(lengths_of_headers_are_checked)
{
    for (size_t i = 0; i < COUNT(lengths); i++) {
        bytes b = tensors_of("{" A "}", 12);

        assert_int_equal(b.n, 8 + 62 + 12);
        set_le(&b, 0, lengths[i].length, 8);
        assert_int_equal(answer(&b, NULL), lengths[i].status);
        drop(&b);
    }
}

/* A file with a hole: its size is there, and no block of the disk. */
UNIT(a_header_beyond_the_limit_is_refused_unread)
{
    bytes b = {0};
    const char *name;

    add_le(&b, 100000001, 8);
    add_text(&b, "{");
    name = file_of(&b, "a.safetensors");
    assert_int_equal(truncate(name, 100000009), 0);
    assert_int_equal(read_all(name, NULL), ATTN_E_LIMIT);
    drop(&b);
}

/* By its ninth byte a file is known under any name, by its extension with any
 * bytes. */
UNIT(a_file_is_known_by_its_ninth_byte_or_its_name)
{
    bytes good = tensors_of("{" A "}", 12), bad = {0};
    attn_file *file;

    assert_int_equal(attn_file_open(file_of(&good, "b"), &file, NULL),
                     ATTN_OK);
    assert_string_equal(attn_file_format(file), "safetensors");
    attn_file_close(file);
    add_text(&bad, "seven b");
    assert_int_equal(read_all(file_of(&bad, "b"), NULL), ATTN_E_FORMAT);
    assert_int_equal(answer(&bad, NULL), ATTN_E_TRUNCATED);
    drop(&good);
    drop(&bad);
}

UNIT(every_prefix_is_refused)
{
    bytes b = tensors_of("{" A "}", 12);
    const size_t n = b.n;

    for (b.n = 0; b.n < n; b.n++) {
        const attn_status status = answer(&b, NULL);

        assert_true(status == ATTN_E_FORMAT || status == ATTN_E_TRUNCATED);
    }
    drop(&b);
}

UNIT(every_flipped_bit_is_an_error_or_arrays)
{
    bytes b = tensors_of("{" A "}", 12);

    for (size_t bit = 0; bit < 8 * b.n; bit++) {
        attn_status status;

        b.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        status = answer(&b, NULL);
        assert_true(status <= ATTN_E_MISMATCH);
        if (bit >= 8 * (b.n - 12))
            assert_int_equal(status, ATTN_OK);
        b.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    drop(&b);
}

/* n tensors of no bytes. */
static bytes many(long n)
{
    bytes b = {0};
    char text[128];
    const size_t room = (size_t)n * 80 + 16;
    size_t at = 8;

    add_zeros(&b, room);
    b.data[at++] = '{';
    for (long i = 0; i < n; i++) {
        const int size = snprintf(text, sizeof text, "%s"
                                  TENSOR("%ld", "F32", "[0]", "[0, 0]"),
                                  i > 0 ? "," : "", i * 7919 % n);

        memcpy(b.data + at, text, (size_t)size);
        at += (size_t)size;
    }
    b.data[at++] = '}';
    b.n = at;
    set_le(&b, 0, at - 8, 8);
    return b;
}

UNIT(there_are_at_most_a_hundred_thousand_tensors)
{
    bytes most = many(100000), more = many(100001);
    attn_file *file;

    assert_int_equal(attn_file_open(file_of(&most, "b"), &file, NULL),
                     ATTN_OK);
    assert_int_equal(attn_file_count(file), 100000);
    attn_file_close(file);
    assert_int_equal(attn_file_open(file_of(&more, "b"), &file, NULL),
                     ATTN_E_LIMIT);
    drop(&most);
    drop(&more);
}

UNIT(nesting_ten_thousand_deep_is_no_shape)
{
    bytes text = {0}, b;

    add_text(&text, "{\"a\": {\"shape\": ");
    for (int i = 0; i < 10000; i++)
        add_text(&text, "[");
    add(&text, "", 1);
    b = tensors_of((const char *)text.data, 0);
    assert_int_equal(answer(&b, NULL), ATTN_E_FORMAT);
    drop(&text);
    drop(&b);
}

UNIT(names_are_at_most_1024_bytes)
{
    for (int n = 1024; n <= 1025; n++) {
        bytes text = {0}, b;

        add_text(&text, "{\"");
        for (int i = 0; i < n; i++)
            add_text(&text, "x");
        add_text(&text, "\": {\"dtype\": \"F32\", \"shape\": [0], "
                        "\"data_offsets\": [0, 0]}}");
        add(&text, "", 1);
        b = tensors_of((const char *)text.data, 0);
        assert_int_equal(answer(&b, NULL),
                         n == 1024 ? ATTN_OK : ATTN_E_LIMIT);
        drop(&text);
        drop(&b);
    }
}

/* --------------------------------------------------- what is read is right */

static const struct {
    const char *dtype, *data;
    size_t n_data;
    attn_dtype loaded;
    double values[2];
} typed[] = {
    {"F64", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\x04\xc0", 16, ATTN_F64,
     {1, -2.5}},
    {"F32", "\0\0\x80\x3f\0\0\x20\xc0", 8, ATTN_F32, {1, -2.5}},
    {"F16", "\0\x3c\0\xc1", 4, ATTN_F16, {1, -2.5}},
    {"BF16", "\x80\x3f\x20\xc0", 4, ATTN_BF16, {1, -2.5}},
    {"BOOL", "\0\1", 2, ATTN_BOOL, {0, 1}},
    {"I8", "\x80\x7f", 2, ATTN_I64, {-128, 127}},
    {"U8", "\x80\x7f", 2, ATTN_I64, {128, 127}},
    {"I16", "\0\x80\x02\x01", 4, ATTN_I64, {-32768, 258}},
    {"U16", "\0\x80\x02\x01", 4, ATTN_I64, {32768, 258}},
    {"I32", "\0\0\0\x80\x04\x03\x02\x01", 8, ATTN_I32,
     {-2147483648.0, 16909060}},
    {"U32", "\0\0\0\x80\x04\x03\x02\x01", 8, ATTN_I64,
     {2147483648.0, 16909060}},
    {"I64", "\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\0\0", 16, ATTN_I64,
     {-1, 1}},
    {"U64", "\1\0\0\0\0\0\0\x40\1\0\0\0\0\0\0\0", 16, ATTN_I64,
     {4611686018427387905.0, 1}},
};

UNIT(every_type_is_read)
{
    for (size_t i = 0; i < COUNT(typed); i++) {
        char header[128];
        bytes b;
        attn_file *file;
        attn_array array;

        snprintf(header, sizeof header, "{" TENSOR("a", "%s", "[2]", "[0, %zu]")
                 "}", typed[i].dtype, typed[i].n_data);
        b = tensors_of(header, 0);
        add(&b, typed[i].data, typed[i].n_data);
        assert_int_equal(attn_file_open(file_of(&b, "b"), &file, NULL),
                         ATTN_OK);
        assert_string_equal(attn_file_entry(file, 0)->format, typed[i].dtype);
        assert_int_equal(attn_file_load(file, 0, &array, NULL), ATTN_OK);
        assert_int_equal(array.dtype, typed[i].loaded);
        for (int j = 0; j < 2; j++)
            assert_true(attn_array_value(&array, j) == typed[i].values[j]);
        attn_array_free(&array);
        attn_file_close(file);
        drop(&b);
    }
}

UNIT(an_integer_above_2_63_is_refused)
{
    bytes b = tensors_of("{" TENSOR("a", "U64", "[1]", "[0, 8]") "}", 8);

    b.data[b.n - 1] = 0x80;
    assert_int_equal(answer(&b, NULL), ATTN_E_OVERFLOW);
    drop(&b);
}

/* The entries are in the order of the data, whatever that of the header; what
 * can't be read leaves the others alone. */
UNIT(entries_have_their_own_names_shapes_and_data)
{
    bytes b = tensors_of("{" TENSOR("\\u00e9", "I8", "[2, 1]", "[1, 3]") ", "
                         TENSOR("x", "F4", "[2]", "[3, 4]") ", "
                         TENSOR("first", "U8", "[]", "[0, 1]") "}", 4);
    attn_file *file;
    attn_array array;

    memcpy(b.data + b.n - 4, "\1\2\3\4", 4);
    assert_int_equal(attn_file_open(file_of(&b, "b"), &file, NULL), ATTN_OK);
    assert_int_equal(attn_file_count(file), 3);
    assert_int_equal(attn_file_find(file, "first"), 0);
    assert_int_equal(attn_file_find(file, "\xc3\xa9"), 1);
    assert_int_equal(attn_file_entry(file, 2)->status, ATTN_E_UNSUPPORTED);
    assert_int_equal(attn_file_load(file, 2, &array, NULL),
                     ATTN_E_UNSUPPORTED);
    assert_int_equal(attn_file_load(file, 1, &array, NULL), ATTN_OK);
    assert_int_equal(array.rank, 2);
    assert_true(attn_array_value(&array, 0) == 2);
    assert_true(attn_array_value(&array, 1) == 3);
    attn_array_free(&array);
    attn_file_close(file);
    drop(&b);
}

UNIT(a_file_that_shrinks_after_opening_is_truncated)
{
    bytes b = tensors_of("{" TENSOR("a", "U8", "[99]", "[0, 99]") "}", 99);
    const char *name = file_of(&b, "b");
    attn_file *file;
    attn_array array;

    assert_int_equal(attn_file_open(name, &file, NULL), ATTN_OK);
    assert_int_equal(truncate(name, (off_t)b.n - 1), 0);
    assert_int_equal(attn_file_load(file, 0, &array, NULL), ATTN_E_TRUNCATED);
    attn_file_close(file);
    drop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_header_gets_its_answer),
        cmocka_unit_test(lengths_of_headers_are_checked),
        cmocka_unit_test(a_header_beyond_the_limit_is_refused_unread),
        cmocka_unit_test(a_file_is_known_by_its_ninth_byte_or_its_name),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(every_flipped_bit_is_an_error_or_arrays),
        cmocka_unit_test(there_are_at_most_a_hundred_thousand_tensors),
        cmocka_unit_test(nesting_ten_thousand_deep_is_no_shape),
        cmocka_unit_test(names_are_at_most_1024_bytes),
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(an_integer_above_2_63_is_refused),
        cmocka_unit_test(entries_have_their_own_names_shapes_and_data),
        cmocka_unit_test(a_file_that_shrinks_after_opening_is_truncated),
    };

    return cmocka_run_group_tests(tests, NULL, remove_files);
}
