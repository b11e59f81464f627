/* SPDX-License-Identifier: Apache-2.0
 *
 * The same bits, whatever the threads, strides, layout, alignment, company and
 * capacity, whatever else is asked for, run after run (contract: section 3 of
 * what attn.h promises). No tolerance anywhere in this file. */
#include "scene.h"
#include "scene_table.h"

#include "plan/plan.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED UINT64_C(577215664)

/* Every feature in every type: f(scene). */
static void everywhere(void (*f)(scene *))
{
    for (size_t n = 0; n < COUNT(scene_table); n++)
        for (int dtype = ATTN_F64; dtype <= ATTN_F16; dtype++) {
            scene s;

            scene_open(&s, &scene_table[n], (attn_dtype)dtype, SEED + n);
            scene_run(&s, 1);
            f(&s);
            scene_close(&s);
        }
}

static bool absent(const attn_input *t)
{
    return t->dtype == ATTN_NONE;
}

/* ---------------------------------------------------------------- threads */

static void on_other_threads(scene *s)
{
    static const int64_t threads[] = {2, 3, 7};
    scene other;

    for (size_t n = 0; n < COUNT(threads); n++) {
        scene_relaid(&other, s, SCENE_DENSE);
        scene_run(&other, threads[n]);
        if (!scene_same_outputs(&other, s))
            fail_msg("%s on %d threads", s->shape.name, (int)threads[n]);
        scene_close(&other);
    }
}

UNIT(threads_do_not_show)
{
    everywhere(on_other_threads);
}

/* Notes the largest number of tasks that it was given, and runs them. */
static void note_tasks(void *ctx, int64_t n, attn_task *task, void *arg)
{
    int64_t *most = ctx;

    *most = n > *most ? n : *most;
    for (int64_t i = 0; i < n; i++)
        task(arg, i);
}

/* The tasks of a forward of `s` for o alone, on at most 7 threads. */
static int64_t tasks_of(const scene *s)
{
    attn_args args = s->args;
    attn_workspace need;
    attn_exec exec;
    attn_plan plan;
    int64_t most = 0;

    args.weights = args.entropy = (attn_tensor){0}; /* phases of others */
    assert_int_equal(attn_plan_init(&plan, &s->desc, NULL), ATTN_OK);
    assert_int_equal(attn_plan_workspace(&plan, ATTN_FORWARD, 7, &need, NULL),
                     ATTN_OK);
    attn_exec_init(&exec);
    exec.threads = 7;
    exec.workspace_size = need.size;
    exec.workspace = aligned_alloc(64, (need.size + 63) / 64 * 64);
    exec.parallel_for = note_tasks;
    exec.ctx = &most;
    assert_int_equal(attn_forward(&plan, &args, &exec, NULL), ATTN_OK);
    free(exec.workspace);
    return most;
}

/* One head of 300 rows is three units of 128; for seven threads they are cut
 * finer, and that does not show either. Under a window units see their first
 * keys at different places, and keys are in blocks from key 0 all the same. */
UNIT(one_head_is_shared_out_and_does_not_show)
{
    static const scene_shape shapes[] = {
        {.name = "one head", .batch = 1, .heads_q = 1, .heads_kv = 1,
         .len_q = 300, .len_k = 300, .dim_qk = 64, .dim_v = 64,
         .causal = ATTN_CAUSAL_TOP_LEFT},
        {.name = "one head, window", .batch = 1, .heads_q = 1, .heads_kv = 1,
         .len_q = 300, .len_k = 300, .dim_qk = 64, .dim_v = 64,
         .causal = ATTN_CAUSAL_TOP_LEFT, .left = 101}};

    for (int n = 0; n < 2 * 4; n++) {
        const attn_dtype dtype = (attn_dtype)(ATTN_F64 + n / 2);
        scene one, many;

        scene_open(&one, &shapes[n % 2], dtype, SEED);
        scene_run(&one, 1);
        scene_relaid(&many, &one, SCENE_DENSE);
        scene_run(&many, 7);
        assert_true(scene_same_outputs(&many, &one));
        assert_int_equal(tasks_of(&many), 7);
        scene_close(&many);
        scene_close(&one);
    }
}

/* Twelve heads of one sentence: 12 * 15 * 15 * 64 multiply-adds. */
UNIT(little_work_wakes_nobody)
{
    static const scene_shape shape = {
        .name = "a sentence", .batch = 1, .heads_q = 12, .heads_kv = 12,
        .len_q = 15, .len_k = 15, .dim_qk = 32, .dim_v = 32};
    scene s;

    scene_open(&s, &shape, ATTN_F32, SEED);
    assert_int_equal(tasks_of(&s), 0); /* parallel_for was not called */
    scene_close(&s);
}

/* Backward forms dq beside dk and dv, or by itself; where there are long keys,
 * in groups of them. 64 threads are too many for the first. */
static const scene_shape groups_of_keys[] = {
    {.name = "four groups", .batch = 2, .heads_q = 4, .heads_kv = 2,
     .len_q = 130, .len_k = 1100, .dim_qk = 16, .dim_v = 24, .slopes = "h",
     .causal = ATTN_CAUSAL_BOTTOM_RIGHT,
     .inputs = ATTN_WITH_SINKS | ATTN_WITH_K_LENGTHS},
    {.name = "groups under a window", .batch = 1, .heads_q = 3, .heads_kv = 3,
     .len_q = 600, .len_k = 600, .dim_qk = 24, .dim_v = 8, .left = 150,
     .causal = ATTN_CAUSAL_TOP_LEFT, .softcap = 2},
    {.name = "packed groups", .batch = 3, .heads_q = 2, .heads_kv = 1,
     .len_q = 300, .len_k = 520, .dim_qk = 9, .dim_v = 17, .slopes = "bh",
     .inputs = ATTN_WITH_VARLEN}};

UNIT(how_dq_is_formed_does_not_show)
{
    for (size_t n = 0; n < 4 * COUNT(groups_of_keys); n++) {
        const attn_dtype dtype = (attn_dtype)(ATTN_F64 + n % 4);
        scene beside, apart;

        scene_open(&beside, &groups_of_keys[n / 4], dtype, SEED + n);
        scene_run(&beside, 1);
        scene_relaid(&apart, &beside, SCENE_DENSE);
        scene_run(&apart, 64);
        if (!scene_same_outputs(&apart, &beside))
            fail_msg("%s", beside.shape.name);
        scene_close(&apart);
        scene_close(&beside);
    }
}

/* A backward of `s` by one thread, with so many bytes for dq's shares: how many
 * KV heads have theirs at a time. */
static int64_t backward_within(scene *s, size_t share_bytes)
{
    attn__dq_shares shares;
    attn_workspace need;
    attn__plan body;
    attn_exec exec;
    attn_plan plan;

    assert_int_equal(attn_plan_init(&plan, &s->desc, NULL), ATTN_OK);
    assert_int_equal(attn__plan_use_every_kernel(&plan, NULL), ATTN_OK);
    assert_int_equal(attn__plan_open(&plan, &body, NULL), ATTN_OK);
    body.share_bytes = share_bytes;
    memcpy(&plan, &body, sizeof body);
    shares = attn__dq_shares_of(&body);
    assert_int_equal(attn_plan_workspace(&plan, ATTN_BACKWARD, 1, &need, NULL),
                     ATTN_OK);
    attn_exec_init(&exec);
    exec.workspace_size = need.size;
    exec.workspace = aligned_alloc(64, (need.size + 63) / 64 * 64);
    assert_int_equal(attn_backward(&plan, &s->args, &exec, NULL), ATTN_OK);
    free(exec.workspace);
    return shares.heads;
}

UNIT(heads_that_take_turns_do_not_show)
{
    int64_t fewest = INT64_MAX, most = 0;
    scene whole;

    scene_open(&whole, &groups_of_keys[0], ATTN_F32, SEED);
    scene_run(&whole, 1);
    for (size_t bytes = 1 << 10; bytes <= 1 << 20; bytes *= 2) {
        scene other;
        int64_t heads;

        scene_relaid(&other, &whole, SCENE_DENSE);
        scene_forward(&other, 1);
        heads = backward_within(&other, bytes);
        fewest = heads < fewest ? heads : fewest;
        most = heads > most ? heads : most;
        if (!scene_same_outputs(&other, &whole))
            fail_msg("%d heads at a time", (int)heads);
        scene_close(&other);
    }
    assert_int_equal(fewest, 0);
    assert_int_equal(most, 4); /* 2 batch entries of 2 KV heads */
    scene_close(&whole);
}

UNIT(two_hundred_and_fifty_runs_are_one)
{
    const scene_shape *shape = &scene_table[COUNT(scene_table) - 1];
    scene first, again;

    scene_open(&first, shape, ATTN_F32, SEED);
    scene_run(&first, 3);
    scene_relaid(&again, &first, SCENE_DENSE);
    for (int n = 0; n < 250; n++) {
        scene_clear(&again);
        scene_run(&again, 1 + n % 3);
        assert_true(scene_same_outputs(&again, &first));
    }
    scene_close(&again);
    scene_close(&first);
}

/* ----------------------------------------------------------------- layout */

static void in_other_memory(scene *s)
{
    scene other;

    for (int layout = 0; layout < SCENE_N_LAYOUTS; layout++) {
        scene_relaid(&other, s, (scene_layout)layout);
        scene_run(&other, 1);
        if (!scene_same_outputs(&other, s))
            fail_msg("%s, layout %d", s->shape.name, layout);
        scene_close(&other);
    }
}

UNIT(layout_strides_and_alignment_do_not_show)
{
    everywhere(in_other_memory);
}

/* In token order rows of K and V are 4096 bytes apart: copied, block by block.
 */
UNIT(rows_that_collide_do_not_show)
{
    static const scene_shape sixteen_heads = {
        .name = "sixteen heads", .batch = 1, .heads_q = 16, .heads_kv = 16,
        .len_q = 150, .len_k = 150, .dim_qk = 64, .dim_v = 64,
        .causal = ATTN_CAUSAL_TOP_LEFT};
    scene s;

    scene_open(&s, &sixteen_heads, ATTN_F32, SEED);
    scene_run(&s, 1);
    in_other_memory(&s);
    scene_close(&s);
}

/* --------------------------------------------------------------- company */

static void in_parts(scene *s)
{
    const int64_t group = s->desc.heads_q / s->desc.heads_kv;
    scene part;

    if (s->desc.dropout_p > 0 || !absent(&s->args.kv.block_table))
        return; /* the mask of dropout knows b; pages are shared */
    for (int64_t b = 0; b < s->desc.batch; b++)
        for (int64_t h = 0; h < s->desc.heads_q; h++) {
            const int64_t sizes[2] = {1, h % group == 0 ? group : 1};

            for (int k = 0; k < 2; k++) {
                scene_part(&part, s, b, h, sizes[k]);
                scene_run(&part, 1);
                if (!scene_same_part(&part, s, b, h, sizes[k]))
                    fail_msg("%s, entry %d, %d heads from %d", s->shape.name,
                             (int)b, (int)sizes[k], (int)h);
                scene_close(&part);
            }
        }
}

UNIT(a_head_or_slice_alone_has_its_bits)
{
    everywhere(in_parts);
}

/* K and V of one head, seen by a stride of 0 as those of every head. */
UNIT(group_size_does_not_show)
{
    const scene_shape *shape = &scene_table[3];
    scene shared, own;

    scene_open(&shared, shape, ATTN_F32, SEED);
    scene_run(&shared, 1);
    scene_relaid(&own, &shared, SCENE_DENSE);
    own.desc.heads_kv = own.desc.heads_q;
    own.args.kv.k.shape[1] = own.args.kv.v.shape[1] = own.desc.heads_q;
    own.args.kv.k.stride[1] = own.args.kv.v.stride[1] = 0;
    own.args.dk = own.args.dv = (attn_tensor){0};
    scene_run(&own, 1);
    assert_true(scene_same_outputs(&own, &shared));
    scene_close(&own);
    scene_close(&shared);
}

/* --------------------------------------------------- what else is asked for */

#define SCORES 4 /* of attn_weights, a call of its own */
#define FIRST_GRADIENT 5

/* Every output alone; backward reads the o and lse of the whole run. */
static void one_by_one(scene *s)
{
    for (int wanted = 0; wanted < SCENE_OUTPUTS; wanted++) {
        scene alone;

        const bool gradient = wanted >= FIRST_GRADIENT;

        if (scene_output(s, wanted)->dtype == ATTN_NONE || wanted == SCORES ||
            (gradient && !scene_has_backward(s)))
            continue;
        scene_relaid(&alone, s, SCENE_DENSE);
        for (int n = 0; n < SCENE_OUTPUTS; n++)
            if (n != wanted)
                *scene_output(&alone, n) = (attn_tensor){0};
        if (gradient) {
            alone.args.o = s->args.o;
            alone.args.lse = s->args.lse;
            scene_backward(&alone, 1);
        } else {
            scene_forward(&alone, 1);
        }
        if (!scene_same_outputs(&alone, s))
            fail_msg("%s, %s alone", s->shape.name,
                     scene_output_name(wanted));
        scene_close(&alone);
    }
}

UNIT(what_else_is_asked_for_does_not_show)
{
    everywhere(one_by_one);
}

/* --------------------------------------------------------------- capacity */

static void in_a_larger_plan(scene *s)
{
    scene other;

    scene_relaid(&other, s, SCENE_DENSE);
    other.desc.len_k = 5 * s->desc.len_k + 1000;
    scene_run(&other, 2);
    if (!scene_same_outputs(&other, s))
        fail_msg("%s, a capacity of %d", s->shape.name,
                 (int)other.desc.len_k);
    scene_close(&other);
}

UNIT(the_capacity_does_not_show)
{
    everywhere(in_a_larger_plan);
}

/* ------------------------------------------------------------- hidden keys */

/* Whether any query of the group sees key j of entry b, KV head g: a biased
 * score above -inf. */
static bool seen(const scene *s, int64_t b, int64_t g, int64_t j)
{
    const int64_t group = s->desc.heads_q / s->desc.heads_kv;
    const attn_input scores = attn_in(s->scores);
    const int64_t len_q = scores.shape[2], len_k = scores.shape[3];

    for (int64_t h = g * group; h < (g + 1) * group; h++)
        for (int64_t i = 0; i < len_q; i++)
            if (scene_read(&scores, ((b * scores.shape[1] + h) * len_q + i) *
                                            len_k + j) !=
                -(double)INFINITY)
                return true;
    return false;
}

/* Put `value` where `judge`, which has run, says that nobody looks. */
static int64_t spoil_hidden(scene *s, const scene *judge, double value)
{
    attn_tensor k = scene_writable(&s->args.kv.k);
    attn_tensor v = scene_writable(&s->args.kv.v);
    int64_t spoilt = 0;

    for (int64_t b = 0; b < s->desc.batch; b++)
        for (int64_t g = 0; g < s->desc.heads_kv; g++)
            for (int64_t j = 0; j < k.shape[2]; j++) {
                const int64_t row = (b * k.shape[1] + g) * k.shape[2] + j;

                if (seen(judge, b, g, j))
                    continue;
                spoilt++;
                for (int64_t c = 0; c < k.shape[3]; c++)
                    scene_write(&k, row * k.shape[3] + c, value);
                for (int64_t c = 0; c < v.shape[3]; c++)
                    scene_write(&v, row * v.shape[3] + c, value);
            }
    return spoilt;
}

static int64_t total_spoilt;

static void with_other_hidden_keys(scene *s)
{
    static const double values[] = {(double)NAN, (double)INFINITY,
                                    -(double)INFINITY, 1e4, 0};
    scene other;

    if (s->scores.dtype == ATTN_NONE ||
        !absent(&s->args.kv.block_table))
        return;
    for (size_t n = 0; n < COUNT(values); n++) {
        scene_relaid(&other, s, SCENE_DENSE);
        total_spoilt += spoil_hidden(&other, s, values[n]);
        scene_run(&other, 1);
        if (!scene_same_outputs(&other, s))
            fail_msg("%s, hidden keys of %g", s->shape.name, values[n]);
        scene_close(&other);
    }
}

UNIT(what_hidden_keys_hold_does_not_show)
{
    total_spoilt = 0;
    everywhere(with_other_hidden_keys);
    assert_true(total_spoilt > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(one_head_is_shared_out_and_does_not_show),
        cmocka_unit_test(little_work_wakes_nobody),
        cmocka_unit_test(two_hundred_and_fifty_runs_are_one),
        cmocka_unit_test(layout_strides_and_alignment_do_not_show),
        cmocka_unit_test(rows_that_collide_do_not_show),
        cmocka_unit_test(a_head_or_slice_alone_has_its_bits),
        cmocka_unit_test(group_size_does_not_show),
        cmocka_unit_test(how_dq_is_formed_does_not_show),
        cmocka_unit_test(heads_that_take_turns_do_not_show),
        cmocka_unit_test(what_else_is_asked_for_does_not_show),
        cmocka_unit_test(the_capacity_does_not_show),
        cmocka_unit_test(what_hidden_keys_hold_does_not_show),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
