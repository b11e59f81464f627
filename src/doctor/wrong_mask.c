/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrong steps of visibility: corner, diagonal, window, mask, lengths, and how
 * a hidden pair is hidden. */
#include <math.h>
#include <string.h>

#include "doctor/wrong.h"

/* ---------------------------------------------------------------- causal */

/* visible &= lowest <= j - p <= highest, p being the row's position, its
 * number, or where windows count from. */
typedef enum origin { POSITION, ROW, PLACE } origin;

static void band(attn__work *w, origin from, int64_t lowest, int64_t highest)
{
    ATTN__FOR_ROWS(w, row) {
        const int64_t place = row.i + w->place[row.b] + w->shift[row.i];
        const int64_t p = from == ROW     ? row.i
                          : from == PLACE ? place
                                          : row.position;

        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= j - p >= lowest && j - p <= highest;
    }
}

/* Top left where bottom right was meant, or the reverse. */
void attn__causal_other_corner(attn__work *w, double param)
{
    const int64_t off = w->n.len_k - w->n.len_q;

    (void)param;
    if (w->causal == ATTN_CAUSAL_TOP_LEFT)
        band(w, ROW, -w->n.len_k, off);
    else if (w->causal == ATTN_CAUSAL_BOTTOM_RIGHT)
        band(w, ROW, -w->n.len_k, 0);
}

/* j <= p + param. */
void attn__causal_shifted(attn__work *w, double param)
{
    if (w->causal != ATTN_CAUSAL_NONE)
        band(w, POSITION, -w->n.len_k - w->n.len_q, (int64_t)param);
}

/* j >= p + param: the other triangle. */
void attn__causal_upper(attn__work *w, double param)
{
    if (w->causal != ATTN_CAUSAL_NONE)
        band(w, POSITION, (int64_t)param, w->n.len_k + w->n.len_q);
}

/* One bound, that of the last row, for every param rows. */
void attn__causal_block(attn__work *w, double param)
{
    const int64_t rows = (int64_t)param;

    if (w->causal == ATTN_CAUSAL_NONE)
        return;
    ATTN__FOR_ROWS(w, row) {
        const int64_t last = row.i / rows * rows + rows - 1;

        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= j <= last + row.position - row.i;
    }
}

/* -------------------------------------------------------------- position */

/* The offset that is asked for is not used: param 0, positions count from 0;
 * 1, from the end of the keys. */
void attn__position_ignored(attn__work *w, double param)
{
    const int64_t end = param > 0 ? w->n.len_k - w->n.len_q : 0;

    for (int64_t b = 0; w->given->offset && b < w->n.batch; b++)
        w->position[b] = end;
}

void attn__position_shifted(attn__work *w, double param)
{
    for (int64_t b = 0; w->given->offset && b < w->n.batch; b++)
        w->position[b] += (int64_t)param;
}

/* ---------------------------------------------------------------- window */

static void window(attn__work *w, int64_t left, int64_t right)
{
    const int64_t all = w->n.len_k + w->n.len_q;

    band(w, PLACE, left < 0 ? -all : -left, right < 0 ? all : right);
}

void attn__right_window(attn__work *w, double param)
{
    (void)param;
    window(w, w->window[0], w->window[1]);
}

/* Windows count from the row's number, not from its position. */
void attn__place_local(attn__work *w, double param)
{
    attn__right_place(w, param);
    for (int64_t b = 0; b < w->n.batch && !w->given->cu_q; b++)
        w->place[b] = 0;
}

/* A bound that gets shorter than 0 excludes the diagonal. */
static void longer(attn__work *w, int64_t left, int64_t right)
{
    const int64_t all = w->n.len_k + w->n.len_q;

    band(w, PLACE, w->window[0] < 0 ? -all : -w->window[0] - left,
         w->window[1] < 0 ? all : w->window[1] + right);
}

void attn__window_left(attn__work *w, double param)
{
    longer(w, (int64_t)param, 0);
}

void attn__window_right(attn__work *w, double param)
{
    longer(w, 0, (int64_t)param);
}

void attn__window_both(attn__work *w, double param)
{
    longer(w, (int64_t)param, (int64_t)param);
}

/* param 0: the left bound dropped, 1: the right one. */
void attn__window_one_sided(attn__work *w, double param)
{
    window(w, param > 0 ? w->window[0] : -1, param > 0 ? -1 : w->window[1]);
}

/* Half of the width to each side. */
void attn__window_centred(attn__work *w, double param)
{
    const int64_t half = w->window[0] / 2;

    (void)param;
    if (w->window[0] >= 0)
        window(w, half, half);
}

/* ------------------------------------------------------------------ mask */

static bool keeps(const attn__work *w, int64_t b, int64_t h, int64_t i,
                  int64_t j)
{
    const attn__question *a = w->given;

    return a->mask[attn__at(a->mask_shape, b, h, i, j)] !=
           w->meaning->mask_hides;
}

void attn__mask_inverted(attn__work *w, double param)
{
    (void)param;
    if (!w->given->mask)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= !keeps(w, row.b, row.h, row.i, j);
    }
}

/* Over queries instead of keys. */
void attn__mask_transposed(attn__work *w, double param)
{
    if (!w->given->mask || w->n.len_q != w->n.len_k) {
        attn__right_mask(w, param);
        return;
    }
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= keeps(w, row.b, row.h, j, row.i);
    }
}

/* Tiled for an axis (batch heads) in the wrong order; with param 1, that of
 * head 0. */
void attn__mask_tiled(attn__work *w, double param)
{
    if (!w->given->mask)
        return;
    ATTN__FOR_ROWS(w, row) {
        const int64_t b = (row.b * w->n.heads_q + row.h) % w->n.batch;

        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= keeps(w, b, param > 0 ? 0 : row.h, row.i, j);
    }
}

/* (batch, ...) broadcast onto heads. */
void attn__mask_on_heads(attn__work *w, double param)
{
    const attn__question *a = w->given;

    if (!a->mask || a->mask_shape[1] != 1 || w->n.batch != w->n.heads_q) {
        attn__right_mask(w, param);
        return;
    }
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= keeps(w, row.h, 0, row.i, j);
    }
}

/* That of batch 0 (param 0) or of head 0 (param 1) for all. */
void attn__mask_first(attn__work *w, double param)
{
    const bool head = param > 0;

    if (!w->given->mask)
        return;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &=
                keeps(w, head ? row.b : 0, head ? 0 : row.h, row.i, j);
    }
}

/* Where a mask is given, only it hides. */
void attn__mask_alone(attn__work *w, double param)
{
    if (w->given->mask)
        memset(w->visible, 1, (size_t)attn__count_pairs(&w->n));
    attn__right_mask(w, param);
}

/* Mask OR causal where both were given. */
void attn__mask_or(attn__work *w, double param)
{
    (void)param;
    if (!w->given->mask)
        return;
    if (w->causal == ATTN_CAUSAL_NONE) {
        attn__right_mask(w, 0);
        return;
    }
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] |= keeps(w, row.b, row.h, row.i, j);
    }
}

/* --------------------------------------------------------------- lengths */

static void lengths(attn__work *w, bool first, bool of_rows, int64_t more)
{
    if (!w->given->lengths)
        return;
    ATTN__FOR_ROWS(w, row) {
        const int64_t n = w->given->lengths[first ? 0 : row.b] + more;

        for (int64_t j = 0; j < w->n.len_k; j++)
            row.visible[j] &= (of_rows ? row.i : j) < n;
    }
}

void attn__length_shifted(attn__work *w, double param)
{
    lengths(w, false, false, (int64_t)param);
}

void attn__length_first(attn__work *w, double param)
{
    (void)param;
    lengths(w, true, false, 0);
}

/* The longest of the batch for all. */
void attn__length_longest(attn__work *w, double param)
{
    int64_t most = 0;

    (void)param;
    for (int64_t b = 0; w->given->lengths && b < w->n.batch; b++)
        most = w->given->lengths[b] > most ? w->given->lengths[b] : most;
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = most; w->given->lengths && j < w->n.len_k; j++)
            row.visible[j] = 0;
    }
}

void attn__length_rows(attn__work *w, double param)
{
    (void)param;
    lengths(w, false, true, 0);
}

/* ------------------------------------------------------------- sequences */

/* Boundaries other than the given ones: 0, only the first is used; 1, those
 * of the keys for the queries too; 2, those of the queries for the keys. */
void attn__sequence_boundaries(attn__work *w, double param)
{
    const attn__question *a = w->given;
    attn__question other = *a;

    if (!a->cu_q)
        return;
    other.n_sequences = param == 0 && a->n_sequences > 2 ? 2 : a->n_sequences;
    other.cu_q = param == 1 ? a->cu_k : a->cu_q;
    other.cu_k = param == 2 ? a->cu_q : a->cu_k;
    w->given = &other;
    attn__right_sequence(w, 0);
    w->given = a;
}

/* Positions count through all sequences: causal by the packed index. */
void attn__place_packed(attn__work *w, double param)
{
    const int64_t more = param > 0 ? w->n.len_k - w->n.len_q : 0;

    if (!w->given->cu_q)
        return;
    for (int64_t i = 0; i < w->n.len_q; i++)
        w->shift[i] = more;
    attn__right_place(w, 0);
}

/* ------------------------------------------------- hiding, of everything */

void attn__hide_after_softmax(attn__work *w, double param)
{
    (void)param;
    w->mask_late = true;
}

static void fill(attn__work *w, const unsigned char *visible, double value)
{
    const int64_t pairs = attn__count_pairs(&w->n);

    for (int64_t x = 0; x < pairs; x++) {
        if (!visible[x])
            w->s[x] = value;
    }
}

static void add(attn__work *w, const unsigned char *visible, double value)
{
    const int64_t pairs = attn__count_pairs(&w->n);

    for (int64_t x = 0; x < pairs; x++)
        w->s[x] += visible[x] ? value : 0;
}

static void finish_hiding(attn__work *w)
{
    if (w->cap_late)
        attn__cap(w);
}

/* s = param where hidden. */
void attn__hide_fill(attn__work *w, double param)
{
    fill(w, w->visible, param);
    finish_hiding(w);
}

/* s + param where visible: a 0/1 mask, added. */
void attn__hide_added(attn__work *w, double param)
{
    add(w, w->visible, param);
    finish_hiding(w);
}

/* --------------------------------------------- hiding, of one kind only */

void attn__mask_fill(attn__work *w, double param)
{
    attn__alone(w, attn__right_mask);
    fill(w, w->aside, param);
}

void attn__mask_added(attn__work *w, double param)
{
    if (!w->given->mask)
        return;
    attn__alone(w, attn__right_mask);
    add(w, w->aside, param);
}

void attn__causal_fill(attn__work *w, double param)
{
    attn__alone(w, attn__right_causal);
    fill(w, w->aside, param);
}

void attn__causal_added(attn__work *w, double param)
{
    if (w->causal == ATTN_CAUSAL_NONE)
        return;
    attn__alone(w, attn__right_causal);
    add(w, w->aside, param);
}

void attn__length_fill(attn__work *w, double param)
{
    attn__alone(w, attn__right_length);
    fill(w, w->aside, param);
}

/* (1 - mask) * -inf is NaN wherever the mask is 1. */
void attn__mask_breaks(attn__work *w, double param)
{
    attn__right_mask(w, param);
    w->breaks |= w->given->mask != NULL;
}

void attn__causal_breaks(attn__work *w, double param)
{
    attn__right_causal(w, param);
    w->breaks |= w->causal != ATTN_CAUSAL_NONE;
}

void attn__length_breaks(attn__work *w, double param)
{
    attn__right_length(w, param);
    w->breaks |= w->given->lengths != NULL;
}

/* ------------------------------------------------------------------ tail */

/* The last tile of param keys, incomplete, is left out. */
void attn__tail_dropped(attn__work *w, double param)
{
    const int64_t tile = (int64_t)param, whole = w->n.len_k / tile * tile;

    attn__right_length(w, 0);
    ATTN__FOR_ROWS(w, row) {
        for (int64_t j = whole; j < w->n.len_k; j++)
            row.visible[j] = 0;
    }
}
