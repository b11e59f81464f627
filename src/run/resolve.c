/* SPDX-License-Identifier: Apache-2.0
 *
 * From checked arguments to the problem that kernels see: every view with the
 * four axes (batch, head, row, column), whatever the caller's layout. */
#include "core/diag.h"
#include "core/exec.h"
#include "run/checker.h"

#include <string.h>

void attn_args_init(attn_args *args)
{
    memset(args, 0, sizeof *args);
    args->size = sizeof *args;
}

void attn_exec_init(attn_exec *exec)
{
    memset(exec, 0, sizeof *exec);
    exec->size = sizeof *exec;
    exec->threads = 1;
}

/* A tensor without elements has no memory, but is not absent. */
static const char nothing[8];
static char nothing_to_write[8];

/* Right-aligned: (len) is the column axis, (heads, len) head... An axis of 1
 * that stands for many gets stride 0, whatever its own, so that kernels index a
 * broadcast array like any other. */
attn__view attn__view_of(const attn_input *t, bool broadcast)
{
    attn__view v = {t->data, t->dtype, {0}};

    if (!attn__given(t))
        return (attn__view){0};
    if (!v.data)
        v.data = nothing;
    for (int32_t a = 0; a < t->rank; a++)
        if (!(broadcast && t->shape[a] == 1))
            v.stride[4 - t->rank + a] = t->stride[a];
    return v;
}

/* Outputs are never broadcast: an axis of size 1 keeps its stride. */
attn__target attn__target_of(const attn_tensor *t)
{
    attn__target v = {t->data, t->dtype, {0}};

    if (!attn__asked(t))
        return (attn__target){0};
    if (!v.data)
        v.data = nothing_to_write;
    for (int32_t a = 0; a < t->rank; a++)
        v.stride[4 - t->rank + a] = t->stride[a];
    return v;
}

/* (total, heads, dim) as (batch, heads, row, dim) with one batch. */
static void packed_strides(int64_t *stride, int32_t rank)
{
    if (rank != 3)
        return;
    const int64_t row = stride[1];

    stride[1] = stride[2];
    stride[2] = row;
}

/* q, k, v, o, d_o, dense or packed: to kernels both are (batch, head, row,
 * column), and where a packed sequence begins is a matter of its first row. */
static attn__view rows_view(const attn_input *t)
{
    attn__view v = attn__view_of(t, false);

    packed_strides(v.stride, t->rank);
    return v;
}

static attn__target rows_target(const attn_tensor *t)
{
    attn__target v = attn__target_of(t);

    packed_strides(v.stride, t->rank);
    return v;
}

/* (batch, heads, row) or (heads, row) as the first three axes. */
static void stats_strides(int64_t *stride)
{
    for (int a = 0; a < 3; a++)
        stride[a] = stride[a + 1];
    stride[3] = 0;
}

/* lse, dlse: three axes, kept as (batch, head, row, -). */
static attn__view stats_view(const attn_input *t)
{
    attn__view v = attn__view_of(t, false);

    stats_strides(v.stride);
    return v;
}

static attn__target stats_target(const attn_tensor *t)
{
    attn__target v = attn__target_of(t);

    stats_strides(v.stride);
    return v;
}

/* Where query 0 stands on the key axis, if nobody says so. Without a causal
 * mask it matters to windows and ALiBi alone; there, equal lengths are one
 * sequence, padded or not, and others a chunk at its end. */
static attn__offset_rule offset_rule(const attn_desc *d)
{
    if (d->inputs & ATTN_WITH_Q_OFFSET)
        return ATTN__OFFSET_GIVEN;
    if (d->causal == ATTN_CAUSAL_TOP_LEFT)
        return ATTN__OFFSET_ZERO;
    return d->causal == ATTN_CAUSAL_NONE ? ATTN__OFFSET_SQUARE
                                         : ATTN__OFFSET_LENGTHS;
}

/* Sizes and numbers of the descriptor, and what only the arguments know: the
 * length of this call's keys, pages, the seed. */
static void resolve_sizes(const attn__plan *plan, const checker *c,
                          attn__problem *p)
{
    const attn_desc *d = c->desc;

    p->batch = d->batch;
    p->heads_q = d->heads_q;
    p->heads_kv = d->heads_kv;
    p->group = d->heads_kv > 0 ? d->heads_q / d->heads_kv : 0;
    p->len_q = d->len_q;
    p->len_k = c->len_k;
    /* Packed sequences differ: the plan's bound cuts them, and the shorter ones
     * leave units without work. */
    p->key_rows = c->varlen && !c->paged ? d->len_k : c->len_k;
    p->dim_qk = d->dim_qk;
    p->dim_v = d->dim_v;
    p->pages = c->paged ? c->args->kv.k.shape[0] : 0;
    p->page_size = c->paged ? c->args->kv.k.shape[2] : 0;
    /* No more rows than there are: a small problem has one unit a head. Rows
     * don't know of each other, so this changes no bits. */
    p->macro_rows = attn__max_i64(
        1, attn__min_i64(plan->macro_rows,
                         attn__min_i64(p->len_q, ATTN__MACRO_ROWS) *
                             attn__min_i64(p->group, ATTN__MACRO_ROWS)));
    p->geometry = (attn__geometry){d->window_left, d->window_right,
                                   d->causal != ATTN_CAUSAL_NONE};
    p->offset_rule = offset_rule(d);
    p->empty_rows = d->empty_rows;
    p->stage = ATTN_STAGE_PROBS;
    p->precision = d->precision;
    p->scale = d->dim_qk > 0 ? d->scale : 0; /* no dims: every score is 0 */
    p->softcap = d->softcap;
    p->dropout_p = d->dropout_p;
    p->dropout =
        attn__dropout_of(d->dropout_p, c->args->seed, c->args->offset);
    memcpy(p->dropout_start, c->args->dropout_start, sizeof p->dropout_start);
}

/* All inputs that any pass has. What is absent becomes a view without data. */
static void resolve_inputs(const attn_args *a, attn__problem *p)
{
    p->q = rows_view(&a->q);
    p->k = rows_view(&a->kv.k);
    p->v = rows_view(&a->kv.v);
    p->mask = attn__view_of(&a->mask, true);
    p->bias = attn__view_of(&a->bias, true);
    p->slopes = attn__view_of(&a->alibi_slopes, false);
    p->sinks = attn__view_of(&a->sinks, false);
    p->k_lengths = attn__view_of(&a->kv.k_lengths, false);
    p->q_offset = attn__view_of(&a->q_offset, false);
    p->cu_seqlens_q = attn__view_of(&a->cu_seqlens_q, false);
    p->cu_seqlens_k = attn__view_of(&a->cu_seqlens_k, false);
    p->block_table = attn__view_of(&a->kv.block_table, false);
    /* dbias has the bias's own shape: which axes it sums over must be known,
     * and strides of 0 may also be the caller's. */
    for (int axis = 0; axis < 4; axis++) {
        const int from = axis - (4 - a->bias.rank);

        p->bias_shape[axis] = from >= 0 ? a->bias.shape[from] : 1;
    }
}

/* Outputs of a forward. The plan does not know which are wanted. */
static void resolve_forward(const attn_args *a, attn__problem *p)
{
    p->out_o = rows_target(&a->o);
    p->out_lse = stats_target(&a->lse);
    p->entropy = stats_target(&a->entropy);
    p->weights = attn__target_of(&a->weights);
}

/* Inputs that only a backward has, and its outputs. */
static void resolve_backward(const attn_args *a, attn__problem *p)
{
    const attn_input o = attn_in(a->o), lse = attn_in(a->lse);

    p->o = rows_view(&o);
    p->lse = stats_view(&lse);
    p->d_o = rows_view(&a->d_o);
    p->dlse = stats_view(&a->dlse);
    p->dq = rows_target(&a->dq);
    p->dk = rows_target(&a->dk);
    p->dv = rows_target(&a->dv);
    p->dbias = attn__target_of(&a->dbias);
}

attn_status attn__args_check(const attn__plan *plan, const attn_args *args,
                             attn_pass pass, const attn_tensor *out,
                             const attn_rows *rows, attn__problem *problem,
                             attn_diag *diag)
{
    checker c = {&plan->desc, args, pass, diag, false, false, 0};

    ATTN__TRY(attn__check_call(&c, out, rows));
    memset(problem, 0, sizeof *problem); /* an absent view has no data */
    resolve_sizes(plan, &c, problem);
    resolve_inputs(args, problem);
    if (pass == ATTN_FORWARD)
        resolve_forward(args, problem);
    else if (pass == ATTN_BACKWARD)
        resolve_backward(args, problem);
    else
        problem->weights = attn__target_of(out);
    return ATTN_OK;
}

attn_status attn__exec_check(const attn__plan *plan, attn_pass pass,
                             const attn_exec *exec, attn_workspace *need,
                             attn_diag *diag)
{
    ATTN__TRY(attn__check_exec(exec, diag));
    ATTN__REQUIRE(attn__workspace_of(plan, pass, exec->threads, need), diag,
                  ATTN_E_OVERFLOW, "workspace", "its size overflows");
    return attn__check_workspace(exec, need, diag);
}
