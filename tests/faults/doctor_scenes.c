/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenes for the functions of attn_doctor.h: subjects that raise, that answer
 * zeros and that are right; a dump; a demonstration. What is said goes to
 * `out`. */
#include "attn_doctor.h"
#include "faults.h"

#include <math.h>
#include <string.h>

/* A subject's own memory may fail too; then nothing is expected of it. */
typedef struct pupil {
    bool raises, is_right, starved;
} pupil;

/* One query's row of o; all arrays (len, dim), dense. */
static void attend(const attn_value *given, int64_t i, double *o)
{
    const attn_input *q = &given[0].tensor, *k = &given[1].tensor;
    const attn_input *v = &given[2].tensor;
    const int64_t dim = q->shape[1], dim_v = v->shape[1];
    double sum = 0;

    memset(o, 0, (size_t)dim_v * sizeof *o);
    for (int64_t j = 0; j < k->shape[0]; j++) {
        double s = 0;

        for (int64_t c = 0; c < dim; c++)
            s += ((const double *)q->data)[i * q->stride[0] +
                                           c * q->stride[1]] *
                 ((const double *)k->data)[j * k->stride[0] +
                                           c * k->stride[1]];
        s = exp(s / sqrt((double)dim));
        sum += s;
        for (int64_t c = 0; c < dim_v; c++)
            o[c] += s * ((const double *)v->data)[j * v->stride[0] +
                                                  c * v->stride[1]];
    }
    for (int64_t c = 0; c < dim_v; c++)
        o[c] /= sum;
}

static attn_outcome call(void *ctx, const attn_value *given, int32_t n,
                         attn_answer *answer)
{
    pupil *p = ctx;
    attn_result *r = &answer->results[0];

    if (p->raises || n < 3 || given[0].tensor.rank != 2)
        return ATTN_RAISED;
    *r = (attn_result){
        .dtype = ATTN_F64,
        .rank = 2,
        .shape = {given[0].tensor.shape[0], given[2].tensor.shape[1]}};
    r->count = r->shape[0] * r->shape[1];
    r->data = attn_realloc(NULL, (size_t)r->count * sizeof *r->data);
    if (!r->data) {
        p->starved = true;
        return ATTN_LOST;
    }
    memset(r->data, 0, (size_t)r->count * sizeof *r->data);
    for (int64_t i = 0; p->is_right && i < r->shape[0]; i++)
        attend(given, i, r->data + i * r->shape[1]);
    answer->n_results = 1;
    return ATTN_ANSWERED;
}

/* The verdict and the first fault; the rest has seconds in it. */
static void put(unsigned char *out, attn_report *report)
{
    const char *name =
        attn_verdict_name(attn_report_verdict(report));

    memcpy(out, name, strlen(name));
    if (attn_report_n_faults(report) > 0) {
        const char *id = attn_report_fault(report, 0)->id;

        memcpy(out + 32, id, strlen(id));
    }
    out[64] = attn_report_text(report)[0] != '\0';
    out[65] = attn_report_json(report)[0] != '\0';
    attn_report_free(report);
}

static attn_status examine(pupil p, unsigned char *out)
{
    static const attn_parameter parameters[] = {
        {.name = "q", .rank = 2}, {.name = "k"}, {.name = "v"}};
    const attn_subject subject = {.name = "pupil",
                                  .parameters = parameters,
                                  .n_parameters = 3,
                                  .ctx = &p,
                                  .call = call};
    attn_doctor_options options;
    attn_report *report;
    attn_status status;

    attn_doctor_options_init(&options);
    options.layout = "sd";
    options.seconds = 1e-3;
    status = attn_doctor_examine(&subject, &options, &report, NULL);
    if (status != ATTN_OK)
        return status;
    if (p.starved) {
        attn_report_free(report);
        return ATTN_E_NOMEM;
    }
    put(out, report);
    return ATTN_OK;
}

static attn_status run_raises(unsigned char *out)
{
    return examine((pupil){.raises = true}, out);
}

static attn_status run_zeros(unsigned char *out)
{
    return examine((pupil){0}, out);
}

static attn_status run_right(unsigned char *out)
{
    return examine((pupil){.is_right = true}, out);
}

static attn_status run_dump(unsigned char *out)
{
    static const double x[] = {0.5, -1, 2, 1, 0.25, -0.75};
    const attn_input t = attn_in_dense(x, ATTN_F64, 2, (int64_t[]){3, 2});
    const attn_dump_array arrays[] = {
        {"q", t}, {"k", t}, {"v", t}, {"o", t}};
    attn_doctor_options options;
    attn_report *report;
    attn_status status;

    attn_doctor_options_init(&options);
    options.seconds = 1e-3;
    status = attn_doctor_examine_dump("dump", arrays, 4, &options, &report,
                                      NULL);
    if (status == ATTN_OK)
        put(out, report);
    return status;
}

static attn_status run_demo(unsigned char *out)
{
    attn_subject *subject;
    const attn_status status =
        attn_doctor_demo("rope-pairing", &subject, NULL);

    if (status != ATTN_OK)
        return status;
    memcpy(out, subject->name, strlen(subject->name));
    attn_doctor_demo_free(subject);
    return ATTN_OK;
}

const scene scenes[] = {
    {"attn_doctor_demo", true, run_demo},
    {"attn_doctor_examine_dump", true, run_dump},
    {"examine: raises", true, run_raises},
    {"examine: zeros", true, run_zeros},
    {"attn_doctor_examine", true, run_right},
};
const int n_scenes = sizeof scenes / sizeof scenes[0];
