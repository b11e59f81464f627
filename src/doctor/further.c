/* SPDX-License-Identifier: Apache-2.0
 *
 * Further results of a subject whose o is right: the weights, and the log-sum-
 * exp. */
#include <math.h>
#include <string.h>

#include "doctor/further.h"
#include "doctor/stress.h"

/* --------------------------------------------------------------- compare */

/* Largest difference of two arrays where the second makes a claim; infinite
 * where one is finite and the other is not, or where none is made. */
static double apart(const double *x, const double *claim, int64_t n)
{
    double worst = 0;
    int64_t claims = 0;

    for (int64_t e = 0; e < n; e++) {
        if (isnan(claim[e]))
            continue;
        claims++;
        if (isfinite(x[e]) && isfinite(claim[e]))
            worst = fmax(worst, fabs(x[e] - claim[e]));
        else if (x[e] != claim[e])
            return INFINITY;
    }
    return claims > 0 || n == 0 ? worst : INFINITY;
}

static void predict(attn__exam *exam, const attn__attempt *a,
                    const attn__question *q, const attn__hypothesis *wrong)
{
    attn__model model;

    attn__known_model(a, &model);
    if (wrong) {
        model.step[wrong->slot] = wrong->step;
        model.param[wrong->slot] = wrong->param;
    }
    attn__predict(&exam->work, &model, &a->meaning, q);
}

/* A weight is at most 1 and a log-sum-exp some 10: 2^12 roundings are more
 * than either has. */
static double allowed(const attn__attempt *a)
{
    return 4096 * attn__unit(a->tier);
}

/* --------------------------------------------------------------- weights */

typedef double weights_error(attn__exam *exam, const attn__attempt *a,
                             const attn__question *q,
                             const attn__hypothesis *wrong);

static double of_weights(attn__exam *exam, const attn__attempt *a,
                         const attn__question *q,
                         const attn__hypothesis *wrong)
{
    predict(exam, a, q, wrong);
    return apart(q->weights, exam->work.p, attn__count_pairs(&q->n));
}

/* They are 0, or the right ones times one factor above 1: dropout. */
static double of_dropped(attn__exam *exam, const attn__attempt *a,
                         const attn__question *q,
                         const attn__hypothesis *wrong)
{
    const int64_t n = attn__count_pairs(&q->n);
    const double *p = exam->work.p;
    double factor = 0;

    predict(exam, a, q, wrong);
    for (int64_t x = 0; x < n; x++) {
        if (q->weights[x] == 0 || !(p[x] > 0))
            continue;
        if (factor == 0)
            factor = q->weights[x] / p[x];
        if (!(fabs(q->weights[x] / p[x] - factor) < 1e-6))
            return INFINITY;
    }
    return factor > 1.001 ? 0 : INFINITY;
}

/* The worst over all questions with weights; -1 if there are none. */
static double worst_weights(attn__exam *exam, const attn__attempt *a,
                            weights_error *error,
                            const attn__hypothesis *wrong)
{
    double worst = -1;

    for (int64_t x = 0; x < a->interview->n; x++) {
        const attn__question *q = &a->interview->questions[x];

        if (!q->weights)
            continue;
        worst = fmax(worst, error(exam, a, q, wrong));
        exam->effort -= attn__count_pairs(&q->n) * (q->n.dim_qk + 8);
    }
    return worst;
}

static const attn__hypothesis *explain_weights(attn__exam *exam,
                                               const attn__attempt *a)
{
    for (int h = 0; h < attn__n_hypotheses && exam->effort > 0; h++) {
        const double worst =
            worst_weights(exam, a, of_weights, &attn__hypotheses[h]);

        if (worst <= allowed(a))
            return &attn__hypotheses[h];
    }
    return NULL;
}

static void check_weights(attn__exam *exam, const attn__attempt *a)
{
    attn_report *r = exam->report;
    const double worst = worst_weights(exam, a, of_weights, NULL);
    const attn__hypothesis *wrong;
    attn_finding *f;

    if (worst < 0)
        return;
    attn__add_fact(r, "returns", "o and the weights");
    if (worst <= allowed(a))
        return;
    wrong = explain_weights(exam, a);
    if (wrong)
        f = attn__add_fault(r, wrong->fault, wrong->detail);
    else if (worst_weights(exam, a, of_dropped, NULL) == 0)
        f = attn__add_fault(r, "dropout-not-off", "");
    else
        f = attn__add_fault(r, "unexplained", "");
    f->where = "forward, the weights that are returned";
    f->evidence = attn__arena_text(
        &r->arena, "o is right, a returned weight is off by %.3g", worst);
}

/* ------------------------------------------------------------------- lse */

/* What an lse may be instead, of a row whose largest score is max. */
typedef enum lse_form { LSE_RIGHT, LSE_BASE_2, LSE_BELOW_MAX, LSE_SUM,
                        LSE_NEGATIVE, LSE_NO_SINK, LSE_N } lse_form;

static double formed(lse_form form, double lse, double max, double sink)
{
    switch (form) {
    case LSE_BASE_2:
        return lse / log(2);
    case LSE_BELOW_MAX:
        return lse - max;
    case LSE_SUM:
        return exp(lse - max);
    case LSE_NEGATIVE:
        return -lse;
    case LSE_NO_SINK:
        return lse + log1p(-exp(sink - lse));
    default:
        return lse;
    }
}

static double lse_error(attn__exam *exam, const attn__attempt *a,
                        const attn__question *q, lse_form form)
{
    const attn__work *w = &exam->work;
    double worst = 0;

    predict(exam, a, q, NULL);
    ATTN__FOR_ROWS(w, row) {
        double max = -INFINITY;
        double claim;

        for (int64_t j = 0; j < w->n.len_k; j++)
            max = fmax(max, row.s[j]);
        claim = formed(form, w->lse[row.index], max, w->mass[row.index]);
        if (!isnan(claim))
            worst = fmax(worst, apart(q->lse + row.index, &claim, 1));
    }
    return worst;
}

static double worst_lse(attn__exam *exam, const attn__attempt *a,
                        lse_form form)
{
    double worst = -1;

    for (int64_t x = 0; x < a->interview->n; x++) {
        const attn__question *q = &a->interview->questions[x];

        if (q->lse)
            worst = fmax(worst, lse_error(exam, a, q, form));
    }
    return worst;
}

static bool speaks_of_lse(const attn_subject *s)
{
    return attn__speaks_of(s, "lse") || attn__speaks_of(s, "logsumexp") ||
           attn__speaks_of(s, "log-sum-exp") || strstr(s->name, "lse");
}

static void check_lse(attn__exam *exam, const attn__attempt *a)
{
    static const char *const details[LSE_N] = {
        "It fits no form that is known",
        "It is in base 2",
        "The maximum is not added back",
        "It is the sum of exp(s - max), without maximum and logarithm",
        "It has the wrong sign",
        "The sink is left out of it"};
    attn_report *r = exam->report;
    const double worst = worst_lse(exam, a, LSE_RIGHT);
    lse_form form = LSE_RIGHT;
    bool base2;

    if (worst < 0)
        return;
    for (int x = LSE_RIGHT; x < LSE_N && form == LSE_RIGHT; x++) {
        if (worst_lse(exam, a, (lse_form)x) <= allowed(a)) {
            form = (lse_form)x;
            break;
        }
    }
    /* Rows have other statistics too: an entropy is no wrong lse. */
    if (worst > allowed(a) && form == LSE_RIGHT && exam->expect.identify &&
        !speaks_of_lse(exam->subject)) {
        attn__add_fact(r, "not examined", "a number of each row, which is no "
                                          "log-sum-exp");
        return;
    }
    base2 = form == LSE_BASE_2;
    attn__add_fact(r, "lse_base", base2 ? "2" : "e");
    if (base2 && exam->expect.identify)
        attn__add_limit(r, "lse-base-or-empty", "")->evidence =
            "the lse is in base 2: right for those who merge with powers of "
            "2";
    if (worst <= allowed(a) ? !exam->expect.base2
                            : base2 && (exam->expect.identify ||
                                        exam->expect.base2))
        return;
    attn__add_fault(r, "lse-base-or-empty", details[form])->evidence =
        attn__arena_text(&r->arena, "o is right, the lse is off by %.3g",
                         worst);
}

void attn__check_further(attn__exam *exam, const attn__attempt *a)
{
    check_weights(exam, a);
    check_lse(exam, a);
}
