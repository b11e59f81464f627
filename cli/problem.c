/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling attn_desc and the inputs of attn_args. What the library checks is
 * left to it; here is what it can't see: ranks, missing arrays, "causal"
 * without a corner. */
#include "problem.h"

#include <string.h>

const char *cli_type_of(const attn_array *a)
{
    return a->dtype == ATTN_NONE ? "text" : attn_dtype_name(a->dtype);
}

/* ----------------------------------------------------------- q, k and v */

static int check_type(const attn_array *a, const attn_array *q)
{
    const bool is_real = a->dtype >= ATTN_F64 && a->dtype <= ATTN_F16;

    if (!is_real)
        return cli_fail(CLI_USAGE, "%s: has type %s; f64, f32, bf16 and f16 "
                        "are computed%s", a->name, cli_type_of(a),
                        a->dtype == ATTN_NONE ? "" : " (--dtype converts)");
    if (a->dtype != q->dtype)
        return cli_fail(CLI_USAGE, "%s: has type %s, but q has %s (--dtype "
                        "makes them agree)", a->name, cli_type_of(a),
                        cli_type_of(q));
    return CLI_GO;
}

static int take_main(cli_problem *p, const char *name, attn_array **to)
{
    attn_array *a = cli_input(p->inputs, name);
    attn_diag diag;

    if (!a)
        return cli_fail(CLI_USAGE, "%s: is missing; give a file that holds it, "
                        "or %s=FILE:KEY", name, name);
    if (p->options->dtype != ATTN_NONE &&
        attn_array_convert(a, p->options->dtype, &diag) != ATTN_OK)
        return cli_refused(&diag);
    *to = a;
    return check_type(a, p->q);
}

static int check_rank(const cli_problem *p, const attn_array *a)
{
    if (p->packed && a->rank != 3)
        return cli_fail(CLI_USAGE, "%s: is %d-D; packed sequences are 3-D, "
                        "(total, heads, dim)", a->name, (int)a->rank);
    if (a->rank < 2 || a->rank > 4)
        return cli_fail(CLI_USAGE, "%s: is %d-D; it must be 2-D (L, D), 3-D "
                        "(H, L, D) or 4-D (B, H, L, D)", a->name,
                        (int)a->rank);
    if (a->rank != p->q->rank)
        return cli_fail(CLI_USAGE, "%s: is %d-D, but q is %d-D", a->name,
                        (int)a->rank, (int)p->q->rank);
    return CLI_GO;
}

attn_input cli_view(const cli_problem *p, const attn_array *a)
{
    const int64_t *s = a->shape;
    const int64_t batch = a->rank == 4 ? s[0] : 1;
    const int64_t outer = a->rank > 2 ? s[a->rank - 3] : 1;
    const int64_t inner = s[a->rank - 2], dim = s[a->rank - 1];

    if (p->packed)
        return attn_in_thd(a->data, a->dtype, s[0], s[1], s[2]);
    if (p->options->bshd && a->rank > 2)
        return attn_in_bshd(a->data, a->dtype, batch, inner, outer, dim);
    return attn_in_bhsd(a->data, a->dtype, batch, outer, inner, dim);
}

static int take_qkv(cli_problem *p)
{
    attn_array *first = cli_input(p->inputs, "q");
    int code;

    p->q = first; /* the other two are compared with it */
    code = take_main(p, "q", &p->q);
    if (code == CLI_GO)
        code = take_main(p, "k", &p->k);
    if (code == CLI_GO)
        code = take_main(p, "v", &p->v);
    if (code == CLI_GO)
        code = check_rank(p, p->q);
    if (code == CLI_GO)
        code = check_rank(p, p->k);
    return code == CLI_GO ? check_rank(p, p->v) : code;
}

/* ------------------------------------------------------- optional inputs */

/* `name` as it is; scalars count as one element of an axis. */
static int take_input(const cli_problem *p, const char *name, attn_input *to)
{
    const attn_array *a = cli_input(p->inputs, name);
    const int64_t one = 1;

    if (!a)
        return CLI_GO;
    if (a->dtype == ATTN_NONE)
        return cli_fail(CLI_USAGE, "%s: holds text", name);
    if (a->rank > 4)
        return cli_fail(CLI_USAGE, "%s: is %d-D; at most 4-D is legal", name,
                        (int)a->rank);
    *to = a->rank == 0 ? attn_in_dense(a->data, a->dtype, 1, &one)
                       : attn_in_dense(a->data, a->dtype, a->rank, a->shape);
    return CLI_GO;
}

/* Reals that the library takes as f64, f32 or q's type: 16-bit ones of
 * another type than q's are widened, which is exact. */
static int take_real(const cli_problem *p, const char *name, attn_input *to)
{
    attn_array *a = cli_input(p->inputs, name);
    attn_diag diag;

    if (a && a->dtype != p->desc.dtype &&
        (a->dtype == ATTN_BF16 || a->dtype == ATTN_F16) &&
        attn_array_convert(a, ATTN_F32, &diag) != ATTN_OK)
        return cli_refused(&diag);
    return take_input(p, name, to);
}

static void announce(attn_desc *desc, const attn_input *given, uint32_t bit)
{
    if (given->dtype != ATTN_NONE)
        desc->inputs |= bit;
}

/* What a mask means is easily mistaken; so this says it. */
static int take_mask(const cli_problem *p, attn_input *to)
{
    const attn_array *a = cli_input(p->inputs, "mask");

    if (a && a->dtype != ATTN_BOOL)
        return cli_fail(CLI_USAGE, "mask: has type %s; it must be bool, true = "
                        "attend (what is added to the scores is the bias)",
                        cli_type_of(a));
    return take_input(p, "mask", to);
}

int cli_take_inputs(cli_problem *p)
{
    attn_args *args = &p->args;

    if (take_mask(p, &args->mask) != CLI_GO ||
        take_real(p, "bias", &args->bias) != CLI_GO ||
        take_real(p, "alibi_slopes", &args->alibi_slopes) != CLI_GO ||
        take_real(p, "sinks", &args->sinks) != CLI_GO ||
        take_input(p, "k_lengths", &args->kv.k_lengths) != CLI_GO ||
        take_input(p, "q_offset", &args->q_offset) != CLI_GO ||
        take_input(p, "cu_seqlens_q", &args->cu_seqlens_q) != CLI_GO ||
        take_input(p, "cu_seqlens_k", &args->cu_seqlens_k) != CLI_GO)
        return CLI_USAGE;
    announce(&p->desc, &args->mask, ATTN_WITH_MASK);
    announce(&p->desc, &args->bias, ATTN_WITH_BIAS);
    announce(&p->desc, &args->alibi_slopes, ATTN_WITH_ALIBI);
    announce(&p->desc, &args->sinks, ATTN_WITH_SINKS);
    announce(&p->desc, &args->kv.k_lengths, ATTN_WITH_K_LENGTHS);
    announce(&p->desc, &args->q_offset, ATTN_WITH_Q_OFFSET);
    announce(&p->desc, &args->cu_seqlens_q, ATTN_WITH_VARLEN);
    return CLI_GO;
}

/* ------------------------------------------------------------ descriptor */

void cli_apply_options(cli_problem *p)
{
    const cli_attention *o = p->options;
    attn_desc *d = &p->desc;

    if (o->has_scale)
        d->scale = o->scale;
    d->softcap = o->softcap;
    d->window_left = o->window_left;
    d->window_right = o->window_right;
    d->empty_rows = o->empty_rows;
    d->precision = o->precision;
    d->dropout_p = o->dropout_p;
    p->args.seed = o->seed;
    p->args.offset = o->offset;
}

static void describe(cli_problem *p)
{
    const attn_input q = cli_view(p, p->q), k = cli_view(p, p->k);
    const attn_input v = cli_view(p, p->v);
    attn_desc *d = &p->desc;

    if (p->packed) {
        const attn_array *cu_q = cli_input(p->inputs, "cu_seqlens_q");
        const attn_array *cu_k = cli_input(p->inputs, "cu_seqlens_k");

        attn_desc_init(d, p->q->dtype, cu_q->count - 1, q.shape[1], k.shape[1],
                       cli_longest(cu_q), cli_longest(cu_k), q.shape[2],
                       v.shape[2]);
        d->total_q = q.shape[0];
    } else {
        attn_desc_init(d, p->q->dtype, q.shape[0], q.shape[1], k.shape[1],
                       q.shape[2], k.shape[2], q.shape[3], v.shape[3]);
    }
    p->dropped = p->packed ? 0 : 4 - p->q->rank;
    p->args.q = q;
    p->args.kv.k = k;
    p->args.kv.v = v;
    cli_apply_options(p);
}

/* "causal" alone is the diagonal of a square, or j <= i + q_offset. */
int cli_choose_causal(cli_problem *p)
{
    int64_t len_q, len_k;

    switch (p->options->causal) {
    case CLI_CAUSAL_NONE:
        return CLI_GO;
    case CLI_CAUSAL_BOTTOM_RIGHT:
        p->desc.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
        return CLI_GO;
    case CLI_CAUSAL_PLAIN:
        if (!cli_input(p->inputs, "q_offset") &&
            !cli_is_square(p, &len_q, &len_k))
            return cli_fail(CLI_USAGE, "--causal: %lld queries and %lld keys "
                            "leave two meanings; say --causal=top_left or "
                            "--causal=bottom_right", (long long)len_q,
                            (long long)len_k);
        break;
    case CLI_CAUSAL_TOP_LEFT:
        break;
    }
    p->desc.causal = ATTN_CAUSAL_TOP_LEFT;
    return CLI_GO;
}

int cli_problem_init(cli_problem *p, const cli_inputs *inputs,
                     const cli_attention *options)
{
    int code;

    memset(p, 0, sizeof *p);
    p->inputs = inputs;
    p->options = options;
    attn_args_init(&p->args);
    code = cli_check_packed(p);
    if (code == CLI_GO)
        code = take_qkv(p);
    if (code != CLI_GO)
        return code;
    describe(p);
    code = cli_take_inputs(p);
    if (code == CLI_GO)
        code = cli_check_sequences(p);
    return code == CLI_GO ? cli_choose_causal(p) : code;
}

void cli_problem_free(cli_problem *p)
{
    for (int i = 0; i < p->n_outputs; i++)
        attn_array_free(&p->outputs[i]);
    p->n_outputs = 0;
}
