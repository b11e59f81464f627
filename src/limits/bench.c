/* SPDX-License-Identifier: Apache-2.0
 *
 * One row: random inputs, a plan, and turns of kernel and limit. */
#include "attn_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/diag.h"
#include "core/exec.h"
#include "core/half.h"
#include "limits/limits.h"

#define MAX_TURNS 64
#define ALIGNMENT 64
/* Bytes of K and V that a decode goes round: no cache holds them. */
#define ROTATION ((size_t)1 << 30)

/* The words of rows.def. */
#define PASS_FWD ATTN_FORWARD
#define PASS_BWD ATTN_BACKWARD
#define PASS_BOTH ATTN_BACKWARD
#define BOTH_FWD 0
#define BOTH_BWD 0
#define BOTH_BOTH 1
#define TYPE_F64 ATTN_F64, ATTN_PRECISION_STANDARD
#define TYPE_F32 ATTN_F32, ATTN_PRECISION_STANDARD
#define TYPE_BF16 ATTN_BF16, ATTN_PRECISION_STANDARD
#define TYPE_BFHI ATTN_BF16, ATTN_PRECISION_HIGH
#define TYPE_F16 ATTN_F16, ATTN_PRECISION_STANDARD
#define MASK_FULL ATTN_CAUSAL_NONE
#define MASK_CAUSAL ATTN_CAUSAL_BOTTOM_RIGHT
#define WITH_PLAIN 0
#define WITH_ALIBI ATTN_WITH_ALIBI
#define WITH_MASK ATTN_WITH_MASK

static const attn_bench_row rows[] = {
#define ROW(name, pass, type, batch, heads_q, heads_kv, len_q, len_k,        \
            dim, causal, window, inputs, bshd)                               \
    {name,    PASS_##pass, BOTH_##pass,   TYPE_##type, batch,                \
     heads_q, heads_kv,    len_q,         len_k,       dim,                  \
     MASK_##causal,        window,        WITH_##inputs, bshd},
#include "limits/rows.def"
#undef ROW
};

int64_t attn_bench_count(void)
{
    return (int64_t)(sizeof rows / sizeof rows[0]);
}

const attn_bench_row *attn_bench_row_at(int64_t index)
{
    return &rows[index];
}

/* ------------------------------------------------------------- the set-up */

typedef struct setup {
    const attn_bench_row *row;
    attn_desc desc;
    attn_plan plan;
    attn_args args;
    attn_exec exec;
    attn_pool *pool;
    void *blocks[16]; /* all memory, to be freed */
    int n_blocks;
    char *keys; /* K and V, one after the other, and copies of them */
    size_t keys_size; /* of one K and V */
    size_t n_keys;    /* with the copies */
    size_t turn;      /* which of them is next */
} setup;

static void *take(setup *s, size_t size)
{
    char *block = attn__alloc(size + ALIGNMENT);

    if (!block)
        return NULL;
    s->blocks[s->n_blocks++] = block;
    return block + (ALIGNMENT - (uintptr_t)block % ALIGNMENT);
}

/* Numbers of about unit size; the generator is George Marsaglia's xorshift. */
static void fill(void *data, attn_dtype dtype, int64_t n)
{
    uint64_t state = UINT64_C(88172645463325252);

    for (int64_t i = 0; i < n; i++) {
        float value = 0;

        for (int k = 0; k < 3; k++) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            value += (float)(state >> 40) * 0x1p-23f - 1;
        }
        if (dtype == ATTN_F64)
            ((double *)data)[i] = (double)value;
        else if (dtype == ATTN_F32)
            ((float *)data)[i] = value;
        else
            ((uint16_t *)data)[i] = dtype == ATTN_BF16
                                        ? attn__bf16_of_f32(value)
                                        : attn__f16_of_f32(value);
    }
}

static attn_tensor view(const attn_bench_row *row, void *data, int64_t heads,
                        int64_t len)
{
    return row->bshd ? attn_bshd(data, row->dtype, row->batch, heads, len,
                                 row->dim)
                     : attn_bhsd(data, row->dtype, row->batch, heads, len,
                                 row->dim);
}

/* A filled tensor of (batch, heads, len, dim); NULL data if memory is short. */
static attn_tensor make(setup *s, int64_t heads, int64_t len)
{
    const attn_bench_row *row = s->row;
    const int64_t n = row->batch * heads * len * row->dim;
    void *data = take(s, (size_t)n * attn_dtype_size(row->dtype));

    if (data)
        fill(data, row->dtype, n);
    return view(row, data, heads, len);
}

/* K and V of the next turn. A decode reads them once, and its next token finds
 * other layers' in the caches: so it goes round copies. */
static void next_keys(setup *s)
{
    char *k = s->keys + s->turn * s->keys_size, *v = k + s->keys_size / 2;
    const attn_bench_row *row = s->row;

    s->turn = (s->turn + 1) % s->n_keys;
    s->args.kv.k = attn_in(view(row, k, row->heads_kv, row->len_k));
    s->args.kv.v = attn_in(view(row, v, row->heads_kv, row->len_k));
}

static bool make_kv(setup *s)
{
    const attn_bench_row *row = s->row;
    const int64_t n = row->batch * row->heads_kv * row->len_k * row->dim;

    s->keys_size = 2 * (size_t)n * attn_dtype_size(row->dtype);
    s->n_keys = row->len_q == 1 ? ROTATION / s->keys_size + 1 : 1;
    s->keys = take(s, s->n_keys * s->keys_size);
    if (!s->keys)
        return false;
    fill(s->keys, row->dtype, 2 * n);
    for (size_t copy = 1; copy < s->n_keys; copy++)
        memcpy(s->keys + copy * s->keys_size, s->keys, s->keys_size);
    next_keys(s);
    return true;
}

/* ALiBi slopes; a mask that hides the last eighth of the keys. */
static bool make_shapers(setup *s)
{
    const attn_bench_row *row = s->row;

    if (row->inputs & ATTN_WITH_ALIBI) {
        float *slopes = take(s, (size_t)row->heads_q * sizeof *slopes);

        for (int64_t h = 0; slopes && h < row->heads_q; h++)
            slopes[h] = 1 / (float)(2 << h % 8);
        s->args.alibi_slopes =
            attn_in_dense(slopes, ATTN_F32, 1, &row->heads_q);
        if (!slopes)
            return false;
    }
    if (row->inputs & ATTN_WITH_MASK) {
        unsigned char *mask = take(s, (size_t)row->len_k);

        if (!mask)
            return false;
        for (int64_t j = 0; j < row->len_k; j++)
            mask[j] = j < row->len_k - row->len_k / 8;
        s->args.mask = attn_in_dense(mask, ATTN_BOOL, 1, &row->len_k);
    }
    return true;
}

static bool make_tensors(setup *s)
{
    const attn_bench_row *row = s->row;
    const int64_t stats[3] = {row->batch, row->heads_q, row->len_q};
    double *lse = take(s, (size_t)(row->batch * row->heads_q * row->len_q) *
                              sizeof *lse);

    attn_args_init(&s->args);
    s->args.q = attn_in(make(s, row->heads_q, row->len_q));
    s->args.o = make(s, row->heads_q, row->len_q);
    s->args.lse = attn_dense(lse, ATTN_F64, 3, stats);
    if (!make_kv(s) || !make_shapers(s) || !lse || !s->args.q.data ||
        !s->args.o.data)
        return false;
    if (row->pass == ATTN_FORWARD)
        return true;
    s->args.d_o = attn_in(make(s, row->heads_q, row->len_q));
    s->args.dq = make(s, row->heads_q, row->len_q);
    s->args.dk = make(s, row->heads_kv, row->len_k);
    s->args.dv = make(s, row->heads_kv, row->len_k);
    return s->args.d_o.data && s->args.dq.data && s->args.dk.data &&
           s->args.dv.data;
}

/* Workspace for both passes, and the pool. */
static attn_status make_exec(setup *s, int64_t threads, attn_diag *diag)
{
    attn_workspace forward, backward;
    size_t size;

    ATTN__TRY(attn_plan_workspace(&s->plan, ATTN_FORWARD, threads, &forward,
                                  diag));
    ATTN__TRY(attn_plan_workspace(&s->plan, ATTN_BACKWARD, threads,
                                  &backward, diag));
    size = forward.size > backward.size ? forward.size : backward.size;
    attn_exec_init(&s->exec);
    s->exec.threads = threads;
    s->exec.workspace = take(s, size);
    s->exec.workspace_size = size;
    if (threads > 1)
        s->pool = attn_pool_create(threads);
    s->exec.parallel_for = s->pool ? attn_pool_parallel_for : NULL;
    s->exec.ctx = s->pool;
    ATTN__REQUIRE(s->exec.workspace && (threads == 1 || s->pool), diag,
                  ATTN_E_NOMEM, "threads", "no memory for %lld threads",
                  (long long)threads);
    return ATTN_OK;
}

static attn_status make_setup(setup *s, attn_isa isa_limit, int64_t threads,
                              attn_diag *diag)
{
    const attn_bench_row *row = s->row;

    attn_desc_init(&s->desc, row->dtype, row->batch, row->heads_q,
                   row->heads_kv, row->len_q, row->len_k, row->dim, row->dim);
    s->desc.precision = row->precision;
    s->desc.causal = row->causal;
    s->desc.window_left = row->window_left;
    s->desc.inputs = row->inputs;
    s->desc.isa_limit = isa_limit;
    ATTN__TRY(attn_plan_init(&s->plan, &s->desc, diag));
    ATTN__REQUIRE(make_tensors(s), diag, ATTN_E_NOMEM, "row",
                  "no memory for %s", row->name);
    ATTN__TRY(make_exec(s, threads, diag));
    return attn_forward(&s->plan, &s->args, &s->exec, diag);
}

static void free_setup(setup *s)
{
    attn_pool_destroy(s->pool);
    while (s->n_blocks > 0)
        attn__free(s->blocks[--s->n_blocks]);
}

/* ------------------------------------------------------------- the turns */

/* Pairs that some query sees. */
static double visible_pairs(const attn_bench_row *row)
{
    double pairs = 0;

    for (int64_t i = 0; i < row->len_q; i++) {
        const int64_t p = i + row->len_k - row->len_q;
        const int64_t hi =
            row->causal == ATTN_CAUSAL_NONE ? row->len_k : p + 1;
        const int64_t lo = row->window_left >= 0 && p > row->window_left
                               ? p - row->window_left
                               : 0;

        pairs += (double)(hi - lo);
    }
    return pairs * (double)(row->batch * row->heads_q);
}

static void call(setup *s, int64_t times)
{
    for (int64_t n = 0; n < times; n++) {
        next_keys(s);
        if (s->row->pass == ATTN_FORWARD || s->row->both)
            attn_forward(&s->plan, &s->args, &s->exec, NULL);
        if (s->row->pass == ATTN_BACKWARD)
            attn_backward(&s->plan, &s->args, &s->exec, NULL);
    }
}

/* Operations of a visible pair and a dim: a product is two, forward has two of
 * them, backward five. */
static double per_pair(const attn_bench_row *row)
{
    return row->both ? 14 : row->pass == ATTN_BACKWARD ? 10 : 4;
}

static double limit_now(const setup *s, attn_isa isa, bool reads)
{
    return reads ? attn_limit_read(s->keys, s->n_keys * s->keys_size,
                                   s->pool, s->exec.threads)
                 : attn_limit_fma(
                       isa, s->row->dtype == ATTN_F64 ? ATTN_F64 : ATTN_F32,
                       s->pool, s->exec.threads);
}

/* Which kernel the plan takes for the row's pass (backward's first), out of
 * the text that describes it. Returns its level. */
static attn_isa kernel_of(const setup *s, char *name, size_t size)
{
    const bool backward = s->row->pass == ATTN_BACKWARD;
    char text[2048];
    const char *line, *level;

    attn_plan_describe(&s->plan, text, sizeof text);
    line = strstr(text, backward ? "kernel dq" : "kernel ");
    if (!line || sscanf(line, "kernel %31[a-z0-9_]", name) != 1)
        snprintf(name, size, "?");
    level = strrchr(name, '_');
    for (int isa = ATTN_ISA_SCALAR; level && isa <= ATTN_ISA_AMX; isa++)
        if (strcmp(level + 1, attn_isa_name((attn_isa)isa)) == 0)
            return (attn_isa)isa;
    return ATTN_ISA_SCALAR;
}

static void take_turns(setup *s, double seconds,
                       attn_bench_result *result)
{
    const attn_isa isa =
        kernel_of(s, result->kernel, sizeof result->kernel);
    const bool reads = s->row->len_q == 1;
    const double work =
        reads ? (double)s->keys_size
              : visible_pairs(s->row) * (double)s->row->dim *
                    per_pair(s->row);
    double times[MAX_TURNS], limits[MAX_TURNS], ratios[MAX_TURNS];
    const double start = attn__now();
    int64_t per_turn = 1;
    size_t n = 0;

    call(s, 1);
    per_turn += (int64_t)(0.01 / (attn__now() - start));
    do {
        const double before = limit_now(s, isa, reads);
        const double from = attn__now();

        call(s, per_turn);
        times[n] = (attn__now() - from) / (double)per_turn;
        limits[n] = (before + limit_now(s, isa, reads)) / 2;
        ratios[n] = work / times[n] / limits[n];
        n++;
    } while (n < MAX_TURNS && (n < 5 || attn__now() - start < seconds));
    result->reads = reads;
    result->seconds = attn__median(times, n);
    result->limit = attn__median(limits, n);
    result->fraction = attn__median(ratios, n);
    result->operations = work / result->seconds;
}

attn_status attn_bench_run(const attn_bench_row *row, attn_isa isa_limit,
                           int64_t threads, double seconds,
                           attn_bench_result *result, attn_diag *diag)
{
    setup s = {.row = row};
    attn_status status;

    ATTN__TRY(attn__check_threads(threads, diag));
    status = make_setup(&s, isa_limit, threads, diag);
    if (status == ATTN_OK) {
        take_turns(&s, seconds, result);
        attn__ok(diag);
    }
    free_setup(&s);
    return status;
}
