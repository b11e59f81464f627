/* SPDX-License-Identifier: Apache-2.0
 *
 * A subject with a bug that is chosen: the model with one wrong step behind
 * the same callback as anybody's code. It shows what the doctor says, and it
 * is how the tests see every hypothesis named. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/half.h"
#include "doctor/demo.h"
#include "doctor/match.h"
#include "doctor/rope_form.h"
#include "doctor/wrong.h"

/* What kinds of functions there are, by what they take; ended by -1. */
typedef enum form {
    FORM_ATTENTION, FORM_BACKWARD, FORM_PACKED, FORM_LAYER, FORM_ROPE
} form;

static const int takes[][DEMO_N] = {
    [FORM_ATTENTION] = {DEMO_Q, DEMO_K, DEMO_V, DEMO_MASK, DEMO_BIAS,
                        DEMO_SCALE, DEMO_CAUSAL, DEMO_WINDOW, DEMO_SOFTCAP,
                        DEMO_SLOPES, DEMO_SINKS, DEMO_LENGTHS, -1},
    [FORM_BACKWARD] = {DEMO_D_O, DEMO_Q, DEMO_K, DEMO_V, -1},
    [FORM_PACKED] = {DEMO_Q, DEMO_K, DEMO_V, DEMO_CU_Q, DEMO_CU_K, -1},
    [FORM_LAYER] = {DEMO_X, DEMO_W_QKV, DEMO_W_O, DEMO_HEADS, -1},
    [FORM_ROPE] = {DEMO_X, DEMO_POSITIONS, -1},
};

/* Slips that no step of the model makes. */
typedef enum slip {
    SLIP_NONE,
    SLIP_NAN_ROWS,
    SLIP_MEAN_ROWS,
    SLIP_OVERFLOW,
    SLIP_OVERFLOW_16,
    SLIP_CONSTANT,
    SLIP_NAN,
    SLIP_STATE,
    SLIP_MUTATION,
    SLIP_SENTINEL,
    SLIP_DROPOUT,
    SLIP_STRIDES,
    SLIP_BROADCAST,
    SLIP_LSE,
    SLIP_SUMS,
    SLIP_SINGLE,
    SLIP_UNKNOWN
} slip;

static const struct {
    const char *fault;
    slip slip;
} slips[] = {
    {"empty-row-nan", SLIP_NAN_ROWS},
    {"empty-row-mean", SLIP_MEAN_ROWS},
    {"softmax-no-max", SLIP_OVERFLOW},
    {"score-overflow-16bit", SLIP_OVERFLOW_16},
    {"output-constant", SLIP_CONSTANT},
    {"output-nan", SLIP_NAN},
    {"state-kept", SLIP_STATE},
    {"inputs-mutated", SLIP_MUTATION},
    {"mask-finite-sentinel", SLIP_SENTINEL},
    {"dropout-not-off", SLIP_DROPOUT},
    {"strides-ignored", SLIP_STRIDES},
    {"broadcast-stride-zero", SLIP_BROADCAST},
    {"lse-base-or-empty", SLIP_LSE},
    {"accumulate-16bit", SLIP_SUMS},
    {"dtype-downgraded", SLIP_SINGLE},
    {"unexplained", SLIP_UNKNOWN},
};

static const attn__rope_form rope_right = {
    .rotary_dim = -1, .frequency_dim = -1, .base = 10000};

/* Widths below 0: that part of the head's. */
static const struct {
    const char *fault;
    attn__rope_form form;
} rotations[] = {
    {"rope-pairing", {.angles_interleaved = true, .rotary_dim = -1,
                      .frequency_dim = -1, .base = 10000}},
    {"rope-partial-width", {.rotary_dim = -2, .frequency_dim = -1,
                            .base = 10000}},
    {"rope-position-offset", {.rotary_dim = -1, .frequency_dim = -1,
                              .base = 10000, .place = PLACE_NEXT}},
    {"rope-low-precision", {.rotary_dim = -1, .frequency_dim = -1,
                            .base = 10000, .rounding = ROUND_ANGLE_F16}},
    {"rope-rotation-reversed", {.reversed = true, .rotary_dim = -1,
                                .frequency_dim = -1, .base = 10000}},
    {"rope-base-or-scaling", {.rotary_dim = -1, .frequency_dim = -1,
                              .base = 100}},
};

typedef struct demo {
    attn_subject subject;
    attn_parameter parameters[DEMO_N];
    form form;
    attn__model model;
    attn__meaning meaning;
    attn__rope_form rope;
    slip slip;
    int64_t calls;
    double kept; /* of the last call's answer */
    char name[64];
} demo;

/* ------------------------------------------------------------- the answer */

/* Where the model makes no claim the row is empty: 0, or what the slip says.
 * Where it says "not finite": NaN. */
static void settle(const demo *d, attn__work *w, const attn__question *q)
{
    const int64_t dim = q->n.dim_v;

    ATTN__FOR_ROWS(w, row) {
        for (int64_t c = 0; c < dim; c++) {
            double *o = &w->answer[row.index * dim + c], mean = 0;

            if (isinf(*o))
                *o = NAN;
            else if (isnan(*o) && d->slip != SLIP_NAN_ROWS) {
                for (int64_t j = 0; j < w->n.len_k; j++)
                    mean += attn__value(w, &row, j)[c];
                *o = d->slip == SLIP_MEAN_ROWS ? mean / (double)w->n.len_k
                                               : 0;
            }
        }
    }
}

/* A row is lost where a score passes `most`: 709 without the maximum, or what
 * 16 bits hold. */
static void overflow(attn__work *w, int64_t dim, double most)
{
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++) {
            for (int64_t c = 0; row.s[j] > most && c < dim; c++)
                w->answer[row.index * dim + c] = NAN;
        }
    }
}

static double rounded(double x)
{
    return (double)attn__f32_of_f16(attn__f16_of_f64(x));
}

/* o = p @ v, every sum rounded to 16 bits. */
static void sum_in_16(attn__work *w, int64_t dim)
{
    ATTN__FOR_ROWS(w, row) {
        for (int64_t c = 0; c < dim; c++) {
            double sum = 0;

            for (int64_t j = 0; j < w->n.len_k; j++)
                sum = rounded(sum +
                              rounded(row.p[j] * attn__value(w, &row, j)[c]));
            w->answer[row.index * dim + c] = sum;
        }
    }
}

/* Kept with 1 - 1/4 and scaled, by a pattern of the calls. */
static void drop(const demo *d, attn__work *w, int64_t dim)
{
    ATTN__FOR_ROWS(w, row) {
        for (int64_t c = 0; c < dim; c++) {
            const int64_t x = row.index * dim + c + d->calls * 7;

            w->answer[row.index * dim + c] *= x % 4 ? 4.0 / 3 : 0;
        }
    }
}

static void slip_of_element(const demo *d, double *x)
{
    if (d->slip == SLIP_CONSTANT || d->slip == SLIP_NAN)
        *x = d->slip == SLIP_NAN ? NAN : 0;
    if (d->slip == SLIP_STATE)
        *x += d->kept;
    if (d->slip == SLIP_SINGLE)
        *x = (double)(float)*x;
    if (d->slip == SLIP_UNKNOWN)
        *x += 0.25 * sin(3 * *x);
}

static void slip_up(demo *d, attn__work *w, const attn__question *q)
{
    double first;

    if (d->form != FORM_ATTENTION)
        return;
    settle(d, w, q);
    first = w->answer[0];
    if (d->slip == SLIP_OVERFLOW)
        overflow(w, q->n.dim_v, 709);
    if (d->slip == SLIP_OVERFLOW_16)
        overflow(w, q->n.dim_v, 65504);
    if (d->slip == SLIP_DROPOUT)
        drop(d, w, q->n.dim_v);
    if (d->slip == SLIP_SUMS)
        sum_in_16(w, q->n.dim_v);
    for (int64_t x = 0; x < w->n_answer; x++)
        slip_of_element(d, &w->answer[x]);
    d->kept = first;
}

/* ----------------------------------------------------------------- results */

static bool add_result(attn_answer *answer, int32_t rank, int64_t n0,
                       int64_t n1, int64_t n2, int64_t n3)
{
    attn_result *r = &answer->results[answer->n_results];

    *r = (attn_result){.dtype = ATTN_F64,
                       .rank = rank,
                       .shape = {n0, n1, n2, n3},
                       .count = n0 * n1 * n2 * n3};
    r->data = attn__alloc((size_t)r->count * sizeof *r->data + 1);
    if (r->data)
        answer->n_results++;
    return r->data;
}

static void copy(attn_answer *answer, int32_t which, const double *x)
{
    attn_result *r = &answer->results[which];

    memcpy(r->data, x, (size_t)r->count * sizeof *r->data);
}

/* (heads, total, dim) of the answer to (total, heads, dim). */
static void copy_turned(attn_answer *answer, const double *x,
                        const attn__sizes *n)
{
    for (int64_t e = 0; e < answer->results[0].count; e++) {
        const int64_t c = e % n->dim_v, h = e / n->dim_v % n->heads_q;
        const int64_t i = e / n->dim_v / n->heads_q;

        answer->results[0].data[e] = x[(h * n->len_q + i) * n->dim_v + c];
    }
}

static bool give(const demo *d, const attn__work *w, const attn__question *q,
                 attn_answer *answer)
{
    const attn__sizes *n = &q->n;
    const int64_t n_q = attn__count_q(n), n_k = attn__count_k(n);

    if (d->form == FORM_LAYER) {
        if (!add_result(answer, 3, n->batch, n->len_q, q->layer.model, 1))
            return false;
        copy(answer, 0, w->answer);
    } else if (d->form == FORM_PACKED) {
        if (!add_result(answer, 3, n->len_q, n->heads_q, n->dim_v, 1))
            return false;
        copy_turned(answer, w->answer, n);
    } else if (d->form == FORM_BACKWARD) {
        if (!add_result(answer, 4, n->batch, n->heads_q, n->len_q,
                        n->dim_qk) ||
            !add_result(answer, 4, n->batch, n->heads_kv, n->len_k,
                        n->dim_qk) ||
            !add_result(answer, 4, n->batch, n->heads_kv, n->len_k, n->dim_v))
            return false;
        copy(answer, 0, w->answer);
        copy(answer, 1, w->answer + n_q);
        copy(answer, 2, w->answer + n_q + n_k);
    } else {
        if (!add_result(answer, 4, n->batch, n->heads_q, n->len_q, n->dim_v))
            return false;
        copy(answer, 0, w->answer);
    }
    return true;
}

/* The log-sum-exp beside o, in which the maximum was forgotten. */
static bool give_lse(const attn__work *w, const attn__question *q,
                     attn_answer *answer)
{
    const attn__sizes *n = &q->n;

    if (!add_result(answer, 3, n->batch, n->heads_q, n->len_q, 1))
        return false;
    ATTN__FOR_ROWS(w, row) {
        double most = -INFINITY;

        for (int64_t j = 0; j < n->len_k; j++)
            most = row.visible[j] ? fmax(most, row.s[j]) : most;
        answer->results[1].data[row.index] = w->lse[row.index] - most;
    }
    return true;
}

static attn_outcome answer_with(demo *d, const attn__question *q,
                                attn__arena *arena, attn_answer *answer)
{
    const int64_t elements = attn__count_q(&q->n) + attn__count_k(&q->n) +
                             attn__count_v(&q->n) + attn__count_o(&q->n) +
                             q->n.batch * q->n.len_q * q->layer.model + 64;
    attn__work w;
    bool given;

    if (!attn__work_open(&w, arena, attn__count_pairs(&q->n), elements))
        return ATTN_LOST;
    attn__predict(&w, &d->model, &d->meaning, q);
    slip_up(d, &w, q);
    given = give(d, &w, q, answer) &&
            (d->slip != SLIP_LSE || give_lse(&w, q, answer));
    for (int32_t x = 0; !given && x < answer->n_results; x++)
        attn__free(answer->results[x].data);
    if (!given) {
        answer->n_results = 0;
        return ATTN_LOST;
    }
    answer->mutated = d->slip == SLIP_MUTATION;
    return ATTN_ANSWERED;
}

/* -------------------------------------------------------------- rotation */

static int64_t part_of(int64_t width, int64_t dim)
{
    return width < 0 ? dim / -width : width;
}

static double number_at(const attn_input *t, int64_t x)
{
    int64_t at = 0;

    for (int32_t a = t->rank - 1; a >= 0; a--) {
        at += x % t->shape[a] * t->stride[a];
        x /= t->shape[a];
    }
    return t->dtype == ATTN_I64   ? (double)((const int64_t *)t->data)[at]
           : t->dtype == ATTN_F32 ? (double)((const float *)t->data)[at]
                                  : ((const double *)t->data)[at];
}

/* x (..., len, dim), positions (len). */
static attn_outcome rotate(const demo *d, const attn_value *list, int32_t n,
                           attn_answer *answer)
{
    const attn_input *x = &list[0].tensor, *at = &list[1].tensor;
    attn__rope_form rope = d->rope;
    double row[256];
    int64_t len, dim;

    if (n < 2 || x->rank < 2 || at->rank != 1 ||
        at->shape[0] != x->shape[x->rank - 2] ||
        x->shape[x->rank - 1] > 256)
        return ATTN_RAISED;
    len = at->shape[0];
    dim = x->shape[x->rank - 1];
    rope.rotary_dim = part_of(rope.rotary_dim, dim);
    rope.frequency_dim = part_of(rope.frequency_dim, dim);
    if (!add_result(answer, x->rank, x->shape[0], x->shape[1],
                    x->rank > 2 ? x->shape[2] : 1,
                    x->rank > 3 ? x->shape[3] : 1))
        return ATTN_LOST;
    for (int64_t r = 0; r < answer->results[0].count / dim; r++) {
        for (int64_t c = 0; c < dim; c++)
            row[c] = number_at(x, r * dim + c);
        attn__rope_row(&rope, row, dim, r % len,
                       (int64_t)number_at(at, r % len),
                       answer->results[0].data + r * dim);
    }
    return ATTN_ANSWERED;
}

/* Does the slip ignore the strides of this call? Of axes that are there. */
static bool reads_densely(const demo *d, const attn_value *list, int32_t n)
{
    bool broadcast = false;

    for (int32_t x = 0; x < n; x++) {
        const attn_input *t = &list[x].tensor;

        for (int32_t a = 0;
             list[x].kind == ATTN_VALUE_TENSOR && a < t->rank; a++)
            broadcast |= t->shape[a] > 1 && t->stride[a] == 0;
    }
    return d->slip == SLIP_STRIDES ||
           (d->slip == SLIP_BROADCAST && broadcast);
}

static attn_outcome call(void *ctx, const attn_value *list, int32_t n,
                         attn_answer *answer)
{
    demo *d = ctx;
    attn__arena arena = {0};
    attn__question q;
    attn_outcome outcome = ATTN_RAISED;

    d->calls++;
    if (d->form == FORM_ROPE)
        return rotate(d, list, n, answer);
    if (attn__demo_understand(list, n, takes[d->form],
                              reads_densely(d, list, n), &q, &arena))
        outcome = answer_with(d, &q, &arena, answer);
    else
        snprintf(answer->message, sizeof answer->message,
                 "arrays are (batch, heads, len, dim)");
    attn__arena_close(&arena);
    return outcome;
}

/* ----------------------------------------------------------- open, close */

static form form_of(const attn__hypothesis *h)
{
    return h->needs & ASK_BACKWARD                ? FORM_BACKWARD
           : h->needs & (ASK_LAYER | ASK_PACKED) ? FORM_LAYER
           : h->needs & ASK_VARLEN               ? FORM_PACKED
                                                 : FORM_ATTENTION;
}

static bool set_fault(demo *d, const char *fault)
{
    for (size_t x = 0; x < sizeof slips / sizeof slips[0]; x++) {
        if (strcmp(slips[x].fault, fault) == 0) {
            d->slip = slips[x].slip;
            if (d->slip == SLIP_SENTINEL) {
                d->model.step[SLOT_HIDE] = attn__hide_fill;
                d->model.param[SLOT_HIDE] = -1e4;
            }
            return true;
        }
    }
    for (size_t x = 0; x < sizeof rotations / sizeof rotations[0]; x++) {
        if (strcmp(rotations[x].fault, fault) == 0) {
            d->form = FORM_ROPE;
            d->rope = rotations[x].form;
            return true;
        }
    }
    for (int other = 0; other < 2; other++) {
        for (int x = 0; x < attn__n_hypotheses; x++) {
            const attn__hypothesis *h = &attn__hypotheses[x];

            if (strcmp(h->fault, fault) == 0 && attn__can_show(h) != other) {
                d->form = form_of(h);
                d->model.step[h->slot] = h->step;
                d->model.param[h->slot] = h->param;
                return true;
            }
        }
    }
    return false;
}

/* fn(q, k, v, options) shows what it can; gradients, packed sequences and
 * packed projections have functions of their own. */
bool attn__can_show(const attn__hypothesis *h)
{
    return !(h->needs & (ASK_BACKWARD | ASK_LAYER | ASK_PACKED | ASK_PAIRED |
                          ASK_VARLEN));
}

void attn__demo_step(attn_subject *subject, const attn__hypothesis *h)
{
    demo *d = subject->ctx;

    attn__model_init(&d->model);
    d->slip = SLIP_NONE;
    d->model.step[h->slot] = h->step;
    d->model.param[h->slot] = h->param;
}

attn_status attn_doctor_demo(const char *fault, attn_subject **subject,
                             attn_diag *diag)
{
    demo *d = attn__calloc(1, sizeof *d);

    *subject = NULL;
    if (!d)
        return attn__fail(diag, ATTN_E_NOMEM, "fault", "out of memory");
    attn__model_init(&d->model);
    attn__meaning_init(&d->meaning);
    d->rope = rope_right;
    if (fault && !set_fault(d, fault)) {
        attn__free(d);
        return attn__fail(diag, ATTN_E_ARG, "fault",
                          "'%.60s' is no fault that can be shown", fault);
    }
    snprintf(d->name, sizeof d->name, "demo:%.50s",
             fault ? fault : "attention");
    d->subject = (attn_subject){.name = d->name,
                                .parameters = d->parameters,
                                .ctx = d,
                                .call = call};
    for (const int *x = takes[d->form]; *x >= 0; x++)
        d->parameters[d->subject.n_parameters++] = attn__demo_parameters[*x];
    *subject = &d->subject;
    return attn__ok(diag);
}

void attn_doctor_demo_free(attn_subject *subject)
{
    if (subject)
        attn__free(subject->ctx);
}
