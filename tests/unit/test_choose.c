/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans as bytes: they copy, they are told from garbage, and the kernel they
 * hold is right for the type, this CPU and the caller's limit. */
#include "plan/plan.h"

#include "unit.h"

#include <string.h>

static attn_plan plan_for(attn_dtype dtype, attn_isa limit)
{
    attn_desc desc;
    attn_plan plan;
    attn_diag diag;

    attn_desc_init(&desc, dtype, 2, 8, 4, 16, 24, 64, 32);
    desc.isa_limit = limit;
    if (attn_plan_init(&plan, &desc, &diag) != ATTN_OK)
        fail_msg("%s: %s", diag.field, diag.message);
    return plan;
}

static attn__plan open_plan(const attn_plan *plan)
{
    attn__plan body;

    assert_int_equal(attn__plan_open(plan, &body, NULL), ATTN_OK);
    return body;
}

UNIT(the_kernel_fits_pass_type_cpu_and_limit)
{
    static const attn_dtype dtypes[] = {ATTN_F64, ATTN_F32, ATTN_BF16,
                                        ATTN_F16};
    const attn__cpu *cpu = attn__cpu_facts();

    for (size_t d = 0; d < COUNT(dtypes); d++)
        for (int limit = ATTN_ISA_BEST; limit <= ATTN_ISA_AMX; limit++) {
            const attn_plan plan = plan_for(dtypes[d], (attn_isa)limit);
            const attn__plan body = open_plan(&plan);

            for (int pass = 0; pass < ATTN__N_PASSES; pass++) {
                const attn__kernel_row *row =
                    &attn__kernels[body.kernel[pass]];

                assert_int_equal(row->pass, pass);
                assert_int_equal(row->dtype, dtypes[d]);
                assert_int_equal(row->needs & ~cpu->features, 0);
                assert_true(row->isa <= cpu->isa);
                if (limit != ATTN_ISA_BEST)
                    assert_true(row->isa <= (attn_isa)limit);
            }
            assert_true(body.macro_rows > 0);
            assert_true(body.macro_rows <= ATTN__MACRO_ROWS);
        }
}

UNIT(the_same_descriptor_gives_the_same_bytes)
{
    const attn_plan a = plan_for(ATTN_F32, ATTN_ISA_BEST);
    attn_plan b;

    memset(&b, 0xa5, sizeof b);
    b = plan_for(ATTN_F32, ATTN_ISA_BEST);
    assert_memory_equal(&a, &b, sizeof a);
}

/* What decides bits must not look at how much there is to do. */
UNIT(batch_heads_and_capacity_choose_nothing)
{
    attn_desc desc;
    attn_plan small, large;

    attn_desc_init(&desc, ATTN_F32, 1, 1, 1, 16, 24, 64, 32);
    assert_int_equal(attn_plan_init(&small, &desc, NULL), ATTN_OK);
    desc.batch = 1000;
    desc.heads_q = 64;
    desc.heads_kv = 8;
    desc.len_k = 1 << 20;
    assert_int_equal(attn_plan_init(&large, &desc, NULL), ATTN_OK);
    const attn__plan a = open_plan(&small), b = open_plan(&large);
    assert_memory_equal(a.kernel, b.kernel, sizeof a.kernel);
    assert_true(a.macro_rows == b.macro_rows);
}

/* Whether forward and backward of one head by matrix tiles are chosen. */
static bool on_tiles(attn_dtype dtype, int64_t len_q, int64_t dim_qk,
                     int64_t dim_v, double scale)
{
    attn_desc desc;
    attn_plan plan;
    attn__plan body;
    bool forward, backward;

    attn_desc_init(&desc, dtype, 1, 1, 1, len_q, 4096, dim_qk, dim_v);
    desc.scale = scale;
    assert_int_equal(attn_plan_init(&plan, &desc, NULL), ATTN_OK);
    body = open_plan(&plan);
    forward = attn__kernels[body.kernel[ATTN__PASS_fwd]].tile.parts > 0;
    backward = attn__kernels[body.kernel[ATTN__PASS_dkv]].tile.parts > 0;
    assert_int_equal(forward, backward); /* the same bits of scores */
    return forward;
}

UNIT(tiles_where_they_are_right_and_pay)
{
#if !ATTN__WITH_AMX
    skip();
#endif
    if (attn_cpu_isa() < ATTN_ISA_AMX || !attn__cpu_may_use_amx())
        skip();
    assert_true(on_tiles(ATTN_BF16, 64, 64, 64, 0.125));
    assert_true(on_tiles(ATTN_F32, 1024, 128, 64, 0.125));
    assert_false(on_tiles(ATTN_F64, 4096, 64, 64, 0.125));
    assert_false(on_tiles(ATTN_BF16, ATTN__DECODE_QUERIES, 64, 64, 0.125));
    assert_false(on_tiles(ATTN_BF16, 64, 64, 16, 0.125));
    assert_false(on_tiles(ATTN_F32, 512, 64, 64, 0.125));
    assert_false(on_tiles(ATTN_F32, 4096, 80, 64, 0.125));
    assert_false(on_tiles(ATTN_BF16, 64, 64, 64, 0x1p21));
}

UNIT(bytes_that_are_no_plan_are_refused)
{
    const attn_plan plan = plan_for(ATTN_F32, ATTN_ISA_BEST);
    attn_workspace workspace;
    attn_plan wrong;
    attn_diag diag;

    memset(&wrong, 0, sizeof wrong);
    for (int trial = 0; trial < 3; trial++) {
        memset(&diag, 0, sizeof diag);
        assert_int_equal(attn_plan_workspace(&wrong, ATTN_FORWARD, 1,
                                             &workspace, &diag),
                         ATTN_E_ARG);
        assert_string_equal(diag.field, "plan");
        if (trial == 0)
            memset(&wrong, 0xa5, sizeof wrong);
        else
            wrong = plan;
        wrong.bytes[0] ^= 1; /* another version's mark */
    }
    assert_int_equal(attn_plan_workspace(NULL, ATTN_FORWARD, 1, &workspace,
                                         &diag),
                     ATTN_E_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_fits_pass_type_cpu_and_limit),
        cmocka_unit_test(the_same_descriptor_gives_the_same_bytes),
        cmocka_unit_test(batch_heads_and_capacity_choose_nothing),
        cmocka_unit_test(tiles_where_they_are_right_and_pay),
        cmocka_unit_test(bytes_that_are_no_plan_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
