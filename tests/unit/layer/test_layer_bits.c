/* SPDX-License-Identifier: Apache-2.0
 *
 * The same bits of y and of every gradient, whatever may not change them:
 * threads, strides of x and y, weights transposed or cut out of one packed
 * matrix, positions written out, one batch alone, and what else is asked
 * for. */
#include "layer_case.h"

#include "core/element.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* Of the other types, a build with a BLAS promises no bits. */
#ifdef ATTN_CBLAS
static const attn_dtype dtypes[] = {ATTN_BF16, ATTN_F16};
#else
static const attn_dtype dtypes[] = {ATTN_F64, ATTN_F32, ATTN_BF16};
#endif

static int64_t count_of(const attn_tensor *t)
{
    int64_t n = 1;

    for (int32_t a = 0; a < t->rank; a++)
        n *= t->shape[a];
    return n;
}

/* Element number i of the row-major order, at any strides. */
static double nth(const attn_tensor *t, int64_t i)
{
    int64_t place = 0;

    for (int32_t a = t->rank - 1; a >= 0; a--) {
        place += i % t->shape[a] * t->stride[a];
        i /= t->shape[a];
    }
    return attn__read(t->data, t->dtype, place);
}

static void assert_same(const attn_tensor *a, const attn_tensor *b,
                        const char *row, const char *what)
{
    for (int64_t i = 0; i < count_of(a); i++) {
        const double x = nth(a, i), y = nth(b, i);

        if (memcmp(&x, &y, sizeof x) != 0)
            fail_msg("%s: %s[%lld] is %.17g and %.17g", row, what,
                     (long long)i, x, y);
    }
}

static void run(layer_call *call, int64_t threads)
{
    attn_diag diag;

    if (attn_multi_head(&call->c->desc, &call->args, threads, &diag) !=
            ATTN_OK ||
        attn_multi_head_backward(&call->c->desc, &call->args, threads,
                                 &diag) != ATTN_OK)
        fail_msg("%s: %s: %s", call->c->row.name, diag.field, diag.message);
}

static void compare(const layer_call *a, const layer_call *b)
{
    const char *row = a->c->row.name;

    assert_same(&a->args.y, &b->args.y, row, "y");
    for (int t = 0; t < N_PARAMETERS; t++) {
        const attn_tensor x = layer_gradient(a, (tensor)t);
        const attn_tensor y = layer_gradient(b, (tensor)t);

        if (a->c->in[t].at)
            assert_same(&x, &y, row, layer_tensor_name((tensor)t));
    }
}

/* Change the second of two equal calls, run both, compare. */
static void check(const layer_case *c, void (*change)(layer_call *call),
                  int64_t threads)
{
    layer_call plain = layer_call_open(c), changed = layer_call_open(c);

    layer_call_forward(&plain);
    layer_call_backward(&plain);
    layer_call_forward(&changed);
    layer_call_backward(&changed);
    if (change)
        change(&changed);
    run(&plain, 1);
    run(&changed, threads);
    compare(&plain, &changed);
    layer_call_close(&plain);
    layer_call_close(&changed);
}

/* Every row, in one type after another. */
static void check_table(void (*change)(layer_call *call), int64_t threads)
{
    for (size_t n = 0; n < n_layer_rows; n++) {
        layer_case c = layer_case_open(&layer_table[n], &layer_large,
                                       dtypes[n % COUNT(dtypes)]);

        check(&c, change, threads);
        layer_case_close(&c);
    }
}

/* --------------------------------------------------------------- changes */

/* A dense copy in which axis `outer` varies slowest and the others keep their
 * order, with a gap between rows; as a view of the old shape. */
static attn_tensor spread(layer_call *call, const attn_tensor *t,
                          int32_t outer)
{
    int64_t shape[5] = {t->shape[outer]}, stride = 2;
    attn_tensor to = *t;
    int32_t n = 1;

    for (int32_t a = 0; a < t->rank; a++)
        if (a != outer)
            shape[n++] = t->shape[a];
    shape[n - 1] = 2 * shape[n - 1] + 3;
    to.data = layer_call_tensor(call, t->dtype, n, shape).data;
    for (int32_t a = t->rank - 1; a >= 0; a--)
        if (a != outer) {
            to.stride[a] = stride;
            stride *= a == t->rank - 1 ? t->shape[a] + 1 : t->shape[a];
        }
    to.stride[outer] = stride;
    for (int64_t i = 0; i < count_of(t); i++) {
        int64_t rest = i, from = 0, place = 0;

        for (int32_t a = t->rank - 1; a >= 0; a--) {
            from += rest % t->shape[a] * t->stride[a];
            place += rest % t->shape[a] * to.stride[a];
            rest /= t->shape[a];
        }
        attn__write(to.data, to.dtype, place,
                    attn__read(t->data, t->dtype, from));
    }
    return to;
}

static attn_input spread_input(layer_call *call, const attn_input *t,
                               int32_t outer)
{
    /* Through a tensor over a copy, since an input is const. */
    attn_tensor copy = layer_call_tensor(call, t->dtype, t->rank, t->shape);

    memcpy(copy.data, t->data,
           (size_t)count_of(&copy) * attn_dtype_size(t->dtype));
    return attn_in(spread(call, &copy, outer));
}

/* Activations as (len, batch, width), with gaps. */
static void spread_activations(layer_call *call)
{
    attn_layer_args *a = &call->args;

    a->x = spread_input(call, &a->x, 1);
    a->d_y = spread_input(call, &a->d_y, 1);
    a->y = spread(call, &a->y, 1);
    a->dx = spread(call, &a->dx, 1);
    if (a->x_kv.dtype != ATTN_NONE)
        a->x_kv = spread_input(call, &a->x_kv, 1);
}

/* torch's (out, in), for weights and their gradients. */
static void turn_weights(layer_call *call)
{
    attn_layer_args *a = &call->args;

    a->w_q = spread_input(call, &a->w_q, 1);
    a->w_k = spread_input(call, &a->w_k, 1);
    a->dw_q = spread(call, &a->dw_q, 1);
    if (a->w_o.dtype == ATTN_NONE)
        return;
    a->w_o = spread_input(call, &a->w_o, 1);
    a->dw_o = spread(call, &a->dw_o, 1);
}

/* Column c of `to` is column c of `from`. */
static void put_columns(const attn_input *from, const attn_tensor *to)
{
    for (int64_t i = 0; i < from->shape[0]; i++)
        for (int64_t j = 0; j < from->shape[1]; j++)
            attn__write(to->data, to->dtype,
                        i * to->stride[0] + j * to->stride[1],
                        attn__read(from->data, from->dtype,
                                   i * from->stride[0] +
                                       j * from->stride[1]));
}

/* One (out, in) matrix for q, k and v, as models keep it. */
static void pack_weights(layer_call *call)
{
    attn_layer_args *a = &call->args;
    const int64_t q = a->w_q.shape[1], k = a->w_k.shape[1];
    const int64_t v = a->w_v.shape[1];
    const int64_t shape[2] = {q + k + v, a->w_q.shape[0]};
    const attn_dtype dtype = a->w_q.dtype;
    const attn_tensor packed = attn_layer_grad_transposed(
        layer_call_tensor(call, dtype, 2, shape));
    const attn_tensor gradient = attn_layer_grad_transposed(
        layer_call_tensor(call, dtype, 2, shape));
    const attn_input both = attn_layer_transposed(
        attn_in_dense(packed.data, dtype, 2, shape));
    attn_tensor part;

    if (a->w_k.shape[0] != a->w_q.shape[0])
        return; /* cross attention */
    part = attn_layer_grad_columns(packed, 0, q);
    put_columns(&a->w_q, &part);
    part = attn_layer_grad_columns(packed, q, k);
    put_columns(&a->w_k, &part);
    part = attn_layer_grad_columns(packed, q + k, v);
    put_columns(&a->w_v, &part);
    a->w_q = attn_layer_columns(both, 0, q);
    a->w_k = attn_layer_columns(both, q, k);
    a->w_v = attn_layer_columns(both, q + k, v);
    a->dw_q = attn_layer_grad_columns(gradient, 0, q);
    a->dw_k = attn_layer_grad_columns(gradient, q, k);
    a->dw_v = attn_layer_grad_columns(gradient, q + k, v);
}

/* What is asked for beside y changes nothing. */
static void ask_for_more(layer_call *call)
{
    attn_layer_args *a = &call->args;
    const attn_desc *d = &call->c->desc.attention;
    const int64_t q[4] = {d->batch, d->heads_q, d->len_q, d->dim_qk};
    const int64_t o[4] = {d->batch, d->heads_q, d->len_q, d->dim_v};

    a->q = layer_call_tensor(call, d->dtype, 4, q);
    a->o = layer_call_tensor(call, d->dtype, 4, o);
}

static void ask_for_less(layer_call *call)
{
    call->args.attention.lse = (attn_tensor){0};
    call->args.attention.weights = (attn_tensor){0};
}

/* ----------------------------------------------------------------- tests */

UNIT(threads)
{
    check_table(NULL, 2);
    check_table(NULL, 3);
    check_table(NULL, 7);
}

UNIT(strides_of_activations)
{
    check_table(spread_activations, 1);
}

UNIT(strides_of_weights)
{
    check_table(turn_weights, 2);
}

UNIT(packed_weights)
{
    check_table(pack_weights, 1);
}

UNIT(what_else_is_asked_for)
{
    check_table(ask_for_more, 1);
    check_table(ask_for_less, 1);
}

/* 0, 1, 2, ... is the default. */
UNIT(positions_written_out)
{
    const layer_row row = {"rope", WITH_HALVES, 2, 2};
    layer_case c = layer_case_open(&row, &layer_large, ATTN_BF16);
    layer_call plain = layer_call_open(&c), told = layer_call_open(&c);
    int32_t places[64];
    const int64_t shape[1] = {layer_large.len_q};

    for (int32_t i = 0; i < 64; i++)
        places[i] = i;
    layer_call_forward(&plain);
    layer_call_backward(&plain);
    layer_call_forward(&told);
    layer_call_backward(&told);
    told.args.positions = attn_in_dense(places, ATTN_I32, 1, shape);
    run(&plain, 1);
    run(&told, 1);
    compare(&plain, &told);
    layer_call_close(&plain);
    layer_call_close(&told);
    layer_case_close(&c);
}

/* q, o, and their use: o W_o + b_o is y, as a product alone. */
UNIT(parts_make_the_whole)
{
    const layer_row row = {"biases", WITH_BIASES, 2, 2};
    layer_case c = layer_case_open(&row, &layer_large, ATTN_BF16);
    layer_call call = layer_call_open(&c);
    const attn_desc *d = &c.desc.attention;
    const int64_t rows[3] = {d->batch, d->len_q, d->heads_q * d->dim_v};
    attn_tensor flat = layer_call_tensor(&call, ATTN_BF16, 3, rows);
    attn_gemm_args product;
    attn_workspace need;
    attn_tensor again;
    attn_exec exec;

    layer_call_forward(&call);
    layer_call_backward(&call);
    call.args.o = attn_bshd(flat.data, ATTN_BF16, d->batch, d->heads_q,
                            d->len_q, d->dim_v);
    run(&call, 1);
    again = layer_call_tensor(&call, ATTN_BF16, 3, c.in[D_Y].shape);
    attn_gemm_init(&product);
    product.a = attn_in(flat);
    product.b = call.args.w_o;
    product.d = call.args.b_o;
    product.c = again;
    assert_int_equal(attn_gemm_workspace(ATTN_BF16, 1, &need, NULL), ATTN_OK);
    attn_exec_init(&exec);
    exec.workspace = aligned_alloc(64, need.size);
    exec.workspace_size = need.size;
    assert_int_equal(attn_gemm(&product, &exec, NULL), ATTN_OK);
    assert_same(&call.args.y, &again, row.name, "y");
    free(exec.workspace);
    layer_call_close(&call);
    layer_case_close(&c);
}

/* Columns that do not exist are left for a run to refuse. */
UNIT(columns_out_of_range)
{
    float data[6] = {0};
    const attn_input t = attn_in_dense(data, ATTN_F32, 2, (int64_t[]){2, 3});

    assert_true(attn_layer_columns(t, 1, 2).data == data + 1);
    assert_true(attn_layer_columns(t, 1, 2).shape[1] == 2);
    assert_true(attn_layer_columns(t, 3, 0).shape[1] == 0);
    assert_true(attn_layer_columns(t, 1, 3).shape[1] == -1);
    assert_true(attn_layer_columns(t, -1, 1).shape[1] == -1);
    assert_true(attn_layer_columns(t, 0, -1).shape[1] == -1);
    assert_true(attn_layer_columns((attn_input){0}, 0, 1).rank == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads),
        cmocka_unit_test(strides_of_activations),
        cmocka_unit_test(strides_of_weights),
        cmocka_unit_test(packed_weights),
        cmocka_unit_test(what_else_is_asked_for),
        cmocka_unit_test(positions_written_out),
        cmocka_unit_test(parts_make_the_whole),
        cmocka_unit_test(columns_out_of_range),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
