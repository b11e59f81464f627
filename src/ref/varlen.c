/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed sequences: each is a problem of its own. Its rows are cut out of the
 * packed arrays, computed, and put back; positions restart at 0 in each. */
#include <stddef.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "ref/compose.h"

/* A packed (heads, total, dim) array and room for one sequence's rows. */
typedef struct packed {
    const attn_ref_real *in; /* NULL where the array is written */
    attn_ref_real *out;      /* NULL where it is read */
    int64_t heads, total, dim;
    attn_ref_real *part; /* (heads, len, dim) of the sequence at hand */
} packed;

enum { Q, K, V, D_O, DLSE, O, LSE, ENTROPY, DQ, DK, DV, N_PACKED };

typedef struct sequences {
    const attn_ref_problem *whole;
    const int64_t *cu_q, *cu_k;
    packed arrays[N_PACKED];
    attn_ref_real *part_slopes, *part_dslopes, *part_dsinks; /* (heads_q) */
    int64_t pairs; /* those of the sequences already done */
    attn__ref_scratch scratch;
} sequences;

static bool is_key_side(int a)
{
    return a == K || a == V || a == DK || a == DV;
}

/* ------------------------------------------------------------- cut, put */

static void cut(const packed *a, int64_t first, int64_t len)
{
    for (int64_t h = 0; h < a->heads; h++) {
        for (int64_t x = 0; x < len * a->dim; x++)
            a->part[h * len * a->dim + x] =
                a->in[(h * a->total + first) * a->dim + x];
    }
}

static void put(const packed *a, int64_t first, int64_t len)
{
    for (int64_t h = 0; h < a->heads; h++) {
        for (int64_t x = 0; x < len * a->dim; x++)
            a->out[(h * a->total + first) * a->dim + x] =
                a->part[h * len * a->dim + x];
    }
}

static void cut_all(const sequences *s, int64_t n)
{
    for (int a = 0; a < N_PACKED; a++) {
        const int64_t *cu = is_key_side(a) ? s->cu_k : s->cu_q;

        if (s->arrays[a].in)
            cut(&s->arrays[a], cu[n], cu[n + 1] - cu[n]);
    }
}

static void put_all(const sequences *s, int64_t n)
{
    for (int a = 0; a < N_PACKED; a++) {
        const int64_t *cu = is_key_side(a) ? s->cu_k : s->cu_q;

        if (s->arrays[a].out)
            put(&s->arrays[a], cu[n], cu[n + 1] - cu[n]);
    }
}

/* ---------------------------------------------------------- one sequence */

static attn_ref_problem problem_of(const sequences *s, int64_t n)
{
    attn_ref_problem one = *s->whole;

    one.batch = 1;
    one.len_q = s->cu_q[n + 1] - s->cu_q[n];
    one.len_k = s->cu_k[n + 1] - s->cu_k[n];
    if (one.q_offset)
        one.q_offset += n;
    if (one.alibi_slopes)
        one.alibi_slopes += n * one.slopes_stride[0];
    if (one.dropout)
        one.dropout += s->pairs;
    return one;
}

static attn_ref_real *block(const sequences *s, attn_ref_real *pairs)
{
    return pairs ? pairs + s->pairs : NULL;
}

static attn_ref_results results_of(const sequences *s,
                                   const attn_ref_results *all)
{
    return (attn_ref_results){
        .o = s->arrays[O].part,
        .lse = s->arrays[LSE].part,
        .entropy = s->arrays[ENTROPY].part,
        .weights = block(s, all->weights),
        .raw = block(s, all->raw),
        .softcapped = block(s, all->softcapped),
        .biased = block(s, all->biased),
        .visible = all->visible ? all->visible + s->pairs : NULL,
    };
}

/* ------------------------------------------------------------ open, close */

static void describe(sequences *s, int a, const attn_ref_real *in,
                     attn_ref_real *out, int64_t dim)
{
    const attn_ref_problem *w = s->whole;

    s->arrays[a] = (packed){
        .in = in,
        .out = out,
        .heads = is_key_side(a) ? w->heads_kv : w->heads_q,
        .total = is_key_side(a) ? w->len_k : w->len_q,
        .dim = dim,
    };
}

static void close_sequences(sequences *s)
{
    for (int a = 0; a < N_PACKED; a++)
        attn__free(s->arrays[a].part);
    attn__free(s->part_slopes);
    attn__free(s->part_dslopes);
    attn__free(s->part_dsinks);
    attn__ref_scratch_close(&s->scratch);
}

/* A sequence is never longer than the whole, so the whole's size serves. */
static attn_status open_part(packed *a)
{
    int64_t count;

    if (!a->in && !a->out)
        return ATTN_OK;
    if (!attn__mul_i64(a->heads, a->total, &count) ||
        !attn__mul_i64(count, a->dim, &count))
        return ATTN_E_OVERFLOW;
    a->part = attn__calloc((size_t)count, sizeof *a->part);
    return a->part ? ATTN_OK : ATTN_E_NOMEM;
}

static attn_status open_scratch(sequences *s)
{
    int64_t most_rows = 0, most_pairs = 0;

    for (int64_t n = 0; n < s->whole->batch; n++) {
        const attn_ref_problem one = problem_of(s, n);
        int64_t rows, pairs;
        const attn_status status = attn__ref_count(&one, &rows, &pairs);

        if (status)
            return status;
        most_rows = attn__max_i64(most_rows, rows);
        most_pairs = attn__max_i64(most_pairs, pairs);
    }
    return attn__ref_scratch_open(&s->scratch, most_rows, most_pairs);
}

/* On failure nothing is left open. */
static attn_status open_sequences(sequences *s)
{
    const size_t heads = (size_t)s->whole->heads_q;
    attn_status status = open_scratch(s);

    for (int a = 0; a < N_PACKED && status == ATTN_OK; a++)
        status = open_part(&s->arrays[a]);
    s->part_slopes = attn__calloc(heads, sizeof *s->part_slopes);
    s->part_dslopes = attn__calloc(heads, sizeof *s->part_dslopes);
    s->part_dsinks = attn__calloc(heads, sizeof *s->part_dsinks);
    if (status == ATTN_OK &&
        (!s->part_slopes || !s->part_dslopes || !s->part_dsinks))
        status = ATTN_E_NOMEM;
    if (status)
        close_sequences(s);
    return status;
}

static bool is_supported(const attn_ref_problem *problem)
{
    return !problem->k_lengths && !problem->mask && !problem->bias;
}

/* --------------------------------------------------------------- forward */

attn_status attn_ref_varlen_forward(
    const attn_ref_stages *stages, const attn_ref_problem *problem,
    const int64_t *cu_seqlens_q, const int64_t *cu_seqlens_k,
    const attn_ref_real *q, const attn_ref_real *k, const attn_ref_real *v,
    const attn_ref_results *results)
{
    sequences s = {
        .whole = problem, .cu_q = cu_seqlens_q, .cu_k = cu_seqlens_k};
    attn_ref_stages right;
    attn_status status;

    if (!is_supported(problem))
        return ATTN_E_UNSUPPORTED;
    describe(&s, Q, q, NULL, problem->dim_qk);
    describe(&s, K, k, NULL, problem->dim_qk);
    describe(&s, V, v, NULL, problem->dim_v);
    describe(&s, O, NULL, results->o, problem->dim_v);
    describe(&s, LSE, NULL, results->lse, 1);
    describe(&s, ENTROPY, NULL, results->entropy, 1);
    status = open_sequences(&s);
    if (status)
        return status;
    attn_ref_stages_init(&right);
    for (int64_t n = 0; n < problem->batch; n++) {
        const attn_ref_problem one = problem_of(&s, n);
        const attn_ref_results parts = results_of(&s, results);

        cut_all(&s, n);
        attn__ref_forward_in(&s.scratch, stages ? stages : &right, &one,
                             s.arrays[Q].part, s.arrays[K].part,
                             s.arrays[V].part, &parts);
        put_all(&s, n);
        s.pairs += attn__ref_rows(&one) * one.len_k;
    }
    close_sequences(&s);
    return ATTN_OK;
}

/* -------------------------------------------------------------- backward */

/* dsinks are those of all sequences together; dslopes too, unless each
 * sequence has its own. */
static void add_shared(const sequences *s, int64_t n,
                       const attn_ref_gradients *gradients)
{
    const int64_t *stride = s->whole->slopes_stride;

    for (int64_t h = 0; h < s->whole->heads_q; h++) {
        if (gradients->dsinks)
            gradients->dsinks[h] += s->part_dsinks[h];
        if (gradients->dslopes)
            gradients->dslopes[n * stride[0] + h * stride[1]] +=
                s->part_dslopes[h];
    }
}

static void clear_shared(const sequences *s,
                         const attn_ref_gradients *gradients)
{
    const int64_t heads[] = {s->whole->batch, s->whole->heads_q};

    if (gradients->dsinks)
        attn__ref_fill(gradients->dsinks, s->whole->heads_q, 0);
    if (gradients->dslopes)
        attn__ref_clear(gradients->dslopes, 2, heads, s->whole->slopes_stride);
}

/* The slopes of one sequence, dense, so that their gradient is dense too. */
static void densify_slopes(const sequences *s, attn_ref_problem *one)
{
    if (!one->alibi_slopes)
        return;
    for (int64_t h = 0; h < one->heads_q; h++)
        s->part_slopes[h] = one->alibi_slopes[h * one->slopes_stride[1]];
    one->alibi_slopes = s->part_slopes;
    one->slopes_stride[0] = 0;
    one->slopes_stride[1] = 1;
}

static void backward_one(sequences *s, const attn_ref_stages *stages, int64_t n,
                         const attn_ref_gradients *gradients)
{
    attn_ref_problem one = problem_of(s, n);
    const attn_ref_gradients parts = {
        .dq = s->arrays[DQ].part,
        .dk = s->arrays[DK].part,
        .dv = s->arrays[DV].part,
        .dsinks = gradients->dsinks ? s->part_dsinks : NULL,
        .dslopes = gradients->dslopes ? s->part_dslopes : NULL,
    };

    densify_slopes(s, &one);
    cut_all(s, n);
    attn__ref_backward_in(&s->scratch, stages, &one, s->arrays[Q].part,
                          s->arrays[K].part, s->arrays[V].part,
                          s->arrays[D_O].part, s->arrays[DLSE].part, &parts);
    put_all(s, n);
    add_shared(s, n, gradients);
    s->pairs += attn__ref_rows(&one) * one.len_k;
}

attn_status attn_ref_varlen_backward(
    const attn_ref_stages *stages, const attn_ref_problem *problem,
    const int64_t *cu_seqlens_q, const int64_t *cu_seqlens_k,
    const attn_ref_real *q, const attn_ref_real *k, const attn_ref_real *v,
    const attn_ref_real *d_o, const attn_ref_real *dlse,
    const attn_ref_gradients *gradients)
{
    sequences s = {
        .whole = problem, .cu_q = cu_seqlens_q, .cu_k = cu_seqlens_k};
    attn_ref_stages right;
    attn_status status;

    if (!is_supported(problem) || problem->empty_rows == ATTN_EMPTY_NAN)
        return ATTN_E_UNSUPPORTED;
    describe(&s, Q, q, NULL, problem->dim_qk);
    describe(&s, K, k, NULL, problem->dim_qk);
    describe(&s, V, v, NULL, problem->dim_v);
    describe(&s, D_O, d_o, NULL, problem->dim_v);
    describe(&s, DLSE, dlse, NULL, 1);
    describe(&s, DQ, NULL, gradients->dq, problem->dim_qk);
    describe(&s, DK, NULL, gradients->dk, problem->dim_qk);
    describe(&s, DV, NULL, gradients->dv, problem->dim_v);
    status = open_sequences(&s);
    if (status)
        return status;
    attn_ref_stages_init(&right);
    clear_shared(&s, gradients);
    for (int64_t n = 0; n < problem->batch; n++)
        backward_one(&s, stages ? stages : &right, n, gradients);
    close_sequences(&s);
    return ATTN_OK;
}
