/* SPDX-License-Identifier: Apache-2.0
 *
 * The kind "rope": fn(x, positions, ...), or fn(q, k, positions), or with cos
 * and sin given. */
#include <math.h>
#include <string.h>

#include "doctor/plain.h"
#include "doctor/random.h"
#include "doctor/rope_form.h"

enum { DIM = 16, LEN = 6, MOST_X = 2 * 3 * LEN * DIM, N_PROBES = 6 };

/* What a probe asks for; a negative number or 0: it does not say. */
typedef struct probe {
    double base;
    int64_t rotary_dim;
    int interleaved; /* -1: it does not say */
    int64_t positions[LEN];
    double x[MOST_X], y[2][MOST_X];
    bool answered, two;
} probe;

typedef struct way {
    int32_t rank;
    int64_t shape[4];
    int64_t rows_inside; /* rows of x per position: 1, or heads after len */
    bool batched;        /* positions (batch, len) */
    int angles;          /* cos, sin: 0 (len, half), 1 repeated by halves,
                            2 by pairs */
} way;

static const way ways[] = {
    {4, {2, 3, LEN, DIM}, 1, false, 0}, {4, {2, 3, LEN, DIM}, 1, true, 0},
    {4, {2, LEN, 3, DIM}, 3, false, 0}, {4, {2, LEN, 3, DIM}, 3, true, 0},
    {3, {3, LEN, DIM}, 1, false, 0},    {3, {LEN, 3, DIM}, 3, false, 0},
    {2, {LEN, DIM}, 1, false, 0},       {4, {2, 3, LEN, DIM}, 1, false, 1},
    {3, {3, LEN, DIM}, 1, false, 1},    {2, {LEN, DIM}, 1, false, 1},
    {4, {2, 3, LEN, DIM}, 1, false, 2}, {3, {3, LEN, DIM}, 1, false, 2},
    {2, {LEN, DIM}, 1, false, 2},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

typedef struct rope {
    attn__plain_call call;
    attn__binding binding;
    const way *way;
    probe *probes;
} rope;

static bool has(const rope *r, attn__role role)
{
    return attn__parameter_of(&r->binding, role) >= 0;
}

static int64_t count_of(const way *w)
{
    int64_t n = 1;

    for (int32_t a = 0; a < w->rank; a++)
        n *= w->shape[a];
    return n;
}

/* ---------------------------------------------------------------- asking */

static void give_angles(rope *r, const probe *p)
{
    const int kind = r->way->angles;
    const int64_t width = kind ? DIM : DIM / 2, shape[2] = {LEN, width};
    double cosines[LEN * DIM], sines[LEN * DIM];

    for (int64_t i = 0; i < LEN; i++) {
        for (int64_t c = 0; c < width; c++) {
            const int64_t m = kind == 2 ? c / 2 : c % (DIM / 2);
            const double a = (double)p->positions[i] *
                             pow(10000, -2 * (double)m / DIM);

            cosines[i * width + c] = cos(a);
            sines[i * width + c] = sin(a);
        }
    }
    attn__plain_tensor(&r->call, ROLE_COS, cosines, 2, shape);
    attn__plain_tensor(&r->call, ROLE_SIN, sines, 2, shape);
}

static void give_positions(rope *r, const probe *p)
{
    int64_t both[2 * LEN], shape[2] = {2, LEN};

    for (int64_t x = 0; x < 2 * LEN; x++)
        both[x] = p->positions[x % LEN];
    if (r->way->batched)
        attn__plain_integers(&r->call, ROLE_POSITIONS, both, 2, shape);
    else
        attn__plain_integers(&r->call, ROLE_POSITIONS, both, 1, shape + 1);
    attn__plain_value(&r->call, ROLE_OFFSET,
                      (attn_value){.kind = ATTN_VALUE_INTEGER,
                                   .integer = {p->positions[0]}});
}

static void give_options(rope *r, const probe *p)
{
    if (p->base > 0)
        attn__plain_value(&r->call, ROLE_BASE,
                          (attn_value){.kind = ATTN_VALUE_REAL,
                                       .real = p->base});
    if (p->rotary_dim > 0)
        attn__plain_value(&r->call, ROLE_ROTARY_DIM,
                          (attn_value){.kind = ATTN_VALUE_INTEGER,
                                       .integer = {p->rotary_dim}});
    if (p->interleaved >= 0)
        attn__plain_value(&r->call, ROLE_INTERLEAVED,
                          (attn_value){.kind = ATTN_VALUE_BOOLEAN,
                                       .integer = {p->interleaved}});
    attn__plain_value(&r->call, ROLE_HEAD_DIM,
                      (attn_value){.kind = ATTN_VALUE_INTEGER,
                                   .integer = {DIM}});
}

static bool put(rope *r, probe *p)
{
    const int64_t n = count_of(r->way);
    const double *y;

    attn__plain_begin(&r->call);
    attn__plain_tensor(&r->call, ROLE_X, p->x, r->way->rank, r->way->shape);
    attn__plain_tensor(&r->call, ROLE_Q, p->x, r->way->rank, r->way->shape);
    attn__plain_tensor(&r->call, ROLE_K, p->x, r->way->rank, r->way->shape);
    give_positions(r, p);
    if (has(r, ROLE_COS))
        give_angles(r, p);
    give_options(r, p);
    p->answered = attn__plain_put(&r->call);
    for (int x = 0; x < 2 && p->answered; x++) {
        y = attn__plain_result(&r->call, x, n);
        if (y)
            memcpy(p->y[x], y, (size_t)n * sizeof *y);
        if (x == 0)
            p->answered = y != NULL;
        else
            p->two = y != NULL;
    }
    return p->answered;
}

/* Positions may be anything, or must follow one another. */
static void place(const rope *r, probe *p, int64_t first, int64_t far)
{
    const bool free = has(r, ROLE_POSITIONS) || has(r, ROLE_COS);

    for (int64_t i = 0; i < LEN; i++)
        p->positions[i] = free && i > 2 ? first + i * far : first + i;
    if (!free && !has(r, ROLE_OFFSET)) {
        for (int64_t i = 0; i < LEN; i++)
            p->positions[i] = i;
    }
}

static void ask_all(rope *r)
{
    attn__random random = {.seed = r->call.exam->options.seed};
    const bool flags = has(r, ROLE_INTERLEAVED);

    for (int x = 0; x < N_PROBES; x++) {
        probe *p = &r->probes[x];

        *p = (probe){.interleaved = flags ? x % 2 : -1};
        place(r, p, x == 1 ? 3 : 0, x == 2 ? 401 : 7);
        for (int64_t e = 0; e < MOST_X; e++)
            p->x[e] = attn__normal(&random, 1);
        if (x == 3 && has(r, ROLE_BASE))
            p->base = 500;
        if (x == 4 && has(r, ROLE_ROTARY_DIM))
            p->rotary_dim = DIM / 2;
        put(r, p);
    }
}

/* --------------------------------------------------------------- matching */

/* A way to write it, and how many things are wrong with it. */
typedef struct candidate {
    attn__rope_form form;
    bool base_free; /* the base is that of the form, whatever is asked */
    bool width_free; /* so is the width */
    bool frequency_free; /* and the width of the frequencies */
    int faults;
    const char *id[4], *detail[4];
} candidate;

static void blame(candidate *c, const char *id, const char *detail)
{
    if (c->faults < 4) {
        c->id[c->faults] = id;
        c->detail[c->faults] = detail;
    }
    c->faults++;
}

/* The form for one probe: what it asks goes before what the form has. */
static attn__rope_form asked_of(const candidate *c, const probe *p)
{
    attn__rope_form f = c->form;

    if (p->base > 0 && !c->base_free)
        f.base = p->base;
    if (p->rotary_dim > 0 && !c->width_free) {
        const bool same =
            f.frequency_dim == f.rotary_dim && !c->frequency_free;

        f.rotary_dim = p->rotary_dim;
        f.frequency_dim = same ? p->rotary_dim : f.frequency_dim;
    }
    if (p->interleaved >= 0) {
        const bool mixed = f.pairs_interleaved != f.angles_interleaved;

        f.pairs_interleaved = p->interleaved;
        f.angles_interleaved = p->interleaved != mixed;
    }
    return f;
}

/* Angles in f32 are good enough: position times 2^-24, and some. */
static double allowed(const attn__exam *exam, int64_t position)
{
    const double unit = exam->options.dtype == ATTN_F16 ? 0x1p-10 : 0x1p-22;

    return 8 * unit * (4 + fabs((double)position) * 0x1p-2);
}

static bool fits_probe(const rope *r, const candidate *c, const probe *p,
                       int result)
{
    const attn__rope_form f = asked_of(c, p);
    const int64_t rows = count_of(r->way) / DIM;

    for (int64_t row = 0; row < rows; row++) {
        const int64_t i = row / r->way->rows_inside % LEN;
        double y[DIM];

        attn__rope_row(&f, p->x + row * DIM, DIM, i, p->positions[i], y);
        for (int64_t e = 0; e < DIM; e++) {
            const double error = fabs(y[e] - p->y[result][row * DIM + e]);

            if (!(error < allowed(r->call.exam, p->positions[i])))
                return false;
        }
    }
    return true;
}

static bool fits(const rope *r, const candidate *c, int result)
{
    int met = 0;

    for (int x = 0; x < N_PROBES; x++) {
        const probe *p = &r->probes[x];

        if (!p->answered || (result && !p->two))
            continue;
        if (!fits_probe(r, c, p, result))
            return false;
        met++;
    }
    return met > 0;
}

/* ------------------------------------------------------------- candidates */

typedef struct choices {
    int pairs, angles, output, reversed, width, frequency, base, place;
} choices;

static const choices counts = {2, 2, 3, 2, 4, 4, 6, PLACE_N};
static const double bases[] = {10000, 500000, 1000000, 1000, 100, 2};

static void choose_pairing(candidate *c, const choices *x,
                           const attn__expect *e)
{
    c->form.pairs_interleaved = x->pairs;
    c->form.angles_interleaved = x->angles;
    c->form.output = x->output;
    if (x->angles != x->pairs)
        blame(c, "rope-pairing",
              x->pairs ? "Interleaved components meet angles laid out in "
                         "halves"
                       : "Components in halves meet interleaved angles");
    if (x->output)
        blame(c, "rope-pairing",
              "The output is left in the other order of components");
    if (e->has_interleaved && e->interleaved != (bool)x->pairs)
        blame(c, "rope-pairing",
              x->pairs ? "It is interleaved, and halves are wanted"
                       : "It is in halves, and interleaved is wanted");
}

static void choose_width(candidate *c, const choices *x, const rope *r)
{
    static const int64_t widths[] = {DIM, DIM / 2, DIM / 4, 3 * DIM / 4};
    const attn__expect *e = &r->call.exam->expect;
    const int64_t w = widths[x->width];
    const int64_t wanted = e->rotary_dim > 0 ? e->rotary_dim : DIM;
    const int64_t frequencies[] = {w, DIM, 2 * w, w / 2};

    c->form.rotary_dim = w;
    c->form.frequency_dim = frequencies[x->frequency];
    c->width_free = x->width > 0 || e->rotary_dim > 0;
    c->frequency_free = x->frequency == 1;
    if (c->form.frequency_dim != w || c->frequency_free)
        blame(c, "rope-partial-width",
              "The frequencies use another width than the rotation");
    if (w == DIM && x->frequency > 1)
        c->faults += 2; /* that is the base squared, or its root */
    if (w != wanted && !e->identify)
        blame(c, "rope-partial-width",
              "Another number of components is rotated");
}

static void choose_base(candidate *c, const choices *x, const rope *r)
{
    const attn__expect *e = &r->call.exam->expect;
    const double wanted = e->base > 0 ? e->base : 10000;

    c->form.base = x->base == 0 ? wanted : bases[x->base];
    if (x->base > 0 && (!e->identify || x->base > 2 || x->frequency))
        blame(c, "rope-base-or-scaling", "Another base is used");
}

static void choose_place(candidate *c, const choices *x)
{
    static const char *const details[PLACE_N] = {
        "",
        "They are one too large",
        "They are one too small",
        "They restart at 0, whatever is given",
        "They count twice, as if rotated twice",
        "Nothing is rotated"};

    c->form.place = (attn__rope_place)x->place;
    if (x->place)
        blame(c, "rope-position-offset", details[x->place]);
}

static candidate candidate_of(const choices *x, const rope *r)
{
    const attn__expect *e = &r->call.exam->expect;
    candidate c = {.base_free = false};

    choose_pairing(&c, x, e);
    c.form.reversed = x->reversed;
    if (x->reversed)
        blame(&c, "rope-rotation-reversed", "");
    choose_width(&c, x, r);
    choose_base(&c, x, r);
    choose_place(&c, x);
    return c;
}

static bool next(choices *x)
{
    int *const digit[] = {&x->pairs,     &x->angles, &x->output,
                          &x->reversed,  &x->width,  &x->frequency,
                          &x->base,      &x->place};
    const int *const count[] = {&counts.pairs,    &counts.angles,
                                &counts.output,   &counts.reversed,
                                &counts.width,    &counts.frequency,
                                &counts.base,     &counts.place};

    for (int d = 0; d < 8; d++) {
        if (++*digit[d] < *count[d])
            return true;
        *digit[d] = 0;
    }
    return false;
}

/* 1: the base that is asked for, 2: the width. */
static void ignore(candidate *c, int what)
{
    if (what == 1) {
        c->base_free = true;
        blame(c, "rope-base-or-scaling",
              "The base that is asked for is ignored");
    } else if (what == 2) {
        c->width_free = true;
        blame(c, "rope-partial-width",
              "The width that is asked for is ignored");
    }
}

/* The candidate with the fewest faults that fits, perhaps with the base or
 * the width that is asked for ignored. */
static bool find(const rope *r, int result, candidate *found)
{
    for (int faults = 0; faults <= 2; faults++) {
        choices x = {0};

        do {
            candidate c = candidate_of(&x, r);

            if (c.faults > faults)
                continue;
            for (int ignores = 0; ignores < 3; ignores++) {
                candidate d = c;

                ignore(&d, ignores);
                if (d.faults == faults && fits(r, &d, result)) {
                    *found = d;
                    return true;
                }
            }
        } while (next(&x));
    }
    return false;
}

/* As `found`, but angles rounded to 16 bits. */
static bool find_rounded(const rope *r, int result, candidate *found)
{
    for (int pairs = 0; pairs < 2; pairs++) {
        for (int x = ROUND_ANGLE_BF16; x < ROUND_N; x++) {
            candidate c = candidate_of(
                &(choices){.pairs = pairs, .angles = pairs}, r);

            c.form.rounding = (attn__rope_rounding)x;
            if (c.faults == 0 && fits(r, &c, result)) {
                blame(&c, "rope-low-precision",
                      x < ROUND_ANGLE_F16 ? "They are rounded to bfloat16"
                                          : "They are rounded to float16");
                *found = c;
                return true;
            }
        }
    }
    return false;
}

/* ----------------------------------------------------------------- report */

/* Small positions are nearly right and large ones are not. */
static bool looks_imprecise(const rope *r)
{
    double near = 0, far = 0;

    for (int pairs = 0; pairs < 2; pairs++) {
        const candidate c =
            candidate_of(&(choices){.pairs = pairs, .angles = pairs}, r);
        double worst[2] = {0, 0};

        for (int x = 0; x < N_PROBES; x++) {
            const probe *p = &r->probes[x];
            const attn__rope_form f = asked_of(&c, p);

            for (int64_t row = 0; p->answered && row < count_of(r->way) / DIM;
                 row++) {
                const int64_t i = row / r->way->rows_inside % LEN;
                double y[DIM], *w = &worst[p->positions[i] > 3];

                attn__rope_row(&f, p->x + row * DIM, DIM, i, p->positions[i],
                               y);
                *w = fmax(*w, attn__farthest(p->y[0] + row * DIM, y, DIM));
            }
        }
        if (pairs == 0 || worst[0] < near) {
            near = worst[0];
            far = worst[1];
        }
    }
    return near < 0.03 && far > 4 * near;
}

static void report(rope *r, const candidate *c, const char *where)
{
    attn_report *rep = r->call.exam->report;

    for (int x = 0; x < c->faults && x < 4; x++) {
        attn_finding *f = attn__add_fault(rep, c->id[x], c->detail[x]);

        f->where = where;
        f->evidence = "with this bug the prediction meets every answer";
    }
}

static void report_facts(rope *r, const candidate *c)
{
    attn_report *rep = r->call.exam->report;

    attn__add_fact(rep, "pairing", "%s",
                   has(r, ROLE_INTERLEAVED)   ? "as asked"
                   : c->form.pairs_interleaved ? "interleaved"
                                               : "half");
    attn__add_fact(rep, "base", "%g", c->form.base);
    attn__add_fact(rep, "rotary_dim", "%lld of %d",
                   (long long)c->form.rotary_dim, (int)DIM);
}

static void judge(rope *r)
{
    attn_report *rep = r->call.exam->report;
    candidate first, second;

    if (!find(r, 0, &first) && !find_rounded(r, 0, &first)) {
        attn__add_fault(rep,
                        looks_imprecise(r) ? "rope-low-precision"
                                           : "unexplained",
                        "");
        return;
    }
    report(r, &first, "");
    report_facts(r, &first);
    if (!r->probes[0].two || has(r, ROLE_X))
        return;
    if (!find(r, 1, &second)) {
        attn__add_fault(rep, "unexplained", "")->where = "the keys";
        return;
    }
    report(r, &second, "the keys");
    if (second.form.pairs_interleaved != first.form.pairs_interleaved)
        attn__add_fault(rep, "rope-pairing",
                        "Queries and keys are rotated in different pairings");
}

void attn__examine_rope(attn__exam *exam)
{
    rope r = {.call = {.exam = exam}};
    attn_report *rep = exam->report;
    bool answered = false;

    r.call.binding = &r.binding;
    r.probes = attn__arena_take(&exam->arena, N_PROBES, sizeof *r.probes);
    if (!r.probes)
        return;
    attn__bind(&r.binding, exam->subject, exam->kind);
    r.binding.dtype = exam->options.dtype;
    for (int x = 0; x < N_WAYS && !answered; x++) {
        if (ways[x].angles && !has(&r, ROLE_COS))
            break;
        r.way = &ways[x];
        ask_all(&r);
        answered = r.probes[0].answered;
    }
    if (answered) {
        attn__answered(rep);
        judge(&r);
        attn__plain_check_mutation(&r.call);
    } else {
        rep->verdict = ATTN_VERDICT_UNUSABLE;
        rep->reason = r.call.refusal ? r.call.refusal
                                     : "its results have other shapes";
    }
    attn__plain_end(&r.call);
}
