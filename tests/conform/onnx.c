/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX's node tests: which operator, and what the operators share. */
#include "onnx.h"

#include <math.h>
#include <string.h>

/* ------------------------------------------------------------ attributes */

static const json_t *attribute(test_case *c, const char *name)
{
    const json_t *set =
        json_object_get(member(c, c->sidecar, "attributes"), name);

    if (set)
        return set;
    return json_object_get(member(c, c->sidecar, "attribute_defaults"), name);
}

double attribute_number(test_case *c, const char *name, double otherwise)
{
    const json_t *value = attribute(c, name);

    if (!value)
        return otherwise;
    if (!json_is_number(value))
        refuse(c, "the attribute %s is not a number", name);
    return json_number_value(value);
}

int64_t attribute_integer(test_case *c, const char *name, int64_t otherwise)
{
    const json_t *value = attribute(c, name);

    if (!value)
        return otherwise;
    if (!json_is_integer(value))
        refuse(c, "the attribute %s is not an integer", name);
    return json_integer_value(value);
}

const json_t *attribute_object(test_case *c, const char *name)
{
    const json_t *value = attribute(c, name);

    if (value && !json_is_object(value))
        refuse(c, "the attribute %s is not a described subgraph", name);
    return value;
}

void only_known(test_case *c, const char *attributes, const char *inputs,
                const char *outputs)
{
    only_known_keys(c, member(c, c->sidecar, "attributes"), attributes);
    only_known_keys(c, member(c, c->sidecar, "attribute_defaults"), attributes);
    for (int n = 0; n < c->n_inputs; n++) {
        if (!is_known(inputs, c->inputs[n].name))
            refuse(c, "the input %s is not known", c->inputs[n].name);
    }
    for (int n = 0; n < c->n_expected; n++) {
        if (!is_known(outputs, c->expected[n].name))
            refuse(c, "the output %s is not known", c->expected[n].name);
    }
}

/* --------------------------------------------------------------- engines */

const engine *onnx_engine(attn_dtype own, int n)
{
    static const engine engines[] = {
        {"reference", ATTN_NONE, ATTN_PRECISION_STANDARD},
        {"f64", ATTN_F64, ATTN_PRECISION_STANDARD},
        {"f32", ATTN_F32, ATTN_PRECISION_STANDARD},
        {"bf16", ATTN_BF16, ATTN_PRECISION_HIGH},
        {"f16", ATTN_F16, ATTN_PRECISION_HIGH},
    };

    if (n < 3)
        return &engines[n];
    if (n == 3 && own == ATTN_BF16)
        return &engines[3];
    if (n == 3 && own == ATTN_F16)
        return &engines[4];
    return NULL;
}

/* float32 results are held to more than the published rtol of 1e-3: plain
 * float32 evaluation stays within 5e-7 for values of size 1 (8 units in the
 * last place), and so must ours, scaled by the largest value. */
static tolerance tolerance_of(test_case *c, const array *expected)
{
    tolerance t = {.atol = number_member(c, c->sidecar, "atol"),
                   .rtol = number_member(c, c->sidecar, "rtol"),
                   .most = INFINITY};

    if (dtype_of_word(expected->dtype) == ATTN_F32)
        t.most = 5e-7 * fmax(1, largest_finite(expected));
    return t;
}

void onnx_judge(test_case *c, const engine *e, const char *output,
                const double *got)
{
    const array *expected = expected_named(c, output);
    double *rounded;

    if (!expected)
        return;
    rounded = take_reals(c, expected->count);
    if (expected->count > 0)
        memcpy(rounded, got, (size_t)expected->count * sizeof *got);
    round_to(dtype_of_word(expected->dtype), rounded, expected->count);
    compare(c, e->name, expected, rounded, tolerance_of(c, expected));
}

/* ----------------------------------------------------------------- heads */

const array *split_heads(test_case *c, const array *a, int64_t heads)
{
    array *out = take(c, 1, sizeof *out);
    const int64_t len = a->shape[1], hidden = a->shape[2];

    if (a->rank == 4)
        return a;
    if (a->rank != 3 || heads <= 0 || hidden % heads != 0)
        refuse(c, "%s cannot be split into %lld heads", a->name,
               (long long)heads);
    *out = *a;
    out->rank = 4;
    out->shape[1] = heads;
    out->shape[2] = len;
    out->shape[3] = hidden / heads;
    out->x = take_reals(c, a->count);
    for (int64_t n = 0; n < a->count; n++) {
        const int64_t b = n / hidden / len, i = n / hidden % len;
        const int64_t h = n % hidden / out->shape[3], d = n % out->shape[3];

        out->x[((b * heads + h) * len + i) * out->shape[3] + d] = a->x[n];
    }
    return out;
}

double *join_heads(test_case *c, const double *x, int64_t batch, int64_t heads,
                   int64_t len, int64_t dim)
{
    const int64_t count = batch * heads * len * dim;
    double *out = take_reals(c, count);

    for (int64_t n = 0; n < count; n++) {
        const int64_t d = n % dim, i = n / dim % len;
        const int64_t h = n / dim / len % heads, b = n / dim / len / heads;

        out[((b * len + i) * heads + h) * dim + d] = x[n];
    }
    return out;
}

/* -------------------------------------------------------------- dispatch */

void onnx_node(test_case *c)
{
    static const struct {
        const char *op, *domain;
        int64_t first, last; /* since_version whose rules are those here */
        void (*run)(test_case *);
    } rows[] = {
        {"Attention", "", 23, 25, onnx_attention},
        {"FlexAttention", "ai.onnx.preview", 1, 1, onnx_flex_attention},
        {"RotaryEmbedding", "", 23, 23, onnx_rotary_embedding},
        {"Softmax", "", 13, 13, onnx_softmax},
    };
    const char *op = string_member(c, c->sidecar, "op");
    const char *domain = string_member(c, c->sidecar, "domain");
    const int64_t version = integer_member(c, c->sidecar, "since_version");

    load_inputs(c, "inputs");
    load_expected(c, "outputs", "");
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        if (strcmp(rows[r].op, op) == 0 &&
            strcmp(rows[r].domain, domain) == 0 && version >= rows[r].first &&
            version <= rows[r].last) {
            rows[r].run(c);
            return;
        }
    }
    refuse(c, "the operator %s.%s-%lld is not known", domain, op,
           (long long)version);
}
