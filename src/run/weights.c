/* SPDX-License-Identifier: Apache-2.0
 *
 * The phase that writes weights, scores and entropies: all rows of every KV
 * head, or chosen rows of chosen heads. */
#include "run/run.h"

/* How many rows and heads the output has: lists that are absent mean all. */
static int64_t chosen_rows(const attn__problem *p, const attn_rows *rows)
{
    return rows && rows->rows ? rows->n_rows : p->len_q;
}

static int64_t chosen_heads(const attn__problem *p, const attn_rows *rows)
{
    return rows && rows->heads ? rows->n_heads : p->heads_q;
}

/* Unit `index` is one chunk of the chosen rows of one chosen head. Chosen heads
 * need not be of one group, so K is not shared between them. */
static bool make_chosen_unit(const attn__phase *phase, int64_t index,
                             attn__unit *unit)
{
    const attn__problem *p = phase->problem;
    const attn_rows *rows = phase->rows;
    const int64_t n_rows = chosen_rows(p, rows);
    const int64_t n_heads = chosen_heads(p, rows);
    const int64_t chunks = attn__ceil_div(n_rows, phase->rows_per_unit);
    const int64_t head = index / chunks % n_heads;

    unit->b = index / chunks / n_heads;
    unit->out_head = head;
    unit->head0 = rows->heads ? rows->heads[head] : head;
    unit->kv_head = unit->head0 / p->group;
    unit->n_heads = 1;
    unit->rows = rows->rows;
    unit->row0 = index % chunks * phase->rows_per_unit;
    unit->row1 = attn__min_i64(unit->row0 + phase->rows_per_unit, n_rows);
    return true;
}

/* The same kernel for all rows and for chosen ones, so a row's weights have
 * the same bits in both. */
void attn__run_weights(const attn__plan *plan, const attn__problem *problem,
                       const attn_rows *rows, const attn_exec *exec,
                       char *slots, size_t slot_size)
{
    const bool chosen = rows && (rows->heads || rows->rows);
    attn__phase phase = {
        .problem = problem,
        .kernel = attn__kernels[plan->kernel[ATTN__PASS_weights]].run,
        .make = chosen ? make_chosen_unit : attn__make_row_unit,
        .rows_per_unit = problem->macro_rows,
        .rows = rows,
        .slots = slots,
        .slot_size = slot_size};

    phase.n_units = chosen ? problem->batch * chosen_heads(problem, rows) *
                                 attn__ceil_div(chosen_rows(problem, rows),
                                                phase.rows_per_unit)
                           : attn__row_units(problem, phase.rows_per_unit);
    attn__run_phase(&phase, exec);
}
