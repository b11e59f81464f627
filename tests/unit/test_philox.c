/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox4x32-10 against the known answers that its authors publish
 * (Random123 1.14, tests/kat_vectors, the three lines `philox4x32 10`), and
 * the dropout mask against the words of the contract. */
#include "core/philox.h"

#include "unit.h"

UNIT(the_published_known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], word[4];
    } rows[] = {
        {{0, 0, 0, 0},
         {0, 0},
         {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t r = 0; r < COUNT(rows); r++) {
        const uint64_t key = (uint64_t)rows[r].key[1] << 32 | rows[r].key[0];
        attn__philox counter;

        for (int w = 0; w < 4; w++)
            counter.word[w] = rows[r].counter[w];
        const attn__philox got = attn__philox4x32(counter, key);
        for (int w = 0; w < 4; w++)
            assert_int_equal(got.word[w], rows[r].word[w]);
    }
}

/* counter = (j div 4, i, head, offset), word j mod 4, kept if >= threshold */
UNIT(the_mask_is_made_as_the_contract_says)
{
    const uint64_t seed = UINT64_C(0x299f31d0a4093822);
    const attn__dropout d = attn__dropout_of(0.25, seed, 7);
    int kept = 0;

    assert_true(d.threshold == UINT64_C(1) << 30);
    for (uint32_t head = 0; head < 3; head++)
        for (int64_t i = 0; i < 5; i++)
            for (int64_t j = 0; j < 41; j++) {
                const attn__philox words = attn__philox4x32(
                    (attn__philox){{(uint32_t)(j / 4), (uint32_t)i, head, 7}},
                    seed);
                const bool keep = words.word[j % 4] >= (UINT32_C(1) << 30);

                assert_int_equal(attn__dropout_keeps(&d, head, i, j), keep);
                kept += keep;
            }
    /* 615 draws at 3/4: 461 +- 11; six standard deviations. */
    assert_in_range(kept, 396, 526);
}

UNIT(the_ends_of_p_keep_all_and_nothing)
{
    const attn__dropout all = attn__dropout_of(0.0, 1, 0);
    const attn__dropout none = attn__dropout_of(1.0, 1, 0);

    assert_true(none.threshold == UINT64_C(1) << 32);
    for (int64_t j = 0; j < 1000; j++) {
        assert_true(attn__dropout_keeps(&all, 0, 0, j));
        assert_false(attn__dropout_keeps(&none, 0, 0, j));
    }
}

UNIT(a_kept_weight_makes_up_for_the_dropped)
{
    assert_true(attn__dropout_factor(0.0) == 1.0);
    assert_true(attn__dropout_factor(0.5) == 2.0);
    assert_true(attn__dropout_factor(0.75) == 4.0);
    assert_true(attn__dropout_factor(1.0) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_known_answers),
        cmocka_unit_test(the_mask_is_made_as_the_contract_says),
        cmocka_unit_test(the_ends_of_p_keep_all_and_nothing),
        cmocka_unit_test(a_kept_weight_makes_up_for_the_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
