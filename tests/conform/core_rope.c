/* SPDX-License-Identifier: Apache-2.0
 *
 * The rope cases of `core`. The sidecar becomes an attn_rope_desc; cos and sin
 * of the kernels are read off by turning (1, 0). */
#include <math.h>
#include <string.h>

#include "conform.h"

static const char KNOWN_OPTIONS[] =
    "base interleaved rotary_dim scaling seq_len attention_factor";
static const char KNOWN_SCALING[] =
    "type factor original_max_position max_position beta_fast beta_slow "
    "truncate mscale mscale_all_dim attention_factor low_freq_factor "
    "high_freq_factor short_factor long_factor";
static const char KNOWN_EXPECTED[] = "inv_freq cos sin y dx";

typedef struct rope {
    attn_rope_desc desc;
    int64_t batch, heads, len, dim, half;
    const double *x, *dy;
    const int64_t *positions;
    double *inv_freq, *cosines, *sines, *y, *dx; /* results */
} rope;

/* ------------------------------------------------------------- the sidecar */

static double optional_number(test_case *c, const json_t *object,
                              const char *key)
{
    const json_t *value = json_object_get(object, key);

    return !value || json_is_null(value) ? 0 : number_member(c, object, key);
}

static const double *optional_list(test_case *c, const json_t *object,
                                   const char *key, int64_t n)
{
    const json_t *list = json_object_get(object, key);
    double *values;

    if (!list)
        return NULL;
    if (!json_is_array(list) || (int64_t)json_array_size(list) != n)
        refuse(c, "\"%s\" is not a list of %lld", key, (long long)n);
    values = take_reals(c, n);
    for (int64_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, (size_t)i);

        if (!json_is_number(value))
            refuse(c, "\"%s\" holds something else than numbers", key);
        values[i] = json_number_value(value);
    }
    return values;
}

static attn_rope_scaling scaling_of(test_case *c, const char *word)
{
    static const struct {
        const char *word;
        attn_rope_scaling scaling;
    } rows[] = {
        {"none", ATTN_ROPE_PLAIN},      {"linear", ATTN_ROPE_LINEAR},
        {"dynamic", ATTN_ROPE_DYNAMIC}, {"ntk", ATTN_ROPE_NTK},
        {"yarn", ATTN_ROPE_YARN},       {"longrope", ATTN_ROPE_LONGROPE},
        {"llama3", ATTN_ROPE_LLAMA3},
    };

    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        if (strcmp(rows[r].word, word) == 0)
            return rows[r].scaling;
    }
    refuse(c, "the scaling \"%s\" is not known", word);
}

static void read_scaling(test_case *c, const json_t *s, attn_rope_desc *d)
{
    only_known_keys(c, s, KNOWN_SCALING);
    d->scaling = scaling_of(c, string_member(c, s, "type"));
    d->factor = optional_number(c, s, "factor");
    d->original_max_position =
        (int64_t)optional_number(c, s, "original_max_position");
    d->max_position = (int64_t)optional_number(c, s, "max_position");
    d->beta_fast = optional_number(c, s, "beta_fast");
    d->beta_slow = optional_number(c, s, "beta_slow");
    d->no_truncate =
        json_object_get(s, "truncate") && !bool_member(c, s, "truncate");
    d->mscale = optional_number(c, s, "mscale");
    d->mscale_all_dim = optional_number(c, s, "mscale_all_dim");
    d->attention_factor = optional_number(c, s, "attention_factor");
    d->low_freq_factor = optional_number(c, s, "low_freq_factor");
    d->high_freq_factor = optional_number(c, s, "high_freq_factor");
    d->n_factors = d->rotary_dim / 2;
    d->short_factor = optional_list(c, s, "short_factor", d->n_factors);
    d->long_factor = optional_list(c, s, "long_factor", d->n_factors);
    if (!d->short_factor && !d->long_factor)
        d->n_factors = 0;
}

static void read_desc(test_case *c, attn_rope_desc *d)
{
    const json_t *options = member(c, c->sidecar, "options");

    only_known_keys(c, options, KNOWN_OPTIONS);
    attn_rope_init(d);
    d->interleaved = bool_member(c, options, "interleaved");
    d->rotary_dim = integer_member(c, options, "rotary_dim");
    d->base = number_member(c, options, "base");
    d->seq_len = (int64_t)optional_number(c, options, "seq_len");
    read_scaling(c, member(c, options, "scaling"), d);
}

static void read_arrays(test_case *c, rope *r)
{
    const json_t *sizes = member(c, c->sidecar, "sizes");
    const int64_t shape[] = {
        integer_member(c, sizes, "B"), integer_member(c, sizes, "H"),
        integer_member(c, sizes, "S"), integer_member(c, sizes, "D")};
    const int64_t at[] = {shape[0], shape[2]};

    require_shape(c, required_input(c, "x"), 4, shape);
    require_shape(c, required_input(c, "dy"), 4, shape);
    require_shape(c, required_input(c, "positions"), 2, at);
    r->batch = shape[0];
    r->heads = shape[1];
    r->len = shape[2];
    r->dim = shape[3];
    r->half = r->desc.rotary_dim / 2;
    r->x = input_named(c, "x")->x;
    r->dy = input_named(c, "dy")->x;
    r->positions = integers_of(c, input_named(c, "positions"));
}

static void make_room(test_case *c, rope *r)
{
    const int64_t n = r->batch * r->heads * r->len * r->dim;

    r->inv_freq = take_reals(c, r->half);
    r->cosines = take_reals(c, r->batch * r->len * r->half);
    r->sines = take_reals(c, r->batch * r->len * r->half);
    r->y = take_reals(c, n);
    r->dx = take_reals(c, n);
}

static int64_t seq_len_of(const rope *r)
{
    int64_t most = 0;

    for (int64_t n = 0; n < r->batch * r->len; n++) {
        if (r->positions[n] >= most)
            most = r->positions[n] + 1;
    }
    return most;
}

/* ------------------------------------------------------------- the engines */

static void by_reference(test_case *c, rope *r)
{
    double factor;

    if (attn_ref_rope_frequencies(&r->desc, r->dim, seq_len_of(r), r->inv_freq,
                                  &factor) != ATTN_OK)
        refuse(c, "reference: the scaling is not complete");
    attn_ref_rope_angles(r->batch * r->len, r->positions, r->half, r->inv_freq,
                         factor, r->cosines, r->sines);
    attn_ref_rope(r->batch, r->heads, r->len, r->dim, r->half,
                  r->desc.interleaved, r->cosines, r->sines, r->x, r->y);
    attn_ref_rope_backward(r->batch, r->heads, r->len, r->dim, r->half,
                           r->desc.interleaved, r->cosines, r->sines, r->dy,
                           r->dx);
}

typedef attn_status turn(const attn_rope_desc *, attn_input, attn_input,
                         attn_tensor, attn_diag *);

/* y = rope(x) or its transpose, x having `heads` heads. */
static void by_kernel(test_case *c, const engine *e, const rope *r, turn *f,
                      int64_t heads, const double *x, double *y)
{
    const int64_t at[] = {r->batch, r->len};
    const int64_t n = r->batch * heads * r->len * r->dim;
    void *out = take(c, n, attn_dtype_size(e->dtype));
    attn_diag diag;
    const attn_status status =
        f(&r->desc,
          attn_in_bhsd(stored(c, e->dtype, x, n), e->dtype, r->batch, heads,
                       r->len, r->dim),
          attn_in_dense(r->positions, ATTN_I64, 2, at),
          attn_bhsd(out, e->dtype, r->batch, heads, r->len, r->dim), &diag);

    if (status != ATTN_OK)
        refuse(c, "%s: %s: %s", e->name, diag.field, diag.message);
    unstored(e->dtype, out, n, y);
}

/* (1, 0) turns into (cos, sin). */
static void read_off_angles(test_case *c, const engine *e, rope *r)
{
    const int64_t rows = r->batch * r->len;
    double *unit = take_reals(c, rows * r->dim);
    double *turned = take_reals(c, rows * r->dim);

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t m = 0; m < r->half; m++)
            unit[i * r->dim + (r->desc.interleaved ? 2 * m : m)] = 1;
    }
    by_kernel(c, e, r, attn_rope, 1, unit, turned);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t m = 0; m < r->half; m++) {
            const int64_t a = r->desc.interleaved ? 2 * m : m;
            const int64_t b = r->desc.interleaved ? 2 * m + 1 : m + r->half;

            r->cosines[i * r->half + m] = turned[i * r->dim + a];
            r->sines[i * r->half + m] = turned[i * r->dim + b];
        }
    }
}

static void by_kernels(test_case *c, const engine *e, rope *r)
{
    double factor;
    attn_diag diag;

    if (attn_rope_frequencies(&r->desc, r->dim, seq_len_of(r), r->inv_freq,
                              &factor, &diag) != ATTN_OK)
        refuse(c, "%s: %s: %s", e->name, diag.field, diag.message);
    read_off_angles(c, e, r);
    by_kernel(c, e, r, attn_rope, r->heads, r->x, r->y);
    by_kernel(c, e, r, attn_rope_backward, r->heads, r->dy, r->dx);
}

/* ----------------------------------------------------------------- verdict */

static const double *result_named(test_case *c, const rope *r, const char *name)
{
    if (strcmp(name, "inv_freq") == 0)
        return r->inv_freq;
    if (strcmp(name, "cos") == 0)
        return r->cosines;
    if (strcmp(name, "sin") == 0)
        return r->sines;
    if (strcmp(name, "y") == 0)
        return r->y;
    if (strcmp(name, "dx") == 0)
        return r->dx;
    refuse(c, "the result %s is not known, only %s", name, KNOWN_EXPECTED);
}

static void judge(test_case *c, const engine *e, const rope *r)
{
    const json_t *atol = member(c, member(c, c->sidecar, "atol"),
                                e->dtype == ATTN_F32 ? "f32" : "f64");

    for (int n = 0; n < c->n_expected; n++)
        compare(c, e->name, &c->expected[n],
                result_named(c, r, c->expected[n].name),
                (tolerance){number_member(c, atol, c->expected[n].name), 0,
                            INFINITY});
}

void core_rope(test_case *c)
{
    static const engine engines[] = {
        {"reference", ATTN_NONE, ATTN_PRECISION_STANDARD},
        {"f64", ATTN_F64, ATTN_PRECISION_STANDARD},
        {"f32", ATTN_F32, ATTN_PRECISION_STANDARD},
    };
    rope r = {0};

    load_inputs(c, "inputs");
    load_expected(c, "expected", "expected_");
    read_desc(c, &r.desc);
    read_arrays(c, &r);
    for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++) {
        make_room(c, &r);
        if (is_reference(&engines[e]))
            by_reference(c, &r);
        else
            by_kernels(c, &engines[e], &r);
        judge(c, &engines[e], &r);
    }
}
