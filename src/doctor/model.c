/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a model: buffers, rows, and the order of the steps. */
#include "doctor/model.h"

#include <math.h>
#include <string.h>

#include "core/checked.h"

void attn__meaning_init(attn__meaning *meaning)
{
    *meaning = (attn__meaning){
        .corner = ATTN_CAUSAL_BOTTOM_RIGHT,
        .place = ATTN_CAUSAL_BOTTOM_RIGHT,
        .always_window = {-1, -1},
        .corner_end = END_BY_LENGTH,
    };
}

void attn__nothing(attn__work *w, double param)
{
    (void)w;
    (void)param;
}

void attn__model_init(attn__model *model)
{
    *model = (attn__model){{
        [SLOT_POSITION] = attn__nothing,
        [SLOT_PROJECT] = attn__right_project,
        [SLOT_SPLIT] = attn__right_split,
        [SLOT_MAP] = attn__right_map,
        [SLOT_SCALE] = attn__right_scale,
        [SLOT_DOT] = attn__right_dot,
        [SLOT_CAP] = attn__right_cap,
        [SLOT_BIAS] = attn__right_bias,
        [SLOT_ALIBI] = attn__right_alibi,
        [SLOT_PLACE] = attn__right_place,
        [SLOT_CAUSAL] = attn__right_causal,
        [SLOT_WINDOW] = attn__right_window,
        [SLOT_MASK] = attn__right_mask,
        [SLOT_LENGTH] = attn__right_length,
        [SLOT_SEQUENCE] = attn__right_sequence,
        [SLOT_HIDE] = attn__right_hide,
        [SLOT_MASS] = attn__right_mass,
        [SLOT_SOFTMAX] = attn__right_softmax,
        [SLOT_WEIGH] = attn__right_weigh,
        [SLOT_OUTPUT] = attn__right_output,
        [SLOT_MERGE] = attn__nothing,
        [SLOT_FINISH] = attn__right_finish,
        [SLOT_DV] = attn__right_dv,
        [SLOT_DP] = attn__right_dp,
        [SLOT_DS] = attn__right_ds,
        [SLOT_DQ] = attn__right_dq,
        [SLOT_DK] = attn__right_dk,
    }, {0}};
}

/* --------------------------------------------------------------- buffers */

bool attn__work_open(attn__work *w, attn__arena *arena, int64_t pairs,
                     int64_t elements)
{
    double **const of_pairs[] = {&w->s, &w->p, &w->ds, &w->dp, &w->spare};
    double **const of_elements[] = {
        &w->o,        &w->own_q,    &w->own_k,    &w->own_v, &w->dq,
        &w->packed_q, &w->packed_k, &w->packed_v, &w->dk,    &w->dv,
        &w->lse,      &w->mass,     &w->own_slopes,
    };

    *w = (attn__work){.n_spare = pairs, .n_room = elements};
    for (size_t x = 0; x < sizeof of_pairs / sizeof of_pairs[0]; x++)
        *of_pairs[x] = attn__arena_doubles(arena, pairs);
    for (size_t x = 0; x < sizeof of_elements / sizeof of_elements[0]; x++)
        *of_elements[x] = attn__arena_doubles(arena, elements);
    w->visible = attn__arena_take(arena, pairs, 1);
    w->aside = attn__arena_take(arena, pairs, 1);
    w->answer = attn__arena_doubles(arena, 3 * elements);
    w->kv_head = attn__arena_take(arena, elements, sizeof(int64_t));
    w->position = attn__arena_take(arena, elements, sizeof(int64_t));
    w->place = attn__arena_take(arena, elements, sizeof(int64_t));
    w->shift = attn__arena_take(arena, elements, sizeof(int64_t));
    return !arena->failed;
}

/* ------------------------------------------------------------------ rows */

int64_t attn__n_rows(const attn__work *w)
{
    return attn__count_rows(&w->n);
}

attn__pairs attn__row(const attn__work *w, int64_t index)
{
    const int64_t i = index % w->n.len_q;
    const int64_t b = index / w->n.len_q / w->n.heads_q;
    const int64_t first = index * w->n.len_k;

    return (attn__pairs){
        .b = b,
        .h = index / w->n.len_q % w->n.heads_q,
        .i = i,
        .index = index,
        .position = i + w->position[b] + w->shift[i],
        .s = w->s + first,
        .p = w->p + first,
        .visible = w->visible + first,
    };
}

static int64_t key_row(const attn__work *w, const attn__pairs *row, int64_t j)
{
    return (row->b * w->n.heads_kv + w->kv_head[row->h]) * w->n.len_k + j;
}

const double *attn__key(const attn__work *w, const attn__pairs *row, int64_t j)
{
    return w->k + key_row(w, row, j) * w->n.dim_qk;
}

const double *attn__value(const attn__work *w, const attn__pairs *row,
                          int64_t j)
{
    return w->v + key_row(w, row, j) * w->n.dim_v;
}

const double *attn__query(const attn__work *w, const attn__pairs *row)
{
    return w->q + row->index * w->n.dim_qk;
}

double attn__dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;

    for (int64_t c = 0; c < n; c++)
        sum += x[c] * y[c];
    return sum;
}

int64_t attn__at(const int64_t shape[4], int64_t b, int64_t h, int64_t i,
                 int64_t j)
{
    const int64_t index[4] = {b, h, i, j};
    int64_t at = 0;

    for (int axis = 0; axis < 4; axis++)
        at = at * shape[axis] + (shape[axis] == 1 ? 0 : index[axis]);
    return at;
}

void attn__pack(const double *x, double *packed, int64_t batch, int64_t heads,
                int64_t len, int64_t dim)
{
    for (int64_t b = 0; b < batch; b++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < len; i++)
                for (int64_t c = 0; c < dim; c++)
                    packed[((b * len + i) * heads + h) * dim + c] = *x++;
}

void attn__unpack(const double *packed, double *x, int64_t batch,
                  int64_t heads, int64_t len, int64_t dim)
{
    attn__pack(packed, x, batch, len, heads, dim);
}

/* ------------------------------------------------------------------- run */

void attn__run(attn__work *w, attn__slot slot)
{
    w->model->step[slot](w, w->model->param[slot]);
}

void attn__alone(attn__work *w, attn__step *step)
{
    const size_t pairs = (size_t)attn__count_pairs(&w->n);
    unsigned char *visible = w->visible;

    memset(w->aside, 1, pairs);
    w->visible = w->aside;
    step(w, 0);
    w->visible = visible;
}

/* Where query 0 stands on the key axis, by the corner that counts here. */
static int64_t position_of(const attn__work *w, int64_t b)
{
    const attn__question *a = w->given;
    const attn_causal corner =
        w->causal == ATTN_CAUSAL_NONE ? w->meaning->place : w->causal;
    int64_t end = w->n.len_k;

    if (a->cu_q)
        return 0;
    if (a->offset)
        return a->offset[b];
    if (corner == ATTN_CAUSAL_TOP_LEFT)
        return 0;
    if (a->lengths && w->meaning->corner_end != END_BY_KEYS &&
        !(w->n.len_q == w->n.len_k &&
          (w->causal == ATTN_CAUSAL_NONE ||
           w->meaning->corner_end == END_BY_LENGTH_UNLESS_SQUARE)))
        end = a->lengths[b];
    return end - w->n.len_q;
}

/* Packed rows: where row i stands on the key axis, less i. */
static void place_sequences(attn__work *w)
{
    const attn__question *a = w->given;
    const attn_causal corner =
        w->causal == ATTN_CAUSAL_NONE ? w->meaning->place : w->causal;

    for (int64_t i = 0; i < w->n.len_q; i++)
        w->shift[i] = 0;
    for (int64_t s = 0; a->cu_q && s < a->n_sequences; s++) {
        int64_t more = a->cu_k[s + 1] - a->cu_k[s] -
                       (a->cu_q[s + 1] - a->cu_q[s]);

        if (a->offset)
            more = a->offset[s];
        else if (corner == ATTN_CAUSAL_TOP_LEFT)
            more = 0;
        for (int64_t i = a->cu_q[s]; i < a->cu_q[s + 1]; i++)
            w->shift[i] = a->cu_k[s] - a->cu_q[s] + more;
    }
}

/* Slopes that are built in, of a table for any number of heads. */
static const double *built_in_slopes(attn__work *w)
{
    if (!w->meaning->has_table)
        return w->meaning->slopes;
    for (int64_t h = 0; h < w->n.heads_q; h++)
        w->own_slopes[h] =
            attn__alibi_slope(w->meaning->table, h, w->n.heads_q);
    return w->own_slopes;
}

static void begin(attn__work *w)
{
    const attn__question *a = w->given;
    const attn__meaning *m = w->meaning;
    const int64_t pairs = attn__count_pairs(&a->n);

    w->n = a->n;
    w->q = a->q;
    w->k = a->k;
    w->v = a->v;
    w->cap_late = w->mask_late = w->breaks = false;
    w->exchanged = 0;
    w->causal = a->asked & ASK_CAUSAL ? m->corner : m->always;
    for (int side = 0; side < 2; side++)
        w->window[side] = a->asked & ASK_WINDOW ? a->window[side]
                                                : m->always_window[side];
    if (a->asked & ASK_WINDOW && w->window[0] >= 0)
        w->window[0] += m->window_extra;
    if (a->asked & ASK_WINDOW && m->window_form != WINDOW_LEFT)
        w->window[1] = m->window_form == WINDOW_OPEN ? -1 : w->window[0];
    w->softcap = a->asked & ASK_SOFTCAP ? a->softcap : m->softcap;
    w->slopes = a->slopes ? a->slopes : built_in_slopes(w);
    w->sinks = a->sinks ? a->sinks : m->sinks;
    for (int64_t b = 0; b < w->n.batch; b++)
        w->position[b] = position_of(w, b);
    place_sequences(w);
    for (int64_t x = 0; x < pairs; x++)
        w->visible[x] = 1;
}

void attn__predict(attn__work *w, const attn__model *model,
                   const attn__meaning *meaning, const attn__question *given)
{
    const attn__slot last = given->d_o ? SLOT_DK : SLOT_FINISH;

    w->given = given;
    w->meaning = meaning;
    w->model = model;
    begin(w);
    for (attn__slot slot = SLOT_POSITION; slot <= last; slot++)
        attn__run(w, slot);
    for (int64_t x = 0; w->breaks && x < w->n_answer; x++)
        w->answer[x] = INFINITY;
}
