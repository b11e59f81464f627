/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels doing a job, through the public interface alone: inputs are
 * stored in the engine's type, results start as garbage and are read back. */
#include <stdlib.h>
#include <string.h>

#include "conform.h"
#include "plan/plan.h"

#define THREADS 2

typedef struct kernel_run {
    test_case *c;
    const engine *e;
    const job *j;
    attn_desc desc;
    attn_args args;
} kernel_run;

/* --------------------------------------------------------------- tensors */

/* Bias, sinks and slopes keep their digits: f64 with f64, else f32. */
static attn_dtype fine_type(const kernel_run *r)
{
    return r->e->dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32;
}

static attn_input dense_input(kernel_run *r, attn_dtype dtype, const array *a)
{
    return attn_in_dense(stored(r->c, dtype, a->x, a->count), dtype, a->rank,
                         a->shape);
}

static attn_input integers(const int64_t *x, int64_t n)
{
    return attn_in_dense(x, ATTN_I64, 1, &n);
}

static int64_t tokens(const kernel_run *r, bool keys)
{
    return keys ? r->j->problem.len_k : r->j->problem.len_q;
}

/* A (batch, heads, len, dim) array; packed ones are (1, heads, total, dim) in
 * memory and given as (total, heads, dim). */
static attn_tensor view(const kernel_run *r, void *data, attn_dtype dtype,
                        bool keys, int64_t dim)
{
    const attn_ref_problem *p = &r->j->problem;
    const int64_t heads = keys ? p->heads_kv : p->heads_q;
    const int64_t n = tokens(r, keys);
    attn_tensor t;

    if (r->j->sequences == 0)
        return attn_bhsd(data, dtype, p->batch, heads, n, dim);
    t = attn_thd(data, dtype, n, heads, dim);
    t.stride[0] = dim;
    t.stride[1] = n * dim;
    return t;
}

static int64_t count_of(const kernel_run *r, bool keys, int64_t dim)
{
    const attn_ref_problem *p = &r->j->problem;
    const int64_t batch = r->j->sequences > 0 ? 1 : p->batch;

    return batch * (keys ? p->heads_kv : p->heads_q) * tokens(r, keys) * dim;
}

static attn_input view_input(kernel_run *r, const double *x, bool keys,
                             int64_t dim)
{
    const attn_dtype dtype = r->e->dtype;

    if (!x)
        return (attn_input){0};
    return attn_in(view(r, stored(r->c, dtype, x, count_of(r, keys, dim)),
                        dtype, keys, dim));
}

/* Memory for n results, full of bytes that no right result has. */
static void *garbage(kernel_run *r, attn_dtype dtype, int64_t n)
{
    const size_t size = attn_dtype_size(dtype);
    void *data = take(r->c, n, size);

    memset(data, 0xa5, (size_t)n * size);
    return data;
}

static attn_tensor view_result(kernel_run *r, const double *wanted, bool keys,
                               int64_t dim)
{
    if (!wanted)
        return (attn_tensor){0};
    return view(r, garbage(r, r->e->dtype, count_of(r, keys, dim)), r->e->dtype,
                keys, dim);
}

/* lse and entropy: (batch, heads, len), packed (heads, total). */
static attn_tensor row_result(kernel_run *r, bool wanted)
{
    const attn_ref_problem *p = &r->j->problem;
    const int64_t shape[] = {p->batch, p->heads_q, p->len_q};
    const int packed = r->j->sequences > 0;

    if (!wanted)
        return (attn_tensor){0};
    return attn_dense(garbage(r, ATTN_F64, count_of(r, false, 1)), ATTN_F64,
                      packed ? 2 : 3, shape + packed);
}

static attn_tensor pair_result(kernel_run *r, const double *wanted)
{
    const attn_ref_problem *p = &r->j->problem;
    const int64_t shape[] = {p->batch, p->heads_q, p->len_q, p->len_k};
    const int64_t n = shape[0] * shape[1] * shape[2] * shape[3];

    if (!wanted)
        return (attn_tensor){0};
    return attn_dense(garbage(r, fine_type(r), n), fine_type(r), 4, shape);
}

static attn_tensor like(kernel_run *r, const array *a, attn_dtype dtype,
                        const double *wanted)
{
    if (!wanted)
        return (attn_tensor){0};
    return attn_dense(garbage(r, dtype, a->count), dtype, a->rank, a->shape);
}

static void collect(const attn_tensor *t, double *wanted)
{
    int64_t n = 1;

    if (!wanted)
        return;
    for (int32_t axis = 0; axis < t->rank; axis++)
        n *= t->shape[axis];
    unstored(t->dtype, t->data, n, wanted);
}

/* --------------------------------------------------------------- describe */

static int64_t longest(const int64_t *cu, int64_t n)
{
    int64_t most = 0;

    for (int64_t i = 0; i < n; i++) {
        if (cu[i + 1] - cu[i] > most)
            most = cu[i + 1] - cu[i];
    }
    return most;
}

static uint32_t inputs_of(const job *j)
{
    return (j->mask ? ATTN_WITH_MASK : 0) | (j->bias ? ATTN_WITH_BIAS : 0) |
           (j->slopes ? ATTN_WITH_ALIBI : 0) |
           (j->sinks ? ATTN_WITH_SINKS : 0) |
           (j->problem.k_lengths ? ATTN_WITH_K_LENGTHS : 0) |
           (j->problem.q_offset ? ATTN_WITH_Q_OFFSET : 0) |
           (j->sequences > 0 ? ATTN_WITH_VARLEN : 0);
}

static void describe(kernel_run *r)
{
    const job *j = r->j;
    const attn_ref_problem *p = &j->problem;
    const bool packed = j->sequences > 0;

    attn_desc_init(&r->desc, r->e->dtype, p->batch, p->heads_q, p->heads_kv,
                   packed ? longest(j->cu_q, j->sequences) : p->len_q,
                   packed ? longest(j->cu_k, j->sequences) : p->len_k,
                   p->dim_qk, p->dim_v);
    r->desc.inputs = inputs_of(j);
    r->desc.causal = p->causal;
    r->desc.empty_rows = p->empty_rows;
    r->desc.precision = r->e->precision;
    r->desc.total_q = packed ? p->len_q : 0;
    r->desc.window_left = p->window_left;
    r->desc.window_right = p->window_right;
    r->desc.scale = p->scale;
    r->desc.softcap = p->softcap;
}

static void bring_inputs(kernel_run *r)
{
    const job *j = r->j;
    const attn_ref_problem *p = &j->problem;
    attn_args *a = &r->args;

    attn_args_init(a);
    a->q = view_input(r, j->q, false, p->dim_qk);
    a->kv.k = view_input(r, j->k, true, p->dim_qk);
    a->kv.v = view_input(r, j->v, true, p->dim_v);
    if (j->mask)
        a->mask = dense_input(r, ATTN_BOOL, j->mask);
    if (j->bias)
        a->bias = dense_input(r, fine_type(r), j->bias);
    if (j->slopes)
        a->alibi_slopes = dense_input(r, fine_type(r), j->slopes);
    if (j->sinks)
        a->sinks = dense_input(r, fine_type(r), j->sinks);
    if (p->k_lengths)
        a->kv.k_lengths = integers(p->k_lengths, p->batch);
    if (p->q_offset)
        a->q_offset = integers(p->q_offset, p->batch);
    if (j->sequences > 0) {
        a->cu_seqlens_q = integers(j->cu_q, j->sequences + 1);
        a->cu_seqlens_k = integers(j->cu_k, j->sequences + 1);
    }
}

/* -------------------------------------------------------------------- run */

static void require_ok(kernel_run *r, attn_status status, const attn_diag *diag)
{
    if (status != ATTN_OK)
        refuse(r->c, "%s: %s, %s: %s", r->e->name, attn_status_name(status),
               diag->field, diag->message);
}

/* Backward reads o and lse, so they are made even where nobody asks. */
static void forward(kernel_run *r, const attn_ref_results *want)
{
    const attn_ref_problem *p = &r->j->problem;
    attn_args *a = &r->args;
    attn_diag diag;

    a->o = view_result(r, r->j->v, false, p->dim_v);
    a->lse = row_result(r, true);
    a->entropy = row_result(r, want->entropy != NULL);
    a->weights = pair_result(r, want->weights);
    require_ok(r, attn_attention(&r->desc, a, THREADS, &diag), &diag);
    collect(&a->o, want->o);
    collect(&a->lse, want->lse);
    collect(&a->entropy, want->entropy);
    collect(&a->weights, want->weights);
}

static void backward(kernel_run *r, const attn_ref_gradients *want)
{
    const attn_ref_problem *p = &r->j->problem;
    const job *j = r->j;
    attn_args *a = &r->args;
    attn_diag diag;

    a->d_o = view_input(r, j->d_o, false, p->dim_v);
    if (j->dlse) {
        a->dlse = attn_in(row_result(r, true));
        a->dlse.data = stored(r->c, ATTN_F64, j->dlse, count_of(r, false, 1));
    }
    a->dq = view_result(r, want->dq, false, p->dim_qk);
    a->dk = view_result(r, want->dk, true, p->dim_qk);
    a->dv = view_result(r, want->dv, true, p->dim_v);
    a->dbias = like(r, j->bias, fine_type(r), want->dbias);
    a->dsinks = like(r, j->sinks, ATTN_F64, want->dsinks);
    a->dslopes = like(r, j->slopes, ATTN_F64, want->dslopes);
    require_ok(r, attn_attention_backward(&r->desc, a, THREADS, &diag), &diag);
    collect(&a->dq, want->dq);
    collect(&a->dk, want->dk);
    collect(&a->dv, want->dv);
    collect(&a->dbias, want->dbias);
    collect(&a->dsinks, want->dsinks);
    collect(&a->dslopes, want->dslopes);
}

/* Scores come from attn_weights, which wants a plan and a workspace. */
static void scores(kernel_run *r, attn_stage stage, double *want)
{
    attn_tensor out = pair_result(r, want);
    attn_workspace need;
    attn_plan plan;
    attn_exec exec;
    attn_diag diag;
    char *memory;

    if (!want)
        return;
    require_ok(r, attn_plan_init(&plan, &r->desc, &diag), &diag);
    require_ok(r, attn__plan_use_every_kernel(&plan, &diag), &diag);
    require_ok(r, attn_plan_workspace(&plan, ATTN_WEIGHTS, 1, &need, &diag),
               &diag);
    memory = take(r->c, (int64_t)(need.size + need.alignment), 1);
    attn_exec_init(&exec);
    exec.workspace =
        memory + (need.alignment - (uintptr_t)memory % need.alignment);
    exec.workspace_size = need.size;
    require_ok(r, attn_weights(&plan, &r->args, stage, NULL, out, &exec, &diag),
               &diag);
    collect(&out, want);
}

void run_kernels(test_case *c, const engine *e, const job *j, outcome *out)
{
    kernel_run r = {.c = c, .e = e, .j = j};

    describe(&r);
    bring_inputs(&r);
    scores(&r, ATTN_STAGE_RAW, out->results.raw);
    scores(&r, ATTN_STAGE_SOFTCAPPED, out->results.softcapped);
    scores(&r, ATTN_STAGE_BIASED, out->results.biased);
    forward(&r, &out->results);
    if (j->d_o)
        backward(&r, &out->gradients);
}
