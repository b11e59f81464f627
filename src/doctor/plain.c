/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls by role, without questions. */
#include "doctor/plain.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/half.h"

void attn__plain_begin(attn__plain_call *c)
{
    c->n = 0;
}

bool attn__plain_value(attn__plain_call *c, attn__role role, attn_value value)
{
    const int x = attn__parameter_of(c->binding, role);

    if (x < 0)
        return false;
    value.parameter = x;
    c->values[c->n++] = value;
    return true;
}

static attn_value of(attn_input t)
{
    return (attn_value){.kind = ATTN_VALUE_TENSOR, .tensor = t};
}

static int64_t count_of(int32_t rank, const int64_t *shape)
{
    int64_t n = 1;

    for (int32_t a = 0; a < rank; a++)
        n *= shape[a];
    return n;
}

bool attn__plain_tensor(attn__plain_call *c, attn__role role, const double *x,
                        int32_t rank, const int64_t *shape)
{
    const attn_dtype dtype = c->binding->dtype;
    const int64_t n = count_of(rank, shape);
    void *data = attn__arena_take(&c->exam->arena, n + 1,
                                  attn_dtype_size(dtype));

    for (int64_t e = 0; data && e < n; e++) {
        if (dtype == ATTN_F64)
            ((double *)data)[e] = x[e];
        else if (dtype == ATTN_F32)
            ((float *)data)[e] = (float)x[e];
        else
            ((uint16_t *)data)[e] = attn__f16_of_f64(x[e]);
    }
    return data && attn__plain_value(
                       c, role, of(attn_in_dense(data, dtype, rank, shape)));
}

bool attn__plain_integers(attn__plain_call *c, attn__role role,
                          const int64_t *x, int32_t rank, const int64_t *shape)
{
    const int64_t n = count_of(rank, shape);
    int64_t *data = attn__arena_copy(&c->exam->arena, x, n, sizeof *data);

    return data && attn__plain_value(
                       c, role,
                       of(attn_in_dense(data, ATTN_I64, rank, shape)));
}

/* ------------------------------------------------------------------ call */

static void sort_values(attn__plain_call *c)
{
    for (int32_t x = 1; x < c->n; x++) {
        for (int32_t y = x;
             y > 0 && c->values[y].parameter < c->values[y - 1].parameter;
             y--) {
            const attn_value other = c->values[y];

            c->values[y] = c->values[y - 1];
            c->values[y - 1] = other;
        }
    }
}

void attn__plain_end(attn__plain_call *c)
{
    for (int32_t x = 0; x < c->answer.n_results; x++)
        attn__free(c->answer.results[x].data);
    c->answer = (attn_answer){0};
}

bool attn__plain_put(attn__plain_call *c)
{
    const attn_subject *s = c->exam->subject;

    if (c->exam->arena.failed)
        return false;
    attn__plain_end(c);
    sort_values(c);
    c->outcome = s->call(s->ctx, c->values, c->n, &c->answer);
    c->exam->report->calls++;
    c->exam->report->seconds += c->answer.seconds;
    if (c->outcome != ATTN_ANSWERED) {
        c->refusal = attn__arena_text(&c->exam->report->arena, "%s",
                                      c->answer.message);
        return false;
    }
    for (int x = 0; x < c->n; x++) {
        if (c->answer.mutated & UINT32_C(1) << (x & 31))
            c->mutated |= UINT32_C(1) << (c->values[x].parameter & 31);
    }
    return true;
}

const double *attn__plain_result(const attn__plain_call *c, int32_t x,
                                 int64_t n)
{
    if (x >= c->answer.n_results || c->answer.results[x].count != n)
        return NULL;
    return c->answer.results[x].data;
}

void attn__plain_check_mutation(attn__plain_call *c)
{
    attn_report *r = c->exam->report;

    if (!c->mutated)
        return;
    attn__add_fault(r, "inputs-mutated", "")->evidence =
        "after a call its inputs hold other numbers";
}

double attn__farthest(const double *x, const double *claim, int64_t n)
{
    double worst = 0;

    for (int64_t e = 0; e < n; e++) {
        if (isnan(claim[e]))
            continue;
        if (isfinite(x[e]) && isfinite(claim[e]))
            worst = fmax(worst, fabs(x[e] - claim[e]));
        else if (x[e] != claim[e])
            return INFINITY;
    }
    return worst;
}
