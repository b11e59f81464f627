/* SPDX-License-Identifier: Apache-2.0
 *
 * Manners, whatever the formula: the same question twice, new data of the
 * same shape, inputs left alone, views as good as copies. */
#include <math.h>
#include <string.h>

#include "doctor/exam.h"
#include "doctor/hygiene.h"

/* --------------------------------------------------------------- answers */

static bool same(const attn__question *x, const attn__question *y)
{
    return x->n_answer == y->n_answer &&
           memcmp(x->answer, y->answer,
                  (size_t)x->n_answer * sizeof *x->answer) == 0;
}

static bool is_constant(const attn__question *q)
{
    for (int64_t x = 1; x < q->n_answer; x++) {
        if (q->answer[x] != q->answer[0])
            return false;
    }
    return q->n_answer > 1;
}

static bool is_nowhere_finite(const attn__question *q)
{
    for (int64_t x = 0; x < q->n_answer; x++) {
        if (isfinite(q->answer[x]))
            return false;
    }
    return q->n_answer > 0;
}

/* A copy of the question, put again in some view; NULL if it was refused. */
static attn__question *again(attn__attempt *a, const attn__question *q,
                             attn__view view)
{
    attn__interview *in = a->interview;
    attn__question *copy =
        attn__arena_take(in->arena, 1, sizeof *copy);

    if (!copy)
        return NULL;
    *copy = *q;
    if (!attn__ask(in->binding, copy, view, in->arena) ||
        copy->outcome != ATTN_ANSWERED)
        return NULL;
    return copy;
}

/* ------------------------------------------------------------- behaviour */

/* The richest question that was answered, by options and sizes: one with more
 * keys than queries, where there is any. */
static const attn__question *richest(const attn__attempt *a)
{
    const attn__question *best = &a->interview->questions[0];
    int most = -1;

    for (int64_t x = 0; x < a->interview->n; x++) {
        const attn__question *q = &a->interview->questions[x];
        const int bits = __builtin_popcount(q->asked) +
                         (q->asked & ASK_CROSS ? 32 : 0);

        if (bits > most) {
            most = bits;
            best = q;
        }
    }
    return best;
}

/* Three calls: A, B of the same shape, A again. */
static bool asked_twice(attn__attempt *a, attn__question *calls[3])
{
    attn__interview *in = a->interview;
    const int64_t n = in->n;
    attn__question *first = &in->questions[0];
    attn__question *other;

    if (n == 0)
        return false;
    other = attn__compose(in, "other data", first->n, 0);
    if (!other)
        return false;
    calls[0] = again(a, first, VIEW_PLAIN);
    calls[1] = again(a, other, VIEW_PLAIN);
    calls[2] = again(a, first, VIEW_PLAIN);
    return calls[0] && calls[1] && calls[2];
}

/* Also where there are more keys than any tile has? */
static bool is_constant_at_length(attn__attempt *a)
{
    attn__question *q = attn__compose(a->interview, "long",
                                      attn__sizes_long(a->interview, 70), 0);
    const attn__question *call = q ? again(a, q, VIEW_PLAIN) : NULL;

    return !call || is_constant(call);
}

enum { CALLS = 24 };

/* The same question over and over, after another one; from which call on the
 * answer stays, and whether no answer before that came twice. -1: refused. */
static int settles(attn__attempt *a, int64_t len, bool *all_new)
{
    attn__interview *in = a->interview;
    attn__sizes few = attn__sizes_single(in, len);
    const attn__question *calls[CALLS];
    attn__question *other, *q;
    int settled = 1;

    if (len == 2 && !in->layer && !in->equal &&
        a->binding.fusion == FUSION_NONE &&
        a->binding.shared != SHARED_ALL)
        few.len_q = 1;
    other = attn__compose(in, "few keys", few, 0);
    if (!other || !again(a, other, VIEW_PLAIN))
        return -1;
    q = attn__compose(in, "few keys", few, 0);
    for (int x = 0; x < CALLS; x++) {
        calls[x] = q ? again(a, q, VIEW_PLAIN) : NULL;
        if (!calls[x])
            return -1;
    }
    for (int x = 2; x < CALLS; x++)
        settled = same(calls[x], calls[x - 1]) ? settled : x;
    *all_new = true;
    for (int x = 2; x <= settled; x++) {
        for (int y = 1; y < x; y++)
            *all_new &= !same(calls[x], calls[y]);
    }
    return settled;
}

/* Of a subject that answers otherwise every time: does it keep something? One
 * query and two keys leave dropout few answers, which come and go. What is
 * kept from call to call never comes to the same answer twice, or it comes to
 * one and stays there, once the calls are all the same. At once? Then also
 * where dropout, however rare, would have much to drop. */
static bool accumulates(attn__attempt *a)
{
    bool all_new;
    const int settled = settles(a, 2, &all_new);

    if (settled < 0 || !all_new)
        return false;
    return settled > 1 || settles(a, 16, &all_new) == 1;
}

attn__conduct attn__observe(attn__attempt *a)
{
    attn__question *calls[3], *next;

    if (!asked_twice(a, calls))
        return CONDUCT_FINE;
    if (is_nowhere_finite(calls[0]) && is_nowhere_finite(calls[1]))
        return CONDUCT_NAN;
    if (same(calls[0], calls[1]))
        return !is_constant(calls[0])  ? CONDUCT_REMEMBERS
               : is_constant_at_length(a) ? CONDUCT_CONSTANT
                                          : CONDUCT_FINE;
    if (same(calls[0], calls[2]))
        return CONDUCT_FINE;
    next = again(a, &a->interview->questions[0], VIEW_PLAIN);
    return (next && same(next, calls[2])) || accumulates(a)
               ? CONDUCT_REMEMBERS
               : CONDUCT_RANDOM;
}

/* ---------------------------------------------------------------- ignored */

unsigned attn__ignored_inputs(attn__attempt *a)
{
    attn__interview *in = a->interview;
    const attn__question *q = richest(a);
    const attn__question *base = again(a, q, VIEW_PLAIN);
    const attn__question *other =
        attn__compose(in, "other data", q->n, q->asked & (ASK_GROUPS - 1));
    unsigned ignored = 0;

    if (!base || !other || in->layer || in->backward)
        return 0;
    for (unsigned bit = 1;
         bit <= (in->binding->shared == NO_VALUES ? 2 : 4); bit *= 2) {
        attn__question mixed = *q;
        const attn__question *call;

        if (bit == 1)
            mixed.q = other->q;
        else if (bit == 2)
            mixed.k = other->k;
        else
            mixed.v = other->v;
        call = again(a, &mixed, VIEW_PLAIN);
        ignored |= call && same(call, base) ? bit : 0;
    }
    return ignored;
}

/* -------------------------------------------------------------- precision */

/* x (1 + 2^-21): f32 sees it, 16 bits do not. */
static double *nudged(attn__arena *arena, const double *x, int64_t n)
{
    double *y = attn__arena_doubles(arena, n + 1);

    for (int64_t e = 0; y && e < n; e++)
        y[e] = x[e] * (1 + 0x1p-21);
    return y;
}

bool attn__is_coarse(attn__attempt *a)
{
    attn__interview *in = a->interview;
    attn__question *q = &in->questions[0], *near, *same_again;
    int64_t unchanged = 0;

    if (in->n == 0 || !in->binding->subject->call)
        return true; /* a dump: nobody knows */
    q = &in->questions[in->n / 2];
    same_again = again(a, q, VIEW_PLAIN);
    near = attn__arena_take(in->arena, 1, sizeof *near);
    if (!near || !same_again)
        return false;
    *near = *q;
    near->q = nudged(in->arena, q->q, attn__count_q(&q->n));
    if (in->binding->shared == SHARED_ALL)
        near->k = near->q;
    attn__share(in->binding, near);
    if (q->layer.x)
        near->layer.x =
            nudged(in->arena, q->layer.x,
                   q->n.batch * q->n.len_q * q->layer.model);
    near = near->q ? again(a, near, VIEW_PLAIN) : NULL;
    if (!near)
        return false;
    for (int64_t x = 0; x < q->n_answer; x++)
        unchanged += near->answer[x] == same_again->answer[x];
    return 2 * unchanged > q->n_answer;
}

/* ---------------------------------------------------------------- memory */

static bool is_met(attn__exam *exam, const attn__attempt *a,
                   const attn__question *q)
{
    attn__model right;

    attn__model_init(&right);
    attn__predict(&exam->work, &right, &a->meaning, q);
    return attn__compare(&exam->work, q, a->tier).worst <= 1;
}

const attn__question *attn__first_wrong(attn__exam *exam,
                                        const attn__attempt *a, int64_t keys)
{
    for (int64_t x = 0; x < a->interview->n; x++) {
        const attn__question *q = &a->interview->questions[x];

        if (q->n.len_k >= keys && !is_met(exam, a, q))
            return q;
    }
    return NULL;
}

/* Is q's answer right with some of its q, k, v, mask from `old`? */
static bool is_met_with(attn__exam *exam, const attn__attempt *a,
                        const attn__question *q, const attn__question *old)
{
    const bool masks =
        q->mask && old->mask &&
        memcmp(q->mask_shape, old->mask_shape, sizeof q->mask_shape) == 0;

    for (unsigned parts = 1; parts < (masks ? 16u : 8u); parts++) {
        attn__question mixed = *q;

        if (parts & 1)
            mixed.q = old->q;
        if (parts & 2)
            mixed.k = old->k;
        if (parts & 4)
            mixed.v = old->v;
        if (parts & 8)
            mixed.mask = old->mask;
        if (is_met(exam, a, &mixed))
            return true;
    }
    return false;
}

/* Is q's answer right with the longest length of all calls before it? */
static bool is_met_with_length(attn__exam *exam, const attn__attempt *a,
                               const attn__question *q)
{
    attn__interview *in = a->interview;
    int64_t *lengths =
        attn__arena_take(in->arena, q->n.batch, sizeof *lengths);
    attn__question longer = *q;

    if (!q->lengths || !lengths)
        return false;
    for (int64_t b = 0; b < q->n.batch; b++)
        lengths[b] = q->longest < q->n.len_k ? q->longest : q->n.len_k;
    longer.lengths = lengths;
    return is_met(exam, a, &longer);
}

static bool is_met_by_some(attn__exam *exam, const attn__attempt *a,
                           const attn__question *q)
{
    const attn__interview *in = a->interview;

    for (int64_t y = 0; y < in->n; y++) {
        const attn__question *old = &in->questions[y];

        if (old->number < q->number &&
            memcmp(&old->n, &q->n, sizeof q->n) == 0 &&
            is_met_with(exam, a, q, old))
            return true;
    }
    return false;
}

bool attn__is_memory(attn__exam *exam, const attn__attempt *a)
{
    int64_t wrong = 0;

    if (a->interview->backward)
        return false;
    for (int64_t x = 0; x < a->interview->n; x++) {
        const attn__question *q = &a->interview->questions[x];

        if (is_met(exam, a, q))
            continue;
        if (!is_met_by_some(exam, a, q) && !is_met_with_length(exam, a, q))
            return false;
        wrong++;
    }
    return wrong > 0;
}

/* ------------------------------------------------------------- broadcast */

static bool is_full(const attn__question *q)
{
    return q->mask_shape[0] == q->n.batch && q->mask_shape[1] == q->n.heads_q &&
           q->mask_shape[2] == q->n.len_q;
}

static bool explain_by_broadcast(attn__exam *exam, const attn__attempt *a)
{
    bool full = false;

    for (int64_t x = 0; x < a->interview->n; x++) {
        const attn__question *q = &a->interview->questions[x];
        const bool met = is_met(exam, a, q);

        if (!met && (!q->mask || is_full(q)))
            return false;
        full |= met && q->mask && is_full(q) && q->n.batch > 1;
    }
    if (!full)
        return false;
    attn__add_fault(exam->report, "broadcast-stride-zero", "")->evidence =
        "a mask with all its axes is right, one with axes of length 1 is not";
    return true;
}

/* Does another mask of the same shape leave the answer as it is? */
static bool ignores_another_mask(attn__attempt *a, const attn__question *q)
{
    const int64_t n = q->mask_shape[0] * q->mask_shape[1] * q->mask_shape[2] *
                      q->mask_shape[3];
    unsigned char *mask = attn__arena_copy(a->interview->arena, q->mask, n, 1);
    attn__question other = *q;
    const attn__question *before, *after;

    if (!mask)
        return false;
    for (int64_t e = 0; e < n; e++)
        mask[e] = mask[e] != (e % q->mask_shape[3] != 0);
    other.mask = mask;
    before = again(a, q, VIEW_PLAIN);
    after = again(a, &other, VIEW_PLAIN);
    return before && after && same(before, after);
}

/* Where some masks are right, are those that are not those of earlier calls? */
static bool remembers_masks(attn__exam *exam, attn__attempt *a)
{
    const attn__question *wrong = NULL;
    bool met = false;

    for (int64_t x = 0; x < a->interview->n; x++) {
        const attn__question *q = &a->interview->questions[x];

        if (!q->mask)
            continue;
        if (is_met(exam, a, q))
            met = true;
        else if (!wrong)
            wrong = q;
    }
    return met && wrong && exam->subject->call &&
           ignores_another_mask(a, wrong);
}

bool attn__explain_by_mask(attn__exam *exam, attn__attempt *a)
{
    if (!remembers_masks(exam, a))
        return explain_by_broadcast(exam, a);
    attn__add_fault(exam->report, "state-kept", "")->evidence =
        "another mask of a shape that came before changes nothing";
    return true;
}

/* ----------------------------------------------------------------- views */

static bool close_to(const attn__question *x, const attn__question *y,
                     attn__tier tier)
{
    const double unit = attn__unit(tier);
    double size = 1;

    for (int64_t e = 0; e < y->n_answer; e++)
        size = isfinite(y->answer[e]) ? fmax(size, fabs(y->answer[e])) : size;
    for (int64_t e = 0; e < x->n_answer; e++) {
        const bool agree = isfinite(x->answer[e]) == isfinite(y->answer[e]);
        const double error = fabs(x->answer[e] - y->answer[e]);

        /* Sums in another order: 2^10 roundings are more than any has. */
        if (!agree || (isfinite(error) && error > 1024 * unit * size))
            return false;
    }
    return true;
}

void attn__check_views(attn__exam *exam, attn__attempt *a)
{
    static const struct {
        attn__view view;
        const char *id, *detail;
    } views[] = {
        {VIEW_STRIDED, "strides-ignored", "Every second element of a buffer"},
        {VIEW_TURNED, "strides-ignored", "The last two axes exchanged"},
        {VIEW_BROADCAST, "broadcast-stride-zero", ""},
    };

    for (size_t x = 0; x < sizeof views / sizeof views[0]; x++) {
        const attn__question *plain = richest(a);
        const bool broadcast = views[x].view == VIEW_BROADCAST;
        const attn__question *base, *viewed;

        base = broadcast ? attn__same_for_all(a->interview, plain) : plain;
        if (!base)
            continue;
        plain = again(a, base, VIEW_PLAIN);
        viewed = again(a, base, views[x].view);
        if (!plain || !viewed || close_to(viewed, plain, a->tier))
            continue;
        attn__add_fault(exam->report, views[x].id, views[x].detail)->evidence =
            "the same numbers in a dense copy give another answer";
    }
}

/* --------------------------------------------------------------- mutation */

void attn__check_mutation(attn__exam *exam, const attn__attempt *a)
{
    uint32_t mutated = 0;
    const char *names = "";
    attn_report *r = exam->report;

    for (int64_t x = 0; x < a->interview->n; x++)
        mutated |= a->interview->questions[x].mutated;
    if (!mutated)
        return;
    for (int x = 0; x < exam->subject->n_parameters && x < 32; x++) {
        if (mutated & UINT32_C(1) << x)
            names = attn__arena_text(&r->arena, "%s%s%s", names,
                                     *names ? ", " : "",
                                     exam->subject->parameters[x].name);
    }
    attn__add_fault(r, "inputs-mutated", "")->evidence =
        attn__arena_text(&r->arena, "after a call other numbers stand in: %s",
                         names);
}
