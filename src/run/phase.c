/* SPDX-License-Identifier: Apache-2.0
 *
 * Running the units of a phase: tasks draw numbers from one counter, and task
 * i works in slot i. Which task does a unit never shows in the result, since
 * a unit's arithmetic is its own. */
#include "run/run.h"

#include <stdatomic.h>

/* So that the last to finish is late by a fourth of a share at most. */
#define UNITS_PER_THREAD 4
/* Multiply-adds, some 5 us: what a unit must have to be cut off. */
#define UNIT_WORK 0x1p19
/* Multiply-adds, some 1 us: what a task must have to be worth a thread. */
#define TASK_WORK 0x1p17

/* On the caller's stack: parallel_for returns when all tasks have run, so no
 * task outlives it. */
typedef struct shared_units {
    const attn__units *units;
    _Atomic int64_t next;
} shared_units;

/* One task: units until none is left. A task that begins late finds few or
 * none, so a slow thread delays the run by one unit at most. */
static void run_task(void *arg, int64_t index)
{
    shared_units *shared = arg;
    const attn__units *units = shared->units;
    void *slot = units->slots + (size_t)index * units->slot_size;

    /* Numbers only have to differ. What a unit writes becomes visible to the
     * caller by parallel_for's own end, so the counter need order nothing. */
    for (;;) {
        const int64_t number =
            atomic_fetch_add_explicit(&shared->next, 1, memory_order_relaxed);

        if (number >= units->n)
            return;
        units->run(units->of, number, slot);
    }
}

/* At most one task per unit. Slots are numbered by tasks, not by threads: an
 * executor may run two tasks one after the other on the same thread. */
void attn__run_units(const attn__units *units, const attn_exec *exec)
{
    shared_units shared = {units, 0};
    const int64_t tasks = attn__min_i64(exec->threads, units->n);

    if (tasks < 1)
        return;
    /* One task needs nobody: tiny problems must not pay for waking threads. */
    if (exec->parallel_for && tasks > 1) {
        exec->parallel_for(exec->ctx, tasks, run_task, &shared);
        return;
    }
    run_task(&shared, 0);
}

static void run_unit(const void *of, int64_t number, void *slot)
{
    const attn__phase *phase = of;
    attn__unit unit = {0};

    /* Short sequences leave holes in a grid made for the longest. */
    if (phase->make(phase, number, &unit))
        phase->kernel(phase->problem, &unit, slot);
}

/* Multiply-adds of two products over every pair: more than there are, where
 * masks hide some. */
static double work_of(const attn__problem *p)
{
    return (double)p->batch * (double)p->heads_q * (double)p->len_q *
           (double)p->len_k * (double)(p->dim_qk + p->dim_v);
}

/* No more tasks than there is work for: what a thread does in a microsecond is
 * done before another one wakes. */
void attn__run_phase(const attn__phase *phase, const attn_exec *exec)
{
    attn__phase own = *phase;
    const attn__units units = {&own, run_unit, phase->n_units, phase->slots,
                               phase->slot_size};
    const double most = work_of(phase->problem) / TASK_WORK;
    attn_exec few = *exec;

    if (most < (double)few.threads)
        few.threads = attn__max_i64(1, (int64_t)most);
    own.together = few.threads;
    attn__run_units(&units, &few);
}

/* Chunks of rows of one KV head: len_q rows for each head of its group. The
 * longest sequence bounds the grid; shorter ones leave units empty. */
static int64_t chunks_per_head(const attn__problem *p, int64_t rows_per_unit)
{
    const int64_t group = attn__max_i64(p->group, 1);
    const int64_t whole = attn__ceil_div(p->len_q, rows_per_unit) * group;

    /* len_q * group may not fit; ceil(len_q / n) * group does and is enough
     * except where rows_per_unit exceeds len_q. */
    return p->len_q <= rows_per_unit
               ? attn__ceil_div(p->len_q * group, rows_per_unit)
               : whole;
}

int64_t attn__row_units(const attn__problem *p, int64_t rows_per_unit)
{
    return chunks_per_head(p, rows_per_unit) * p->heads_kv * p->batch;
}

/* With few heads the plan's units are too few to share out evenly (five among
 * two threads take the time of six), so they are cut into fewer tiles, as long
 * as a piece is worth drawing. Rows don't know of each other: no bit changes.
 */
int64_t attn__rows_per_unit(const attn__problem *p, attn__tile_shape tile,
                            const attn_exec *exec)
{
    const int64_t tile_rows = (int64_t)tile.tile_rows;
    const double per_row =
        (double)p->len_k * (double)(p->dim_qk + p->dim_v);
    int64_t rows = p->macro_rows;

    while (exec->threads > 1 &&
           attn__row_units(p, rows) < UNITS_PER_THREAD * exec->threads) {
        const int64_t half =
            attn__ceil_div(rows / 2, tile_rows) * tile_rows;

        if (half >= rows || (double)half * per_row < UNIT_WORK)
            break;
        rows = half;
    }
    return rows;
}

attn__turn attn__turn_of(int64_t index, int64_t heads, int64_t pieces,
                         int64_t together)
{
    const int64_t last = attn__max_i64(heads / together, 1) - 1;
    const int64_t group = attn__min_i64(index / pieces / together, last);
    const int64_t n = group < last ? together : heads - last * together;
    const int64_t rest = index - group * together * pieces;

    return (attn__turn){group * together + rest % n, rest / n};
}

bool attn__make_row_unit(const attn__phase *phase, int64_t index,
                         attn__unit *unit)
{
    const attn__problem *p = phase->problem;
    const int64_t heads = p->heads_kv * p->batch;
    const int64_t chunks = phase->n_units / heads;
    const attn__turn turn =
        attn__turn_of(index, heads, chunks, phase->together);

    return attn__make_chunk(phase, turn.head, chunks - 1 - turn.piece, unit);
}

bool attn__make_chunk(const attn__phase *phase, int64_t head, int64_t chunk,
                      attn__unit *unit)
{
    const attn__problem *p = phase->problem;
    int64_t rows;

    unit->b = head / p->heads_kv;
    unit->kv_head = head % p->heads_kv;
    unit->head0 = unit->kv_head * p->group;
    unit->out_head = unit->head0;
    unit->n_heads = p->group;
    rows = attn__sequence_of(p, unit->b).len_q * p->group;
    unit->row0 = chunk * phase->rows_per_unit;
    unit->row1 = attn__min_i64(unit->row0 + phase->rows_per_unit, rows);
    return unit->row0 < unit->row1;
}
