/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_backward: up to three phases (dq and per-row sums; dk and dv; dbias),
 * then the per-row sums folded in a fixed order. */
#include "core/diag.h"
#include "run/run.h"

#include <string.h>

/* Units of keys: (batch, KV head, chunk), or with pages (page, KV head,
 * chunk of the page). A page belongs to whoever's table names it, or to several
 * sequences with the same beginning: as a unit of its own it sums over all of
 * them, and no two units write one row of dk and dv. */
static int64_t key_chunks(const attn__problem *p)
{
    const int64_t keys = p->block_table.data ? p->page_size : p->key_rows;

    return attn__ceil_div(keys, ATTN__KEYS_PER_UNIT);
}

/* Keys of batch entry b with those that k_lengths hides: they get gradients
 * too, zeros. */
static int64_t keys_of(const attn__problem *p, int64_t b)
{
    attn__problem whole = *p;

    whole.k_lengths = (attn__view){0};
    return attn__sequence_of(&whole, b).len_k;
}

/* The unit's heads are the whole group, which shares the KV head: dk and dv
 * sum over it in one order. */
static void set_kv_head(const attn__problem *p, int64_t kv_head,
                        attn__unit *unit)
{
    unit->kv_head = kv_head;
    unit->head0 = kv_head * p->group;
    unit->n_heads = p->group;
}

static bool make_key_unit(const attn__phase *phase, int64_t index,
                          attn__unit *unit)
{
    const attn__problem *p = phase->problem;
    const int64_t chunks = key_chunks(p);
    const int64_t first = index / chunks / p->heads_kv;
    int64_t keys = p->page_size;

    set_kv_head(p, index / chunks % p->heads_kv, unit);
    if (p->block_table.data) {
        unit->page = first;
    } else {
        unit->b = first;
        keys = keys_of(p, first);
    }
    unit->key0 = index % chunks * ATTN__KEYS_PER_UNIT;
    unit->key1 = attn__min_i64(unit->key0 + ATTN__KEYS_PER_UNIT, keys);
    return unit->key0 < unit->key1;
}

/* Units of groups of keys: under a causal mask the first group is seen by most
 * rows. The last one also has what k_lengths hides. */
static bool make_group_unit(const attn__phase *phase, int64_t index,
                            attn__unit *unit)
{
    const attn__problem *p = phase->problem;
    const attn__turn turn = attn__turn_of(index, phase->heads, phase->groups,
                                          phase->together);
    const int64_t head = turn.head, group = turn.piece;
    const int64_t number = phase->head0 + head;
    const int64_t b = number / p->heads_kv;
    const int64_t len_k = attn__sequence_of(p, b).len_k;
    const int64_t groups = attn__key_groups(len_k);
    const int64_t keys = attn__group_keys(len_k);

    set_kv_head(p, number % p->heads_kv, unit);
    unit->b = b;
    unit->key0 = group * keys;
    unit->key1 = group == groups - 1 ? keys_of(p, b) : unit->key0 + keys;
    unit->shares =
        phase->shares +
        (size_t)(head * phase->groups + group) * phase->share_size;
    return group < groups;
}

/* Units of rows whose dq the groups' shares make. */
static bool make_share_unit(const attn__phase *phase, int64_t index,
                            attn__unit *unit)
{
    const attn__turn turn =
        attn__turn_of(index, phase->heads, phase->n_units / phase->heads,
                      phase->together);

    unit->shares = phase->shares +
                   (size_t)(turn.head * phase->groups) * phase->share_size;
    return attn__make_chunk(phase, phase->head0 + turn.head, turn.piece, unit);
}

/* Units of bias elements: its batches, heads, and blocks of rows and keys
 * (one block for all where it is broadcast over them). */
static int64_t bias_blocks(int64_t size, int64_t block)
{
    return size == 1 ? 1 : attn__ceil_div(size, block);
}

/* A unit owns its block of dbias and sums over all that the bias was broadcast
 * to, in ascending order: batches, heads, rows. An axis of size 1 is one block
 * that stands for the whole axis. */
static bool make_bias_unit(const attn__phase *phase, int64_t index,
                           attn__unit *unit)
{
    const attn__problem *p = phase->problem;
    const int64_t *shape = p->bias_shape;
    const int64_t row_blocks =
        bias_blocks(shape[2], phase->rows_per_unit);
    const int64_t key_blocks =
        bias_blocks(shape[3], ATTN__BLOCK_KEYS);
    const int64_t row_block = index / key_blocks % row_blocks;

    unit->b = index / key_blocks / row_blocks / shape[1];
    unit->head0 = index / key_blocks / row_blocks % shape[1];
    unit->row0 = row_block * phase->rows_per_unit;
    unit->row1 = shape[2] == 1
                     ? p->len_q
                     : attn__min_i64(unit->row0 + phase->rows_per_unit,
                                     p->len_q);
    unit->key0 = index % key_blocks * ATTN__BLOCK_KEYS;
    unit->key1 = shape[3] == 1
                     ? p->len_k
                     : attn__min_i64(unit->key0 + ATTN__BLOCK_KEYS, p->len_k);
    return true;
}

static attn__phase phase_of(const attn__plan *plan,
                            const attn__problem *problem, attn__pass pass,
                            const attn_exec *exec, const attn_workspace *need)
{
    return (attn__phase){.problem = problem,
                         .kernel = attn__kernels[plan->kernel[pass]].run,
                         .slots = (char *)exec->workspace + need->shared,
                         .slot_size = need->slot};
}

/* One after the other: each phase owns what it writes, so that nothing is added
 * by two tasks, and scores are formed once more instead. */
static void run_phase(const attn__plan *plan, const attn__problem *problem,
                      attn__pass pass, const attn_exec *exec,
                      const attn_workspace *need)
{
    const attn__kernel_row *row = &attn__kernels[plan->kernel[pass]];
    const int64_t *shape = problem->bias_shape;
    attn__phase phase = phase_of(plan, problem, pass, exec, need);

    if (pass == ATTN__PASS_dq) {
        phase.make = attn__make_row_unit;
        phase.rows_per_unit = attn__rows_per_unit(problem, row->tile, exec);
        phase.n_units = attn__row_units(problem, phase.rows_per_unit);
    } else if (pass == ATTN__PASS_dkv) {
        phase.make = make_key_unit;
        phase.n_units = key_chunks(problem) * problem->heads_kv *
                        (problem->block_table.data ? problem->pages
                                                   : problem->batch);
    } else {
        phase.make = make_bias_unit;
        phase.rows_per_unit = (int64_t)row->tile.tile_rows;
        phase.n_units =
            shape[0] * shape[1] *
            bias_blocks(shape[2], phase.rows_per_unit) *
            bias_blocks(shape[3], ATTN__BLOCK_KEYS);
    }
    attn__run_phase(&phase, exec);
}

/* Whether dq is formed beside dk and dv: five products instead of seven, for
 * as many units as there are groups of keys. With many threads for few heads
 * units would be missing. The bits are the same. */
static bool shares_pay(const attn__problem *p, attn__dq_shares shares,
                       const attn_exec *exec)
{
    const int64_t units = shares.heads * shares.groups;
    const int64_t rounds =
        units ? attn__ceil_div(units, exec->threads) : 0;

    return p->dq.data && (p->dk.data || p->dv.data) && units > 0 &&
           5 * rounds * exec->threads <= 7 * units;
}

/* dk, dv, dq and what goes with it, as many heads at a time as there is memory
 * for their shares of dq, which is the end of the shared part. */
static void run_shares(const attn__plan *plan, const attn__problem *problem,
                       attn__dq_shares shares, const attn_exec *exec,
                       const attn_workspace *need)
{
    const int64_t heads = problem->batch * problem->heads_kv;
    attn__phase keys = phase_of(plan, problem, ATTN__PASS_dkv, exec, need);
    attn__phase rows = phase_of(plan, problem, ATTN__PASS_dq, exec, need);

    keys.make = make_group_unit;
    rows.make = make_share_unit;
    keys.groups = rows.groups = shares.groups;
    keys.share_size = rows.share_size = shares.size;
    keys.shares = rows.shares =
        keys.slots - (size_t)(shares.heads * shares.groups) * shares.size;
    rows.rows_per_unit = problem->macro_rows;
    for (int64_t head = 0; head < heads; head += shares.heads) {
        const int64_t n = attn__min_i64(shares.heads, heads - head);

        keys.head0 = rows.head0 = head;
        keys.heads = rows.heads = n;
        keys.n_units = n * shares.groups;
        rows.n_units =
            attn__row_units(problem, rows.rows_per_unit) / heads * n;
        attn__run_phase(&keys, exec);
        attn__run_phase(&rows, exec);
    }
}

/* dsinks and dslopes are f64 or f32; sums come in fp64 and are rounded once. */
static void store(const attn_tensor *t, int64_t index, double value)
{
    if (t->dtype == ATTN_F64)
        ((double *)t->data)[index] = value;
    else
        ((float *)t->data)[index] = (float)value;
}

/* Sum one head's rows of one batch entry, ascending: by one thread, since the
 * order must not depend on who came first. */
static double sum_rows(const attn__problem *p, const double *rows, int64_t b,
                       int64_t h)
{
    const attn__sequence seq = attn__sequence_of(p, b);
    double sum = 0;

    for (int64_t i = 0; i < seq.len_q; i++)
        sum += rows[attn__row_sum_index(p, b, h, seq.q_start + i)];
    return sum;
}

/* (H): summed over batch entries too; (B, H): each its own. */
static void fold_rows(const attn__problem *p, const double *rows,
                      const attn_tensor *out)
{
    for (int64_t h = 0; h < p->heads_q; h++) {
        double total = 0;

        for (int64_t b = 0; b < p->batch; b++) {
            const double sum = sum_rows(p, rows, b, h);

            if (out->rank == 2)
                store(out, b * out->stride[0] + h * out->stride[1], sum);
            total += sum;
        }
        if (out->rank == 1)
            store(out, h * out->stride[0], total);
    }
}

/* The shared part of the workspace holds the per-row sums. It was counted by
 * what the plan has, not by what is asked for, so dslopes keep their place
 * where dsinks are not wanted. */
static void place_row_sums(const attn__plan *plan, const attn_args *args,
                           const attn_exec *exec, attn__problem *p)
{
    const int64_t rows = attn__rows_per_head(&plan->desc);
    const bool varlen = plan->desc.inputs & ATTN_WITH_VARLEN;
    double *at = exec->workspace;

    p->row_sum_stride[0] = varlen ? 0 : p->heads_q * rows;
    p->row_sum_stride[1] = rows;
    if (plan->desc.inputs & ATTN_WITH_SINKS) {
        if (attn__asked(&args->dsinks))
            p->row_dsinks = at;
        at += (varlen ? 1 : p->batch) * p->heads_q * rows;
    }
    if (attn__asked(&args->dslopes))
        p->row_dslopes = at;
}

/* dq, dk, dv, dbias, dsinks and dslopes, those that have memory:
 *
 *     dS = P * (dO V^T - delta + dlse),  delta_i = <dO_i, O_i>
 *     dQ = scale dS K,  dK = scale dS^T Q,  dV = P^T dO,  dbias = dS
 *
 * with P = e^(S - lse) from scores formed again; a softcap puts its slope into
 * dS, dropout its factors into P and dO V^T. A gradient that nobody asks for
 * costs no phase. */
attn_status attn_backward(const attn_plan *plan, const attn_args *args,
                          const attn_exec *exec, attn_diag *diag)
{
    attn__plan body;
    attn__problem problem;
    attn__dq_shares shares;
    attn_workspace need;

    ATTN__TRY(attn__plan_open(plan, &body, diag));
    ATTN__TRY(attn__exec_check(&body, ATTN_BACKWARD, exec, &need, diag));
    ATTN__TRY(attn__args_check(&body, args, ATTN_BACKWARD, NULL, NULL,
                               &problem, diag));
    place_row_sums(&body, args, exec, &problem);
    shares = attn__dq_shares_of(&body);
    if (shares_pay(&problem, shares, exec)) {
        run_shares(&body, &problem, shares, exec, &need);
    } else {
        if (problem.dq.data || problem.row_dsinks || problem.row_dslopes)
            run_phase(&body, &problem, ATTN__PASS_dq, exec, &need);
        if (problem.dk.data || problem.dv.data)
            run_phase(&body, &problem, ATTN__PASS_dkv, exec, &need);
    }
    if (problem.dbias.data)
        run_phase(&body, &problem, ATTN__PASS_dbias, exec, &need);
    if (problem.row_dsinks)
        fold_rows(&problem, problem.row_dsinks, &args->dsinks);
    if (problem.row_dslopes)
        fold_rows(&problem, problem.row_dslopes, &args->dslopes);
    return attn__ok(diag);
}
