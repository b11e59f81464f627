/* SPDX-License-Identifier: Apache-2.0
 *
 * Appending to a cache: every row lands where attention will look for it, and
 * nothing else moves. */
#include "attn.h"

#include "unit.h"

#include <string.h>

enum { BATCH = 2, HEADS = 3, CAPACITY = 12, DIM = 4, PAGE = 5, PAGES = 7 };

/* What row n of head h of entry b holds in column c; never 0. */
static float value_of(int b, int h, int n, int c)
{
    return (float)(1 + c + 10 * n + 1000 * h + 10000 * b);
}

static void fill_rows(float *rows, int first, int n)
{
    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            for (int i = 0; i < n; i++)
                for (int c = 0; c < DIM; c++)
                    rows[((b * HEADS + h) * n + i) * DIM + c] =
                        value_of(b, h, first + i, c);
}

static attn_input lengths_of(const int32_t *lengths)
{
    return attn_in_dense(lengths, ATTN_I32, 1, (int64_t[]){BATCH});
}

UNIT(rows_follow_those_that_are_there)
{
    static float cache[BATCH * HEADS * CAPACITY * DIM];
    static float rows[BATCH * HEADS * 3 * DIM];
    const attn_tensor to =
        attn_bhsd(cache, ATTN_F32, BATCH, HEADS, CAPACITY, DIM);
    int32_t lengths[BATCH] = {0, 4};

    for (int step = 0; step < 2; step++) {
        fill_rows(rows, 3 * step, 3);
        assert_int_equal(
            attn_kv_append(to,
                           attn_in_bhsd(rows, ATTN_F32, BATCH, HEADS, 3, DIM),
                           lengths_of(lengths), (attn_input){0}, NULL),
            ATTN_OK);
        lengths[0] += 3;
        lengths[1] += 3;
    }
    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            for (int j = 0; j < CAPACITY; j++)
                for (int c = 0; c < DIM; c++) {
                    const int n = j - (b ? 4 : 0);
                    const float want =
                        n >= 0 && n < 6 ? value_of(b, h, n, c) : 0;

                    assert_true(
                        cache[((b * HEADS + h) * CAPACITY + j) * DIM + c] ==
                        want);
                }
}

UNIT(rows_go_to_the_pages_of_the_table)
{
    static const int32_t table[BATCH * 3] = {6, 0, 3, 2, 5, 1};
    static float pages[PAGES * HEADS * PAGE * DIM];
    static float rows[BATCH * HEADS * 7 * DIM];
    const attn_tensor to =
        attn_bhsd(pages, ATTN_F32, PAGES, HEADS, PAGE, DIM);
    const int32_t lengths[BATCH] = {3, 8};
    int written = 0;

    memset(pages, 0, sizeof pages);
    fill_rows(rows, 0, 7);
    assert_int_equal(
        attn_kv_append(to,
                       attn_in_bhsd(rows, ATTN_F32, BATCH, HEADS, 7, DIM),
                       lengths_of(lengths),
                       attn_in_dense(table, ATTN_I32, 2,
                                     (int64_t[]){BATCH, 3}),
                       NULL),
        ATTN_OK);
    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            for (int n = 0; n < 7; n++)
                for (int c = 0; c < DIM; c++) {
                    const int j = lengths[b] + n;
                    const int page = table[3 * b + j / PAGE];

                    assert_true(
                        pages[((page * HEADS + h) * PAGE + j % PAGE) * DIM +
                              c] == value_of(b, h, n, c));
                }
    for (size_t i = 0; i < COUNT(pages); i++)
        written += pages[i] != 0;
    assert_int_equal(written, BATCH * HEADS * 7 * DIM);
}

/* The cache as (batch, len, heads, dim), the rows with gaps and reversed. */
UNIT(any_strides)
{
    static float cache[BATCH * CAPACITY * HEADS * DIM];
    static float rows[BATCH * HEADS * 2 * DIM * 2];
    const attn_tensor to =
        attn_bshd(cache, ATTN_F32, BATCH, HEADS, CAPACITY, DIM);
    attn_input from = attn_in_bhsd(rows, ATTN_F32, BATCH, HEADS, 2, DIM);
    const int32_t lengths[BATCH] = {1, 9};

    for (int a = 0; a < 4; a++)
        from.stride[a] *= -2;
    from.data = rows + COUNT(rows) - 1;
    for (size_t i = 0; i < COUNT(rows); i++)
        rows[i] = (float)i;
    assert_int_equal(attn_kv_append(to, from, lengths_of(lengths),
                                    (attn_input){0}, NULL),
                     ATTN_OK);
    for (int b = 0; b < BATCH; b++)
        for (int h = 0; h < HEADS; h++)
            for (int n = 0; n < 2; n++)
                for (int c = 0; c < DIM; c++) {
                    const int at =
                        2 * (((b * HEADS + h) * 2 + n) * DIM + c);

                    assert_true(cache[((b * CAPACITY + lengths[b] + n) *
                                           HEADS + h) * DIM + c] ==
                                (float)((int)COUNT(rows) - 1 - at));
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_those_that_are_there),
        cmocka_unit_test(rows_go_to_the_pages_of_the_table),
        cmocka_unit_test(any_strides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
