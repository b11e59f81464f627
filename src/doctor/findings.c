/* SPDX-License-Identifier: Apache-2.0
 *
 * What an attempt found, put into the report. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "doctor/drawing.h"
#include "doctor/fused.h"
#include "doctor/further.h"
#include "doctor/hygiene.h"
#include "doctor/stress.h"
#include "doctor/structure.h"

/* ------------------------------------------------------------- questions */

static const struct {
    uint32_t bit;
    const char *word;
} words[] = {
    {ASK_MASK, "mask"},       {ASK_BIAS, "bias"},
    {ASK_SCALE, "scale"},     {ASK_CAUSAL, "causal"},
    {ASK_WINDOW, "window"},   {ASK_SOFTCAP, "softcap"},
    {ASK_ALIBI, "alibi"},     {ASK_SINKS, "sinks"},
    {ASK_LENGTHS, "lengths"}, {ASK_OFFSET, "offset"},
    {ASK_EXTRA, "weights"},
};

/* "q (2, 6, 9, 5), k (2, 2, 9, 5), v (2, 2, 9, 8), causal, mask". */
static const char *describe(attn__exam *exam, const attn__question *q)
{
    attn__arena *arena = &exam->report->arena;
    const attn__sizes *n = &q->n;
    const char *text = attn__arena_text(
        arena, "batch %lld, heads %lld", (long long)n->batch,
        (long long)n->heads_q);

    if (n->heads_q != n->heads_kv)
        text = attn__arena_text(arena, "%s, KV heads %lld", text,
                                (long long)n->heads_kv);
    text = attn__arena_text(arena, "%s, len_q %lld, len_k %lld, dim %lld",
                            text, (long long)n->len_q, (long long)n->len_k,
                            (long long)n->dim_qk);
    for (size_t x = 0; x < sizeof words / sizeof words[0]; x++) {
        if (q->asked & words[x].bit)
            text = attn__arena_text(arena, "%s, %s", text, words[x].word);
    }
    return text;
}

/* ---------------------------------------------------------------- faults */

/* The largest difference from the right answer, in words. */
static const char *difference(attn__exam *exam, const attn__attempt *a,
                              const attn__question *q)
{
    attn__model right;
    const attn__work *w = &exam->work;
    double worst = -1;
    int64_t at = 0;

    attn__model_init(&right);
    attn__predict(&exam->work, &right, &a->meaning, q);
    for (int64_t x = 0; x < q->n_answer && x < w->n_answer; x++) {
        const double error = fabs(q->answer[x] - w->answer[x]);

        if (!isfinite(q->answer[x]) && isfinite(w->answer[x])) {
            at = x;
            break;
        }
        if (error > worst) {
            worst = error;
            at = x;
        }
    }
    return attn__arena_text(&exam->report->arena,
                            "element %lld is %.6g and should be %.6g",
                            (long long)at, q->answer[at], w->answer[at]);
}

static void report_named(attn__exam *exam, const attn__attempt *a)
{
    const attn__explanation *x = &a->explanation;
    const attn__question *q = &a->interview->questions[x->first];
    attn_report *r = exam->report;

    if (a->by_memory) {
        attn__add_fault(r, "state-kept", "")->evidence =
            "wrong answers are right for the q, k, v, mask or length of an "
            "earlier call";
        return;
    }
    for (int h = 0; h < x->n; h++) {
        attn_finding *f =
            attn__add_fault(r, x->wrong[h]->fault, x->wrong[h]->detail);

        f->where = a->interview->backward ? "backward" : "forward";
        f->evidence = attn__arena_text(
            &r->arena,
            "%s; with %s the prediction meets every answer%s to rounding%s",
            difference(exam, a, q), x->n > 1 ? "these bugs" : "this bug",
            a->on_squares ? " with len_q = len_k" : "",
            x->beside ? ", but some paths are right" : "");
        f->repro = describe(exam, q);
        f->also = attn__arena_text(&r->arena, "%s", x->also);
    }
}

static void report_unexplained(attn__exam *exam, attn__attempt *a)
{
    const attn__question *q = attn__first_wrong(exam, a, 0);
    const attn__question *longer = attn__first_wrong(exam, a, 6);
    attn_report *r = exam->report;
    const char *off = q ? difference(exam, a, q) : "";

    if (attn__explain_by_mask(exam, a))
        return;
    if (exam->subject->call && attn__has_own_weights(a)) {
        r->verdict = ATTN_VERDICT_UNDECIDED;
        r->reason = "it projects its input with weights of its own; a "
                    "function that takes them as w_q, w_k, w_v would tell";
        return;
    }
    if (q && q->d_o)
        attn__describe_gradients(exam, a, longer ? longer : q);
    else if (exam->subject->call)
        attn__describe_structure(exam, a);
    else
        attn__add_fault(r, "unexplained", "");
    for (int32_t x = 0; x < r->n_faults && q; x++) {
        attn_finding *f = &r->faults[x];

        f->evidence = attn__arena_text(&r->arena, "%s%s%s", f->evidence,
                                       *f->evidence ? "; " : "", off);
        f->repro = describe(exam, q);
    }
}

/* ----------------------------------------------------------------- facts */

static const char *causal_word(attn_causal causal)
{
    return causal == ATTN_CAUSAL_NONE       ? "none"
           : causal == ATTN_CAUSAL_TOP_LEFT ? "top_left"
                                            : "bottom_right";
}

static void report_facts(attn__exam *exam, const attn__attempt *a)
{
    const attn__meaning *m = &a->meaning;
    const uint32_t takes = a->binding.takes;
    attn_report *r = exam->report;

    attn__add_fact(r, "layout", "%s",
                   attn__layout_facts_of(a->binding.layout)->name);
    if (a->binding.fusion != FUSION_NONE)
        attn__add_fact(r, "one array", "%s",
                       attn__fused_words(&a->binding, &r->arena));
    if (a->binding.shared == NO_VALUES)
        attn__add_fact(r, "returns", "the weights");
    else if (a->binding.shared != SHARED_NONE)
        attn__add_fact(r, "one array", "for %s",
                       a->binding.shared == SHARED_ALL ? "q, k and v"
                                                       : "k and v");
    if (a->binding.kv_single)
        attn__add_fact(r, "keys and values", "one for all heads");
    if (a->binding.q_flat)
        attn__add_fact(r, "query", "one, without an axis of length");
    attn__add_fact(r, "scale", m->has_scale ? "%g" : "1/sqrt(head_dim)",
                   m->scale);
    if (takes & ASK_CAUSAL || m->always != ATTN_CAUSAL_NONE)
        attn__add_fact(r, "causal", "%s%s",
                       causal_word(m->always ? m->always : m->corner),
                       m->always ? ", always" : ", where asked");
    if (m->has_table)
        attn__add_fact(r, "alibi", "%s",
                       m->table ? "slopes as the paper's code has them"
                                : "slopes 2^(-8 (h + 1) / H)");
    if (m->always_window[0] >= 0 || m->always_window[1] >= 0)
        attn__add_fact(r, "window", "(%lld, %lld), always",
                       (long long)m->always_window[0],
                       (long long)m->always_window[1]);
    if (takes & ASK_WINDOW && a->binding.window_is_number)
        attn__add_fact(r, "window", "a number W: %s keys, %s",
                       m->window_extra ? "W + 1" : "W",
                       m->window_form == WINDOW_LEFT   ? "to the left"
                       : m->window_form == WINDOW_OPEN ? "and all to the right"
                                                       : "to each side");
    if (takes & ASK_MASK)
        attn__add_fact(r, "mask_true", "%s",
                       a->binding.mask_adds ? "add"
                       : m->mask_hides      ? "drop"
                                            : "keep");
    if (takes & ASK_MASK && a->binding.mask_adds && exam->expect.identify)
        attn__add_limit(r, "mask-01-added", "")->evidence =
            "the mask is added to the scores: right with 0 and -inf, but "
            "True and False would count as 1 and 0";
    if (a->interview->sizes & ASK_GROUPS &&
        attn__layout_facts_of(a->binding.layout)->heads)
        attn__add_fact(r, "gqa", "head h uses KV head h div group");
    if (a->binding.o_turned)
        attn__add_fact(r, "o", "with heads and length exchanged");
    if (a->square_matrices)
        attn__add_fact(r, "matrices", "as many inputs as outputs");
    if (a->groups_at_random)
        attn__add_fact(r, "gqa", "memory at random with fewer KV heads");
    attn__add_fact(r, "precision", "%s",
                   a->tier == TIER_F64   ? "float64"
                   : a->tier == TIER_F32 ? "float32"
                                         : "16 bits");
}

/* Options that it has and refuses, whatever is asked with them. */
static void report_refused(attn__exam *exam, const attn__attempt *a)
{
    uint32_t answered = 0;

    for (int64_t x = 0; x < a->interview->n; x++)
        answered |= a->interview->questions[x].asked;
    for (size_t x = 0; x < sizeof words / sizeof words[0]; x++) {
        if (words[x].bit & a->binding.takes & a->interview->refused & ~answered)
            attn__add_fact(exam->report, "not examined",
                           "%s: every call with it was refused",
                           words[x].word);
    }
}

/* Its manners are the fault; no formula was looked for. */
static void report_conduct(attn__exam *exam, const attn__attempt *a)
{
    static const char *const ids[] = {
        [CONDUCT_NAN] = "output-nan",
        [CONDUCT_CONSTANT] = "output-constant",
        [CONDUCT_REMEMBERS] = "state-kept",
        [CONDUCT_RANDOM] = "dropout-not-off",
    };
    static const char *const evidence[] = {
        [CONDUCT_NAN] = "no element of any answer is finite",
        [CONDUCT_CONSTANT] = "one number, whatever the inputs",
        [CONDUCT_REMEMBERS] = "new data of the same shape, or the same data "
                              "again, get an answer that belongs to others",
        [CONDUCT_RANDOM] = "the same question gets another answer every time",
    };
    attn_report *r = exam->report;

    attn__add_fault(r, ids[a->conduct], "")->evidence = evidence[a->conduct];
}

static void report_silent(attn__exam *exam, const attn__attempt *a)
{
    attn_report *r = exam->report;

    r->verdict = ATTN_VERDICT_UNUSABLE;
    r->reason = attn__arena_text(&r->arena, "%s",
                                 a->refusal && *a->refusal
                                     ? a->refusal
                                     : "no call was answered");
    if (a->interview->ends > 0 && !exam->options.layout)
        r->reason = attn__arena_text(&r->arena,
                                     "%s; if it was called in a wrong layout, "
                                     "--layout= says the right one",
                                     r->reason);
}

static attn__tier input_tier(const attn__exam *exam)
{
    return exam->options.dtype == ATTN_F64   ? TIER_F64
           : exam->options.dtype == ATTN_F32 ? TIER_F32
                                             : TIER_F16;
}

/* Right, but not to the accuracy of its inputs. */
static void report_accuracy(attn__exam *exam, attn__attempt *a)
{
    attn_report *r = exam->report;
    const char *evidence;

    if (exam->subject->call && attn__finds_eps(exam, a, &evidence))
        attn__add_limit(r, "softmax-extra-mass", "")->evidence = evidence;
    else
        attn__add_limit(r, "dtype-downgraded", "")->evidence =
            attn__arena_text(&r->arena,
                             "right to %s accuracy only, on %s inputs",
                             a->tier == TIER_F32 ? "float32" : "16-bit",
                             exam->options.dtype == ATTN_F64 ? "float64"
                                                             : "float32");
}

/* All else was asked with dropout off. */
static void report_dropout(attn__exam *exam, const attn__attempt *a)
{
    const attn__binding *b = &a->binding;
    const int x = attn__parameter_of(b, ROLE_DROPOUT);

    attn__add_fault(exam->report, "dropout-not-off",
                    "It is on where nobody asks for it")->evidence =
        attn__arena_text(&exam->report->arena,
                         "%s: %s is %s unless it is told otherwise; the rest "
                         "was asked with 0",
                         a->plain_differs ? "two plain calls differ"
                                          : "plain calls are wrong",
                         b->subject->parameters[x].name,
                         b->subject->parameters[x].fallback);
}

void attn__report_answers(attn__exam *exam, attn__attempt *a)
{
    attn_report *r = exam->report;

    if (a->binding.drop_off)
        report_dropout(exam, a);
    if (a->state == STATE_NAMED)
        report_named(exam, a);
    else if (a->state == STATE_UNEXPLAINED)
        report_unexplained(exam, a);
    else
        attn__answered(r);
    if (a->state == STATE_RIGHT && a->tier > input_tier(exam))
        report_accuracy(exam, a);
    report_facts(exam, a);
    report_refused(exam, a);
}

static void stress(attn__exam *exam, attn__attempt *a)
{
    attn__stress_sentinel(exam, a);
    attn__stress_shift(exam, a);
    attn__stress_empty_rows(exam, a);
    attn__stress_hidden_nan(exam, a);
    attn__stress_sums(exam, a);
    attn__check_views(exam, a);
    attn__check_further(exam, a);
}

/* Wrong in a way that predicts whatever else is asked? */
static bool is_explained_fully(const attn__attempt *a)
{
    return a->state == STATE_NAMED && !a->by_memory &&
           a->explanation.n == 1 && a->explanation.beside == 0;
}

void attn__report_packed(attn__exam *exam, attn__attempt *a)
{
    attn_report *r = exam->report;

    if (a->state == STATE_NAMED)
        report_named(exam, a);
    else if (a->state == STATE_UNEXPLAINED)
        report_unexplained(exam, a);
    if (a->state != STATE_SILENT)
        attn__add_fact(r, "packed sequences", "%s",
                       a->state == STATE_RIGHT ? "right" : "wrong");
    r->seconds += a->binding.seconds;
    r->calls += a->binding.calls;
}

void attn__report_attempt(attn__exam *exam, attn__attempt *a)
{
    attn_report *r = exam->report;

    if (a->state == STATE_SILENT)
        report_silent(exam, a);
    else if (a->conduct != CONDUCT_FINE)
        report_conduct(exam, a);
    else
        attn__report_answers(exam, a);
    if ((a->state == STATE_RIGHT || is_explained_fully(a)) &&
        exam->kind == ATTN_KIND_ATTENTION)
        stress(exam, a);
    if (a->state != STATE_SILENT && a->conduct == CONDUCT_FINE) {
        if (!a->binding.appends)
            attn__check_mutation(exam, a);
        attn__keep_drawing(exam, a);
    }
    r->seconds += a->binding.seconds;
    r->calls += a->binding.calls;
}
