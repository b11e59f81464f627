/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the weights themselves: with values that are the identity, o is P.
 * And what their pattern says where no hypothesis fits. */
#ifndef ATTN_DOCTOR_READING_H
#define ATTN_DOCTOR_READING_H

#include "doctor/exam.h"

/* P as it came back, beside what the right model makes of the question. */
typedef struct attn__reading {
    const attn__question *question;
    const attn__work *work; /* rows, queries and keys of the question */
    const double *p;        /* pairs */
    const double *right;    /* pairs: the right weights */
    const double *s;        /* pairs: scores, also where hidden */
    const unsigned char *visible;
    const double *mass;     /* rows: logarithm of what joins the sum */
    double close;           /* how far logarithms of weights may be apart */
} attn__reading;

/* A question with these sizes, as far as the identity allows, and options; or
 * NULL. Scores are 0 with `flat`. */
attn__question *attn__compose_reading(attn__attempt *attempt, attn__sizes sizes,
                                      uint32_t asked, bool flat);
/* Put it as `like` has it, values apart, and compare. False if it is
 * refused. */
bool attn__read(attn__exam *exam, attn__attempt *attempt,
                const attn__question *like, attn__reading *reading);

/* What weights can show; NONE: nothing that is known. */
typedef enum attn__pattern {
    PATTERN_NONE,
    PATTERN_RIGHT,      /* they are right */
    PATTERN_DROPOUT,    /* 0, or the right ones times one factor */
    PATTERN_COLUMNS,    /* they sum to 1 over the queries, */
    PATTERN_HEADS,      /* over the heads, */
    PATTERN_JOINT,      /* over heads and keys, or queries and keys */
    PATTERN_MAP,        /* right for other KV heads */
    PATTERN_MASS,       /* one factor per row, below 1 */
    PATTERN_UNDIVIDED,  /* one factor per row, above 1 */
    PATTERN_MERGE,      /* one factor per row and block of keys, */
    PATTERN_MERGE_LSE,  /* which goes with the block's log-sum-exp */
    PATTERN_VISIBLE,    /* a softmax over other keys */
    PATTERN_FILL,       /* hidden ones weigh as with one score for all */
    PATTERN_SCALE,      /* a softmax with another scale */
    PATTERN_DISTANCE    /* a term by distance is in the scores */
} attn__pattern;

/* The first of these that fits, and numbers of it in words. */
attn__pattern attn__pattern_of(attn__exam *exam, attn__attempt *attempt,
                               const attn__reading *reading,
                               const char **evidence);

#endif
