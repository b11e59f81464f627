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

/* The unit's heads are the whole group, which shares the KV head: dk and dv
 * sum over it in one order. */
static bool make_key_unit(const attn__phase *phase, int64_t index,
                          attn__unit *unit)
{
    const attn__problem *p = phase->problem;
    const int64_t chunks = key_chunks(p);
    const int64_t first = index / chunks / p->heads_kv;
    int64_t keys = p->page_size;

    unit->kv_head = index / chunks % p->heads_kv;
    unit->head0 = unit->kv_head * p->group;
    unit->n_heads = p->group;
    if (p->block_table.data) {
        unit->page = first;
    } else {
        attn__problem whole = *p;

        /* Keys that k_lengths hides get gradients too: zeros. */
        whole.k_lengths = (attn__view){0};
        unit->b = first;
        keys = attn__sequence_of(&whole, first).len_k;
    }
    unit->key0 = index % chunks * ATTN__KEYS_PER_UNIT;
    unit->key1 = attn__min_i64(unit->key0 + ATTN__KEYS_PER_UNIT, keys);
    return unit->key0 < unit->key1;
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

/* One after the other: each phase owns what it writes, so that nothing is added
 * by two tasks, and scores are formed once more instead. */
static void run_phase(const attn__plan *plan, const attn__problem *problem,
                      attn__pass pass, const attn_exec *exec,
                      const attn_workspace *need)
{
    const attn__kernel_row *row = &attn__kernels[plan->kernel[pass]];
    const int64_t *shape = problem->bias_shape;
    attn__phase phase = {.problem = problem,
                         .kernel = row->run,
                         .slots = (char *)exec->workspace + need->shared,
                         .slot_size = need->slot};

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
    attn_workspace need;

    ATTN__TRY(attn__plan_open(plan, &body, diag));
    ATTN__TRY(attn__exec_check(&body, ATTN_BACKWARD, exec, &need, diag));
    ATTN__TRY(attn__args_check(&body, args, ATTN_BACKWARD, NULL, NULL,
                               &problem, diag));
    place_row_sums(&body, args, exec, &problem);
    if (problem.dq.data || problem.row_dsinks || problem.row_dslopes)
        run_phase(&body, &problem, ATTN__PASS_dq, exec, &need);
    if (problem.dk.data || problem.dv.data)
        run_phase(&body, &problem, ATTN__PASS_dkv, exec, &need);
    if (problem.dbias.data)
        run_phase(&body, &problem, ATTN__PASS_dbias, exec, &need);
    if (problem.row_dsinks)
        fold_rows(&problem, problem.row_dsinks, &args->dsinks);
    if (problem.row_dslopes)
        fold_rows(&problem, problem.row_dslopes, &args->dslopes);
    return attn__ok(diag);
}
