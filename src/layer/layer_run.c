/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps that forward and backward share: starting a run, one product, one
 * rotation, and from x to o. */
#include "layer/layer_steps.h"

attn_status attn__layer_start(const attn_layer_plan *plan,
                              const attn_layer_args *args,
                              const attn_exec *exec, attn_pass pass,
                              attn__layer_plan *body, attn__layer_run *run,
                              attn_diag *diag)
{
    attn_workspace need = {0, ATTN__LAYER_ALIGN, 0, 0};

    ATTN__TRY(attn__layer_plan_open(plan, body, diag));
    ATTN__TRY(attn__check_exec(exec, diag));
    ATTN__REQUIRE(attn__layer_divide(body, pass, exec->threads,
                                     exec->workspace, &run->memory),
                  diag, ATTN_E_OVERFLOW, "workspace", "its size overflows");
    need.size = run->memory.size;
    ATTN__TRY(attn__check_workspace(exec, &need, diag));
    ATTN__TRY(attn__layer_check(body, args, pass, diag));
    run->plan = body;
    run->args = args;
    run->exec = *exec;
    run->exec.workspace = run->memory.run;
    run->exec.workspace_size = run->memory.run_size;
    return ATTN_OK;
}

attn_status attn__layer_gemm(const attn__layer_run *run, attn_input a,
                             attn_input b, attn_input d, attn_tensor c,
                             attn_diag *diag)
{
    attn_gemm_args args;

    attn_gemm_init(&args);
    args.isa_limit = run->plan->desc.attention.isa_limit;
    args.a = a;
    args.b = b;
    args.d = d;
    args.c = c;
    return attn_gemm(&args, &run->exec, diag);
}

/* positions of queries or keys: given, or 0, 1, 2, ... */
static attn_input positions_of(const attn__layer_run *run, bool keys,
                               int64_t len)
{
    const attn_layer_args *args = run->args;
    attn_input counts = attn_in(run->memory.counts);

    if (keys && attn__given(&args->positions_kv))
        return args->positions_kv;
    if ((!keys || run->plan->desc.dim_x_kv == 0) &&
        attn__given(&args->positions))
        return args->positions;
    counts.shape[0] = len;
    return counts;
}

attn_status attn__layer_rotate(const attn__layer_run *run, attn_tensor t,
                               bool keys, bool backward, attn_diag *diag)
{
    const attn_rope_desc *rope = &run->plan->desc.rope;
    const attn_input positions = positions_of(run, keys, t.shape[2]);

    if (!run->plan->desc.rotary)
        return ATTN_OK;
    return backward ? attn_rope_backward(rope, attn_in(t), positions, t, diag)
                    : attn_rope(rope, attn_in(t), positions, t, diag);
}

/* x W + b, the norm if there is one, and the rotation. `raw` keeps what the
 * norm reads, where backward wants it. */
static attn_status make_rows(const attn__layer_run *run, attn_input w,
                             attn_input b, attn_input gain, attn_tensor raw,
                             attn_tensor to, bool keys, attn_diag *diag)
{
    const attn_layer_args *args = run->args;
    const attn_layer_desc *d = &run->plan->desc;
    const attn_tensor first = attn__asked(&raw) ? raw : to;

    ATTN__TRY(attn__layer_gemm(
        run, keys && d->dim_x_kv > 0 ? args->x_kv : args->x, w, b,
        attn__layer_flat(first), diag));
    if (d->qk_norm)
        attn__qk_norm(attn_in(first), gain, d->norm_eps, to);
    return attn__layer_rotate(run, to, keys, false, diag);
}

static void count(attn_tensor counts)
{
    for (int64_t i = 0; i < counts.shape[0]; i++)
        ((int64_t *)counts.data)[i] = i;
}

attn_status attn__layer_attend(const attn__layer_run *run,
                               attn_args *attention, attn_diag *diag)
{
    const attn_layer_args *args = run->args;
    const attn__layer_memory *m = &run->memory;
    const attn_input none = {0};

    count(m->counts);
    ATTN__TRY(make_rows(run, args->w_q, args->b_q, args->g_q, m->raw_q, m->q,
                        false, diag));
    ATTN__TRY(make_rows(run, args->w_k, args->b_k, args->g_k, m->raw_k, m->k,
                        true, diag));
    ATTN__TRY(attn__layer_gemm(
        run, attn__given(&args->x_kv) ? args->x_kv : args->x, args->w_v,
        args->b_v, attn__layer_flat(m->v), diag));
    attention->q = attn_in(m->q);
    attention->kv.k = attn_in(m->k);
    attention->kv.v = attn_in(m->v);
    attention->d_o = attention->dlse = none;
    return attn_forward(&run->plan->attention, attention, &run->exec, diag);
}
