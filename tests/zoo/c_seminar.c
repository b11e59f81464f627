/* SPDX-License-Identifier: Apache-2.0
 *
 * A seminar's exercises in C: (q, k, v, o, sizes) by --signature. */
#include <math.h>
#include <stdlib.h>

static double dot(const double *x, const double *y, int n)
{
    double sum = 0;

    for (int c = 0; c < n; c++)
        sum += x[c] * y[c];
    return sum;
}

static float dotf(const float *x, const float *y, long n)
{
    float sum = 0;

    while (n--)
        sum += *x++ * *y++;
    return sum;
}

/* o = softmax(s) v for one row of n scores, which it overwrites. */
static void mix(double *s, const double *v, double *o, int n, int e)
{
    double most = -INFINITY, sum = 0;

    for (int j = 0; j < n; j++)
        most = fmax(most, s[j]);
    for (int j = 0; j < n; j++)
        sum += s[j] = exp(s[j] - most);
    for (int c = 0; c < e; c++) {
        o[c] = 0;
        for (int j = 0; j < n; j++)
            o[c] += s[j] / sum * v[j * e + c];
    }
}

void plain(const double *q, const double *k, const double *v, double *o, int n,
           int m, int d, int e)
{
    double *s = malloc(sizeof *s * (size_t)(m + 1));

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++)
            s[j] = dot(q + i * d, k + j * d, d) / sqrt(d);
        mix(s, v, o + i * e, m, e);
    }
    free(s);
}

/* Four keys at a time, and no loop for what is left. */
void unrolled_by_four(const double *q, const double *k, const double *v,
                      double *o, int n, int m, int d, int e)
{
    double *s = malloc(sizeof *s * (size_t)(m + 4));

    for (int i = 0; i < n; i++) {
        for (int j = 0; j + 4 <= m; j += 4)
            for (int u = 0; u < 4; u++)
                s[j + u] = dot(q + i * d, k + (j + u) * d, d) / sqrt(d);
        mix(s, v, o + i * e, m / 4 * 4, e);
    }
    free(s);
}

/* k taken for (d, m). */
void keys_by_columns(const double *q, const double *k, const double *v,
                     double *o, int n, int m, int d, int e)
{
    double *s = calloc((size_t)(m + 1), sizeof *s);

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++) {
            s[j] = 0;
            for (int c = 0; c < d; c++)
                s[j] += q[i * d + c] * k[c * m + j] / sqrt(d);
        }
        mix(s, v, o + i * e, m, e);
    }
    free(s);
}

/* The sum is not brought down when the maximum goes up. */
void sum_not_rescaled(const double *q, const double *k, const double *v,
                      double *o, int n, int m, int d, int e)
{
    for (int i = 0; i < n; i++) {
        double most = -INFINITY, sum = 0, *row = o + i * e;

        for (int c = 0; c < e; c++)
            row[c] = 0;
        for (int j = 0; j < m; j++) {
            const double s = dot(q + i * d, k + j * d, d) / sqrt(d);
            const double now = fmax(most, s), keep = exp(most - now);

            sum += exp(s - now);
            for (int c = 0; c < e; c++)
                row[c] = row[c] * keep + exp(s - now) * v[j * e + c];
            most = now;
        }
        for (int c = 0; c < e; c++)
            row[c] /= sum;
    }
}

void online(const float *q, const float *k, const float *v, float *o, int n,
            int m, int d, int e)
{
    for (int i = 0; i < n; i++) {
        float most = -INFINITY, sum = 0, *row = o + i * e;

        for (int c = 0; c < e; c++)
            row[c] = 0;
        for (int j = 0; j < m; j++) {
            const float s = dotf(q + i * d, k + j * d, d) / sqrtf((float)d);
            const float now = fmaxf(most, s), keep = expf(most - now);
            const float w = expf(s - now);

            sum = sum * keep + w;
            for (int c = 0; c < e; c++)
                row[c] = row[c] * keep + w * v[j * e + c];
            most = now;
        }
        for (int c = 0; c < e; c++)
            row[c] /= sum;
    }
}

/* exp(scores) as they are. */
void without_maximum(const float *q, const float *k, const float *v, float *o,
                     int n, int m, int d, int e)
{
    for (int i = 0; i < n; i++) {
        float sum = 0, *row = o + i * e;

        for (int c = 0; c < e; c++)
            row[c] = 0;
        for (int j = 0; j < m; j++) {
            const float w =
                expf(dotf(q + i * d, k + j * d, d) / sqrtf((float)d));

            sum += w;
            for (int c = 0; c < e; c++)
                row[c] += w * v[j * e + c];
        }
        for (int c = 0; c < e; c++)
            row[c] /= sum;
    }
}

/* h % g where h / (h_all / g) was meant. */
void groups_by_modulo(const float *q, const float *k, const float *v, float *o,
                      long heads, long groups, long n, long m, long d, long e)
{
    for (long h = 0; h < heads; h++)
        online(q + h * n * d, k + h % groups * m * d, v + h % groups * m * e,
               o + h * n * e, (int)n, (int)m, (int)d, (int)e);
}

void crashes(const double *q, const double *k, const double *v, double *o,
             int n, int m, int d, int e)
{
    volatile double *nowhere = (volatile double *)8;

    (void)q, (void)k, (void)v, (void)o, (void)n, (void)m, (void)d, (void)e;
    *nowhere = 1;
}
