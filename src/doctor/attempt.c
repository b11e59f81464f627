/* SPDX-License-Identifier: Apache-2.0
 *
 * One way to call a subject: the forms of its options are learned, everything
 * is asked, and the answers are explained. */
#include "doctor/attempt.h"

#include <stdlib.h>
#include <string.h>

#include "doctor/hygiene.h"
#include "doctor/pass.h"
#include "doctor/structure.h"

int attn__axes_before_length(const attn__attempt *a)
{
    const attn__layout_facts *f = attn__layout_facts_of(a->binding.layout);

    return f->batch + f->heads;
}

bool attn__is_packing(const attn__binding *b)
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

    if (!attn__has_role(b, ROLE_WINDOW) || in->always & ASK_WINDOW)
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
static bool learn_key_mask(attn__interview *in, attn__sizes sizes)
{
    attn__question *q;

    if (in->lost || attn__has_role(in->binding, ROLE_KEY_MASK))
        return true;
    set_mask_form(in->binding, 0);
    rename_masks(in->binding, ROLE_MASK, ROLE_KEY_MASK);
    q = attn__compose(in, "mask", sizes, ASK_MASK);
    if (q && attn__put(in, q))
        return true;
    rename_masks(in->binding, ROLE_KEY_MASK, ROLE_MASK);
    return false;
}

/* How many axes masks have, with such sizes; false if none is taken. */
static bool learn_mask_with(attn__interview *in, attn__sizes sizes)
{
    const int64_t shape[4] = {sizes.batch, 1, sizes.len_q, sizes.len_k};

    for (int form = 0; form < 3; form++) {
        attn__question *q = attn__compose_mask(in, "mask", sizes, ASK_MASK,
                                               shape);

        set_mask_form(in->binding, form);
        if (q && attn__put(in, q))
            return true;
    }
    return learn_key_mask(in, sizes);
}

/* A mask on the wrong axis fits only where there are as many queries as keys.
 */
static void learn_mask(attn__interview *in)
{
    const int64_t n = in->n;

    if (!attn__has_role(in->binding, ROLE_MASK))
        return;
    if (!learn_mask_with(in, attn__sizes_general(in)))
        learn_mask_with(in, attn__sizes_square(in));
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
    if (masks == 1 || in->lost || attn__has_role(in->binding, ROLE_KEY_MASK))
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
    static const char *const no[] = {"-inf", "additive", "float", "bias",
                                     NULL};
    static const char *const yes[] = {"bool",    "true", "keep",
                                      "1 where", "1 for", "0/1",
                                      "1 = ",    "nonzero", NULL};

    return attn__speaks_of_any(s, yes) && !attn__speaks_of_any(s, no);
}

/* Where masks as True and False make no sense, perhaps they are meant as 0
 * and -inf: the questions that have one are put again so. What is added may be
 * any number, so that is asked too. */
static void try_additive_mask(attn__exam *exam, attn__attempt *a)
{
    attn__interview *in = a->interview;
    attn__attempt added = *a;
    attn__question *number;

    if (!attn__has_role(&a->binding, ROLE_MASK) ||
        wants_booleans(exam->subject))
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
    if (added.state == STATE_RIGHT ||
        (added.state == STATE_NAMED && a->state == STATE_UNEXPLAINED)) {
        *a = added;
        a->interview->binding = &a->binding;
    }
}

bool attn__is_suspect(const attn__attempt *a)
{
    static const char *const ids[] = {"batch-first",
                                      "heads-split-no-transpose",
                                      "heads-merge-no-transpose",
                                      "heads-dim-order"};

    if (attn__layout_facts_of(a->binding.layout)->packed || a->by_memory)
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
    if (b->fusion != FUSION_NONE && attn__has_role(b, ROLE_KV))
        return ASK_GROUPS | ASK_CROSS;
    if (b->fusion != FUSION_NONE)
        return attn__has_role(b, ROLE_KV_HEADS) ? ASK_GROUPS : 0;
    if (b->shared != SHARED_NONE)
        return b->shared == SHARED_ALL ? 0 : ASK_GROUPS | ASK_CROSS;
    if (!a->interview->layer)
        return ASK_GROUPS | ASK_CROSS | ASK_DIMS;
    return ASK_MODEL | (attn__has_role(b, ROLE_KV_HEADS) ? ASK_GROUPS : 0) |
           (attn__has_role(b, ROLE_W_QKV) ? 0 : ASK_DIMS);
}

/* Does its documentation speak of a batch, or of heads, and not of one? */
static attn__hint hint_of(const attn_subject *s)
{
    static const char *const one[] = {"one head", "single head", "single-head",
                                      "(l, d)",   "(n, d)",      "(t, d)",
                                      "(s, d)",   NULL};

    if (attn__speaks_of_any(s, one))
        return HINT_NONE;
    return attn__speaks_of(s, "batch") || attn__speaks_of(s, "(b,")
               ? HINT_BATCH
           : attn__speaks_of(s, "head") ? HINT_HEADS
                                        : HINT_NONE;
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
    a->binding.drop_off = way.drop_off;
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
    in->varlen = way.varlen || attn__is_packing(&a->binding);
    in->strict = !exam->expect.identify;
    in->always = in->decode ? 0 : required_options(&a->binding, !in->strict);
    in->budget = exam->options.seconds;
    in->wasted = exam->wasted;
    if (in->layer && in->heads == 0 &&
        !attn__has_role(&a->binding, ROLE_HEADS))
        in->heads = 1;
    in->possible = possible_sizes(a);
    if (!attn__layout_facts_of(way.layout)->heads)
        in->possible &= ~(uint32_t)ASK_GROUPS; /* nothing to group */
    a->hint = attn__axes_before_length(a) == 2 ? hint_of(exam->subject)
                                                : HINT_NONE;
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
        exam->wasted += a->binding.seconds;
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
         (a->state == STATE_NAMED && attn__is_suspect(a))) &&
        attn__is_memory(exam, a)) {
        a->state = STATE_NAMED;
        a->by_memory = true;
        a->explanation.n = 1;
    }
    return true;
}

/* A copy of `from`, whose interview knows it. */
static void take_attempt(attn__attempt *a, const attn__attempt *from)
{
    *a = *from;
    a->interview->binding = &a->binding;
}

/* Dropout that is on by default spoils plain calls. What is left without it?
 * All is well, or at least something can be seen. */
static bool attempt_without_dropout(attn__exam *exam, attn__way way, int most,
                                    attn__attempt *a)
{
    attn__attempt without;

    way.drop_off = true;
    if (!attn__attempt_way(exam, way, most, &without))
        return false;
    if (without.state == STATE_RIGHT ||
        (a->conduct != CONDUCT_FINE && without.state != STATE_SILENT &&
         without.conduct == CONDUCT_FINE)) {
        without.plain_differs = a->conduct != CONDUCT_FINE;
        take_attempt(a, &without);
    }
    return true;
}

/* A layer that was written for as many inputs as outputs may take other
 * matrices in silence. What it makes of square ones is what counts. */
static bool attempt_squares(attn__exam *exam, attn__way way, int most,
                            attn__attempt *a)
{
    attn__attempt squares;

    if (!attempt_with(exam, way, most, ~(uint32_t)(ASK_MODEL | ASK_DIMS),
                      &squares))
        return false;
    if (squares.state == STATE_RIGHT || squares.state == STATE_NAMED) {
        squares.square_matrices = true;
        take_attempt(a, &squares);
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
    if (!way.drop_off && a->state != STATE_SILENT && a->state != STATE_RIGHT &&
        attn__default_dropout(&a->binding) > 0) {
        if (!attempt_without_dropout(exam, way, most, a))
            return false;
        if (a->binding.drop_off)
            return true;
    }
    if (a->interview->sizes & ASK_MODEL && a->conduct == CONDUCT_FINE &&
        a->state == STATE_UNEXPLAINED)
        return attempt_squares(exam, way, most, a);
    if (a->conduct == CONDUCT_FINE || !(a->interview->sizes & ASK_GROUPS))
        return true;
    if (!attempt_with(exam, way, most, ~(uint32_t)ASK_GROUPS, &fewer))
        return false;
    if (fewer.state == STATE_SILENT || fewer.conduct != CONDUCT_FINE)
        return true;
    take_attempt(a, &fewer);
    a->groups_at_random = true;
    return true;
}
