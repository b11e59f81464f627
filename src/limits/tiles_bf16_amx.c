/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bf16 tiles that wait for nothing but their own sums: four of
 * them, as a 32 x 32 block of scores has. No loads: the tiles are zeros. */
#include "kernels/simd/tiles_amx.h"
#include "limits/limits.h"

double attn__tiles_bf16_amx(int64_t rounds)
{
    amx_begin();
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    AMX_ZERO(4);
    AMX_ZERO(5);
    AMX_ZERO(6);
    AMX_ZERO(7);
    for (int64_t n = 0; n < rounds; n++) {
        AMX_PRODUCT(0, 4, 6);
        AMX_PRODUCT(1, 4, 7);
        AMX_PRODUCT(2, 5, 6);
        AMX_PRODUCT(3, 5, 7);
    }
    amx_end();
    return 4 * 2.0 * AMX_ROWS * AMX_ROWS * AMX_STEP;
}
