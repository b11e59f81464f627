/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rule of a layer's description and of its calls, one line each: the
 * change that breaks it, the status, the field; and that no byte of any output
 * was written. Before the change, each call succeeds. */
#include "attn_layer.h"

#include "refusal.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { B = 2, LQ = 3, LK = 4, DX = 6, DKV = 5, DY = 7, H = 4, G = 2, D = 4 };
enum { Q = H * D, KV = G * D, MEMORY = 1 << 16 };

static _Alignas(64) unsigned char inputs[MEMORY], outputs[MEMORY];
static _Alignas(64) unsigned char workspace[1 << 20];
static size_t inputs_used, outputs_used;

#define SHAPE(...)                                                            \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),            \
        (int64_t[]){__VA_ARGS__}

static size_t bytes_of(attn_dtype dtype, int32_t rank, const int64_t *shape)
{
    size_t bytes = attn_dtype_size(dtype);

    for (int32_t a = 0; a < rank; a++)
        bytes *= (size_t)shape[a];
    return (bytes + 63) / 64 * 64;
}

static attn_input in(attn_dtype dtype, int32_t rank, const int64_t *shape)
{
    const void *data = inputs + inputs_used;

    inputs_used += bytes_of(dtype, rank, shape);
    assert_true(inputs_used <= MEMORY);
    return attn_in_dense(data, dtype, rank, shape);
}

static attn_tensor out(attn_dtype dtype, int32_t rank, const int64_t *shape)
{
    void *data = outputs + outputs_used;

    outputs_used += bytes_of(dtype, rank, shape);
    assert_true(outputs_used <= MEMORY);
    return attn_dense(data, dtype, rank, shape);
}

static attn_tensor like(attn_input t)
{
    return out(t.dtype, t.rank, t.shape);
}

typedef struct call {
    attn_pass pass;
    attn_layer_desc desc;
    attn_layer_args args;
    attn_exec exec;
} call;

static void add_forward(call *c)
{
    attn_layer_args *a = &c->args;

    a->y = out(ATTN_F32, SHAPE(B, LQ, DY));
    a->q = out(ATTN_F32, SHAPE(B, H, LQ, D));
    a->k = out(ATTN_F32, SHAPE(B, G, LK, D));
    a->v = out(ATTN_F32, SHAPE(B, G, LK, D));
    a->o = out(ATTN_F32, SHAPE(B, H, LQ, D));
    a->attention.lse = out(ATTN_F64, SHAPE(B, H, LQ));
    a->attention.weights = out(ATTN_F32, SHAPE(B, H, LQ, LK));
    a->attention.entropy = out(ATTN_F32, SHAPE(B, H, LQ));
}

static void add_backward(call *c)
{
    attn_layer_args *a = &c->args;

    a->d_y = in(ATTN_F32, SHAPE(B, LQ, DY));
    a->attention.dlse = in(ATTN_F64, SHAPE(B, H, LQ));
    a->dx = like(a->x);
    a->dx_kv = like(a->x_kv);
    a->dw_q = like(a->w_q);
    a->dw_k = like(a->w_k);
    a->dw_v = like(a->w_v);
    a->dw_o = like(a->w_o);
    a->db_q = like(a->b_q);
    a->db_k = like(a->b_k);
    a->db_v = like(a->b_v);
    a->db_o = like(a->b_o);
    a->dg_q = like(a->g_q);
    a->dg_k = like(a->g_k);
    a->attention.dbias = like(a->attention.bias);
    a->attention.dsinks = like(a->attention.sinks);
    a->attention.dslopes = like(a->attention.alibi_slopes);
}

/* Cross attention with everything. */
static call cross(attn_pass pass)
{
    call c;
    attn_layer_args *a = &c.args;

    memset(&c, 0, sizeof c);
    memset(inputs, 0, sizeof inputs);
    inputs_used = outputs_used = 0;
    c.pass = pass;
    attn_layer_desc_init(&c.desc, ATTN_F32, B, LQ, DX, H, G);
    attn_desc_init(&c.desc.attention, ATTN_F32, B, H, G, LQ, LK, D, D);
    c.desc.attention.inputs = ATTN_WITH_MASK | ATTN_WITH_BIAS |
                              ATTN_WITH_ALIBI | ATTN_WITH_SINKS |
                              ATTN_WITH_K_LENGTHS | ATTN_WITH_Q_OFFSET;
    c.desc.dim_x_kv = DKV;
    c.desc.dim_y = DY;
    c.desc.qk_norm = c.desc.rotary = 1;
    attn_layer_args_init(a);
    a->x = in(ATTN_F32, SHAPE(B, LQ, DX));
    a->x_kv = in(ATTN_F32, SHAPE(B, LK, DKV));
    a->w_q = in(ATTN_F32, SHAPE(DX, Q));
    a->w_k = in(ATTN_F32, SHAPE(DKV, KV));
    a->w_v = in(ATTN_F32, SHAPE(DKV, KV));
    a->w_o = in(ATTN_F32, SHAPE(Q, DY));
    a->b_q = in(ATTN_F64, SHAPE(Q));
    a->b_k = in(ATTN_F32, SHAPE(KV));
    a->b_v = in(ATTN_F32, SHAPE(KV));
    a->b_o = in(ATTN_F32, SHAPE(DY));
    a->g_q = in(ATTN_F32, SHAPE(D));
    a->g_k = in(ATTN_F64, SHAPE(G, D));
    a->positions = in(ATTN_I32, SHAPE(LQ));
    a->positions_kv = in(ATTN_I64, SHAPE(B, LK));
    a->attention.mask = in(ATTN_BOOL, SHAPE(LQ, 1));
    a->attention.bias = in(ATTN_F32, SHAPE(H, 1, LK));
    a->attention.alibi_slopes = in(ATTN_F32, SHAPE(H));
    a->attention.sinks = in(ATTN_F64, SHAPE(H));
    a->attention.kv.k_lengths = in(ATTN_I64, SHAPE(B));
    a->attention.q_offset = in(ATTN_I32, SHAPE(B));
    if (pass == ATTN_FORWARD)
        add_forward(&c);
    else
        add_backward(&c);
    attn_exec_init(&c.exec);
    c.exec.workspace = workspace;
    c.exec.workspace_size = sizeof workspace;
    return c;
}

/* Self-attention with nothing else. */
static call self(attn_pass pass)
{
    call c = cross(pass);
    attn_layer_args *a = &c.args;
    attn_layer_args all = *a;

    c.desc.dim_x_kv = c.desc.dim_y = c.desc.qk_norm = c.desc.rotary = 0;
    attn_desc_init(&c.desc.attention, ATTN_F32, B, H, G, LQ, LQ, D, D);
    attn_layer_args_init(a);
    a->x = all.x;
    a->w_q = all.w_q;
    a->w_k = in(ATTN_F32, SHAPE(DX, KV));
    a->w_v = in(ATTN_F32, SHAPE(DX, KV));
    if (pass == ATTN_FORWARD) {
        a->y = out(ATTN_F32, SHAPE(B, LQ, Q));
    } else {
        a->d_y = in(ATTN_F32, SHAPE(B, LQ, Q));
        a->dx = all.dx;
        a->dw_q = all.dw_q;
    }
    return c;
}

static attn_status run(const call *c, attn_diag *diag)
{
    attn_layer_plan plan;
    const attn_status status = attn_layer_plan_init(&plan, &c->desc, diag);

    if (status != ATTN_OK)
        return status;
    return c->pass == ATTN_FORWARD
               ? attn_layer_forward(&plan, &c->args, &c->exec, diag)
               : attn_layer_backward(&plan, &c->args, &c->exec, diag);
}

static void refuse(const call *c, attn_status status, const char *field,
                   const char *change)
{
    attn_diag diag;
    attn_status got;

    memset(outputs, UNTOUCHED, sizeof outputs);
    got = run(c, &diag);
    expect_refused(got, &diag, status, field, change);
    expect_untouched(outputs, sizeof outputs, change);
}

static void accept(const call *c, const char *change)
{
    attn_diag diag;

    expect_accepted(run(c, &diag), &diag, change);
}

/* `make` is one of the calls above; `d` its description and `a` its arguments
 * in `change`. */
#define WITH(make, change, what)                                              \
    do {                                                                      \
        call c = make;                                                        \
        attn_layer_desc *d = &c.desc;                                         \
        attn_layer_args *a = &c.args;                                         \
        (void)a;                                                              \
        (void)d;                                                              \
        change;                                                               \
        what;                                                                 \
    } while (0)
#define REFUSED(make, status, field, change)                                  \
    WITH(make, change, refuse(&c, (status), (field), #make ": " #change))
#define LEGAL(make, change)                                                   \
    WITH(make, change, accept(&c, #make ": " #change))

#define FWD cross(ATTN_FORWARD)
#define BWD cross(ATTN_BACKWARD)
#define SELF self(ATTN_FORWARD)

#define NO_INPUT ((attn_input){0})
#define NO_TENSOR ((attn_tensor){0})

/* ----------------------------------------------------------------- tests */

UNIT(unchanged_calls_succeed)
{
    LEGAL(FWD, (void)0);
    LEGAL(BWD, (void)0);
    LEGAL(SELF, (void)0);
    LEGAL(self(ATTN_BACKWARD), (void)0);
}

UNIT(descriptions)
{
    REFUSED(FWD, ATTN_E_ARG, "size", d->size = 0);
    REFUSED(FWD, ATTN_E_ARG, "qk_norm", d->qk_norm = 2);
    REFUSED(FWD, ATTN_E_ARG, "rotary", d->rotary = -1);
    REFUSED(FWD, ATTN_E_SHAPE, "dim_x", d->dim_x = -1);
    REFUSED(FWD, ATTN_E_SHAPE, "dim_x_kv", d->dim_x_kv = -1);
    REFUSED(FWD, ATTN_E_SHAPE, "dim_y", d->dim_y = -1);
    REFUSED(FWD, ATTN_E_OVERFLOW, "dim_y", d->dim_y = INT64_MAX);
    REFUSED(FWD, ATTN_E_ARG, "norm_eps", d->norm_eps = -1);
    REFUSED(FWD, ATTN_E_ARG, "norm_eps", d->norm_eps = (double)NAN);
    REFUSED(SELF, ATTN_E_SHAPE, "len_k", d->attention.len_k = LQ + 1);
    REFUSED(SELF, ATTN_E_UNSUPPORTED, "inputs",
            d->attention.inputs = ATTN_WITH_VARLEN);
    REFUSED(SELF, ATTN_E_UNSUPPORTED, "inputs",
            d->attention.inputs = ATTN_WITH_PAGES | ATTN_WITH_K_LENGTHS);
    /* The rules of attention and of rope hold inside. */
    REFUSED(FWD, ATTN_E_ARG, "softcap", d->attention.softcap = -1);
    REFUSED(FWD, ATTN_E_SHAPE, "heads_kv", d->attention.heads_kv = 3);
    REFUSED(FWD, ATTN_E_ARG, "base", d->rope.base = -1);
    REFUSED(FWD, ATTN_E_SHAPE, "rotary_dim", d->rope.rotary_dim = D + 2);
    REFUSED(FWD, ATTN_E_OVERFLOW, "batch",
            d->attention.batch = INT64_C(1) << 40;
            d->attention.len_k = INT64_C(1) << 17);
    LEGAL(SELF, d->rope.base = -1); /* rotary is off */
}

UNIT(plans_and_workspaces)
{
    attn_layer_plan plan;
    attn_workspace need;
    attn_diag diag;
    const call first = FWD;

    memset(&plan, 0, sizeof plan);
    assert_int_equal(attn_layer_plan_init(NULL, &first.desc, &diag),
                     ATTN_E_ARG);
    assert_int_equal(attn_layer_plan_init(&plan, NULL, &diag), ATTN_E_ARG);
    assert_int_equal(attn_layer_forward(&plan, &first.args, &first.exec, &diag),
                     ATTN_E_ARG);
    assert_string_equal(diag.field, "plan");
    assert_int_equal(attn_layer_plan_init(&plan, &first.desc, &diag), ATTN_OK);
    assert_int_equal(
        attn_layer_workspace(&plan, ATTN_WEIGHTS, 1, &need, &diag),
        ATTN_E_ARG);
    assert_int_equal(
        attn_layer_workspace(&plan, ATTN_FORWARD, 1025, &need, &diag),
        ATTN_E_ARG);
    assert_int_equal(attn_layer_workspace(&plan, ATTN_FORWARD, 1, NULL, &diag),
                     ATTN_E_ARG);
    assert_int_equal(
        attn_layer_workspace(&plan, ATTN_FORWARD, 1, &need, &diag), ATTN_OK);
    REFUSED(FWD, ATTN_E_WORKSPACE, "workspace",
            c.exec.workspace_size = need.size - 1);
    LEGAL(FWD, c.exec.workspace_size = need.size);
    REFUSED(FWD, ATTN_E_WORKSPACE, "workspace", c.exec.workspace = NULL);
    REFUSED(FWD, ATTN_E_WORKSPACE, "workspace",
            c.exec.workspace = workspace + 8);
    REFUSED(FWD, ATTN_E_ARG, "threads", c.exec.threads = 0);
    REFUSED(FWD, ATTN_E_ARG, "size", c.exec.size = 1);
    REFUSED(FWD, ATTN_E_ARG, "size", a->size = 1);
    REFUSED(FWD, ATTN_E_ARG, "attention", a->attention.size = 1);
}

UNIT(inputs_of_a_layer)
{
    REFUSED(FWD, ATTN_E_ARG, "x", a->x = NO_INPUT);
    REFUSED(FWD, ATTN_E_SHAPE, "x", a->x.shape[2]++);
    REFUSED(FWD, ATTN_E_SHAPE, "x", a->x.rank = 2);
    REFUSED(FWD, ATTN_E_SHAPE, "x", a->x.rank = 99);
    REFUSED(FWD, ATTN_E_DTYPE, "x", a->x.dtype = ATTN_F64);
    REFUSED(FWD, ATTN_E_ARG, "x_kv", a->x_kv = NO_INPUT);
    REFUSED(SELF, ATTN_E_MISMATCH, "x_kv", a->x_kv = a->x);
    REFUSED(FWD, ATTN_E_SHAPE, "x_kv", a->x_kv.shape[1]--);
    REFUSED(FWD, ATTN_E_ARG, "w_q", a->w_q = NO_INPUT);
    REFUSED(FWD, ATTN_E_SHAPE, "w_q", a->w_q = attn_layer_transposed(a->w_q));
    REFUSED(FWD, ATTN_E_DTYPE, "w_k", a->w_k.dtype = ATTN_BF16);
    REFUSED(FWD, ATTN_E_SHAPE, "w_v", a->w_v.shape[0] = DX);
    REFUSED(FWD, ATTN_E_ARG, "w_o", a->w_o = NO_INPUT);
    REFUSED(SELF, ATTN_E_MISMATCH, "w_o", a->w_o = a->w_q);
    REFUSED(FWD, ATTN_E_SHAPE, "b_q", a->b_q.shape[0]--);
    REFUSED(FWD, ATTN_E_DTYPE, "b_k", a->b_k.dtype = ATTN_F16);
    REFUSED(SELF, ATTN_E_MISMATCH, "b_o", a->b_o = in(ATTN_F32, SHAPE(Q)));
    REFUSED(SELF, ATTN_E_MISMATCH, "g_q", a->g_q = in(ATTN_F32, SHAPE(D)));
    REFUSED(FWD, ATTN_E_SHAPE, "g_k", a->g_k.shape[0] = H);
    REFUSED(SELF, ATTN_E_MISMATCH, "positions",
            a->positions = in(ATTN_I32, SHAPE(LQ)));
    REFUSED(FWD, ATTN_E_DTYPE, "positions", a->positions.dtype = ATTN_F32);
    REFUSED(FWD, ATTN_E_SHAPE, "positions_kv", a->positions_kv.shape[1]--);
    LEGAL(FWD, a->b_q = a->b_k = a->b_v = a->b_o = NO_INPUT);
    LEGAL(FWD, a->g_q = a->g_k = NO_INPUT);
    LEGAL(FWD, a->positions = a->positions_kv = NO_INPUT);
}

/* Attention's own rules, after the projections and before any output. */
UNIT(inputs_of_attention)
{
    REFUSED(FWD, ATTN_E_MISMATCH, "mask", a->attention.mask = NO_INPUT);
    REFUSED(FWD, ATTN_E_SHAPE, "bias", a->attention.bias.shape[0] = 3);
    REFUSED(BWD, ATTN_E_DTYPE, "sinks", a->attention.sinks.dtype = ATTN_F16);
    REFUSED(BWD, ATTN_E_SHAPE, "mask", a->attention.mask.rank = 99);
    REFUSED(FWD, ATTN_E_MISMATCH, "attention", a->attention.q = a->x);
    REFUSED(FWD, ATTN_E_MISMATCH, "attention", a->attention.kv.k = a->x);
    REFUSED(FWD, ATTN_E_MISMATCH, "attention", a->attention.kv.v = a->x);
    REFUSED(FWD, ATTN_E_MISMATCH, "attention", a->attention.d_o = a->x);
    REFUSED(FWD, ATTN_E_MISMATCH, "attention", a->attention.o = a->o);
    REFUSED(BWD, ATTN_E_MISMATCH, "attention", a->attention.dq = a->dx);
    REFUSED(BWD, ATTN_E_MISMATCH, "attention", a->attention.dk = a->dx);
    REFUSED(BWD, ATTN_E_MISMATCH, "attention", a->attention.dv = a->dx);
    REFUSED(BWD, ATTN_E_UNSUPPORTED, "empty_rows",
            d->attention.empty_rows = ATTN_EMPTY_NAN);
}

UNIT(outputs_of_a_layer)
{
    REFUSED(SELF, ATTN_E_ARG, "y", a->y = NO_TENSOR);
    REFUSED(FWD, ATTN_E_SHAPE, "y", a->y.shape[2]--);
    REFUSED(FWD, ATTN_E_DTYPE, "y", a->y.dtype = ATTN_BF16);
    REFUSED(FWD, ATTN_E_SHAPE, "q", a->q.shape[1]--);
    REFUSED(FWD, ATTN_E_SHAPE, "k", a->k.rank = 3);
    REFUSED(FWD, ATTN_E_DTYPE, "v", a->v.dtype = ATTN_F16);
    REFUSED(FWD, ATTN_E_SHAPE, "o", a->o.shape[3]++);
    REFUSED(FWD, ATTN_E_SHAPE, "weights", a->attention.weights.shape[3]--);
    REFUSED(FWD, ATTN_E_ARG, "y", a->y.stride[1] = 0);
    LEGAL(FWD, a->y = NO_TENSOR);
    LEGAL(FWD, a->o = a->q = NO_TENSOR);
    LEGAL(SELF, a->y = NO_TENSOR; a->o = out(ATTN_F32, SHAPE(B, H, LQ, D)));
}

UNIT(gradients)
{
    REFUSED(BWD, ATTN_E_ARG, "d_y", a->d_y = NO_INPUT);
    REFUSED(BWD, ATTN_E_SHAPE, "d_y", a->d_y.shape[2]--);
    REFUSED(BWD, ATTN_E_SHAPE, "dx", a->dx.shape[0]--);
    REFUSED(BWD, ATTN_E_DTYPE, "dx", a->dx.dtype = ATTN_F64);
    REFUSED(self(ATTN_BACKWARD), ATTN_E_MISMATCH, "dx_kv",
            a->dx_kv = out(ATTN_F32, SHAPE(B, LQ, DX)));
    REFUSED(BWD, ATTN_E_SHAPE, "dw_q",
            a->dw_q = attn_layer_grad_transposed(a->dw_q));
    REFUSED(BWD, ATTN_E_DTYPE, "dw_o", a->dw_o.dtype = ATTN_F16);
    REFUSED(BWD, ATTN_E_MISMATCH, "db_k", a->b_k = NO_INPUT);
    REFUSED(BWD, ATTN_E_MISMATCH, "dg_q", a->g_q = NO_INPUT);
    REFUSED(BWD, ATTN_E_SHAPE, "dg_k", a->dg_k.rank = 1);
    REFUSED(BWD, ATTN_E_SHAPE, "dbias", a->attention.dbias.shape[0]--);
    LEGAL(BWD, a->dx = a->dw_v = NO_TENSOR);
    LEGAL(BWD, a->dw_q.dtype = ATTN_F64; a->dw_q = out(ATTN_F64, SHAPE(DX, Q)));
}

/* An output over an input, and over another output. */
UNIT(overlaps)
{
    REFUSED(FWD, ATTN_E_ARG, "y", a->x.data = a->y.data);
    REFUSED(FWD, ATTN_E_ARG, "y", a->w_o.data = (char *)a->y.data + 4);
    REFUSED(FWD, ATTN_E_ARG, "k", a->k.data = a->q.data);
    REFUSED(FWD, ATTN_E_ARG, "lse", a->attention.lse.data = a->o.data);
    REFUSED(FWD, ATTN_E_ARG, "weights",
            a->attention.bias.data = a->attention.weights.data);
    REFUSED(BWD, ATTN_E_ARG, "dw_q", a->w_v.data = a->dw_q.data);
    REFUSED(BWD, ATTN_E_ARG, "db_v", a->db_v.data = a->db_k.data);
    REFUSED(BWD, ATTN_E_ARG, "dx", a->d_y.data = a->dx.data);
    REFUSED(BWD, ATTN_E_ARG, "dsinks",
            a->attention.dsinks.data = a->attention.dbias.data);
}

/* A plain layer of these sizes, forward or backward; y starts as canaries. */
static call sized(attn_pass pass, const int64_t *n)
{
    const int64_t batch = n[0], len = n[1], dx = n[2], heads = n[3],
                  dim = n[4], dy = n[5];
    call c = self(pass);
    attn_layer_args *a = &c.args;

    inputs_used = outputs_used = 0;
    attn_layer_desc_init(&c.desc, ATTN_F32, batch, len, dx, heads, heads);
    attn_desc_init(&c.desc.attention, ATTN_F32, batch, heads, heads, len, len,
                   dim, dim);
    c.desc.dim_y = dy;
    c.desc.qk_norm = 1;
    attn_layer_args_init(a);
    a->x = in(ATTN_F32, SHAPE(batch, len, dx));
    a->w_q = in(ATTN_F32, SHAPE(dx, heads * dim));
    a->w_k = in(ATTN_F32, SHAPE(dx, heads * dim));
    a->w_v = in(ATTN_F32, SHAPE(dx, heads * dim));
    a->w_o = in(ATTN_F32, SHAPE(heads * dim, dy));
    a->b_o = in(ATTN_F32, SHAPE(dy));
    a->d_y = in(ATTN_F32, SHAPE(batch, len, dy));
    if (pass == ATTN_FORWARD) {
        a->y = out(ATTN_F32, SHAPE(batch, len, dy));
        return c;
    }
    a->dx = out(ATTN_F32, SHAPE(batch, len, dx));
    a->dw_q = out(ATTN_F32, SHAPE(dx, heads * dim));
    a->dw_o = out(ATTN_F32, SHAPE(heads * dim, dy));
    a->db_o = out(ATTN_F32, SHAPE(dy));
    return c;
}

static bool all_zero(attn_tensor t)
{
    const float *values = t.data;
    int64_t n = 1;

    for (int32_t axis = 0; axis < t.rank; axis++)
        n *= t.shape[axis];
    for (int64_t i = 0; i < n; i++)
        if (values[i] != 0)
            return false;
    return true;
}

/* Any size may be 0. With inputs of zeros all results are zeros, and all of
 * them are written. */
UNIT(sizes_of_zero)
{
    for (int axis = 0; axis < 5; axis++) { /* dim_y = 0 means no w_o */
        int64_t n[6] = {B, LQ, DX, H, D, DY};
        call c;

        n[axis] = 0;
        c = sized(ATTN_FORWARD, n);
        memset(outputs, UNTOUCHED, sizeof outputs);
        accept(&c, "forward of a size of zero");
        assert_true(all_zero(c.args.y));
        c = sized(ATTN_BACKWARD, n);
        memset(outputs, UNTOUCHED, sizeof outputs);
        accept(&c, "backward of a size of zero");
        assert_true(all_zero(c.args.dx));
        assert_true(all_zero(c.args.dw_q));
        assert_true(all_zero(c.args.dw_o));
        assert_true(all_zero(c.args.db_o));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unchanged_calls_succeed),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(plans_and_workspaces),
        cmocka_unit_test(inputs_of_a_layer),
        cmocka_unit_test(inputs_of_attention),
        cmocka_unit_test(outputs_of_a_layer),
        cmocka_unit_test(gradients),
        cmocka_unit_test(overlaps),
        cmocka_unit_test(sizes_of_zero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
