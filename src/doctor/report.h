/* SPDX-License-Identifier: Apache-2.0
 *
 * The report while it is being written. */
#ifndef ATTN_DOCTOR_REPORT_H
#define ATTN_DOCTOR_REPORT_H

#include "attn_doctor.h"
#include "doctor/arena.h"

enum { ATTN__MAX_FINDINGS = 16, ATTN__MAX_FACTS = 32 };

/* One recovered fact: "causal" = "top_left". */
typedef struct attn__fact {
    const char *name, *value;
} attn__fact;

struct attn_report {
    attn__arena arena;
    const char *subject, *kind;
    attn_verdict verdict;
    const char *reason; /* of undecided and unusable; "" */
    attn_finding faults[ATTN__MAX_FINDINGS];
    attn_finding limits[ATTN__MAX_FINDINGS];
    attn__fact facts[ATTN__MAX_FACTS];
    int32_t n_faults, n_limits, n_facts;
    int64_t questions, calls; /* put, and answered or not */
    double seconds;
    attn_report_head head;
    const char *text, *json;
};

/* It answers: right, unless a fault is or gets added. */
void attn__answered(attn_report *report);
/* A fault or limit by its id, with the sentences of faults.def; the same id
 * twice adds to `detail` of the first. Returns where to write more. */
attn_finding *attn__add_fault(attn_report *report, const char *id,
                              const char *detail);
attn_finding *attn__add_limit(attn_report *report, const char *id,
                              const char *detail);
void attn__add_fact(attn_report *report, const char *name, const char *format,
                    ...) ATTN__PRINTF(3, 4);
/* Write text and JSON. False if memory is short. */
bool attn__finish_report(attn_report *report);

/* Growing text in an arena. */
typedef struct attn__text {
    attn__arena *arena;
    char *data;
    size_t length, size;
} attn__text;

void attn__write(attn__text *text, const char *format, ...)
    ATTN__PRINTF(2, 3);
/* A string with its quotes. */
void attn__write_json(attn__text *text, const char *string);

#endif
