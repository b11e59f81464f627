/* SPDX-License-Identifier: Apache-2.0
 *
 * The textbook's attention, row by row. */
#include "textbook.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Scores, weights e^(s - m) and their derivative by the raw score, of one row;
 * returns the sum of the weights. */
typedef struct row {
    float *s, *p, *bent, *dp, *ds;
} row;

static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;

    for (int64_t c = 0; c < n; c++)
        sum = sum + a[c] * b[c];
    return sum;
}

static const float *key(const textbook *t, const float *rows, int64_t h,
                        int64_t j, int64_t dim)
{
    return rows + (h / (t->heads_q / t->heads_kv) * t->len_k + j) * dim;
}

static void score_row(const textbook *t, int64_t h, int64_t i, row *r)
{
    const float *q = t->q + (h * t->len_q + i) * t->dim_qk;

    for (int64_t j = 0; j < t->len_k; j++) {
        float s = t->scale * dot(q, key(t, t->k, h, j, t->dim_qk), t->dim_qk);

        r->bent[j] = 1;
        if (t->softcap > 0) {
            const float x = tanhf(s / t->softcap);

            s = t->softcap * x;
            r->bent[j] = 1 - x * x;
        }
        if (t->bias)
            s = s + t->bias[(h * t->len_q + i) * t->len_k + j];
        if (t->slopes)
            s = s - t->slopes[h] * fabsf((float)(i + t->q_offset - j));
        r->s[j] = s;
    }
}

/* Weights before the division; their sum. */
static float softmax_row(const textbook *t, int64_t h, int64_t i, row *r)
{
    const unsigned char *visible =
        t->visible + (h * t->len_q + i) * t->len_k;
    float max = t->sinks ? t->sinks[h] : -INFINITY, sum = 0;

    for (int64_t j = 0; j < t->len_k; j++)
        if (visible[j])
            max = fmaxf(max, r->s[j]);
    for (int64_t j = 0; j < t->len_k; j++) {
        r->p[j] = visible[j] ? expf(r->s[j] - max) : 0;
        sum = sum + r->p[j];
    }
    return t->sinks ? sum + expf(t->sinks[h] - max) : sum;
}

static void output_row(const textbook *t, int64_t h, int64_t i, const row *r,
                       float sum)
{
    float *o = t->o + (h * t->len_q + i) * t->dim_v;

    for (int64_t c = 0; c < t->dim_v; c++) {
        float acc = 0;

        for (int64_t j = 0; j < t->len_k; j++)
            acc = acc + r->p[j] * key(t, t->v, h, j, t->dim_v)[c];
        o[c] = sum > 0 ? acc / sum : 0;
    }
}

static void backward_row(const textbook *t, int64_t h, int64_t i, row *r,
                         float sum)
{
    const int64_t at = h * t->len_q + i;
    const float *d_o = t->d_o + at * t->dim_v;
    const float delta = dot(d_o, t->o + at * t->dim_v, t->dim_v);

    for (int64_t j = 0; j < t->len_k; j++) {
        r->p[j] = sum > 0 ? r->p[j] / sum : 0;
        r->dp[j] = dot(d_o, key(t, t->v, h, j, t->dim_v), t->dim_v);
    }
    for (int64_t j = 0; j < t->len_k; j++) {
        const int64_t g = h / (t->heads_q / t->heads_kv);
        float *dk = t->dk + (g * t->len_k + j) * t->dim_qk;
        float *dv = t->dv + (g * t->len_k + j) * t->dim_v;

        r->ds[j] = r->p[j] * (r->dp[j] - delta) * r->bent[j];
        for (int64_t c = 0; c < t->dim_qk; c++)
            dk[c] = dk[c] + r->ds[j] * t->q[at * t->dim_qk + c];
        for (int64_t c = 0; c < t->dim_v; c++)
            dv[c] = dv[c] + r->p[j] * d_o[c];
    }
    for (int64_t c = 0; c < t->dim_qk; c++) {
        float acc = 0;

        for (int64_t j = 0; j < t->len_k; j++)
            acc = acc + r->ds[j] * key(t, t->k, h, j, t->dim_qk)[c];
        t->dq[at * t->dim_qk + c] = t->scale * acc;
    }
}

void textbook_run(const textbook *t)
{
    const int64_t n_k = t->heads_kv * t->len_k * t->dim_qk;
    float *memory = calloc((size_t)t->len_k * 5 + 1, sizeof *memory);
    row r = {memory, memory + t->len_k, memory + 2 * t->len_k,
             memory + 3 * t->len_k, memory + 4 * t->len_k};

    memset(t->dk, 0, (size_t)n_k * sizeof *t->dk);
    memset(t->dv, 0, (size_t)(t->heads_kv * t->len_k * t->dim_v) *
                         sizeof *t->dv);
    for (int64_t h = 0; h < t->heads_q; h++)
        for (int64_t i = 0; i < t->len_q; i++) {
            float sum;

            score_row(t, h, i, &r);
            sum = softmax_row(t, h, i, &r);
            output_row(t, h, i, &r, sum);
            backward_row(t, h, i, &r, sum);
        }
    for (int64_t n = 0; n < n_k; n++)
        t->dk[n] = t->scale * t->dk[n];
    free(memory);
}
