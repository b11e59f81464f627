/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_layer_backward. With q', k' the projections before norm and rope:
 *
 *   d_o = d_y W_o^T           dW_o = o^T d_y          db_o = 1^T d_y
 *   dq, dk, dv = attention's gradients by d_o
 *   dq', dk' = norm's transpose of rope's transpose of dq, dk
 *   dW_q = x^T dq'            db_q = 1^T dq'          (k and v likewise)
 *   dx = dq' W_q^T + dk' W_k^T + dv W_v^T
 *
 * x, o and d_y are (batch, len, width); products with a transpose on the left
 * sum over batch and len, in that order. */
#include "layer/layer_steps.h"

/* 1 in every type, as the matrix of ones that sums columns. */
static attn_input ones(attn_dtype dtype, int64_t batch, int64_t len)
{
    static const double f64 = 1;
    static const float f32 = 1;
    static const uint16_t bf16 = 0x3f80, f16 = 0x3c00;
    attn_input one = {dtype == ATTN_F64    ? (const void *)&f64
                      : dtype == ATTN_F32  ? (const void *)&f32
                      : dtype == ATTN_BF16 ? (const void *)&bf16
                                           : (const void *)&f16,
                      dtype, 3, {batch, 1, len}, {0}};

    return one;
}

/* (batch, len, width) with the last two axes exchanged. */
static attn_input turned(attn_input t)
{
    const int64_t shape = t.shape[1], stride = t.stride[1];

    t.shape[1] = t.shape[2];
    t.stride[1] = t.stride[2];
    t.shape[2] = shape;
    t.stride[2] = stride;
    return t;
}

/* dW = x^T dy and db = 1^T dy, those that are asked for. */
static attn_status weight_gradients(const attn__layer_run *run, attn_input x,
                                    attn_input dy, attn_tensor dw,
                                    attn_tensor db, attn_diag *diag)
{
    const attn_input none = {0};

    if (attn__asked(&dw))
        ATTN__TRY(attn__layer_gemm(run, turned(x), dy, none, dw, diag));
    if (!attn__asked(&db))
        return ATTN_OK;
    db.rank = 2; /* one row */
    db.shape[1] = db.shape[0];
    db.stride[1] = db.stride[0];
    db.shape[0] = 1;
    return attn__layer_gemm(run, ones(dy.dtype, dy.shape[0], dy.shape[1]), dy,
                            none, db, diag);
}

/* A term dy W^T of dx. The first goes to `sum`, the others are added there;
 * the last goes to dx, rounded for the first time where sum is f32. */
typedef struct dx_sum {
    attn_tensor dx, sum;
    attn_input so_far;
} dx_sum;

static attn_status add_term(const attn__layer_run *run, dx_sum *s,
                            attn_input dy, attn_input w, bool last,
                            attn_diag *diag)
{
    const attn_tensor to = last ? s->dx : s->sum;

    if (!attn__asked(&s->dx))
        return ATTN_OK;
    ATTN__TRY(attn__layer_gemm(run, dy, attn_layer_transposed(w), s->so_far,
                               to, diag));
    s->so_far = attn_in(to);
    return ATTN_OK;
}

static dx_sum start_sum(attn_tensor dx, attn_tensor sum)
{
    const attn_input none = {0};

    return (dx_sum){dx, attn__asked(&sum) ? sum : dx, none};
}

/* d_o (batch, heads, len, dim): from d_y by W_o, or d_y itself. */
static attn_status output_backward(const attn__layer_run *run, attn_input *d_o,
                                   attn_diag *diag)
{
    const attn_layer_desc *d = &run->plan->desc;
    const attn_layer_args *args = run->args;
    const attn_input none = {0};

    *d_o = attn_in(run->memory.d_o);
    if (d->dim_y > 0)
        return attn__layer_gemm(run, args->d_y,
                                attn_layer_transposed(args->w_o), none,
                                attn__layer_flat(run->memory.d_o), diag);
    *d_o = args->d_y;
    d_o->rank = 4;
    d_o->shape[3] = d->attention.dim_v;
    d_o->stride[3] = args->d_y.stride[2];
    d_o->shape[2] = args->d_y.shape[1];
    d_o->stride[2] = args->d_y.stride[1];
    d_o->shape[1] = d->attention.heads_q;
    d_o->stride[1] = d->attention.dim_v * args->d_y.stride[2];
    return ATTN_OK;
}

/* Through rope and norm, in place. */
static attn_status rows_backward(const attn__layer_run *run, attn_tensor d,
                                 attn_tensor raw, attn_input gain,
                                 attn_tensor dg, bool keys, attn_diag *diag)
{
    ATTN__TRY(attn__layer_rotate(run, d, keys, true, diag));
    if (run->plan->desc.qk_norm)
        attn__qk_norm_backward(attn_in(raw), gain, run->plan->desc.norm_eps,
                               d, dg, run->memory.sum_dg.data);
    return ATTN_OK;
}

static attn_status attention_backward(const attn__layer_run *run,
                                      attn_diag *diag)
{
    const attn__layer_memory *m = &run->memory;
    const attn_tensor none = {0};
    attn_args attention = run->args->attention;
    const attn_args wanted = attention;

    attention.weights = attention.entropy = none;
    attention.o = m->o;
    attention.lse = m->lse;
    ATTN__TRY(attn__layer_attend(run, &attention, diag));
    ATTN__TRY(output_backward(run, &attention.d_o, diag));
    attention.dlse = wanted.dlse;
    attention.dq = m->dq;
    attention.dk = m->dk;
    attention.dv = m->dv;
    return attn_backward(&run->plan->attention, &attention, &run->exec, diag);
}

static attn_status input_gradients(const attn__layer_run *run, attn_input dq,
                                   attn_input dk, attn_input dv,
                                   attn_diag *diag)
{
    const attn_layer_args *args = run->args;
    const attn__layer_memory *m = &run->memory;
    const bool cross = run->plan->desc.dim_x_kv > 0;
    dx_sum x = start_sum(args->dx, m->sum_dx);
    dx_sum other = start_sum(args->dx_kv, m->sum_dx_kv);
    dx_sum *x_kv = cross ? &other : &x;

    ATTN__TRY(add_term(run, &x, dq, args->w_q, cross, diag));
    ATTN__TRY(add_term(run, x_kv, dk, args->w_k, false, diag));
    return add_term(run, x_kv, dv, args->w_v, true, diag);
}

attn_status attn_layer_backward(const attn_layer_plan *plan,
                                const attn_layer_args *args,
                                const attn_exec *exec, attn_diag *diag)
{
    attn__layer_plan body;
    attn__layer_run run;
    const attn__layer_memory *m = &run.memory;
    attn_input x_kv, dq, dk, dv;

    ATTN__TRY(attn__layer_start(plan, args, exec, ATTN_BACKWARD, &body, &run,
                                diag));
    ATTN__TRY(attention_backward(&run, diag));
    ATTN__TRY(rows_backward(&run, m->dq, m->raw_q, args->g_q, args->dg_q,
                            false, diag));
    ATTN__TRY(rows_backward(&run, m->dk, m->raw_k, args->g_k, args->dg_k,
                            true, diag));
    x_kv = body.desc.dim_x_kv > 0 ? args->x_kv : args->x;
    dq = attn_in(attn__layer_flat(m->dq));
    dk = attn_in(attn__layer_flat(m->dk));
    dv = attn_in(attn__layer_flat(m->dv));
    ATTN__TRY(weight_gradients(&run, attn_in(attn__layer_flat(m->o)),
                               args->d_y, args->dw_o, args->db_o, diag));
    ATTN__TRY(weight_gradients(&run, args->x, dq, args->dw_q, args->db_q,
                               diag));
    ATTN__TRY(weight_gradients(&run, x_kv, dk, args->dw_k, args->db_k, diag));
    ATTN__TRY(weight_gradients(&run, x_kv, dv, args->dw_v, args->db_v, diag));
    ATTN__TRY(input_gradients(&run, dq, dk, dv, diag));
    return attn__ok(diag);
}
