/* SPDX-License-Identifier: Apache-2.0
 *
 * Which keys a position sees: against the contract's sentences taken one key
 * at a time, and against 128-bit sums where 64 bits would wrap. */
#include "position/geometry.h"

#include "unit.h"

__extension__ typedef __int128 wide;

/* contract: p - left <= j <= p + right, -1 = unbounded; causal: j <= p;
 * j < len_k. */
static bool sees(const attn__geometry *g, int64_t p, int64_t len_k, wide j)
{
    return j >= 0 && j < len_k && (!g->causal || j <= p) &&
           (g->window_left < 0 || j >= (wide)p - g->window_left) &&
           (g->window_right < 0 || j <= (wide)p + g->window_right);
}

UNIT(every_key_is_in_the_interval_or_hidden)
{
    static const int64_t lengths[] = {0, 1, 5};

    for (int causal = 0; causal < 2; causal++)
        for (int64_t left = -1; left < 4; left++)
            for (int64_t right = -1; right < 4; right++)
                for (int64_t p = -9; p < 15; p++)
                    for (size_t n = 0; n < COUNT(lengths); n++) {
                        const attn__geometry g = {left, right, causal};
                        const attn__interval see =
                            attn__visible_keys(&g, p, lengths[n]);

                        assert_true(see.lo <= see.hi);
                        for (int64_t j = -3; j < 20; j++)
                            assert_int_equal(j >= see.lo && j < see.hi,
                                             sees(&g, p, lengths[n], j));
                    }
}

UNIT(positions_and_windows_of_any_legal_size)
{
    static const int64_t far[] = {
        0, 1, -1, 1000, INT64_C(1) << 62, -(INT64_C(1) << 62),
        (INT64_C(1) << 62) - 1};
    static const int64_t keys[] = {0, 1, 999, 1000, 1001,
                                   (INT64_C(1) << 62) - 1};
    const int64_t len_k = INT64_C(1) << 62;

    for (int causal = 0; causal < 2; causal++)
        for (size_t p = 0; p < COUNT(far); p++)
            for (size_t l = 0; l < COUNT(far); l++)
                for (size_t r = 0; r < COUNT(far); r++) {
                    const attn__geometry g = {far[l] < 0 ? -1 : far[l],
                                              far[r] < 0 ? -1 : far[r],
                                              causal};
                    const attn__interval see =
                        attn__visible_keys(&g, far[p], len_k);

                    for (size_t k = 0; k < COUNT(keys); k++)
                        assert_int_equal(
                            keys[k] >= see.lo && keys[k] < see.hi,
                            sees(&g, far[p], len_k, keys[k]));
                }
}

/* Three rows of a tile: `any` is their union's hull, `all` what they share. */
UNIT(a_block_is_called_full_or_empty_only_if_it_is)
{
    enum { ROWS = 3, LEN = 12 };

    for (int64_t left = -1; left < 5; left++)
        for (int64_t p0 = -6; p0 < 16; p0++) {
            const attn__geometry g = {left, -1, true};
            attn__interval any = {INT64_MAX, INT64_MIN};
            attn__interval all = {0, LEN};

            for (int64_t row = 0; row < ROWS; row++) {
                const attn__interval see =
                    attn__visible_keys(&g, p0 + row, LEN);

                all.lo = attn__max_i64(all.lo, see.lo);
                all.hi = attn__min_i64(all.hi, see.hi);
                if (see.lo < see.hi) {
                    any.lo = attn__min_i64(any.lo, see.lo);
                    any.hi = attn__max_i64(any.hi, see.hi);
                }
            }
            for (int64_t j0 = 0; j0 < LEN; j0++)
                for (int64_t j1 = j0 + 1; j1 <= LEN; j1++) {
                    int n_seen = 0;

                    for (int64_t row = 0; row < ROWS; row++)
                        for (int64_t j = j0; j < j1; j++)
                            n_seen += sees(&g, p0 + row, LEN, j);
                    assert_int_equal(
                        attn__classify(any, all, j0, j1),
                        n_seen == 0                  ? ATTN__BLOCK_EMPTY
                        : n_seen == ROWS * (j1 - j0) ? ATTN__BLOCK_FULL
                                                     : ATTN__BLOCK_EDGE);
                }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_in_the_interval_or_hidden),
        cmocka_unit_test(positions_and_windows_of_any_legal_size),
        cmocka_unit_test(a_block_is_called_full_or_empty_only_if_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
