/* SPDX-License-Identifier: Apache-2.0
 *
 * In which order tasks draw the pieces of heads. */
#include "run/run.h"

#include "unit.h"

#define MOST 12

/* Every piece of every head once; pieces of a head in order. */
UNIT(each_piece_comes_once)
{
    for (int64_t heads = 1; heads <= MOST; heads++)
        for (int64_t pieces = 1; pieces <= MOST; pieces++)
            for (int64_t together = 1; together <= MOST + 2; together++) {
                int64_t next[MOST] = {0};

                for (int64_t i = 0; i < heads * pieces; i++) {
                    const attn__turn turn =
                        attn__turn_of(i, heads, pieces, together);

                    assert_in_range(turn.head, 0, heads - 1);
                    assert_int_equal(turn.piece, next[turn.head]++);
                }
                for (int64_t h = 0; h < heads; h++)
                    assert_int_equal(next[h], pieces);
            }
}

/* So many heads are begun as there are tasks, fewer than twice as many at the
 * end; with fewer heads, all. */
UNIT(tasks_have_a_head_each)
{
    static const int64_t heads_of_7[] = {0, 1, 0, 1, 2, 3, 2, 3,
                                         4, 5, 6, 4, 5, 6};

    for (int64_t i = 0; i < 14; i++)
        assert_int_equal(attn__turn_of(i, 7, 2, 2).head, heads_of_7[i]);
    for (int64_t i = 0; i < 9; i++)
        assert_int_equal(attn__turn_of(i, 3, 3, 5).head, i % 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_piece_comes_once),
        cmocka_unit_test(tasks_have_a_head_each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
