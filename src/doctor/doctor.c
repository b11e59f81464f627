/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_doctor_examine: options checked, memory made, the kind examined. */
#include "attn_doctor.h"

#include <math.h>
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
                  "'%s' is none of bhsd, bshd, hsd, shd, sd, bsd, bse, se, "
                  "bhds, hds, bds, ds, sbhd, sbd, sbe",
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

/* One array and no word about it: what attends to itself, if attention makes
 * sense of its answers, else a softmax. */
static void examine_either(attn__exam *exam)
{
    exam->kind = ATTN_KIND_ATTENTION;
    exam->report->kind = kind_names[exam->kind];
    if (attn__examine_self(exam))
        return;
    exam->kind = ATTN_KIND_SOFTMAX;
    exam->report->kind = kind_names[exam->kind];
    attn__examine_softmax(exam);
}

static void examine(attn__exam *exam)
{
    if (exam->kind == ATTN_KIND_AUTO)
        examine_either(exam);
    else if (exam->kind == ATTN_KIND_SOFTMAX)
        attn__examine_softmax(exam);
    else if (exam->kind == ATTN_KIND_MERGE)
        attn__examine_merge(exam);
    else if (exam->kind == ATTN_KIND_ROPE)
        attn__examine_rope(exam);
    else
        attn__examine_attention(exam);
}

static attn_status open_exam(attn__exam *exam, attn_diag *diag)
{
    attn_report *r = attn__calloc(1, sizeof *r);

    exam->report = r;
    exam->effort = (int64_t)(ATTN__EFFORT_PER_SECOND *
                             fmin(exam->options.seconds, 1e6));
    if (!r || !attn__work_open(&exam->work, &exam->arena,
                               exam->most_pairs, exam->most_elements))
        return attn__fail(diag, ATTN_E_NOMEM, "report", "out of memory");
    r->subject = attn__arena_text(&r->arena, "%s", exam->subject->name);
    r->kind = kind_names[exam->kind];
    r->verdict = ATTN_VERDICT_UNUSABLE; /* until something is found out */
    r->reason = "no layout that was asked for suits its kind";
    return attn__expect_parse(&exam->expect, exam->options.expect,
                              &exam->arena, diag);
}

/* Ends the examination: the report, or why there is none. */
static attn_status close_exam(attn__exam *exam, attn_status status,
                              attn_report **report, attn_diag *diag)
{
    if (status == ATTN_OK &&
        (exam->arena.failed || !attn__finish_report(exam->report)))
        status = attn__fail(diag, ATTN_E_NOMEM, "report", "out of memory");
    attn__arena_close(&exam->arena);
    if (status != ATTN_OK) {
        attn_report_free(exam->report);
        return status;
    }
    *report = exam->report;
    return attn__ok(diag);
}

static void set_defaults(attn__exam *exam)
{
    attn_doctor_options *o = &exam->options;
    const attn_dtype own = exam->subject->dtype;

    if (o->dtype == ATTN_NONE)
        o->dtype = own == ATTN_F32 || own == ATTN_F16 ? own : ATTN_F64;
    if (!(o->seconds > 0))
        o->seconds = 4;
}

attn_status attn_doctor_examine(const attn_subject *subject,
                                const attn_doctor_options *options,
                                attn_report **report, attn_diag *diag)
{
    /* Room for the largest question: pairs, and elements of any array. */
    attn__exam exam = {.subject = subject,
                       .options = *options,
                       .most_pairs = 1 << 17,
                       .most_elements = 1 << 16};
    attn_status status;

    *report = NULL;
    ATTN__TRY(check(subject, options, diag));
    exam.kind =
        options->kind ? options->kind : attn__guess_kind(subject);
    set_defaults(&exam);
    status = open_exam(&exam, diag);
    if (status == ATTN_OK)
        examine(&exam);
    return close_exam(&exam, status, report, diag);
}

/* The accuracy that the arrays can have. */
static attn_dtype narrowest(const attn_dump_array *arrays, int32_t n)
{
    attn_dtype dtype = ATTN_F64;

    for (int32_t x = 0; x < n; x++) {
        const attn_dtype own = arrays[x].tensor.dtype;

        if (own == ATTN_F16 || own == ATTN_BF16)
            return ATTN_F16;
        if (own == ATTN_F32)
            dtype = ATTN_F32;
    }
    return dtype;
}

/* Room for the arrays, up to what a case that one can look at has. */
static void make_room(attn__exam *exam, const attn_dump_array *arrays,
                      int32_t n)
{
    int64_t most_rows = 1, most = 1;

    for (int32_t x = 0; x < n; x++) {
        const attn_input *t = &arrays[x].tensor;
        int64_t count = 1, rows = 1;

        for (int32_t a = 0; a < t->rank; a++) {
            count = attn__min_i64(count * t->shape[a], INT64_C(1) << 32);
            rows = a + 1 < t->rank ? count : rows;
        }
        most = attn__max_i64(most, count);
        most_rows = attn__max_i64(most_rows, rows);
    }
    exam->most_elements = attn__min_i64(most, 1 << 20) + 16;
    exam->most_pairs = attn__min_i64(most_rows, 1 << 11);
    exam->most_pairs = exam->most_pairs * exam->most_pairs + 16;
}

attn_status attn_doctor_examine_dump(const char *name,
                                     const attn_dump_array *arrays, int32_t n,
                                     const attn_doctor_options *options,
                                     attn_report **report, attn_diag *diag)
{
    const attn_subject none = {.name = name};
    attn__exam exam = {.subject = &none,
                       .options = *options,
                       .kind = ATTN_KIND_ATTENTION};
    attn_status status;

    *report = NULL;
    ATTN__TRY(check(&none, options, diag));
    set_defaults(&exam);
    exam.options.dtype = narrowest(arrays, n);
    make_room(&exam, arrays, n);
    status = open_exam(&exam, diag);
    if (status == ATTN_OK)
        attn__examine_dump(&exam, arrays, n);
    return close_exam(&exam, status, report, diag);
}
