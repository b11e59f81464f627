/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_weights of chosen rows: those of all rows, to the bit, at each stage,
 * in the order asked for and as often. */
#include "scene.h"
#include "scene_table.h"

#include "unit.h"

#include <stdlib.h>

static attn_tensor weights_of(scene *s, attn_stage stage,
                              const attn_rows *rows, int64_t n_heads,
                              int64_t n_rows)
{
    const attn_tensor out =
        scene_dense(s, ATTN_F64, 4,
                    (int64_t[]){s->desc.batch, n_heads, n_rows,
                                s->scores.shape[3]});
    attn_workspace need;
    attn_plan plan;
    attn_exec exec;
    attn_args args = s->args;

    args.kv.v = (attn_input){0}; /* may be absent */
    assert_int_equal(attn_plan_init(&plan, &s->desc, NULL), ATTN_OK);
    assert_int_equal(attn_plan_workspace(&plan, ATTN_WEIGHTS, 1, &need, NULL),
                     ATTN_OK);
    attn_exec_init(&exec);
    exec.workspace = aligned_alloc(need.alignment, need.size);
    exec.workspace_size = need.size;
    assert_int_equal(
        attn_weights(&plan, &args, stage, rows, out, &exec, NULL), ATTN_OK);
    free(exec.workspace);
    return out;
}

static void check_rows(scene *s, const attn_rows *rows)
{
    const int64_t n_heads = rows->heads ? rows->n_heads : s->desc.heads_q;
    const int64_t n_rows = rows->rows ? rows->n_rows : s->desc.len_q;

    for (int stage = ATTN_STAGE_RAW; stage <= ATTN_STAGE_PROBS; stage++) {
        const attn_input all = attn_in(weights_of(
            s, (attn_stage)stage, NULL, s->desc.heads_q, s->desc.len_q));
        const attn_input some = attn_in(
            weights_of(s, (attn_stage)stage, rows, n_heads, n_rows));

        for (int64_t h = 0; h < n_heads; h++)
            for (int64_t i = 0; i < n_rows; i++) {
                const attn_input want = scene_slice(
                    scene_slice(all, 1, rows->heads ? rows->heads[h] : h, 1),
                    2, rows->rows ? rows->rows[i] : i, 1);
                const attn_input got =
                    scene_slice(scene_slice(some, 1, h, 1), 2, i, 1);

                assert_true(scene_same(s->shape.name, &got, &want));
            }
    }
}

UNIT(chosen_rows_are_those_of_all)
{
    for (size_t n = 0; n < COUNT(scene_table); n++) {
        scene s;

        scene_open(&s, &scene_table[n], ATTN_F32, n);
        if (s.args.q.rank == 4) {
            const int64_t heads[] = {s.desc.heads_q - 1, 0};
            const int64_t rows[] = {s.desc.len_q - 1, s.desc.len_q / 2, 0,
                                    s.desc.len_q / 2};
            const attn_rows both = {heads, rows, 2, 4};
            const attn_rows only_heads = {heads, NULL, 2, 0};
            const attn_rows only_rows = {NULL, rows, 0, 3};

            check_rows(&s, &both);
            check_rows(&s, &only_heads);
            check_rows(&s, &only_rows);
        }
        scene_close(&s);
    }
}

/* What attn_forward writes as weights are the probabilities. */
UNIT(a_forward_gives_the_same)
{
    for (size_t n = 0; n < COUNT(scene_table); n++) {
        scene s;

        scene_open(&s, &scene_table[n], ATTN_F64, n);
        if (s.args.q.rank == 4) {
            attn_input apart, within;

            scene_forward(&s, 1);
            apart = attn_in(weights_of(&s, ATTN_STAGE_PROBS, NULL,
                                       s.desc.heads_q, s.desc.len_q));
            within = attn_in(s.args.weights);
            assert_true(scene_same(s.shape.name, &within, &apart));
        }
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chosen_rows_are_those_of_all),
        cmocka_unit_test(a_forward_gives_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
