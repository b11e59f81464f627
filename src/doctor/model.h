/* SPDX-License-Identifier: Apache-2.0
 *
 * The model: attention cut into small steps, each of which can be replaced by
 * a wrong one. With every step right it is the reference (a test holds them
 * against each other); with one or two wrong it predicts what a buggy subject
 * answers.
 *
 * In a prediction NaN means "no claim" (an empty row, 0/0 in the wrong
 * formula) and infinity means "something that is not finite". */
#ifndef ATTN_DOCTOR_MODEL_H
#define ATTN_DOCTOR_MODEL_H

#include "attn_ref.h"
#include "doctor/question.h"

/* What one number W says about the right side of a window: no key, no bound,
 * or as many as to the left. */
typedef enum attn__window_form {
    WINDOW_LEFT,
    WINDOW_OPEN,
    WINDOW_BOTH
} attn__window_form;

/* Where the last query stands, for bottom right: at the last valid key, at the
 * last valid key unless len_q = len_k (a padded batch stays on its diagonal),
 * or at the last key. */
typedef enum attn__corner_end {
    END_BY_LENGTH,
    END_BY_LENGTH_UNLESS_SQUARE,
    END_BY_KEYS
} attn__corner_end;

/* What right code may choose. */
typedef struct attn__meaning {
    attn_causal corner; /* of plain causal */
    attn_causal place;  /* where windows and ALiBi without causal begin */
    attn_causal always; /* causal without being asked */
    int64_t always_window[2];
    int64_t window_extra; /* keys beyond the width of a window */
    attn__window_form window_form; /* where a window is one number */
    bool mask_hides;      /* true = hide */
    bool has_scale;
    double scale; /* where none is asked */
    double softcap;
    const double *slopes, *sinks; /* built in, NULL = none */
    bool has_table; /* the slopes are those of a table, for any heads */
    int table;
    attn__corner_end corner_end;
    bool interleaved;
} attn__meaning;

void attn__meaning_init(attn__meaning *meaning);

/* The steps, in the order in which they run. */
typedef enum attn__slot {
    SLOT_POSITION, /* where query 0 stands on the key axis */
    SLOT_PROJECT, /* x -> q, k, v packed (batch, len, heads dim) */
    SLOT_SPLIT,   /* q, k, v */
    SLOT_MAP,     /* query head -> KV head */
    SLOT_SCALE,
    SLOT_DOT, /* s = scale <q_i, k_j> */
    SLOT_CAP,
    SLOT_BIAS,
    SLOT_ALIBI,
    SLOT_PLACE,  /* where windows count from */
    SLOT_CAUSAL, /* these five clear `visible` */
    SLOT_WINDOW,
    SLOT_MASK,
    SLOT_LENGTH,
    SLOT_SEQUENCE, /* packed sequences */
    SLOT_HIDE,    /* visible -> s */
    SLOT_MASS,    /* what joins a row's sum beside its keys, such as a sink */
    SLOT_SOFTMAX, /* s -> p */
    SLOT_WEIGH,   /* p after softmax */
    SLOT_OUTPUT,  /* o = p v */
    SLOT_MERGE,   /* heads of o */
    SLOT_FINISH,  /* the answer */
    SLOT_DV,      /* backward */
    SLOT_DP,
    SLOT_DS,
    SLOT_DQ,
    SLOT_DK,
    SLOT_N
} attn__slot;

typedef struct attn__work attn__work;
typedef void attn__step(attn__work *w, double param);

typedef struct attn__model {
    attn__step *step[SLOT_N];
    double param[SLOT_N];
} attn__model;

/* Every step right. */
void attn__model_init(attn__model *model);

/* The state while a model runs. */
struct attn__work {
    const attn__question *given;
    const attn__meaning *meaning;
    const attn__model *model;
    attn__sizes n;
    double scale, softcap;
    bool cap_late;              /* CAP left it to the end of HIDE */
    bool mask_late;             /* HIDE left it to WEIGH */
    bool breaks;                /* what comes out is not finite */
    int exchanged;              /* axes that SPLIT took for each other */
    attn_causal causal;         /* what is in force here */
    int64_t window[2];
    const double *q, *k, *v;    /* given, or in the buffers below */
    const double *slopes, *sinks;
    double *own_slopes;
    double *s, *p, *ds, *dp, *spare; /* pairs */
    unsigned char *visible, *aside; /* pairs */
    double *lse, *mass; /* rows; mass: logarithms, -inf = nothing joins */
    double *o, *answer;
    double *own_q, *own_k, *own_v;    /* where a step replaces q, k, v */
    double *packed_q, *packed_k, *packed_v; /* (batch, len, heads, dim) */
    double *dq, *dk, *dv;
    int64_t *kv_head;  /* (heads_q) */
    int64_t *position; /* (batch): of query 0 on the key axis */
    int64_t *place;    /* (batch): the same, for windows */
    int64_t *shift;    /* (len_q): of a row's position within its sequence */
    int64_t n_answer;
    int64_t n_spare; /* elements of s, p, ds, dp, spare */
    int64_t n_room;  /* of q, k, v, o and what is like them */
};

/* Buffers for every question up to the given counts. */
bool attn__work_open(attn__work *w, attn__arena *arena, int64_t pairs,
                     int64_t elements);

/* Run the model; the prediction is w->answer (w->n_answer), and w->p, w->lse.
 * Valid until the next run. */
void attn__predict(attn__work *w, const attn__model *model,
                   const attn__meaning *meaning, const attn__question *given);

/* A row of pairs. */
typedef struct attn__pairs {
    int64_t b, h, i, index; /* index = (b heads_q + h) len_q + i */
    int64_t position;       /* p = i + offset */
    double *s, *p;
    unsigned char *visible;
} attn__pairs;

attn__pairs attn__row(const attn__work *w, int64_t index);
#define ATTN__FOR_ROWS(w, row)                                                \
    for (attn__pairs row = attn__row((w), 0); row.index < attn__n_rows(w);    \
         row = attn__row((w), row.index + 1))
int64_t attn__n_rows(const attn__work *w);
/* Row j of k or v of the KV head that serves the row. */
const double *attn__key(const attn__work *w, const attn__pairs *row, int64_t j);
const double *attn__value(const attn__work *w, const attn__pairs *row,
                          int64_t j);
const double *attn__query(const attn__work *w, const attn__pairs *row);
double attn__dot(const double *x, const double *y, int64_t n);
/* (batch, heads, len, dim) to (batch, len, heads, dim). */
void attn__pack(const double *x, double *packed, int64_t batch, int64_t heads,
                int64_t len, int64_t dim);
/* And back. */
void attn__unpack(const double *packed, double *x, int64_t batch,
                  int64_t heads, int64_t len, int64_t dim);
/* Element of a mask or bias for a pair; `batch`, `head` override. */
int64_t attn__at(const int64_t shape[4], int64_t b, int64_t h, int64_t i,
                 int64_t j);
void attn__run(attn__work *w, attn__slot slot);
/* s = softcap tanh(s / softcap) at every pair, if there is a cap. */
void attn__cap(attn__work *w);
/* To w->aside: the pairs that the right `step` alone leaves visible. */
void attn__alone(attn__work *w, attn__step *step);
/* Slope of head h in one of the known ALiBi tables; see wrong_scores.c. */
double attn__alibi_slope(int table, int64_t h, int64_t heads);
/* Change the roles of two axes: 1 = batch and length, 2 = heads and length. */
void attn__exchange(attn__work *w, int axes);

/* The right steps, for wrong ones that build on them. */
attn__step attn__right_project, attn__right_split, attn__right_map,
    attn__right_scale, attn__right_dot, attn__right_cap, attn__right_bias,
    attn__right_alibi, attn__right_place, attn__right_causal,
    attn__right_window, attn__right_mask, attn__right_length,
    attn__right_sequence, attn__right_hide, attn__right_softmax,
    attn__right_mass, attn__right_weigh,
    attn__right_output, attn__right_finish, attn__right_dv, attn__right_dp,
    attn__right_ds, attn__right_dq, attn__right_dk, attn__nothing;

#endif
