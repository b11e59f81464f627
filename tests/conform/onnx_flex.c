/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX FlexAttention (preview): Y = prob_mod(softmax(score_mod(scores))) V.
 * A score_mod is told to the engines in words that they have: scale, softcap,
 * causal or a bias. A prob_mod is applied here, to the engine's weights. */
#include <math.h>
#include <string.h>

#include "onnx.h"

static const char KNOWN_ATTRIBUTES[] =
    "scale softmax_precision score_mod prob_mod";

typedef enum mod_kind {
    ADD_CONSTANT,
    MULTIPLY_CONSTANT,
    CAUSAL_TOP_LEFT,
    SOFTCAP,
    ADD_Q_MINUS_K
} mod_kind;

typedef struct mod {
    mod_kind kind;
    double value;
} mod;

static mod read_mod(test_case *c, const json_t *object)
{
    static const struct {
        const char *word;
        bool has_value;
    } rows[] = {
        [ADD_CONSTANT] = {"add_constant", true},
        [MULTIPLY_CONSTANT] = {"multiply_constant", true},
        [CAUSAL_TOP_LEFT] = {"causal_top_left", false},
        [SOFTCAP] = {"softcap", true},
        [ADD_Q_MINUS_K] = {"add_q_minus_k", false},
    };
    const char *word = string_member(c, object, "kind");

    only_known_keys(c, object, "kind value onnx_text");
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        if (strcmp(rows[r].word, word) == 0)
            return (mod){(mod_kind)r, rows[r].has_value
                                          ? number_member(c, object, "value")
                                          : 0};
    }
    refuse(c, "the subgraph \"%s\" is not known", word);
}

/* ------------------------------------------------------------- score_mod */

static const array *bias_of(test_case *c, const attn_ref_problem *p,
                            double constant, double slope)
{
    array *a = take(c, 1, sizeof *a);

    *a = (array){.name = "bias", .dtype = "float64", .rank = 2};
    a->shape[0] = p->len_q;
    a->shape[1] = p->len_k;
    a->count = p->len_q * p->len_k;
    a->x = take_reals(c, a->count);
    for (int64_t n = 0; n < a->count; n++)
        a->x[n] = constant + slope * (double)(n / p->len_k - n % p->len_k);
    return a;
}

static void set_score_mod(test_case *c, job *j)
{
    const json_t *object = attribute_object(c, "score_mod");
    mod m;

    if (!object)
        return;
    m = read_mod(c, object);
    switch (m.kind) {
    case ADD_CONSTANT:
        job_set_bias(j, bias_of(c, &j->problem, m.value, 0));
        break;
    case MULTIPLY_CONSTANT:
        j->problem.scale *= m.value;
        break;
    case CAUSAL_TOP_LEFT:
        j->problem.causal = ATTN_CAUSAL_TOP_LEFT;
        break;
    case SOFTCAP:
        j->problem.softcap = m.value;
        break;
    case ADD_Q_MINUS_K:
        job_set_bias(j, bias_of(c, &j->problem, 0, 1));
        break;
    }
}

/* -------------------------------------------------------------- prob_mod */

static double modified(const mod *m, double x, int64_t i, int64_t j)
{
    switch (m->kind) {
    case ADD_CONSTANT:
        return x + m->value;
    case MULTIPLY_CONSTANT:
        return x * m->value;
    case CAUSAL_TOP_LEFT:
        return i >= j ? x : -INFINITY;
    case SOFTCAP:
        return m->value * tanh(x / m->value);
    case ADD_Q_MINUS_K:
        return x + (double)(i - j);
    }
    return x;
}

/* o = mod(P) V, by the definition. */
static void apply_prob_mod(const job *j, const mod *m, const double *weights,
                           double *o)
{
    const attn_ref_problem *p = &j->problem;
    const int64_t group = p->heads_q / p->heads_kv;

    for (int64_t r = 0; r < p->batch * p->heads_q * p->len_q; r++) {
        const int64_t i = r % p->len_q, h = r / p->len_q % p->heads_q;
        const int64_t b = r / p->len_q / p->heads_q;
        const double *v =
            j->v + (b * p->heads_kv + h / group) * p->len_k * p->dim_v;

        for (int64_t d = 0; d < p->dim_v; d++) {
            double sum = 0;
            for (int64_t k = 0; k < p->len_k; k++)
                sum += modified(m, weights[r * p->len_k + k], i, k) *
                       v[k * p->dim_v + d];
            o[r * p->dim_v + d] = sum;
        }
    }
}

static void run_engine(test_case *c, const engine *e, const job *j)
{
    const json_t *object = attribute_object(c, "prob_mod");
    const attn_ref_problem *p = &j->problem;
    const int64_t rows = p->batch * p->heads_q * p->len_q;
    outcome out = {.results.o = take_reals(c, rows * p->dim_v)};

    if (object)
        out.results.weights = take_reals(c, rows * p->len_k);
    do_job(c, e, j, &out);
    if (object) {
        const mod m = read_mod(c, object);
        apply_prob_mod(j, &m, out.results.weights, out.results.o);
    }
    onnx_judge(c, e, "Y", out.results.o);
}

void onnx_flex_attention(test_case *c)
{
    const array *q = required_input(c, "Q"), *k = required_input(c, "K");
    const array *v = required_input(c, "V");
    job j = {.q = q->x, .k = k->x, .v = v->x};
    const engine *e;

    only_known(c, KNOWN_ATTRIBUTES, "Q K V", "Y");
    if (q->rank != 4 || k->rank != 4 || v->rank != 4)
        refuse(c, "Q, K and V are not of rank 4");
    attn_ref_problem_init(&j.problem, q->shape[0], q->shape[1], k->shape[1],
                          q->shape[2], k->shape[2], q->shape[3], v->shape[3]);
    j.problem.scale = attribute_number(c, "scale", j.problem.scale);
    set_score_mod(c, &j);
    for (int n = 0; (e = onnx_engine(dtype_of_word(q->dtype), n)); n++)
        run_engine(c, e, &j);
}
