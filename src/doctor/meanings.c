/* SPDX-License-Identifier: Apache-2.0
 *
 * The meanings that right code may choose among, less those that the
 * expectation rules out. */
#include <string.h>

#include "doctor/exam.h"

typedef struct list {
    attn__meaning *meanings;
    int n, most;
} list;

/* More meanings: the first n of the list with `change` applied. */
static void grow(list *l, int n, void (*change)(attn__meaning *, double),
                 double value)
{
    for (int x = 0; x < n && l->n < l->most; x++) {
        l->meanings[l->n] = l->meanings[x];
        change(&l->meanings[l->n++], value);
    }
}

static void branch(list *l, void (*change)(attn__meaning *, double),
                   double value)
{
    grow(l, l->n, change, value);
}

static void set_corner(attn__meaning *m, double corner)
{
    m->corner = (attn_causal)corner;
}

static void set_place(attn__meaning *m, double corner)
{
    m->place = (attn_causal)corner;
}

static void set_always(attn__meaning *m, double causal)
{
    m->always = (attn_causal)causal;
    m->corner = m->always;
}

static void set_corner_end(attn__meaning *m, double end)
{
    m->corner_end = (attn__corner_end)end;
}

static void set_mask_hides(attn__meaning *m, double hides)
{
    m->mask_hides = hides > 0;
}

static void set_window_extra(attn__meaning *m, double extra)
{
    m->window_extra = (int64_t)extra;
}

static void set_window_right(attn__meaning *m, double form)
{
    m->window_form = (attn__window_form)form;
}

/* The causal corner, or causality that is built in. */
static void branch_causal(list *l, const attn__exam *exam,
                          const attn__binding *b)
{
    const attn__expect *e = &exam->expect;
    const bool takes = b->takes & ASK_CAUSAL;
    const bool open = !e->has_causal || e->plain_causal;

    if (!open && (takes || e->causal == ATTN_CAUSAL_NONE)) {
        if (e->causal != ATTN_CAUSAL_NONE) {
            set_corner(&l->meanings[0], e->causal);
            grow(l, 1, set_always, e->causal);
        }
        return;
    }
    if (!open) {
        set_always(&l->meanings[0], e->causal);
        return;
    }
    if (!takes && e->plain_causal) {
        set_always(&l->meanings[0], ATTN_CAUSAL_BOTTOM_RIGHT);
        branch(l, set_always, ATTN_CAUSAL_TOP_LEFT);
        return;
    }
    grow(l, 1, set_corner, ATTN_CAUSAL_TOP_LEFT);
    if (e->identify || e->plain_causal) {
        grow(l, 1, set_always, ATTN_CAUSAL_TOP_LEFT);
        grow(l, 1, set_always, ATTN_CAUSAL_BOTTOM_RIGHT);
    }
}

static void branch_window(list *l, const attn__exam *exam,
                          const attn__binding *b)
{
    const attn__expect *e = &exam->expect;
    int n;

    if (!(b->takes & ASK_WINDOW)) {
        for (int x = 0; e->has_window && x < l->n; x++)
            memcpy(l->meanings[x].always_window, e->window,
                   sizeof e->window);
        return;
    }
    if (!b->window_is_number)
        return;
    n = l->n;
    grow(l, n, set_window_right, WINDOW_OPEN);
    grow(l, n, set_window_right, WINDOW_BOTH);
    if (e->identify)
        branch(l, set_window_extra, 1);
}

/* Constants that are built in. */
static void set_constants(attn__meaning *m, const attn__expect *e,
                          const attn__binding *b)
{
    if (e->has_scale && !(b->takes & ASK_SCALE)) {
        m->has_scale = true;
        m->scale = e->scale;
    }
    if (!(b->takes & ASK_SOFTCAP))
        m->softcap = e->softcap;
    if (!(b->takes & ASK_ALIBI))
        m->slopes = e->slopes;
    if (!(b->takes & ASK_SINKS))
        m->sinks = e->sinks;
}

static void set_always_left(attn__meaning *m, double left)
{
    m->always_window[0] = (int64_t)left;
}

static void set_always_right(attn__meaning *m, double right)
{
    m->always_window[1] = (int64_t)right;
}

static void set_table(attn__meaning *m, double table)
{
    m->has_table = true;
    m->table = (int)table;
}

/* ALiBi that nobody asked for: with the slopes of the paper's text, or of its
 * code, which differ where the heads are no power of two. */
static void branch_slopes(list *l, const attn__exam *exam,
                          const attn__attempt *a)
{
    const int n = l->n;

    if (!a->has_slopes || !exam->expect.identify ||
        a->binding.takes & ASK_ALIBI)
        return;
    grow(l, n, set_table, 2);
    grow(l, n, set_table, 0);
    grow(l, l->n, set_place, ATTN_CAUSAL_TOP_LEFT);
}

/* A window that nobody asked for: sane if a row sees itself and something on
 * its left. */
static void branch_band(list *l, const attn__exam *exam,
                        const attn__attempt *a)
{
    const int64_t left = a->band[0], right = a->band[1];
    const int n = l->n;

    if (!a->has_band || !exam->expect.identify ||
        a->binding.takes & ASK_WINDOW || left < 1 || right < 0)
        return;
    branch(l, set_always_left, (double)left);
    for (int x = n; x < l->n; x++)
        set_always_right(&l->meanings[x], (double)right);
    grow(l, l->n, set_place, ATTN_CAUSAL_TOP_LEFT);
}

int attn__list_meanings(const attn__exam *exam, const attn__attempt *a,
                        attn__meaning *meanings, int most)
{
    const attn__binding *b = &a->binding;
    const attn__expect *e = &exam->expect;
    list l = {.meanings = meanings, .n = 1, .most = most};

    attn__meaning_init(&meanings[0]);
    set_constants(&meanings[0], e, b);
    if (exam->kind != ATTN_KIND_DECODE)
        branch_causal(&l, exam, b);
    if (b->takes & ASK_MASK && !b->mask_adds) {
        for (int x = 0; x < l.n; x++)
            set_mask_hides(&meanings[x], e->mask_hides);
        if (e->identify && !e->has_mask_true)
            branch(&l, set_mask_hides, 1);
    }
    branch_window(&l, exam, b);
    branch_band(&l, exam, a);
    branch_slopes(&l, exam, a);
    if (e->identify && b->takes & (ASK_WINDOW | ASK_ALIBI))
        branch(&l, set_place, ATTN_CAUSAL_TOP_LEFT);
    if (b->takes & ASK_LENGTHS && (b->takes & ASK_CAUSAL || e->has_causal)) {
        const int n = l.n;

        grow(&l, n, set_corner_end, END_BY_LENGTH_UNLESS_SQUARE);
        grow(&l, n, set_corner_end, END_BY_KEYS);
    }
    return l.n;
}
