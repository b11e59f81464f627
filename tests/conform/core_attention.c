/* SPDX-License-Identifier: Apache-2.0
 *
 * The attention cases of `core`: the sidecar becomes a job, every engine does
 * it, the sidecar's atol judges. */
#include <math.h>
#include <string.h>

#include "conform.h"

static const char KNOWN_OPTIONS[] =
    "scale causal q_offset window softcap policy";
static const char KNOWN_INPUTS[] =
    "q k v mask bias alibi_slopes sinks k_lengths dropout_mask do dlse "
    "cu_seqlens_q cu_seqlens_k";
static const char KNOWN_EXPECTED[] =
    "o lse entropy weights dq dk dv dbias dsinks dslopes";

/* --------------------------------------------------------------- the job */

static attn_causal causal_of(test_case *c, const char *word)
{
    if (strcmp(word, "top_left") == 0)
        return ATTN_CAUSAL_TOP_LEFT;
    if (strcmp(word, "bottom_right") == 0)
        return ATTN_CAUSAL_BOTTOM_RIGHT;
    if (strcmp(word, "none") != 0)
        refuse(c, "causal \"%s\" is not known", word);
    return ATTN_CAUSAL_NONE;
}

static attn_empty_rows policy_of(test_case *c, const char *word)
{
    if (strcmp(word, "nan") == 0)
        return ATTN_EMPTY_NAN;
    if (strcmp(word, "zero") != 0)
        refuse(c, "policy \"%s\" is not known", word);
    return ATTN_EMPTY_ZERO;
}

static int64_t *integer_list(test_case *c, const json_t *object,
                             const char *key, int64_t n)
{
    const json_t *list = member(c, object, key);
    int64_t *values = take(c, n, sizeof *values);

    if (!json_is_array(list) || (int64_t)json_array_size(list) != n)
        refuse(c, "\"%s\" is not a list of %lld", key, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, (size_t)i);

        if (!json_is_integer(value))
            refuse(c, "\"%s\" holds something else than integers", key);
        values[i] = json_integer_value(value);
    }
    return values;
}

static void read_sizes(test_case *c, job *j)
{
    const json_t *sizes = member(c, c->sidecar, "sizes");

    attn_ref_problem_init(
        &j->problem, integer_member(c, sizes, "B"),
        integer_member(c, sizes, "Hq"), integer_member(c, sizes, "Hk"),
        integer_member(c, sizes, "Lq"), integer_member(c, sizes, "Lk"),
        integer_member(c, sizes, "Dk"), integer_member(c, sizes, "Dv"));
}

static void read_sequences(test_case *c, job *j)
{
    const array *q = input_named(c, "cu_seqlens_q");
    const array *k = input_named(c, "cu_seqlens_k");

    if (!q && !k)
        return;
    if (!q || !k || q->rank != 1 || q->count < 1 || j->problem.batch != 1)
        refuse(c, "cu_seqlens come in pairs, with B = 1");
    require_shape(c, k, 1, q->shape);
    j->cu_q = integers_of(c, q);
    j->cu_k = integers_of(c, k);
    j->sequences = q->count - 1;
    j->problem.batch = j->sequences;
}

static void read_options(test_case *c, job *j)
{
    const json_t *options = member(c, c->sidecar, "options");
    const int64_t *window = integer_list(c, options, "window", 2);

    only_known_keys(c, options, KNOWN_OPTIONS);
    j->problem.scale = number_member(c, options, "scale");
    j->problem.softcap = number_member(c, options, "softcap");
    j->problem.causal = causal_of(c, string_member(c, options, "causal"));
    j->problem.empty_rows = policy_of(c, string_member(c, options, "policy"));
    j->problem.window_left = window[0];
    j->problem.window_right = window[1];
    j->problem.q_offset =
        integer_list(c, options, "q_offset", j->problem.batch);
}

static void read_tensors(test_case *c, job *j)
{
    const json_t *sizes = member(c, c->sidecar, "sizes");
    const attn_ref_problem *p = &j->problem;
    const int64_t b = integer_member(c, sizes, "B");
    const int64_t q[] = {b, p->heads_q, p->len_q, p->dim_qk};
    const int64_t k[] = {b, p->heads_kv, p->len_k, p->dim_qk};
    const int64_t v[] = {b, p->heads_kv, p->len_k, p->dim_v};
    const int64_t o[] = {b, p->heads_q, p->len_q, p->dim_v};
    const array *d_o = input_named(c, "do"), *dlse = input_named(c, "dlse");

    require_shape(c, required_input(c, "q"), 4, q);
    require_shape(c, required_input(c, "k"), 4, k);
    require_shape(c, required_input(c, "v"), 4, v);
    j->q = input_named(c, "q")->x;
    j->k = input_named(c, "k")->x;
    j->v = input_named(c, "v")->x;
    if (d_o) {
        require_shape(c, d_o, 4, o);
        j->d_o = d_o->x;
    }
    if (dlse) {
        require_shape(c, dlse, 3, o);
        j->dlse = dlse->x;
    }
}

static void require_rank(test_case *c, const array *a, int32_t rank)
{
    if (a->rank > rank)
        refuse(c, "%s has rank %d, above %d", a->name, (int)a->rank, (int)rank);
}

static void read_optional(test_case *c, job *j)
{
    const attn_ref_problem *p = &j->problem;
    const int64_t pairs[] = {p->batch, p->heads_q, p->len_q, p->len_k};
    const array *a;

    if ((a = input_named(c, "mask"))) {
        require_rank(c, a, 4);
        job_set_mask(c, j, a);
    }
    if ((a = input_named(c, "bias"))) {
        require_rank(c, a, 4);
        job_set_bias(j, a);
    }
    if ((a = input_named(c, "alibi_slopes"))) {
        require_rank(c, a, 2);
        job_set_slopes(j, a);
    }
    if ((a = input_named(c, "sinks"))) {
        require_shape(c, a, 1, &p->heads_q);
        job_set_sinks(j, a);
    }
    if ((a = input_named(c, "k_lengths"))) {
        require_shape(c, a, 1, &p->batch);
        j->problem.k_lengths = integers_of(c, a);
    }
    if ((a = input_named(c, "dropout_mask"))) {
        require_shape(c, a, 4, pairs);
        j->problem.dropout = a->x;
    }
}

static job read_job(test_case *c)
{
    job j = {0};

    for (int n = 0; n < c->n_inputs; n++) {
        if (!is_known(KNOWN_INPUTS, c->inputs[n].name))
            refuse(c, "the input %s is not known", c->inputs[n].name);
    }
    read_sizes(c, &j);
    read_sequences(c, &j);
    read_options(c, &j);
    read_tensors(c, &j);
    read_optional(c, &j);
    return j;
}

/* ----------------------------------------------------------- the verdict */

/* One slot for every name that `expected` may have. */
static double **slot_of(outcome *out, const char *name)
{
    const struct {
        const char *name;
        double **slot;
    } rows[] = {
        {"o", &out->results.o},
        {"lse", &out->results.lse},
        {"entropy", &out->results.entropy},
        {"weights", &out->results.weights},
        {"dq", &out->gradients.dq},
        {"dk", &out->gradients.dk},
        {"dv", &out->gradients.dv},
        {"dbias", &out->gradients.dbias},
        {"dsinks", &out->gradients.dsinks},
        {"dslopes", &out->gradients.dslopes},
    };

    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        if (strcmp(rows[r].name, name) == 0)
            return rows[r].slot;
    }
    return NULL;
}

/* The sidecar has a tolerance for f64 and f32. In the 16-bit types only o is
 * promised, one unit in the last place of the largest value. */
static double atol_of(test_case *c, const engine *e, const array *a)
{
    const json_t *atol = member(c, c->sidecar, "atol");

    if (e->dtype == ATTN_BF16)
        return 8e-3 * largest_finite(a);
    if (e->dtype == ATTN_F16)
        return 1e-3 * largest_finite(a);
    return number_member(
        c, member(c, atol, e->dtype == ATTN_F32 ? "f32" : "f64"), a->name);
}

static bool is_judged(const engine *e, const array *a)
{
    const bool sixteen = e->dtype == ATTN_BF16 || e->dtype == ATTN_F16;

    return !sixteen || strcmp(a->name, "o") == 0;
}

static void run_engine(test_case *c, const engine *e, const job *whole)
{
    job j = *whole;
    outcome out = {0};

    if (e->dtype == ATTN_BF16 || e->dtype == ATTN_F16)
        j.d_o = NULL;
    for (int n = 0; n < c->n_expected; n++) {
        const array *a = &c->expected[n];
        if (is_judged(e, a))
            *slot_of(&out, a->name) = take_reals(c, a->count);
    }
    do_job(c, e, &j, &out);
    for (int n = 0; n < c->n_expected; n++) {
        const array *a = &c->expected[n];
        if (is_judged(e, a))
            compare(c, e->name, a, *slot_of(&out, a->name),
                    (tolerance){atol_of(c, e, a), 0, INFINITY});
    }
}

/* A 16-bit engine needs inputs that are exact in its type. */
static bool applies(test_case *c, const engine *e, const job *j)
{
    const char *exact_in = string_member(c, c->sidecar, "exact_in");

    if (!is_known("bf16 f16 f32 f64", exact_in))
        refuse(c, "exact_in \"%s\" is not known", exact_in);
    if (j->problem.dropout && !is_reference(e))
        return false; /* the kernels draw their own masks */
    if (e->dtype == ATTN_BF16 || e->dtype == ATTN_F16)
        return strcmp(exact_in, e->name) == 0;
    return true;
}

/* Are the offsets those that the alignment gives where none is given? */
static bool offsets_are_default(const job *j)
{
    const attn_ref_problem *p = &j->problem;

    for (int64_t b = 0; b < p->batch; b++) {
        const bool packed = j->sequences > 0;
        const int64_t len_q = packed ? j->cu_q[b + 1] - j->cu_q[b] : p->len_q;
        const int64_t len_k = packed ? j->cu_k[b + 1] - j->cu_k[b] : p->len_k;
        const int64_t k_length = p->k_lengths ? p->k_lengths[b] : len_k;

        if (p->q_offset[b] !=
            attn_ref_q_offset(p->causal, len_q, len_k, k_length))
            return false;
    }
    return true;
}

/* The same again, leaving the kernels to find the offsets. */
static void run_without_offsets(test_case *c, const job *whole)
{
    static const engine by_default = {"f64-default-offset", ATTN_F64,
                                      ATTN_PRECISION_STANDARD};
    job j = *whole;

    if (!offsets_are_default(&j) || !applies(c, &by_default, &j))
        return;
    j.problem.q_offset = NULL;
    run_engine(c, &by_default, &j);
}

void core_attention(test_case *c)
{
    static const engine engines[] = {
        {"reference", ATTN_NONE, ATTN_PRECISION_STANDARD},
        {"f64", ATTN_F64, ATTN_PRECISION_STANDARD},
        {"f32", ATTN_F32, ATTN_PRECISION_STANDARD},
        {"bf16", ATTN_BF16, ATTN_PRECISION_STANDARD},
        {"f16", ATTN_F16, ATTN_PRECISION_STANDARD},
    };
    job j;

    load_inputs(c, "inputs");
    load_expected(c, "expected", "expected_");
    for (int n = 0; n < c->n_expected; n++) {
        if (!is_known(KNOWN_EXPECTED, c->expected[n].name))
            refuse(c, "the result %s is not known", c->expected[n].name);
    }
    j = read_job(c);
    for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++) {
        if (applies(c, &engines[e], &j))
            run_engine(c, &engines[e], &j);
    }
    run_without_offsets(c, &j);
}
