/* SPDX-License-Identifier: Apache-2.0
 *
 * Where queries stand on the key axis when nobody says so. With q = 0 and a
 * slope of 1 the biased score is -|p - j|, or -inf where hidden: it shows p and
 * the mask exactly. */
#include "attn.h"

#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 80 };

typedef struct row {
    attn_causal causal;
    int64_t len_q, len_k, k_length; /* -1: no k_lengths */
    int64_t q_offset;               /* what it must be */
    int given;                      /* and is it given */
} row;

/* clang-format off */
static const row rows[] = {
    /* top left: 0 */
    {ATTN_CAUSAL_TOP_LEFT, 5, 5, -1, 0, 0},
    {ATTN_CAUSAL_TOP_LEFT, 5, 9, -1, 0, 0},
    {ATTN_CAUSAL_TOP_LEFT, 9, 5, 3, 0, 0},
    {ATTN_CAUSAL_TOP_LEFT, 5, 70, 66, 0, 0},
    /* bottom right: (k_length or len_k) - len_q */
    {ATTN_CAUSAL_BOTTOM_RIGHT, 5, 5, -1, 0, 0},
    {ATTN_CAUSAL_BOTTOM_RIGHT, 5, 9, -1, 4, 0},
    {ATTN_CAUSAL_BOTTOM_RIGHT, 9, 5, -1, -4, 0},
    {ATTN_CAUSAL_BOTTOM_RIGHT, 5, 9, 7, 2, 0},
    {ATTN_CAUSAL_BOTTOM_RIGHT, 5, 5, 3, -2, 0},
    {ATTN_CAUSAL_BOTTOM_RIGHT, 3, 70, 66, 63, 0},
    /* none: 0 where q and k are as long, also where a batch is padded */
    {ATTN_CAUSAL_NONE, 5, 5, -1, 0, 0},
    {ATTN_CAUSAL_NONE, 5, 5, 3, 0, 0},
    {ATTN_CAUSAL_NONE, 5, 5, 0, 0, 0},
    {ATTN_CAUSAL_NONE, 70, 70, 66, 0, 0},
    {ATTN_CAUSAL_NONE, 5, 9, -1, 4, 0},
    {ATTN_CAUSAL_NONE, 5, 9, 7, 2, 0},
    {ATTN_CAUSAL_NONE, 5, 9, 5, 0, 0},
    {ATTN_CAUSAL_NONE, 9, 5, -1, -4, 0},
    /* given: that, and all three causal words mean j <= p */
    {ATTN_CAUSAL_TOP_LEFT, 5, 9, -1, 3, 1},
    {ATTN_CAUSAL_BOTTOM_RIGHT, 5, 9, 7, -2, 1},
    {ATTN_CAUSAL_NONE, 5, 5, 3, 11, 1},
};
/* clang-format on */

static attn_input one_index(const int64_t *index)
{
    return attn_in_dense(index, ATTN_I64, 1, (int64_t[]){1});
}

static void biased_scores(const row *r, double *s)
{
    static const double zeros[MOST], slope[1] = {1};
    char *memory;
    attn_desc desc;
    attn_plan plan;
    attn_workspace need;
    attn_args args;
    attn_exec exec;

    attn_desc_init(&desc, ATTN_F64, 1, 1, 1, r->len_q, r->len_k, 1, 1);
    desc.causal = r->causal;
    desc.inputs = ATTN_WITH_ALIBI |
                  (r->k_length >= 0 ? ATTN_WITH_K_LENGTHS : 0) |
                  (r->given ? ATTN_WITH_Q_OFFSET : 0);
    attn_args_init(&args);
    args.q = attn_in_bhsd(zeros, ATTN_F64, 1, 1, r->len_q, 1);
    args.kv.k = attn_in_bhsd(zeros, ATTN_F64, 1, 1, r->len_k, 1);
    args.alibi_slopes = attn_in_dense(slope, ATTN_F64, 1, (int64_t[]){1});
    if (r->k_length >= 0)
        args.kv.k_lengths = one_index(&r->k_length);
    if (r->given)
        args.q_offset = one_index(&r->q_offset);
    assert_int_equal(attn_plan_init(&plan, &desc, NULL), ATTN_OK);
    assert_int_equal(attn_plan_workspace(&plan, ATTN_WEIGHTS, 1, &need, NULL),
                     ATTN_OK);
    memory = aligned_alloc(need.alignment, need.size);
    attn_exec_init(&exec);
    exec.workspace = memory;
    exec.workspace_size = need.size;
    assert_int_equal(attn_weights(&plan, &args, ATTN_STAGE_BIASED, NULL,
                                  attn_bhsd(s, ATTN_F64, 1, 1, r->len_q,
                                            r->len_k),
                                  &exec, NULL),
                     ATTN_OK);
    free(memory);
}

UNIT(queries_stand_where_the_rules_put_them)
{
    static double s[MOST * MOST];

    for (size_t n = 0; n < COUNT(rows); n++) {
        const row *r = &rows[n];
        const int64_t keys = r->k_length >= 0 ? r->k_length : r->len_k;

        biased_scores(r, s);
        for (int64_t i = 0; i < r->len_q; i++)
            for (int64_t j = 0; j < r->len_k; j++) {
                const int64_t p = i + r->q_offset;
                const int hidden =
                    j >= keys || (r->causal != ATTN_CAUSAL_NONE && j > p);
                const double want = hidden ? -(double)INFINITY
                                           : -fabs((double)(p - j));

                if (s[i * r->len_k + j] != want)
                    fail_msg("row %zu, s[%d, %d] is %g, must be %g", n,
                             (int)i, (int)j, s[i * r->len_k + j], want);
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_stand_where_the_rules_put_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
