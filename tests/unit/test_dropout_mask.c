/* SPDX-License-Identifier: Apache-2.0
 *
 * The dropout mask as an array: the counter of each pair, its threshold, and
 * that it is the mask of a forward pass. */
#include "core/philox.h"

#include "attn.h"

#include "unit.h"

#include <string.h>

enum { B = 2, H = 3, LQ = 5, LK = 11 };

static unsigned char mask[B][H][LQ][LK];

static attn_tensor mask_of(void)
{
    return attn_dense(mask, ATTN_BOOL, 4, (int64_t[]){B, H, LQ, LK});
}

/* Straight from attn.h: counter = (j div 4, i, b * heads + h, offset), key =
 * seed, word j mod 4, kept if word >= floor(p 2^32). */
static int kept(uint64_t seed, uint32_t offset, double p, uint32_t head,
                uint32_t i, uint32_t j)
{
    const attn__philox words =
        attn__philox4x32((attn__philox){{j / 4, i, head, offset}}, seed);

    return words.word[j % 4] >= (uint64_t)(p * 4294967296.0);
}

UNIT(each_pair_has_its_counter)
{
    const int64_t starts[2][2] = {{0, 0}, {70, 1234567}};

    for (int n = 0; n < 2; n++) {
        const uint64_t seed = UINT64_C(0x123456789abcdef0) + (uint64_t)n;
        const uint32_t offset = 77u * (uint32_t)n;

        assert_int_equal(attn_dropout_mask(mask_of(), 0.4, seed, offset,
                                           n ? starts[n] : NULL, NULL),
                         ATTN_OK);
        for (uint32_t b = 0; b < B; b++)
            for (uint32_t h = 0; h < H; h++)
                for (uint32_t i = 0; i < LQ; i++)
                    for (uint32_t j = 0; j < LK; j++)
                        assert_int_equal(
                            mask[b][h][i][j],
                            kept(seed, offset, 0.4, b * H + h,
                                 i + (uint32_t)starts[n][0],
                                 j + (uint32_t)starts[n][1]));
    }
}

UNIT(the_ends_of_p)
{
    const attn_tensor out = mask_of();

    assert_int_equal(attn_dropout_mask(out, 0, 1, 0, NULL, NULL), ATTN_OK);
    for (size_t i = 0; i < sizeof mask; i++)
        assert_int_equal(((unsigned char *)mask)[i], 1);
    assert_int_equal(attn_dropout_mask(out, 1, 1, 0, NULL, NULL), ATTN_OK);
    for (size_t i = 0; i < sizeof mask; i++)
        assert_int_equal(((unsigned char *)mask)[i], 0);
}

/* With q = 0 all weights are 1 / LK; V = 1 for one key at a time shows which
 * of them a forward pass keeps. */
UNIT(a_forward_drops_the_same)
{
    static const float q[B * H * LQ];
    static float k[B * H * LK], v[B * H * LK * LK], o[B * H * LQ * LK];
    attn_desc desc;
    attn_args args;

    for (size_t row = 0; row < B * H * LK; row++)
        v[row * LK + row % LK] = 1;
    attn_desc_init(&desc, ATTN_F32, B, H, H, LQ, LK, 1, LK);
    desc.dropout_p = 0.4;
    attn_args_init(&args);
    args.seed = 99;
    args.offset = 5;
    args.q = attn_in_bhsd(q, ATTN_F32, B, H, LQ, 1);
    args.kv.k = attn_in_bhsd(k, ATTN_F32, B, H, LK, 1);
    args.kv.v = attn_in_bhsd(v, ATTN_F32, B, H, LK, LK);
    args.o = attn_bhsd(o, ATTN_F32, B, H, LQ, LK);
    assert_int_equal(attn_attention(&desc, &args, 1, NULL), ATTN_OK);
    assert_int_equal(attn_dropout_mask(mask_of(), 0.4, 99, 5, NULL, NULL),
                     ATTN_OK);
    for (size_t i = 0; i < COUNT(o); i++)
        assert_int_equal(o[i] > 0, ((unsigned char *)mask)[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pair_has_its_counter),
        cmocka_unit_test(the_ends_of_p),
        cmocka_unit_test(a_forward_drops_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
