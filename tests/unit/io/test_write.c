/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing .npy and .npz: what comes back is what went out, the bytes depend on
 * nothing else, and a path that can't be written is as it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "io_files.h"

static const attn_dtype dtypes[] = {ATTN_F64,  ATTN_F32, ATTN_BF16, ATTN_F16,
                                    ATTN_BOOL, ATTN_I32, ATTN_I64};
static const char *const formats[] = {"<f8", "<f4", "<V2", "<f2",
                                      "|b1", "<i4", "<i8"};
static const int64_t shape[] = {2, 3, 1, 2, 1, 1, 2, 1};

static attn_array array_of(const char *name, attn_dtype dtype, int32_t rank)
{
    attn_array a;

    assert_int_equal(attn_array_init(&a, name, dtype, rank, shape, NULL),
                     ATTN_OK);
    for (size_t i = 0; i < (size_t)a.count * attn_dtype_size(dtype); i++)
        ((unsigned char *)a.data)[i] =
            (unsigned char)(dtype == ATTN_BOOL ? i % 2 : 7 * i + 3);
    return a;
}

static void expect_same(const attn_array *a, const attn_array *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->shape, b->shape, sizeof a->shape);
    assert_int_equal(a->count, b->count);
    if (a->dtype != ATTN_NONE)
        assert_memory_equal(a->data, b->data,
                            (size_t)a->count * attn_dtype_size(a->dtype));
    for (int64_t i = 0; a->text && i < a->count; i++)
        assert_string_equal(a->text[i], b->text[i]);
}

/* The arrays of a file there are these, in this order. */
static void expect_file(const char *name, const attn_array *arrays, int64_t n)
{
    attn_file *file;

    assert_int_equal(attn_file_open(path_of(name), &file, NULL), ATTN_OK);
    assert_int_equal(attn_file_count(file), n);
    for (int64_t i = 0; i < n; i++) {
        attn_array back;

        assert_int_equal(attn_file_load(file, i, &back, NULL), ATTN_OK);
        expect_same(&arrays[i], &back);
        attn_array_free(&back);
    }
    attn_file_close(file);
}

UNIT(every_type_and_rank_comes_back_from_an_npz)
{
    for (int32_t rank = 0; rank <= ATTN_ARRAY_MAX_RANK; rank++) {
        attn_array arrays[COUNT(dtypes)];

        for (size_t i = 0; i < COUNT(dtypes); i++)
            arrays[i] = array_of(attn_dtype_name(dtypes[i]), dtypes[i], rank);
        assert_int_equal(attn_npz_write(path_of("w.npz"), arrays,
                                        COUNT(dtypes), NULL),
                         ATTN_OK);
        expect_file("w.npz", arrays, COUNT(dtypes));
        for (size_t i = 0; i < COUNT(dtypes); i++)
            attn_array_free(&arrays[i]);
    }
}

UNIT(every_type_comes_back_from_an_npy)
{
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        attn_array a = array_of("w", dtypes[i], 3);
        attn_file *file;

        assert_int_equal(attn_npy_write(path_of("w.npy"), &a, NULL), ATTN_OK);
        expect_file("w.npy", &a, 1);
        assert_int_equal(attn_file_open(path_of("w.npy"), &file, NULL),
                         ATTN_OK);
        assert_string_equal(attn_file_entry(file, 0)->format, formats[i]);
        attn_file_close(file);
        attn_array_free(&a);
    }
}

/* What NumPy 2.3.5 wrote for np.arange(3, dtype='<f4'), byte for byte. */
UNIT(the_bytes_of_an_npy_are_numpys)
{
    static const char header[] =
        "\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, "
        "'shape': (3,), }                                              "
        "              \n";
    const int64_t three = 3;
    attn_array a;
    bytes b;

    assert_int_equal(attn_array_init(&a, "a", ATTN_F32, 1, &three, NULL),
                     ATTN_OK);
    for (int i = 0; i < 3; i++)
        ((float *)a.data)[i] = (float)i;
    assert_int_equal(attn_npy_write(path_of("w.npy"), &a, NULL), ATTN_OK);
    b = contents_of("w.npy");
    assert_int_equal(sizeof header - 1, 128);
    assert_int_equal(b.n, 128 + 12);
    assert_memory_equal(b.data, header, 128);
    assert_memory_equal(b.data + 128, "\0\0\0\0\0\0\x80\x3f\0\0\0\x40", 12);
    drop(&b);
    attn_array_free(&a);
}

static char *strings[] = {"[CLS]", "", "caf\xc3\xa9", "\xf0\x9f\x98\x80"};

static attn_array text_array(int32_t rank, int64_t rows, int64_t n)
{
    return (attn_array){.name = "tokens", .rank = rank,
                        .shape = {rank == 2 ? rows : n, rank == 2 ? n : 0},
                        .count = n * (rank == 2 ? rows : 1), .text = strings};
}

UNIT(text_comes_back)
{
    const attn_array arrays[] = {text_array(1, 1, 4), text_array(2, 2, 2),
                                 text_array(1, 1, 0)};

    for (size_t i = 0; i < COUNT(arrays); i++) {
        assert_int_equal(attn_npz_write(path_of("t.npz"), &arrays[i], 1, NULL),
                         ATTN_OK);
        expect_file("t.npz", &arrays[i], 1);
    }
}

/* Longer than one piece of the writer. */
UNIT(a_long_string_comes_back)
{
    char text[5000], *one[] = {text};
    const attn_array a = {.name = "t", .count = 1, .text = one};

    memset(text, 'x', sizeof text);
    text[4999] = '\0';
    assert_int_equal(attn_npz_write(path_of("t.npz"), &a, 1, NULL), ATTN_OK);
    expect_file("t.npz", &a, 1);
}

UNIT(no_arrays_are_an_empty_archive)
{
    assert_int_equal(attn_npz_write(path_of("w.npz"), NULL, 0, NULL),
                     ATTN_OK);
    expect_file("w.npz", NULL, 0);
}

UNIT(names_outside_ascii_come_back)
{
    attn_array a = array_of("\xc3\xa9/q", ATTN_F32, 1);

    assert_int_equal(attn_npz_write(path_of("w.npz"), &a, 1, NULL), ATTN_OK);
    expect_file("w.npz", &a, 1);
    attn_array_free(&a);
}

UNIT(the_same_arrays_give_the_same_bytes)
{
    attn_array a = array_of("q", ATTN_F32, 3);
    bytes first, second;

    assert_int_equal(attn_npz_write(path_of("w.npz"), &a, 1, NULL), ATTN_OK);
    first = contents_of("w.npz");
    assert_int_equal(attn_npz_write(path_of("w.npz"), &a, 1, NULL), ATTN_OK);
    second = contents_of("w.npz");
    assert_int_equal(first.n, second.n);
    assert_memory_equal(first.data, second.data, first.n);
    drop(&first);
    drop(&second);
    attn_array_free(&a);
}

/* ---------------------------------------------------------------- refusals */

UNIT(arrays_that_contradict_themselves_are_refused)
{
    static char *bad_text[] = {"\xff"};
    float x = 0;
    const attn_array good = {.name = "q", .dtype = ATTN_F32, .rank = 1,
                             .shape = {1}, .count = 1, .data = &x};
    struct {
        attn_array array;
        attn_status status;
    } cases[] = {
        {good, ATTN_E_MISMATCH}, {good, ATTN_E_SHAPE},  {good, ATTN_E_SHAPE},
        {good, ATTN_E_DTYPE},    {good, ATTN_E_ARG},    {good, ATTN_E_FORMAT},
        {good, ATTN_E_ARG},      {good, ATTN_E_ARG},    {good, ATTN_E_ARG},
        {good, ATTN_E_SHAPE},
    };

    cases[0].array.count = 2;
    cases[1].array.shape[0] = -1;
    cases[2].array.rank = 9;
    cases[3].array.dtype = (attn_dtype)99;
    cases[4].array.data = NULL;
    cases[5].array.dtype = ATTN_NONE;
    cases[5].array.text = bad_text;
    cases[6].array.name = NULL;
    cases[7].array.name = "../q";
    cases[8].array.name = "";
    cases[9].array.rank = 2;
    cases[9].array.shape[0] = cases[9].array.shape[1] = INT64_MAX / 2;
    for (size_t i = 0; i < COUNT(cases); i++) {
        attn_diag diag = {ATTN_OK, "", ""};

        assert_int_equal(attn_npz_write(path_of("w2.npz"), &cases[i].array, 1,
                                        &diag),
                         cases[i].status);
        assert_int_equal(diag.status, cases[i].status);
        assert_int_equal(access(path_of("w2.npz"), F_OK), -1);
    }
    assert_int_equal(attn_npz_write(NULL, &good, 1, NULL), ATTN_E_ARG);
    assert_int_equal(attn_npz_write("w", NULL, 1, NULL), ATTN_E_ARG);
    assert_int_equal(attn_npz_write("w", &good, -1, NULL), ATTN_E_ARG);
    assert_int_equal(attn_npz_write("w", &good, 65536, NULL), ATTN_E_LIMIT);
    assert_int_equal(attn_npy_write(NULL, &good, NULL), ATTN_E_ARG);
    assert_int_equal(attn_npy_write("w", NULL, NULL), ATTN_E_ARG);
}

UNIT(two_arrays_of_one_name_are_refused)
{
    attn_array two[] = {array_of("q", ATTN_F32, 1), array_of("q", ATTN_F32, 1)};

    assert_int_equal(attn_npz_write(path_of("w2.npz"), two, 2, NULL),
                     ATTN_E_DUPLICATE);
    assert_int_equal(access(path_of("w2.npz"), F_OK), -1);
    attn_array_free(&two[0]);
    attn_array_free(&two[1]);
}

UNIT(devices_folders_and_nowhere_are_not_written)
{
    attn_array a = array_of("q", ATTN_F32, 1);
    struct stat info;

    assert_int_equal(attn_npz_write("/dev/null", &a, 1, NULL), ATTN_E_IO);
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_int_equal(attn_npz_write("/", &a, 1, NULL), ATTN_E_IO);
    assert_int_equal(attn_npz_write("", &a, 1, NULL), ATTN_E_IO);
    assert_int_equal(attn_npz_write("io-test-nowhere/w.npz", &a, 1, NULL),
                     ATTN_E_IO);
    attn_array_free(&a);
}

/* A left-over of a killed process has the name that we would take first. */
UNIT(a_temporary_file_of_somebody_else_is_left_alone)
{
    attn_array a = array_of("q", ATTN_F32, 1);
    bytes theirs = {0}, b;
    char name[40];

    add_text(&theirs, "theirs");
    snprintf(name, sizeof name, "w.npz.%ld.0.tmp", (long)getpid());
    file_of(&theirs, name);
    assert_int_equal(attn_npz_write(path_of("w.npz"), &a, 1, NULL), ATTN_OK);
    b = contents_of(name);
    assert_int_equal(b.n, 6);
    drop(&b);
    drop(&theirs);
    attn_array_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_rank_comes_back_from_an_npz),
        cmocka_unit_test(every_type_comes_back_from_an_npy),
        cmocka_unit_test(the_bytes_of_an_npy_are_numpys),
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(a_long_string_comes_back),
        cmocka_unit_test(no_arrays_are_an_empty_archive),
        cmocka_unit_test(names_outside_ascii_come_back),
        cmocka_unit_test(the_same_arrays_give_the_same_bytes),
        cmocka_unit_test(arrays_that_contradict_themselves_are_refused),
        cmocka_unit_test(two_arrays_of_one_name_are_refused),
        cmocka_unit_test(devices_folders_and_nowhere_are_not_written),
        cmocka_unit_test(a_temporary_file_of_somebody_else_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, remove_files);
}
