/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer as plain fp64 loops around attn_ref.h, and with every number the
 * standard deviation e of the error that an implementation in the case's type
 * makes in it, rounding errors being independent and of the size of the unit
 * roundoff: u of sums (2^-53, else 2^-24), t of storage.
 *
 *   products   e^2 = sum e_x^2 w^2 + u^2 n max(y^2, sum x^2 w^2),
 *              n = min(k, 64) + blocks + 2 roundings
 *   norm       e^2 = g^2 r^2 (e_c^2 + x_c^2 r^4 sum(x^2 e^2) / dim^2)
 *   rope       e^2 = cos^2 e_1^2 + sin^2 e_2^2
 *   scores     e_s^2 = scale^2 sum (e_q^2 k^2 + q^2 e_k^2)
 *                      + u^2 (dim + 4) max(s^2, scale^2 sum q^2 k^2)
 *   o          e = sum p e_s |v - o|, however these errors depend on each
 *              other; and e^2 = sum p^2 e_v^2 + ((4 u + t)^2 sum p^2 v^2)
 *              + u^2 (64 + blocks + 4) max(o^2, sum p^2 v^2)
 *
 * and t |result| after each, when it is stored. y's bound is 4 e. */
#include "layer_case.h"

#include "unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Numbers and the deviations of their errors; (batch, heads, len, dim) or
 * (batch, len, width). */
typedef struct field {
    double *v, *e;
} field;

typedef struct reference {
    const layer_case *c;
    const attn_desc *d;
    double u, t;
    bool deviations; /* whether anybody wants them */
} reference;

static field make(int64_t n)
{
    return (field){calloc((size_t)n + 1, sizeof(double)),
                   calloc((size_t)n + 1, sizeof(double))};
}

static void drop(field f)
{
    free(f.v);
    free(f.e);
}

static double value_or(const values *v, int64_t at, double otherwise)
{
    return v->at ? v->at[at] : otherwise;
}

static double square(double x)
{
    return x * x;
}

/* One element of a product: sum over k of x[t] w[t][column], + b. */
static void product(const reference *r, const double *x, const double *e,
                    const values *w, const values *b, int64_t column,
                    double *out, double *deviation)
{
    const int64_t k = w->shape[0], n = w->shape[1];
    const double roundings = fmin((double)k, 64) + (double)((k + 63) / 64) + 2;
    double sum = value_or(b, column, 0), size = square(sum), carried = 0;

    for (int64_t t = 0; t < k; t++) {
        const double weight = w->at[t * n + column];

        sum += x[t] * weight;
        size += square(x[t] * weight);
        carried += e ? square(e[t] * weight) : 0;
    }
    *out = sum;
    *deviation = sqrt(carried + square(r->t * sum) +
                      square(r->u) * roundings * fmax(square(sum), size));
}

/* (batch, heads, len, dim) of x (batch, len, width). */
static field project(const reference *r, const values *x, const values *w,
                     const values *b, int64_t heads)
{
    const int64_t len = x->shape[1], dim = w->shape[1] / heads;
    field f = make(x->shape[0] * len * w->shape[1]);

    for (int64_t s = 0; s < x->shape[0]; s++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < len; i++)
                for (int64_t c = 0; c < dim; c++) {
                    const int64_t at = ((s * heads + h) * len + i) * dim + c;

                    product(r, x->at + (s * len + i) * x->shape[2], NULL, w,
                            b, h * dim + c, &f.v[at], &f.e[at]);
                }
    return f;
}

static void norm_row(const reference *r, double *x, double *e,
                     const values *gain, int64_t head)
{
    const int64_t dim = r->d->dim_qk;
    double mean = 0, mixed = 0, root;

    for (int64_t c = 0; c < dim; c++) {
        mean += square(x[c]) / (double)dim;
        mixed += square(x[c] * e[c] / (double)dim);
    }
    root = 1 / sqrt(mean + r->c->desc.norm_eps);
    for (int64_t c = 0; c < dim; c++) {
        const double g =
            value_or(gain, gain->rank == 2 ? head * dim + c : c, 1);
        const double was = x[c];

        x[c] *= root * g;
        e[c] = sqrt(square(g * root) *
                        (square(e[c]) +
                         square(was * root * root) * mixed) +
                    square(r->t * x[c]));
    }
}

static void norm(const reference *r, field f, const values *gain,
                 int64_t heads, int64_t len)
{
    const int64_t dim = r->d->dim_qk;

    if (!r->c->desc.qk_norm)
        return;
    for (int64_t row = 0; row < r->d->batch * heads * len; row++)
        norm_row(r, f.v + row * dim, f.e + row * dim, gain,
                 row / len % heads);
}

/* The deviations of one row's pairs, before their values turn. */
static void turn_deviations(double *e, const attn_rope_desc *rope,
                            int64_t half, const double *cosines,
                            const double *sines)
{
    for (int64_t m = 0; m < half; m++) {
        double *a = &e[rope->interleaved ? 2 * m : m];
        double *b = rope->interleaved ? a + 1 : a + half;
        const double first = *a;

        *a = hypot(cosines[m] * first, sines[m] * *b);
        *b = hypot(cosines[m] * *b, sines[m] * first);
    }
}

static void rotate(const reference *r, field f, const int64_t *positions,
                   int64_t heads, int64_t len)
{
    const attn_rope_desc *rope = &r->c->desc.rope;
    const int64_t dim = r->d->dim_qk, n = r->d->batch * len;
    const int64_t half = (rope->rotary_dim ? rope->rotary_dim : dim) / 2;
    double *frequency = calloc((size_t)half, sizeof(double)), factor;
    double *cosines = calloc((size_t)(n * half), sizeof(double));
    double *sines = calloc((size_t)(n * half), sizeof(double));
    int64_t *places = calloc((size_t)n, sizeof *places);

    for (int64_t i = 0; i < n; i++)
        places[i] = positions ? positions[i] : i % len;
    assert_int_equal(
        attn_ref_rope_frequencies(rope, dim, 1, frequency, &factor), ATTN_OK);
    attn_ref_rope_angles(n, places, half, frequency, factor, cosines, sines);
    for (int64_t row = 0; row < r->d->batch * heads * len; row++) {
        const int64_t at = (row / len / heads * len + row % len) * half;

        turn_deviations(f.e + row * dim, rope, half, cosines + at,
                        sines + at);
    }
    attn_ref_rope(r->d->batch, heads, len, dim, half, rope->interleaved,
                  cosines, sines, f.v, f.v);
    for (int64_t i = 0; i < r->d->batch * heads * len * dim; i++)
        f.e[i] = hypot(f.e[i], r->t * f.v[i]);
    free(frequency);
    free(cosines);
    free(sines);
    free(places);
}

/* ------------------------------------------------------------- attention */

static attn_ref_problem problem_of(const layer_case *c, int64_t *offsets,
                                   double *dropout)
{
    const attn_desc *d = &c->desc.attention;
    attn_ref_problem p;

    attn_ref_problem_init(&p, d->batch, d->heads_q, d->heads_kv, d->len_q,
                          d->len_k, d->dim_qk, d->dim_v);
    p.scale = d->scale;
    p.softcap = d->softcap;
    p.causal = d->causal;
    p.window_left = d->window_left;
    p.window_right = d->window_right;
    for (int64_t b = 0; b < d->batch; b++)
        offsets[b] = attn_ref_q_offset(
            d->causal, d->len_q, d->len_k,
            c->k_lengths ? c->k_lengths[b] : d->len_k);
    p.q_offset = offsets;
    p.k_lengths = c->k_lengths;
    p.mask = c->mask;
    if (c->mask)
        p.mask_stride[2] = d->len_k;
    p.mask_stride[3] = 1;
    p.bias = c->in[BIAS].at;
    p.bias_stride[1] = d->len_k;
    p.bias_stride[3] = 1;
    p.sinks = c->in[SINKS].at;
    p.alibi_slopes = c->in[SLOPES].at;
    p.slopes_stride[0] = d->heads_q;
    p.slopes_stride[1] = 1;
    if (d->dropout_p > 0) {
        attn_ref_dropout(d->batch, d->heads_q, d->len_q, d->len_k,
                         d->dropout_p, 42, 0, 0, NULL, dropout);
        p.dropout = dropout;
    }
    return p;
}

/* The deviation of a pair's score; `extra` is its bias and slope. */
static double score_deviation(const reference *r, const double *q,
                              const double *e_q, const double *k,
                              const double *e_k, double extra)
{
    const int64_t dim = r->d->dim_qk;
    double sum = 0, size = 0, carried = 0;

    for (int64_t c = 0; c < dim; c++) {
        sum += q[c] * k[c];
        size += square(q[c] * k[c]);
        carried += square(e_q[c] * k[c]) + square(q[c] * e_k[c]);
    }
    return sqrt(square(r->d->scale) *
                    (carried + square(r->u) * (double)(dim + 4) *
                                   fmax(square(sum), size)) +
                square(2 * r->u * extra));
}

/* The pairs of row (b, h, i) that count: weights as applied, e_s. */
static void row_deviations(const reference *r, const attn_ref_problem *p,
                           const field *q, const field *k,
                           const double *weights, int64_t b, int64_t h,
                           int64_t i, double *e_s)
{
    const attn_desc *d = r->d;
    const int64_t q_at = ((b * d->heads_q + h) * d->len_q + i) * d->dim_qk;
    const int64_t group = d->heads_q / d->heads_kv;

    for (int64_t j = 0; j < d->len_k; j++) {
        const int64_t k_at =
            ((b * d->heads_kv + h / group) * d->len_k + j) * d->dim_qk;
        double extra = 0;

        if (p->bias)
            extra += fabs(p->bias[h * d->len_k + j]);
        if (p->alibi_slopes)
            extra += fabs(p->alibi_slopes[b * d->heads_q + h] *
                          (double)(i + p->q_offset[b] - j));
        e_s[j] = weights[j] == 0
                     ? 0
                     : score_deviation(r, q->v + q_at, q->e + q_at,
                                       k->v + k_at, k->e + k_at, extra);
    }
}

/* Component c of a row of o. `v` is at key 0. */
static double output_deviation(const reference *r, const double *weights,
                               const double *dropout, const double *e_s,
                               const double *v, const double *e_v, double o)
{
    const attn_desc *d = r->d;
    double from_scores = 0, from_v = 0, size = 0;

    for (int64_t j = 0; j < d->len_k; j++) {
        const double kept = dropout ? dropout[j] : 1;
        const double p = weights[j] * kept, x = v[j * d->dim_v];

        if (weights[j] == 0)
            continue;
        from_scores += weights[j] * e_s[j] * fabs(kept * x - o);
        from_v += square(p * e_v[j * d->dim_v]);
        size += square(p * x);
    }
    return sqrt(square(from_scores) + from_v + square(r->t * o) +
                square(4 * r->u + r->t) * size +
                square(r->u) * (68 + (double)d->len_k / 64) *
                    fmax(square(o), size));
}

static void attention_deviations(const reference *r,
                                 const attn_ref_problem *p, const field *q,
                                 const field *k, const field *v,
                                 const double *weights, const field *o)
{
    const attn_desc *d = r->d;
    double *e_s = calloc((size_t)d->len_k, sizeof *e_s);

    for (int64_t row = 0; row < d->batch * d->heads_q * d->len_q; row++) {
        const int64_t b = row / d->len_q / d->heads_q;
        const int64_t h = row / d->len_q % d->heads_q;
        const int64_t kv_head = h / (d->heads_q / d->heads_kv);
        const int64_t v_at =
            (b * d->heads_kv + kv_head) * d->len_k * d->dim_v;

        row_deviations(r, p, q, k, weights + row * d->len_k, b, h,
                       row % d->len_q, e_s);
        for (int64_t c = 0; c < d->dim_v; c++)
            o->e[row * d->dim_v + c] = output_deviation(
                r, weights + row * d->len_k,
                p->dropout ? p->dropout + row * d->len_k : NULL, e_s,
                v->v + v_at + c, v->e + v_at + c, o->v[row * d->dim_v + c]);
    }
    free(e_s);
}

static field attend(const reference *r, const field *q, const field *k,
                    const field *v, double *lse)
{
    const attn_desc *d = r->d;
    const int64_t rows = d->batch * d->heads_q * d->len_q;
    int64_t *offsets = calloc((size_t)d->batch, sizeof *offsets);
    double *weights = calloc((size_t)(rows * d->len_k), sizeof *weights);
    double *dropout = calloc((size_t)(rows * d->len_k), sizeof *dropout);
    const attn_ref_problem p = problem_of(r->c, offsets, dropout);
    field o = make(rows * d->dim_v);
    const attn_ref_results results = {
        .o = o.v, .lse = lse, .weights = weights};

    assert_int_equal(attn_ref_forward(NULL, &p, q->v, k->v, v->v, &results),
                     ATTN_OK);
    if (r->deviations)
        attention_deviations(r, &p, q, k, v, weights, &o);
    free(offsets);
    free(weights);
    free(dropout);
    return o;
}

/* ----------------------------------------------------------------- layer */

/* Heads side by side: (batch, len, heads * dim_v). */
static field beside(const reference *r, field o)
{
    const attn_desc *d = r->d;
    const int64_t width = d->heads_q * d->dim_v;
    field flat = make(d->batch * d->len_q * width);

    for (int64_t row = 0; row < d->batch * d->len_q; row++)
        for (int64_t n = 0; n < width; n++) {
            const int64_t b = row / d->len_q, i = row % d->len_q;
            const int64_t from =
                ((b * d->heads_q + n / d->dim_v) * d->len_q + i) * d->dim_v +
                n % d->dim_v;

            flat.v[row * width + n] = o.v[from];
            flat.e[row * width + n] = o.e[from];
        }
    return flat;
}

static void finish(const reference *r, const field *o, double *y, double *e)
{
    const values *w = &r->c->in[W_O];
    const int64_t width = r->d->heads_q * r->d->dim_v;
    const int64_t rows = r->d->batch * r->d->len_q;
    double ignored;

    if (!w->at) {
        memcpy(y, o->v, (size_t)(rows * width) * sizeof *y);
        if (e)
            memcpy(e, o->e, (size_t)(rows * width) * sizeof *e);
        return;
    }
    for (int64_t row = 0; row < rows; row++)
        for (int64_t n = 0; n < w->shape[1]; n++)
            product(r, o->v + row * width, o->e + row * width, w,
                    &r->c->in[B_O], n, &y[row * w->shape[1] + n],
                    e ? &e[row * w->shape[1] + n] : &ignored);
}

static double storage_roundoff(attn_dtype dtype)
{
    return dtype == ATTN_F64    ? 0x1p-53
           : dtype == ATTN_F32  ? 0x1p-24
           : dtype == ATTN_BF16 ? 0x1p-8
                                : 0x1p-11;
}

void layer_ref(const layer_case *c, double *y, double *y_bound, double *lse)
{
    const attn_desc *d = &c->desc.attention;
    const reference r = {c, d, c->dtype == ATTN_F64 ? 0x1p-53 : 0x1p-24,
                         storage_roundoff(c->dtype), y_bound != NULL};
    const values *keys = c->in[X_KV].at ? &c->in[X_KV] : &c->in[X];
    field q = project(&r, &c->in[X], &c->in[W_Q], &c->in[B_Q], d->heads_q);
    field k = project(&r, keys, &c->in[W_K], &c->in[B_K], d->heads_kv);
    field v = project(&r, keys, &c->in[W_V], &c->in[B_V], d->heads_kv);
    field o, flat;

    norm(&r, q, &c->in[G_Q], d->heads_q, d->len_q);
    norm(&r, k, &c->in[G_K], d->heads_kv, d->len_k);
    if (c->desc.rotary) {
        rotate(&r, q, c->positions, d->heads_q, d->len_q);
        rotate(&r, k, c->in[X_KV].at ? c->positions_kv : c->positions,
               d->heads_kv, d->len_k);
    }
    o = attend(&r, &q, &k, &v, lse);
    flat = beside(&r, o);
    finish(&r, &flat, y, y_bound);
    drop(q);
    drop(k);
    drop(v);
    drop(o);
    drop(flat);
    for (int64_t i = 0; y_bound && i < c->in[D_Y].n; i++)
        y_bound[i] *= 4;
}
