/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_layer_forward against the plain composition of layer_ref.c, in units of
 * its bound; which a mutant of each stage must break. */
#include "layer_case.h"

#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const attn_dtype dtypes[] = {ATTN_F64, ATTN_F32, ATTN_BF16, ATTN_F16};

/* The largest error of y in units of its bound. In f64 the reference rounds
 * as much as the layer does. */
static double worst_error(const layer_case *c, const attn_tensor *y)
{
    const int64_t n = c->in[D_Y].n;
    double *want = calloc((size_t)n, sizeof *want);
    double *bound = calloc((size_t)n, sizeof *bound);
    double worst = 0;

    layer_ref(c, want, bound, NULL);
    for (int64_t i = 0; i < n; i++) {
        const double e = (c->dtype == ATTN_F64 ? 2 : 1) * bound[i];

        worst = fmax(worst, fabs(layer_value(y, i) - want[i]) /
                                fmax(e, 0x1p-1000));
    }
    free(want);
    free(bound);
    return worst;
}

static void run(layer_call *call)
{
    attn_diag diag;

    if (attn_multi_head(&call->c->desc, &call->args, 1, &diag) != ATTN_OK)
        fail_msg("%s: %s: %s", call->c->row.name, diag.field, diag.message);
}

UNIT(every_row_in_every_type_keeps_its_bound)
{
    for (size_t n = 0; n < n_layer_rows; n++)
        for (size_t t = 0; t < COUNT(dtypes); t++)
            for (int size = 0; size < 2; size++) {
                layer_case c = layer_case_open(
                    &layer_table[n], size ? &layer_large : &layer_small,
                    dtypes[t]);
                layer_call call = layer_call_open(&c);
                double worst;

                layer_call_forward(&call);
                run(&call);
                worst = worst_error(&c, &call.args.y);
                if (!(worst <= 1))
                    fail_msg("%s, %s: %g bounds", c.row.name,
                             attn_dtype_name(c.dtype), worst);
                layer_call_close(&call);
                layer_case_close(&c);
            }
}

/* Changes to the description of a run that its reference does not follow. */
typedef struct mutant {
    const char *name;
    unsigned with; /* rows that it changes */
    void (*mutate)(layer_call *call, layer_case *c);
} mutant;

static void lose_eps(layer_call *call, layer_case *c)
{
    (void)call;
    c->desc.norm_eps = 0;
}

static void lose_gain(layer_call *call, layer_case *c)
{
    (void)c;
    call->args.g_k = (attn_input){0};
}

static void pair_otherwise(layer_call *call, layer_case *c)
{
    (void)call;
    c->desc.rope.interleaved = !c->desc.rope.interleaved;
}

static void lose_positions(layer_call *call, layer_case *c)
{
    (void)c;
    call->args.positions = (attn_input){0};
}

static void lose_key_bias(layer_call *call, layer_case *c)
{
    (void)c;
    call->args.b_k = (attn_input){0};
}

static void repeat_a_row(layer_call *call, layer_case *c)
{
    (void)c;
    call->args.w_v.stride[0] = 0;
}

static void scale_twice(layer_call *call, layer_case *c)
{
    (void)call;
    c->desc.attention.scale *= c->desc.attention.scale;
}

static const mutant mutants[] = {
    {"eps lost", WITH_NORM, lose_eps},
    {"gain lost", WITH_GAINS | WITH_HEAD_GAINS, lose_gain},
    {"pairs the other way", WITH_HALVES | WITH_PAIRS, pair_otherwise},
    {"positions lost", WITH_POSITIONS, lose_positions},
    {"bias lost", WITH_BIASES, lose_key_bias},
    {"one row of w_v for all", 0, repeat_a_row},
    {"scaled twice", 0, scale_twice}};

/* A key bias moves all scores of a query alike, unless a key is turned,
 * normed or hidden from some: softmax can't see it. */
static bool applies(const mutant *m, const layer_row *row)
{
    if (m->mutate == lose_key_bias &&
        !(row->with & (WITH_NORM | WITH_HALVES | WITH_PAIRS)))
        return false;
    return m->with == 0 || (row->with & m->with);
}

UNIT(the_bound_rejects_mutants)
{
    for (size_t m = 0; m < COUNT(mutants); m++)
        for (size_t n = 0; n < n_layer_rows; n++) {
            layer_case c, changed;
            layer_call call;

            if (!applies(&mutants[m], &layer_table[n]))
                continue;
            c = layer_case_open(&layer_table[n], &layer_large, ATTN_F32);
            changed = c;
            call = layer_call_open(&changed);
            layer_call_forward(&call);
            mutants[m].mutate(&call, &changed);
            run(&call);
            if (worst_error(&c, &call.args.y) < 2)
                fail_msg("%s: %s passes", c.row.name, mutants[m].name);
            layer_call_close(&call);
            layer_case_close(&c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_in_every_type_keeps_its_bound),
        cmocka_unit_test(the_bound_rejects_mutants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
