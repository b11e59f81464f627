/* SPDX-License-Identifier: Apache-2.0
 *
 * A clinic's cases in C: (q, k, v, out, sizes) by --signature. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double dot(const double *x, const double *y, int n)
{
    double sum = 0;

    for (int c = 0; c < n; c++)
        sum += x[c] * y[c];
    return sum;
}

static double dot_f(const float *x, const float *y, int n)
{
    double sum = 0;

    for (int c = 0; c < n; c++)
        sum += (double)x[c] * y[c];
    return sum;
}

void one_head(const double *q, const double *k, const double *v, double *out,
              int n, int m, int d, int e)
{
    double *w = malloc(sizeof *w * (size_t)(m + 1));

    for (int i = 0; i < n; i++) {
        double most = -INFINITY, sum = 0;

        for (int j = 0; j < m; j++) {
            w[j] = dot(q + i * d, k + j * d, d) / sqrt(d);
            most = w[j] > most ? w[j] : most;
        }
        for (int j = 0; j < m; j++)
            sum += w[j] = exp(w[j] - most);
        for (int c = 0; c < e; c++) {
            double total = 0;

            for (int j = 0; j < m; j++)
                total += w[j] * v[j * e + c];
            out[i * e + c] = total / sum;
        }
    }
    free(w);
}

/* The width of a row is rounded up for the vector unit. */
static float *padded(const float *x, int rows, int from, int to)
{
    float *y = calloc((size_t)rows * (size_t)to + 1, sizeof *y);

    for (int r = 0; r < rows; r++)
        memcpy(y + r * to, x + r * from, sizeof *y * (size_t)from);
    return y;
}

void width_rounded_up(const float *q, const float *k, const float *v,
                      float *out, int n, int m, int d, int e)
{
    const int w = (d + 7) / 8 * 8;
    const float scale = 1.0f / sqrtf((float)w);
    float *qp = padded(q, n, d, w), *kp = padded(k, m, d, w);
    float *p = calloc((size_t)m + 1, sizeof *p);

    for (int i = 0; i < n; i++) {
        float top = -FLT_MAX, sum = 0;

        for (int j = 0; j < m; j++) {
            float s = 0;

            for (int c = 0; c < w; c++)
                s += qp[i * w + c] * kp[j * w + c];
            p[j] = s * scale;
            top = p[j] > top ? p[j] : top;
        }
        for (int j = 0; j < m; j++)
            sum += p[j] = expf(p[j] - top);
        for (int c = 0; c < e; c++) {
            float total = 0;

            for (int j = 0; j < m; j++)
                total += p[j] * v[j * e + c];
            out[i * e + c] = total / sum;
        }
    }
    free(qp);
    free(kp);
    free(p);
}

/* h heads of q, g of k and v, in one pass over the keys. */
void groups_by_modulo(const float *q, const float *k, const float *v, float *o,
                      int h, int g, int n, int m, int d, int e)
{
    double *total = malloc(sizeof *total * (size_t)(e + 1));

    for (int r = 0; r < h * n; r++) {
        const float *kh = k + r / n % g * m * d, *vh = v + r / n % g * m * e;
        double most = -INFINITY, sum = 0;

        memset(total, 0, sizeof *total * (size_t)e);
        for (int j = 0; j < m; j++) {
            const double s = dot_f(q + r * d, kh + j * d, d) / sqrt(d);
            const double new_most = fmax(s, most), p = exp(s - new_most);
            const double factor = exp(most - new_most);

            sum = sum * factor + p;
            for (int c = 0; c < e; c++)
                total[c] = total[c] * factor + p * vh[j * e + c];
            most = new_most;
        }
        for (int c = 0; c < e; c++)
            o[r * e + c] = (float)(total[c] / sum);
    }
    free(total);
}

/* Right, and causal with the queries at the end. */
void groups_causal(const double *q, const double *k, const double *v,
                   double *o, int h, int g, int n, int m, int d, int e)
{
    for (int r = 0; r < h * n; r++) {
        const int kv = r / n / (h / g), seen = r % n + m - n + 1;

        if (seen > 0)
            one_head(q + r * d, k + kv * m * d, v + kv * m * e, o + r * e, 1,
                     seen < m ? seen : m, d, e);
        else
            memset(o + r * e, 0, sizeof *o * (size_t)e);
    }
}

/* Causal: each row sees the keys up to its own number. */
void rows_count_from_zero(const double *q, const double *k, const double *v,
                          double *out, int n, int m, int d, int e)
{
    for (int i = 0; i < n; i++)
        one_head(q + i * d, k, v, out + i * e, 1, i + 1 < m ? i + 1 : m, d, e);
}

/* Keys in blocks of four; what is left of them is left out. */
void blocks_of_four(const float *q, const float *k, const float *v, float *out,
                    int n, int m, int d, int e)
{
    const int last = m >= 4 ? m / 4 * 4 : m;

    groups_by_modulo(q, k, v, out, 1, 1, n, last, d, e);
}

/* The maximum is never below 0. */
void maximum_from_zero(const double *q, const double *k, const double *v,
                       double *out, int n, int m, int d, int e)
{
    double *s = malloc(sizeof *s * (size_t)(m + 1));

    for (int i = 0; i < n; i++) {
        double most = 0, sum = 0;

        for (int j = 0; j < m; j++) {
            s[j] = dot(q + i * d, k + j * d, d) / sqrt(d);
            most = fmax(s[j], most);
        }
        memset(out + i * e, 0, sizeof *out * (size_t)e);
        for (int j = 0; j < m; j++) {
            const double p = exp(s[j] - most);

            sum += p;
            for (int c = 0; c < e; c++)
                out[i * e + c] += p * v[j * e + c];
        }
        for (int c = 0; c < e; c++)
            out[i * e + c] /= sum;
    }
    free(s);
}

/* No scale, and the wrong heads. */
void modulo_unscaled(const float *q, const float *k, const float *v, float *o,
                     int h, int g, int n, int m, int d, int e)
{
    float *scaled = malloc(sizeof *scaled * (size_t)(h * n * d + 1));

    for (int x = 0; x < h * n * d; x++)
        scaled[x] = q[x] * sqrtf((float)d);
    groups_by_modulo(scaled, k, v, o, h, g, n, m, d, e);
    free(scaled);
}

void crashes(const double *q, const double *k, const double *v, double *out,
             int n, int m, int d, int e)
{
    volatile double *p = (double *)(size_t)8;

    *p = q[0] + k[0] + v[0];
    out[0] = *p + n + m + d + e;
}

void aborts(const double *q, const double *k, const double *v, double *out,
            int n, int m, int d, int e)
{
    for (int x = 0; x < n * e; x++)
        out[x] = q[0] + k[0] + v[0] + m + d;
    abort();
}
