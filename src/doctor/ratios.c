/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients that no hypothesis explains: which of them are right, or right but
 * for a factor, and which identities they break. */
#include <math.h>
#include <string.h>

#include "doctor/identities.h"
#include "doctor/structure.h"

/* One gradient against the right one: whether it is that times a factor. */
typedef struct gradient {
    bool right, proportional;
    double factor;
} gradient;

static gradient compare(const double *x, const double *right, int64_t n)
{
    double both = 0, square = 0, off = 0, size = 0;
    gradient g;

    for (int64_t e = 0; e < n; e++) {
        both += x[e] * right[e];
        square += right[e] * right[e];
    }
    g.factor = square > 0 ? both / square : 1;
    for (int64_t e = 0; e < n; e++) {
        off = fmax(off, fabs(x[e] - g.factor * right[e]));
        size = fmax(size, fabs(right[e]));
    }
    g.proportional = off <= 1e-6 * size && isfinite(g.factor);
    g.right = g.proportional && fabs(g.factor - 1) < 1e-6;
    return g;
}

/* dq, dk, dv of the question. */
static void compare_all(attn__exam *exam, const attn__attempt *a,
                        const attn__question *q, gradient found[3])
{
    const int64_t count[3] = {attn__count_q(&q->n), attn__count_k(&q->n),
                              attn__count_v(&q->n)};
    attn__model right;
    int64_t at = 0;

    attn__model_init(&right);
    attn__predict(&exam->work, &right, &a->meaning, q);
    for (int x = 0; x < 3; x++) {
        found[x] = compare(q->answer + at, exam->work.answer + at, count[x]);
        at += count[x];
    }
}

static const char *say(attn__exam *exam, const gradient found[3])
{
    static const char *const names[] = {"dq", "dk", "dv"};
    attn__arena *arena = &exam->report->arena;
    const char *text = "";

    for (int x = 0; x < 3; x++) {
        const char *state =
            found[x].right ? "right"
            : found[x].proportional
                ? attn__arena_text(arena, "%.6g times the right one",
                                   found[x].factor)
                : "wrong";

        text = attn__arena_text(arena, "%s%s%s is %s", text, x ? ", " : "",
                                names[x], state);
    }
    return text;
}

/* Is the softmax or the mask at fault, rather than a sum, a scale or a
 * layout? Only they touch dq and dk without being a factor of either, or break
 * what holds for every weighted mean. */
static bool is_softmax(const gradient found[3], const attn__identities *x)
{
    const bool both = !found[0].proportional && !found[1].proportional;

    if (both && found[2].right)
        return true;
    return x->keys > 1e-6 || (x->output > 1e-6 && !found[2].proportional);
}

void attn__describe_gradients(attn__exam *exam, const attn__attempt *a,
                              const attn__question *q)
{
    attn__identities x;
    gradient found[3];
    attn_finding *f;

    compare_all(exam, a, q, found);
    x = attn__check_identities(q);
    f = attn__add_fault(exam->report,
                        is_softmax(found, &x) ? "bwd-softmax-or-mask"
                                              : "bwd-reduction-scale-layout",
                        "");
    f->where = "backward";
    f->evidence = attn__arena_text(
        &exam->report->arena,
        "%s; sum_j dk_j is off by %.2g, <dv, v> = <do, o> by %.2g, "
        "<q, dq> = <k, dk> by %.2g",
        say(exam, found), x.keys, x.output, x.product);
}
