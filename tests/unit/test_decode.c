/* SPDX-License-Identifier: Apache-2.0
 *
 * Decode kernels against the kernels of many queries: the same bits as long as
 * the keys are one segment, and as close as numerics.md says beyond. */
#include "plan/plan.h"
#include "scene.h"

#include "unit.h"

#include <math.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_segment_has_the_bits_of_many_queries),
        cmocka_unit_test(segments_join_to_the_same_value),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
