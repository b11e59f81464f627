/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading .npy: what is accepted and what it becomes, and the answer to every
 * hostile header of docs/formats.md. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "io_files.h"

#define ORDER(value) "'fortran_order': " value
#define DESCR(value) "'descr': " value
#define SHAPE(value) "'shape': " value
#define F4 DESCR("'<f4'")
#define C ORDER("False")
#define THREE SHAPE("(3,)")

/* Dictionaries, and bytes of data that follow. */
static const struct {
    const char *dictionary;
    size_t n_data;
    attn_status status;
} dictionaries[] = {
    /* Good ones, in all the spellings that are accepted. */
    {"{" F4 ", " C ", " THREE ", }", 12, ATTN_OK},
    {"{" F4 ", " C ", " THREE "}", 12, ATTN_OK},
    {"{" THREE "," C "," F4 "}", 12, ATTN_OK},
    {"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (3,)}", 12,
     ATTN_OK},
    {"{ 'descr' : '<f4' ,\n\t'fortran_order':True , 'shape' : ( 3 , ) }", 12,
     ATTN_OK},
    {"{" F4 ", " C ", " SHAPE("()") "}", 4, ATTN_OK},
    {"{" F4 ", " C ", " SHAPE("(3L,)") "}", 12, ATTN_OK},
    {"{" F4 ", " C ", " SHAPE("(1, 3)") "}", 12, ATTN_OK},
    {"{" F4 ", " C ", " SHAPE("(1, 3,)") "}", 12, ATTN_OK},
    {"{" F4 ", " C ", " SHAPE("(0,)") "}", 0, ATTN_OK},
    {"{" F4 ", " C ", " SHAPE("(5, 0, 7)") "}", 0, ATTN_OK},
    {"{" F4 ", " C ", " SHAPE("(1, 1, 1, 1, 1, 1, 1, 3)") "}", 12, ATTN_OK},
    /* Keys: missing, extra, twice. */
    {"{}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " THREE ", 'more': 1}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " THREE ", '': 1}", 12, ATTN_E_FORMAT},
    {"{'Descr': '<f4', " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{u'descr': '<f4', " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " F4 ", " C ", " THREE "}", 12, ATTN_E_DUPLICATE},
    {"{" F4 ", " C ", " C ", " THREE "}", 12, ATTN_E_DUPLICATE},
    {"{" F4 ", " C ", " THREE ", " THREE "}", 12, ATTN_E_DUPLICATE},
    /* Values of wrong types. */
    {"{" DESCR("4") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" DESCR("None") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " ORDER("0") ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " ORDER("'False'") ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " ORDER("Falsey") ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("3") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(3)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("[3]") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(3.0,)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("('3',)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(True,)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(-3,)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(+3,)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(03,)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(0x3,)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(3LL,)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(,)") "}", 4, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(3,,)") "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("((3,),)") "}", 12, ATTN_E_FORMAT},
    /* Calls are never made. */
    {"{" F4 ", " C ", " SHAPE("(np.int64(1),)") "}", 4, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("__import__('os').system('false')") "}", 12,
     ATTN_E_FORMAT},
    {"__import__('os')", 0, ATTN_E_FORMAT},
    /* Syntax around it. */
    {"", 0, ATTN_E_FORMAT},
    {"{", 0, ATTN_E_FORMAT},
    {" {" F4 ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " THREE, 12, ATTN_E_FORMAT},
    {"{" F4 " " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{'descr' '<f4', " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{, " F4 ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " THREE ",, }", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " THREE "} x", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " THREE "}}", 12, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " THREE "}\t", 12, ATTN_E_FORMAT},
    {"{'de\\scr': '<f4', " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{'descr: '<f4', " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{'descr': '<f4, " C ", " THREE "}", 12, ATTN_E_FORMAT},
    /* Types: no type, and types that are refused. */
    {"{" DESCR("''") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" DESCR("'f'") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" DESCR("'<4'") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" DESCR("'float32'") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" DESCR("'<f'") ", " C ", " THREE "}", 12, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'<f3'") ", " C ", " THREE "}", 12, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'<f04'") ", " C ", " THREE "}", 12, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'<f99999999999'") ", " C ", " THREE "}", 12,
     ATTN_E_UNSUPPORTED},
    {"{" DESCR("'|f4'") ", " C ", " THREE "}", 12, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'>V2'") ", " C ", " THREE "}", 6, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'<f16'") ", " C ", " THREE "}", 48, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'<c8'") ", " C ", " THREE "}", 24, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'|O'") ", " C ", " THREE "}", 12, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'|V4'") ", " C ", " THREE "}", 12, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'<M8[ns]'") ", " C ", " THREE "}", 24, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'<U0'") ", " C ", " SHAPE("(1099511627776,)") "}", 0,
     ATTN_E_UNSUPPORTED},
    {"{" DESCR("'|S0'") ", " C ", " THREE "}", 0, ATTN_E_UNSUPPORTED},
    {"{" DESCR("'|S2000000'") ", " C ", " SHAPE("(0,)") "}", 0, ATTN_E_LIMIT},
    {"{" DESCR("'|S1'") ", " C ", " SHAPE("(0, 2000000)") "}", 0, ATTN_OK},
    {"{" DESCR("[('a', '<f4'), ('b', '<i4', (2,))]") ", " C ", " THREE "}", 36,
     ATTN_E_UNSUPPORTED},
    {"{" DESCR("[('a', [('b', '<f4')])]") ", " C ", " THREE "}", 12,
     ATTN_E_UNSUPPORTED},
    {"{" DESCR("[[[[[[[[[]]]]]]]]]") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" DESCR("[('a', '<f4']") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" DESCR("[('a', print)]") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    {"{" DESCR("[") ", " C ", " THREE "}", 12, ATTN_E_FORMAT},
    /* Shapes that are too much. */
    {"{" F4 ", " C ", " SHAPE("(1, 1, 1, 1, 1, 1, 1, 1, 1)") "}", 4,
     ATTN_E_LIMIT},
    {"{" F4 ", " C ", " SHAPE("(9223372036854775808,)") "}", 4,
     ATTN_E_OVERFLOW},
    {"{" F4 ", " C ", " SHAPE("(99999999999999999999999999,)") "}", 4,
     ATTN_E_OVERFLOW},
    {"{" F4 ", " C ", " SHAPE("(9223372036854775807,)") "}", 4,
     ATTN_E_OVERFLOW},
    {"{" F4 ", " C ", " SHAPE("(4294967296, 4294967296)") "}", 4,
     ATTN_E_OVERFLOW},
    /* (2^63 - 1, 2, 1, 1) wraps to a small product; so does 2^22+1 squared
     * times a suitable third. */
    {"{" F4 ", " C ", " SHAPE("(9223372036854775807, 2, 1, 1)") "}", 4,
     ATTN_E_OVERFLOW},
    {"{" F4 ", " C ", " SHAPE("(4194305, 4194305, 211106198978564)") "}", 16,
     ATTN_E_OVERFLOW},
    {"{" F4 ", " C ", " SHAPE("(0, 9223372036854775807, 9)") "}", 0,
     ATTN_E_OVERFLOW},
    /* Data that do not fit the shape. */
    {"{" F4 ", " C ", " THREE "}", 11, ATTN_E_TRUNCATED},
    {"{" F4 ", " C ", " THREE "}", 0, ATTN_E_TRUNCATED},
    {"{" F4 ", " C ", " THREE "}", 13, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(0,)") "}", 1, ATTN_E_FORMAT},
    {"{" F4 ", " C ", " SHAPE("(2305843009213693951,)") "}", 4,
     ATTN_E_TRUNCATED},
};

UNIT(every_dictionary_gets_its_answer)
{
    for (size_t i = 0; i < COUNT(dictionaries); i++) {
        bytes b = npy_of(1, dictionaries[i].dictionary,
                         dictionaries[i].n_data);
        attn_diag diag;
        const attn_status status = read_all(file_of(&b, "a.npy"), &diag);

        if (status != dictionaries[i].status)
            print_error("%s: %s %s, expected %s\n", dictionaries[i].dictionary,
                        attn_status_name(status), diag.message,
                        attn_status_name(dictionaries[i].status));
        assert_int_equal(status, dictionaries[i].status);
        drop(&b);
    }
}

UNIT(lists_nested_ten_thousand_deep_are_no_type)
{
    bytes b = {0}, text = {0};

    add_text(&text, "{'descr': ");
    for (int i = 0; i < 10000; i++)
        add_text(&text, "[");
    add(&text, "", 1);
    b = npy_of(1, (const char *)text.data, 12);
    assert_int_equal(read_all(file_of(&b, "a.npy"), NULL), ATTN_E_FORMAT);
    drop(&b);
    drop(&text);
}

UNIT(an_object_array_is_told_about_pickle)
{
    bytes b = npy_array("|O", "(3,)", 40);
    attn_diag diag;

    assert_int_equal(read_all(file_of(&b, "a.npy"), &diag),
                     ATTN_E_UNSUPPORTED);
    assert_non_null(strstr(diag.message, "pickle is never loaded"));
    assert_string_equal(diag.field, "a");
    drop(&b);
}

/* Version, bytes of the length field, and what they say. */
static const struct {
    int major, minor;
    attn_status status;
} versions[] = {
    {1, 0, ATTN_OK},           {2, 0, ATTN_OK},
    {3, 0, ATTN_OK},           {0, 0, ATTN_E_UNSUPPORTED},
    {0, 9, ATTN_E_UNSUPPORTED}, {4, 0, ATTN_E_UNSUPPORTED},
    {1, 1, ATTN_E_UNSUPPORTED}, {255, 255, ATTN_E_UNSUPPORTED},
};

UNIT(versions_1_2_and_3_are_read)
{
    for (size_t i = 0; i < COUNT(versions); i++) {
        bytes b = npy_of(versions[i].major,
                         "{" F4 ", " C ", " THREE "}", 12);

        b.data[7] = (unsigned char)versions[i].minor;
        assert_int_equal(read_all(file_of(&b, "a.npy"), NULL),
                         versions[i].status);
        drop(&b);
    }
}

UNIT(the_suffix_of_long_integers_is_python_2s)
{
    bytes two = npy_of(2, "{" F4 ", " C ", " SHAPE("(3L,)") "}", 12);
    bytes three = npy_of(3, "{" F4 ", " C ", " SHAPE("(3L,)") "}", 12);

    assert_int_equal(read_all(file_of(&two, "a.npy"), NULL), ATTN_OK);
    assert_int_equal(read_all(file_of(&three, "a.npy"), NULL), ATTN_E_FORMAT);
    drop(&two);
    drop(&three);
}

/* The length field of version 2 replaced. */
static const struct {
    unsigned long length;
    attn_status status;
} lengths[] = {
    {0, ATTN_E_FORMAT},
    {1, ATTN_E_FORMAT},            /* "{" is no newline */
    {115, ATTN_E_FORMAT},          /* all but the newline */
    {128 + 1, ATTN_E_TRUNCATED},   /* the file has 128 bytes behind it */
    {65536, ATTN_E_TRUNCATED},
    {65537, ATTN_E_LIMIT},
    {0xfffffff0, ATTN_E_LIMIT},
    {0xffffffff, ATTN_E_LIMIT},
};

UNIT(lengths_of_headers_are_checked)
{
    for (size_t i = 0; i < COUNT(lengths); i++) {
        bytes b = npy_of(2, "{" F4 ", " C ", " THREE "}", 12);

        assert_int_equal(b.n, 12 + 116 + 12);
        set_le(&b, 8, lengths[i].length, 4);
        assert_int_equal(read_all(file_of(&b, "a.npy"), NULL),
                         lengths[i].status);
        drop(&b);
    }
}

UNIT(a_header_of_the_largest_legal_length_is_read)
{
    bytes b = {0};

    add(&b, "\x93NUMPY\2\0", 8);
    add_le(&b, 65536, 4);
    add_text(&b, "{" F4 ", " C ", " THREE "}");
    while (b.n < 12 + 65535)
        add_text(&b, " ");
    add_text(&b, "\n");
    add_zeros(&b, 12);
    assert_int_equal(read_all(file_of(&b, "a.npy"), NULL), ATTN_OK);
    drop(&b);
}

UNIT(every_prefix_is_refused)
{
    bytes b = npy_array("<f8", "(2, 3)", 48);
    const size_t n = b.n;

    for (b.n = 0; b.n < n; b.n++) {
        const attn_status status = read_all(file_of(&b, "a.npy"), NULL);

        assert_true(status == ATTN_E_FORMAT || status == ATTN_E_TRUNCATED);
    }
    drop(&b);
}

/* A flipped bit of the header gives an error or another good array, a flipped
 * bit of the data other data; in no case anything else. */
UNIT(every_flipped_bit_is_an_error_or_an_array)
{
    bytes b = npy_array("<f8", "(2, 3)", 48);
    int n_ok = 0;

    for (size_t bit = 0; bit < 8 * b.n; bit++) {
        attn_status status;

        b.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        status = read_all(file_of(&b, "a.npy"), NULL);
        n_ok += status == ATTN_OK;
        assert_true(status <= ATTN_E_MISMATCH);
        if (bit >= 8 * (b.n - 48))
            assert_int_equal(status, ATTN_OK);
        b.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    assert_true(n_ok >= 48 * 8 && n_ok < 48 * 8 + 100);
    drop(&b);
}

UNIT(what_is_no_regular_file_is_an_error_of_the_system)
{
    attn_file *file;

    assert_int_equal(attn_file_open("/dev/zero", &file, NULL), ATTN_E_IO);
    assert_int_equal(attn_file_open("/", &file, NULL), ATTN_E_IO);
    assert_int_equal(attn_file_open("io-test-nowhere", &file, NULL),
                     ATTN_E_IO);
    assert_int_equal(attn_file_open("", &file, NULL), ATTN_E_IO);
    assert_int_equal(mkfifo("io-test-pipe", 0600), 0);
    assert_int_equal(attn_file_open("io-test-pipe", &file, NULL), ATTN_E_IO);
    assert_null(file);
    unlink("io-test-pipe");
}

UNIT(a_file_that_shrinks_after_opening_is_truncated)
{
    bytes b = npy_array("<f8", "(20000,)", 160000);
    const char *name = file_of(&b, "a.npy");
    attn_file *file;
    attn_array array;

    assert_int_equal(attn_file_open(name, &file, NULL), ATTN_OK);
    assert_int_equal(truncate(name, 100000), 0);
    assert_int_equal(attn_file_load(file, 0, &array, NULL),
                     ATTN_E_TRUNCATED);
    assert_null(array.data);
    assert_null(array.name);
    attn_file_close(file);
    drop(&b);
}

UNIT(null_and_wrong_arguments_are_refused)
{
    bytes b = npy_array("<f4", "(3,)", 12);
    attn_file *file;
    attn_array array;

    assert_int_equal(attn_file_open(NULL, &file, NULL), ATTN_E_ARG);
    assert_int_equal(attn_file_open("x", NULL, NULL), ATTN_E_ARG);
    assert_int_equal(attn_file_open(file_of(&b, "a.npy"), &file, NULL),
                     ATTN_OK);
    assert_int_equal(attn_file_load(file, 1, &array, NULL), ATTN_E_ARG);
    assert_int_equal(attn_file_load(file, -1, &array, NULL), ATTN_E_ARG);
    assert_int_equal(attn_file_load(file, 0, NULL, NULL), ATTN_E_ARG);
    assert_int_equal(attn_file_load(NULL, 0, &array, NULL), ATTN_E_ARG);
    assert_null(attn_file_entry(file, 1));
    assert_null(attn_file_entry(file, -1));
    attn_file_close(file);
    attn_file_close(NULL);
    attn_array_free(NULL);
    drop(&b);
}

/* --------------------------------------------------- what is read is right */

/* One file of every type: what it holds byte by byte, and the values of the
 * loaded array. */
static const struct {
    const char *descr;
    const char *data;
    size_t n_data;
    attn_dtype dtype;
    double values[2];
} typed[] = {
    {"<f8", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\x04\xc0", 16, ATTN_F64,
     {1, -2.5}},
    {">f8", "\x3f\xf0\0\0\0\0\0\0\xc0\x04\0\0\0\0\0\0", 16, ATTN_F64,
     {1, -2.5}},
    {"=f4", "\0\0\x80\x3f\0\0\x20\xc0", 8, ATTN_F32, {1, -2.5}},
    {"<f4", "\0\0\x80\x3f\0\0\x20\xc0", 8, ATTN_F32, {1, -2.5}},
    {">f4", "\x3f\x80\0\0\xc0\x20\0\0", 8, ATTN_F32, {1, -2.5}},
    {"<f2", "\0\x3c\0\xc1", 4, ATTN_F16, {1, -2.5}},
    {">f2", "\x3c\0\xc1\0", 4, ATTN_F16, {1, -2.5}},
    {"<V2", "\x80\x3f\x20\xc0", 4, ATTN_BF16, {1, -2.5}},
    {"|V2", "\x80\x3f\x20\xc0", 4, ATTN_BF16, {1, -2.5}},
    {"|b1", "\0\1", 2, ATTN_BOOL, {0, 1}},
    {"|b1", "\2\xff", 2, ATTN_BOOL, {1, 1}},
    {"|i1", "\x80\x7f", 2, ATTN_I64, {-128, 127}},
    {"<i1", "\x80\x7f", 2, ATTN_I64, {-128, 127}},
    {"|u1", "\x80\x7f", 2, ATTN_I64, {128, 127}},
    {"<i2", "\0\x80\x02\x01", 4, ATTN_I64, {-32768, 258}},
    {">i2", "\x80\0\x01\x02", 4, ATTN_I64, {-32768, 258}},
    {"<u2", "\0\x80\x02\x01", 4, ATTN_I64, {32768, 258}},
    {"<i4", "\0\0\0\x80\x04\x03\x02\x01", 8, ATTN_I32,
     {-2147483648.0, 16909060}},
    {">i4", "\x80\0\0\0\x01\x02\x03\x04", 8, ATTN_I32,
     {-2147483648.0, 16909060}},
    {"<u4", "\0\0\0\x80\x04\x03\x02\x01", 8, ATTN_I64,
     {2147483648.0, 16909060}},
    {"<i8", "\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0\0\0\0\0", 16, ATTN_I64,
     {-1, 1}},
    {">i8", "\xff\xff\xff\xff\xff\xff\xff\xfe\0\0\0\0\0\0\0\1", 16, ATTN_I64,
     {-2, 1}},
    {"<u8", "\1\0\0\0\0\0\0\x40\1\0\0\0\0\0\0\0", 16, ATTN_I64,
     {4611686018427387905.0, 1}},
};

UNIT(every_type_is_read_in_both_byte_orders)
{
    for (size_t i = 0; i < COUNT(typed); i++) {
        bytes b = npy_array(typed[i].descr, "(2,)", 0);
        attn_file *file;
        attn_array array;

        add(&b, typed[i].data, typed[i].n_data);
        assert_int_equal(attn_file_open(file_of(&b, "a.npy"), &file, NULL),
                         ATTN_OK);
        assert_string_equal(attn_file_entry(file, 0)->format, typed[i].descr);
        assert_int_equal(attn_file_load(file, 0, &array, NULL), ATTN_OK);
        assert_int_equal(array.dtype, typed[i].dtype);
        for (int j = 0; j < 2; j++)
            assert_true(attn_array_value(&array, j) == typed[i].values[j]);
        attn_array_free(&array);
        attn_file_close(file);
        drop(&b);
    }
}

UNIT(integers_beyond_int64_overflow)
{
    bytes b = npy_array("<u8", "(1,)", 0);

    add(&b, "\0\0\0\0\0\0\0\x80", 8);
    assert_int_equal(read_all(file_of(&b, "a.npy"), NULL), ATTN_E_OVERFLOW);
    drop(&b);
}

/* Element (i, j, k) of shape (3, 4, 5) holds its own row-major index, written
 * with the first axis fastest; enough elements for more than one piece. */
UNIT(fortran_order_is_turned_round)
{
    enum { A = 30, B = 40, E = 50 };
    bytes b = npy_of(1, "{" DESCR("'<i8'") ", " ORDER("True") ", "
                     SHAPE("(30, 40, 50)") "}", 0);
    attn_file *file;
    attn_array array;

    for (int k = 0; k < E; k++)
        for (int j = 0; j < B; j++)
            for (int i = 0; i < A; i++)
                add_le(&b, (unsigned long long)((i * B + j) * E + k), 8);
    assert_int_equal(attn_file_open(file_of(&b, "a.npy"), &file, NULL),
                     ATTN_OK);
    assert_int_equal(attn_file_load(file, 0, &array, NULL), ATTN_OK);
    assert_int_equal(array.count, A * B * E);
    for (int i = 0; i < A * B * E; i++)
        assert_int_equal(((int64_t *)array.data)[i], i);
    attn_array_free(&array);
    attn_file_close(file);
    drop(&b);
}

/* Text: the bytes of one element in the file, and the UTF-8 or NULL. */
static const struct {
    const char *descr;
    const char *data;
    size_t n_data;
    const char *text;
} texts[] = {
    {"<U2", "h\0\0\0i\0\0\0", 8, "hi"},
    {">U2", "\0\0\0h\0\0\0i", 8, "hi"},
    {"<U2", "\xe9\0\0\0\0\0\0\0", 8, "\xc3\xa9"},
    {"<U1", "\xac\x20\0\0", 4, "\xe2\x82\xac"},
    {"<U1", "\0\xf6\x01\0", 4, "\xf0\x9f\x98\x80"},
    {"<U1", "\0\0\0\0", 4, ""},
    {"<U1", "\xff\xff\x10\0", 4, "\xf4\x8f\xbf\xbf"},
    {"<U1", "\0\0\x11\0", 4, NULL},         /* above U+10FFFF */
    {"<U1", "\0\xd8\0\0", 4, NULL},         /* a surrogate */
    {"<U2", "\0\0\0\0i\0\0\0", 8, NULL},    /* text behind a zero */
    {"|S3", "abc", 3, "abc"},
    {"|S3", "a\0\0", 3, "a"},
    {"|S3", "\xe2\x82\xac", 3, "\xe2\x82\xac"},
    {"|S3", "a\0b", 3, NULL},
    {"|S1", "\xff", 1, NULL},
    {"|S2", "\xc0\x80", 2, NULL},           /* an overlong zero */
    {"|S3", "\xed\xa0\x80", 3, NULL},       /* a surrogate in UTF-8 */
    {"|S1", "\xe2", 1, NULL},               /* cut */
    {"|S4", "\xf4\x90\x80\x80", 4, NULL},   /* above U+10FFFF */
};

UNIT(text_becomes_utf8)
{
    for (size_t i = 0; i < COUNT(texts); i++) {
        bytes b = npy_array(texts[i].descr, "()", 0);
        attn_file *file;
        attn_array array;
        attn_status status;

        add(&b, texts[i].data, texts[i].n_data);
        assert_int_equal(attn_file_open(file_of(&b, "a.npy"), &file, NULL),
                         ATTN_OK);
        status = attn_file_load(file, 0, &array, NULL);
        if (texts[i].text) {
            assert_int_equal(status, ATTN_OK);
            assert_int_equal(array.dtype, ATTN_NONE);
            assert_null(array.data);
            assert_string_equal(array.text[0], texts[i].text);
        } else {
            assert_int_equal(status, ATTN_E_FORMAT);
        }
        attn_array_free(&array);
        attn_file_close(file);
        drop(&b);
    }
}

UNIT(text_in_fortran_order_is_turned_round)
{
    bytes b = npy_of(1, "{" DESCR("'|S1'") ", " ORDER("True") ", "
                     SHAPE("(2, 3)") "}", 0);
    attn_file *file;
    attn_array array;

    add_text(&b, "adbecf");
    assert_int_equal(attn_file_open(file_of(&b, "a.npy"), &file, NULL),
                     ATTN_OK);
    assert_int_equal(attn_file_load(file, 0, &array, NULL), ATTN_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(array.text[i][0], "abcdef"[i]);
    attn_array_free(&array);
    attn_file_close(file);
    drop(&b);
}

UNIT(too_many_strings_exceed_a_limit)
{
    bytes b = npy_array("|S1", "(1048577,)", 1048577);

    assert_int_equal(read_all(file_of(&b, "a.npy"), NULL), ATTN_E_LIMIT);
    drop(&b);
}

UNIT(an_array_is_named_by_the_stem_of_its_file)
{
    static const char *const names[][2] = {
        {"q.npy", "q"}, {"my.data.npy", "my.data"}, {"plain", "plain"},
        {".npy", ".npy"},
    };

    for (size_t i = 0; i < COUNT(names); i++) {
        bytes b = npy_array("<f4", "(3,)", 12);
        attn_file *file;

        assert_int_equal(attn_file_open(file_of(&b, names[i][0]), &file, NULL),
                         ATTN_OK);
        assert_string_equal(attn_file_entry(file, 0)->name, names[i][1]);
        assert_string_equal(attn_file_format(file), "npy");
        assert_int_equal(attn_file_find(file, names[i][1]), 0);
        assert_int_equal(attn_file_find(file, "other"), -1);
        attn_file_close(file);
        drop(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dictionary_gets_its_answer),
        cmocka_unit_test(lists_nested_ten_thousand_deep_are_no_type),
        cmocka_unit_test(an_object_array_is_told_about_pickle),
        cmocka_unit_test(versions_1_2_and_3_are_read),
        cmocka_unit_test(the_suffix_of_long_integers_is_python_2s),
        cmocka_unit_test(lengths_of_headers_are_checked),
        cmocka_unit_test(a_header_of_the_largest_legal_length_is_read),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(every_flipped_bit_is_an_error_or_an_array),
        cmocka_unit_test(what_is_no_regular_file_is_an_error_of_the_system),
        cmocka_unit_test(a_file_that_shrinks_after_opening_is_truncated),
        cmocka_unit_test(null_and_wrong_arguments_are_refused),
        cmocka_unit_test(every_type_is_read_in_both_byte_orders),
        cmocka_unit_test(integers_beyond_int64_overflow),
        cmocka_unit_test(fortran_order_is_turned_round),
        cmocka_unit_test(text_becomes_utf8),
        cmocka_unit_test(text_in_fortran_order_is_turned_round),
        cmocka_unit_test(too_many_strings_exceed_a_limit),
        cmocka_unit_test(an_array_is_named_by_the_stem_of_its_file),
    };

    return cmocka_run_group_tests(tests, NULL, remove_files);
}
