/* SPDX-License-Identifier: Apache-2.0
 *
 * The report: findings, facts, and how they read. */
#include "doctor/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

/* ------------------------------------------------------------- catalogue */

static const attn_fault_entry entries[] = {
#define ATTN__FAULT(id, says, fix) {id, says, fix},
#include "doctor/faults.def"
#undef ATTN__FAULT
};
enum { N_ENTRIES = sizeof entries / sizeof entries[0] };

int32_t attn_doctor_n_entries(void)
{
    return N_ENTRIES;
}

const attn_fault_entry *attn_doctor_entry(int32_t index)
{
    return index >= 0 && index < N_ENTRIES ? &entries[index] : NULL;
}

static const attn_fault_entry *entry_of(const char *id)
{
    for (int x = 0; x < N_ENTRIES; x++) {
        if (strcmp(entries[x].id, id) == 0)
            return &entries[x];
    }
    return &entries[N_ENTRIES - 1]; /* "unexplained" */
}

/* -------------------------------------------------------------- findings */

static attn_finding *add(attn_report *r, attn_finding *list, int32_t *n,
                         const char *id, const char *detail)
{
    const attn_fault_entry *entry = entry_of(id);
    const char *dot = *detail ? ". " : "";
    attn_finding *f;

    for (int32_t x = 0; x < *n; x++) {
        if (strcmp(list[x].id, id) == 0) {
            if (*detail && !strstr(list[x].says, detail))
                list[x].says = attn__arena_text(&r->arena, "%s %s.",
                                                list[x].says, detail);
            return &list[x];
        }
    }
    f = &list[*n < ATTN__MAX_FINDINGS - 1 ? (*n)++ : *n];
    *f = (attn_finding){
        .id = entry->id,
        .says = attn__arena_text(&r->arena, "%s%s%s.", entry->says, dot,
                                 detail),
        .fix = entry->fix,
        .where = "",
        .evidence = "",
        .repro = "",
        .also = "",
    };
    return f;
}

void attn__answered(attn_report *r)
{
    r->verdict =
        r->n_faults > 0 ? ATTN_VERDICT_FAULT : ATTN_VERDICT_CORRECT;
    r->reason = "";
}

attn_finding *attn__add_fault(attn_report *r, const char *id,
                              const char *detail)
{
    r->verdict = ATTN_VERDICT_FAULT;
    r->reason = "";
    return add(r, r->faults, &r->n_faults, id, detail);
}

attn_finding *attn__add_limit(attn_report *r, const char *id,
                              const char *detail)
{
    return add(r, r->limits, &r->n_limits, id, detail);
}

void attn__add_fact(attn_report *r, const char *name, const char *format, ...)
{
    char value[256];
    va_list args;

    if (r->n_facts >= ATTN__MAX_FACTS)
        return;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    r->facts[r->n_facts++] = (attn__fact){
        .name = name, .value = attn__arena_text(&r->arena, "%s", value)};
}

/* ------------------------------------------------------------------ text */

static void write_finding(attn__text *t, const attn_finding *f)
{
    attn__write(t, "  %s\n    %s\n", f->id, f->says);
    if (*f->fix)
        attn__write(t, "    Fix: %s\n", f->fix);
    if (*f->where)
        attn__write(t, "    Where: %s\n", f->where);
    if (*f->evidence)
        attn__write(t, "    Evidence: %s\n", f->evidence);
    if (*f->repro)
        attn__write(t, "    Smallest case: %s\n", f->repro);
    if (*f->also)
        attn__write(t, "    Also fits: %s\n", f->also);
}

static const char *opening(const attn_report *r)
{
    switch (r->verdict) {
    case ATTN_VERDICT_CORRECT:
        return "This is attention, and it is right";
    case ATTN_VERDICT_FAULT:
        return r->n_faults > 1 ? "There are faults" : "There is a fault";
    case ATTN_VERDICT_UNDECIDED:
        return "This evidence cannot decide";
    default:
        return "It could not be examined";
    }
}

static void write_text(attn_report *r, attn__text *t)
{
    attn__write(t, "%s: %s\n%s%s%s.\n", r->subject,
                attn_verdict_name(r->verdict), opening(r),
                *r->reason ? ": " : "", r->reason);
    for (int32_t x = 0; x < r->n_faults; x++)
        write_finding(t, &r->faults[x]);
    if (r->n_limits > 0)
        attn__write(t, "Limits (right code, up to here):\n");
    for (int32_t x = 0; x < r->n_limits; x++)
        attn__write(t, "  %s: %s\n", r->limits[x].id,
                    *r->limits[x].evidence ? r->limits[x].evidence
                                           : r->limits[x].says);
    if (r->n_facts > 0)
        attn__write(t, "What it computes:\n");
    for (int32_t x = 0; x < r->n_facts; x++)
        attn__write(t, "  %s: %s\n", r->facts[x].name, r->facts[x].value);
    attn__write(t, "%lld questions in %.2f s.\n", (long long)r->calls,
                r->seconds);
}

/* ------------------------------------------------------------------ JSON */

static void write_member(attn__text *t, const char *name, const char *value,
                         const char *after)
{
    attn__write(t, "\"%s\": ", name);
    attn__write_json(t, value);
    attn__write(t, "%s", after);
}

static void json_findings(attn__text *t, const char *name,
                          const attn_finding *list, int32_t n)
{
    attn__write(t, "  \"%s\": [", name);
    for (int32_t x = 0; x < n; x++) {
        attn__write(t, "%s\n    {", x ? "," : "");
        write_member(t, "id", list[x].id, ", ");
        write_member(t, "says", list[x].says, ", ");
        write_member(t, "fix", list[x].fix, ", ");
        write_member(t, "where", list[x].where, ", ");
        write_member(t, "evidence", list[x].evidence, ", ");
        write_member(t, "repro", list[x].repro, ", ");
        write_member(t, "also", list[x].also, "}");
    }
    attn__write(t, "%s],\n", n ? "\n  " : "");
}

static void write_json(attn_report *r, attn__text *t)
{
    attn__write(t, "{\n  \"schema\": \"attn-doctor-1\",\n  ");
    write_member(t, "subject", r->subject, ",\n  ");
    write_member(t, "kind", r->kind, ",\n  ");
    write_member(t, "verdict", attn_verdict_name(r->verdict), ",\n  ");
    write_member(t, "reason", r->reason, ",\n");
    json_findings(t, "faults", r->faults, r->n_faults);
    json_findings(t, "limits", r->limits, r->n_limits);
    attn__write(t, "  \"spec\": {");
    for (int32_t x = 0; x < r->n_facts; x++)
        write_member(t, r->facts[x].name, r->facts[x].value,
                     x + 1 < r->n_facts ? ", " : "");
    attn__write(t, "},\n  \"calls\": %lld,\n  \"seconds\": %.3f\n}\n",
                (long long)r->calls, r->seconds);
}

bool attn__finish_report(attn_report *r)
{
    attn__text text = {.arena = &r->arena}, json = {.arena = &r->arena};

    write_text(r, &text);
    write_json(r, &json);
    r->text = text.data ? text.data : "";
    r->json = json.data ? json.data : "";
    return !r->arena.failed;
}

/* ---------------------------------------------------------------- public */

attn_verdict attn_report_verdict(const attn_report *report)
{
    return report->verdict;
}

const char *attn_verdict_name(attn_verdict verdict)
{
    static const char *const names[] = {"correct", "fault", "undecided",
                                        "unusable"};

    return (unsigned)verdict < 4 ? names[verdict] : "unknown";
}

int32_t attn_report_n_faults(const attn_report *report)
{
    return report->n_faults;
}

const attn_finding *attn_report_fault(const attn_report *report, int32_t index)
{
    return index >= 0 && index < report->n_faults ? &report->faults[index]
                                                  : NULL;
}

int32_t attn_report_n_limits(const attn_report *report)
{
    return report->n_limits;
}

const attn_finding *attn_report_limit(const attn_report *report, int32_t index)
{
    return index >= 0 && index < report->n_limits ? &report->limits[index]
                                                  : NULL;
}

const char *attn_report_text(const attn_report *report)
{
    return report->text;
}

const char *attn_report_json(const attn_report *report)
{
    return report->json;
}

void attn_report_free(attn_report *report)
{
    if (report)
        attn__arena_close(&report->arena);
    attn__free(report);
}
