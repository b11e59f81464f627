/* SPDX-License-Identifier: Apache-2.0
 *
 * Matching answers against predictions: of the right model under every
 * meaning, then of models with one wrong step, two, three. */
#ifndef ATTN_DOCTOR_MATCH_H
#define ATTN_DOCTOR_MATCH_H

#include "doctor/model.h"

typedef struct attn__hypothesis {
    const char *fault; /* id */
    attn__slot slot;
    attn__step *step;
    double param;
    uint32_t needs; /* bits of `asked` without which it changes nothing */
    const char *detail;
} attn__hypothesis;

extern const attn__hypothesis attn__hypotheses[];
extern const int attn__n_hypotheses;

/* Can a subject attention(q, k, v, options) show it? */
bool attn__can_show(const attn__hypothesis *hypothesis);
/* Give a demo subject this wrong step, and no other. */
void attn__demo_step(attn_subject *subject,
                     const attn__hypothesis *hypothesis);

/* How closely a prediction must be met: the unit roundoff of f64, f32, f16. */
typedef enum attn__tier { TIER_F64, TIER_F32, TIER_F16, TIER_N } attn__tier;
double attn__unit(attn__tier tier);

typedef struct attn__closeness {
    double worst;     /* largest error / tolerance; above 1 is a mismatch */
    int64_t compared; /* elements about which the prediction had a claim, or
                         that are 0 or NaN where it had none */
} attn__closeness;

/* The prediction in w->answer against the question's answer. */
attn__closeness attn__compare(const attn__work *w, const attn__question *q,
                              attn__tier tier);

enum { ATTN__MAX_WRONG = 3 };

typedef struct attn__evidence {
    const attn__question *questions;
    int64_t n;
    attn__work *work;
    attn__tier tier;
    int64_t *effort; /* what is left of it, in multiplications */
} attn__evidence;

/* Of a whole examination for each second that its calls may take: less than a
 * second. */
#define ATTN__EFFORT_PER_SECOND 4e8

/* How the right model fares under a meaning. */
typedef struct attn__score {
    int64_t met, failed;
} attn__score;

attn__score attn__score_right(const attn__evidence *e,
                              const attn__meaning *meaning);

/* What explains the answers: up to three wrong steps. */
typedef struct attn__explanation {
    int n;
    const attn__hypothesis *wrong[ATTN__MAX_WRONG];
    int64_t beside; /* questions that only the right model met: the fault
                       shows on some paths only */
    int64_t cost;   /* places in the list, summed: less is more specific */
    int64_t first;  /* the simplest question that failed */
    char also[160]; /* other faults that explain as well */
} attn__explanation;

/* Is there a question of which the wrong step predicts another answer than the
 * right model, which meets it? */
bool attn__would_show(const attn__evidence *e, const attn__meaning *meaning,
                      const attn__hypothesis *hypothesis);

/* The one wrong step that meets most of the questions that the right model
 * does not, more than a third of a sample of them; NULL if there is none. To
 * *met, *wrong: how many of how many. */
const attn__hypothesis *attn__explain_partly(const attn__evidence *e,
                                             const attn__meaning *meaning,
                                             int *met, int *wrong);

/* The smallest set of wrong steps, at most `most`, such that every question is
 * met by the right model or by some of the set. False if there is none, or
 * nothing to explain. */
bool attn__explain(const attn__evidence *e, const attn__meaning *meaning,
                   int most, attn__explanation *best);

#endif
