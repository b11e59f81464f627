/* SPDX-License-Identifier: Apache-2.0
 *
 * An atelier's sketches in C: (q, k, v, out, sizes) by --signature. */
#include <math.h>
#include <stdlib.h>

static void attend(const float *q, const float *k, const float *v, float *out,
                   int b, int n, int m, int h, int g, int d, int e, int tiled)
{
    double *p = malloc(sizeof *p * (size_t)(m + 1));

    for (int x = 0; p && x < b * n * h; x++) {
        const int y = x % h, first = x / h / n * m, in_turn = y / (h / g);
        const int gg = tiled ? y % g : in_turn;
        double top = -INFINITY, z = 0;

        for (int j = 0; j < m; j++) {
            const float *row = k + ((first + j) * g + gg) * d;

            p[j] = 0;
            for (int c = 0; c < d; c++)
                p[j] += (double)q[x * d + c] * row[c];
            p[j] /= sqrt(d);
            top = fmax(top, p[j]);
        }
        for (int j = 0; j < m; j++)
            z += p[j] = exp(p[j] - top);
        for (int c = 0; c < e; c++) {
            double a = 0;

            for (int j = 0; j < m; j++)
                a += p[j] * v[((first + j) * g + gg) * e + c];
            out[x * e + c] = (float)(a / z);
        }
    }
    free(p);
}

/* (b, n, h, d), grouped heads: in another order of the axes h / g is 0. */
void grouped_rows(const float *q, const float *k, const float *v, float *out,
                  int b, int n, int m, int h, int g, int d, int e)
{
    attend(q, k, v, out, b, n, m, h, g, d, e, 0);
}

void tiled_rows(const float *q, const float *k, const float *v, float *out,
                int b, int n, int m, int h, int g, int d, int e)
{
    attend(q, k, v, out, b, n, m, h, g, d, e, 1);
}
