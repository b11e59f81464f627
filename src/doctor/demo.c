/* SPDX-License-Identifier: Apache-2.0
 *
 * A subject with a bug that is chosen: the model with one wrong step behind
 * the same callback as anybody's code. It shows what the doctor says, and it
 * is how the tests see every hypothesis named. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "doctor/match.h"
#include "doctor/wrong.h"

enum { Q, K, V, MASK, BIAS, SCALE, CAUSAL, WINDOW, SOFTCAP, SLOPES, SINKS,
       LENGTHS, N_PARAMETERS };

static const attn_parameter parameters[N_PARAMETERS] = {
    [Q] = {.name = "q"},
    [K] = {.name = "k"},
    [V] = {.name = "v"},
    [MASK] = {.name = "mask", .optional = 1, .fallback = "None"},
    [BIAS] = {.name = "bias", .optional = 1, .fallback = "None"},
    [SCALE] = {.name = "scale", .optional = 1, .fallback = "None"},
    [CAUSAL] = {.name = "causal", .optional = 1, .fallback = "False"},
    [WINDOW] = {.name = "window_size", .optional = 1, .fallback = "None"},
    [SOFTCAP] = {.name = "softcap", .optional = 1, .fallback = "0.0"},
    [SLOPES] = {.name = "alibi_slopes", .optional = 1, .fallback = "None"},
    [SINKS] = {.name = "sinks", .optional = 1, .fallback = "None"},
    [LENGTHS] = {.name = "k_lengths", .optional = 1, .fallback = "None"},
};

/* Slips that no step of the model makes. */
typedef enum slip {
    SLIP_NONE,
    SLIP_NAN_ROWS,
    SLIP_MEAN_ROWS,
    SLIP_OVERFLOW,
    SLIP_CONSTANT,
    SLIP_NAN,
    SLIP_STATE,
    SLIP_MUTATION,
    SLIP_SENTINEL,
    SLIP_DROPOUT
} slip;

static const struct {
    const char *fault;
    slip slip;
} slips[] = {
    {"empty-row-nan", SLIP_NAN_ROWS},   {"empty-row-mean", SLIP_MEAN_ROWS},
    {"softmax-no-max", SLIP_OVERFLOW},  {"output-constant", SLIP_CONSTANT},
    {"output-nan", SLIP_NAN},           {"state-kept", SLIP_STATE},
    {"inputs-mutated", SLIP_MUTATION},  {"mask-finite-sentinel",
                                         SLIP_SENTINEL},
    {"dropout-not-off", SLIP_DROPOUT},
};

typedef struct demo {
    attn_subject subject;
    attn_parameter parameters[N_PARAMETERS];
    attn__model model;
    attn__meaning meaning;
    slip slip;
    int64_t calls;
    char name[64];
} demo;

/* ------------------------------------------------------- values to numbers */

static double element(const attn_input *t, int64_t x)
{
    int64_t at = 0;

    for (int32_t a = t->rank - 1; a >= 0; a--) {
        at += x % t->shape[a] * t->stride[a];
        x /= t->shape[a];
    }
    if (t->dtype == ATTN_F64)
        return ((const double *)t->data)[at];
    if (t->dtype == ATTN_F32)
        return (double)((const float *)t->data)[at];
    if (t->dtype == ATTN_I64)
        return (double)((const int64_t *)t->data)[at];
    return (double)((const unsigned char *)t->data)[at];
}

static int64_t count_of(const attn_input *t)
{
    int64_t n = 1;

    for (int32_t a = 0; a < t->rank; a++)
        n *= t->shape[a];
    return n;
}

static double *numbers(const attn_input *t, attn__arena *arena)
{
    double *x = attn__arena_doubles(arena, count_of(t) + 1);

    for (int64_t e = 0; x && e < count_of(t); e++)
        x[e] = element(t, e);
    return x;
}

static void axes_of(const attn_input *t, int64_t shape[4])
{
    for (int a = 3, own = t->rank - 1; a >= 0; a--, own--)
        shape[a] = own >= 0 ? t->shape[own] : 1;
}

/* ---------------------------------------------------------- the question */

typedef struct values {
    const attn_value *by[N_PARAMETERS]; /* NULL where none was given */
    attn__arena *arena;
} values;

static bool take_inputs(const values *v, attn__question *q)
{
    const attn_input *tq, *tk, *tv;

    if (!v->by[Q] || !v->by[K] || !v->by[V])
        return false;
    tq = &v->by[Q]->tensor;
    tk = &v->by[K]->tensor;
    tv = &v->by[V]->tensor;
    if (tq->rank != 4 || tk->rank != 4 || tv->rank != 4 ||
        tk->shape[1] == 0 || tq->shape[1] % tk->shape[1] != 0 ||
        tq->shape[3] != tk->shape[3] || tk->shape[2] != tv->shape[2] ||
        tk->shape[1] != tv->shape[1] || tq->shape[0] != tk->shape[0])
        return false;
    *q = (attn__question){
        .n = {tq->shape[0], tq->shape[1], tk->shape[1], tq->shape[2],
              tk->shape[2], tq->shape[3], tv->shape[3]},
        .q = numbers(tq, v->arena),
        .k = numbers(tk, v->arena),
        .v = numbers(tv, v->arena),
        .window = {-1, -1},
    };
    q->asked = attn__sizes_asked(&q->n);
    return true;
}

static void take_pairs(const values *v, attn__question *q)
{
    if (v->by[MASK]) {
        const attn_input *t = &v->by[MASK]->tensor;
        unsigned char *bits =
            attn__arena_take(v->arena, count_of(t) + 1, 1);

        for (int64_t e = 0; bits && e < count_of(t); e++)
            bits[e] = element(t, e) != 0;
        q->mask = bits;
        axes_of(t, q->mask_shape);
        q->asked |= ASK_MASK;
    }
    if (v->by[BIAS]) {
        q->bias = numbers(&v->by[BIAS]->tensor, v->arena);
        axes_of(&v->by[BIAS]->tensor, q->bias_shape);
        q->asked |= ASK_BIAS;
    }
}

static void take_numbers(const values *v, attn__question *q)
{
    if (v->by[SCALE]) {
        q->scale = v->by[SCALE]->real;
        q->asked |= ASK_SCALE;
    }
    if (v->by[CAUSAL] && v->by[CAUSAL]->integer[0])
        q->asked |= ASK_CAUSAL;
    if (v->by[WINDOW]) {
        memcpy(q->window, v->by[WINDOW]->integer, sizeof q->window);
        q->asked |= ASK_WINDOW;
    }
    if (v->by[SOFTCAP] && v->by[SOFTCAP]->real > 0) {
        q->softcap = v->by[SOFTCAP]->real;
        q->asked |= ASK_SOFTCAP;
    }
}

static void take_vectors(const values *v, attn__question *q)
{
    if (v->by[SLOPES]) {
        q->slopes = numbers(&v->by[SLOPES]->tensor, v->arena);
        q->asked |= ASK_ALIBI;
    }
    if (v->by[SINKS]) {
        q->sinks = numbers(&v->by[SINKS]->tensor, v->arena);
        q->asked |= ASK_SINKS;
    }
    if (v->by[LENGTHS]) {
        int64_t *lengths =
            attn__arena_take(v->arena, q->n.batch, sizeof *lengths);

        for (int64_t b = 0; lengths && b < q->n.batch; b++)
            lengths[b] = (int64_t)element(&v->by[LENGTHS]->tensor, b);
        q->lengths = lengths;
        q->asked |= ASK_LENGTHS;
    }
}

static bool understand(const attn_value *list, int32_t n, attn__question *q,
                       attn__arena *arena)
{
    values v = {.arena = arena};

    for (int32_t x = 0; x < n; x++) {
        if (list[x].kind != ATTN_VALUE_NONE)
            v.by[list[x].parameter] = &list[x];
    }
    if (!take_inputs(&v, q))
        return false;
    take_pairs(&v, q);
    take_numbers(&v, q);
    take_vectors(&v, q);
    return !arena->failed;
}

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

/* exp without the maximum: lost where a score passes 709. */
static void overflow(attn__work *w, int64_t dim)
{
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++) {
            for (int64_t c = 0; row.s[j] > 709 && c < dim; c++)
                w->answer[row.index * dim + c] = NAN;
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

static void slip_up(demo *d, attn__work *w, const attn__question *q)
{
    settle(d, w, q);
    if (d->slip == SLIP_OVERFLOW)
        overflow(w, q->n.dim_v);
    if (d->slip == SLIP_DROPOUT)
        drop(d, w, q->n.dim_v);
    for (int64_t x = 0; x < w->n_answer; x++) {
        if (d->slip == SLIP_CONSTANT || d->slip == SLIP_NAN)
            w->answer[x] = d->slip == SLIP_NAN ? NAN : 0;
        if (d->slip == SLIP_STATE)
            w->answer[x] += d->calls % 3 == 2;
    }
}

static attn_outcome answer_with(demo *d, const attn__question *q,
                                attn__arena *arena, attn_answer *answer)
{
    attn_result *r = &answer->results[0];
    const int64_t n_o = attn__count_o(&q->n);
    const int64_t elements = attn__count_q(&q->n) + attn__count_k(&q->n) +
                             attn__count_v(&q->n) + n_o + 64;
    attn__work w;

    r->data = attn__alloc((size_t)n_o * sizeof *r->data + 1);
    if (!r->data ||
        !attn__work_open(&w, arena, attn__count_pairs(&q->n), elements)) {
        attn__free(r->data);
        return ATTN_LOST;
    }
    attn__predict(&w, &d->model, &d->meaning, q);
    slip_up(d, &w, q);
    memcpy(r->data, w.answer, (size_t)n_o * sizeof *r->data);
    *r = (attn_result){
        .dtype = ATTN_F64,
        .rank = 4,
        .shape = {q->n.batch, q->n.heads_q, q->n.len_q, q->n.dim_v},
        .count = n_o,
        .data = r->data};
    answer->n_results = 1;
    answer->mutated = d->slip == SLIP_MUTATION;
    return ATTN_ANSWERED;
}

static attn_outcome call(void *ctx, const attn_value *list, int32_t n,
                         attn_answer *answer)
{
    demo *d = ctx;
    attn__arena arena = {0};
    attn__question q;
    attn_outcome outcome = ATTN_RAISED;

    d->calls++;
    if (understand(list, n, &q, &arena))
        outcome = answer_with(d, &q, &arena, answer);
    else
        snprintf(answer->message, sizeof answer->message,
                 "q, k, v are (batch, heads, len, dim)");
    attn__arena_close(&arena);
    return outcome;
}

/* ----------------------------------------------------------- open, close */

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
    for (int x = 0; x < attn__n_hypotheses; x++) {
        const attn__hypothesis *h = &attn__hypotheses[x];

        if (strcmp(h->fault, fault) == 0 && attn__can_show(h)) {
            d->model.step[h->slot] = h->step;
            d->model.param[h->slot] = h->param;
            return true;
        }
    }
    return false;
}

/* Gradients, layers and packed sequences are not what a demo takes. */
bool attn__can_show(const attn__hypothesis *h)
{
    return !(h->needs & (ASK_BACKWARD | ASK_LAYER | ASK_PACKED | ASK_VARLEN));
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
    if (fault && !set_fault(d, fault)) {
        attn__free(d);
        return attn__fail(diag, ATTN_E_ARG, "fault",
                          "'%.60s' is no fault that attention(q, k, v, ...) "
                          "can show",
                          fault);
    }
    snprintf(d->name, sizeof d->name, "demo:%.50s",
             fault ? fault : "attention");
    memcpy(d->parameters, parameters, sizeof parameters);
    d->subject = (attn_subject){.name = d->name,
                                .parameters = d->parameters,
                                .n_parameters = N_PARAMETERS,
                                .ctx = d,
                                .call = call};
    *subject = &d->subject;
    return attn__ok(diag);
}

void attn_doctor_demo_free(attn_subject *subject)
{
    if (subject)
        attn__free(subject->ctx);
}
