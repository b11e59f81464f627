/* SPDX-License-Identifier: Apache-2.0
 *
 * Do views share bytes? Cases that people meet, by name; then thousands of
 * small random views against a count of every byte. */
#include "core/tensor.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

enum { ARENA = 4096 };
static char arena[ARENA];

static attn_input view(int64_t offset, attn_dtype dtype, int32_t rank,
                       const int64_t *shape, const int64_t *stride)
{
    attn_input t = {arena + offset, dtype, rank, {0}, {0}};

    for (int32_t a = 0; a < rank; a++) {
        t.shape[a] = shape[a];
        t.stride[a] = stride[a];
    }
    return t;
}

/* q, k and v of one (batch, len, 3, heads, dim) tensor, small and as large as
 * in a model; only addresses are looked at, so the memory need not exist. */
UNIT(the_parts_of_packed_qkv_are_apart)
{
    static const int64_t sizes[][4] = {{2, 2, 5, 4}, {64, 5, 4096, 64}};

    for (size_t z = 0; z < COUNT(sizes); z++) {
        const int64_t *shape = sizes[z];
        const int64_t row = 3 * shape[1] * shape[3];
        const int64_t stride[] = {shape[2] * row, shape[3], row, 1};
        attn_input part[3];

        for (int p = 0; p < 3; p++)
            part[p] = view(p * shape[1] * shape[3] * 4, ATTN_F32, 4, shape,
                           stride);
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                assert_int_equal(attn__overlaps(&part[a], &part[b]), a == b);
    }
}

UNIT(neighbours_in_memory_are_apart)
{
    const int64_t shape[] = {4, 8}, stride[] = {8, 1};
    const attn_input a = view(0, ATTN_F32, 2, shape, stride);
    const attn_input b = view(4 * 8 * 4, ATTN_F32, 2, shape, stride);
    const attn_input c = view(4 * 8 * 4 - 1, ATTN_F32, 2, shape, stride);

    assert_false(attn__overlaps(&a, &b));
    assert_true(attn__overlaps(&a, &c));
}

UNIT(a_reversed_view_covers_what_it_covers)
{
    const int64_t shape[] = {4}, back[] = {-1}, forth[] = {1};
    const attn_input reversed = view(12, ATTN_F32, 1, shape, back);
    const attn_input same = view(0, ATTN_F32, 1, shape, forth);
    const attn_input next = view(16, ATTN_F32, 1, shape, forth);

    assert_true(attn__overlaps(&reversed, &same));
    assert_false(attn__overlaps(&reversed, &next));
}

UNIT(views_without_elements_share_nothing)
{
    const int64_t shape[] = {4, 0}, stride[] = {1, 1}, one[] = {4};
    const attn_input empty = view(0, ATTN_F32, 2, shape, stride);
    const attn_input full = view(0, ATTN_F32, 1, one, stride);

    assert_false(attn__overlaps(&empty, &full));
    assert_false(attn__overlaps(&full, &empty));
    assert_false(attn__self_overlaps(&empty));
}

UNIT(a_stride_of_zero_overlaps_itself)
{
    const int64_t shape[] = {2, 3}, stride[] = {0, 1}, one[] = {1, 3};
    const attn_input repeated = view(0, ATTN_F32, 2, shape, stride);
    const attn_input once = view(0, ATTN_F32, 2, one, stride);

    assert_true(attn__self_overlaps(&repeated));
    assert_false(attn__self_overlaps(&once));
}

/* Every index of a view, counted into `hits` per byte; the largest count. */
static int touch(const attn_input *t, unsigned char *hits)
{
    const int64_t size = (int64_t)attn_dtype_size(t->dtype);
    int most = 0;
    int64_t n = 1;

    for (int32_t a = 0; a < t->rank; a++)
        n *= t->shape[a];
    for (int64_t index = 0; index < n; index++) {
        int64_t rest = index, at = (const char *)t->data - arena;

        for (int32_t a = t->rank - 1; a >= 0; a--) {
            at += rest % t->shape[a] * t->stride[a] * size;
            rest /= t->shape[a];
        }
        for (int64_t byte = at; byte < at + size; byte++) {
            hits[byte]++;
            if (hits[byte] > most)
                most = hits[byte];
        }
    }
    return most;
}

static int below(unsigned *seed, int n)
{
    *seed = *seed * 1103515245u + 12345u;
    return (int)(*seed >> 16 & 0x7fff) % n;
}

static attn_input random_view(unsigned *seed)
{
    attn_input t = {arena + ARENA / 2 + below(seed, 64), ATTN_F32, 0, {0}, {0}};

    t.dtype = below(seed, 2) ? ATTN_F32 : ATTN_F16;
    t.rank = below(seed, 4);
    for (int32_t a = 0; a < t.rank; a++) {
        t.shape[a] = 1 + below(seed, 4);
        t.stride[a] = below(seed, 41) - 20;
    }
    return t;
}

/* A slice of a dense array: axes that nest, in any order and direction. */
static attn_input random_slice(unsigned *seed)
{
    attn_input t = random_view(seed);
    int64_t stride = 1 + below(seed, 2);

    for (int32_t a = t.rank - 1; a >= 0; a--) {
        t.stride[a] = below(seed, 4) ? stride : -stride;
        stride *= t.shape[a] + below(seed, 2);
    }
    return t;
}

static void compare(const attn_input *a, const attn_input *b, bool exact)
{
    unsigned char hits[ARENA] = {0};
    unsigned char both[ARENA] = {0};
    bool shares = false;
    const bool twice = touch(a, hits) > 1;

    touch(b, both);
    for (int byte = 0; byte < ARENA; byte++)
        shares = shares || (hits[byte] && both[byte]);
    /* Never "apart" where bytes are shared; for slices exactly that. */
    if (shares)
        assert_true(attn__overlaps(a, b));
    if (twice)
        assert_true(attn__self_overlaps(a));
    if (exact && !shares)
        assert_false(attn__overlaps(a, b));
    if (exact && !twice)
        assert_false(attn__self_overlaps(a));
}

UNIT(random_views_never_share_unseen)
{
    unsigned seed = 1;

    for (int trial = 0; trial < 20000; trial++) {
        const attn_input a = random_view(&seed), b = random_view(&seed);

        compare(&a, &b, false);
    }
}

UNIT(random_slices_are_judged_exactly)
{
    unsigned seed = 2;

    for (int trial = 0; trial < 20000; trial++) {
        const attn_input a = random_slice(&seed), b = random_slice(&seed);

        compare(&a, &b, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_packed_qkv_are_apart),
        cmocka_unit_test(neighbours_in_memory_are_apart),
        cmocka_unit_test(a_reversed_view_covers_what_it_covers),
        cmocka_unit_test(views_without_elements_share_nothing),
        cmocka_unit_test(a_stride_of_zero_overlaps_itself),
        cmocka_unit_test(random_views_never_share_unseen),
        cmocka_unit_test(random_slices_are_judged_exactly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
