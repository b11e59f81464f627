/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy: errors of the fp32 kernels against those of the textbook's fp32,
 * both against the reference in fp64. Prints a table of ratios and fails where
 * one is above what docs/numerics.md promises.
 *
 *   accuracy [--isa scalar|avx2|avx512|amx] */
#include "attn_ref.h"

#include "scene.h"
#include "textbook.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ----------------------------------------------------------------- corpus */

/* What is done to the normal numbers of a scene. */
typedef enum twist {
    NORMAL,
    SHARP_4,   /* q times 4 */
    SHARP_16,  /* q times 16: nearly one key a row */
    ONE_HOT,   /* q_i = 8 k_i: scores of 8 |k|^2 on the diagonal */
    UNIFORM,   /* all in [0, 1) and a little: no sign helps */
    FLAT,      /* one key over and over: equal weights */
    SHIFTED_V, /* v + 4: o is no small difference */
    SMALL      /* all times 2^-10 */
} twist;

typedef struct row {
    scene_shape shape;
    twist twist;
} row;

/* clang-format off */
#define H_HKV_LQ_LK_D_DV(h, hkv, lq, lk, d, dv)                               \
    .batch = 1, .heads_q = h, .heads_kv = hkv, .len_q = lq, .len_k = lk,      \
    .dim_qk = d, .dim_v = dv

static const row corpus[] = {
    {{"normal", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64)}, NORMAL},
    {{"normal, D = 128", H_HKV_LQ_LK_D_DV(1, 1, 256, 256, 128, 128)}, NORMAL},
    {{"normal, D = 16", H_HKV_LQ_LK_D_DV(4, 4, 256, 256, 16, 16)}, NORMAL},
    {{"normal, D = 40, Dv = 72", H_HKV_LQ_LK_D_DV(2, 2, 100, 200, 40, 72)},
     NORMAL},
    {{"short", H_HKV_LQ_LK_D_DV(16, 16, 32, 24, 64, 64)}, NORMAL},
    {{"causal", H_HKV_LQ_LK_D_DV(2, 2, 512, 512, 64, 64),
      .causal = ATTN_CAUSAL_TOP_LEFT}, NORMAL},
    {{"causal, 8 heads on 2", H_HKV_LQ_LK_D_DV(8, 2, 192, 192, 64, 64),
      .causal = ATTN_CAUSAL_TOP_LEFT}, NORMAL},
    {{"window of 64", H_HKV_LQ_LK_D_DV(2, 1, 400, 400, 32, 32),
      .causal = ATTN_CAUSAL_TOP_LEFT, .left = 64}, NORMAL},
    {{"4096 keys", H_HKV_LQ_LK_D_DV(2, 1, 32, 4096, 64, 64)}, NORMAL},
    {{"4096 keys, uniform", H_HKV_LQ_LK_D_DV(2, 1, 32, 4096, 64, 64)},
     UNIFORM},
    {{"32768 keys", H_HKV_LQ_LK_D_DV(1, 1, 8, 32768, 64, 64)}, NORMAL},
    {{"decode", H_HKV_LQ_LK_D_DV(8, 8, 1, 1000, 64, 64)}, NORMAL},
    {{"q times 4", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64)}, SHARP_4},
    {{"q times 16", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64)}, SHARP_16},
    {{"one-hot", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64)}, ONE_HOT},
    {{"uniform", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64)}, UNIFORM},
    {{"flat", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64)}, FLAT},
    {{"v + 4", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64)}, SHIFTED_V},
    {{"small", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64)}, SMALL},
    {{"softcap", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64), .softcap = 2},
     NORMAL},
    {{"softcap, q times 16", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64),
      .softcap = 20}, SHARP_16},
    {{"alibi, causal", H_HKV_LQ_LK_D_DV(4, 4, 256, 256, 64, 64),
      .causal = ATTN_CAUSAL_TOP_LEFT, .slopes = "h"}, NORMAL},
    {{"bias", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64), .bias = "bhij"},
     NORMAL},
    {{"sinks", H_HKV_LQ_LK_D_DV(2, 2, 256, 256, 64, 64),
      .inputs = ATTN_WITH_SINKS}, NORMAL},
    {{"1300 queries, 4 heads on 1", H_HKV_LQ_LK_D_DV(4, 1, 1300, 100, 32, 32)},
     NORMAL},
};
/* clang-format on */

static void change(const attn_input *t, double factor, double summand,
                   bool positive)
{
    attn_tensor w = scene_writable(t);

    for (int64_t i = 0; i < scene_count(t); i++) {
        const double x = scene_read(t, i);

        scene_write(&w, i, (positive ? fabs(x) / 4 : x) * factor + summand);
    }
}

/* Row i of `to` is row i of `from`, times a factor; the first one everywhere
 * where `first` is set. */
static void copy_rows(const attn_input *to, const attn_input *from,
                      double factor, bool first)
{
    attn_tensor w = scene_writable(to);
    const int64_t row_size = to->shape[3];

    for (int64_t i = 0; i < scene_count(to); i++)
        scene_write(&w, i,
                    factor * scene_read(from, first ? i % row_size : i));
}

static void twist_scene(scene *s, twist how)
{
    attn_args *a = &s->args;

    if (how == SHARP_4 || how == SHARP_16)
        change(&a->q, how == SHARP_4 ? 4 : 16, 0, false);
    if (how == ONE_HOT)
        copy_rows(&a->q, &a->kv.k, 8, false);
    if (how == FLAT)
        copy_rows(&a->kv.k, &a->kv.k, 1, true);
    if (how == SHIFTED_V)
        change(&a->kv.v, 1, 4, false);
    for (int n = 0; n < 4; n++) {
        const attn_input *const each[] = {&a->q, &a->kv.k, &a->kv.v, &a->d_o};

        if (how == UNIFORM || how == SMALL)
            change(each[n], how == SMALL ? 0x1p-10 : 1, 0, how == UNIFORM);
    }
    if (a->alibi_slopes.dtype != ATTN_NONE)
        change(&a->alibi_slopes, 1, 0, true); /* slopes are positive */
}

/* ------------------------------------------------------------- three ways */

enum { O, DQ, DK, DV, N_FIELDS };

static const char *const field_names[N_FIELDS] = {"o", "dq", "dk", "dv"};

/* The same output of the kernels, the textbook and the reference. */
typedef struct field {
    attn_tensor ours;
    float *textbook;
    double *exact;
    int64_t n;
} field;

static void *array(int64_t n, size_t size)
{
    void *memory = calloc((size_t)n + 1, size);

    if (!memory)
        abort();
    return memory;
}

static double *as_doubles(const attn_input *t)
{
    double *to;

    if (t->dtype == ATTN_NONE)
        return NULL;
    to = array(scene_count(t), sizeof *to);
    for (int64_t i = 0; i < scene_count(t); i++)
        to[i] = scene_read(t, i);
    return to;
}

typedef struct exact_inputs {
    double *q, *k, *v, *d_o, *bias, *slopes, *sinks;
    int64_t q_offset;
} exact_inputs;

static attn_ref_problem exact_problem(const scene *s, const exact_inputs *in)
{
    const attn_desc *d = &s->desc;
    attn_ref_problem p;

    attn_ref_problem_init(&p, 1, d->heads_q, d->heads_kv, d->len_q, d->len_k,
                          d->dim_qk, d->dim_v);
    p.scale = d->scale;
    p.softcap = d->softcap;
    p.causal = d->causal;
    p.window_left = d->window_left;
    p.window_right = d->window_right;
    p.q_offset = &in->q_offset;
    p.bias = in->bias;
    p.bias_stride[1] = d->len_q * d->len_k;
    p.bias_stride[2] = d->len_k;
    p.bias_stride[3] = 1;
    p.alibi_slopes = in->slopes;
    p.slopes_stride[1] = 1;
    p.sinks = in->sinks;
    return p;
}

static void run_exact(const scene *s, const exact_inputs *in, field *fields,
                      unsigned char *visible)
{
    const attn_ref_problem p = exact_problem(s, in);
    const attn_ref_results results = {.o = fields[O].exact,
                                      .visible = visible};
    const attn_ref_gradients gradients = {.dq = fields[DQ].exact,
                                          .dk = fields[DK].exact,
                                          .dv = fields[DV].exact};

    if (attn_ref_forward(NULL, &p, in->q, in->k, in->v, &results) !=
            ATTN_OK ||
        attn_ref_backward(NULL, &p, in->q, in->k, in->v, in->d_o, NULL,
                          &gradients) != ATTN_OK)
        abort();
}

static void run_textbook(const scene *s, int64_t q_offset, field *fields,
                         const unsigned char *visible)
{
    const attn_desc *d = &s->desc;
    const attn_args *a = &s->args;
    const textbook t = {
        d->heads_q, d->heads_kv, d->len_q, d->len_k, d->dim_qk, d->dim_v,
        q_offset, (float)d->scale, (float)d->softcap, visible, a->q.data,
        a->kv.k.data, a->kv.v.data, a->d_o.data, a->bias.data,
        a->alibi_slopes.data, a->sinks.data, fields[O].textbook,
        fields[DQ].textbook, fields[DK].textbook, fields[DV].textbook};

    textbook_run(&t);
}

/* --------------------------------------------------------------- compare */

typedef struct errors {
    double largest, rms;
} errors;

/* Errors smaller than the rounding of the largest result say nothing: they
 * count as that. */
static errors errors_of(const field *f, bool ours)
{
    const attn_input view = attn_in(f->ours);
    errors e = {0, 0};
    double size = 0;

    for (int64_t i = 0; i < f->n; i++) {
        const double got =
            ours ? scene_read(&view, i) : (double)f->textbook[i];
        const double error = fabs(got - f->exact[i]);

        size = fmax(size, fabs(f->exact[i]));
        e.largest = error > e.largest || isnan(error) ? error : e.largest;
        e.rms += error * error;
    }
    e.largest = fmax(e.largest, size * 0x1p-24);
    e.rms = fmax(sqrt(e.rms / (double)f->n), size * 0x1p-26);
    return e;
}

typedef struct ratios {
    double largest[N_FIELDS], rms[N_FIELDS];
} ratios;

static ratios run_row(const row *r, attn_isa isa, uint64_t seed)
{
    exact_inputs in;
    field fields[N_FIELDS];
    unsigned char *visible;
    ratios out;
    scene s;

    scene_open(&s, &r->shape, ATTN_F32, seed);
    s.desc.isa_limit = isa;
    s.scores = (attn_tensor){0};
    twist_scene(&s, r->twist);
    scene_run(&s, 2);
    in = (exact_inputs){
        as_doubles(&s.args.q),    as_doubles(&s.args.kv.k),
        as_doubles(&s.args.kv.v), as_doubles(&s.args.d_o),
        as_doubles(&s.args.bias), as_doubles(&s.args.alibi_slopes),
        as_doubles(&s.args.sinks), 0};
    in.q_offset = attn_ref_q_offset(s.desc.causal, s.desc.len_q,
                                    s.desc.len_k, s.desc.len_k);
    for (int n = 0; n < N_FIELDS; n++) {
        const attn_tensor *const each[N_FIELDS] = {&s.args.o, &s.args.dq,
                                                   &s.args.dk, &s.args.dv};
        const attn_input view = attn_in(*each[n]);

        fields[n].ours = *each[n];
        fields[n].n = scene_count(&view);
        fields[n].textbook = array(fields[n].n, sizeof(float));
        fields[n].exact = array(fields[n].n, sizeof(double));
    }
    visible = array(s.desc.heads_q * s.desc.len_q * s.desc.len_k, 1);
    run_exact(&s, &in, fields, visible);
    run_textbook(&s, in.q_offset, fields, visible);
    for (int n = 0; n < N_FIELDS; n++) {
        const errors ours = errors_of(&fields[n], true);
        const errors theirs = errors_of(&fields[n], false);

        out.largest[n] = ours.largest / theirs.largest;
        out.rms[n] = ours.rms / theirs.rms;
        free(fields[n].textbook);
        free(fields[n].exact);
    }
    free(visible);
    free(in.q);
    free(in.k);
    free(in.v);
    free(in.d_o);
    free(in.bias);
    free(in.slopes);
    free(in.sinks);
    scene_close(&s);
    return out;
}

/* ------------------------------------------------------------------ report */

static const double each_limit[N_FIELDS] = {1.5, 2, 2, 2};
static const double mean_limit[N_FIELDS] = {1, 1.5, 1.5, 1.5};

/* One line of the table; how many ratios are above their limit. */
static int print_ratios(const char *name, const ratios *r,
                        const double limit[N_FIELDS])
{
    int above = 0;

    printf("%-26s", name);
    for (int n = 0; n < N_FIELDS; n++) {
        const bool bad = !(r->largest[n] <= limit[n]) ||
                         !(r->rms[n] <= limit[n]);

        above += bad;
        printf("  %5.2f %5.2f%s", r->largest[n], r->rms[n], bad ? "!" : " ");
    }
    printf("\n");
    return above;
}

static int isa_of(const char *name)
{
    for (int isa = ATTN_ISA_BEST; isa <= ATTN_ISA_AMX; isa++)
        if (strcmp(name, attn_isa_name((attn_isa)isa)) == 0)
            return isa;
    return -1;
}

int main(int argc, char **argv)
{
    const int isa = argc == 3 && strcmp(argv[1], "--isa") == 0
                        ? isa_of(argv[2])
                        : (int)ATTN_ISA_BEST;
    ratios mean = {{0}, {0}};
    int failed = 0;

    if ((argc != 1 && argc != 3) || isa < 0) {
        fprintf(stderr, "usage: accuracy [--isa LEVEL]\n");
        return 2;
    }
    printf("%-26s", "error / textbook's error:");
    for (int n = 0; n < N_FIELDS; n++)
        printf("%4s  max   rms ", field_names[n]);
    printf("\n");
    for (size_t k = 0; k < COUNT(corpus); k++) {
        const ratios r = run_row(&corpus[k], (attn_isa)isa, 100 + k);

        failed += print_ratios(corpus[k].shape.name, &r, each_limit) > 0;
        for (int n = 0; n < N_FIELDS; n++) {
            mean.largest[n] += log(r.largest[n]) / (double)COUNT(corpus);
            mean.rms[n] += log(r.rms[n]) / (double)COUNT(corpus);
        }
        fflush(stdout);
    }
    for (int n = 0; n < N_FIELDS; n++) {
        mean.largest[n] = exp(mean.largest[n]);
        mean.rms[n] = exp(mean.rms[n]);
    }
    failed += print_ratios("geometric mean", &mean, mean_limit) > 0;
    printf("%d passed, %d failed\n", (int)COUNT(corpus) + 1 - failed, failed);
    return failed > 0;
}
