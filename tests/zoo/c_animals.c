/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as people write it in C, rightly and wrongly: one head, float,
 * rows contiguous; and over (batch, heads, len, dim). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef float (*score_fn)(const float *q, const float *k, int d);

static float dot(const float *x, const float *y, int d)
{
    float t = 0;

    for (int c = 0; c < d; c++)
        t += x[c] * y[c];
    return t;
}

static void softmax_row(float *s, int m)
{
    float max = -INFINITY, sum = 0;

    for (int j = 0; j < m; j++)
        max = fmaxf(max, s[j]);
    for (int j = 0; j < m; j++)
        sum += s[j] = expf(s[j] - max);
    for (int j = 0; j < m; j++)
        s[j] /= sum;
}

static void mix(const float *p, const float *v, float *o, int m, int e)
{
    for (int c = 0; c < e; c++)
        o[c] = 0;
    for (int j = 0; j < m; j++)
        for (int c = 0; c < e; c++)
            o[c] += p[j] * v[j * e + c];
}

void right(const float *q, const float *k, const float *v, float *out, int n,
           int m, int d, int e)
{
    float *s = malloc((size_t)m * sizeof *s);

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++)
            s[j] = dot(q + i * d, k + j * d, d) / sqrtf((float)d);
        softmax_row(s, m);
        mix(s, v, out + i * e, m, e);
    }
    free(s);
}

void no_scale(const float *q, const float *k, const float *v, float *out,
              int n, int m, int d, int e)
{
    float *s = malloc((size_t)m * sizeof *s);

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++)
            s[j] = dot(q + i * d, k + j * d, d);
        softmax_row(s, m);
        mix(s, v, out + i * e, m, e);
    }
    free(s);
}

/* k read as (d, m). */
void wrong_transpose(const float *q, const float *k, const float *v,
                     float *out, int n, int m, int d, int e)
{
    float *s = malloc((size_t)m * sizeof *s);

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++) {
            s[j] = 0;
            for (int c = 0; c < d; c++)
                s[j] += q[i * d + c] * k[c * m + j];
            s[j] /= sqrtf((float)d);
        }
        softmax_row(s, m);
        mix(s, v, out + i * e, m, e);
    }
    free(s);
}

static void windowed(const float *q, const float *k, const float *v,
                     float *out, int n, int m, int d, int e, int first)
{
    float *s = malloc((size_t)m * sizeof *s);

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++)
            s[j] = j <= i && j >= i - first
                       ? dot(q + i * d, k + j * d, d) / sqrtf((float)d)
                       : -INFINITY;
        softmax_row(s, m);
        mix(s, v, out + i * e, m, e);
    }
    free(s);
}

void window_three(const float *q, const float *k, const float *v, float *out,
                  int n, int m, int d, int e)
{
    windowed(q, k, v, out, n, m, d, e, 2);
}

void window_four(const float *q, const float *k, const float *v, float *out,
                 int n, int m, int d, int e)
{
    windowed(q, k, v, out, n, m, d, e, 3);
}

static void online(const float *q, const float *k, const float *v, float *out,
                   int n, int m, int d, int e, int rescale)
{
    for (int i = 0; i < n; i++) {
        float max = -INFINITY, sum = 0, *o = out + i * e;

        for (int c = 0; c < e; c++)
            o[c] = 0;
        for (int j = 0; j < m; j++) {
            const float s = dot(q + i * d, k + j * d, d) / sqrtf((float)d);
            const float top = fmaxf(max, s), was = expf(max - top);
            const float p = expf(s - top);

            sum = sum * was + p;
            for (int c = 0; c < e; c++)
                o[c] = o[c] * (rescale ? was : 1) + p * v[j * e + c];
            max = top;
        }
        for (int c = 0; c < e; c++)
            o[c] /= sum;
    }
}

void online_right(const float *q, const float *k, const float *v, float *out,
                  int n, int m, int d, int e)
{
    online(q, k, v, out, n, m, d, e, 1);
}

void no_rescale(const float *q, const float *k, const float *v, float *out,
                int n, int m, int d, int e)
{
    online(q, k, v, out, n, m, d, e, 0);
}

void naive(const float *q, const float *k, const float *v, float *out, int n,
           int m, int d, int e)
{
    float *s = malloc((size_t)m * sizeof *s);

    for (int i = 0; i < n; i++) {
        float sum = 0;

        for (int j = 0; j < m; j++)
            sum += s[j] =
                expf(dot(q + i * d, k + j * d, d) / sqrtf((float)d));
        for (int j = 0; j < m; j++)
            s[j] /= sum;
        mix(s, v, out + i * e, m, e);
    }
    free(s);
}

/* (batch, heads, len, dim), with causal as an argument; `shift` is the bug. */
static void many(const float *q, const float *k, const float *v, float *out,
                 int b, int h, int g, int n, int m, int d, int e, int causal,
                 int shift, int tile)
{
    for (int x = 0; x < b * h; x++) {
        const int head = x % h;
        const int kv = x / h * g + (tile ? head % g : head / (h / g));
        float *s = malloc((size_t)m * sizeof *s);

        for (int i = 0; i < n; i++) {
            for (int j = 0; j < m; j++)
                s[j] = causal && j > i + m - n + shift
                           ? -INFINITY
                           : dot(q + (x * n + i) * d, k + (kv * m + j) * d,
                                 d) / sqrtf((float)d);
            softmax_row(s, m);
            mix(s, v + kv * m * e, out + (x * n + i) * e, m, e);
        }
        free(s);
    }
}

void grouped(const float *q, const float *k, const float *v, float *out,
             int b, int h, int g, int n, int m, int d, int e, int causal)
{
    many(q, k, v, out, b, h, g, n, m, d, e, causal, 0, 0);
}

void grouped_future(const float *q, const float *k, const float *v,
                    float *out, int b, int h, int g, int n, int m, int d,
                    int e, int causal)
{
    many(q, k, v, out, b, h, g, n, m, d, e, causal, 1, 0);
}

void grouped_tiled(const float *q, const float *k, const float *v, float *out,
                   int b, int h, int g, int n, int m, int d, int e,
                   int causal)
{
    many(q, k, v, out, b, h, g, n, m, d, e, causal, 0, 1);
}

/* The doctor's default signature. */
void usual(const double *q, const double *k, const double *v, double *out,
           long n, long m, long d, long e)
{
    for (long i = 0; i < n; i++) {
        double sum = 0, max = -INFINITY;

        for (long c = 0; c < e; c++)
            out[i * e + c] = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (long j = 0; j < m; j++) {
                double s = 0;

                for (long c = 0; c < d; c++)
                    s += q[i * d + c] * k[j * d + c] / sqrt((double)d);
                if (pass == 0) {
                    max = fmax(max, s);
                    continue;
                }
                s = exp(s - max);
                sum += s;
                for (long c = 0; c < e; c++)
                    out[i * e + c] += s * v[j * e + c];
            }
        }
        for (long c = 0; c < e; c++)
            out[i * e + c] /= sum;
    }
}

void crashes(const float *q, const float *k, const float *v, float *out,
             int n, int m, int d, int e)
{
    volatile int *nowhere = NULL;

    right(q, k, v, out, n, m, d, e);
    *nowhere = 1;
}

void hangs(const float *q, const float *k, const float *v, float *out, int n,
           int m, int d, int e)
{
    right(q, k, v, out, n, m, d, e);
    for (;;)
        pause();
}

void overruns(const float *q, const float *k, const float *v, float *out,
              int n, int m, int d, int e)
{
    right(q, k, v, out, n, m, d, e);
    memset(out + n * e, 0, 16);
}

void writes_inputs(float *q, const float *k, const float *v, float *out,
                   int n, int m, int d, int e)
{
    right(q, k, v, out, n, m, d, e);
    q[0] = 0;
}

void does_nothing(const float *q, const float *k, const float *v, float *out,
                  int n, int m, int d, int e)
{
    (void)q, (void)k, (void)v, (void)out, (void)n, (void)m, (void)d, (void)e;
}
