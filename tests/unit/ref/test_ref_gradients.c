/* SPDX-License-Identifier: Apache-2.0
 *
 * Every gradient of every feature against central differences of the loss
 *
 *   L = sum(o d_o) + sum(lse dlse)
 *
 * in fp64. With D(h) = (8 (L(+h) - L(-h)) - (L(+2h) - L(-2h))) / 12h, which is
 * off by c h^4, the value is D(h/2) and its tolerance
 *
 *   |D(h) - D(h/2)|       15 times the truncation of D(h/2)
 *   + 6 noise / h         the rounding of L: D(h/2) divides by 6 h a sum of 18
 *                         weighted values, each off by up to `noise`
 *
 * with noise = u (4 (D + 4) S + 2 Lk + Dv + 20) sum of |terms of L|, S the
 * largest score (the bound of test_ref_wide.c, over all rows at once). It
 * covers the rounding of x + h too, which moves L by u |x dL/dx|. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "difference.h"
#include "ref_run.h"
#include "ref_table.h"
#include "unit.h"

#define SEED UINT64_C(20261130)
#define STEP 0x1p-7

typedef struct bench {
    const ref_case *c;
    ref_inputs in;
    double *o, *lse, *s;
    double noise;
} bench;

/* ------------------------------------------------------------------ loss */

static double loss(bench *b, double *size)
{
    const attn_ref_results results = {.o = b->o, .lse = b->lse};
    long double sum = 0, terms = 0;

    assert_int_equal(attn_ref_forward(NULL, &b->in.problem, b->in.q, b->in.k,
                                      b->in.v, &results),
                     ATTN_OK);
    for (int64_t n = 0; n < b->c->n_o; n++) {
        sum += (long double)b->o[n] * b->in.d_o[n];
        terms += fabsl((long double)b->o[n] * b->in.d_o[n]);
    }
    for (int64_t r = 0; b->in.dlse && r < b->c->rows; r++) {
        if (b->lse[r] == -INFINITY)
            continue; /* an empty row has no gradient */
        sum += (long double)b->lse[r] * b->in.dlse[r];
        terms += (1 + fabsl(b->lse[r])) * fabsl(b->in.dlse[r]);
    }
    if (size)
        *size = (double)terms;
    return (double)sum;
}

/* sum_c |q||k| scale and the bias: the largest over all pairs. */
static double largest_score(bench *b)
{
    double most = 0, largest_q = 0, largest_k = 0;

    for (int64_t n = 0; n < b->c->n_q; n++)
        largest_q = fmax(largest_q, fabs(b->in.q[n]));
    for (int64_t n = 0; n < b->c->n_k; n++)
        largest_k = fmax(largest_k, fabs(b->in.k[n]));
    most = fabs(b->c->scale) * (double)b->c->f.dim_qk * largest_q * largest_k;
    if (b->c->f.softcap > 0)
        most = fmin(most, b->c->f.softcap);
    for (int64_t n = 0; n < b->c->n_bias; n++) {
        if (isfinite(b->c->bias[n]))
            most = fmax(most, most + fabs(b->c->bias[n]));
    }
    return most;
}

static bench open_bench(const ref_case *c)
{
    bench b = {.c = c, .in = ref_inputs_open(c)};
    const ref_features *f = &c->f;
    double terms;

    b.o = calloc((size_t)c->n_o + 1, sizeof *b.o);
    b.lse = calloc((size_t)c->rows, sizeof *b.lse);
    loss(&b, &terms);
    b.noise = DBL_EPSILON / 2 * terms *
              (4 * (double)(f->dim_qk + 4) * largest_score(&b) +
               (double)(2 * f->len_k + f->dim_v) + 20);
    return b;
}

static void close_bench(bench *b)
{
    free(b->o);
    free(b->lse);
    ref_inputs_close(&b->in);
}

/* ----------------------------------------------------------- differences */

static double plain_loss(void *problem)
{
    return loss(problem, NULL);
}

typedef struct slope {
    double value, tolerance;
} slope;

static slope slope_of(bench *b, double *x)
{
    const double coarse = difference(plain_loss, b, x, STEP);
    const double fine = difference(plain_loss, b, x, STEP / 2);

    return (slope){fine, fabs(coarse - fine) + 6 * b->noise / STEP};
}

static bool agrees(slope s, double gradient)
{
    return fabs(s.value - gradient) <= s.tolerance;
}

/* ----------------------------------------------------------------- tests */

/* One kind of gradient: where its input lies, and what was computed. */
typedef struct gradient {
    const char *name;
    double *x;
    const long double *dx;
    int64_t n;
} gradient;

enum { KINDS = 6 };

static void list_gradients(const bench *b, const ref_outputs *out,
                           gradient *list)
{
    const ref_case *c = b->c;
    const gradient all[KINDS] = {
        {"dq", b->in.q, out->dq, c->n_q},
        {"dk", b->in.k, out->dk, c->n_k},
        {"dv", b->in.v, out->dv, c->n_v},
        {"dbias", b->in.bias, out->dbias, c->bias ? c->n_bias : 0},
        {"dslopes", b->in.slopes, out->dslopes, c->slopes ? c->n_slopes : 0},
        {"dsinks", b->in.sinks, out->dsinks, c->sinks ? c->f.heads_q : 0},
    };

    for (int kind = 0; kind < KINDS; kind++)
        list[kind] = all[kind];
}

/* How many elements of the gradient differ from the differences. */
static int64_t count_wrong(bench *b, const gradient *g, double change,
                           bool print)
{
    int64_t wrong = 0;

    for (int64_t n = 0; n < g->n; n++) {
        const double dx = (double)g->dx[n] * (1 + change);
        slope s;

        if (g->x[n] == -INFINITY) { /* a bias that hides: exactly 0 */
            wrong += g->dx[n] != 0;
            continue;
        }
        s = slope_of(b, &g->x[n]);
        if (agrees(s, dx))
            continue;
        wrong++;
        if (print)
            print_message("%s: %s[%lld] = %.17g, differences %.17g +- %.3g\n",
                          b->c->f.name, g->name, (long long)n, dx, s.value,
                          s.tolerance);
    }
    return wrong;
}

UNIT(every_gradient_is_the_slope_of_the_loss)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_case c = ref_case_open(&ref_table[n], SEED + n);
        bench b = open_bench(&c);
        ref_outputs out = ref_run(&c);
        gradient list[KINDS];

        list_gradients(&b, &out, list);
        for (int kind = 0; kind < KINDS; kind++)
            assert_int_equal(count_wrong(&b, &list[kind], 0, true), 0);
        ref_outputs_close(&out);
        close_bench(&b);
        ref_case_close(&c);
    }
}

/* The tolerance is small enough to see one part in a million. */
UNIT(a_gradient_off_by_a_millionth_is_rejected)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        ref_case c = ref_case_open(&ref_table[n], SEED + n);
        bench b = open_bench(&c);
        ref_outputs out = ref_run(&c);
        gradient list[KINDS];

        list_gradients(&b, &out, list);
        for (int kind = 0; kind < KINDS; kind++) {
            bool all_zero = true;

            for (int64_t x = 0; x < list[kind].n; x++)
                all_zero = all_zero && fabsl(list[kind].dx[x]) < 0.05L;
            if (!all_zero && count_wrong(&b, &list[kind], 1e-6, false) == 0)
                fail_msg("%s: %s", c.f.name, list[kind].name);
        }
        ref_outputs_close(&out);
        close_bench(&b);
        ref_case_close(&c);
    }
}

/* ------------------------------------------------------ wrong transposes */

/* delta, what a weight takes from the others, forgotten. */
static void without_delta(const attn_ref_problem *problem,
                          const unsigned char *visible, const double *p,
                          const double *lse, const double *dp,
                          const double *dlse, double *ds, double *dsinks)
{
    attn_ref_softmax_backward(problem, visible, p, lse, dp, dlse, ds, dsinks);
    for (int64_t r = 0; r < problem->batch * problem->heads_q * problem->len_q;
         r++) {
        for (int64_t j = 0; j < problem->len_k; j++) {
            const int64_t x = r * problem->len_k + j;
            ds[x] = p[x] * dp[x] + (dlse ? p[x] * dlse[r] : 0);
        }
    }
}

static void without_dlse(const attn_ref_problem *problem,
                         const unsigned char *visible, const double *p,
                         const double *lse, const double *dp,
                         const double *dlse, double *ds, double *dsinks)
{
    (void)dlse;
    attn_ref_softmax_backward(problem, visible, p, lse, dp, NULL, ds, dsinks);
}

/* The softcap's slope, and the scale, forgotten in turn. */
static void without_cap(const attn_ref_problem *problem, const double *q,
                        const double *k, const unsigned char *visible,
                        const double *ds, double *dq, double *dk, double *dbias,
                        double *dslopes)
{
    attn_ref_problem uncapped = *problem;

    uncapped.softcap = 0;
    attn_ref_scores_backward(&uncapped, q, k, visible, ds, dq, dk, dbias,
                             dslopes);
}

static void without_scale(const attn_ref_problem *problem, const double *q,
                          const double *k, const unsigned char *visible,
                          const double *ds, double *dq, double *dk,
                          double *dbias, double *dslopes)
{
    attn_ref_scores_backward(problem, q, k, visible, ds, dq, dk, dbias,
                             dslopes);
    for (int64_t n = 0; dk && n < problem->batch * problem->heads_kv *
                                      problem->len_k * problem->dim_qk;
         n++)
        dk[n] /= problem->scale;
}

static void without_dropout(const attn_ref_problem *problem,
                            const unsigned char *visible, const double *p,
                            const double *v, const double *d_o, double *dp,
                            double *dv)
{
    attn_ref_problem all_kept = *problem;

    all_kept.dropout = NULL;
    attn_ref_output_backward(&all_kept, visible, p, v, d_o, dp, dv);
}

static const ref_features *feature(const char *name)
{
    for (size_t n = 0; n < COUNT(ref_table); n++) {
        if (strcmp(ref_table[n].name, name) == 0)
            return &ref_table[n];
    }
    fail_msg("no case %s", name);
    return NULL;
}

UNIT(a_forgotten_factor_is_rejected)
{
    attn_ref_stages right;
    attn_ref_stages_init(&right);
    attn_ref_stages delta = right, dlse = right, cap = right, scale = right,
                    dropout = right;
    delta.softmax_backward = without_delta;
    dlse.softmax_backward = without_dlse;
    cap.scores_backward = without_cap;
    scale.scores_backward = without_scale;
    dropout.output_backward = without_dropout;
    const struct {
        const char *on;
        const attn_ref_stages *stages;
    } rows[] = {{"plain", &delta},      {"dlse", &dlse},
                {"softcap", &cap},      {"gqa", &scale},
                {"dropout", &dropout},  {"everything", &delta},
                {"everything", &dlse},  {"everything", &cap},
                {"everything", &scale}, {"everything", &dropout}};

    for (size_t n = 0; n < COUNT(rows); n++) {
        ref_case c = ref_case_open(feature(rows[n].on), SEED);
        bench b = open_bench(&c);
        ref_outputs out = ref_run_with(rows[n].stages, &c, &b.in);
        gradient list[KINDS];
        int64_t wrong = 0;

        list_gradients(&b, &out, list);
        for (int kind = 0; kind < KINDS; kind++)
            wrong += count_wrong(&b, &list[kind], 0, false);
        if (wrong == 0)
            fail_msg("mutant %d passes", (int)n);
        ref_outputs_close(&out);
        close_bench(&b);
        ref_case_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(a_gradient_off_by_a_millionth_is_rejected),
        cmocka_unit_test(a_forgotten_factor_is_rejected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
