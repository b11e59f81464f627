/* SPDX-License-Identifier: Apache-2.0
 *
 * The kind "softmax": fn(x), perhaps with an axis. */
#include <math.h>
#include <string.h>

#include "doctor/plain.h"
#include "doctor/random.h"

enum { MOST = 128, N_PROBES = 5 };

/* An x of up to three axes; (a, b, c) with a or b 1 where there are fewer. */
typedef struct probe {
    int32_t rank;
    int64_t n[3]; /* always three */
    double x[MOST], y[MOST];
    bool answered;
} probe;

static int64_t size_of(const probe *p)
{
    return p->n[0] * p->n[1] * p->n[2];
}

/* ------------------------------------------------------------ hypotheses */

typedef enum form {
    FORM_RIGHT,
    FORM_AXIS_MIDDLE,
    FORM_AXIS_FIRST,
    FORM_ALL,
    FORM_LAST_TWO,
    FORM_SUM_MIDDLE, /* the maximum is that of the last axis */
    FORM_SUM_FIRST,
    FORM_SUM_ALL,
    FORM_TWICE,
    FORM_MISSING,
    FORM_EXP,
    FORM_EXP_MAX,
    FORM_LINEAR,
    FORM_SIGMOID,
    FORM_LOG,
    FORM_KEEPDIMS_SUM,
    FORM_KEEPDIMS_BOTH,
    FORM_KEEPDIMS_GLOBAL,
    FORM_ONE,
    FORM_ONE_AFTER_MAX,
    FORM_EPS_2,
    FORM_EPS_3,
    FORM_EPS_4,
    FORM_EPS_5,
    FORM_EPS_6,
    FORM_BASE_2,
    FORM_N
} form;

static const struct {
    const char *fault, *detail;
} forms[FORM_N] = {
    [FORM_AXIS_MIDDLE] = {"softmax-wrong-axis", "It is the last but one"},
    [FORM_AXIS_FIRST] = {"softmax-wrong-axis", "It is the first"},
    [FORM_ALL] = {"softmax-joint-axes", "It is the whole array"},
    [FORM_LAST_TWO] = {"softmax-joint-axes", "They are the last two"},
    [FORM_SUM_MIDDLE] = {"softmax-wrong-axis",
                         "The sum runs over the last but one, the maximum over "
                         "the last"},
    [FORM_SUM_FIRST] = {"softmax-wrong-axis",
                        "The sum runs over the first, the maximum over the "
                        "last"},
    [FORM_SUM_ALL] = {"softmax-joint-axes",
                      "The sum is that of the whole array, the maximum that of "
                      "the last axis"},
    [FORM_TWICE] = {"softmax-twice", ""},
    [FORM_MISSING] = {"softmax-missing", "The input comes back"},
    [FORM_EXP] = {"softmax-missing", "exp(x) is not divided by its sum"},
    [FORM_EXP_MAX] = {"softmax-missing",
                      "exp(x - max) is not divided by its sum"},
    [FORM_LINEAR] = {"softmax-missing", "x is divided by its sum, without exp"},
    [FORM_SIGMOID] = {"softmax-missing", "It is a sigmoid"},
    [FORM_LOG] = {"softmax-missing", "It is the logarithm of a softmax"},
    [FORM_KEEPDIMS_SUM] = {"softmax-keepdims-forgotten", "That is the sum"},
    [FORM_KEEPDIMS_BOTH] = {"softmax-keepdims-forgotten",
                            "That is the maximum and the sum"},
    [FORM_KEEPDIMS_GLOBAL] = {"softmax-keepdims-forgotten",
                              "That is the sum"},
    [FORM_ONE] = {"softmax-extra-mass", "It is 1 = e^0: softmax-one"},
    [FORM_ONE_AFTER_MAX] = {"softmax-extra-mass",
                            "It is 1, added after the maximum was subtracted"},
    [FORM_EPS_2] = {"softmax-extra-mass", "It is an eps of 1e-2"},
    [FORM_EPS_3] = {"softmax-extra-mass", "It is an eps of 1e-3"},
    [FORM_EPS_4] = {"softmax-extra-mass", "It is an eps of 1e-4"},
    [FORM_EPS_5] = {"softmax-extra-mass", "It is an eps of 1e-5"},
    [FORM_EPS_6] = {"softmax-extra-mass", "It is an eps of 1e-6"},
    [FORM_BASE_2] = {"unexplained", "The powers are of 2 instead of e"},
};

/* Which elements share a sum: bits 1, 2, 4 for the axes summed over. */
static int64_t group_of(const probe *p, int64_t e, int axes)
{
    const int64_t a = axes & 1 ? 0 : e / p->n[2] / p->n[1];
    const int64_t b = axes & 2 ? 0 : e / p->n[2] % p->n[1];
    const int64_t c = axes & 4 ? 0 : e % p->n[2];

    return (a * p->n[1] + b) * p->n[2] + c;
}

/* y = exp(x - max) / sum: the maximum and the sum over axes of their own. */
static void mixed_softmax(const probe *p, int max_axes, int sum_axes,
                          double *y)
{
    const int64_t n = size_of(p);
    double max[MOST], sum[MOST] = {0};

    for (int64_t e = 0; e < n; e++)
        max[e] = -INFINITY;
    for (int64_t e = 0; e < n; e++) {
        const int64_t g = group_of(p, e, max_axes);

        max[g] = fmax(max[g], p->x[e]);
    }
    for (int64_t e = 0; e < n; e++) {
        y[e] = exp(p->x[e] - max[group_of(p, e, max_axes)]);
        sum[group_of(p, e, sum_axes)] += y[e];
    }
    for (int64_t e = 0; e < n; e++)
        y[e] /= sum[group_of(p, e, sum_axes)];
}

/* y = exp(x - max) / (sum + extra exp(-max) + eps), by group. */
static void softmax(const probe *p, const double *x, int axes, double extra,
                    double eps, double *y)
{
    const int64_t n = size_of(p);
    double max[MOST], sum[MOST];

    for (int64_t e = 0; e < n; e++) {
        max[e] = -INFINITY;
        sum[e] = eps;
    }
    for (int64_t e = 0; e < n; e++) {
        const int64_t g = group_of(p, e, axes);

        max[g] = fmax(max[g], x[e]);
    }
    for (int64_t e = 0; e < n; e++) {
        if (extra > 0 && group_of(p, e, axes) == e)
            sum[e] += extra * exp(-max[e]);
    }
    for (int64_t e = 0; e < n; e++)
        sum[group_of(p, e, axes)] += exp(x[e] - max[group_of(p, e, axes)]);
    for (int64_t e = 0; e < n; e++) {
        const int64_t g = group_of(p, e, axes);

        y[e] = exp(x[e] - max[g]) / sum[g];
    }
}

/* Row statistics (a, b) broadcast from the right onto (a, b, c): element
 * (a, b, c) meets that of row (b, c). Rows are square where this is called
 * with an effect, and a is 1. */
static void keepdims(const probe *p, bool misplaced_max, bool one_max,
                     double *y)
{
    const int64_t rows = p->n[1], n = p->n[2];
    double max[MOST], sum[MOST];

    for (int64_t r = 0; r < rows; r++) {
        max[r] = -INFINITY;
        for (int64_t c = 0; c < n; c++)
            max[r] = fmax(max[r], p->x[r * n + c]);
    }
    for (int64_t r = 0; r < rows; r++) {
        sum[r] = 0;
        for (int64_t c = 0; c < n; c++)
            sum[r] += y[r * n + c] =
                exp(p->x[r * n + c] -
                    (one_max ? 0 : max[misplaced_max ? c : r]));
    }
    for (int64_t e = 0; e < rows * n; e++)
        y[e] /= sum[e % n];
}

static void elementwise(const probe *p, form f, double *y)
{
    double sum[MOST] = {0}, max[MOST];

    for (int64_t e = 0; e < size_of(p); e++)
        max[e] = -INFINITY;
    for (int64_t e = 0; e < size_of(p); e++) {
        const int64_t g = group_of(p, e, 4);

        sum[g] += p->x[e];
        max[g] = fmax(max[g], p->x[e]);
    }
    for (int64_t e = 0; e < size_of(p); e++) {
        const int64_t g = group_of(p, e, 4);
        const double x = p->x[e];

        y[e] = f == FORM_MISSING   ? x
               : f == FORM_EXP     ? exp(x)
               : f == FORM_EXP_MAX ? exp(x - max[g])
               : f == FORM_LINEAR  ? x / sum[g]
                                   : 1 / (1 + exp(-x));
    }
}

/* The axes over which a form sums. */
static int axes_of(const probe *p, form f)
{
    switch (f) {
    case FORM_AXIS_MIDDLE:
    case FORM_SUM_MIDDLE:
        return p->rank > 1 ? 2 : 4;
    case FORM_AXIS_FIRST:
    case FORM_SUM_FIRST:
        return p->rank == 3 ? 1 : p->rank == 2 ? 2 : 4;
    case FORM_ALL:
    case FORM_SUM_ALL:
        return 7;
    case FORM_LAST_TWO:
        return 6;
    default:
        return 4;
    }
}

static void predict(const probe *p, form f, double *y)
{
    const bool square = p->rank == 2 && p->n[1] == p->n[2];
    double once[MOST];

    if (f >= FORM_SUM_MIDDLE && f <= FORM_SUM_ALL)
        mixed_softmax(p, 4, axes_of(p, f), y);
    else if (f >= FORM_KEEPDIMS_SUM && f <= FORM_KEEPDIMS_GLOBAL && square)
        keepdims(p, f == FORM_KEEPDIMS_BOTH, f == FORM_KEEPDIMS_GLOBAL, y);
    else if (f >= FORM_MISSING && f <= FORM_SIGMOID)
        elementwise(p, f, y);
    else
        softmax(p, p->x, axes_of(p, f), f == FORM_ONE,
                f == FORM_ONE_AFTER_MAX ? 1
                : f >= FORM_EPS_2 && f <= FORM_EPS_6
                    ? pow(10, -2 - (double)(f - FORM_EPS_2))
                    : 0,
                y);
    if (f == FORM_TWICE) {
        memcpy(once, y, sizeof once);
        softmax(p, once, 4, 0, 0, y);
    }
    for (int64_t e = 0; f == FORM_LOG && e < size_of(p); e++)
        y[e] = log(y[e]);
    if (f == FORM_BASE_2) {
        for (int64_t e = 0; e < size_of(p); e++)
            once[e] = p->x[e] * log(2);
        softmax(p, once, 4, 0, 0, y);
    }
}

/* ---------------------------------------------------------------- asking */

static bool put_along(attn__plain_call *c, probe *p, int64_t axis)
{
    const int64_t *shape = p->n + 3 - p->rank;
    const double *y;

    attn__plain_begin(c);
    attn__plain_tensor(c, ROLE_X, p->x, p->rank, shape);
    attn__plain_value(c, ROLE_AXIS,
                      (attn_value){.kind = ATTN_VALUE_INTEGER,
                                   .integer = {axis}});
    p->answered = attn__plain_put(c);
    y = p->answered ? attn__plain_result(c, 0, size_of(p)) : NULL;
    p->answered = y != NULL;
    if (y)
        memcpy(p->y, y, (size_t)size_of(p) * sizeof *y);
    return p->answered;
}

static bool put(attn__plain_call *c, probe *p)
{
    return put_along(c, p, -1);
}

static void ask_all(attn__plain_call *c, probe probes[N_PROBES])
{
    static const int64_t shapes[N_PROBES][3] = {
        {1, 3, 5}, {1, 4, 4}, {2, 3, 4}, {1, 1, 6}, {1, 3, 5}};
    static const int32_t ranks[N_PROBES] = {2, 2, 3, 1, 2};
    attn__random random = {.seed = c->exam->options.seed};

    for (int x = 0; x < N_PROBES; x++) {
        probe *p = &probes[x];

        *p = (probe){.rank = ranks[x]};
        memcpy(p->n, shapes[x], sizeof p->n);
        for (int64_t e = 0; e < size_of(p); e++)
            p->x[e] = attn__normal(&random, 1.5);
        put(c, p);
    }
}

static double tolerance(const attn__exam *exam, int tier)
{
    const attn__tier least = exam->options.dtype == ATTN_F64   ? TIER_F64
                             : exam->options.dtype == ATTN_F32 ? TIER_F32
                                                               : TIER_F16;

    /* A handful of roundings of numbers up to 1, with |x| up to 7.5. */
    return 64 * attn__unit(least > (attn__tier)tier ? least
                                                    : (attn__tier)tier);
}

/* Does the form meet every answer? A form that needs some shape to show must
 * have had it. */
static bool fits(const attn__exam *exam, const probe probes[N_PROBES], form f,
                 int tier)
{
    double y[MOST];
    int met = 0;

    for (int x = 0; x < N_PROBES; x++) {
        const probe *p = &probes[x];
        double size = 1;

        if (!p->answered)
            continue;
        predict(p, f, y);
        for (int64_t e = 0; e < size_of(p); e++)
            size = isfinite(y[e]) ? fmax(size, fabs(y[e])) : size;
        if (attn__farthest(p->y, y, size_of(p)) >
            tolerance(exam, tier) * size)
            return false;
        met++;
    }
    return met > 0;
}

/* ---------------------------------------------------------------- stress */

/* Elements of a row that lie 1500 apart. */
static void spread(attn__plain_call *c)
{
    probe p = {.rank = 2, .n = {1, 3, 5}, .x = {1500, 0, 3, -2, 1}};
    double y[MOST];

    p.x[7] = 1500;
    p.x[14] = 1500;
    if (!put(c, &p))
        return;
    predict(&p, FORM_RIGHT, y);
    if (attn__farthest(p.y, y, size_of(&p)) > tolerance(c->exam, TIER_F32))
        attn__add_limit(c->exam->report, "softmax-no-max", "")->evidence =
            "inputs of one row that lie 1500 apart lose the answer";
}

/* Is another axis used where it is asked for? */
static void turn(attn__plain_call *c, const probe *given)
{
    probe p = *given;
    double y[MOST];

    if (attn__parameter_of(c->binding, ROLE_AXIS) < 0 || p.rank != 2 ||
        !put_along(c, &p, 0))
        return;
    predict(&p, FORM_AXIS_FIRST, y);
    if (attn__farthest(p.y, y, size_of(&p)) > tolerance(c->exam, TIER_F32))
        attn__add_fault(c->exam->report, "softmax-wrong-axis",
                        "The axis that is asked for is ignored")
            ->evidence = "with axis=0 the columns do not sum to 1";
}

static void stress(attn__plain_call *c)
{
    static const double shifts[] = {50,   100,   500,   1000,   1e5,
                                    -50,  -100,  -500,  -1000,  -1e5};
    attn_report *r = c->exam->report;
    attn__random random = {.seed = c->exam->options.seed, .count = 1000};

    for (size_t x = 0; x < sizeof shifts / sizeof shifts[0]; x++) {
        probe p = {.rank = 2, .n = {1, 3, 5}};
        double y[MOST];

        for (int64_t e = 0; e < size_of(&p); e++)
            p.x[e] = shifts[x] + attn__normal(&random, 1.5);
        if (!put(c, &p)) {
            p.rank = 1;
            p.n[1] = 1;
            if (!put(c, &p))
                return;
        }
        predict(&p, FORM_RIGHT, y);
        if (attn__farthest(p.y, y, size_of(&p)) <
            1e-4 + fabs(shifts[x]) * tolerance(c->exam, TIER_F32))
            continue;
        attn__add_fault(r,
                        shifts[x] > 0 ? "softmax-no-max" : "online-max-stale",
                        "")
            ->evidence = attn__arena_text(
            &r->arena, "inputs around %g lose the answer", shifts[x]);
        return;
    }
}

/* ---------------------------------------------------------------- report */

/* Two probes of one shape and different numbers have one answer, or the
 * same probe has two. */
static bool misbehaves(attn__plain_call *c, probe probes[N_PROBES])
{
    attn_report *r = c->exam->report;
    probe again = probes[0];
    const size_t bytes = (size_t)size_of(&again) * sizeof(double);
    const char *id = NULL;

    if (!probes[0].answered || !put(c, &again))
        return false;
    if (memcmp(probes[0].y, probes[4].y, bytes) == 0)
        id = probes[0].y[0] == probes[0].y[1] ? "output-constant"
                                              : "state-kept";
    else if (memcmp(probes[0].y, again.y, bytes) != 0)
        id = "state-kept";
    if (id)
        attn__add_fault(r, id, "");
    return id != NULL;
}

static void explain(attn__plain_call *c, const probe probes[N_PROBES])
{
    attn_report *r = c->exam->report;

    for (int tier = TIER_F64; tier < TIER_N; tier++) {
        for (int f = FORM_RIGHT; f < FORM_N; f++) {
            if (!fits(c->exam, probes, (form)f, tier))
                continue;
            if (f == FORM_RIGHT) {
                if (tier > TIER_F64 && c->exam->options.dtype == ATTN_F64)
                    attn__add_limit(r, "dtype-downgraded", "");
                stress(c);
                if (c->exam->options.dtype != ATTN_F16 &&
                    attn_report_n_faults(r) == 0)
                    spread(c);
                turn(c, &probes[0]);
                return;
            }
            attn__add_fault(r, forms[f].fault, forms[f].detail)->evidence =
                "with this bug the prediction meets every answer";
            return;
        }
    }
    attn__add_fault(r, "unexplained", "");
}

void attn__examine_softmax(attn__exam *exam)
{
    attn__binding binding;
    attn__plain_call call = {.exam = exam, .binding = &binding};
    attn_report *r = exam->report;
    probe *probes = attn__arena_take(&exam->arena, N_PROBES, sizeof *probes);
    bool any = false;

    if (!probes)
        return;
    attn__bind(&binding, exam->subject, exam->kind);
    binding.dtype = exam->options.dtype;
    ask_all(&call, probes);
    for (int x = 0; x < N_PROBES; x++)
        any |= probes[x].answered;
    if (!any) {
        r->verdict = ATTN_VERDICT_UNUSABLE;
        r->reason = call.refusal ? call.refusal
                                 : "its results have other shapes";
        return;
    }
    attn__answered(r);
    if (!misbehaves(&call, probes)) {
        explain(&call, probes);
        attn__plain_check_mutation(&call);
    }
    attn__plain_end(&call);
}
