/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_layer_forward: projections, attention, projection. The first thing that
 * the caller's memory sees is attention's outputs, and attention checks before
 * it writes. */
#include "core/element.h"
#include "layer/layer_steps.h"

#include <string.h>

void attn_layer_args_init(attn_layer_args *args)
{
    memset(args, 0, sizeof *args);
    args->size = sizeof *args;
    attn_args_init(&args->attention);
}

/* Element for element, (batch, heads, len, dim). */
static void copy(const attn_tensor *from, const attn_tensor *to)
{
    const int64_t *n = from->shape, *in = from->stride, *out = to->stride;

    if (!attn__asked(to))
        return;
    for (int64_t b = 0; b < n[0]; b++)
        for (int64_t h = 0; h < n[1]; h++)
            for (int64_t i = 0; i < n[2]; i++)
                for (int64_t c = 0; c < n[3]; c++)
                    attn__write(to->data, to->dtype,
                                b * out[0] + h * out[1] + i * out[2] +
                                    c * out[3],
                                attn__read(from->data, from->dtype,
                                           b * in[0] + h * in[1] +
                                               i * in[2] + c * in[3]));
}

attn_status attn_layer_forward(const attn_layer_plan *plan,
                               const attn_layer_args *args,
                               const attn_exec *exec, attn_diag *diag)
{
    attn__layer_plan body;
    attn__layer_run run;
    attn_args attention;
    attn_tensor o;

    ATTN__TRY(attn__layer_start(plan, args, exec, ATTN_FORWARD, &body, &run,
                                diag));
    o = run.memory.o;
    if (body.desc.dim_y == 0 && attn__asked(&args->y))
        o = attn__layer_heads(args->y, body.desc.attention.heads_q,
                              body.desc.attention.dim_v);
    attention = args->attention;
    attention.o = o;
    ATTN__TRY(attn__layer_attend(&run, &attention, diag));
    copy(&run.memory.q, &args->q);
    copy(&run.memory.k, &args->k);
    copy(&run.memory.v, &args->v);
    copy(&o, &args->o);
    if (body.desc.dim_y > 0 && attn__asked(&args->y))
        ATTN__TRY(attn__layer_gemm(&run, attn_in(attn__layer_flat(o)),
                                   args->w_o, args->b_o, args->y, diag));
    return attn__ok(diag);
}
