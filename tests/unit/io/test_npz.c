/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading .npz: archives of every accepted kind, and the answer to each kind
 * of hostile one in docs/formats.md. */
#include <stdlib.h>
#include <string.h>

#include "../unit.h"
#include "zip_maker.h"

static const zip_plan plain = {false, false, false};
static const zip_plan wide = {false, false, true};
static const zip_plan packed = {true, false, false};

/* The status of an archive, which is dropped. */
static attn_status answer(zip_made *z, attn_diag *diag)
{
    const attn_status status = read_all(file_of(&z->b, "a.npz"), diag);

    drop(&z->b);
    return status;
}

UNIT(stored_deflated_described_and_zip64_archives_are_read)
{
    for (int kind = 0; kind < 8; kind++) {
        const zip_plan plan = {kind & 1, kind & 2, kind & 4};
        static const char *const names[] = {"q.npy", "folder/k.npy", "t.npy"};
        bytes contents[] = {npy_array("<f4", "(2,)", 0),
                            npy_array("|b1", "()", 1),
                            npy_array("|S2", "(1,)", 0)};
        zip_made z;
        attn_file *file;
        attn_array array;

        add(&contents[0], "\0\0\x80\x3f\0\0\0\x40", 8);
        add_text(&contents[2], "hi");
        z = zip_of(&plan, 3, names, contents);
        assert_int_equal(attn_file_open(file_of(&z.b, "a.npz"), &file, NULL),
                         ATTN_OK);
        assert_string_equal(attn_file_format(file), "npz");
        assert_int_equal(attn_file_count(file), 3);
        assert_int_equal(attn_file_find(file, "folder/k"), 1);
        assert_int_equal(attn_file_find(file, "Q"), 0);
        assert_int_equal(attn_file_load(file, 0, &array, NULL), ATTN_OK);
        assert_true(attn_array_value(&array, 0) == 1);
        assert_true(attn_array_value(&array, 1) == 2);
        attn_array_free(&array);
        assert_int_equal(attn_file_load(file, 2, &array, NULL), ATTN_OK);
        assert_string_equal(array.text[0], "hi");
        attn_array_free(&array);
        attn_file_close(file);
        assert_int_equal(answer(&z, NULL), ATTN_OK);
        for (int i = 0; i < 3; i++)
            drop(&contents[i]);
    }
}

UNIT(an_archive_without_members_is_read)
{
    zip_made z = zip_of(&plain, 0, NULL, NULL);

    assert_int_equal(answer(&z, NULL), ATTN_OK);
}

UNIT(names_are_found_by_exact_case_first)
{
    static const char *const names[] = {"Q.npy", "q.npy"};
    bytes contents[] = {npy_array("<f4", "(3,)", 12),
                        npy_array("<f4", "(3,)", 12)};
    zip_made z = zip_of(&plain, 2, names, contents);
    attn_file *file;

    assert_int_equal(attn_file_open(file_of(&z.b, "a.npz"), &file, NULL),
                     ATTN_OK);
    assert_int_equal(attn_file_find(file, "q"), 1);
    assert_int_equal(attn_file_find(file, "Q"), 0);
    attn_file_close(file);
    drop(&z.b);
    drop(&contents[0]);
    drop(&contents[1]);
}

/* A member that can't be loaded leaves the others alone. */
UNIT(what_is_not_loadable_does_not_hide_the_rest)
{
    static const char *const names[] = {"o.npy", "q.npy", "readme.txt",
                                        "folder/", "z.npy"};
    bytes contents[] = {npy_array("|O", "(3,)", 40),
                        npy_array("<f4", "(3,)", 12), {0}, {0}, {0}};
    zip_made inner = zip_usual(&plain), z;
    attn_file *file;
    attn_array array;
    attn_diag diag;

    add_text(&contents[2], "hello");
    add(&contents[4], inner.b.data, inner.b.n);
    z = zip_of(&plain, 5, names, contents);
    assert_int_equal(attn_file_open(file_of(&z.b, "a.npz"), &file, NULL),
                     ATTN_OK);
    for (int i = 0; i < 5; i++) {
        const attn_status expected = i == 1 ? ATTN_OK : ATTN_E_UNSUPPORTED;

        assert_int_equal(attn_file_entry(file, i)->status, expected);
        assert_int_equal(attn_file_load(file, i, &array, &diag), expected);
        attn_array_free(&array);
    }
    assert_non_null(strstr(diag.message, "archive inside"));
    assert_string_equal(attn_file_entry(file, 0)->format, "|O");
    attn_file_close(file);
    drop(&z.b);
    drop(&inner.b);
    for (int i = 0; i < 5; i++)
        drop(&contents[i]);
}

/* ----------------------------------------------- one wrong field at a time */

typedef enum part { LOCAL, CENTRAL, BOTH, END, END64, LOCATOR } part;

/* `value` of `size` bytes at `local` of the local header, `central` of the
 * directory's record (or of another record). */
static const struct {
    const char *what;
    const zip_plan *plan;
    part part;
    int at, central, size;
    unsigned long long value;
    attn_status status;
} changes[] = {
    {"encrypted", &plain, BOTH, LOCAL_FLAGS, CENTRAL_FLAGS, 2, 0x0001,
     ATTN_E_UNSUPPORTED},
    {"strongly encrypted", &plain, BOTH, LOCAL_FLAGS, CENTRAL_FLAGS, 2, 0x0041,
     ATTN_E_UNSUPPORTED},
    {"directory encrypted", &plain, BOTH, LOCAL_FLAGS, CENTRAL_FLAGS, 2,
     0x2000, ATTN_E_UNSUPPORTED},
    {"patched data", &plain, BOTH, LOCAL_FLAGS, CENTRAL_FLAGS, 2, 0x0020,
     ATTN_E_UNSUPPORTED},
    {"marked as UTF-8", &plain, BOTH, LOCAL_FLAGS, CENTRAL_FLAGS, 2, 0x0800,
     ATTN_OK},
    {"flags differ", &plain, LOCAL, LOCAL_FLAGS, 0, 2, 0x0800, ATTN_E_FORMAT},
    {"a later ZIP", &plain, CENTRAL, 6, 0, 2, 64, ATTN_E_UNSUPPORTED},
    {"the latest ZIP", &plain, CENTRAL, 6, 0, 2, 63, ATTN_OK},
    {"bzip2", &plain, BOTH, LOCAL_METHOD, CENTRAL_METHOD, 2, 12,
     ATTN_E_UNSUPPORTED},
    {"methods differ", &plain, LOCAL, LOCAL_METHOD, 0, 2, 8, ATTN_E_FORMAT},
    {"stored called deflated", &plain, BOTH, LOCAL_METHOD, CENTRAL_METHOD, 2,
     8, ATTN_E_FORMAT},
    {"wrong CRC", &plain, BOTH, LOCAL_CRC, CENTRAL_CRC, 4, 1, ATTN_E_FORMAT},
    {"wrong CRC, deflated", &packed, BOTH, LOCAL_CRC, CENTRAL_CRC, 4, 1,
     ATTN_E_FORMAT},
    {"local CRC differs", &plain, LOCAL, LOCAL_CRC, 0, 4, 1, ATTN_E_FORMAT},
    {"stored with two sizes", &plain, BOTH, LOCAL_SIZE, CENTRAL_SIZE, 4, 141,
     ATTN_E_FORMAT},
    {"local size differs", &plain, LOCAL, LOCAL_SIZE, 0, 4, 141,
     ATTN_E_FORMAT},
    {"local packed size differs", &plain, LOCAL, LOCAL_PACKED, 0, 4, 139,
     ATTN_E_FORMAT},
    {"inflates to less", &packed, BOTH, LOCAL_SIZE, CENTRAL_SIZE, 4, 141,
     ATTN_E_FORMAT},
    {"inflates to more", &packed, BOTH, LOCAL_SIZE, CENTRAL_SIZE, 4, 139,
     ATTN_E_TRUNCATED},
    {"a bomb", &packed, BOTH, LOCAL_SIZE, CENTRAL_SIZE, 4, 145 * 1033,
     ATTN_E_LIMIT},
    {"a bomb of 4 GiB", &packed, BOTH, LOCAL_SIZE, CENTRAL_SIZE, 4,
     0xfffffffe, ATTN_E_LIMIT},
    {"local header beyond the file", &plain, CENTRAL, CENTRAL_OFFSET, 0, 4,
     0x10000000, ATTN_E_FORMAT},
    {"local header in the directory", &plain, CENTRAL, CENTRAL_OFFSET, 0, 4,
     175, ATTN_E_FORMAT},
    {"no local header there", &plain, CENTRAL, CENTRAL_OFFSET, 0, 4, 1,
     ATTN_E_FORMAT},
    {"name too long for the record", &plain, CENTRAL, CENTRAL_N_NAME, 0, 2,
     60000, ATTN_E_FORMAT},
    {"no name", &plain, CENTRAL, CENTRAL_N_NAME, 0, 2, 0, ATTN_E_FORMAT},
    {"local name too long", &plain, LOCAL, LOCAL_N_NAME, 0, 2, 60000,
     ATTN_E_FORMAT},
    {"extra beyond the record", &plain, CENTRAL, CENTRAL_N_EXTRA, 0, 2, 8,
     ATTN_E_FORMAT},
    {"comment beyond the record", &plain, CENTRAL, CENTRAL_N_COMMENT, 0, 2, 1,
     ATTN_E_FORMAT},
    {"another volume", &plain, CENTRAL, CENTRAL_DISK, 0, 2, 1,
     ATTN_E_UNSUPPORTED},
    {"several volumes", &plain, END, END_DISK, 0, 2, 1, ATTN_E_UNSUPPORTED},
    {"counts differ", &plain, END, END_N_HERE, 0, 2, 2, ATTN_E_UNSUPPORTED},
    {"directory elsewhere", &plain, END, END_OFFSET, 0, 4, 0, ATTN_E_FORMAT},
    {"directory too large", &plain, END, END_SIZE, 0, 4, 0xfffffffe,
     ATTN_E_FORMAT},
    {"comment that is not there", &plain, END, END_N_COMMENT, 0, 2, 5,
     ATTN_E_FORMAT},
    {"ZIP64 size wraps", &wide, LOCAL, LOCAL_NAME + 5 + 4, 0, 8,
     0xffffffffffffffff, ATTN_E_OVERFLOW},
    {"ZIP64 size in the directory wraps", &wide, CENTRAL, CENTRAL_NAME + 5 + 4,
     0, 8, 0xffffffffffffffff, ATTN_E_OVERFLOW},
    {"ZIP64 packed size wraps", &wide, CENTRAL, CENTRAL_NAME + 5 + 12, 0, 8,
     0x8000000000000000, ATTN_E_OVERFLOW},
    {"ZIP64 offset wraps", &wide, CENTRAL, CENTRAL_NAME + 5 + 20, 0, 8,
     0xfffffffffffffff0, ATTN_E_OVERFLOW},
    {"ZIP64 offset at the edge", &wide, CENTRAL, CENTRAL_NAME + 5 + 20, 0, 8,
     0x7fffffffffffffff, ATTN_E_FORMAT},
    {"ZIP64 field too short", &wide, CENTRAL, CENTRAL_NAME + 5 + 2, 0, 2, 20,
     ATTN_E_FORMAT},
    {"ZIP64 field too long", &wide, CENTRAL, CENTRAL_NAME + 5 + 2, 0, 2, 25,
     ATTN_E_FORMAT},
    {"no ZIP64 field", &wide, CENTRAL, CENTRAL_NAME + 5, 0, 2, 2,
     ATTN_E_FORMAT},
    {"ZIP64 record beyond 2^63", &wide, LOCATOR, 8, 0, 8, 0xffffffffffffffc8,
     ATTN_E_OVERFLOW},
    {"ZIP64 record behind its locator", &wide, LOCATOR, 8, 0, 8, 1000,
     ATTN_E_FORMAT},
    {"no ZIP64 record there", &wide, LOCATOR, 8, 0, 8, 1, ATTN_E_FORMAT},
    {"ZIP64 record of wrong length", &wide, END64, 4, 0, 8, 45, ATTN_E_FORMAT},
    {"ZIP64 record of endless length", &wide, END64, 4, 0, 8,
     0xfffffffffffffff4, ATTN_E_FORMAT},
    {"ZIP64 volumes", &wide, END64, 16, 0, 4, 1, ATTN_E_UNSUPPORTED},
    {"ZIP64 directory size wraps", &wide, END64, 40, 0, 8, 0xffffffffffffffff,
     ATTN_E_OVERFLOW},
    {"ZIP64 directory end wraps", &wide, END64, 48, 0, 8, 0x7fffffffffffffff,
     ATTN_E_OVERFLOW},
    {"end records disagree", &wide, END, END_SIZE, 0, 4, 5, ATTN_E_FORMAT},
};

static void change(zip_made *z, size_t i)
{
    const size_t base[] = {z->local[0], z->central[0], z->local[0],
                           z->end,      z->end64,      z->locator};
    const int at = changes[i].at, size = changes[i].size;

    set_le(&z->b, base[changes[i].part] + (size_t)at, changes[i].value, size);
    if (changes[i].part == BOTH)
        set_le(&z->b, z->central[0] + (size_t)changes[i].central,
               changes[i].value, size);
}

UNIT(every_wrong_field_gets_its_answer)
{
    for (size_t i = 0; i < COUNT(changes); i++) {
        zip_made z = zip_usual(changes[i].plan);
        attn_diag diag;
        attn_status status;

        change(&z, i);
        status = answer(&z, &diag);
        if (status != changes[i].status)
            print_error("%s: %s %s: %s, expected %s\n", changes[i].what,
                        attn_status_name(status), diag.field, diag.message,
                        attn_status_name(changes[i].status));
        assert_int_equal(status, changes[i].status);
    }
}

/* --------------------------------------------------------- names of members */

static const struct {
    const char *name;
    attn_status status;
} names[] = {
    {"q.npy", ATTN_OK},
    {"a/b/q.npy", ATTN_OK},
    {"a.b..c.npy", ATTN_OK},
    {"/q.npy", ATTN_E_FORMAT},
    {"/etc/q.npy", ATTN_E_FORMAT},
    {"../q.npy", ATTN_E_FORMAT},
    {"a/../q.npy", ATTN_E_FORMAT},
    {"a/..", ATTN_E_FORMAT},
    {"./q.npy", ATTN_E_FORMAT},
    {"a//q.npy", ATTN_E_FORMAT},
    {"..\\q.npy", ATTN_E_FORMAT},
    {"C:q.npy", ATTN_E_FORMAT},
    {"q\n.npy", ATTN_E_FORMAT},
    {"q\x1b[31m.npy", ATTN_E_FORMAT},
    {"q\x7f.npy", ATTN_E_FORMAT},
    {"q\xc2\x9b.npy", ATTN_E_FORMAT},           /* a control of Latin-1 */
    {"q\xff.npy", ATTN_E_FORMAT},
    {"q\xc3\xa9.npy", ATTN_E_UNSUPPORTED},      /* not marked as UTF-8 */
    {".npy", ATTN_E_UNSUPPORTED},               /* no name before it */
    {"q", ATTN_E_UNSUPPORTED},
};

UNIT(names_stay_inside_and_are_printable)
{
    for (size_t i = 0; i < COUNT(names); i++) {
        bytes content = npy_array("<f4", "(3,)", 12);
        zip_made z = zip_of(&plain, 1, &names[i].name, &content);
        const attn_status status = answer(&z, NULL);

        if (status != names[i].status)
            print_error("%s: %s\n", names[i].name, attn_status_name(status));
        assert_int_equal(status, names[i].status);
        drop(&content);
    }
}

UNIT(a_name_marked_as_utf8_is_read)
{
    static const char *const name[] = {"\xc3\xa9.npy"};
    bytes content = npy_array("<f4", "(3,)", 12);
    zip_made z = zip_of(&plain, 1, name, &content);
    attn_file *file;

    set_le(&z.b, z.local[0] + LOCAL_FLAGS, 0x0800, 2);
    set_le(&z.b, z.central[0] + CENTRAL_FLAGS, 0x0800, 2);
    assert_int_equal(attn_file_open(file_of(&z.b, "a.npz"), &file, NULL),
                     ATTN_OK);
    assert_string_equal(attn_file_entry(file, 0)->name, "\xc3\xa9");
    attn_file_close(file);
    drop(&z.b);
    drop(&content);
}

UNIT(a_name_with_a_zero_inside_is_refused)
{
    zip_made z = zip_usual(&plain);

    z.b.data[z.local[0] + LOCAL_NAME] = 0;
    z.b.data[z.central[0] + CENTRAL_NAME] = 0;
    assert_int_equal(answer(&z, NULL), ATTN_E_FORMAT);
}

UNIT(a_local_name_that_differs_is_refused)
{
    zip_made z = zip_usual(&plain);

    z.b.data[z.local[0] + LOCAL_NAME] = 'k';
    assert_int_equal(answer(&z, NULL), ATTN_E_FORMAT);
}

UNIT(names_that_are_too_long_exceed_a_limit)
{
    char long_name[1030];
    const char *const name[] = {long_name};
    bytes content = npy_array("<f4", "(3,)", 12);
    zip_made z;

    memset(long_name, 'x', sizeof long_name);
    strcpy(long_name + 1021, ".npy");
    z = zip_of(&plain, 1, name, &content);
    assert_int_equal(answer(&z, NULL), ATTN_E_LIMIT);
    strcpy(long_name + 1020, ".npy");
    z = zip_of(&plain, 1, name, &content);
    assert_int_equal(answer(&z, NULL), ATTN_OK);
    drop(&content);
}

/* ------------------------------------------------------ members, together */

static zip_made zip_of_two(const char *first, const char *second)
{
    const char *const both[] = {first, second};
    bytes contents[] = {npy_array("<f4", "(3,)", 12),
                        npy_array("<f4", "(3,)", 12)};
    zip_made z = zip_of(&plain, 2, both, contents);

    drop(&contents[0]);
    drop(&contents[1]);
    return z;
}

UNIT(names_occur_once)
{
    zip_made same = zip_of_two("q.npy", "q.npy");
    zip_made entry = zip_of_two("q", "q.npy");

    assert_int_equal(answer(&same, NULL), ATTN_E_DUPLICATE);
    assert_int_equal(answer(&entry, NULL), ATTN_E_DUPLICATE);
}

UNIT(members_that_share_a_local_header_overlap)
{
    zip_made z = zip_of_two("q.npy", "k.npy");
    attn_diag diag;

    /* The second record of the directory becomes the first, but for its
     * name, which the local header then contradicts; so both names agree. */
    z.b.data[z.central[1] + CENTRAL_NAME] = 'q';
    set_le(&z.b, z.central[1] + CENTRAL_OFFSET, z.local[0], 4);
    assert_int_equal(answer(&z, &diag), ATTN_E_FORMAT);
    assert_non_null(strstr(diag.message, "overlaps"));
}

/* A member whose data hold the whole of another member (as in the bombs of
 * D. Fifield, "A better zip bomb", 2019). */
UNIT(a_member_inside_another_overlaps)
{
    static const char *const outer_name[] = {"a.npy"};
    zip_made inner = zip_usual(&plain), z;
    bytes content = npy_array("|S1", "(215,)", 0);
    attn_diag diag;
    size_t inside;

    assert_true(inner.directory <= 215);
    add(&content, inner.b.data, inner.directory);
    add_zeros(&content, 128 + 215 - content.n);
    z = zip_of(&plain, 1, outer_name, &content);
    inside = z.data[0] + 128; /* where the inner local header lies */
    z.b.n = z.end;            /* another record in place of the end */
    add(&z.b, inner.b.data + inner.central[0], inner.end - inner.central[0]);
    set_le(&z.b, z.end + CENTRAL_OFFSET, inside, 4);
    z.end = z.b.n;
    add_le(&z.b, 0x06054b50, 4);
    add_le(&z.b, 0, 4);
    add_le(&z.b, 2, 2);
    add_le(&z.b, 2, 2);
    add_le(&z.b, z.end - z.directory, 4);
    add_le(&z.b, z.directory, 4);
    add_le(&z.b, 0, 2);
    assert_int_equal(answer(&z, &diag), ATTN_E_FORMAT);
    assert_non_null(strstr(diag.message, "overlaps"));
    drop(&content);
    drop(&inner.b);
}

UNIT(too_many_members_exceed_a_limit)
{
    zip_made z = zip_usual(&wide);

    /* As many records as the directory would have to have room for. */
    add_zeros(&z.b, 46 * 70000);
    memmove(z.b.data + z.end64 + 46 * 70000, z.b.data + z.end64,
            z.b.n - 46 * 70000 - z.end64);
    set_le(&z.b, z.end64 + 46 * 70000 + 24, 70000, 8);
    set_le(&z.b, z.end64 + 46 * 70000 + 32, 70000, 8);
    set_le(&z.b, z.end64 + 46 * 70000 + 40,
           z.end64 - z.directory + 46 * 70000, 8);
    set_le(&z.b, z.locator + 46 * 70000 + 8, z.end64 + 46 * 70000, 8);
    assert_int_equal(answer(&z, NULL), ATTN_E_LIMIT);
}

UNIT(a_comment_may_end_the_archive_and_nothing_else)
{
    zip_made comment = zip_usual(&plain), garbage = zip_usual(&plain);

    set_le(&comment.b, comment.end + END_N_COMMENT, 5, 2);
    add_text(&comment.b, "hello");
    assert_int_equal(answer(&comment, NULL), ATTN_OK);
    add_text(&garbage.b, "hello");
    assert_int_equal(answer(&garbage, NULL), ATTN_E_FORMAT);
}

UNIT(bytes_before_the_archive_are_refused)
{
    zip_made z = zip_usual(&plain);
    bytes b = {0};

    add_text(&b, "PK\3\4junk");
    add(&b, z.b.data, z.b.n);
    assert_int_equal(read_all(file_of(&b, "a.npz"), NULL), ATTN_E_FORMAT);
    drop(&b);
    drop(&z.b);
}

/* The member is good as a ZIP, and bad as a .npy. */
UNIT(members_are_judged_like_files)
{
    static const char *const name[] = {"q.npy"};
    static const struct {
        const char *descr, *shape;
        size_t n_data;
        attn_status status;
    } cases[] = {
        {"<f4", "(3,)", 11, ATTN_E_TRUNCATED},
        {"<f4", "(3,)", 13, ATTN_E_FORMAT},
        {"<f4", "(-3,)", 12, ATTN_E_FORMAT},
        {"<f4", "(9223372036854775807, 2)", 12, ATTN_E_OVERFLOW},
        {"<f4", "(4000000000,)", 12, ATTN_E_TRUNCATED},
        {"<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", 4, ATTN_E_LIMIT},
        {"|O", "(3,)", 12, ATTN_E_UNSUPPORTED},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int kind = 0; kind < 2; kind++) {
            bytes content = npy_array(cases[i].descr, cases[i].shape,
                                      cases[i].n_data);
            zip_made z = zip_of(kind ? &packed : &plain, 1, name, &content);

            assert_int_equal(answer(&z, NULL), cases[i].status);
            drop(&content);
        }
    }
}

UNIT(every_prefix_is_refused)
{
    for (int kind = 0; kind < 2; kind++) {
        zip_made z = zip_usual(kind ? &wide : &packed);
        const size_t n = z.b.n;

        for (z.b.n = 0; z.b.n < n; z.b.n++) {
            const attn_status status = read_all(file_of(&z.b, "a.npz"), NULL);

            assert_true(status == ATTN_E_FORMAT || status == ATTN_E_TRUNCATED);
        }
        drop(&z.b);
    }
}

UNIT(every_flipped_bit_is_an_error_or_the_same_array)
{
    for (int kind = 0; kind < 3; kind++) {
        zip_made z = zip_usual(kind == 0 ? &plain : kind == 1 ? &packed
                                                              : &wide);
        int n_ok = 0;

        for (size_t bit = 0; bit < 8 * z.b.n; bit++) {
            attn_status status;

            z.b.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
            status = read_all(file_of(&z.b, "a.npz"), NULL);
            assert_true(status <= ATTN_E_MISMATCH);
            n_ok += status == ATTN_OK;
            z.b.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        /* Versions, dates and attributes are nobody's business: 20 bytes of
         * the headers, 18 more of ZIP64; and names may differ. */
        assert_true(n_ok < 8 * 48);
        drop(&z.b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            stored_deflated_described_and_zip64_archives_are_read),
        cmocka_unit_test(an_archive_without_members_is_read),
        cmocka_unit_test(names_are_found_by_exact_case_first),
        cmocka_unit_test(what_is_not_loadable_does_not_hide_the_rest),
        cmocka_unit_test(every_wrong_field_gets_its_answer),
        cmocka_unit_test(names_stay_inside_and_are_printable),
        cmocka_unit_test(a_name_marked_as_utf8_is_read),
        cmocka_unit_test(a_name_with_a_zero_inside_is_refused),
        cmocka_unit_test(a_local_name_that_differs_is_refused),
        cmocka_unit_test(names_that_are_too_long_exceed_a_limit),
        cmocka_unit_test(names_occur_once),
        cmocka_unit_test(members_that_share_a_local_header_overlap),
        cmocka_unit_test(a_member_inside_another_overlaps),
        cmocka_unit_test(too_many_members_exceed_a_limit),
        cmocka_unit_test(a_comment_may_end_the_archive_and_nothing_else),
        cmocka_unit_test(bytes_before_the_archive_are_refused),
        cmocka_unit_test(members_are_judged_like_files),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(every_flipped_bit_is_an_error_or_the_same_array),
    };

    return cmocka_run_group_tests(tests, NULL, remove_files);
}
