/* SPDX-License-Identifier: Apache-2.0
 *
 * From answers to an explanation. The order matters: what is right in f64
 * precision; else one wrong step in f64; else right in f32 (a limit); else one
 * step in f32; else two; 16 bits last, where little can be told apart, and
 * only of a subject that has no more. */
#include <string.h>

#include "doctor/exam.h"
#include "doctor/hygiene.h"

enum { MAX_MEANINGS = 96 };

typedef struct trial {
    attn__exam *exam;
    attn__attempt *attempt;
    attn__meaning meanings[MAX_MEANINGS];
    attn__score score[MAX_MEANINGS];
    int n;
} trial;

attn__evidence attn__evidence_of(attn__exam *exam,
                                 const attn__attempt *attempt)
{
    return (attn__evidence){
        .questions = attempt->interview->questions,
        .n = attempt->interview->n,
        .work = &exam->work,
        .tier = attempt->tier,
        .effort = &exam->effort,
    };
}

/* Is the right model enough under some meaning? Keeps the scores. */
static bool is_right(trial *t, attn__tier tier)
{
    attn__evidence e = attn__evidence_of(t->exam, t->attempt);

    e.tier = tier;
    for (int x = 0; x < t->n; x++) {
        t->score[x] = attn__score_right(&e, &t->meanings[x]);
        if (t->score[x].failed > 0)
            continue;
        t->attempt->state = STATE_RIGHT;
        t->attempt->meaning = t->meanings[x];
        t->attempt->tier = tier;
        return true;
    }
    return false;
}

/* The meaning that the right model does best with. */
static int best_of(const trial *t)
{
    int best = 0;

    for (int x = 1; x < t->n; x++)
        best = t->score[x].met > t->score[best].met ? x : best;
    return best;
}

static bool is_better(const attn__explanation *x, const attn__explanation *y)
{
    if (x->n != y->n)
        return x->n < y->n;
    if (x->beside != y->beside)
        return x->beside < y->beside;
    return x->cost < y->cost;
}

/* `most` wrong steps, under every meaning, or with `likely` only under those
 * that the right model does best with. */
static bool is_explained(trial *t, attn__tier tier, int most, bool likely)
{
    attn__evidence e = attn__evidence_of(t->exam, t->attempt);
    const int64_t met = t->score[best_of(t)].met;
    attn__explanation found;

    e.tier = tier;
    for (int x = 0; x < t->n; x++) {
        if (likely && t->score[x].met < met)
            continue;
        if (!attn__explain(&e, &t->meanings[x], most, &found))
            continue;
        if (t->attempt->state == STATE_NAMED &&
            !is_better(&found, &t->attempt->explanation))
            continue;
        t->attempt->state = STATE_NAMED;
        t->attempt->meaning = t->meanings[x];
        t->attempt->explanation = found;
        t->attempt->tier = tier;
    }
    return t->attempt->state == STATE_NAMED;
}

/* The questions without options and groups, under any meaning; not long ones,
 * where tiles and buffers end. */
static bool is_plain_right(trial *t, attn__tier tier)
{
    attn__evidence e = attn__evidence_of(t->exam, t->attempt);
    const uint32_t beyond = ((ASK_GROUPS - 1) | ASK_GROUPS) &
                            ~t->attempt->interview->always;

    e.tier = tier;
    for (int x = 0; x < t->n; x++) {
        bool right = true, any = false;

        for (int64_t y = 0; y < t->attempt->interview->n && right; y++) {
            e.questions = &t->attempt->interview->questions[y];
            e.n = 1;
            if (e.questions->asked & beyond || e.questions->n.len_k > 12)
                continue;
            any = true;
            right = attn__score_right(&e, &t->meanings[x]).failed == 0;
        }
        if (right && any)
            return true;
    }
    return false;
}

static trial start(attn__exam *exam, attn__attempt *attempt)
{
    trial t = {.exam = exam, .attempt = attempt};

    t.n = attn__list_meanings(exam, attempt, t.meanings, MAX_MEANINGS);
    return t;
}

/* What the inputs and the type of the answers allow. */
static attn__tier first_tier(const attn__exam *exam, const attn__attempt *a)
{
    bool wide = false;

    if (exam->options.dtype == ATTN_F16)
        return TIER_F16;
    for (int64_t x = 0; x < a->interview->n; x++) {
        const attn_dtype dtype = a->interview->questions[x].dtype;

        wide |= dtype == ATTN_F64 || dtype == ATTN_NONE; /* or a dump */
    }
    return exam->options.dtype == ATTN_F64 && wide ? TIER_F64 : TIER_F32;
}

/* Less would be a limit only. */
static attn__tier second_tier(attn__tier first)
{
    return first < TIER_F32 ? TIER_F32 : first;
}

void attn__judge(attn__exam *exam, attn__attempt *attempt, int most)
{
    const attn__tier first = first_tier(exam, attempt);
    const attn__tier second = second_tier(first);
    trial t;

    attn__sort_questions(attempt->interview);
    t = start(exam, attempt);
    attempt->state = STATE_UNEXPLAINED;
    attempt->meaning = t.meanings[0];
    attempt->tier = first;
    if (is_right(&t, first) ||
        (most > 0 && is_explained(&t, first, 1, false)))
        return;
    if (second != first &&
        (is_right(&t, second) ||
         (most > 0 && is_explained(&t, second, 1, false))))
        return;
    attempt->meaning = t.meanings[best_of(&t)];
    attempt->plain_right = is_plain_right(&t, second);
}

/* The questions with as many queries as keys; NULL without enough of them, or
 * where there are no others. */
static attn__interview *only_squares(const attn__interview *in)
{
    attn__interview *squares;

    if (!(in->sizes & ASK_CROSS) || in->backward || in->varlen || in->decode)
        return NULL;
    squares = attn__arena_copy(in->arena, in, 1, sizeof *in);
    if (!squares)
        return NULL;
    squares->sizes &= ~(uint32_t)ASK_CROSS;
    squares->n = 0;
    for (int64_t x = 0; x < in->n; x++) {
        if (in->questions[x].n.len_q == in->questions[x].n.len_k)
            squares->questions[squares->n++] = in->questions[x];
    }
    return squares->n >= 8 && squares->n < in->n ? squares : NULL;
}

/* What was written for self-attention, and takes more keys in silence, may be
 * explained where there are not more. */
static void judge_squares(attn__exam *exam, attn__attempt *attempt)
{
    attn__attempt part = *attempt;
    trial t;

    part.interview = only_squares(attempt->interview);
    if (!part.interview)
        return;
    t = start(exam, &part);
    if (is_right(&t, first_tier(exam, &part)) ||
        !is_explained(&t, first_tier(exam, &part), 1, false))
        return;
    *attempt = part;
    attempt->interview->binding = &attempt->binding;
    attempt->on_squares = true;
}

/* An answer that depends on v alone: does its explanation say so? Others that
 * happen to fit two wrong steps are none. */
static void doubt(attn__exam *exam, attn__attempt *a)
{
    if (a->state != STATE_NAMED || !exam->subject->call ||
        attn__ignored_inputs(a) != 3)
        return;
    for (int x = 0; x < a->explanation.n; x++) {
        if (strcmp(a->explanation.wrong[x]->fault, "scale-zero-literal") == 0)
            return;
    }
    a->state = STATE_UNEXPLAINED;
}

void attn__judge_further(attn__exam *exam, attn__attempt *attempt)
{
    const attn__tier first = first_tier(exam, attempt);
    trial t = start(exam, attempt);

    is_right(&t, first); /* for the scores */
    if (is_explained(&t, first, 2, true)) {
        doubt(exam, attempt);
        return;
    }
    judge_squares(exam, attempt);
    if (attempt->state == STATE_NAMED)
        return;
    if (first != TIER_F16 && attn__is_coarse(attempt) &&
        !is_right(&t, TIER_F16))
        is_explained(&t, TIER_F16, 1, true);
}
