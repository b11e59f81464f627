/* SPDX-License-Identifier: Apache-2.0
 *
 * Hidden means unread, pair by pair: a NaN reaches exactly the rows that see
 * it, and the gradients that those rows touch. Everything else keeps its
 * bits, forward and backward. */
#include <math.h>
#include <stdlib.h>

#include "ref_run.h"
#include "ref_table.h"
#include "unit.h"

#define SEED UINT64_C(915965594)

static int64_t kv_group(const ref_case *c, int64_t r)
{
    const int64_t h = r / c->f.len_q % c->f.heads_q;
    const int64_t b = r / c->f.len_q / c->f.heads_q;

    return b * c->f.heads_kv + h / (c->f.heads_q / c->f.heads_kv);
}

/* Which row of k and v the pair (r, j) reads. */
static int64_t key_of(const ref_case *c, int64_t r, int64_t j)
{
    return kv_group(c, r) * c->f.len_k + j;
}

static void ruin(double *x, int64_t row, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[row * n + i] = NAN;
}

/* --------------------------------------------------- what was contaminated */

typedef struct marks {
    unsigned char *rows; /* queries whose results may change */
    unsigned char *keys; /* rows of dk, dv that may change */
} marks;

static marks open_marks(const ref_case *c)
{
    return (marks){
        calloc((size_t)c->rows + 1, 1),
        calloc((size_t)(c->f.batch * c->f.heads_kv * c->f.len_k) + 1, 1)};
}

static void close_marks(marks *m)
{
    free(m->rows);
    free(m->keys);
}

/* A marked row touches the gradient of every key that it sees. */
static void spread_to_keys(const ref_case *c, const unsigned char *visible,
                           marks *m)
{
    for (int64_t x = 0; x < c->pairs; x++) {
        const int64_t r = x / c->f.len_k;
        if (m->rows[r] && visible[x])
            m->keys[key_of(c, r, x % c->f.len_k)] = 1;
    }
}

/* Row `row` of an array of n columns: unchanged, or all NaN. */
static void check_row(const long double *before, const long double *after,
                      int64_t row, int64_t n, bool marked)
{
    for (int64_t x = row * n; x < (row + 1) * n; x++) {
        if (marked)
            assert_true(isnan(after[x]));
        else
            assert_true(after[x] == before[x]);
    }
}

static void check_gradients(const ref_case *c, const ref_outputs *before,
                            const ref_outputs *after, const marks *m)
{
    for (int64_t r = 0; r < c->rows; r++)
        check_row(before->dq, after->dq, r, c->f.dim_qk, m->rows[r]);
    for (int64_t k = 0; k < c->f.batch * c->f.heads_kv * c->f.len_k; k++)
        check_row(before->dk, after->dk, k, c->f.dim_qk, m->keys[k]);
}

/* ------------------------------------------------------------- unattended */

/* Ruin every key that no query sees, and q, d_o and dlse of every query that
 * sees no key: nothing at all changes. */
UNIT(what_nobody_sees_changes_nothing)
{
    int64_t keys = 0, queries = 0;

    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_case c = ref_case_open(&ref_table[n], SEED + n);
        ref_outputs before = ref_run(&c), after;
        marks seen = open_marks(&c);

        for (int64_t x = 0; x < c.pairs; x++) {
            if (before.visible[x]) {
                seen.rows[x / c.f.len_k] = 1;
                seen.keys[key_of(&c, x / c.f.len_k, x % c.f.len_k)] = 1;
            }
        }
        for (int64_t k = 0; k < c.f.batch * c.f.heads_kv * c.f.len_k; k++) {
            if (seen.keys[k])
                continue;
            keys++;
            ruin(c.k, k, c.f.dim_qk);
            ruin(c.v, k, c.f.dim_v);
        }
        for (int64_t r = 0; r < c.rows; r++) {
            if (seen.rows[r])
                continue;
            queries++;
            ruin(c.q, r, c.f.dim_qk);
            ruin(c.d_o, r, c.f.dim_v);
            if (c.dlse && !c.sinks) /* with a sink lse is sink: it counts */
                c.dlse[r] = NAN;
        }
        after = ref_run(&c);
        for (int64_t x = 0; x < c.n_o; x++)
            assert_true(before.o[x] == after.o[x]);
        for (int64_t x = 0; x < c.pairs; x++)
            assert_true(before.weights[x] == after.weights[x]);
        for (int64_t r = 0; r < c.rows; r++)
            assert_true(before.lse[r] == after.lse[r] &&
                        before.entropy[r] == after.entropy[r]);
        for (int64_t x = 0; x < c.n_q; x++)
            assert_true(before.dq[x] == after.dq[x]);
        for (int64_t x = 0; x < c.n_k; x++)
            assert_true(before.dk[x] == after.dk[x]);
        for (int64_t x = 0; x < c.n_v; x++)
            assert_true(before.dv[x] == after.dv[x]);
        for (int64_t x = 0; c.bias && x < c.n_bias; x++)
            assert_true(before.dbias[x] == after.dbias[x]);
        for (int64_t x = 0; c.slopes && x < c.n_slopes; x++)
            assert_true(before.dslopes[x] == after.dslopes[x]);
        for (int64_t h = 0; c.sinks && h < c.f.heads_q; h++)
            assert_true(before.dsinks[h] == after.dsinks[h]);
        close_marks(&seen);
        ref_outputs_close(&before);
        ref_outputs_close(&after);
        ref_case_close(&c);
    }
    assert_true(keys > 20 && queries > 10); /* the table has enough of them */
}

/* ----------------------------------------------------------- pair by pair */

/* Half of the features hide something for some rows only; each of their keys
 * in turn. */
UNIT(a_nan_key_reaches_exactly_the_rows_that_see_it)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        const ref_features *f = &ref_table[n];
        const int64_t all = f->batch * f->heads_kv * f->len_k;

        for (int64_t k = 0; f->dim_qk > 0 && k < all; k++) {
            ref_case c = ref_case_open(f, SEED + n);
            ref_outputs before = ref_run(&c), after;
            marks m = open_marks(&c);

            for (int64_t x = 0; x < c.pairs; x++) {
                if (before.visible[x] &&
                    key_of(&c, x / f->len_k, x % f->len_k) == k)
                    m.rows[x / f->len_k] = 1;
            }
            spread_to_keys(&c, before.visible, &m);
            ruin(c.k, k, f->dim_qk);
            after = ref_run(&c);
            for (int64_t r = 0; r < c.rows; r++) {
                check_row(before.o, after.o, r, f->dim_v, m.rows[r]);
                check_row(before.lse, after.lse, r, 1, m.rows[r]);
                check_row(before.entropy, after.entropy, r, 1, m.rows[r]);
            }
            for (int64_t j = 0; j < all; j++)
                check_row(before.dv, after.dv, j, f->dim_v, m.keys[j]);
            check_gradients(&c, &before, &after, &m);
            close_marks(&m);
            ref_outputs_close(&before);
            ref_outputs_close(&after);
            ref_case_close(&c);
        }
    }
}

/* A NaN value leaves weights and lse alone. Its dv does not depend on it. */
UNIT(a_nan_value_reaches_exactly_the_rows_that_see_it)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        const ref_features *f = &ref_table[n];
        const int64_t all = f->batch * f->heads_kv * f->len_k;

        for (int64_t k = 0; f->dim_v > 0 && k < all; k++) {
            ref_case c = ref_case_open(f, SEED + n);
            ref_outputs before = ref_run(&c), after;
            marks m = open_marks(&c);

            for (int64_t x = 0; x < c.pairs; x++) {
                if (before.visible[x] &&
                    key_of(&c, x / f->len_k, x % f->len_k) == k)
                    m.rows[x / f->len_k] = 1;
            }
            spread_to_keys(&c, before.visible, &m);
            ruin(c.v, k, f->dim_v);
            after = ref_run(&c);
            for (int64_t r = 0; r < c.rows; r++) {
                check_row(before.o, after.o, r, f->dim_v, m.rows[r]);
                check_row(before.weights, after.weights, r, f->len_k, false);
                check_row(before.lse, after.lse, r, 1, false);
            }
            for (int64_t j = 0; j < all; j++)
                check_row(before.dv, after.dv, j, f->dim_v, false);
            check_gradients(&c, &before, &after, &m);
            close_marks(&m);
            ref_outputs_close(&before);
            ref_outputs_close(&after);
            ref_case_close(&c);
        }
    }
}

/* A NaN gradient of one row: its own dq, and the keys that it sees. */
UNIT(a_nan_gradient_reaches_exactly_the_keys_of_its_row)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        const ref_features *f = &ref_table[n];
        const int64_t rows = f->batch * f->heads_q * f->len_q;
        const int64_t all = f->batch * f->heads_kv * f->len_k;

        for (int64_t r = 0; f->dim_v > 0 && r < rows; r++) {
            ref_case c = ref_case_open(f, SEED + n);
            ref_outputs before = ref_run(&c), after;
            marks m = open_marks(&c);

            for (int64_t j = 0; j < f->len_k; j++)
                m.rows[r] |= before.visible[r * f->len_k + j];
            spread_to_keys(&c, before.visible, &m);
            ruin(c.d_o, r, f->dim_v);
            after = ref_run(&c);
            check_gradients(&c, &before, &after, &m);
            for (int64_t j = 0; j < all; j++)
                check_row(before.dv, after.dv, j, f->dim_v, m.keys[j]);
            close_marks(&m);
            ref_outputs_close(&before);
            ref_outputs_close(&after);
            ref_case_close(&c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_sees_changes_nothing),
        cmocka_unit_test(a_nan_key_reaches_exactly_the_rows_that_see_it),
        cmocka_unit_test(a_nan_value_reaches_exactly_the_rows_that_see_it),
        cmocka_unit_test(a_nan_gradient_reaches_exactly_the_keys_of_its_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
