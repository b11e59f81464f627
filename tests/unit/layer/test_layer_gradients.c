/* SPDX-License-Identifier: Apache-2.0
 *
 * Every gradient of every row of the table, element by element, against
 * differences of the loss
 *
 *   L = sum(y d_y) + sum(lse dlse)
 *
 * of the plain composition in fp64. With D(h) = (8 (L(+h) - L(-h)) - (L(+2h) -
 * L(-2h))) / 12h, which is off by c h^4, the value is D(h/2) and its tolerance
 *
 *   |D(h) - D(h/2)|       15 times the truncation of D(h/2)
 *   + 6 noise / h         the rounding of L, by the bound on y and, for lse, u
 *                         (dim_qk + len_k + 8) (1 + |lse|)
 *
 * The types of 32 and 16 bits are then compared with fp64 on the same inputs:
 * the root mean square of a gradient's errors, relative to that of the
 * gradient, is at most
 *
 *   2 sqrt(12 t^2 + 6 (64 + 2 + 2) u^2)
 *
 * since between x and a gradient lie at most 12 roundings to storage (t) and 6
 * sums of 68 roundings (u), independent ones, which the layer may double. */
#include "difference.h"
#include "layer_case.h"

#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP 0x1p-7

typedef struct bench {
    layer_case *c;
    double *y, *bound, *lse;
    int64_t rows;
    double noise;
} bench;

static double loss(bench *b, double *bound)
{
    const layer_case *c = b->c;
    long double sum = 0;

    layer_ref(c, b->y, bound, b->lse);
    for (int64_t i = 0; i < c->in[D_Y].n; i++)
        sum += (long double)b->y[i] * c->in[D_Y].at[i];
    for (int64_t i = 0; c->in[D_LSE].at && i < b->rows; i++)
        sum += (long double)b->lse[i] * c->in[D_LSE].at[i];
    return (double)sum;
}

static bench open_bench(layer_case *c)
{
    const attn_desc *d = &c->desc.attention;
    bench b = {.c = c, .rows = d->batch * d->heads_q * d->len_q};

    b.y = calloc((size_t)c->in[D_Y].n, sizeof *b.y);
    b.bound = calloc((size_t)c->in[D_Y].n, sizeof *b.bound);
    b.lse = calloc((size_t)b.rows, sizeof *b.lse);
    loss(&b, b.bound);
    for (int64_t i = 0; i < c->in[D_Y].n; i++)
        b.noise += fabs(c->in[D_Y].at[i]) * b.bound[i];
    for (int64_t i = 0; c->in[D_LSE].at && i < b.rows; i++)
        b.noise += fabs(c->in[D_LSE].at[i]) * (1 + fabs(b.lse[i])) *
                   (double)(d->dim_qk + d->len_k + 8) * 0x1p-53;
    return b;
}

static void close_bench(bench *b)
{
    free(b->y);
    free(b->bound);
    free(b->lse);
}

static double plain_loss(void *problem)
{
    return loss(problem, NULL);
}

/* One element: right as it is, and wrong if it were off by `off`. */
typedef struct verdict {
    bool right, tells;
} verdict;

static verdict judge(bench *b, double *x, double gradient, double off)
{
    const double coarse = difference(plain_loss, b, x, STEP);
    const double fine = difference(plain_loss, b, x, STEP / 2);
    const double tolerance = fabs(coarse - fine) + 6 * b->noise / STEP;

    return (verdict){fabs(gradient - fine) <= tolerance,
                     fabs(gradient + off - fine) > tolerance};
}

static double largest(const attn_tensor *t, int64_t n)
{
    double most = 0;

    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(layer_value(t, i)));
    return most;
}

/* A shift by a millionth of the gradient's size must show in each element. */
static void check_gradient(bench *b, const layer_call *call, tensor which)
{
    values *v = &b->c->in[which];
    const attn_tensor gradient = layer_gradient(call, which);
    const double off = 1e-6 * fmax(largest(&gradient, v->n), 1);

    for (int64_t i = 0; i < v->n; i++) {
        const double dx = layer_value(&gradient, i);
        const verdict said = judge(b, &v->at[i], dx, off);

        if (!said.right)
            fail_msg("%s: gradient by %s[%lld] is %.17g, by differences %.17g",
                     b->c->row.name, layer_tensor_name(which), (long long)i,
                     dx, difference(plain_loss, b, &v->at[i], STEP / 2));
        if (!said.tells)
            fail_msg("%s: %s[%lld] could be off by %g unnoticed",
                     b->c->row.name, layer_tensor_name(which), (long long)i,
                     off);
    }
}

static void run_backward(layer_call *call)
{
    attn_diag diag;

    layer_call_backward(call);
    if (attn_multi_head_backward(&call->c->desc, &call->args, 1, &diag) !=
        ATTN_OK)
        fail_msg("%s: %s: %s", call->c->row.name, diag.field, diag.message);
}

UNIT(every_gradient_is_the_slope_of_the_loss)
{
    for (size_t n = 0; n < n_layer_rows; n++) {
        layer_case c =
            layer_case_open(&layer_table[n], &layer_small, ATTN_F64);
        bench b = open_bench(&c);
        layer_call call = layer_call_open(&c);

        run_backward(&call);
        for (int t = 0; t < N_PARAMETERS; t++)
            if (c.in[t].at)
                check_gradient(&b, &call, (tensor)t);
        layer_call_close(&call);
        close_bench(&b);
        layer_case_close(&c);
    }
}

static double rms(const attn_tensor *a, const attn_tensor *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const double x = layer_value(a, i) - (b ? layer_value(b, i) : 0);

        sum += x * x / (double)n;
    }
    return sqrt(sum);
}

/* The same numbers in fp64. */
static layer_case widened(const layer_case *c)
{
    layer_case wide = *c;

    wide.dtype = ATTN_F64;
    wide.desc.attention.dtype = wide.desc.attention.kv_dtype = ATTN_F64;
    return wide;
}

static double relative_bound(attn_dtype dtype)
{
    const double t = dtype == ATTN_F32    ? 0x1p-24
                     : dtype == ATTN_BF16 ? 0x1p-8
                                          : 0x1p-11;

    return 2 * sqrt(12 * t * t + 6 * 68 * 0x1p-48);
}

/* The scale of a gradient. Those of key biases may vanish by cancellation: the
 * weights beside them see the same terms. */
static double scale_of(const layer_call *call, tensor which)
{
    const attn_tensor gradient = layer_gradient(call, which);
    const attn_tensor beside = layer_gradient(call, W_K);
    const double size = rms(&gradient, NULL, call->c->in[which].n);

    return which == B_K
               ? fmax(size, rms(&beside, NULL, call->c->in[W_K].n))
               : size;
}

static void compare(const layer_case *c)
{
    const layer_case wide_case = widened(c);
    layer_call narrow = layer_call_open(c), wide = layer_call_open(&wide_case);
    const double bound = relative_bound(c->dtype);

    run_backward(&narrow);
    run_backward(&wide);
    for (int t = 0; t < N_PARAMETERS; t++) {
        const attn_tensor a = layer_gradient(&narrow, (tensor)t);
        const attn_tensor b = layer_gradient(&wide, (tensor)t);
        double error, scale;

        if (!c->in[t].at)
            continue;
        scale = scale_of(&wide, (tensor)t);
        error = rms(&a, &b, c->in[t].n);
        if (!(error <= bound * scale))
            fail_msg("%s, %s: gradient by %s is off by %g, bound %g",
                     c->row.name, attn_dtype_name(c->dtype),
                     layer_tensor_name((tensor)t), error / scale, bound);
        /* f16 would not do for f32. */
        if (c->dtype == ATTN_F16 && t != SINKS && t != SLOPES)
            assert_true(error > relative_bound(ATTN_F32) * scale);
    }
    layer_call_close(&narrow);
    layer_call_close(&wide);
}

UNIT(narrow_types_agree_with_fp64)
{
    static const attn_dtype dtypes[] = {ATTN_F32, ATTN_BF16, ATTN_F16};

    for (size_t n = 0; n < n_layer_rows; n++)
        for (size_t t = 0; t < COUNT(dtypes); t++) {
            layer_case c =
                layer_case_open(&layer_table[n], &layer_large, dtypes[t]);

            compare(&c);
            layer_case_close(&c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(narrow_types_agree_with_fp64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
