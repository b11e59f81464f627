/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores moved far from 0, all together or row by row: softmax does not
 * change, and right code does not notice. */
#include "doctor/stress.h"

#include <math.h>
#include <string.h>

void attn__known_model(const attn__attempt *a, attn__model *model)
{
    attn__model_init(model);
    for (int x = 0; a->state == STATE_NAMED && x < a->explanation.n; x++) {
        const attn__hypothesis *wrong = a->explanation.wrong[x];

        model->step[wrong->slot] = wrong->step;
        model->param[wrong->slot] = wrong->param;
    }
}

bool attn__is_met(attn__exam *exam, const attn__attempt *a,
                  const attn__question *q)
{
    attn__model model;

    attn__known_model(a, &model);
    attn__predict(&exam->work, &model, &a->meaning, q);
    return attn__compare(&exam->work, q, a->tier).worst <= 1;
}

bool attn__put_aside(attn__attempt *a, attn__question *q)
{
    return q && attn__ask(a->interview->binding, q, VIEW_PLAIN,
                          a->interview->arena) &&
           q->outcome == ATTN_ANSWERED;
}

attn__question *attn__aside(attn__attempt *a, attn__sizes sizes,
                            uint32_t asked)
{
    return attn__compose(a->interview, "stress", sizes, asked);
}

/* ----------------------------------------------------------------- shift */

/* Add shift[i] to the scores of query i, by way of channel 0: both q and k get
 * a root of it there. What stood there before is gone. */
static void shift_rows(attn__question *q, attn__arena *arena, double scale,
                       double (*shift)(int64_t i, double by), double by)
{
    const int64_t dim = q->n.dim_qk;
    double *qs =
        attn__arena_copy(arena, q->q, attn__count_q(&q->n), sizeof *qs);
    double *ks =
        attn__arena_copy(arena, q->k, attn__count_k(&q->n), sizeof *ks);
    const double root = sqrt(fabs(by / scale));

    if (!qs || !ks)
        return;
    for (int64_t r = 0; r < attn__count_rows(&q->n); r++)
        qs[r * dim] = shift(r % q->n.len_q, by) / scale / root;
    for (int64_t r = 0; r < q->n.batch * q->n.heads_kv * q->n.len_k; r++)
        ks[r * dim] = root;
    q->q = qs;
    q->k = ks;
}

static double all_rows(int64_t i, double by)
{
    (void)i;
    return by;
}

static double other_rows(int64_t i, double by)
{
    return i % 2 ? -by : by;
}

static double scale_of(const attn__attempt *a, const attn__sizes *n)
{
    return a->meaning.has_scale ? a->meaning.scale
                                : 1 / sqrt((double)n->dim_qk);
}

/* Is it right with scores moved by `by`, with these options? */
static bool stands_with(attn__exam *exam, attn__attempt *a,
                        double (*shift)(int64_t i, double by), double by,
                        uint32_t options)
{
    const attn__sizes n = attn__sizes_general(a->interview);
    attn__question *q = attn__aside(a, n, options);

    if (!q)
        return true;
    shift_rows(q, a->interview->arena, scale_of(a, &n), shift, by);
    attn__share(&a->binding, q);
    return !attn__put_aside(a, q) || attn__is_met(exam, a, q);
}

/* Alone, and unless hidden keys come back by themselves, with what hides keys:
 * a tile may be all hidden. */
static bool stands(attn__exam *exam, attn__attempt *a,
                   double (*shift)(int64_t i, double by), double by)
{
    const uint32_t takes = a->leaks ? 0 : a->binding.takes;

    return stands_with(exam, a, shift, by, 0) &&
           (!(takes & ASK_CAUSAL) ||
            stands_with(exam, a, shift, by, ASK_CAUSAL)) &&
           (!(takes & ASK_MASK) ||
            stands_with(exam, a, shift, by, ASK_MASK));
}

/* The first of these at which it fails, or 0. */
static double first_fall(attn__exam *exam, attn__attempt *a,
                         double (*shift)(int64_t i, double by), double sign)
{
    static const double sizes[] = {12,   25,   50,  100, 200, 400, 800,
                                   2000, 5000, 2e4, 5e4, 1e5, 1e6};

    for (size_t x = 0; x < sizeof sizes / sizeof sizes[0]; x++) {
        if (!stands(exam, a, shift, sign * sizes[x]))
            return sizes[x];
    }
    return 0;
}

/* One of many keys, the first or the last, scores `by`, the others 0. */
static bool stands_with_one(attn__exam *exam, attn__attempt *a, bool first,
                            double by)
{
    const attn__sizes n = attn__sizes_long(a->interview, 70);
    attn__question *q = attn__aside(a, n, 0);
    double *k;

    if (!q)
        return true;
    shift_rows(q, a->interview->arena, scale_of(a, &n), all_rows, by);
    k = attn__arena_copy(a->interview->arena, q->k, attn__count_k(&q->n),
                         sizeof *k);
    if (!k)
        return true;
    for (int64_t r = 0; r < q->n.batch * q->n.heads_kv * n.len_k; r++) {
        const int64_t j = r % n.len_k;

        if (j != (first ? 0 : n.len_k - 1))
            k[r * n.dim_qk] = 0;
    }
    q->k = k;
    return !attn__put_aside(a, q) || attn__is_met(exam, a, q);
}

/* The size at which one key spoils its row, or 0. */
static double first_fall_of_one(attn__exam *exam, attn__attempt *a,
                                bool first)
{
    static const double sizes[] = {100, 400, 800, 2000};
    const attn__interview *in = a->interview;

    for (size_t x = 0; x < sizeof sizes / sizeof sizes[0]; x++) {
        if (in->binding->seconds > in->budget / 2 || in->varlen || in->equal)
            return 0;
        if (!stands_with_one(exam, a, first, sizes[x]))
            return sizes[x];
    }
    return 0;
}

static void say(attn__exam *exam, attn_finding *f, const char *what,
                double size)
{
    f->evidence = attn__arena_text(&exam->report->arena, what, size);
}

/* 16 bits all through end where 16 bits end: that is the caller's choice. Are
 * scores of 32 bits lost too? Then it is the subject's. */
static bool narrows(attn__exam *exam, attn__attempt *a, double by)
{
    attn__binding *b = a->interview->binding;
    bool lost;

    b->dtype = ATTN_F32;
    lost = !stands_with(exam, a, all_rows, by, 0);
    b->dtype = exam->options.dtype;
    return lost;
}

/* What is taken off the scores need not be their maximum to stand a constant:
 * it may be that of the first keys, or a mean. That is a limit. */
static void stress_one(attn__exam *exam, attn__attempt *a)
{
    attn_report *r = exam->report;
    double first, last;

    if (a->binding.shared == SHARED_ALL)
        return;
    first = first_fall_of_one(exam, a, true);
    last = first_fall_of_one(exam, a, false);
    if (first > 0)
        say(exam,
            attn__add_limit(r, "softmax-no-max",
                            "Something else is subtracted"),
            "a key that scores %g more than the others is lost", first);
    else if (last > 0)
        say(exam,
            attn__add_limit(r, "online-max-stale",
                            "The maximum of the first keys serves for all"),
            "a last key that scores %g more than the others is lost", last);
}

/* exp overflows at 709 in f64, 88.7 in f32, 11.1 in f16: ordinary scores
 * reach the last two. */
void attn__stress_shift(attn__exam *exam, attn__attempt *a)
{
    attn_report *r = exam->report;
    const bool self = a->binding.shared == SHARED_ALL; /* scores only rise */
    double up, down, apart;

    if (a->meaning.sinks || a->meaning.softcap > 0 ||
        scale_of(a, &a->interview->questions[0].n) == 0)
        return;
    up = first_fall(exam, a, all_rows, 1);
    down = self ? 0 : first_fall(exam, a, all_rows, -1);
    apart = self ? 0 : first_fall(exam, a, other_rows, 1);
    if (up > 0 && up <= 2000) {
        say(exam, attn__add_fault(r, "softmax-no-max", ""),
            "a constant of %g added to all scores must not change anything, "
            "but does",
            up);
    } else if (down > 0 && down <= 1e4) {
        say(exam, attn__add_fault(r, "online-max-stale", ""),
            "the running maximum does not go down with the scores: %g taken "
            "off all of them must not change anything, but does",
            down);
    } else if (up > 0 && up <= 1e5) {
        say(exam,
            exam->options.dtype == ATTN_F16 && !narrows(exam, a, up)
                ? attn__add_limit(r, "score-overflow-16bit", "")
                : attn__add_fault(r, "score-overflow-16bit", ""),
            "scores of %g are lost", up);
    } else if (down > 0 || up > 0) {
        say(exam, attn__add_limit(r, "online-max-stale", ""),
            "scores beyond %g in size are lost", down > 0 ? down : up);
    } else if (apart > 0) {
        say(exam, attn__add_limit(r, "softmax-no-max", ""),
            "rows whose scores lie %g apart spoil each other, as with one "
            "maximum for all rows",
            2 * apart);
    } else {
        stress_one(exam, a);
    }
}

/* -------------------------------------------------------------- sentinel */

/* Visible keys score about -by, hidden ones +by. */
static void part_scores(attn__question *q, attn__arena *arena, double scale,
                        double by, const unsigned char *visible)
{
    const int64_t dim = q->n.dim_qk, n = q->n.len_k;
    double *ks;

    shift_rows(q, arena, scale, all_rows, by);
    ks = attn__arena_copy(arena, q->k, attn__count_k(&q->n), sizeof *ks);
    if (!ks)
        return;
    for (int64_t r = 0; r < q->n.batch * q->n.heads_kv * n; r++)
        ks[r * dim] *= visible[r % n] ? -1 : 1;
    q->k = ks;
}

/* A question that hides the second half of the keys from everybody, by way of
 * one option. */
static attn__question *half_hidden(attn__attempt *a, uint32_t option,
                                   unsigned char *visible)
{
    attn__interview *in = a->interview;
    const attn__sizes n = attn__sizes_general(in);
    attn__question *q = attn__aside(a, n, option);
    int64_t *lengths = attn__arena_take(in->arena, n.batch, sizeof *lengths);
    unsigned char *mask;

    if (!q || !lengths)
        return NULL;
    for (int64_t j = 0; j < n.len_k; j++)
        visible[j] = j < n.len_k / 2;
    for (int64_t b = 0; b < n.batch; b++)
        lengths[b] = n.len_k / 2;
    if (option == ASK_LENGTHS)
        q->lengths = lengths;
    if (option == ASK_MASK) {
        const int64_t count = q->mask_shape[0] * q->mask_shape[1] *
                              q->mask_shape[2] * q->mask_shape[3];

        mask = attn__arena_take(in->arena, count, 1);
        for (int64_t e = 0; mask && e < count; e++)
            mask[e] = visible[e % q->mask_shape[3]] != a->meaning.mask_hides;
        q->mask = mask;
    }
    return q;
}

/* NaN, or rows of nothing: scores so far apart are lost, but nothing hidden
 * comes through. */
static bool breaks_down(const attn__question *q)
{
    const int64_t dim = q->n.dim_v;

    for (int64_t r = 0; r < attn__count_rows(&q->n); r++) {
        bool zero = true;

        for (int64_t c = 0; c < dim; c++) {
            if (!isfinite(q->answer[r * dim + c]))
                return true;
            zero &= q->answer[r * dim + c] == 0;
        }
        if (zero)
            return true;
    }
    return false;
}

/* Scores of by (j - p - 1/2): the nearest visible key is the best, at -by / 2,
 * and hidden ones are above 0. By way of two channels. */
static void part_causally(attn__question *q, attn__arena *arena, double scale,
                          double by, const attn__work *w)
{
    const int64_t dim = q->n.dim_qk, n = q->n.len_k;
    double *qs = attn__arena_doubles(arena, attn__count_q(&q->n));
    double *ks = attn__arena_doubles(arena, attn__count_k(&q->n));

    if (!qs || !ks || dim < 2)
        return;
    for (int64_t r = 0; r < attn__count_rows(&q->n); r++) {
        const attn__pairs row = attn__row(w, r);

        qs[r * dim] = by / scale;
        qs[r * dim + 1] = -by * ((double)row.position + 0.5) / scale;
    }
    for (int64_t r = 0; r < q->n.batch * q->n.heads_kv * n; r++) {
        ks[r * dim] = (double)(r % n);
        ks[r * dim + 1] = 1;
    }
    q->q = qs;
    q->k = ks;
}

/* The same for causality, asked or built in. */
static bool leaks_causally(attn__exam *exam, attn__attempt *a, double by)
{
    const attn__sizes n = attn__sizes_general(a->interview);
    attn__question *q =
        attn__aside(a, n, a->binding.takes & ASK_CAUSAL);
    attn__model right;

    if (!q)
        return false;
    attn__model_init(&right);
    attn__predict(&exam->work, &right, &a->meaning, q); /* for positions */
    part_causally(q, a->interview->arena, scale_of(a, &n), by, &exam->work);
    if (a->binding.shared == SHARED_KV)
        attn__share(&a->binding, q);
    return attn__put_aside(a, q) && !attn__is_met(exam, a, q) &&
           !breaks_down(q);
}

/* Does something hidden come through with scores this far apart? */
static bool leaks(attn__exam *exam, attn__attempt *a, uint32_t option,
                  double by)
{
    unsigned char visible[64];
    attn__question *q;

    if (option == ASK_CAUSAL)
        return leaks_causally(exam, a, by);
    q = half_hidden(a, option, visible);
    if (!q)
        return false;
    part_scores(q, a->interview->arena, scale_of(a, &q->n), by, visible);
    attn__share(&a->binding, q);
    return attn__put_aside(a, q) && !attn__is_met(exam, a, q) &&
           !breaks_down(q);
}

/* The size at which a leak begins, to two digits; 0 if there is none. */
static double leak_size(attn__exam *exam, attn__attempt *a, uint32_t option)
{
    double low = 1, high = 10;

    while (high < 1e13 && !leaks(exam, a, option, high)) {
        low = high;
        high *= 10;
    }
    if (high >= 1e13)
        return 0;
    for (int x = 0; x < 7; x++) {
        const double middle = sqrt(low * high);

        if (leaks(exam, a, option, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

void attn__stress_sentinel(attn__exam *exam, attn__attempt *a)
{
    static const uint32_t options[] = {ASK_MASK, ASK_LENGTHS, ASK_CAUSAL};
    attn_report *r = exam->report;

    for (int x = 0; x < 3; x++) {
        const bool causal = options[x] == ASK_CAUSAL;
        double size;
        attn_finding *f;

        if (!(a->binding.takes & options[x]) &&
            !(causal && a->meaning.always != ATTN_CAUSAL_NONE))
            continue;
        if ((options[x] == ASK_MASK && a->binding.mask_adds) ||
            exam->options.dtype == ATTN_F16)
            continue;
        size = leak_size(exam, a, options[x]);
        if (size == 0)
            continue;
        a->leaks = true;
        f = size < 0.9e6 ? attn__add_fault(r, "mask-finite-sentinel", "")
                         : attn__add_limit(r, "mask-finite-sentinel", "");
        say(exam, f, "hidden keys come back where scores reach about %.2g",
            size);
    }
}
