/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX Attention, opset 23 to 25. What our contract lacks is done here: the
 * past is put before K and V, a short mask is padded with what hides, a float
 * mask is our bias, and the query's position is counted as ONNX does. */
#include <math.h>
#include <string.h>

#include "onnx.h"

static const char KNOWN_ATTRIBUTES[] =
    "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap "
    "softmax_precision left_window_size right_window_size";
static const char KNOWN_INPUTS[] =
    "Q K V attn_mask past_key past_value nonpad_kv_seqlen";
static const char KNOWN_OUTPUTS[] =
    "Y present_key present_value qk_matmul_output";

/* ------------------------------------------------------------------ past */

/* `past` before `a`, along the sequence. */
static const array *concatenate(test_case *c, const array *past, const array *a)
{
    array *out = take(c, 1, sizeof *out);
    const int64_t groups = a->shape[0] * a->shape[1], dim = a->shape[3];
    const int64_t before = past ? past->shape[2] * dim : 0;
    const int64_t after = a->shape[2] * dim;

    if (!past)
        return a;
    if (past->rank != 4 || past->shape[0] != a->shape[0] ||
        past->shape[1] != a->shape[1] || past->shape[3] != dim)
        refuse(c, "%s does not fit %s", past->name, a->name);
    *out = *a;
    out->shape[2] += past->shape[2];
    out->count = groups * (before + after);
    out->x = take_reals(c, out->count);
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t n = 0; n < before + after; n++)
            out->x[g * (before + after) + n] =
                n < before ? past->x[g * before + n]
                           : a->x[g * after + n - before];
    }
    return out;
}

/* ------------------------------------------------------------------ mask */

/* To len_k keys, the new ones hidden: false, or -inf. */
static const array *pad_mask(test_case *c, const array *mask, int64_t len_k)
{
    array *out = take(c, 1, sizeof *out);
    const double hides = strcmp(mask->dtype, "bool") == 0 ? 0 : -INFINITY;
    const int64_t last = mask->rank - 1;
    int64_t len;

    if (mask->rank < 1 || mask->rank > 4 || mask->shape[last] > len_k)
        refuse(c, "attn_mask does not fit %lld keys", (long long)len_k);
    len = mask->shape[last];
    *out = *mask;
    out->shape[last] = len_k;
    out->count = len > 0 ? mask->count / len * len_k : 0;
    if (len == 0)
        refuse(c, "attn_mask is empty");
    out->x = take_reals(c, out->count);
    for (int64_t n = 0; n < out->count; n++) {
        const int64_t row = n / len_k, j = n % len_k;
        out->x[n] = j < len ? mask->x[row * len + j] : hides;
    }
    return out;
}

static void set_mask(test_case *c, job *j)
{
    const array *mask = input_named(c, "attn_mask");

    if (!mask)
        return;
    mask = pad_mask(c, mask, j->problem.len_k);
    if (strcmp(mask->dtype, "bool") == 0)
        job_set_mask(c, j, mask);
    else
        job_set_bias(j, mask);
}

/* -------------------------------------------------------------- position */

/* Query i stands at i + offset: after the past, or at the end of the keys that
 * are no padding, or at 0. */
static void set_positions(test_case *c, job *j)
{
    attn_ref_problem *p = &j->problem;
    const array *past = input_named(c, "past_key");
    const array *nonpad = input_named(c, "nonpad_kv_seqlen");
    int64_t *offset = take(c, p->batch, sizeof *offset);

    if (nonpad) {
        require_shape(c, nonpad, 1, &p->batch);
        p->k_lengths = integers_of(c, nonpad);
    }
    for (int64_t b = 0; b < p->batch; b++) {
        if (past)
            offset[b] = past->shape[2];
        else if (nonpad)
            offset[b] = p->k_lengths[b] - p->len_q;
    }
    p->q_offset = offset;
    if (attribute_integer(c, "is_causal", 0))
        p->causal = ATTN_CAUSAL_TOP_LEFT; /* j <= p, by the offset */
    p->window_left = attribute_integer(c, "left_window_size", -1);
    p->window_right = attribute_integer(c, "right_window_size", -1);
}

/* --------------------------------------------------------------- the job */

static job read_job(test_case *c, const array *q, const array *k,
                    const array *v)
{
    job j = {.q = q->x, .k = k->x, .v = v->x};

    if (k->shape[0] != q->shape[0] || v->shape[0] != q->shape[0] ||
        v->shape[1] != k->shape[1] || v->shape[2] != k->shape[2] ||
        k->shape[3] != q->shape[3])
        refuse(c, "Q, K and V do not fit together");
    attn_ref_problem_init(&j.problem, q->shape[0], q->shape[1], k->shape[1],
                          q->shape[2], k->shape[2], q->shape[3], v->shape[3]);
    j.problem.scale = attribute_number(c, "scale", j.problem.scale);
    j.problem.softcap = attribute_number(c, "softcap", 0);
    set_mask(c, &j);
    set_positions(c, &j);
    return j;
}

/* qk_matmul_output_mode: 0 raw, 1 capped, 2 with the bias, 3 weights. */
static double **stage_of(test_case *c, outcome *out)
{
    switch (attribute_integer(c, "qk_matmul_output_mode", 0)) {
    case 0:
        return &out->results.raw;
    case 1:
        return &out->results.softcapped;
    case 2:
        return &out->results.biased;
    case 3:
        return &out->results.weights;
    default:
        refuse(c, "qk_matmul_output_mode is not known");
    }
}

static void run_engine(test_case *c, const engine *e, const job *j, bool joined)
{
    const attn_ref_problem *p = &j->problem;
    const int64_t rows = p->batch * p->heads_q * p->len_q;
    outcome out = {.results.o = take_reals(c, rows * p->dim_v)};
    double **stage = stage_of(c, &out);

    *stage = take_reals(c, rows * p->len_k);
    do_job(c, e, j, &out);
    if (joined)
        out.results.o = join_heads(c, out.results.o, p->batch, p->heads_q,
                                   p->len_q, p->dim_v);
    onnx_judge(c, e, "Y", out.results.o);
    onnx_judge(c, e, "qk_matmul_output", *stage);
    onnx_judge(c, e, "present_key", j->k);
    onnx_judge(c, e, "present_value", j->v);
}

void onnx_attention(test_case *c)
{
    const int64_t heads_q = attribute_integer(c, "q_num_heads", 0);
    const int64_t heads_kv = attribute_integer(c, "kv_num_heads", 0);
    const array *q = split_heads(c, required_input(c, "Q"), heads_q);
    const array *k = split_heads(c, required_input(c, "K"), heads_kv);
    const array *v = split_heads(c, required_input(c, "V"), heads_kv);
    const engine *e;
    job j;

    only_known(c, KNOWN_ATTRIBUTES, KNOWN_INPUTS, KNOWN_OUTPUTS);
    k = concatenate(c, input_named(c, "past_key"), k);
    v = concatenate(c, input_named(c, "past_value"), v);
    j = read_job(c, q, k, v);
    for (int n = 0; (e = onnx_engine(dtype_of_word(q->dtype), n)); n++)
        run_engine(c, e, &j, required_input(c, "Q")->rank == 3);
}
