/* SPDX-License-Identifier: Apache-2.0
 *
 * The lesson in words, around the heads: from X to Q, K and V, from the heads'
 * outputs to Y, and the same way backwards. */
#include <stdio.h>

#include "lesson.h"

/* A part, if there is one. */
static void tell_part(const cli_lesson *s, const char *name, const char *title,
                      const char *meaning)
{
    const cli_part *part = cli_part_of(s, name);

    if (part)
        cli_tell_matrix(title, meaning, part->x, part->rows, part->columns,
                        NULL);
}

void cli_tell_layer_inputs(cli_lesson *s)
{
    const attn_ref_problem *p = &s->problem;
    const bool is_cross = s->layer->x_kv != NULL;
    const bool has_bias = cli_part_of(s, "b_q") != NULL;
    const char *from = is_cross ? "X_kv" : "X";

    cli_tell_step(s, "Inputs");
    printf("   %lld tokens look at %s. All numbers are fp64.\n",
           (long long)p->len_q, is_cross ? "those of X_kv" : "each other");
    tell_part(s, "x", "X", "a row for each token");
    tell_part(s, "x_kv", "X_kv", "a row for each token that is looked at");
    cli_tell_step(s, "Projections: what a token looks for, offers, and gives");
    printf("   Q = X W_Q%s, K = %s W_K%s, V = %s W_V%s.\n   A head has columns "
           "of its own in the weights: %lld to %lld of W_Q here.\n",
           has_bias ? " + b_Q" : "", from,
           cli_part_of(s, "b_k") ? " + b_K" : "", from,
           cli_part_of(s, "b_v") ? " + b_V" : "",
           (long long)(s->head * p->dim_qk),
           (long long)((s->head + 1) * p->dim_qk - 1));
    tell_part(s, "w_q", "W_Q", "this head's columns");
    tell_part(s, "w_k", "W_K", "the same of the keys");
    tell_part(s, "w_v", "W_V", "and of the values");
    tell_part(s, "b_q", "b_Q", "is added to every row");
    tell_part(s, "b_k", "b_K", "is added to every row");
    tell_part(s, "b_v", "b_V", "is added to every row");
    if (s->layer->desc.qk_norm)
        puts("   Then each row of Q and K is divided by its root mean square "
             "and multiplied by\n   a gain (QK-norm).");
    if (s->layer->desc.rotary)
        puts("   Then RoPE turns the rows of Q and K by their places.");
    cli_tell_qkv(s);
}

void cli_tell_layer_output(cli_lesson *s)
{
    const int64_t dim = s->problem.dim_v;

    cli_tell_step(s, "The layer: heads side by side");
    printf("   Each of the %lld heads has made %lld numbers a token; side by "
           "side they are %lld.\n", (long long)s->n_heads, (long long)dim,
           (long long)(s->n_heads * dim));
    if (!cli_part_of(s, "w_o")) {
        tell_part(s, "y", "Y", "this head's columns; there is no W_O");
        return;
    }
    printf("   W_O mixes them: Y = O W_O%s, which is a sum over heads.\n",
           cli_part_of(s, "b_o") ? " + b_O" : "");
    tell_part(s, "w_o", "W_O", "this head's rows");
    tell_part(s, "share", "O W_O", "what this head adds to Y");
    tell_part(s, "b_o", "b_O", "is added to every row");
    tell_part(s, "y", "Y", "the output of the layer, all heads");
}

/* -------------------------------------------------------------- backwards */

static double half_square(const attn_array *y)
{
    double loss = 0;

    for (int64_t i = 0; i < y->count; i++)
        loss += 0.5 * attn_array_value(y, i) * attn_array_value(y, i);
    return loss;
}

void cli_tell_layer_loss(cli_lesson *s)
{
    if (!s->has_do)
        printf("   No dy is given, so the loss is half the square of Y, %.6g; "
               "its gradient by Y\n   is Y itself.\n",
               half_square(cli_output(s->layer->p, "y")));
    tell_part(s, "dy", "dY", s->has_do ? "the gradient of the loss by Y, given"
                                       : "the gradient of the loss by Y");
    cli_tell_matrix(cli_part_of(s, "w_o") ? "dO = dY W_O^T" : "dO = dY",
                    "what reaches this head's output", s->d_o,
                    s->problem.len_q, s->problem.dim_v, NULL);
    tell_part(s, "dw_o", "dW_O = O^T dY", "this head's rows");
}

void cli_tell_layer_gradients(cli_lesson *s)
{
    const bool is_cross = s->layer->x_kv != NULL;
    const bool turned = s->layer->desc.rotary || s->layer->desc.qk_norm;

    cli_tell_step(s, "Back through the projections");
    if (turned)
        printf("   First dQ and dK go back through %s%s%s.\n",
               s->layer->desc.rotary ? "RoPE" : "",
               s->layer->desc.rotary && s->layer->desc.qk_norm ? " and " : "",
               s->layer->desc.qk_norm ? "the norm" : "");
    tell_part(s, "dw_q", "dW_Q = X^T dQ", "this head's columns");
    tell_part(s, "dw_k", is_cross ? "dW_K = X_kv^T dK" : "dW_K = X^T dK",
              "the same of the keys");
    tell_part(s, "dw_v", is_cross ? "dW_V = X_kv^T dV" : "dW_V = X^T dV",
              "and of the values");
    tell_part(s, "db_q", "db_Q", "the sum of the rows of dQ");
    tell_part(s, "db_k", "db_K", "the sum of the rows of dK");
    tell_part(s, "db_v", "db_V", "the sum of the rows of dV");
    tell_part(s, "dx", "dX", is_cross ? "what comes back through Q, from all "
                                        "heads"
                                      : "what comes back through Q, K and V, "
                                        "from all heads");
    tell_part(s, "dx_kv", "dX_kv", "what comes back through K and V");
}
