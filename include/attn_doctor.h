/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_doctor.h: examine somebody's attention and name its bug.
 *
 * The subject is a callback: named values in, arrays out. The doctor asks it
 * small questions, compares the answers with the reference and with the
 * reference made wrong in every way that it knows, and reports. It never
 * trusts the subject: answers may have any shape and hold anything.
 *
 *     attn_doctor_options options;
 *     attn_doctor_options_init(&options);
 *     options.expect = "causal=top_left";
 *     attn_report *report;
 *     if (attn_doctor_examine(&subject, &options, &report, &diag) == ATTN_OK)
 *         puts(attn_report_text(report));
 *     attn_report_free(report);
 *
 * docs/doctor.md explains how it works and lists the bugs. Since 0.1. */
#ifndef ATTN_DOCTOR_H
#define ATTN_DOCTOR_H

#include "attn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- subject */

/* One parameter of the subject, in the order of its declaration. */
typedef struct attn_parameter {
    const char *name;
    int32_t optional;     /* may be left out */
    const char *fallback; /* its default as Python writes it, or NULL */
    int32_t rank;         /* axes of the array that it takes; 0 = unknown */
} attn_parameter;

typedef enum attn_value_kind {
    ATTN_VALUE_NONE = 0, /* Python's None, C's NULL */
    ATTN_VALUE_TENSOR = 1,
    ATTN_VALUE_REAL = 2,
    ATTN_VALUE_INTEGER = 3,
    ATTN_VALUE_BOOLEAN = 4,
    ATTN_VALUE_PAIR = 5, /* a tuple of two integers */
    ATTN_VALUE_TEXT = 6
} attn_value_kind;

typedef struct attn_value {
    int32_t parameter; /* index into the subject's parameters */
    attn_value_kind kind;
    attn_input tensor;
    double real;
    int64_t integer[2]; /* boolean: 0 or 1; of a tensor: 0, or the length of
                           a fifth axis, before the others, whose parts lie
                           one after another */
    const char *text;
} attn_value;

#define ATTN_RESULT_MAX_RANK 8
/* One array that came back, as f64; `dtype` is what it was. */
typedef struct attn_result {
    attn_dtype dtype;
    int32_t rank;
    int64_t shape[ATTN_RESULT_MAX_RANK];
    int64_t count;
    double *data; /* from attn_realloc; the doctor frees it */
} attn_result;

typedef enum attn_outcome {
    ATTN_ANSWERED = 0,
    ATTN_RAISED = 1,   /* refused this call; `message` says why */
    ATTN_CRASHED = 2,  /* it is gone; the next call may start it again */
    ATTN_TIMED_OUT = 3,
    ATTN_LOST = 4      /* it cannot be called any more */
} attn_outcome;

#define ATTN_RESULTS_MAX 8
typedef struct attn_answer {
    int32_t n_results;
    attn_result results[ATTN_RESULTS_MAX];
    uint32_t mutated; /* bit x: the call changed values[x] */
    double seconds;   /* that the call took */
    char message[256];
} attn_answer;

typedef struct attn_subject {
    const char *name; /* "mine.py:attention" */
    const attn_parameter *parameters;
    int32_t n_parameters;
    const char *words; /* its documentation, for hints about shapes; or NULL */
    attn_dtype dtype;  /* of the inputs that it wants; NONE = any */
    void *ctx;
    /* Call it with n values (parameters left out are not among them). `answer`
     * is zeroed; fill it. */
    attn_outcome (*call)(void *ctx, const attn_value *values, int32_t n,
                         attn_answer *answer);
} attn_subject;

/* --------------------------------------------------------------- examine */

typedef enum attn_kind {
    ATTN_KIND_AUTO = 0, /* guessed from the names */
    ATTN_KIND_ATTENTION = 1,
    ATTN_KIND_MULTI_HEAD = 2,
    ATTN_KIND_ROPE = 3,
    ATTN_KIND_SOFTMAX = 4,
    ATTN_KIND_BACKWARD = 5,
    ATTN_KIND_DECODE = 6,
    ATTN_KIND_MERGE = 7
} attn_kind;

typedef struct attn_doctor_options {
    uint32_t size; /* sizeof(attn_doctor_options) */
    attn_kind kind;
    const char *layout; /* "bhsd", "bshd", "hsd", "shd", "sd", "bsd", "bsE",
                           "sE", "bhds", "hds", "bds", "ds", "sbhd", "sbd",
                           "sbE"; NULL = found by trying */
    attn_dtype dtype;   /* of the inputs: F64, F32 or F16; NONE = as the
                           subject wants, else F64 */
    uint64_t seed;
    /* What it is meant to compute: "causal=bottom_right,window=2:0". "" means
     * the contract's defaults, NULL means identify. */
    const char *expect;
    double seconds; /* for calls, about, and again for explaining; 0 = 4 */
} attn_doctor_options;

ATTN_API void attn_doctor_options_init(attn_doctor_options *options);

typedef struct attn_report attn_report;

/* Examine `subject`. On OK *report is the caller's to free; else NULL.
 * Returns OK whatever the verdict; E_ARG for options that make no sense,
 * E_NOMEM. */
ATTN_API attn_status attn_doctor_examine(const attn_subject *subject,
                                         const attn_doctor_options *options,
                                         attn_report **report,
                                         attn_diag *diag);
ATTN_API void attn_report_free(attn_report *report);

/* One array of a dump: of one case, what went in and what came out. */
typedef struct attn_dump_array {
    const char *name;
    attn_input tensor;
} attn_dump_array;

/* Examine a dump: q, k, v and o [weights, lse], or do, dq, dk, dv [o], with
 * [mask, bias, scale, softcap, sinks, alibi_slopes, k_lengths]; other arrays
 * are ignored. `name` is for the report. What one case cannot show is said;
 * the verdict is UNDECIDED where that is what was expected. */
ATTN_API attn_status attn_doctor_examine_dump(
    const char *name, const attn_dump_array *arrays, int32_t n,
    const attn_doctor_options *options, attn_report **report,
    attn_diag *diag);

/* ---------------------------------------------------------------- report */

typedef enum attn_verdict {
    ATTN_VERDICT_CORRECT = 0,
    ATTN_VERDICT_FAULT = 1,
    ATTN_VERDICT_UNDECIDED = 2,
    ATTN_VERDICT_UNUSABLE = 3
} attn_verdict;

/* Strings belong to the report; none is NULL. */
typedef struct attn_finding {
    const char *id;       /* "scale-missing"; "unexplained" */
    const char *says;     /* the diagnosis, one or two sentences */
    const char *fix;      /* one line */
    const char *where;    /* "forward", "backward", or which calls */
    const char *evidence; /* numbers */
    const char *repro;    /* the smallest question that shows it */
    const char *also;     /* other ids that fit as well, "a, b", or "" */
} attn_finding;

ATTN_API attn_verdict attn_report_verdict(const attn_report *report);
/* "correct", "fault", "undecided", "unusable". */
ATTN_API const char *attn_verdict_name(attn_verdict verdict);
ATTN_API int32_t attn_report_n_faults(const attn_report *report);
ATTN_API const attn_finding *attn_report_fault(const attn_report *report,
                                               int32_t index);
ATTN_API int32_t attn_report_n_limits(const attn_report *report);
ATTN_API const attn_finding *attn_report_limit(const attn_report *report,
                                               int32_t index);
/* As a good colleague would say it. */
ATTN_API const char *attn_report_text(const attn_report *report);
/* One JSON object of schema "attn-doctor-1": docs/json.md. */
ATTN_API const char *attn_report_json(const attn_report *report);

/* One head as it should be and as the subject has it: weights (query, key)
 * where they could be read out, else the output (query, channel). Both are
 * dense, of the report; NULL where there is nothing to draw. */
typedef struct attn_report_head {
    const char *what; /* "weights" or "output" */
    int64_t batch, head, rows, columns;
    const double *right, *theirs;
    const unsigned char *visible; /* of weights; NULL of an output */
} attn_report_head;

ATTN_API const attn_report_head *attn_report_drawing(
    const attn_report *report);

/* ------------------------------------------------------------- catalogue */

typedef struct attn_fault_entry {
    const char *id, *says, *fix;
} attn_fault_entry;

/* Every fault that the doctor knows, once each. */
ATTN_API int32_t attn_doctor_n_entries(void);
ATTN_API const attn_fault_entry *attn_doctor_entry(int32_t index);

/* A subject attention(q, k, v, ...) that has this bug, or with NULL none, to
 * see what the doctor says. E_ARG if it is a bug of something else. To be
 * freed with attn_doctor_demo_free. */
ATTN_API attn_status attn_doctor_demo(const char *fault,
                                      attn_subject **subject,
                                      attn_diag *diag);
ATTN_API void attn_doctor_demo_free(attn_subject *subject);

#ifdef __cplusplus
}
#endif

#endif
