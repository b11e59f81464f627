/* SPDX-License-Identifier: Apache-2.0
 *
 * The interview: a list of questions, made and put one after another. */
#ifndef ATTN_DOCTOR_INTERVIEW_H
#define ATTN_DOCTOR_INTERVIEW_H

#include "doctor/binding.h"
#include "doctor/model.h"
#include "doctor/random.h"

enum { ATTN__MAX_QUESTIONS = 320 };

typedef struct attn__interview {
    attn__arena *arena;
    attn__binding *binding;
    attn__random random;
    attn__question questions[ATTN__MAX_QUESTIONS];
    int64_t n;
    /* what the subject might do beyond equal sizes, and what it does: bits of
     * ASK_GROUPS, ASK_CROSS, ASK_DIMS, ASK_MODEL */
    uint32_t possible, sizes;
    int64_t heads, kv_heads; /* fixed from outside; 0 = free */
    bool backward;           /* questions carry d_o, */
    attn__work *work;        /* and o and lse under this meaning */
    attn__meaning meaning;
    uint32_t always;         /* asked by every question: it must be given */
    bool strict;             /* something is expected of it */
    bool equal;              /* it runs with equal sizes only */
    bool varlen;             /* sequences are packed */
    bool decode;             /* one query against a cache */
    bool layer;              /* they have x and matrices instead of q, k, v */
    double budget;           /* seconds for calls */
    double wasted;           /* those of earlier interviews that led nowhere */
    /* what some call refused, for the report: bits of `asked` and the reason */
    bool wrong_shape; /* some answer had other shapes */
    int ends; /* calls that crashed or hung: the refusal is about the first */
    bool lost; /* no further call can be answered */
    uint32_t refused;
    const char *refusal;
} attn__interview;

/* A new question with random inputs and everything `asked`; NULL if the list
 * is full or memory is short. Not put yet: change what should differ. */
attn__question *attn__compose(attn__interview *in, const char *title,
                              attn__sizes sizes, uint32_t asked);
/* v with which o is the weights; dim_v is len_k. */
double *attn__identity(attn__arena *arena, const attn__sizes *sizes);
/* The same, with a mask of this shape. */
attn__question *attn__compose_mask(attn__interview *in, const char *title,
                                   attn__sizes sizes, uint32_t asked,
                                   const int64_t shape[4]);
/* The same, with a bias of this shape. */
attn__question *attn__compose_bias(attn__interview *in, const char *title,
                                   attn__sizes sizes, const int64_t shape[4]);
/* A copy, not on the list, whose k, v and mask are the same for every batch
 * element and head, so that a view of stride 0 can hold them. */
attn__question *attn__same_for_all(attn__interview *in,
                                   const attn__question *question);
/* Put it. False if it was not answered; then it is taken off the list. */
bool attn__put(attn__interview *in, attn__question *question);

/* Sizes by purpose, narrowed to what the subject's layout and abilities
 * allow. */
attn__sizes attn__sizes_general(const attn__interview *in);
attn__sizes attn__sizes_square(const attn__interview *in);
attn__sizes attn__sizes_wide(const attn__interview *in);
attn__sizes attn__sizes_headed(const attn__interview *in);
attn__sizes attn__sizes_long(const attn__interview *in, int64_t len);
attn__sizes attn__sizes_equal(const attn__interview *in);
attn__sizes attn__sizes_single(const attn__interview *in, int64_t len);

/* Find out the abilities: true if there is a way to be answered at all. */
bool attn__first_contact(attn__interview *in);
/* Everything about attention, forward or backward. */
void attn__ask_all(attn__interview *in);
/* The simplest first: few options, then small sizes. */
void attn__sort_questions(attn__interview *in);

#endif
