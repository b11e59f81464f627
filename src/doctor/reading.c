/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions whose answer is P, and the right model's view of them. */
#include "doctor/reading.h"

#include <math.h>
#include <string.h>

#include "doctor/stress.h"

attn__question *attn__compose_reading(attn__attempt *a, attn__sizes n,
                                      uint32_t asked, bool flat)
{
    attn__interview *in = a->interview;
    attn__question *q;
    double *zeros;

    if (in->layer || in->backward)
        return NULL;
    n.dim_v = n.len_k;
    if (!(in->sizes & ASK_DIMS))
        n.dim_qk = n.len_k;
    q = attn__aside(a, n, asked);
    if (!q)
        return NULL;
    q->v = attn__identity(in->arena, &n);
    zeros = attn__arena_doubles(in->arena, attn__count_q(&n) + 1);
    if (flat)
        q->q = zeros;
    return q->v && zeros ? q : NULL;
}

/* What `like` asks, and its scores where dimensions allow. */
static void resemble(attn__question *q, const attn__question *like)
{
    attn__question copy = *like;

    copy.n = q->n;
    copy.asked = (like->asked & (ASK_GROUPS - 1)) | attn__sizes_asked(&q->n);
    copy.v = q->v;
    if (q->n.dim_qk != like->n.dim_qk) {
        copy.q = q->q;
        copy.k = q->k;
    }
    *q = copy;
}

bool attn__read(attn__exam *exam, attn__attempt *a, const attn__question *like,
                attn__reading *r)
{
    attn__question *q = attn__compose_reading(a, like->n, 0, false);
    attn__work *w = &exam->work;
    attn__arena *arena = a->interview->arena;
    attn__model model;
    int64_t pairs;

    if (!q)
        return false;
    resemble(q, like);
    if (!attn__put_aside(a, q))
        return false;
    pairs = attn__count_pairs(&q->n);
    attn__model_init(&model);
    attn__predict(w, &model, &a->meaning, q);
    *r = (attn__reading){.question = q, .work = w, .p = q->answer};
    r->right = attn__arena_copy(arena, w->p, pairs, sizeof *w->p);
    r->visible = attn__arena_copy(arena, w->visible, pairs, 1);
    r->mass = attn__arena_copy(arena, w->mass, attn__count_rows(&q->n),
                     sizeof *w->mass);
    model.step[SLOT_HIDE] = attn__nothing;
    attn__predict(w, &model, &a->meaning, q);
    r->s = attn__arena_copy(arena, w->s, pairs, sizeof *w->s);
    r->close = a->tier == TIER_F64 ? 1e-7 : 1e-3;
    return !arena->failed;
}
