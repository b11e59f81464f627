/* SPDX-License-Identifier: Apache-2.0
 *
 * One head for a picture: the one that is most wrong, of a question that is
 * small enough to look at. */
#include <math.h>
#include <string.h>

#include "doctor/drawing.h"
#include "doctor/hygiene.h"
#include "doctor/reading.h"

/* What there is to choose a head from. */
typedef struct sheet {
    const char *what;
    const double *right, *theirs;
    const unsigned char *visible;
    attn__sizes n;
    int64_t columns;
} sheet;

/* The head that differs most; the first where none does. */
static int64_t worst_head(const sheet *s)
{
    const int64_t size = s->n.len_q * s->columns;
    double worst = 0;
    int64_t found = 0;

    for (int64_t x = 0; x < s->n.batch * s->n.heads_q * size; x++) {
        const double off = fabs(s->theirs[x] - s->right[x]);

        if (off > worst) {
            worst = off;
            found = x / size;
        }
    }
    return found;
}

static void keep(attn_report *r, const sheet *s)
{
    const int64_t size = s->n.len_q * s->columns;
    const int64_t head = worst_head(s), first = head * size;
    attn__arena *arena = &r->arena;

    r->head = (attn_report_head){
        .what = s->what,
        .batch = head / s->n.heads_q,
        .head = head % s->n.heads_q,
        .rows = s->n.len_q,
        .columns = s->columns,
        .right = attn__arena_copy(arena, s->right + first, size,
                                  sizeof(double)),
        .theirs = attn__arena_copy(arena, s->theirs + first, size,
                                   sizeof(double)),
    };
    if (s->visible)
        r->head.visible =
            attn__arena_copy(arena, s->visible + first, size, 1);
}

/* A wrong question of 6 to 16 keys; else the simplest wrong one, or any. */
static const attn__question *choose(attn__exam *exam, const attn__attempt *a)
{
    const attn__question *q = attn__first_wrong(exam, a, 6);

    if (!q || q->n.len_k > 16)
        q = attn__first_wrong(exam, a, 0);
    for (int64_t x = 0; !q && x < a->interview->n; x++) {
        if (a->interview->questions[x].n.len_k >= 6)
            q = &a->interview->questions[x];
    }
    return q;
}

static void draw_output(attn__exam *exam, const attn__attempt *a,
                        const attn__question *q)
{
    attn__work *w = &exam->work;
    sheet s = {.what = "output", .theirs = q->answer, .n = q->n};
    attn__model right;

    attn__model_init(&right);
    attn__predict(w, &right, &a->meaning, q);
    s.right = w->answer;
    s.columns = q->n.dim_v;
    if (q->layer.x) {
        s.n.heads_q = 1;
        s.columns = q->n_answer / (q->n.batch * q->n.len_q);
    }
    if (w->n_answer == q->n_answer)
        keep(exam->report, &s);
}

void attn__keep_drawing(attn__exam *exam, attn__attempt *a)
{
    const attn__question *q = choose(exam, a);
    attn__reading r;
    sheet s;

    if (!q || q->d_o)
        return;
    if (!exam->subject->call || !attn__read(exam, a, q, &r)) {
        draw_output(exam, a, q);
        return;
    }
    s = (sheet){.what = "weights",
                .right = r.right,
                .theirs = r.p,
                .visible = r.visible,
                .n = r.question->n,
                .columns = r.question->n.len_k};
    keep(exam->report, &s);
}

const attn_report_head *attn_report_drawing(const attn_report *report)
{
    return report->head.theirs ? &report->head : NULL;
}
