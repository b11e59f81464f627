/* SPDX-License-Identifier: Apache-2.0
 *
 * One examination: what it was asked, what it has found. */
#ifndef ATTN_DOCTOR_EXAM_H
#define ATTN_DOCTOR_EXAM_H

#include "doctor/expectation.h"
#include "doctor/interview.h"
#include "doctor/match.h"
#include "doctor/report.h"

typedef enum attn__state {
    STATE_SILENT,      /* no question was answered */
    STATE_UNEXPLAINED, /* wrong, and no hypothesis fits */
    STATE_NAMED,       /* wrong, and explained */
    STATE_RIGHT
} attn__state;

/* Axes before the length that the subject's documentation speaks of. */
typedef enum attn__hint { HINT_NONE, HINT_HEADS, HINT_BATCH } attn__hint;

/* One way to call the subject, and what its answers say. */
typedef struct attn__attempt {
    attn__binding binding;
    attn__interview *interview;
    attn__state state;
    attn__meaning meaning;
    attn__explanation explanation;
    attn__tier tier;
    attn__hint hint;      /* where it is called with such axes */
    bool plain_right;     /* without options and groups it is right */
    bool by_memory;       /* named: it keeps state */
    bool on_squares;      /* named: where len_q = len_k */
    bool groups_at_random; /* with fewer KV heads */
    bool square_matrices; /* others are taken in silence, and not meant */
    bool plain_differs;   /* from call to call, by dropout that is now off */
    bool has_band;        /* a window that is always there, read out */
    int64_t band[2];
    bool has_slopes;      /* without scores, weights fall with distance */
    bool leaks;           /* hidden keys come back at some size of scores */
    const char *refusal; /* of a silent one */
    bool wrong_shape;
    int conduct; /* attn__conduct */
} attn__attempt;

typedef struct attn__exam {
    const attn_subject *subject;
    attn_doctor_options options;
    attn_kind kind;
    attn__expect expect;
    attn__arena arena;
    attn__work work;
    int64_t most_pairs, most_elements; /* that work has room for */
    int64_t effort; /* that searches may still spend */
    double wasted;  /* seconds of calls in ways that led nowhere */
    attn_report *report;
} attn__exam;

/* A dump that is examined. */
typedef struct attn__dump {
    attn__exam *exam;
    const attn_dump_array *arrays;
    int32_t n;
} attn__dump;

/* The first array with one of these names (" q query "), or NULL. */
const attn_input *attn__dump_find(const attn__dump *dump, const char *names);
int64_t attn__dump_count(const attn_input *array);
/* Its elements in row-major order. */
double *attn__dump_numbers(const attn__dump *dump, const attn_input *array);
/* (batch, heads, len, dim) in a layout; false if it has another rank. */
bool attn__dump_sizes(const attn_input *array, attn__layout layout,
                      int64_t n[4]);
/* The elements in that order, if the sizes are as wanted; else NULL. */
double *attn__dump_arranged(const attn__dump *dump, const attn_input *array,
                            attn__layout layout, const int64_t wanted[4]);
double *attn__dump_named(const attn__dump *dump, const char *names,
                         attn__layout layout, const int64_t wanted[4]);

/* Explain the answers of an interview, by at most `most` (0 or 1) wrong steps;
 * and further, what that leaves unexplained. */
void attn__judge(attn__exam *exam, attn__attempt *attempt, int most);
void attn__judge_further(attn__exam *exam, attn__attempt *attempt);
attn__evidence attn__evidence_of(attn__exam *exam,
                                 const attn__attempt *attempt);

/* Every meaning that the expectation leaves open, most likely first. */
int attn__list_meanings(const attn__exam *exam, const attn__attempt *attempt,
                        attn__meaning *list, int most);

/* Kinds. Each fills the report. */
void attn__examine_attention(attn__exam *exam);
/* Only if it is attention, right, with a bug that has a name or with weights
 * of its own; else false, and the report is as it was. */
bool attn__examine_self(attn__exam *exam);
void attn__examine_softmax(attn__exam *exam);
void attn__examine_merge(attn__exam *exam);
void attn__examine_rope(attn__exam *exam);

void attn__examine_dump(attn__exam *exam, const attn_dump_array *arrays,
                        int32_t n);

/* Report what an attempt found, and stress what is right. */
void attn__report_attempt(attn__exam *exam, attn__attempt *attempt);
/* The same of packed sequences, after what it does with others. */
void attn__report_packed(attn__exam *exam, attn__attempt *attempt);
/* The first part alone, from answers that are there. */
void attn__report_answers(attn__exam *exam, attn__attempt *attempt);

#endif
