/* SPDX-License-Identifier: Apache-2.0
 *
 * What holds of attention whatever the values, through the kernels: equal
 * bits where the formula says equal, and else a bound, with no reference in
 * sight. The bounds are those of docs/numerics.md: a weight is off by at most
 *
 *   epsilon = 8 u (sqrt(D + 2) S + sqrt(T) + sqrt(n / T) + 8)
 *
 * of itself, S the largest sum of the sizes of a score's terms, T = 64 keys a
 * block; a sum of N such terms rounds by N u of their sizes more. */
#include "scene.h"

#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED UINT64_C(261497212)

/* clang-format off */
static const scene_shape plain = {
    "plain", .batch = 2, .heads_q = 4, .heads_kv = 2, .len_q = 37,
    .len_k = 150, .dim_qk = 24, .dim_v = 17};
static const scene_shape square = {
    "square", .batch = 1, .heads_q = 4, .heads_kv = 2, .len_q = 150,
    .len_k = 150, .dim_qk = 24, .dim_v = 17,
    .causal = ATTN_CAUSAL_TOP_LEFT};
static const scene_shape biased = {
    "biased", .batch = 2, .heads_q = 2, .heads_kv = 1, .len_q = 30,
    .len_k = 140, .dim_qk = 16, .dim_v = 9, .bias = "bhij",
    .bias_hides = true};
/* clang-format on */

/* ------------------------------------------------------------------ sizes */

static double unit_of(attn_dtype dtype)
{
    return dtype == ATTN_F64 ? 0x1p-53 : 0x1p-24;
}

/* One element of a (batch, heads, rows, columns) tensor. */
static double at(const attn_tensor *t, int64_t b, int64_t h, int64_t i,
                 int64_t c)
{
    const attn_input view = attn_in(*t);

    return scene_read(&view, ((b * t->shape[1] + h) * t->shape[2] + i) *
                                     t->shape[3] + c);
}

static double in_at(const attn_input *t, int64_t b, int64_t h, int64_t i,
                    int64_t c)
{
    return scene_read(t, ((b * t->shape[1] + h) * t->shape[2] + i) *
                                 t->shape[3] + c);
}

static double largest(const attn_input *t)
{
    double most = 0;

    for (int64_t i = 0; i < scene_count(t); i++)
        if (isfinite(scene_read(t, i)))
            most = fmax(most, fabs(scene_read(t, i)));
    return most;
}

/* The largest sum of the sizes of products of a row of one and of the other,
 * heads of `a` in groups over those of `b`. */
static double largest_product(const attn_input *a, const attn_input *b)
{
    const int64_t group = a->shape[1] / b->shape[1];
    double most = 0;

    for (int64_t n = 0; n < a->shape[0] * a->shape[1]; n++)
        for (int64_t i = 0; i < a->shape[2]; i++)
            for (int64_t j = 0; j < b->shape[2]; j++) {
                const int64_t e = n / a->shape[1], h = n % a->shape[1];
                double sum = 0;

                for (int64_t c = 0; c < a->shape[3]; c++)
                    sum += fabs(in_at(a, e, h, i, c) *
                                in_at(b, e, h / group, j, c));
                most = fmax(most, sum);
            }
    return most;
}

/* S of the whole scene. */
static double score_size(const scene *s)
{
    double size =
        fabs(s->desc.scale) * largest_product(&s->args.q, &s->args.kv.k);

    if (s->args.bias.dtype != ATTN_NONE)
        size += largest(&s->args.bias);
    return size;
}

static double epsilon(const scene *s)
{
    return 8 * unit_of(s->desc.dtype) *
           (sqrt((double)s->desc.dim_qk + 2) * score_size(s) + 8 +
            sqrt((double)s->desc.len_k / 64) + 8);
}

static void assert_near(double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%.17g, must be %.17g within %.3g", got, want, bound);
}

static void in_f64_and_f32(const scene_shape *shape, void (*f)(scene *))
{
    for (int dtype = ATTN_F64; dtype <= ATTN_F32; dtype++) {
        scene s;

        scene_open(&s, shape, (attn_dtype)dtype, SEED);
        scene_run(&s, 1);
        f(&s);
        scene_close(&s);
    }
}

/* ---------------------------------------------------------------- weights */

static void sums_to_one(scene *s)
{
    const double error = epsilon(s);
    const attn_tensor *w = &s->args.weights;
    const double u = unit_of(s->desc.dtype), n = (double)s->desc.len_k;

    for (int64_t b = 0; b < s->desc.batch; b++)
        for (int64_t h = 0; h < s->desc.heads_q; h++)
            for (int64_t i = 0; i < s->desc.len_q; i++) {
                double sum = 0;

                for (int64_t j = 0; j < s->desc.len_k; j++) {
                    assert_true(at(w, b, h, i, j) >= 0);
                    assert_true(at(w, b, h, i, j) <= 1);
                    sum += at(w, b, h, i, j);
                }
                assert_near(sum, 1, error + n * u);
            }
}

UNIT(weights_are_a_distribution)
{
    in_f64_and_f32(&plain, sums_to_one);
    in_f64_and_f32(&square, sums_to_one);
    in_f64_and_f32(&biased, sums_to_one);
}

/* With a sink they sum to less: 1 - e^(sink - lse). */
static void leaves_the_sinks_share(scene *s)
{
    const double error = epsilon(s);
    const attn_input lse = attn_in(s->args.lse);

    for (int64_t h = 0; h < s->desc.heads_q; h++)
        for (int64_t i = 0; i < s->desc.len_q; i++) {
            const double share = exp(scene_read(&s->args.sinks, h) -
                                     scene_read(&lse,
                                                h * s->desc.len_q + i));
            double sum = 0;

            for (int64_t j = 0; j < s->desc.len_k; j++)
                sum += at(&s->args.weights, 0, h, i, j);
            assert_near(sum, 1 - share,
                        2 * error + (double)s->desc.len_k *
                                             unit_of(s->desc.dtype));
        }
}

UNIT(a_sink_takes_its_share_of_the_weights)
{
    scene_shape shape = square;

    shape.inputs = ATTN_WITH_SINKS;
    in_f64_and_f32(&shape, leaves_the_sinks_share);
}

/* ------------------------------------------------------------- convex hull */

static void stays_in_the_hull(scene *s)
{
    const int64_t group = s->desc.heads_q / s->desc.heads_kv;
    const double bound = 2 * epsilon(s) * largest(&s->args.kv.v);

    for (int64_t b = 0; b < s->desc.batch; b++)
        for (int64_t h = 0; h < s->desc.heads_q; h++)
            for (int64_t i = 0; i < s->desc.len_q; i++)
                for (int64_t c = 0; c < s->desc.dim_v; c++) {
                    double low = (double)INFINITY, high = -low;

                    for (int64_t j = 0; j < s->desc.len_k; j++) {
                        const double v =
                            in_at(&s->args.kv.v, b, h / group, j, c);

                        if (at(&s->scores, b, h, i, j) ==
                            -(double)INFINITY)
                            continue;
                        low = fmin(low, v);
                        high = fmax(high, v);
                    }
                    assert_true(at(&s->args.o, b, h, i, c) >= low - bound);
                    assert_true(at(&s->args.o, b, h, i, c) <= high + bound);
                }
}

UNIT(outputs_lie_between_the_values_that_their_row_sees)
{
    in_f64_and_f32(&plain, stays_in_the_hull);
    in_f64_and_f32(&square, stays_in_the_hull);
    in_f64_and_f32(&biased, stays_in_the_hull);
}

/* -------------------------------------------------------------- bit by bit */

UNIT(a_row_that_sees_one_key_is_its_value)
{
    for (int dtype = ATTN_F64; dtype <= ATTN_F16; dtype++) {
        scene s;
        attn_input first, value;

        scene_open(&s, &square, (attn_dtype)dtype, SEED);
        scene_run(&s, 1);
        for (int64_t h = 0; h < s.desc.heads_q; h++) {
            first = scene_slice(scene_slice(attn_in(s.args.o), 1, h, 1), 2, 0,
                                1);
            value = scene_slice(scene_slice(s.args.kv.v, 1, h / 2, 1), 2, 0,
                                1);
            assert_true(scene_same("o of row 0", &first, &value));
        }
        scene_close(&s);
    }
}

/* Rows [0, n) of a row-like output. */
static attn_input head_rows(const attn_tensor *t, int64_t n)
{
    return scene_slice(attn_in(*t), 2, 0, n);
}

static void assert_rows_same(scene *a, scene *b, int64_t n)
{
    const attn_tensor *const of_a[] = {&a->args.o, &a->args.lse, &a->args.dq};
    const attn_tensor *const of_b[] = {&b->args.o, &b->args.lse, &b->args.dq};

    for (size_t k = 0; k < COUNT(of_a); k++) {
        const attn_input one = head_rows(of_a[k], n);
        const attn_input two = head_rows(of_b[k], n);

        assert_true(scene_same("rows", &one, &two));
    }
}

/* Keys from n on are NaN: what sees none of them keeps its bits. */
UNIT(the_future_does_not_leak)
{
    static const int64_t cuts[] = {1, 15, 16, 63, 64, 65, 128, 149};

    for (int dtype = ATTN_F64; dtype <= ATTN_F16; dtype++)
        for (size_t k = 0; k < COUNT(cuts); k++) {
            scene s, spoilt;
            attn_tensor t;

            scene_open(&s, &square, (attn_dtype)dtype, SEED);
            scene_run(&s, 1);
            scene_relaid(&spoilt, &s, SCENE_DENSE);
            for (int which = 0; which < 2; which++) {
                const attn_input part = scene_slice(
                    which ? spoilt.args.kv.k : spoilt.args.kv.v, 2, cuts[k],
                    square.len_k - cuts[k]);

                t = scene_writable(&part);
                for (int64_t i = 0; i < scene_count(&part); i++)
                    scene_write(&t, i, (double)NAN);
            }
            scene_run(&spoilt, 1);
            assert_rows_same(&spoilt, &s, cuts[k]);
            assert_true(isnan(at(&spoilt.args.o, 0, 0, cuts[k], 0)));
            scene_close(&spoilt);
            scene_close(&s);
        }
}

/* What of rows [from, from + n) is the same in both. */
static void assert_part_same(const attn_tensor *a, const attn_tensor *b,
                             int64_t from, int64_t n)
{
    const attn_input one = scene_slice(attn_in(*a), 2, from, n);
    const attn_input two = scene_slice(attn_in(*b), 2, from, n);

    assert_true(scene_same("part", &one, &two));
}

/* d_o of one row is so large that ds by k or q leaves what products may hold in
 * between: what other rows give and get keeps its bits, and no sum is lost. */
UNIT(a_row_of_large_gradients_is_alone)
{
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_BF16};
    const int64_t row = 70, after = square.len_q - row - 1;

    for (size_t n = 0; n < COUNT(dtypes); n++) {
        scene s, large;
        attn_input part;
        attn_tensor t;

        scene_open(&s, &square, dtypes[n], SEED);
        scene_run(&s, 1);
        scene_relaid(&large, &s, SCENE_DENSE);
        part = scene_slice(large.args.d_o, 2, row, 1);
        t = scene_writable(&part);
        for (int64_t i = 0; i < scene_count(&part); i++)
            scene_write(&t, i, scene_read(&part, i) * 0x1p105);
        scene_run(&large, 1);
        assert_part_same(&large.args.dq, &s.args.dq, 0, row);
        assert_part_same(&large.args.dq, &s.args.dq, row + 1, after);
        assert_part_same(&large.args.dk, &s.args.dk, row + 1, after);
        assert_part_same(&large.args.dv, &s.args.dv, row + 1, after);
        assert_true(isfinite(at(&large.args.dq, 0, 0, row, 0)));
        assert_true(isfinite(at(&large.args.dk, 0, 0, 0, 0)));
        assert_true(fabs(at(&large.args.dq, 0, 0, row, 0)) > 0x1p80);
        scene_close(&large);
        scene_close(&s);
    }
}

/* Row `row` of an input: every bit set, a NaN that rounding up would carry into
 * a zero. */
static void fill_row(const attn_input *t, int64_t row)
{
    const attn_input part = scene_slice(*t, 2, row, 1);
    const size_t size = attn_dtype_size(t->dtype);

    for (int64_t i = 0; i < scene_count(&part); i++)
        memset((char *)scene_writable(&part).data +
                   (size_t)scene_offset(&part, i) * size,
               0xff, size);
}

static void assert_nan_rows(const attn_tensor *t, int64_t from, int64_t n,
                            bool wanted)
{
    const attn_input part = scene_slice(attn_in(*t), 2, from, n);

    for (int64_t i = 0; i < scene_count(&part); i++)
        assert_int_equal(isnan(scene_read(&part, i)) != 0, wanted);
}

/* Whatever its bits: a NaN in q or d_o reaches its row of dq and the keys that
 * the row sees, and nothing else. */
UNIT(a_nan_of_all_ones_is_one)
{
    const int64_t row = 70, after = square.len_k - row - 1;

    for (int dtype = ATTN_F64; dtype <= ATTN_F16; dtype++)
        for (int which = 0; which < 2; which++) {
            scene s;

            scene_open(&s, &square, (attn_dtype)dtype, SEED);
            fill_row(which ? &s.args.d_o : &s.args.q, row);
            scene_run(&s, 1);
            assert_nan_rows(&s.args.dq, 0, row, false);
            assert_nan_rows(&s.args.dq, row, 1, true);
            assert_nan_rows(&s.args.dq, row + 1, after, false);
            assert_nan_rows(&s.args.dk, 0, row + 1, true);
            assert_nan_rows(&s.args.dv, 0, row + 1, true);
            assert_nan_rows(&s.args.dk, row + 1, after, false);
            assert_nan_rows(&s.args.dv, row + 1, after, false);
            scene_close(&s);
        }
}

/* The first n keys alone: a prefix. */
UNIT(keys_that_come_later_do_not_change_a_prefix)
{
    static const int64_t cuts[] = {1, 15, 16, 63, 64, 65, 128, 149};

    for (size_t k = 0; k < COUNT(cuts); k++) {
        scene s, prefix;

        scene_open(&s, &square, ATTN_F32, SEED);
        scene_run(&s, 1);
        scene_relaid(&prefix, &s, SCENE_DENSE);
        prefix.args.kv.k = scene_slice(s.args.kv.k, 2, 0, cuts[k]);
        prefix.args.kv.v = scene_slice(s.args.kv.v, 2, 0, cuts[k]);
        prefix.args.weights = prefix.scores = (attn_tensor){0};
        prefix.args.dk = prefix.args.dv = (attn_tensor){0};
        scene_run(&prefix, 1);
        assert_rows_same(&prefix, &s, cuts[k]);
        scene_close(&prefix);
        scene_close(&s);
    }
}

/* ------------------------------------------------------------ within bounds */

static void assert_o_near(const attn_input *a, const attn_input *b,
                          double bound)
{
    for (int64_t i = 0; i < scene_count(a); i++)
        assert_near(scene_read(a, i), scene_read(b, i), bound);
}

static void copy_key(scene *s, const scene *from, int64_t to_j, int64_t j)
{
    attn_tensor rows[2] = {scene_writable(&s->args.kv.k),
                           scene_writable(&s->args.kv.v)};
    const attn_input source[2] = {from->args.kv.k, from->args.kv.v};

    for (int n = 0; n < 2; n++) {
        const attn_input to = scene_slice(attn_in(rows[n]), 2, to_j, 1);
        const attn_input one = scene_slice(source[n], 2, j, 1);
        attn_tensor out = scene_writable(&to);

        for (int64_t i = 0; i < scene_count(&one); i++)
            scene_write(&out, i, scene_read(&one, i));
    }
}

static void permutes(scene *s)
{
    const attn_input o = attn_in(s->args.o);
    const double bound = 4 * epsilon(s) * largest(&s->args.kv.v);
    scene other;
    attn_input other_o;

    scene_relaid(&other, s, SCENE_DENSE);
    for (int64_t j = 0; j < s->desc.len_k; j++) /* 7 and 150 have no divisor */
        copy_key(&other, s, j * 7 % s->desc.len_k, j);
    scene_run(&other, 1);
    other_o = attn_in(other.args.o);
    assert_o_near(&other_o, &o, bound);
    scene_close(&other);
}

UNIT(the_order_of_keys_is_no_matter)
{
    in_f64_and_f32(&plain, permutes);
}

/* One query at a time over the keys so far, as a decoder does. */
static void decodes(scene *s)
{
    const double bound = 4 * epsilon(s) * largest(&s->args.kv.v);

    for (int64_t i = 0; i < s->desc.len_q; i++) {
        const attn_input want = scene_slice(attn_in(s->args.o), 2, i, 1);
        scene step = *s;
        attn_input got;

        step.n_memory = 0;
        step.desc.len_q = 1;
        step.desc.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
        step.args.q = scene_slice(s->args.q, 2, i, 1);
        step.args.kv.k = scene_slice(s->args.kv.k, 2, 0, i + 1);
        step.args.kv.v = scene_slice(s->args.kv.v, 2, 0, i + 1);
        step.args.o = scene_dense(&step, s->desc.dtype, 4, want.shape);
        step.args.lse = step.args.weights = step.args.entropy = step.scores =
            (attn_tensor){0};
        scene_forward(&step, 1);
        got = attn_in(step.args.o);
        assert_o_near(&got, &want, bound);
        scene_close(&step);
    }
}

UNIT(decoding_step_by_step_is_close_to_prefill)
{
    in_f64_and_f32(&square, decodes);
}

/* Keys [from, from + n) alone; o and lse. */
static void half(scene *to, const scene *s, int64_t from, int64_t n)
{
    *to = *s;
    to->n_memory = 0;
    to->args.kv.k = scene_slice(s->args.kv.k, 2, from, n);
    to->args.kv.v = scene_slice(s->args.kv.v, 2, from, n);
    to->args.o = scene_dense(to, s->desc.dtype, 4, s->args.o.shape);
    to->args.lse = scene_dense(to, ATTN_F64, 3, s->args.lse.shape);
    to->args.weights = to->args.entropy = to->scores = (attn_tensor){0};
    scene_forward(to, 1);
}

static void merges(scene *s)
{
    const attn_input o = attn_in(s->args.o), lse = attn_in(s->args.lse);
    const double bound = 4 * epsilon(s);
    scene left, right;
    attn_input got;

    half(&left, s, 0, 70);
    half(&right, s, 70, s->desc.len_k - 70);
    assert_int_equal(attn_merge(attn_in(left.args.o), attn_in(left.args.lse),
                                attn_in(right.args.o),
                                attn_in(right.args.lse), left.args.o,
                                left.args.lse, NULL),
                     ATTN_OK);
    got = attn_in(left.args.o);
    assert_o_near(&got, &o, bound * largest(&s->args.kv.v));
    got = attn_in(left.args.lse);
    assert_o_near(&got, &lse, bound + 4 * unit_of(s->desc.dtype) *
                                          largest(&lse));
    scene_close(&left);
    scene_close(&right);
}

UNIT(two_halves_merge_into_the_whole)
{
    in_f64_and_f32(&plain, merges);
}

/* Scores of +-1000 and more: the maximum goes before the exponential. */
static void shifts(scene *s)
{
    const attn_input o = attn_in(s->args.o), lse = attn_in(s->args.lse);
    attn_tensor bias;
    attn_input got;
    double error;
    scene moved;

    scene_relaid(&moved, s, SCENE_DENSE);
    bias = scene_writable(&moved.args.bias);
    for (int64_t i = 0; i < scene_count(&s->args.bias); i++)
        scene_write(&bias, i, scene_read(&s->args.bias, i) + 1024);
    error = 2 * epsilon(&moved);
    scene_run(&moved, 1);
    got = attn_in(moved.args.o);
    assert_o_near(&got, &o, error * largest(&s->args.kv.v));
    got = attn_in(moved.args.lse);
    for (int64_t i = 0; i < scene_count(&lse); i++)
        assert_near(scene_read(&got, i), scene_read(&lse, i) + 1024,
                    error + 2048 * unit_of(s->desc.dtype));
    scene_close(&moved);
}

UNIT(a_common_shift_of_the_scores_moves_lse_alone)
{
    in_f64_and_f32(&biased, shifts);
}

/* --------------------------------------------------------------- gradients */

/* A row's sum of abs(ds) = p abs(dp - delta) is at most this; its error is
 * that of p and that of dp, in dp and in delta. */
static double gradient_size(const scene *s)
{
    return 2 * largest_product(&s->args.d_o, &s->args.kv.v);
}

/* Moving all scores of a row alike changes nothing: sum_j ds_ij = 0. */
static void has_rows_of_zero_sum(scene *s)
{
    const double bound = 4 * epsilon(s) * gradient_size(s);

    for (int64_t b = 0; b < s->desc.batch; b++)
        for (int64_t h = 0; h < s->desc.heads_q; h++)
            for (int64_t i = 0; i < s->desc.len_q; i++) {
                double sum = 0;

                for (int64_t j = 0; j < s->desc.len_k; j++)
                    sum += at(&s->args.dbias, b, h, i, j);
                assert_near(sum, 0, bound);
            }
}

UNIT(dbias_sums_to_zero_over_a_row)
{
    in_f64_and_f32(&biased, has_rows_of_zero_sum);
}

/* Weights of a row sum to one: sum_j dv_j = sum_i d_o_i over the group. */
static void passes_on_d_o(scene *s)
{
    const double error = epsilon(s);
    const int64_t group = s->desc.heads_q / s->desc.heads_kv;
    const double n = (double)(s->desc.len_q * group);

    for (int64_t b = 0; b < s->desc.batch; b++)
        for (int64_t g = 0; g < s->desc.heads_kv; g++)
            for (int64_t c = 0; c < s->desc.dim_v; c++) {
                double got = 0, want = 0;

                for (int64_t j = 0; j < s->desc.len_k; j++)
                    got += at(&s->args.dv, b, g, j, c);
                for (int64_t h = g * group; h < (g + 1) * group; h++)
                    for (int64_t i = 0; i < s->desc.len_q; i++)
                        want += in_at(&s->args.d_o, b, h, i, c);
                assert_near(got, want, (error + 2 * n *
                                        unit_of(s->desc.dtype)) * n *
                                           largest(&s->args.d_o));
            }
}

UNIT(dv_sums_to_the_sum_of_d_o)
{
    in_f64_and_f32(&plain, passes_on_d_o);
    in_f64_and_f32(&square, passes_on_d_o);
}

/* s is linear in q and in k: <q, dq> = <s, ds> = <k, dk>, over a group. */
static void is_bilinear(scene *s)
{
    const double error = epsilon(s);
    const double size = (double)(s->desc.heads_q / s->desc.heads_kv *
                                 s->desc.len_q) *
                        gradient_size(s) * score_size(s);
    const int64_t group = s->desc.heads_q / s->desc.heads_kv;

    for (int64_t b = 0; b < s->desc.batch; b++)
        for (int64_t g = 0; g < s->desc.heads_kv; g++) {
            double of_q = 0, of_k = 0;

            for (int64_t c = 0; c < s->desc.dim_qk; c++) {
                for (int64_t h = g * group; h < (g + 1) * group; h++)
                    for (int64_t i = 0; i < s->desc.len_q; i++)
                        of_q += in_at(&s->args.q, b, h, i, c) *
                                at(&s->args.dq, b, h, i, c);
                for (int64_t j = 0; j < s->desc.len_k; j++)
                    of_k += in_at(&s->args.kv.k, b, g, j, c) *
                            at(&s->args.dk, b, g, j, c);
            }
            assert_near(of_q, of_k, 4 * error * size);
            assert_true(s->desc.dtype != ATTN_F64 ||
                        fabs(of_q) > 1000 * error * size);
        }
}

UNIT(q_dq_is_k_dk)
{
    in_f64_and_f32(&plain, is_bilinear);
    in_f64_and_f32(&square, is_bilinear);
}

/* Units of keys have 256, and the 257th is the first of another: sum_j dv_j is
 * sum_i do_i only if it has its part. Each dv_j is a sum of len_q terms, so n
 * roundings of sums of absolute terms bound the difference. */
UNIT(the_257th_key_has_its_gradient)
{
    static const scene_shape shape = {
        .name = "257 keys", .batch = 1, .heads_q = 1, .heads_kv = 1,
        .len_q = 40, .len_k = 257, .dim_qk = 8, .dim_v = 8};
    scene s;
    attn_input dv;

    scene_open(&s, &shape, ATTN_F64, SEED);
    scene_run(&s, 1);
    dv = attn_in(s.args.dv);
    for (int64_t c = 0; c < 8; c++) {
        double left = 0, right = 0, terms = 0;

        for (int64_t j = 0; j < 257; j++)
            left += scene_read(&dv, j * 8 + c);
        for (int64_t i = 0; i < 40; i++) {
            right += scene_read(&s.args.d_o, i * 8 + c);
            terms += fabs(scene_read(&s.args.d_o, i * 8 + c));
        }
        assert_true(fabs(left - right) <= (257 + 40) * 0x1p-52 * terms);
    }
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_257th_key_has_its_gradient),
        cmocka_unit_test(weights_are_a_distribution),
        cmocka_unit_test(a_sink_takes_its_share_of_the_weights),
        cmocka_unit_test(outputs_lie_between_the_values_that_their_row_sees),
        cmocka_unit_test(a_row_that_sees_one_key_is_its_value),
        cmocka_unit_test(the_future_does_not_leak),
        cmocka_unit_test(a_row_of_large_gradients_is_alone),
        cmocka_unit_test(a_nan_of_all_ones_is_one),
        cmocka_unit_test(keys_that_come_later_do_not_change_a_prefix),
        cmocka_unit_test(the_order_of_keys_is_no_matter),
        cmocka_unit_test(decoding_step_by_step_is_close_to_prefill),
        cmocka_unit_test(two_halves_merge_into_the_whole),
        cmocka_unit_test(a_common_shift_of_the_scores_moves_lse_alone),
        cmocka_unit_test(dbias_sums_to_zero_over_a_row),
        cmocka_unit_test(dv_sums_to_the_sum_of_d_o),
        cmocka_unit_test(q_dq_is_k_dk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
