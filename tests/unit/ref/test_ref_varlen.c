/* SPDX-License-Identifier: Apache-2.0
 *
 * Packed sequences give, bit for bit, what each sequence gives alone; and when
 * memory is short nothing is written and nothing is lost. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attn_ref.h"
#include "ref_case.h"
#include "unit.h"

enum { N = 4, H = 4, HKV = 2, D = 3, DV = 5, TQ = 11, TK = 13 };

static const int64_t cu_q[N + 1] = {0, 3, 3, 10, TQ};
static const int64_t cu_k[N + 1] = {0, 5, 9, 9, TK}; /* one has no keys */
static const int64_t q_offset[N] = {2, 0, 1, 3};

/* 3 x 5 + 0 + 0 + 1 x 4 pairs a head. */
enum { PAIRS = H * (15 + 4) };

typedef struct packed {
    attn_ref_problem problem;
    double q[H * TQ * D], k[HKV * TK * D], v[HKV * TK * DV];
    double d_o[H * TQ * DV], dlse[H * TQ];
    double slopes[N * H], sinks[H], dropout[PAIRS];
    double o[H * TQ * DV], lse[H * TQ], entropy[H * TQ], weights[PAIRS];
    double dq[H * TQ * D], dk[HKV * TK * D], dv[HKV * TK * DV];
    double dsinks[H], dslopes[N * H];
} packed;

static void fill(double *x, int64_t n, uint64_t stream)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = ref_normal(271828, (stream << 32) + (uint64_t)i);
}

/* `own_slopes`: one row of slopes for each sequence. */
static packed *open_packed(bool own_slopes)
{
    packed *s = calloc(1, sizeof *s);

    assert_non_null(s);
    fill(s->q, COUNT(s->q), 1);
    fill(s->k, COUNT(s->k), 2);
    fill(s->v, COUNT(s->v), 3);
    fill(s->d_o, COUNT(s->d_o), 4);
    fill(s->dlse, COUNT(s->dlse), 5);
    fill(s->slopes, COUNT(s->slopes), 6);
    fill(s->sinks, COUNT(s->sinks), 7);
    for (int x = 0; x < PAIRS; x++)
        s->dropout[x] = x % 3 ? 1.5 : 0;
    attn_ref_problem_init(&s->problem, N, H, HKV, TQ, TK, D, DV);
    s->problem.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
    s->problem.window_left = 3;
    s->problem.softcap = 2;
    s->problem.q_offset = q_offset;
    s->problem.alibi_slopes = s->slopes;
    s->problem.slopes_stride[0] = own_slopes ? H : 0;
    s->problem.slopes_stride[1] = 1;
    s->problem.sinks = s->sinks;
    s->problem.dropout = s->dropout;
    return s;
}

static attn_status run(packed *s)
{
    const attn_ref_results results = {
        .o = s->o, .lse = s->lse, .entropy = s->entropy, .weights = s->weights};
    const attn_ref_gradients gradients = {.dq = s->dq,
                                          .dk = s->dk,
                                          .dv = s->dv,
                                          .dsinks = s->dsinks,
                                          .dslopes = s->dslopes};
    attn_status status = attn_ref_varlen_forward(NULL, &s->problem, cu_q, cu_k,
                                                 s->q, s->k, s->v, &results);

    if (status == ATTN_OK)
        status =
            attn_ref_varlen_backward(NULL, &s->problem, cu_q, cu_k, s->q, s->k,
                                     s->v, s->d_o, s->dlse, &gradients);
    return status;
}

/* ------------------------------------------------------ one at a time */

/* Rows [cu[n], cu[n + 1]) of each head of a (heads, total, dim) array. */
static double *part(const double *x, int64_t heads, const int64_t *cu,
                    int64_t n, int64_t dim)
{
    const int64_t len = cu[n + 1] - cu[n], total = cu[N];
    double *y = calloc((size_t)(heads * len * dim) + 1, sizeof *y);

    assert_non_null(y);
    for (int64_t h = 0; h < heads; h++)
        memcpy(y + h * len * dim, x + (h * total + cu[n]) * dim,
               (size_t)(len * dim) * sizeof *y);
    return y;
}

static void expect_part(const double *whole, int64_t heads, const int64_t *cu,
                        int64_t n, int64_t dim, const double *alone)
{
    double *y = part(whole, heads, cu, n, dim);
    const int64_t count = heads * (cu[n + 1] - cu[n]) * dim;

    assert_memory_equal(y, alone, (size_t)count * sizeof *y);
    free(y);
}

/* Sequence n alone: compare its rows, add its dsinks, return its dslopes. */
static void check_sequence(const packed *s, int64_t n, int64_t pairs_before,
                           double *dsinks, double *dslopes)
{
    attn_ref_problem p = s->problem;
    double *q = part(s->q, H, cu_q, n, D), *k = part(s->k, HKV, cu_k, n, D);
    double *v = part(s->v, HKV, cu_k, n, DV);
    double *d_o = part(s->d_o, H, cu_q, n, DV);
    double *dlse = part(s->dlse, H, cu_q, n, 1);
    double o[H * TQ * DV], lse[H * TQ], entropy[H * TQ], weights[PAIRS];
    double dq[H * TQ * D], dk[HKV * TK * D], dv[HKV * TK * DV], sinks[H];
    const attn_ref_results results = {
        .o = o, .lse = lse, .entropy = entropy, .weights = weights};
    const attn_ref_gradients gradients = {
        .dq = dq, .dk = dk, .dv = dv, .dsinks = sinks, .dslopes = dslopes};

    p.batch = 1;
    p.len_q = cu_q[n + 1] - cu_q[n];
    p.len_k = cu_k[n + 1] - cu_k[n];
    p.q_offset += n;
    p.alibi_slopes += n * p.slopes_stride[0];
    p.slopes_stride[0] = 0;
    p.dropout += pairs_before;
    attn_ref_forward(NULL, &p, q, k, v, &results);
    attn_ref_backward(NULL, &p, q, k, v, d_o, dlse, &gradients);
    expect_part(s->o, H, cu_q, n, DV, o);
    expect_part(s->lse, H, cu_q, n, 1, lse);
    expect_part(s->entropy, H, cu_q, n, 1, entropy);
    expect_part(s->dq, H, cu_q, n, D, dq);
    expect_part(s->dk, HKV, cu_k, n, D, dk);
    expect_part(s->dv, HKV, cu_k, n, DV, dv);
    assert_memory_equal(s->weights + pairs_before, weights,
                        (size_t)(H * p.len_q * p.len_k) * sizeof *weights);
    for (int h = 0; h < H; h++)
        dsinks[h] += sinks[h];
    free(q);
    free(k);
    free(v);
    free(d_o);
    free(dlse);
}

static void check_packed(bool own_slopes)
{
    packed *s = open_packed(own_slopes);
    double dsinks[H] = {0}, dslopes[H] = {0};
    int64_t pairs = 0;

    assert_int_equal(run(s), ATTN_OK);
    for (int64_t n = 0; n < N; n++) {
        double own[H];

        check_sequence(s, n, pairs, dsinks, own);
        pairs += H * (cu_q[n + 1] - cu_q[n]) * (cu_k[n + 1] - cu_k[n]);
        if (own_slopes)
            assert_memory_equal(s->dslopes + n * H, own, sizeof own);
        for (int h = 0; h < H; h++)
            dslopes[h] += own[h];
    }
    assert_int_equal(pairs, PAIRS);
    assert_memory_equal(s->dsinks, dsinks, sizeof dsinks);
    if (!own_slopes)
        assert_memory_equal(s->dslopes, dslopes, sizeof dslopes);
    free(s);
}

UNIT(packed_sequences_give_what_each_gives_alone)
{
    check_packed(false);
    check_packed(true);
}

/* Every second slope of an array, so that dense and given strides differ. */
UNIT(slopes_may_have_any_stride)
{
    packed *dense = open_packed(false), *strided = open_packed(false);
    double spread[2 * H], dspread[2 * H];
    const attn_ref_gradients gradients = {.dslopes = dspread};

    for (int h = 0; h < H; h++) {
        spread[2 * h] = dense->slopes[h];
        spread[2 * h + 1] = NAN;
        dspread[2 * h + 1] = 9;
    }
    strided->problem.alibi_slopes = spread;
    strided->problem.slopes_stride[1] = 2;
    assert_int_equal(run(dense), ATTN_OK);
    assert_int_equal(attn_ref_varlen_backward(NULL, &strided->problem, cu_q,
                                              cu_k, strided->q, strided->k,
                                              strided->v, strided->d_o,
                                              strided->dlse, &gradients),
                     ATTN_OK);
    for (int h = 0; h < H; h++)
        assert_true(dspread[2 * h] == dense->dslopes[h] &&
                    dspread[2 * h + 1] == 9);
    free(dense);
    free(strided);
}

UNIT(what_packed_sequences_do_not_have_is_refused)
{
    packed *s = open_packed(false);
    const unsigned char mask = 1;
    const double bias = 0;

    s->problem.mask = &mask;
    assert_int_equal(run(s), ATTN_E_UNSUPPORTED);
    s->problem.mask = NULL;
    s->problem.bias = &bias;
    assert_int_equal(run(s), ATTN_E_UNSUPPORTED);
    s->problem.bias = NULL;
    s->problem.k_lengths = cu_k;
    assert_int_equal(run(s), ATTN_E_UNSUPPORTED);
    free(s);
}

/* ------------------------------------------------------- memory is short */

static struct {
    int64_t until_failure, live;
} memory;

static void *failing_realloc(void *ptr, size_t size)
{
    void *block;

    if (memory.until_failure-- <= 0)
        return NULL;
    block = realloc(ptr, size > 0 ? size : 1);
    memory.live += block && !ptr;
    return block;
}

static void counting_free(void *ptr)
{
    memory.live -= ptr != NULL;
    free(ptr);
}

/* Fail the k-th allocation, k = 0, 1, ... until none fails. The results of a
 * refused call are as they were. */
UNIT(a_failed_allocation_leaves_everything_as_it_was)
{
    int64_t k = 0;
    attn_status status = ATTN_E_NOMEM;

    attn_set_allocator(failing_realloc, counting_free);
    for (; status == ATTN_E_NOMEM && k < 100; k++) {
        packed *s = open_packed(true), *before = malloc(sizeof *before);
        const attn_ref_gradients gradients = {.dq = s->dq,
                                              .dk = s->dk,
                                              .dsinks = s->dsinks,
                                              .dslopes = s->dslopes};
        const attn_ref_results results = {.o = s->o, .weights = s->weights};

        memory.until_failure = k;
        memory.live = 0;
        *before = *s;
        status =
            attn_ref_varlen_backward(NULL, &s->problem, cu_q, cu_k, s->q, s->k,
                                     s->v, s->d_o, s->dlse, &gradients);
        if (status != ATTN_OK)
            assert_memory_equal(s, before, sizeof *s);
        memory.until_failure = k;
        if (attn_ref_varlen_forward(NULL, &s->problem, cu_q, cu_k, s->q, s->k,
                                    s->v, &results) != ATTN_OK)
            assert_memory_equal(s, before, sizeof *s);
        assert_int_equal(memory.live, 0);
        free(s);
        free(before);
    }
    attn_set_allocator(NULL, NULL);
    assert_int_equal(status, ATTN_OK);
    assert_in_range(k, 10, 20); /* two of scratch, eight parts, three of H */
}

UNIT(a_failed_allocation_of_one_problem_too)
{
    packed *s = open_packed(false), *before = malloc(sizeof *before);
    const attn_ref_results results = {.o = s->o};

    attn_set_allocator(failing_realloc, counting_free);
    s->problem.batch = 1;
    *before = *s;
    for (int64_t k = 0; k < 2; k++) {
        memory.until_failure = k;
        memory.live = 0;
        assert_int_equal(
            attn_ref_forward(NULL, &s->problem, s->q, s->k, s->v, &results),
            ATTN_E_NOMEM);
        assert_int_equal(memory.live, 0);
        assert_memory_equal(s, before, sizeof *s);
    }
    attn_set_allocator(NULL, NULL);
    free(s);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_sequences_give_what_each_gives_alone),
        cmocka_unit_test(slopes_may_have_any_stride),
        cmocka_unit_test(what_packed_sequences_do_not_have_is_refused),
        cmocka_unit_test(a_failed_allocation_leaves_everything_as_it_was),
        cmocka_unit_test(a_failed_allocation_of_one_problem_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
