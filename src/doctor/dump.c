/* SPDX-License-Identifier: Apache-2.0
 *
 * Examining a dump: one case that somebody's attention has computed, inputs
 * and outputs. It is one question that has been put already; what it cannot
 * show is said. */
#include <math.h>
#include <string.h>

#include "doctor/drawing.h"
#include "doctor/exam.h"
#include "doctor/further.h"
#include "doctor/identities.h"
#include "doctor/wrong.h"

/* ---------------------------------------------------------- the question */

static bool take_sizes(const attn__dump *d, attn__layout layout,
                       attn__question *q)
{
    const attn_input *tq = attn__dump_find(d, " q query ");
    const attn_input *tk = attn__dump_find(d, " k key ");
    const attn_input *tv = attn__dump_find(d, " v value ");
    int64_t n[4], k[4], v[4];

    if (!tq || !tk || !tv || !attn__dump_sizes(tq, layout, n) ||
        !attn__dump_sizes(tk, layout, k) || !attn__dump_sizes(tv, layout, v))
        return false;
    q->n = (attn__sizes){.batch = n[0],
                         .heads_q = n[1],
                         .heads_kv = k[1],
                         .len_q = n[2],
                         .len_k = k[2],
                         .dim_qk = n[3],
                         .dim_v = v[3]};
    if (k[0] != n[0] || k[3] != n[3] || v[0] != n[0] || v[1] != k[1] ||
        v[2] != k[2] || k[1] < 1 || n[1] % k[1] != 0 || n[0] < 1 ||
        n[2] < 1 || k[2] < 1 || n[3] < 1 || v[3] < 1)
        return false;
    q->q = attn__dump_arranged(d, tq, layout, n);
    q->k = attn__dump_arranged(d, tk, layout, k);
    q->v = attn__dump_arranged(d, tv, layout, v);
    q->asked = attn__sizes_asked(&q->n);
    return true;
}

/* Axes from the right; those that are missing have length 1. */
static bool axes_of(const attn_input *t, const attn__sizes *n,
                    int64_t shape[4])
{
    const int64_t full[4] = {n->batch, n->heads_q, n->len_q, n->len_k};

    for (int a = 3, own = t->rank - 1; a >= 0; a--, own--) {
        shape[a] = own >= 0 ? t->shape[own] : 1;
        if (shape[a] != 1 && shape[a] != full[a])
            return false;
    }
    return true;
}

static void take_mask(const attn__dump *d, const attn_input *mask,
                      attn__question *q)
{
    const int64_t n = attn__dump_count(mask);
    const double *x = attn__dump_numbers(d, mask);
    unsigned char *bits = attn__arena_take(&d->exam->arena, n + 1, 1);

    for (int64_t e = 0; x && bits && e < n; e++)
        bits[e] = x[e] != 0;
    q->mask = bits;
    q->asked |= ASK_MASK;
}

/* A mask of floats is one that is added. */
static void take_masks(const attn__dump *d, attn__question *q)
{
    const attn_input *mask = attn__dump_find(d, " mask attnmask ");
    const attn_input *bias = attn__dump_find(d, " bias attnbias ");
    const bool adds = mask && mask->dtype != ATTN_BOOL &&
                      mask->dtype != ATTN_I64 && mask->dtype != ATTN_I32;

    if (adds && !bias) {
        bias = mask;
        mask = NULL;
    }
    if (mask && axes_of(mask, &q->n, q->mask_shape))
        take_mask(d, mask, q);
    if (bias && axes_of(bias, &q->n, q->bias_shape)) {
        q->bias = attn__dump_numbers(d, bias);
        q->asked |= ASK_BIAS;
    }
}

static bool take_vector(const attn__dump *d, const char *names, int64_t n,
                        const double **to)
{
    const attn_input *t = attn__dump_find(d, names);

    if (!t || attn__dump_count(t) != n)
        return false;
    *to = attn__dump_numbers(d, t);
    return *to != NULL;
}

static void take_options(const attn__dump *d, attn__question *q)
{
    const double *x = NULL;
    int64_t *lengths;

    if (take_vector(d, " scale smscale ", 1, &x)) {
        q->scale = x[0];
        q->asked |= ASK_SCALE;
    }
    if (take_vector(d, " softcap ", 1, &x) && x[0] > 0) {
        q->softcap = x[0];
        q->asked |= ASK_SOFTCAP;
    }
    if (take_vector(d, " sinks sink ", q->n.heads_q, &q->sinks))
        q->asked |= ASK_SINKS;
    if (take_vector(d, " alibislopes slopes ", q->n.heads_q, &q->slopes))
        q->asked |= ASK_ALIBI;
    if (take_vector(d, " klengths lengths seqlensk ", q->n.batch, &x)) {
        lengths = attn__arena_take(&d->exam->arena, q->n.batch,
                                   sizeof *lengths);
        for (int64_t b = 0; lengths && b < q->n.batch; b++)
            lengths[b] = x[b] >= 0 && x[b] < 1e15 ? (int64_t)x[b] : 0;
        q->lengths = lengths;
        q->asked |= ASK_LENGTHS;
    }
}

static bool take_gradients(const attn__dump *d, attn__layout layout,
                           attn__question *q)
{
    const attn__sizes *n = &q->n;
    const int64_t of_q[4] = {n->batch, n->heads_q, n->len_q, n->dim_qk};
    const int64_t of_k[4] = {n->batch, n->heads_kv, n->len_k, n->dim_qk};
    const int64_t of_v[4] = {n->batch, n->heads_kv, n->len_k, n->dim_v};
    const int64_t of_o[4] = {n->batch, n->heads_q, n->len_q, n->dim_v};
    const double *dq = attn__dump_named(d, " dq gradq ", layout, of_q);
    const double *dk = attn__dump_named(d, " dk gradk ", layout, of_k);
    const double *dv = attn__dump_named(d, " dv gradv ", layout, of_v);
    const size_t sizes[3] = {(size_t)attn__count_q(n),
                             (size_t)attn__count_k(n),
                             (size_t)attn__count_v(n)};

    q->d_o =
        attn__dump_named(d, " do dout gradout gradoutput ", layout, of_o);
    q->o = attn__dump_named(d, " o out output ", layout, of_o);
    if (!q->d_o || !dq || !dk || !dv)
        return false;
    q->n_answer = (int64_t)(sizes[0] + sizes[1] + sizes[2]);
    q->answer = attn__arena_doubles(&d->exam->arena, q->n_answer);
    if (!q->answer)
        return false;
    memcpy(q->answer, dq, sizes[0] * sizeof *dq);
    memcpy(q->answer + sizes[0], dk, sizes[1] * sizeof *dk);
    memcpy(q->answer + sizes[0] + sizes[1], dv, sizes[2] * sizeof *dv);
    q->asked |= ASK_BACKWARD;
    return true;
}

static bool take_output(const attn__dump *d, attn__layout layout,
                        attn__question *q)
{
    const attn__sizes *n = &q->n;
    const int64_t of_o[4] = {n->batch, n->heads_q, n->len_q, n->dim_v};
    const double *x;

    q->answer = attn__dump_named(d, " o out output ", layout, of_o);
    q->n_answer = attn__count_o(n);
    if (take_vector(d, " weights attn probs p ", attn__count_pairs(n), &x))
        q->weights = (double *)(uintptr_t)x;
    if (take_vector(d, " lse softmaxlse ", attn__count_rows(n), &x))
        q->lse = (double *)(uintptr_t)x;
    return q->answer != NULL;
}

/* ------------------------------------------------------------ one layout */

static bool has_room(const attn__exam *exam, const attn__sizes *n)
{
    return attn__count_pairs(n) <= exam->most_pairs &&
           attn__count_q(n) <= exam->most_elements &&
           attn__count_k(n) <= exam->most_elements &&
           attn__count_v(n) <= exam->most_elements &&
           attn__count_o(n) <= exam->most_elements;
}

static bool judge_in(const attn__dump *d, attn__layout layout, bool backward,
                     attn__attempt *a)
{
    attn__exam *exam = d->exam;
    attn__interview *in = attn__arena_take(&exam->arena, 1, sizeof *in);
    attn__question *q = in ? &in->questions[0] : NULL;

    *a = (attn__attempt){.interview = in};
    if (!q)
        return false;
    *q = (attn__question){.title = "dump", .window = {-1, -1}};
    if (!take_sizes(d, layout, q) || !has_room(exam, &q->n))
        return false;
    take_masks(d, q);
    take_options(d, q);
    if (!(backward ? take_gradients(d, layout, q)
                   : take_output(d, layout, q)) ||
        exam->arena.failed)
        return false;
    in->n = 1;
    in->arena = &exam->arena;
    in->binding = &a->binding;
    in->backward = backward;
    a->binding.subject = exam->subject;
    a->binding.layout = layout;
    a->binding.takes = q->asked & (ASK_MASK | ASK_SCALE | ASK_BIAS |
                                   ASK_SOFTCAP | ASK_ALIBI | ASK_SINKS |
                                   ASK_LENGTHS);
    attn__judge(exam, a, 1);
    if (a->state == STATE_UNEXPLAINED)
        attn__judge_further(exam, a);
    return true;
}

/* -------------------------------------------------------- what is hidden */

static bool same_numbers(const double *x, const double *y, int64_t n,
                         int64_t m)
{
    return n == m && memcmp(x, y, (size_t)n * sizeof *x) == 0;
}

/* What this case cannot show, whatever the code does. */
static const char *blind_spots(const attn__exam *exam,
                               const attn__question *q)
{
    const attn__sizes *n = &q->n;
    const int64_t group = n->heads_q / n->heads_kv;
    const char *text = "";
    const struct {
        bool holds;
        const char *says;
    } spots[] = {
        {n->len_q == n->len_k, "the causal corner (len_q = len_k)"},
        {n->len_q == 1, "causality (one query)"},
        {n->len_k == n->dim_qk, "sqrt(len) for sqrt(dim) (they are equal)"},
        {n->heads_q == 1, "everything about heads (there is one)"},
        {group > 1 && group == n->heads_kv,
         "some head maps (H / H_kv = H_kv)"},
        {n->batch == 1, "mixing of batch elements (there is one)"},
        {!q->mask && !q->bias, "masks (there is none)"},
        {same_numbers(q->k, q->v, attn__count_k(n), attn__count_v(n)),
         "K for V (they are equal)"},
        {same_numbers(q->q, q->k, attn__count_q(n), attn__count_k(n)),
         "Q and K exchanged (they are equal)"},
    };

    for (size_t x = 0; x < sizeof spots / sizeof spots[0]; x++) {
        if (spots[x].holds)
            text = attn__arena_text(&exam->report->arena, "%s%s%s", text,
                                    *text ? "; " : "", spots[x].says);
    }
    return text;
}

/* Does the answer meet the prediction without this step? */
static bool is_unseen(attn__exam *exam, const attn__attempt *a,
                      attn__slot slot)
{
    attn__model without;

    attn__model_init(&without);
    without.step[slot] = slot == SLOT_MASS ? attn__mass_none : attn__nothing;
    attn__predict(&exam->work, &without, &a->meaning,
                  &a->interview->questions[0]);
    return attn__compare(&exam->work, &a->interview->questions[0], a->tier)
               .worst <= 1;
}

/* A step that the expectation wants and whose lack would change nothing. */
static const char *unseen_wish(attn__exam *exam, const attn__attempt *a)
{
    const attn__expect *e = &exam->expect;
    const attn__question *q = &a->interview->questions[0];
    const struct {
        bool wanted;
        attn__slot slot;
        const char *name;
    } steps[] = {
        {e->has_causal && e->causal, SLOT_CAUSAL, "causal"},
        {e->has_window, SLOT_WINDOW, "window"},
        {q->mask != NULL && !e->identify, SLOT_MASK, "mask"},
        {e->softcap > 0, SLOT_CAP, "softcap"},
        {e->slopes != NULL, SLOT_ALIBI, "alibi_slopes"},
        {e->sinks != NULL, SLOT_MASS, "sinks"},
    };

    for (size_t x = 0; x < sizeof steps / sizeof steps[0]; x++) {
        if (steps[x].wanted && is_unseen(exam, a, steps[x].slot))
            return steps[x].name;
    }
    return NULL;
}

static void report_undecided(attn__exam *exam, const attn__attempt *a)
{
    attn_report *r = exam->report;
    const char *wish = unseen_wish(exam, a);

    if (r->verdict != ATTN_VERDICT_CORRECT || !wish)
        return;
    r->verdict = ATTN_VERDICT_UNDECIDED;
    r->reason = attn__arena_text(
        &r->arena,
        "%s is expected, but this case comes out the same without it; a case "
        "with len_q > 1 and len_q != len_k, where it changes something, would "
        "tell",
        wish);
}

/* ------------------------------------------------------------ identities */

static void say_identity(attn_report *r, const char *name, double apart,
                         const char *id, bool blame)
{
    if (isnan(apart))
        return;
    attn__add_fact(r, name, "%s (%.2g)", apart < 1e-4 ? "holds" : "broken",
                   apart);
    if (!blame || apart < 1e-3)
        return;
    attn__add_fault(r, id, "")->evidence =
        attn__arena_text(&r->arena, "%s is broken by %.2g", name, apart);
}

/* Where nothing else explains wrong gradients, these do. */
static void report_identities(attn__exam *exam, const attn__attempt *a)
{
    const attn__identities x =
        attn__check_identities(&a->interview->questions[0]);
    attn_report *r = exam->report;
    const bool blame = a->state == STATE_UNEXPLAINED;

    say_identity(r, "sum_j dk_j = 0", x.keys, "bwd-softmax-or-mask", blame);
    say_identity(r, "<dv, v> = <do, o>", x.output, "bwd-softmax-or-mask",
                 blame);
    say_identity(r, "sum dv = sum do", x.values,
                 "bwd-reduction-scale-layout", blame);
    say_identity(r, "<q, dq> = <k, dk>", x.product,
                 "bwd-reduction-scale-layout", blame);
}

/* ------------------------------------------------------------------ both */

static bool find_layout(const attn__dump *d, bool backward,
                        attn__attempt *best)
{
    static const attn__layout order[] = {LAYOUT_BHSD, LAYOUT_BSHD, LAYOUT_HSD,
                                         LAYOUT_SHD,  LAYOUT_SD,   LAYOUT_BHDS,
                                         LAYOUT_HDS,  LAYOUT_DS};
    const char *wanted = d->exam->options.layout;
    attn__attempt a;

    best->interview = NULL;
    for (size_t x = 0; x < sizeof order / sizeof order[0]; x++) {
        if (wanted ? attn__layout_of(wanted) != (int)order[x]
                   : attn__layout_facts_of(order[x])->dim_first)
            continue;
        if (judge_in(d, order[x], backward, &a) &&
            (!best->interview || a.state > best->state))
            *best = a;
    }
    return best->interview != NULL;
}

/* The outputs, or with `backward` the gradients; false if the arrays are not
 * there. */
static bool examine_pass(const attn__dump *d, bool backward)
{
    attn__exam *exam = d->exam;
    attn__attempt best;

    if (!find_layout(d, backward, &best))
        return false;
    best.interview->binding = &best.binding;
    if (backward)
        report_identities(exam, &best);
    if (exam->report->n_faults == 0)
        attn__report_answers(exam, &best);
    if (!backward && best.state == STATE_RIGHT)
        attn__check_further(exam, &best);
    report_undecided(exam, &best);
    attn__keep_drawing(exam, &best);
    if (!backward)
        attn__add_fact(exam->report, "cannot show", "%s",
                       blind_spots(exam, &best.interview->questions[0]));
    return true;
}

void attn__examine_dump(attn__exam *exam, const attn_dump_array *arrays,
                        int32_t n)
{
    const attn__dump d = {.exam = exam, .arrays = arrays, .n = n};
    attn_report *r = exam->report;
    const bool forward = examine_pass(&d, false);
    const bool backward =
        r->verdict == ATTN_VERDICT_CORRECT && examine_pass(&d, true);

    if (forward || backward)
        return;
    r->verdict = ATTN_VERDICT_UNUSABLE;
    r->reason = "q, k, v and o (or do, dq, dk, dv) with shapes that belong "
                "together, and not too large, are needed";
}
