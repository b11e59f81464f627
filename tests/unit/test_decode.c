/* SPDX-License-Identifier: Apache-2.0
 *
 * Decode kernels against the kernels of many queries: the same bits as long as
 * the keys are one segment, and as close as numerics.md says beyond. */
#include "plan/plan.h"
#include "scene.h"

#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const scene_shape many = {
    "many queries", .batch = 2, .heads_q = 6, .heads_kv = 2, .len_q = 12,
    .len_k = 1000, .dim_qk = 40, .dim_v = 72,
    .causal = ATTN_CAUSAL_BOTTOM_RIGHT, .left = 700, .softcap = 3,
    .slopes = "h", .inputs = ATTN_WITH_SINKS};

/* Query i of every head of a scene, computed alone. */
static void alone(const scene *s, int64_t i, attn_tensor *o, attn_tensor *lse)
{
    attn_desc desc = s->desc;
    attn_args args;

    attn_args_init(&args);
    desc.len_q = 1;
    desc.inputs |= ATTN_WITH_Q_OFFSET;
    args.q = s->args.q;
    args.kv = s->args.kv;
    args.sinks = s->args.sinks;
    args.alibi_slopes = s->args.alibi_slopes;
    args.q.data = (const char *)args.q.data +
                  (size_t)(i * args.q.stride[2]) *
                      attn_dtype_size(args.q.dtype);
    args.q.shape[2] = 1;
    int64_t offset[2] = {desc.len_k - s->desc.len_q + i,
                         desc.len_k - s->desc.len_q + i};
    args.q_offset = attn_in(attn_dense(offset, ATTN_I64, 1,
                                       (int64_t[]){desc.batch}));
    args.o = *o;
    args.lse = *lse;
    assert_int_equal(attn__forward_pass(&desc), ATTN__PASS_decode);
    assert_int_equal(attn_attention(&desc, &args, 2, NULL), ATTN_OK);
}

/* Largest difference between row i of all heads and the row alone. */
static double difference(const scene *s, const attn_tensor *got,
                         const attn_tensor *want, int64_t i, int64_t width)
{
    const attn_input a = attn_in(*got), b = attn_in(*want);
    double worst = 0;

    for (int64_t h = 0; h < s->desc.batch * s->desc.heads_q; h++)
        for (int64_t c = 0; c < width; c++) {
            const double x = scene_read(&a, h * width + c);
            const double y =
                scene_read(&b, (h * s->desc.len_q + i) * width + c);

            assert_true(isfinite(x));
            worst = fmax(worst, fabs(x - y));
        }
    return worst;
}

/* The largest difference over rows: of o, and of lse. */
static void compare(const scene_shape *shape, attn_dtype dtype, attn_isa isa,
                    double worst[2])
{
    scene s, out = {.n_memory = 0};

    scene_open(&s, shape, dtype, 7);
    s.desc.isa_limit = isa;
    scene_run(&s, 1);
    worst[0] = worst[1] = 0;
    for (int64_t i = 0; i < s.desc.len_q; i++) {
        attn_tensor o = scene_dense(
            &out, dtype, 4,
            (int64_t[]){s.desc.batch, s.desc.heads_q, 1, s.desc.dim_v});
        attn_tensor lse = scene_dense(
            &out, s.args.lse.dtype, 3,
            (int64_t[]){s.desc.batch, s.desc.heads_q, 1});

        alone(&s, i, &o, &lse);
        worst[0] = fmax(worst[0],
                        difference(&s, &o, &s.args.o, i, s.desc.dim_v));
        worst[1] = fmax(worst[1],
                        difference(&s, &lse, &s.args.lse, i, 1));
    }
    scene_close(&out);
    scene_close(&s);
}

/* Matrix tiles add in another order than a decode: how far from the exact value
 * is kernelcheck's to judge. */
static int last_level(void)
{
    return attn_cpu_isa() < ATTN_ISA_AVX512 ? (int)attn_cpu_isa()
                                            : (int)ATTN_ISA_AVX512;
}

UNIT(one_segment_has_the_bits_of_many_queries)
{
    for (int isa = ATTN_ISA_SCALAR; isa <= last_level(); isa++)
        for (int dtype = ATTN_F64; dtype <= ATTN_F16; dtype++) {
            double worst[2];

            compare(&many, (attn_dtype)dtype, (attn_isa)isa, worst);
            if (worst[0] != 0 || worst[1] != 0)
                fail_msg("%s at %s: o differs by %g, lse by %g",
                         attn_dtype_name((attn_dtype)dtype),
                         attn_isa_name((attn_isa)isa), worst[0], worst[1]);
        }
}

/* Joining three states multiplies and adds five times: 8 u of values that are
 * below 4 here, besides the roundings that both have. */
UNIT(segments_join_to_the_same_value)
{
    scene_shape longer = many;

    longer.len_k = 2600;
    longer.left = 0;
    for (int isa = ATTN_ISA_SCALAR; isa <= last_level(); isa++) {
        double worst[2];

        compare(&longer, ATTN_F64, (attn_isa)isa, worst);
        assert_true(worst[0] <= 8 * 0x1p-53 * 4);
        compare(&longer, ATTN_F32, (attn_isa)isa, worst);
        assert_true(worst[0] > 0); /* the joins are there */
        assert_true(worst[0] <= 8 * 0x1p-24 * 4);
    }
}

/* A table of pages with room for far more keys than the plan: the segments that
 * only it has need no memory, and none was counted for them. */
UNIT(a_table_wider_than_the_plan_writes_nothing_behind)
{
    enum { HEADS = 32, DIM = 64, PAGE = 16, PAGES = 128, WIDTH = 4096 };
    static const unsigned char mark = 0xa5;
    const size_t behind = (size_t)1 << 20; /* what the states would take */
    static float q[HEADS * DIM], k[PAGES * PAGE * DIM];
    static float v[PAGES * PAGE * DIM], o[HEADS * DIM];
    static int32_t table[WIDTH];
    const int32_t length = 1000;
    attn_desc desc;
    attn_plan plan;
    attn_args args;
    attn_exec exec;
    attn_workspace need;
    unsigned char *memory;

    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++)
        v[i] = 1;
    for (int i = 0; i < WIDTH; i++)
        table[i] = i < PAGES ? i : -1;
    attn_desc_init(&desc, ATTN_F32, 1, HEADS, HEADS, 1, 1024, DIM, DIM);
    desc.inputs = ATTN_WITH_K_LENGTHS | ATTN_WITH_PAGES;
    attn_args_init(&args);
    args.q = attn_in_bhsd(q, ATTN_F32, 1, HEADS, 1, DIM);
    args.kv.k = attn_in_bhsd(k, ATTN_F32, PAGES, 1, PAGE, DIM);
    args.kv.v = attn_in_bhsd(v, ATTN_F32, PAGES, 1, PAGE, DIM);
    args.kv.k.shape[1] = args.kv.v.shape[1] = HEADS; /* the same for all */
    args.kv.k.stride[1] = args.kv.v.stride[1] = 0;
    args.kv.k_lengths =
        attn_in_dense(&length, ATTN_I32, 1, (int64_t[]){1});
    args.kv.block_table =
        attn_in_dense(table, ATTN_I32, 2, (int64_t[]){1, WIDTH});
    args.o = attn_bhsd(o, ATTN_F32, 1, HEADS, 1, DIM);
    for (desc.len_k = 1000; desc.len_k <= 2030; desc.len_k += 1030) {
        assert_int_equal(attn_plan_init(&plan, &desc, NULL), ATTN_OK);
        assert_int_equal(
            attn_plan_workspace(&plan, ATTN_FORWARD, 1, &need, NULL), ATTN_OK);
        memory = aligned_alloc(64, (need.size + behind + 63) / 64 * 64);
        assert_non_null(memory);
        memset(memory, mark, need.size + behind);
        attn_exec_init(&exec);
        exec.workspace = memory;
        exec.workspace_size = need.size;
        assert_int_equal(attn_forward(&plan, &args, &exec, NULL), ATTN_OK);
        for (int i = 0; i < HEADS * DIM; i++)
            assert_true(fabsf(o[i] - 1) < 1e-5f);
        for (size_t i = 0; i < behind; i++)
            assert_int_equal(memory[need.size + i], mark);
        free(memory);
    }
}

/* Lse of n rows with ALiBi, their positions far from the keys. */
static void far_lse(attn_isa isa, int64_t offset, int64_t n, const float *q,
                    const float *k, double *lse)
{
    enum { DIM = 8, KEYS = 40 };
    const float slope = 0.3f;
    float o[12 * DIM];
    attn_desc desc;
    attn_args args;

    attn_desc_init(&desc, ATTN_F32, 1, 1, 1, n, KEYS, DIM, DIM);
    desc.inputs = ATTN_WITH_ALIBI | ATTN_WITH_Q_OFFSET;
    desc.isa_limit = isa;
    desc.window_left = (1 << 24) - 3; /* a key less for every row */
    attn_args_init(&args);
    args.q = attn_in_bhsd(q, ATTN_F32, 1, 1, n, DIM);
    args.kv.k = attn_in_bhsd(k, ATTN_F32, 1, 1, KEYS, DIM);
    args.kv.v = args.kv.k;
    args.alibi_slopes = attn_in_dense(&slope, ATTN_F32, 1, (int64_t[]){1});
    args.q_offset = attn_in_dense(&offset, ATTN_I64, 1, (int64_t[]){1});
    args.o = attn_bhsd(o, ATTN_F32, 1, 1, n, DIM);
    args.lse = attn_dense(lse, ATTN_F64, 3, (int64_t[]){1, 1, n});
    assert_int_equal(attn_attention(&desc, &args, 1, NULL), ATTN_OK);
}

/* Beyond 2^24 a distance is rounded, but by itself: not from where the keys
 * begin that other rows see. */
UNIT(far_positions_do_not_show_other_rows)
{
    enum { ROWS = 12, DIM = 8, KEYS = 40 };
    float q[ROWS * DIM], k[KEYS * DIM];
    double all[ROWS], few[4], one;

    for (int i = 0; i < ROWS * DIM; i++)
        q[i] = (float)(i * 7 % 11) * 0.3f - 1;
    for (int i = 0; i < KEYS * DIM; i++)
        k[i] = (float)(i * 5 % 13) * 0.2f - 1;
    for (int isa = ATTN_ISA_SCALAR; isa <= last_level(); isa++)
        for (int64_t offset = (1 << 24) - 4; offset < (1 << 24) + 20;
             offset++) {
            far_lse((attn_isa)isa, offset, ROWS, q, k, all);
            far_lse((attn_isa)isa, offset + 4, 4, q + 4 * DIM, k, few);
            for (int i = 0; i < ROWS; i++) {
                far_lse((attn_isa)isa, offset + i, 1, q + i * DIM, k, &one);
                assert_true(one == all[i]);
                assert_true(i < 4 || i >= 8 || one == few[i - 4]);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_wider_than_the_plan_writes_nothing_behind),
        cmocka_unit_test(far_positions_do_not_show_other_rows),
        cmocka_unit_test(one_segment_has_the_bits_of_many_queries),
        cmocka_unit_test(segments_join_to_the_same_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
