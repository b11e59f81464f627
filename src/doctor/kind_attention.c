/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds that are questions about attention: fn(q, k, v, options), the same
 * with gradients, and layers. Layouts are tried in turn; another one, or a
 * lower rank, wins only where it does better. */
#include <stdlib.h>
#include <string.h>

#include "doctor/fused.h"
#include "doctor/hygiene.h"
#include "doctor/structure.h"

enum { MOST_WAYS = 32 };

static bool is_packed(attn__layout layout)
{
    return attn__layout_facts_of(layout)->packed;
}

static int rank_of(const attn__attempt *a)
{
    const attn__layout_facts *f = attn__layout_facts_of(a->binding.layout);

    return f->batch + f->heads;
}

/* ---------------------------------------------------------- one layout */

static bool has_role(const attn__binding *b, attn__role role)
{
    return attn__parameter_of(b, role) >= 0;
}

/* Does it take packed sequences and nothing else? */
static bool is_packing(const attn__binding *b)
{
    const int x = attn__parameter_of(b, ROLE_CU_Q);

    return x >= 0 && !b->subject->parameters[x].optional;
}

/* How the window is passed: a pair, or one number. */
static void learn_window(attn__interview *in)
{
    attn__binding *b = in->binding;
    const int64_t n = in->n;
    attn__question *q;

    if (!has_role(b, ROLE_WINDOW) || in->always & ASK_WINDOW)
        return;
    q = attn__compose(in, "window as a pair", attn__sizes_general(in),
                      ASK_WINDOW);
    b->window_is_number = !q || !attn__put(in, q);
    in->n = n;
}

static void set_mask_form(attn__binding *b, int form)
{
    b->mask_batched = form == 1;
    b->mask_full = form == 2;
}

static void rename_masks(attn__binding *b, attn__role from, attn__role to)
{
    const int x = attn__parameter_of(b, from);

    if (x >= 0 && attn__parameter_of(b, to) < 0)
        b->role[x] = to;
}

/* No mask of queries and keys is taken: one of keys alone? */
static void learn_key_mask(attn__interview *in)
{
    attn__question *q;

    if (in->lost || has_role(in->binding, ROLE_KEY_MASK))
        return;
    set_mask_form(in->binding, 0);
    rename_masks(in->binding, ROLE_MASK, ROLE_KEY_MASK);
    q = attn__compose(in, "mask", attn__sizes_general(in), ASK_MASK);
    if (!q || !attn__put(in, q))
        rename_masks(in->binding, ROLE_KEY_MASK, ROLE_MASK);
}

/* How many axes masks have. */
static void learn_mask(attn__interview *in)
{
    const int64_t n = in->n;
    const attn__sizes sizes = attn__sizes_general(in);
    const int64_t shape[4] = {sizes.batch, 1, sizes.len_q, sizes.len_k};

    if (!has_role(in->binding, ROLE_MASK))
        return;
    for (int form = 0; form < 3; form++) {
        attn__question *q = attn__compose_mask(in, "mask", sizes, ASK_MASK,
                                               shape);

        set_mask_form(in->binding, form);
        if (q && attn__put(in, q))
            break;
    }
    if (in->n == n)
        learn_key_mask(in);
    in->n = n;
}

/* The first answer; where a mask or a window must be given, in the form that
 * it takes. */
static bool make_contact(attn__interview *in)
{
    const int masks = in->always & ASK_MASK ? 3 : 1;
    const int windows = in->always & ASK_WINDOW ? 2 : 1;

    for (int form = 0; form < masks * windows && !in->lost; form++) {
        set_mask_form(in->binding, form % masks);
        in->binding->window_is_number = form / masks > 0;
        if (attn__first_contact(in))
            return true;
    }
    if (masks == 1 || in->lost || has_role(in->binding, ROLE_KEY_MASK))
        return false;
    rename_masks(in->binding, ROLE_MASK, ROLE_KEY_MASK);
    set_mask_form(in->binding, 0);
    in->binding->window_is_number = false;
    return attn__first_contact(in);
}

/* Must it be given? There is no default, or one that would change the answer:
 * a window or a cap of some size, or a scale, where
 * nobody says which is meant. */
static bool is_due(const attn_parameter *p, attn__role role, bool identify)
{
    const bool sized = role == ROLE_WINDOW || role == ROLE_SOFTCAP ||
                       (role == ROLE_SCALE && identify);
    const bool needed = !p->optional && role != ROLE_SCALE;
    const char *number = p->fallback ? p->fallback : "";

    number += strspn(number, "([ ");
    return needed || (p->optional && sized && atof(number) > 0);
}

/* Options that every question asks. */
static uint32_t required_options(const attn__binding *b, bool identify)
{
    static const struct {
        attn__role role;
        uint32_t bit;
    } options[] = {
        {ROLE_MASK, ASK_MASK},       {ROLE_KEY_MASK, ASK_MASK},
        {ROLE_BIAS, ASK_BIAS},       {ROLE_WINDOW, ASK_WINDOW},
        {ROLE_SLOPES, ASK_ALIBI},    {ROLE_SINKS, ASK_SINKS},
        {ROLE_LENGTHS, ASK_LENGTHS}, {ROLE_OFFSET, ASK_OFFSET},
        {ROLE_SOFTCAP, ASK_SOFTCAP}, {ROLE_SCALE, ASK_SCALE},
    };
    uint32_t bits = 0;

    for (size_t x = 0; x < sizeof options / sizeof options[0]; x++) {
        const int at = attn__parameter_of(b, options[x].role);

        if (at >= 0 &&
            is_due(&b->subject->parameters[at], options[x].role, identify))
            bits |= options[x].bit;
    }
    return bits;
}

static void learn_band(attn__attempt *a)
{
    const attn__band band = attn__read_band(a);

    a->has_band = band.found;
    a->band[0] = band.left;
    a->band[1] = band.right;
    a->has_slopes = attn__read_slopes(a);
}

/* Does its documentation say that masks are True and False? */
static bool wants_booleans(const attn_subject *s)
{
    static const char *const no[] = {"-inf", "additive", "float", "bias"};
    static const char *const yes[] = {"bool", "true", "keep", "1 where",
                                      "1 for", "0/1", "1 = ", "nonzero"};
    bool wants = false;

    for (size_t x = 0; x < sizeof yes / sizeof yes[0]; x++)
        wants |= attn__speaks_of(s, yes[x]);
    for (size_t x = 0; x < sizeof no / sizeof no[0]; x++)
        wants &= !attn__speaks_of(s, no[x]);
    return wants;
}

/* Where masks as True and False make no sense, perhaps they are meant as 0
 * and -inf: the questions that have one are put again so. What is added may be
 * any number, so that is asked too. */
static void try_additive_mask(attn__exam *exam, attn__attempt *a)
{
    attn__interview *in = a->interview;
    attn__attempt added = *a;
    attn__question *number;

    if (!has_role(&a->binding, ROLE_MASK) || wants_booleans(exam->subject))
        return;
    added.interview = attn__arena_take(in->arena, 1, sizeof *in);
    if (!added.interview)
        return;
    *added.interview = *in;
    added.interview->binding = &added.binding;
    added.binding.mask_adds = true;
    for (int64_t x = 0; x < in->n; x++) {
        attn__question *q = &added.interview->questions[x];

        if (q->mask && (!attn__ask(&added.binding, q, VIEW_PLAIN, in->arena) ||
                        q->outcome != ATTN_ANSWERED))
            return;
    }
    number = attn__compose(added.interview, "any number",
                           attn__sizes_general(in), ASK_BIAS);
    if (number) {
        number->asked &= ~(uint32_t)ASK_MASK;
        number->mask = NULL;
        attn__put(added.interview, number);
    }
    attn__judge(exam, &added, 1);
    if (added.state == STATE_RIGHT) {
        *a = added;
        a->interview->binding = &a->binding;
    }
}

/* An explanation that another layout of the arrays would make needless. */
static bool is_suspect(const attn__attempt *a)
{
    static const char *const ids[] = {"batch-first",
                                      "heads-split-no-transpose",
                                      "heads-merge-no-transpose",
                                      "heads-dim-order"};

    if (is_packed(a->binding.layout) || a->by_memory)
        return false;
    for (int x = 0; x < a->explanation.n; x++) {
        for (size_t y = 0; y < sizeof ids / sizeof ids[0]; y++) {
            if (strcmp(a->explanation.wrong[x]->fault, ids[y]) == 0)
                return true;
        }
    }
    return false;
}

/* What the sizes of its questions may be. */
static uint32_t possible_sizes(const attn__attempt *a)
{
    const attn__binding *b = &a->binding;

    if (a->interview->decode || b->q_flat)
        return ASK_GROUPS | ASK_DIMS;
    if (b->fusion != FUSION_NONE && has_role(b, ROLE_KV))
        return ASK_GROUPS | ASK_CROSS;
    if (b->fusion != FUSION_NONE)
        return has_role(b, ROLE_KV_HEADS) ? ASK_GROUPS : 0;
    if (b->shared != SHARED_NONE)
        return b->shared == SHARED_ALL ? 0 : ASK_GROUPS | ASK_CROSS;
    if (!a->interview->layer)
        return ASK_GROUPS | ASK_CROSS | ASK_DIMS;
    return ASK_MODEL | (has_role(b, ROLE_KV_HEADS) ? ASK_GROUPS : 0) |
           (has_role(b, ROLE_W_QKV) ? 0 : ASK_DIMS);
}

static void prepare(attn__exam *exam, attn__way way, attn__attempt *a)
{
    attn__interview *in = a->interview;

    attn__bind(&a->binding, exam->subject, exam->kind);
    a->binding.layout = way.layout;
    a->binding.weights_out = way.weights_out;
    a->binding.q_flat = way.q_flat;
    a->binding.kv_single = way.kv_single;
    a->binding.fusion = way.fusion;
    a->binding.fusion_axis = way.fusion_axis;
    a->binding.one_length = way.one_length;
    a->binding.dtype = exam->options.dtype;
    a->binding.mask_adds = exam->expect.mask_adds;
    in->arena = &exam->arena;
    in->binding = &a->binding;
    in->random = (attn__random){.seed = exam->options.seed};
    in->heads = exam->expect.heads;
    in->kv_heads = way.kv_single ? 1 : exam->expect.kv_heads;
    in->backward = exam->kind == ATTN_KIND_BACKWARD;
    in->work = &exam->work;
    attn__list_meanings(exam, a, &in->meaning, 1);
    in->layer = exam->kind == ATTN_KIND_MULTI_HEAD;
    in->decode = exam->kind == ATTN_KIND_DECODE;
    in->varlen = way.varlen || is_packing(&a->binding);
    in->strict = !exam->expect.identify;
    in->always = in->decode ? 0 : required_options(&a->binding, !in->strict);
    in->budget = exam->options.seconds;
    if (in->layer && !has_role(&a->binding, ROLE_HEADS) && in->heads == 0)
        in->heads = 1;
    in->possible = possible_sizes(a);
    if (!attn__layout_facts_of(way.layout)->heads)
        in->possible &= ~(uint32_t)ASK_GROUPS; /* nothing to group */
    a->hinted = rank_of(a) == 2 && (attn__speaks_of(exam->subject, "batch") ||
                                    attn__speaks_of(exam->subject, "head") ||
                                    attn__speaks_of(exam->subject, "(b,"));
}

/* With sizes that differ by `most_sizes` at the most. */
static bool attempt_with(attn__exam *exam, attn__way way, int most,
                         uint32_t most_sizes, attn__attempt *a)
{
    attn__interview *in =
        attn__arena_take(&exam->arena, 1, sizeof *a->interview);

    *a = (attn__attempt){.interview = in};
    if (!in)
        return false;
    prepare(exam, way, a);
    in->possible &= most_sizes;
    if (!make_contact(in)) {
        a->refusal = in->refusal ? in->refusal : "";
        a->wrong_shape = in->wrong_shape;
        return true;
    }
    a->conduct = (int)attn__observe(a);
    a->state = STATE_UNEXPLAINED;
    if (a->conduct != CONDUCT_FINE)
        return true;
    learn_window(in);
    learn_mask(in);
    attn__ask_all(in);
    if (!in->layer && !in->backward && !in->decode && !way.q_flat)
        learn_band(a);
    attn__judge(exam, a, most);
    if (a->state != STATE_RIGHT && exam->expect.identify)
        try_additive_mask(exam, a);
    if (most == 0)
        return true;
    if ((a->state == STATE_UNEXPLAINED ||
         (a->state == STATE_NAMED && is_suspect(a))) &&
        attn__is_memory(exam, a)) {
        a->state = STATE_NAMED;
        a->by_memory = true;
        a->explanation.n = 1;
    }
    return true;
}

/* Code that takes no groups may read beyond the keys of fewer heads: memory at
 * random, in which nothing can be seen. */
bool attn__attempt_way(attn__exam *exam, attn__way way, int most,
                       attn__attempt *a)
{
    attn__attempt fewer;

    if (!attempt_with(exam, way, most, UINT32_MAX, a))
        return false;
    if (a->conduct == CONDUCT_FINE || !(a->interview->sizes & ASK_GROUPS))
        return true;
    if (!attempt_with(exam, way, most, ~(uint32_t)ASK_GROUPS, &fewer))
        return false;
    if (fewer.state == STATE_SILENT || fewer.conduct != CONDUCT_FINE)
        return true;
    *a = fewer;
    a->interview->binding = &a->binding;
    a->groups_at_random = true;
    return true;
}

/* ------------------------------------------------------- which layout */

static int n_sizes(const attn__attempt *a)
{
    return __builtin_popcount(a->interview->sizes);
}

/* Has `a` been asked with as many axes, and as many different sizes, as `b`? */
static bool is_as_rich(const attn__attempt *a, const attn__attempt *b)
{
    return rank_of(a) >= rank_of(b) &&
           n_sizes(a) >= n_sizes(b);
}

/* What is known of it. An explanation that another layout would make needless
 * is worth less than a layout in which plain questions are right. */
static int level(const attn__attempt *a)
{
    switch (a->state) {
    case STATE_RIGHT:
        return 5;
    case STATE_NAMED:
        return is_suspect(a) ? 2 : 4;
    case STATE_UNEXPLAINED:
        return a->plain_right ? 3 : 1;
    default:
        return 0;
    }
}

/* Does `a`, which is right, have questions on which the bugs of `b` would have
 * shown? Then they are none: b's axes are not what is meant. */
static bool contradicts(attn__exam *exam, const attn__attempt *a,
                        const attn__attempt *b)
{
    const attn__evidence e = attn__evidence_of(exam, a);

    if (n_sizes(a) < n_sizes(b) || b->by_memory)
        return false;
    for (int x = 0; x < b->explanation.n; x++) {
        if (!attn__would_show(&e, &a->meaning, b->explanation.wrong[x]))
            return false;
    }
    return true;
}

static bool has_dim_first(const attn__attempt *a)
{
    return attn__layout_facts_of(a->binding.layout)->dim_first;
}

/* Does its documentation have the length last? */
static bool speaks_of_length_last(const attn_subject *s)
{
    static const char *const said[] = {"d, l)", "d, n)",   "d, s)", "d, t)",
                                       "c, l)", "c, t)",   "c, n)", "d, m)",
                                       "dim, l", "dim, s", "channels first"};
    bool says = false;

    for (size_t x = 0; x < sizeof said / sizeof said[0]; x++)
        says |= attn__speaks_of(s, said[x]);
    return says;
}

/* The length last is unusual: to believe it takes lengths that differ, or the
 * subject's word. */
static bool is_doubtful(const attn__exam *exam, const attn__attempt *a)
{
    return has_dim_first(a) && a->binding.fusion == FUSION_NONE &&
           !(a->interview->sizes & ASK_CROSS) &&
           !speaks_of_length_last(exam->subject);
}

/* Does `a` do better than `b`? With as many faults, what came first stays.
 * More sizes that differ, or more axes, are a reason to believe that an answer
 * is what was meant: to beat it, `a` must have been asked as much. */
static bool beats(attn__exam *exam, const attn__attempt *a,
                  const attn__attempt *b)
{
    if (a->state == STATE_SILENT || b->state == STATE_SILENT)
        return a->state != STATE_SILENT;
    if (is_doubtful(exam, a))
        return false;
    if (a->interview->equal != b->interview->equal)
        return b->interview->equal &&
               !(b->hinted && rank_of(a) < rank_of(b));
    if (level(a) == 4 && level(b) == 4)
        return a->explanation.n < b->explanation.n && is_as_rich(a, b);
    if (level(a) <= level(b))
        return false;
    if (level(b) == 1)
        return n_sizes(a) >= n_sizes(b);
    return is_as_rich(a, b) ||
           (level(a) == 5 && level(b) == 4 && contradicts(exam, a, b));
}

/* Where the subject says how many axes its first array has. */
static bool has_wanted_rank(const attn__exam *exam, const attn__way *way)
{
    const attn__layout_facts *f = attn__layout_facts_of(way->layout);
    const attn_subject *s = exam->subject;
    const int32_t rank = way->fusion != FUSION_NONE
                             ? attn__fused_rank(way->layout, way->fusion)
                             : 2 + f->batch + (f->heads && !f->packed);

    return s->n_parameters == 0 || s->parameters[0].rank == 0 ||
           s->parameters[0].rank == rank - way->q_flat;
}

/* Is there any use in trying this way? */
static bool is_sensible(const attn__exam *exam, const attn__way *way)
{
    const char *wanted = exam->options.layout;
    attn__binding b;

    attn__bind(&b, exam->subject, exam->kind);
    if (!has_wanted_rank(exam, way))
        return false;
    if (wanted)
        return attn__layout_of(wanted) == (int)way->layout;
    if (is_packing(&b)) /* (total, heads, dim) */
        return way->layout == LAYOUT_SHD && way->fusion != FUSION_FLAT;
    if (!is_packed(way->layout) && way->fusion != FUSION_FLAT)
        return true;
    return exam->kind == ATTN_KIND_MULTI_HEAD || exam->expect.heads > 0 ||
           has_role(&b, ROLE_HEADS);
}

/* What answers with more keys than queries contracts the last axis of these;
 * then it is not the length. */
static bool has_dim_last(const attn__attempt *best)
{
    return best->state != STATE_SILENT && !best->interview->equal &&
           best->interview->sizes & ASK_CROSS && !has_dim_first(best);
}

/* Wrong steps that another way may need and still be better. */
static int most_steps(const attn__attempt *best)
{
    return best->state == STATE_NAMED && !is_suspect(best) ? 0 : 1;
}

/* Of those that answer nothing, the one that ended with a crash, or else gave
 * wrong shapes, tells more. */
static int gravity(const attn__attempt *a)
{
    return a->interview->ended ? 2 : a->interview->wrong_shape;
}

static const attn__attempt *best_of(attn__exam *exam,
                                    const attn__attempt *tried, int n)
{
    const attn__attempt *best = &tried[0];

    for (int x = 1; x < n; x++) {
        if (beats(exam, &tried[x], best) ||
            (best->state == STATE_SILENT &&
             gravity(&tried[x]) > gravity(best)))
            best = &tried[x];
    }
    return best;
}

/* More effort for those that nothing explains yet and that have been asked
 * more than the best one. */
static void explain_further(attn__exam *exam, attn__attempt *tried, int n)
{
    const attn__attempt best = *best_of(exam, tried, n);

    for (int x = 0; x < n; x++) {
        attn__attempt *a = &tried[x];

        if (a->state != STATE_UNEXPLAINED || a->conduct != CONDUCT_FINE ||
            (level(&best) > 3 && is_as_rich(&best, a)))
            continue;
        attn__judge_further(exam, a);
    }
}

/* Try the ways in turn; the best is left in `best`. */
static bool find_way(attn__exam *exam, const attn__way *ways, int n,
                     attn__attempt *best)
{
    attn__attempt tried[MOST_WAYS];
    bool answered = false, done = false;
    int n_tried = 0;

    for (int x = 0; x < n && !done; x++) {
        attn__attempt *a = &tried[n_tried];
        const int most =
            n_tried > 0 ? most_steps(best_of(exam, tried, n_tried)) : 1;

        if (!is_sensible(exam, &ways[x]))
            continue;
        if (ways[x].one_length && x > 0 && answered)
            continue; /* lengths by batch element are what it takes */
        if (n_tried > 0 &&
            attn__layout_facts_of(ways[x].layout)->dim_first &&
            has_dim_last(best_of(exam, tried, n_tried)))
            continue;
        if (!attn__attempt_way(exam, ways[x], most, a))
            return false;
        a->interview->binding = &a->binding;
        n_tried++;
        answered = a->state != STATE_SILENT;
        done = best_of(exam, tried, n_tried)->state == STATE_RIGHT ||
               a->interview->lost;
    }
    if (n_tried == 0)
        return false;
    explain_further(exam, tried, n_tried);
    *best = *best_of(exam, tried, n_tried);
    return true;
}

static const attn__way ways[] = {
    {.layout = LAYOUT_BSE},  {.layout = LAYOUT_SE},  {.layout = LAYOUT_BHSD},
    {.layout = LAYOUT_BSHD}, {.layout = LAYOUT_HSD}, {.layout = LAYOUT_SHD},
    {.layout = LAYOUT_BSD},  {.layout = LAYOUT_SD},  {.layout = LAYOUT_BHDS},
    {.layout = LAYOUT_HDS},  {.layout = LAYOUT_BDS}, {.layout = LAYOUT_DS},
};
static const attn__way one_query_ways[] = {
    {.layout = LAYOUT_SD, .q_flat = true},
    {.layout = LAYOUT_BSD, .q_flat = true},
    {.layout = LAYOUT_HSD, .q_flat = true},
    {.layout = LAYOUT_SHD, .q_flat = true},
    {.layout = LAYOUT_BHSD, .q_flat = true},
    {.layout = LAYOUT_BSHD, .q_flat = true},
};
static const attn__way single_ways[] = {
    {.layout = LAYOUT_BHSD, .kv_single = true},
    {.layout = LAYOUT_BSHD, .kv_single = true},
    {.layout = LAYOUT_HSD, .kv_single = true},
    {.layout = LAYOUT_SHD, .kv_single = true},
};
static const attn__way fused_ways[] = {
    {.layout = LAYOUT_BSHD, .fusion = FUSION_STACKED, .fusion_axis = 2},
    {.layout = LAYOUT_BHSD, .fusion = FUSION_STACKED, .fusion_axis = 0},
    {.layout = LAYOUT_BHSD, .fusion = FUSION_STACKED, .fusion_axis = 1},
    {.layout = LAYOUT_BSHD, .fusion = FUSION_STACKED, .fusion_axis = 0},
    {.layout = LAYOUT_BSHD, .fusion = FUSION_STACKED, .fusion_axis = 1},
    {.layout = LAYOUT_BSHD, .fusion = FUSION_STACKED, .fusion_axis = 3},
    {.layout = LAYOUT_BSHD, .fusion = FUSION_FLAT, .fusion_axis = 2},
    {.layout = LAYOUT_BSHD, .fusion = FUSION_FLAT, .fusion_axis = 3},
    {.layout = LAYOUT_BHDS, .fusion = FUSION_FLAT, .fusion_axis = 1},
    {.layout = LAYOUT_BHDS, .fusion = FUSION_FLAT, .fusion_axis = 2},
    {.layout = LAYOUT_BSHD, .fusion = FUSION_JOINED, .fusion_axis = 3},
    {.layout = LAYOUT_BHSD, .fusion = FUSION_JOINED, .fusion_axis = 3},
    {.layout = LAYOUT_SHD, .fusion = FUSION_STACKED, .fusion_axis = 1},
    {.layout = LAYOUT_HSD, .fusion = FUSION_STACKED, .fusion_axis = 0},
    {.layout = LAYOUT_SHD, .fusion = FUSION_STACKED, .fusion_axis = 0},
    {.layout = LAYOUT_SHD, .fusion = FUSION_FLAT, .fusion_axis = 1},
    {.layout = LAYOUT_SHD, .fusion = FUSION_FLAT, .fusion_axis = 2},
    {.layout = LAYOUT_BSD, .fusion = FUSION_JOINED, .fusion_axis = 2},
    {.layout = LAYOUT_BSD, .fusion = FUSION_STACKED, .fusion_axis = 0},
    {.layout = LAYOUT_BSD, .fusion = FUSION_STACKED, .fusion_axis = 2},
    {.layout = LAYOUT_BSD, .fusion = FUSION_STACKED, .fusion_axis = 1},
    {.layout = LAYOUT_SD, .fusion = FUSION_JOINED, .fusion_axis = 1},
    {.layout = LAYOUT_SD, .fusion = FUSION_STACKED, .fusion_axis = 0},
    {.layout = LAYOUT_SD, .fusion = FUSION_STACKED, .fusion_axis = 1},
};
static const attn__way layer_ways[] = {
    {.layout = LAYOUT_BSE},
    {.layout = LAYOUT_BSE, .weights_out = true},
    {.layout = LAYOUT_SE},
    {.layout = LAYOUT_SE, .weights_out = true},
};
static const attn__way decode_ways[] = {
    {.layout = LAYOUT_BHSD},
    {.layout = LAYOUT_BHSD, .one_length = true},
    {.layout = LAYOUT_BHSD, .q_flat = true},
    {.layout = LAYOUT_BHSD, .q_flat = true, .one_length = true},
    {.layout = LAYOUT_BSHD},
    {.layout = LAYOUT_BSHD, .one_length = true},
    {.layout = LAYOUT_BSHD, .q_flat = true},
    {.layout = LAYOUT_BSHD, .q_flat = true, .one_length = true},
    {.layout = LAYOUT_HSD},
    {.layout = LAYOUT_HSD, .q_flat = true},
    {.layout = LAYOUT_SHD},
    {.layout = LAYOUT_SHD, .q_flat = true},
    {.layout = LAYOUT_SD},
    {.layout = LAYOUT_SD, .q_flat = true},
};
enum {
    N_WAYS = sizeof ways / sizeof ways[0],
    N_ONE_QUERY_WAYS = sizeof one_query_ways / sizeof one_query_ways[0],
    N_SINGLE_WAYS = sizeof single_ways / sizeof single_ways[0],
    N_FUSED_WAYS = sizeof fused_ways / sizeof fused_ways[0],
    N_LAYER_WAYS = sizeof layer_ways / sizeof layer_ways[0],
    N_DECODE_WAYS = sizeof decode_ways / sizeof decode_ways[0]
};

/* What is right with arrays of its own is asked with packed ones too, if it
 * takes them. */
static void examine_packed(attn__exam *exam, const attn__attempt *best)
{
    attn__attempt packed;

    if (best->state != STATE_RIGHT || exam->kind != ATTN_KIND_ATTENTION ||
        best->interview->varlen || !has_role(&best->binding, ROLE_CU_Q) ||
        !attn__attempt_way(
            exam, (attn__way){.layout = LAYOUT_SHD, .varlen = true}, 1,
            &packed))
        return;
    packed.interview->binding = &packed.binding;
    if (packed.state == STATE_UNEXPLAINED)
        attn__judge_further(exam, &packed);
    attn__report_packed(exam, &packed);
}

/* Does it say that q is one vector? In words, or as mathematics does: q small
 * and K, V large. */
static bool speaks_of_one_query(const attn_subject *s)
{
    static const char *const said[] = {"(d,)",        "(dk,)",
                                       "(d_k,)",      "query vector",
                                       "one query v", "single query"};
    bool says = s->n_parameters >= 3 &&
                strcmp(s->parameters[0].name, "q") == 0 &&
                strcmp(s->parameters[1].name, "K") == 0 &&
                strcmp(s->parameters[2].name, "V") == 0;

    for (size_t x = 0; x < sizeof said / sizeof said[0]; x++)
        says |= attn__speaks_of(s, said[x]);
    return says;
}

/* Further ways, where nothing is answered yet, or equal sizes alone; and these
 * not for equal sizes alone: much that takes a matrix takes a vector too. */
static bool find_further(attn__exam *exam, const attn__way *list, int n,
                         bool found, attn__attempt *best)
{
    attn__attempt other = {0};

    if (found && (best->interview->lost ||
                  (best->state != STATE_SILENT && !best->interview->equal)))
        return true;
    if (!find_way(exam, list, n, &other) ||
        (found && (other.interview->equal || !beats(exam, &other, best))))
        return found;
    *best = other;
    return true;
}

/* q, k, v in arrays of their own. One query as a vector comes first where the
 * subject speaks of it, and else late, before k and v for all heads. */
static bool find_separate(attn__exam *exam, attn__attempt *best)
{
    const uint32_t rows = ASK_CAUSAL | ASK_WINDOW | ASK_OFFSET;
    attn__binding b;
    bool found;

    attn__bind(&b, exam->subject, exam->kind);
    if (exam->kind == ATTN_KIND_BACKWARD || is_packing(&b) ||
        b.shared == SHARED_ALL)
        return find_way(exam, ways, N_WAYS, best);
    if (!(b.takes & rows) && speaks_of_one_query(exam->subject) &&
        find_way(exam, one_query_ways, N_ONE_QUERY_WAYS, best) &&
        best->state == STATE_RIGHT)
        return true;
    found = find_way(exam, ways, N_WAYS, best);
    if (!(b.takes & rows))
        found = find_further(exam, one_query_ways, N_ONE_QUERY_WAYS, found,
                             best);
    return find_further(exam, single_ways, N_SINGLE_WAYS, found, best);
}

bool attn__examine_self(attn__exam *exam)
{
    attn__attempt best;

    if (!find_way(exam, ways, N_WAYS, &best) || best.by_memory ||
        best.state == STATE_SILENT || best.conduct != CONDUCT_FINE)
        return false;
    best.interview->binding = &best.binding;
    if (best.state == STATE_UNEXPLAINED && !attn__has_own_weights(&best))
        return false;
    attn__report_attempt(exam, &best);
    return true;
}

void attn__examine_attention(attn__exam *exam)
{
    attn__attempt best;
    attn__binding b;
    bool ok;

    best.interview = NULL;
    attn__bind(&b, exam->subject, exam->kind);
    if (exam->kind == ATTN_KIND_MULTI_HEAD)
        ok = find_way(exam, layer_ways, N_LAYER_WAYS, &best);
    else if (exam->kind == ATTN_KIND_DECODE)
        ok = find_way(exam, decode_ways, N_DECODE_WAYS, &best);
    else if (has_role(&b, ROLE_QKV) || has_role(&b, ROLE_KV))
        ok = find_way(exam, fused_ways, N_FUSED_WAYS, &best);
    else
        ok = find_separate(exam, &best);
    if (!ok || !best.interview)
        return;
    best.interview->binding = &best.binding;
    attn__report_attempt(exam, &best);
    examine_packed(exam, &best);
}
