/* SPDX-License-Identifier: Apache-2.0
 *
 * The search for what explains the answers. Questions are in order of
 * simplicity, so the first that fails is the simplest one; what meets it is a
 * candidate, and the next question that is still not met asks for another. */
#include "doctor/match.h"

#include <string.h>

#include "core/checked.h"
#include "doctor/wrong.h"

const attn__hypothesis attn__hypotheses[] = {
#define ATTN__WRONG(id, slot, step, param, needs, detail)                     \
    {id, SLOT_##slot, step, param, needs, detail},
#include "doctor/hypotheses.def"
#undef ATTN__WRONG
};
const int attn__n_hypotheses =
    sizeof attn__hypotheses / sizeof attn__hypotheses[0];

/* ------------------------------------------------------------ one model */

/* What the question asks, with what the meaning has built in. */
static uint32_t asked(const attn__question *q, const attn__meaning *m)
{
    uint32_t bits = q->asked;

    if (m->always != ATTN_CAUSAL_NONE)
        bits |= ASK_CAUSAL;
    if (m->always_window[0] >= 0 || m->always_window[1] >= 0)
        bits |= ASK_WINDOW;
    if (m->softcap > 0)
        bits |= ASK_SOFTCAP;
    if (m->has_scale)
        bits |= ASK_SCALE;
    if (m->slopes || m->has_table)
        bits |= ASK_ALIBI;
    if (m->sinks)
        bits |= ASK_SINKS;
    return bits;
}

static bool applies(const attn__hypothesis *h, uint32_t bits)
{
    return (h->needs & bits) == h->needs;
}

/* The most for one stage of a search. */
static const int64_t most_work = 400000000;

typedef struct search {
    const attn__evidence *e;
    const attn__meaning *meaning;
    unsigned char *right; /* per question: met by the right model */
    int most;
    const attn__hypothesis *set[ATTN__MAX_WRONG];
    int n;
    attn__explanation *best;
    bool found;
    bool strict;  /* a member meets all questions like the one it is for */
    int64_t left; /* work that may still be done, in multiplications */
} search;

static void extend(search *s, int64_t from);

static void spend(search *s, int64_t work)
{
    s->left -= work;
    *s->e->effort -= work;
}

static void begin_stage(search *s, bool strict)
{
    s->strict = strict;
    s->left = attn__min_i64(most_work, *s->e->effort);
    extend(s, 0);
}

/* Is question x met by the right model with the wrong steps of `mask` (bits
 * of the set)? It must make a claim. */
static bool meets(search *s, int64_t x, unsigned mask)
{
    const attn__question *q = &s->e->questions[x];
    attn__model model;
    attn__closeness c;

    spend(s, attn__count_pairs(&q->n) * (q->n.dim_qk + q->n.dim_v + 8));
    attn__model_init(&model);
    for (int h = 0; h < s->n; h++) {
        const attn__hypothesis *wrong = s->set[h];

        if (!(mask & 1u << h))
            continue;
        model.step[wrong->slot] = wrong->step;
        model.param[wrong->slot] = wrong->param;
    }
    attn__predict(s->e->work, &model, s->meaning, q);
    c = attn__compare(s->e->work, q, s->e->tier);
    return c.worst <= 1 && (c.compared > 0 || mask == 0);
}

attn__score attn__score_right(const attn__evidence *e,
                              const attn__meaning *meaning)
{
    search s = {.e = e, .meaning = meaning};
    attn__score score = {0};

    for (int64_t x = 0; x < e->n; x++) {
        if (meets(&s, x, 0))
            score.met++;
        else
            score.failed++;
    }
    return score;
}

/* --------------------------------------------------------------- the set */

static bool slots_differ(const search *s, const attn__hypothesis *h)
{
    for (int x = 0; x < s->n; x++) {
        if (s->set[x]->slot == h->slot)
            return false;
    }
    return true;
}

/* Met by some part of the set that has its last member. */
static bool last_helps(search *s, int64_t x)
{
    const unsigned last = 1u << (s->n - 1);

    for (unsigned mask = last; mask < 2 * last; mask++) {
        if (meets(s, x, mask))
            return true;
    }
    return false;
}

static bool is_met(search *s, int64_t x)
{
    const unsigned end = 1u << s->n;

    if (s->right[x])
        return true;
    for (unsigned mask = 1; mask < end; mask++) {
        if (meets(s, x, mask))
            return true;
    }
    return false;
}

/* Are all questions with the options of question x met? */
static bool meets_alike(search *s, int64_t x)
{
    const uint32_t bits = (ASK_GROUPS - 1) | ASK_GROUPS;
    const uint32_t wanted = s->e->questions[x].asked & bits;

    for (int64_t y = 0; y < s->e->n; y++) {
        if ((s->e->questions[y].asked & bits) == wanted && !is_met(s, y))
            return false;
    }
    return true;
}

/* The first question that nothing meets yet; -1 if there is none. */
static int64_t first_unmet(search *s, int64_t from)
{
    for (int64_t x = from; x < s->e->n; x++) {
        if (!is_met(s, x))
            return x;
    }
    return -1;
}

/* ---------------------------------------------------------------- record */

static int64_t cost_of(const search *s)
{
    int64_t cost = 0;

    for (int x = 0; x < s->n; x++)
        cost += s->set[x] - attn__hypotheses;
    return cost;
}

/* Questions that the right model alone met, though the set says otherwise. */
static int64_t count_beside(search *s)
{
    int64_t beside = 0;

    for (int64_t x = 0; x < s->e->n; x++) {
        if (s->right[x] && !meets(s, x, (1u << s->n) - 1))
            beside++;
    }
    return beside;
}

static bool names(const attn__explanation *x, const char *fault)
{
    for (int h = 0; h < x->n; h++) {
        if (strcmp(x->wrong[h]->fault, fault) == 0)
            return true;
    }
    return false;
}

static void note_other(attn__explanation *best, const search *s)
{
    for (int h = 0; h < s->n; h++) {
        const char *id = s->set[h]->fault;
        const size_t used = strlen(best->also);

        if (names(best, id) || strstr(best->also, id) ||
            used + strlen(id) + 3 > sizeof best->also)
            continue;
        strcat(best->also, used > 0 ? ", " : "");
        strcat(best->also, id);
    }
}

static void record(search *s)
{
    attn__explanation *best = s->best;
    const int64_t beside = count_beside(s), cost = cost_of(s);
    const bool better =
        !s->found || s->n < best->n ||
        (s->n == best->n &&
         (beside < best->beside ||
          (beside == best->beside && cost < best->cost)));

    if (!better) {
        if (s->n == best->n && beside == best->beside)
            note_other(best, s);
        return;
    }
    s->found = true;
    best->n = s->n;
    memcpy(best->wrong, s->set, sizeof s->set);
    best->beside = beside;
    best->cost = cost;
    best->also[0] = '\0';
}

/* ---------------------------------------------------------------- search */

/* Try h as the next member; it must help with question x. */
static void try_one(search *s, const attn__hypothesis *h, int64_t x)
{
    if (!slots_differ(s, h))
        return;
    s->set[s->n++] = h;
    if (last_helps(s, x) && (!s->strict || meets_alike(s, x)))
        extend(s, x + 1);
    s->n--;
}

/* Two more members that help only together. */
static void try_two(search *s, int64_t x, uint32_t bits)
{
    for (int a = 0; a < attn__n_hypotheses; a++) {
        const attn__hypothesis *h = &attn__hypotheses[a];

        if (!applies(h, bits) || !slots_differ(s, h))
            continue;
        s->set[s->n++] = h;
        for (int b = a + 1; b < attn__n_hypotheses && s->left > 0; b++) {
            const attn__hypothesis *g = &attn__hypotheses[b];

            if (!applies(g, bits) || !slots_differ(s, g))
                continue;
            s->set[s->n++] = g;
            if (meets(s, x, (1u << s->n) - 1))
                extend(s, x + 1);
            s->n--;
        }
        s->n--;
    }
}

/* Go on from a set that meets all questions before `from`. */
static void extend(search *s, int64_t from)
{
    const int64_t x = first_unmet(s, from);
    const bool known = s->found;
    uint32_t bits;

    if (x < 0) {
        if (s->n > 0)
            record(s);
        return;
    }
    if (s->left < 0 || s->n >= s->most ||
        (s->found && s->n >= s->best->n))
        return;
    bits = asked(&s->e->questions[x], s->meaning);
    for (int h = 0; h < attn__n_hypotheses && s->left > 0; h++) {
        if (applies(&attn__hypotheses[h], bits | ASK_ALONE))
            try_one(s, &attn__hypotheses[h], x);
    }
    if (s->found == known && !s->found && !s->strict && s->n + 2 <= s->most)
        try_two(s, x, bits);
}

bool attn__explain(const attn__evidence *e, const attn__meaning *meaning,
                   int most, attn__explanation *best)
{
    unsigned char right[1024] = {0};
    search s = {.e = e,
                .meaning = meaning,
                .right = right,
                .best = best,
                .left = most_work};

    *best = (attn__explanation){.first = -1};
    for (int64_t x = 0; x < e->n && x < 1024; x++) {
        right[x] = meets(&s, x, 0);
        if (!right[x] && best->first < 0)
            best->first = x;
    }
    for (s.most = 1; s.most <= most && !s.found; s.most++) {
        if (s.most > 1)
            begin_stage(&s, true);
        if (!s.found)
            begin_stage(&s, false);
    }
    return s.found;
}

bool attn__would_show(const attn__evidence *e, const attn__meaning *meaning,
                      const attn__hypothesis *h)
{
    search s = {.e = e, .meaning = meaning, .left = most_work};

    s.set[0] = h;
    s.n = 1;
    for (int64_t x = 0; x < e->n; x++) {
        if (applies(h, asked(&e->questions[x], meaning) | ASK_ALONE) &&
            meets(&s, x, 0) && !meets(&s, x, 1))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------- partly */

enum { MOST_SAMPLE = 20 };

/* To sample[]: wrong questions with enough to tell by, no two of which ask
 * the same. */
static int sample_wrong(search *s, int64_t sample[MOST_SAMPLE])
{
    int n = 0;

    for (int64_t x = 0; x < s->e->n && n < MOST_SAMPLE; x++) {
        const attn__question *q = &s->e->questions[x];
        bool known = q->n.len_k < 5 || attn__count_pairs(&q->n) > 4000;

        for (int y = 0; y < n; y++)
            known |= s->e->questions[sample[y]].asked == q->asked;
        if (!known && !meets(s, x, 0))
            sample[n++] = x;
    }
    return n;
}

/* Gives up where it cannot be more than `least`. */
static int count_met(search *s, const attn__hypothesis *h,
                     const int64_t *sample, int n, int least)
{
    int met = 0;

    s->set[0] = h;
    s->n = 1;
    for (int x = 0; x < n && met + n - x > least; x++) {
        if (applies(h, asked(&s->e->questions[sample[x]], s->meaning) |
                           ASK_ALONE))
            met += meets(s, sample[x], 1);
    }
    return met;
}

const attn__hypothesis *attn__explain_partly(const attn__evidence *e,
                                             const attn__meaning *meaning,
                                             int *met, int *wrong)
{
    search s = {.e = e, .meaning = meaning, .left = most_work};
    const attn__hypothesis *best = NULL;
    int64_t sample[MOST_SAMPLE];

    *wrong = sample_wrong(&s, sample);
    *met = *wrong / 3;
    for (int h = 0; h < attn__n_hypotheses && s.left > 0; h++) {
        const int n = count_met(&s, &attn__hypotheses[h], sample, *wrong,
                                *met);

        if (n <= *met)
            continue;
        *met = n;
        best = &attn__hypotheses[h];
    }
    return best;
}
