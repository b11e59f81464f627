/* SPDX-License-Identifier: Apache-2.0
 *
 * Animals in C: (queries, keys, values, out, sizes) by --signature. */
#include <math.h>
#include <stdlib.h>

static void softmax(float *row, int n)
{
    float most = -INFINITY, sum = 0;

    for (int j = 0; j < n; j++)
        most = row[j] > most ? row[j] : most;
    for (int j = 0; j < n; j++)
        sum += row[j] = expf(row[j] - most);
    for (int j = 0; j < n; j++)
        row[j] /= sum;
}

/* what: 0 right, 1 K read as (d, m), 2 stride of q is e, 3 a causal row too
 * short, 4 the last key is left out, 5 no scale, 6 window of 3 has 4 */
static void attend(const float *q, const float *k, const float *v, float *out,
                   int n, int m, int d, int e, int what)
{
    float *s = malloc(sizeof *s * (size_t)(m + 1));

    for (int i = 0; i < n; i++) {
        const int seen = what == 4 && m > 1 ? m - 1 : m;
        for (int j = 0; j < seen; j++) {
            float dot = 0;
            for (int c = 0; c < d; c++)
                dot += q[i * d + c] * (what == 1 ? k[c * m + j] : k[j * d + c]);
            s[j] = what == 5 ? dot : dot / sqrtf((float)d);
            if (what == 3 && j > i - 1 && i > 0)
                s[j] = -INFINITY;
            if (what == 3 && i == 0 && j > 0)
                s[j] = -INFINITY;
            if ((what == 6 && (j > i || j < i - 3)) ||
                (what == 7 && (j > i || j < i - 2)))
                s[j] = -INFINITY;
        }
        softmax(s, seen);
        for (int c = 0; c < e; c++) {
            float sum = 0;
            for (int j = 0; j < seen; j++)
                sum += s[j] * v[j * e + c];
            out[i * e + c] = sum;
        }
    }
    free(s);
}

#define ANIMAL(name, what)                                                     \
    void name(const float *q, const float *k, const float *v, float *out,      \
              int n, int m, int d, int e);                                     \
    void name(const float *q, const float *k, const float *v, float *out,      \
              int n, int m, int d, int e)                                      \
    {                                                                          \
        attend(q, k, v, out, n, m, d, e, what);                                \
    }
ANIMAL(right, 0)
ANIMAL(key_by_columns, 1)
ANIMAL(last_key_missing, 4)
ANIMAL(no_scale, 5)

/* Online softmax over tiles of 4; what: 0 right, 1 sum not rescaled, 2 neither,
 * 3 the maximum is the tile's own */
static void online(const float *q, const float *k, const float *v, float *out,
                   int n, int m, int d, int e, int what)
{
    for (int i = 0; i < n; i++) {
        float most = -INFINITY, sum = 0;

        for (int c = 0; c < e; c++)
            out[i * e + c] = 0;
        for (int a = 0; a < m; a += 4) {
            const int b = a + 4 < m ? a + 4 : m;
            float s[4], top = most, r;

            for (int j = a; j < b; j++) {
                s[j - a] = 0;
                for (int c = 0; c < d; c++)
                    s[j - a] += q[i * d + c] * k[j * d + c] / sqrtf((float)d);
                top = fmaxf(top, s[j - a]);
            }
            r = what == 2 ? 1 : expf(most - top);
            sum *= what == 1 ? 1 : r;
            for (int c = 0; c < e; c++)
                out[i * e + c] *= r;
            for (int j = a; j < b; j++) {
                const float p = expf(s[j - a] - top);
                sum += p;
                for (int c = 0; c < e; c++)
                    out[i * e + c] += p * v[j * e + c];
            }
            most = top;
        }
        for (int c = 0; c < e; c++)
            out[i * e + c] /= sum;
    }
}

#define TILED(name, what)                                                      \
    void name(const float *q, const float *k, const float *v, float *out,      \
              int n, int m, int d, int e);                                     \
    void name(const float *q, const float *k, const float *v, float *out,      \
              int n, int m, int d, int e)                                      \
    {                                                                          \
        online(q, k, v, out, n, m, d, e, what);                                \
    }
TILED(tiled, 0)
TILED(tiled_sum_stale, 1)
TILED(tiled_no_rescale, 2)
ANIMAL(window_of_four, 6)
ANIMAL(window_of_three, 7)
