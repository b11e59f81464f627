/* SPDX-License-Identifier: Apache-2.0
 *
 * The lesson in words, backwards: from dO to dQ, dK and dV. */
#include <math.h>
#include <stdio.h>

#include "lesson.h"

/* Whether rows of dS sum to 0, up to rounding of their own sizes. */
static bool rows_cancel(const cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    for (int64_t i = 0; i < p->len_q; i++) {
        double sum = 0, size = 0;

        for (int64_t j = 0; j < p->len_k; j++)
            if (s->visible[i * p->len_k + j]) {
                const double at = s->p[i * p->len_k + j] *
                                  s->dp[i * p->len_k + j];

                sum += s->ds[i * p->len_k + j];
                size += fabs(at);
            }
        if (!(fabs(sum) <= size * 0x1p-40))
            return false;
    }
    return true;
}

static void tell_loss(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;
    double loss = 0;

    cli_tell_step(s, "Backward: how the loss changes with each number");
    if (s->layer) {
        cli_tell_layer_loss(s);
        return;
    }
    if (s->has_do) {
        cli_tell_matrix("dO", "the gradient of the loss by O, given", s->d_o,
                        p->len_q, p->dim_v, NULL);
        return;
    }
    for (int64_t i = 0; i < p->len_q * p->dim_v; i++)
        loss += 0.5 * s->o[i] * s->o[i];
    printf("   No do is given, so the loss is half the square of O, %.6g; its\n"
           "   gradient by O is O itself.\n", loss);
    cli_tell_matrix("dO", "the gradient of the loss by O", s->d_o, p->len_q,
                    p->dim_v, NULL);
}

/* The softmax of one row of a small head. */
static void tell_row(const cli_lesson *s, int64_t i)
{
    const int64_t m = s->problem.len_k;
    double mean = 0;

    for (int64_t j = 0; j < m; j++)
        if (s->visible[i * m + j])
            mean += s->p[i * m + j] * s->dp[i * m + j];
    printf("   row %lld: sum_j A dA = %.4f%s\n", (long long)i, mean,
           s->dlse ? ", less dlse" : "");
}

static void tell_softmax(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    cli_tell_step(s, "Back through the softmax");
    puts("   dS = A (dA - sum_j A dA): raising one score takes weight from all"
         " others of\n   its row, so a key gains only if it was worth more than"
         " the row's average.");
    if (cli_is_small(p->len_q, p->len_k))
        for (int64_t i = 0; i < p->len_q; i++)
            if (!s->one_row || i == s->row)
                tell_row(s, i);
    cli_tell_matrix("dS", "the gradient by the scores, 0 at hidden pairs",
                    s->ds, p->len_q, p->len_k, s->visible);
    if (s->dsinks)
        printf("   dsink = %.6g, the sum over rows of the sink's weight times\n"
               "   0 - sum_j A dA: it has no value, so its dA is 0.\n",
               *s->dsinks);
    if (!s->dlse && !s->sink && rows_cancel(s))
        puts("   Each row of dS sums to 0, up to rounding: adding a constant to"
             " all scores of\n   a row changes nothing.");
}

void cli_tell_backward(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;

    tell_loss(s);
    cli_tell_step(s, "Back through O = A V");
    cli_tell_matrix("dV = A^T dO", "each value gets the dO of who looked at it",
                    s->dv, p->len_k, p->dim_v, NULL);
    cli_tell_matrix("dA = dO V^T", "a weight matters as its value agrees with "
                    "dO", s->dp, p->len_q, p->len_k, s->visible);
    if (s->dropout)
        puts("   Both with the weights as dropout left them.");
    tell_softmax(s);
    cli_tell_step(s, "Back through S = scale Q K^T");
    if (s->dbias)
        puts("   dBias is dS itself; a bias that heads or batches share adds up"
             " theirs.");
    if (s->dslopes)
        printf("   dslope = -sum_ij dS |p - j| = %.6g.\n", *s->dslopes);
    if (p->softcap > 0)
        puts("   First dS is multiplied by the slope of the softcap, "
             "1 - tanh^2.");
    cli_tell_matrix("dQ = scale dS K", "what each query should change", s->dq,
                    p->len_q, p->dim_qk, NULL);
    cli_tell_matrix("dK = scale dS^T Q", "what each key should change", s->dk,
                    p->len_k, p->dim_qk, NULL);
    if (s->options->rope.given)
        puts("   These are by Q and K after RoPE; its transpose turns them "
             "back.");
    if (s->n_kv != s->n_heads)
        puts("   dK and dV are this head's part; heads that share K and V add "
             "up theirs.");
    if (s->layer)
        cli_tell_layer_gradients(s);
}
