/* SPDX-License-Identifier: Apache-2.0
 *
 * The kind "merge": fn(o1, lse1, o2, lse2) -> o, or (o, lse). */
#include <math.h>
#include <string.h>

#include "doctor/plain.h"
#include "doctor/random.h"

enum { ROWS = 12, DIM = 3, MOST = ROWS * DIM };

typedef struct probe {
    double o1[MOST], o2[MOST], lse1[ROWS], lse2[ROWS];
    double o[MOST], lse[ROWS];
    bool answered, has_lse;
} probe;

/* How the arrays are laid out: (batch, heads, len, dim) or fewer axes, and
 * lse with or without a last axis of 1. */
static const struct {
    int32_t rank;
    int64_t shape[4];
    bool lse_keeps;
} ways[] = {
    {4, {1, 2, 6, DIM}, false}, {4, {1, 2, 6, DIM}, true},
    {3, {2, 6, DIM}, false},    {3, {2, 6, DIM}, true},
    {2, {ROWS, DIM}, false},    {2, {ROWS, DIM}, true},
};

/* ------------------------------------------------------------ hypotheses */

typedef enum form {
    FORM_RIGHT,
    FORM_BASE_2,
    FORM_BASE_E,
    FORM_AVERAGE,
    FORM_SWAPPED,
    FORM_LINEAR,
    FORM_SUM,
    FORM_FIRST,
    FORM_SECOND,
    FORM_N
} form;

static const char *const details[FORM_N] = {
    [FORM_BASE_2] = "The weights are powers of 2, so they take lse for one "
                    "in base 2",
    [FORM_AVERAGE] = "It is the plain average",
    [FORM_SWAPPED] = "Each part has the weight of the other",
    [FORM_LINEAR] = "The weights are lse / (lse1 + lse2), without exp",
    [FORM_SUM] = "The parts are added without weights",
    [FORM_FIRST] = "Only the first part is there",
    [FORM_SECOND] = "Only the second part is there",
};

/* The share of part 1 in row r; *whole: that of both, 1 but for SUM. */
static double share(form f, double l1, double l2, double *whole)
{
    const double base = f == FORM_BASE_2 ? log(2) : 1;

    *whole = f == FORM_SUM ? 2 : 1;
    switch (f) {
    case FORM_AVERAGE:
        return 0.5;
    case FORM_SUM:
    case FORM_FIRST:
        return 1;
    case FORM_SECOND:
        return 0;
    case FORM_LINEAR:
        return l1 / (l1 + l2);
    case FORM_SWAPPED:
        return 1 / (1 + exp(l1 - l2));
    default:
        return 1 / (1 + exp(base * (l2 - l1)));
    }
}

static void predict(const probe *p, form f, double *o)
{
    for (int64_t r = 0; r < ROWS; r++) {
        double whole;
        const double first = share(f, p->lse1[r], p->lse2[r], &whole);

        for (int64_t c = 0; c < DIM; c++)
            o[r * DIM + c] = first * p->o1[r * DIM + c] +
                             (whole - first) * p->o2[r * DIM + c];
    }
}

static double log_add(double x, double y, double base)
{
    const double max = fmax(x, y), b = log(base);

    return max + log(exp((x - max) * b) + exp((y - max) * b)) / b;
}

/* ---------------------------------------------------------------- asking */

static void fill(probe *p, attn__random *random, double shift)
{
    for (int64_t e = 0; e < MOST; e++) {
        p->o1[e] = attn__normal(random, 1.5);
        p->o2[e] = attn__normal(random, 1.5);
    }
    for (int64_t r = 0; r < ROWS; r++) {
        p->lse1[r] = shift + attn__normal(random, 1);
        p->lse2[r] = shift + attn__normal(random, 1);
    }
}

static bool put(attn__plain_call *c, size_t way, probe *p)
{
    const int32_t rank = ways[way].rank;
    int64_t rows[4];
    const int32_t row_rank = ways[way].lse_keeps ? rank : rank - 1;
    const double *o, *lse;

    memcpy(rows, ways[way].shape, sizeof rows);
    if (ways[way].lse_keeps)
        rows[rank - 1] = 1;
    attn__plain_begin(c);
    attn__plain_tensor(c, ROLE_O1, p->o1, rank, ways[way].shape);
    attn__plain_tensor(c, ROLE_LSE1, p->lse1, row_rank, rows);
    attn__plain_tensor(c, ROLE_O2, p->o2, rank, ways[way].shape);
    attn__plain_tensor(c, ROLE_LSE2, p->lse2, row_rank, rows);
    p->answered = attn__plain_put(c);
    o = p->answered ? attn__plain_result(c, 0, MOST) : NULL;
    p->answered = o != NULL;
    if (o)
        memcpy(p->o, o, sizeof p->o);
    lse = o ? attn__plain_result(c, 1, ROWS) : NULL;
    p->has_lse = lse != NULL;
    if (lse)
        memcpy(p->lse, lse, sizeof p->lse);
    return p->answered;
}

static double tolerance(const attn__exam *exam, double shift)
{
    const attn__tier tier =
        exam->options.dtype == ATTN_F16 ? TIER_F16 : TIER_F32;

    /* f32 code is welcome; a difference of lse loses what their size has. */
    return 256 * attn__unit(tier) * (1 + fabs(shift) / 16);
}

/* ---------------------------------------------------------------- judging */

static void blame(attn__exam *exam, const char *id, const char *detail,
                  const char *evidence)
{
    attn__add_fault(exam->report, id, detail)->evidence = evidence;
}

/* The lse that comes with it. */
static bool judge_lse(attn__exam *exam, const probe *p)
{
    double right[ROWS], base2[ROWS], max[ROWS], sum[ROWS];

    if (!p->has_lse)
        return true;
    for (int64_t r = 0; r < ROWS; r++) {
        right[r] = log_add(p->lse1[r], p->lse2[r], exp(1));
        base2[r] = log_add(p->lse1[r], p->lse2[r], 2);
        max[r] = fmax(p->lse1[r], p->lse2[r]);
        sum[r] = p->lse1[r] + p->lse2[r];
    }
    if (attn__farthest(p->lse, right, ROWS) < tolerance(exam, 1))
        return true;
    blame(exam, "lse-base-or-empty",
          attn__farthest(p->lse, base2, ROWS) < 1e-4
              ? "The merged lse is in base 2"
          : attn__farthest(p->lse, max, ROWS) < 1e-4
              ? "The merged lse is the larger of the two"
          : attn__farthest(p->lse, sum, ROWS) < 1e-4
              ? "The merged lse is the sum of the two"
              : "The merged lse is wrong",
          "o is right, lse is not");
    return false;
}

static bool judge_o(attn__exam *exam, const probe *p)
{
    double o[MOST];

    for (int f = FORM_RIGHT; f < FORM_N; f++) {
        predict(p, (form)f, o);
        if (attn__farthest(p->o, o, MOST) > tolerance(exam, 1))
            continue;
        if (f == FORM_RIGHT || (f == FORM_BASE_2 && exam->expect.base2))
            return true;
        blame(exam, "lse-base-or-empty", details[f],
              "with this bug the prediction meets every answer");
        return false;
    }
    blame(exam, "unexplained", "", "o is wrong for ordinary parts");
    return false;
}

/* lse far from 0, where exp without a maximum is lost. */
static bool judge_far(attn__plain_call *c, size_t way)
{
    static const double shifts[] = {100, -100, 1000, -1000};
    attn__random random = {.seed = c->exam->options.seed, .count = 500};

    for (int x = 0; x < 4; x++) {
        probe p;
        double o[MOST];

        fill(&p, &random, shifts[x]);
        if (!put(c, way, &p))
            return true;
        predict(&p, FORM_RIGHT, o);
        if (attn__farthest(p.o, o, MOST) < 16 * tolerance(c->exam, shifts[x]))
            continue;
        blame(c->exam, "softmax-no-max", "",
              attn__arena_text(&c->exam->report->arena,
                               "lse around %g loses the answer", shifts[x]));
        return false;
    }
    return true;
}

/* Parts without keys: lse = -inf, o = 0. */
static void judge_empty(attn__plain_call *c, size_t way)
{
    attn__random random = {.seed = c->exam->options.seed, .count = 900};
    probe p;
    double claim[MOST];
    bool one = true, both = true;

    fill(&p, &random, 0);
    for (int64_t r = 0; r < ROWS; r++) {
        const bool first = r % 3 != 1, second = r % 3 != 0;

        for (int64_t e = r * DIM; e < r * DIM + DIM; e++) {
            p.o1[e] = first ? 0 : p.o1[e];
            p.o2[e] = second ? 0 : p.o2[e];
            claim[e] = p.o1[e] + p.o2[e];
        }
        p.lse1[r] = first ? -INFINITY : p.lse1[r];
        p.lse2[r] = second ? -INFINITY : p.lse2[r];
    }
    if (!put(c, way, &p))
        return;
    for (int64_t r = 0; r < ROWS; r++) {
        const bool ok =
            attn__farthest(p.o + r * DIM, claim + r * DIM, DIM) < 1e-3;

        if (r % 3 == 2)
            both &= ok && (!p.has_lse || p.lse[r] == -INFINITY);
        else
            one &= ok;
    }
    if (!one)
        blame(c->exam, "lse-base-or-empty", "One empty part spoils the other",
              "lse1 = -inf with o1 = 0 must leave o2");
    else if (!both && !c->exam->expect.identify)
        blame(c->exam, "lse-base-or-empty",
              "Two empty parts give NaN: -inf - (-inf)",
              "lse1 = lse2 = -inf must give o = 0, lse = -inf");
    else if (!both)
        attn__add_limit(c->exam->report, "lse-base-or-empty", "")->evidence =
            "two empty parts (lse = -inf both) do not give an empty one";
}

void attn__examine_merge(attn__exam *exam)
{
    attn__binding binding;
    attn__plain_call call = {.exam = exam, .binding = &binding};
    attn__random random = {.seed = exam->options.seed};
    attn_report *r = exam->report;
    const size_t n = sizeof ways / sizeof ways[0];
    size_t way = 0;
    probe p;

    attn__bind(&binding, exam->subject, exam->kind);
    binding.dtype = exam->options.dtype;
    fill(&p, &random, 0);
    while (way < n && !put(&call, way, &p))
        way++;
    if (way == n) {
        r->verdict = ATTN_VERDICT_UNUSABLE;
        r->reason = call.refusal ? call.refusal
                                 : "its results have other shapes";
    } else {
        attn__answered(r);
        if (judge_o(exam, &p) && judge_lse(exam, &p) && judge_far(&call, way))
            judge_empty(&call, way);
    }
    attn__plain_check_mutation(&call);
    attn__plain_end(&call);
}
