/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_doctor_examine: options checked, memory made, the kind examined. */
#include "attn_doctor.h"

#include <string.h>

#include "core/alloc.h"
#include "doctor/exam.h"

static const char *const kind_names[] = {
    "auto",     "attention", "multi_head", "rope",
    "softmax", "backward",  "decode",     "merge"};

void attn_doctor_options_init(attn_doctor_options *options)
{
    *options =
        (attn_doctor_options){.size = sizeof *options, .seconds = 4};
}

static attn_status check(const attn_subject *s, const attn_doctor_options *o,
                         attn_diag *diag)
{
    ATTN__REQUIRE(o->size == sizeof *o, diag, ATTN_E_ARG, "size",
                  "options are not from attn_doctor_options_init");
    ATTN__REQUIRE((unsigned)o->kind <= ATTN_KIND_MERGE, diag, ATTN_E_ARG,
                  "kind", "%d is no kind", (int)o->kind);
    ATTN__REQUIRE(!o->layout || attn__layout_of(o->layout) >= 0, diag,
                  ATTN_E_ARG, "layout",
                  "'%s' is none of bhsd, bshd, hsd, shd, sd, bsd, bse, se",
                  o->layout);
    ATTN__REQUIRE(o->dtype == ATTN_NONE || o->dtype == ATTN_F64 ||
                      o->dtype == ATTN_F32 || o->dtype == ATTN_F16,
                  diag, ATTN_E_DTYPE, "dtype", "%s: f64, f32 or f16",
                  attn_dtype_name(o->dtype));
    ATTN__REQUIRE(s->n_parameters >= 0 &&
                      s->n_parameters <= ATTN__MAX_PARAMETERS,
                  diag, ATTN_E_LIMIT, "subject", "%d parameters, at most %d",
                  (int)s->n_parameters, (int)ATTN__MAX_PARAMETERS);
    return ATTN_OK;
}

static void examine(attn__exam *exam)
{
    if (exam->kind == ATTN_KIND_SOFTMAX)
        attn__examine_softmax(exam);
    else if (exam->kind == ATTN_KIND_MERGE)
        attn__examine_merge(exam);
    else if (exam->kind == ATTN_KIND_ROPE)
        attn__examine_rope(exam);
    else
        attn__examine_attention(exam);
}

/* Room for the largest question: pairs, and elements of any array. */
enum { MOST_PAIRS = 1 << 17, MOST_ELEMENTS = 1 << 15 };

static attn_status open_exam(attn__exam *exam, attn_diag *diag)
{
    attn_report *r = attn__calloc(1, sizeof *r);

    exam->report = r;
    if (!r || !attn__work_open(&exam->work, &exam->arena, MOST_PAIRS,
                               MOST_ELEMENTS))
        return attn__fail(diag, ATTN_E_NOMEM, "report", "out of memory");
    r->subject = attn__arena_text(&r->arena, "%s", exam->subject->name);
    r->kind = kind_names[exam->kind];
    r->reason = "";
    return attn__expect_parse(&exam->expect, exam->options.expect,
                              &exam->arena, diag);
}

attn_status attn_doctor_examine(const attn_subject *subject,
                                const attn_doctor_options *options,
                                attn_report **report, attn_diag *diag)
{
    attn__exam exam = {.subject = subject, .options = *options};
    attn_status status;

    *report = NULL;
    ATTN__TRY(check(subject, options, diag));
    exam.kind =
        options->kind ? options->kind : attn__guess_kind(subject);
    if (exam.options.dtype == ATTN_NONE)
        exam.options.dtype = subject->dtype == ATTN_F32 ||
                                     subject->dtype == ATTN_F16
                                 ? subject->dtype
                                 : ATTN_F64;
    if (exam.options.seconds <= 0)
        exam.options.seconds = 4;
    status = open_exam(&exam, diag);
    if (status == ATTN_OK) {
        examine(&exam);
        if (exam.arena.failed || !attn__finish_report(exam.report))
            status = attn__fail(diag, ATTN_E_NOMEM, "report",
                                "out of memory");
    }
    attn__arena_close(&exam.arena);
    if (status == ATTN_OK)
        *report = exam.report;
    else
        attn_report_free(exam.report);
    return status == ATTN_OK ? attn__ok(diag) : status;
}
