/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds that are questions about attention: fn(q, k, v, options), the same
 * with gradients, and layers. Layouts are tried in turn; another one, or a
 * lower rank, wins only where it does better. */
#include <string.h>

#include "doctor/attempt.h"
#include "doctor/fused.h"
#include "doctor/hygiene.h"
#include "doctor/structure.h"

enum { MOST_WAYS = 32 };

static int n_sizes(const attn__attempt *a)
{
    return __builtin_popcount(a->interview->sizes);
}

static bool has_fewer_axes(const attn__attempt *a, const attn__attempt *b)
{
    return attn__axes_before_length(a) < attn__axes_before_length(b);
}

/* Has `a` been asked with as many axes, and as many different sizes, as `b`? */
static bool is_as_rich(const attn__attempt *a, const attn__attempt *b)
{
    return !has_fewer_axes(a, b) && n_sizes(a) >= n_sizes(b);
}

/* What is known of it. An explanation that another layout would make needless
 * is worth less than a layout in which plain questions are right. */
static int level(const attn__attempt *a)
{
    switch (a->state) {
    case STATE_RIGHT:
        return 5;
    case STATE_NAMED:
        return attn__is_suspect(a) ? 2 : 4;
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
                                       "dim, l", "dim, s", "channels first",
                                       NULL};

    return attn__speaks_of_any(s, said);
}

/* The length last is unusual: to believe it takes lengths that differ, or the
 * subject's word. */
static bool is_doubtful(const attn__exam *exam, const attn__attempt *a)
{
    return has_dim_first(a) && a->binding.fusion == FUSION_NONE &&
           !(a->interview->sizes & ASK_CROSS) &&
           !speaks_of_length_last(exam->subject);
}

/* Do words keep `b`, where all sizes must be equal, before `a`, where they need
 * not and which has fewer axes? They order the guesses: what nothing explains
 * with the axes that they speak of goes behind a bug that is named without.
 * Right without a batch is no proof of right with one; but "head" alone may be
 * said of one, and then `b` must have one fault, or right plain calls. */
static bool is_kept_by_words(const attn__attempt *a, const attn__attempt *b)
{
    if (b->hint == HINT_NONE || !has_fewer_axes(a, b))
        return false;
    if (b->hint == HINT_BATCH)
        return level(a) != 4 || level(b) != 1;
    return level(a) < 4 || level(b) == 3 ||
           (level(b) == 4 && b->explanation.n == 1);
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
        return b->interview->equal && !is_kept_by_words(a, b);
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
    if (exam->kind == ATTN_KIND_MULTI_HEAD &&
        !attn__layout_facts_of(way->layout)->packed)
        return false;
    if (attn__is_packing(&b)) /* (total, heads, dim) */
        return way->layout == LAYOUT_SHD && way->fusion != FUSION_FLAT;
    if (!attn__layout_facts_of(way->layout)->packed &&
        way->fusion != FUSION_FLAT)
        return true;
    return exam->kind == ATTN_KIND_MULTI_HEAD || exam->expect.heads > 0 ||
           attn__has_role(&b, ROLE_HEADS);
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
    return best->state == STATE_NAMED && !attn__is_suspect(best) ? 0 : 1;
}

/* Of those that answer nothing, the one that ended with a crash, or else gave
 * wrong shapes, tells more. */
static int gravity(const attn__attempt *a)
{
    return a->interview->ends > 0 ? 2 : a->interview->wrong_shape;
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

static const attn__way length_first_ways[] = {
    {.layout = LAYOUT_SBE},
    {.layout = LAYOUT_SBE, .weights_out = true},
    {.layout = LAYOUT_SBHD},
    {.layout = LAYOUT_SBD},
};
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
    {.layout = LAYOUT_BSD},
    {.layout = LAYOUT_BSD, .q_flat = true},
    {.layout = LAYOUT_SD},
    {.layout = LAYOUT_SD, .q_flat = true},
};
enum {
    N_LENGTH_FIRST_WAYS =
        sizeof length_first_ways / sizeof length_first_ways[0],
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
        best->interview->varlen ||
        !attn__has_role(&best->binding, ROLE_CU_Q) ||
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
                                       "one query v", "single query", NULL};

    return attn__speaks_of_any(s, said) ||
           (s->n_parameters >= 3 && strcmp(s->parameters[0].name, "q") == 0 &&
            strcmp(s->parameters[1].name, "K") == 0 &&
            strcmp(s->parameters[2].name, "V") == 0);
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
    if (exam->kind == ATTN_KIND_BACKWARD || attn__is_packing(&b) ||
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

/* Does it have the length before the batch? Nothing but its word tells that
 * from attention across the batch. */
static bool speaks_of_length_first(const attn_subject *s)
{
    static const char *const said[] = {
        "(l, b", "(s, b", "(t, b", "[l, b", "[s, b", "[t, b", "(lq, b",
        "(len, b", "(seq, b", "(seq_len, b", "(time, b", "(length, b",
        "[seq, b", "[seq_len, b", "length, batch", "length first", "seq first",
        "sequence first", "sequence-first", "length-first", "time first",
        "time-first", "time major", "time-major", "batch_first=false", "sbhd",
        NULL};
    static const char *const or_not[] = {"(b,", "[b,", "(batch", "[batch",
                                         NULL};

    return attn__speaks_of_any(s, said) && !attn__speaks_of_any(s, or_not);
}

/* Where it says that the length comes first, or is told so, that is believed,
 * if it makes sense. */
static bool find_length_first(attn__exam *exam, attn__attempt *best)
{
    const char *wanted = exam->options.layout;
    const bool said = wanted
                          ? attn__layout_facts_of(
                                (attn__layout)attn__layout_of(wanted))
                                ->length_first
                          : speaks_of_length_first(exam->subject);

    return said &&
           find_way(exam, length_first_ways, N_LENGTH_FIRST_WAYS, best) &&
           (wanted || best->state == STATE_RIGHT ||
            best->state == STATE_NAMED);
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

    best = (attn__attempt){0};
    attn__bind(&b, exam->subject, exam->kind);
    if ((exam->kind == ATTN_KIND_MULTI_HEAD ||
         exam->kind == ATTN_KIND_ATTENTION ||
         exam->kind == ATTN_KIND_BACKWARD) &&
        find_length_first(exam, &best))
        ok = true;
    else if (exam->kind == ATTN_KIND_MULTI_HEAD)
        ok = find_way(exam, layer_ways, N_LAYER_WAYS, &best);
    else if (exam->kind == ATTN_KIND_DECODE)
        ok = find_way(exam, decode_ways, N_DECODE_WAYS, &best);
    else if (attn__has_role(&b, ROLE_QKV) || attn__has_role(&b, ROLE_KV))
        ok = find_way(exam, fused_ways, N_FUSED_WAYS, &best);
    else
        ok = find_separate(exam, &best);
    if (!ok || !best.interview)
        return;
    best.interview->binding = &best.binding;
    attn__report_attempt(exam, &best);
    examine_packed(exam, &best);
}
