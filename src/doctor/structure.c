/* SPDX-License-Identifier: Apache-2.0
 *
 * What the structure of a difference says, where no hypothesis fits. */
#include "doctor/structure.h"

#include <math.h>
#include <string.h>

#include "doctor/hygiene.h"
#include "doctor/reading.h"
#include "doctor/stress.h"

/* --------------------------------------------------------- what is built in */

/* Plain, of 9 queries and keys that all score 0; NULL if it is refused. */
static const attn__question *read_flat(attn__attempt *a)
{
    attn__sizes n = attn__sizes_general(a->interview);
    attn__question *q;

    n.len_q = n.len_k = 9;
    n.batch = n.batch > 2 ? 2 : n.batch;
    q = attn__compose_reading(a, n, 0, true);
    return q && q->n.len_q == 9 && q->n.len_k == 9 && attn__put_aside(a, q)
               ? q
               : NULL;
}

/* Offsets j - i at which some pair of the first head has weight. */
attn__band attn__read_band(attn__attempt *a)
{
    const attn__question *q = read_flat(a);
    int64_t low = INT64_MAX, high = INT64_MIN;
    attn__band band = {0};

    if (!q)
        return band;
    for (int64_t i = 0; i < 9; i++) {
        for (int64_t j = 0; j < 9; j++) {
            if (!(fabs(q->answer[i * 9 + j]) > 1e-12))
                continue;
            low = j - i < low ? j - i : low;
            high = j - i > high ? j - i : high;
        }
    }
    band.found = low <= 0 && high >= 0 && (low > -8 || high < 8);
    band.left = low <= -8 ? -1 : -low;
    band.right = high >= 8 ? -1 : high;
    return band;
}

bool attn__read_slopes(attn__attempt *a)
{
    const attn__question *q = read_flat(a);
    const double *p;

    if (!q)
        return false;
    p = q->answer + 8 * 9; /* the last row of the first head */
    return p[8] > 0 && p[7] > 0 && fabs(p[7] / p[8] - 1) > 1e-6;
}

/* --------------------------------------------------------------- the name */

/* Do all rows lack the same keys, the last ones? */
static bool lacks_tail(const attn__reading *r)
{
    const int64_t n = r->work->n.len_k;
    int64_t end = n;

    while (end > 0 && r->p[end - 1] == 0)
        end--;
    ATTN__FOR_ROWS(r->work, row) {
        for (int64_t j = 0; j < n; j++) {
            if ((r->p[row.index * n + j] == 0) != (j >= end))
                return false;
        }
    }
    return end < n;
}

/* A softmax over other keys: by what hides keys here. */
static const char *name_of_visible(const attn__attempt *a,
                                   const attn__reading *r)
{
    const attn__meaning *m = &a->meaning;
    const attn__question *q = r->question;

    if (q->cu_q)
        return "varlen-boundary";
    if (q->asked & ASK_LENGTHS)
        return "kv-length";
    if (q->asked & ASK_WINDOW || m->always_window[0] >= 0 ||
        m->always_window[1] >= 0)
        return "window-off-by-one";
    if (q->asked & ASK_MASK)
        return q->n.batch > 1 ? "mask-batch-head-order" : "mask-dropped";
    if (q->asked & ASK_CAUSAL || m->always != ATTN_CAUSAL_NONE)
        return q->asked & ASK_OFFSET ? "causal-corner"
                                     : "causal-diagonal-shift";
    return lacks_tail(r) ? "tail-tile-unmasked" : "unexplained";
}

static const char *name_of(const attn__attempt *a, const attn__reading *r,
                           attn__pattern pattern, const char *evidence)
{
    switch (pattern) {
    case PATTERN_DROPOUT: /* or a step that does not see its newest keys */
        return a->interview->decode && lacks_tail(r) ? "kv-length"
                                                     : "dropout-not-off";
    case PATTERN_COLUMNS:
    case PATTERN_HEADS:
        return "softmax-wrong-axis";
    case PATTERN_JOINT:
        return "softmax-joint-axes";
    case PATTERN_MAP:
        return "gqa-tile";
    case PATTERN_MASS:
        return "softmax-extra-mass";
    case PATTERN_UNDIVIDED:
        return "softmax-missing";
    case PATTERN_MERGE:
        return "online-max-stale";
    case PATTERN_MERGE_LSE:
        return "lse-base-or-empty";
    case PATTERN_VISIBLE:
        return name_of_visible(a, r);
    case PATTERN_FILL:
        return strstr(evidence, "a score of") ? "mask-finite-sentinel"
                                              : "mask-01-added";
    case PATTERN_SCALE:
        return strstr(evidence, "powers of 2") ? "softmax-missing"
                                               : "scale-d-model";
    case PATTERN_DISTANCE:
        return r->question->asked & ASK_ALIBI || a->has_slopes
                   ? "alibi-slopes-or-sign"
                   : "relative-shift-or-order";
    default:
        return "unexplained";
    }
}

/* What sums of weights say in words. */
static const char *words_of(attn__pattern pattern)
{
    switch (pattern) {
    case PATTERN_COLUMNS:
        return "columns of the weights sum to 1, rows do not";
    case PATTERN_HEADS:
        return "the weights sum to 1 over the heads, rows do not";
    case PATTERN_JOINT:
        return "the weights of several rows together sum to 1";
    case PATTERN_DISTANCE:
        return "a term that goes with j - i alone is in the scores";
    default:
        return "";
    }
}

/* ------------------------------------------------------------ description */

/* Which part of the weights is off. */
static const char *describe_region(const attn__reading *r)
{
    const attn__work *w = r->work;
    int64_t future = 0, past = 0, first_head = 0, other_heads = 0;
    int64_t first_row = INT64_MAX, first_key = INT64_MAX;

    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++) {
            const int64_t x = row.index * w->n.len_k + j;

            if (fabs(r->p[x] - r->right[x]) < 1e-6)
                continue;
            *(j > row.position ? &future : &past) += 1;
            *(row.h == 0 ? &first_head : &other_heads) += 1;
            first_row = row.i < first_row ? row.i : first_row;
            first_key = j < first_key ? j : first_key;
        }
    }
    if (past == 0)
        return "only weights of future keys differ";
    if (first_head == 0)
        return "head 0 is right, other heads differ";
    if (first_row > 0)
        return "the first rows are right, later ones differ";
    if (first_key > 0)
        return "the first keys are right, later ones differ";
    if (future == 0)
        return "only weights of past keys and the diagonal differ";
    return "weights differ everywhere";
}

/* -------------------------------------------------------------- the whole */

/* The simplest wrong question with keys enough for a pattern, if there is
 * one. */
static const attn__question *telling(attn__exam *exam, const attn__attempt *a)
{
    const attn__question *first = attn__first_wrong(exam, a, 0);
    const attn__question *longer = attn__first_wrong(exam, a, 6);

    return longer && longer->n.len_k <= 70 ? longer : first;
}

/* Read the weights as that question has it; else of the first one. */
static bool read_wrong(attn__exam *exam, attn__attempt *a, attn__reading *r)
{
    const attn__question *q = telling(exam, a);

    return (q && attn__read(exam, a, q, r)) ||
           attn__read(exam, a, &a->interview->questions[0], r);
}

/* Does the pattern tell by itself what is wrong? */
static bool is_telling(attn__pattern pattern)
{
    return (pattern >= PATTERN_DROPOUT && pattern <= PATTERN_MERGE_LSE) ||
           pattern == PATTERN_SCALE;
}

/* What weights that are read out say, before anything else is predicted. */
typedef struct finding {
    const char *id, *evidence;
    bool telling;
} finding;

static finding look_at_weights(attn__exam *exam, attn__attempt *a)
{
    finding f = {.id = "unexplained", .evidence = ""};
    attn__pattern pattern;
    attn__reading r;

    if (!read_wrong(exam, a, &r))
        return f;
    pattern = attn__pattern_of(exam, a, &r, &f.evidence);
    f.id = name_of(a, &r, pattern, f.evidence);
    f.telling = is_telling(pattern);
    if (pattern == PATTERN_RIGHT)
        f.evidence = "the weights are right; it is the values, or a size";
    else if (pattern == PATTERN_NONE)
        f.evidence = describe_region(&r);
    else if (!*f.evidence)
        f.evidence = words_of(pattern);
    return f;
}

/* A bug that explains most of what is wrong, but not all. */
static bool report_partly(attn__exam *exam, const attn__attempt *a)
{
    const attn__evidence e = attn__evidence_of(exam, a);
    int met, wrong;
    const attn__hypothesis *h =
        attn__explain_partly(&e, &a->meaning, &met, &wrong);

    if (!h)
        return false;
    attn__add_fault(exam->report, h->fault, h->detail)->evidence =
        attn__arena_text(&exam->report->arena,
                         "with this bug the prediction meets %d of %d kinds "
                         "of wrong answers; something else is wrong too",
                         met, wrong);
    return true;
}

/* ------------------------------------------------------- its own weights */

/* Of one token attention(x, x, x) is x. To *y: what this subject makes of the
 * token x, of three numbers; false if it is refused. */
static bool ask_token(attn__attempt *a, const double *x, const double **y)
{
    attn__sizes n = attn__sizes_single(a->interview, 1);
    attn__question *q = attn__aside(a, n, 0);

    if (!q || attn__count_q(&q->n) != 3 || attn__count_k(&q->n) != 3)
        return false;
    q->k = x;
    q->q = a->binding.shared == SHARED_ALL ? x : q->q;
    attn__share(&a->binding, q);
    if (!attn__put_aside(a, q))
        return false;
    *y = q->answer;
    return true;
}

/* Linear in one token, and not a multiple of it: projections with weights of
 * its own, of which one cannot know whether they are right. */
bool attn__has_own_weights(attn__attempt *a)
{
    const double x[3][3] = {{1, 0.5, -2}, {-0.5, 3, 1}, {0.5, 3.5, -1}};
    const double *y[3];
    double sum = 0, turned = 0, size = 0;

    if (a->binding.shared != SHARED_ALL && a->binding.shared != SHARED_KV)
        return false;
    for (int t = 0; t < 3; t++) {
        if (!ask_token(a, x[t], &y[t]))
            return false;
    }
    for (int c = 0; c < 3; c++) {
        sum = fmax(sum, fabs(y[0][c] + y[1][c] - y[2][c]));
        size = fmax(size, fabs(y[2][c]));
    }
    turned = fmax(fabs(y[0][0] * x[0][1] - y[0][1] * x[0][0]),
                  fabs(y[0][1] * x[0][2] - y[0][2] * x[0][1]));
    return sum < 1e-4 * size && turned > 1e-3 * size;
}

/* An answer that does not look at all of its inputs. */
static bool find_ignored(attn__exam *exam, attn__attempt *a)
{
    const unsigned ignored = attn__ignored_inputs(a);

    if (ignored & 4)
        attn__add_fault(exam->report, "v-is-k", "")->evidence =
            "the answer does not depend on v";
    else if (ignored == 3)
        attn__add_fault(exam->report, "output-constant",
                        "It depends on v alone")
            ->evidence = "other q and other k give the same answer";
    return (ignored & 4) || ignored == 3;
}

void attn__describe_structure(attn__exam *exam, attn__attempt *a)
{
    finding f;

    if (find_ignored(exam, a))
        return;
    f = look_at_weights(exam, a);
    if (f.telling || !report_partly(exam, a))
        attn__add_fault(exam->report, f.id, "")->evidence = f.evidence;
}

/* ------------------------------------------------------------------- eps */

bool attn__finds_eps(attn__exam *exam, attn__attempt *a, const char **evidence)
{
    double apart = 0, most = 0, spread = 0;
    attn__reading r;

    if (a->tier != TIER_F32 || exam->options.dtype != ATTN_F64 ||
        !attn__read(exam, a, &a->interview->questions[a->interview->n / 2],
                    &r))
        return false;
    ATTN__FOR_ROWS(r.work, row) {
        double sum = 0, low = INFINITY, high = 0;

        for (int64_t j = 0; j < r.work->n.len_k; j++) {
            const int64_t x = row.index * r.work->n.len_k + j;

            sum += r.p[x];
            if (r.right[x] < 1e-4)
                continue;
            low = fmin(low, r.p[x] / r.right[x]);
            high = fmax(high, r.p[x] / r.right[x]);
        }
        apart = fmax(apart, fabs(1 - sum));
        most = fmax(most, sum - 1);
        spread = fmax(spread, high - low);
    }
    *evidence = attn__arena_text(&exam->report->arena,
                                 "rows sum to 1 less up to %.2g", apart);
    return most < 1e-14 && spread < 1e-2 * apart;
}
