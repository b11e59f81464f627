/* SPDX-License-Identifier: Apache-2.0
 *
 * One query and one key at every pair of places: under RoPE their score depends
 * on the distance alone; with sines added to them it does not. */
#include <math.h>
#include <string.h>

#include "lab/workbench.h"

#define PLACES 16

/* Rows 0, 1, 2, ... of one vector, turned by their places. */
static double *turned(lab *l, const double *vector, int64_t dim)
{
    const int64_t shape[2] = {PLACES, dim};
    int64_t places[PLACES];
    const int64_t n = PLACES;
    double *x = attn__lab_numbers(l, PLACES, dim);
    attn_rope_desc desc;

    for (int64_t i = 0; x && i < PLACES; i++) {
        places[i] = i;
        memcpy(x + i * dim, vector, (size_t)dim * sizeof *x);
    }
    if (!x)
        return NULL;
    attn_rope_init(&desc);
    l->status = attn_rope(&desc, attn_in_dense(x, ATTN_F64, 2, shape),
                          attn_in_dense(places, ATTN_I64, 1, &n),
                          attn_dense(x, ATTN_F64, 2, shape), l->diag);
    return l->status == ATTN_OK ? x : NULL;
}

/* The same with the sines and cosines of the places added. */
static double *added(lab *l, const double *vector, int64_t dim)
{
    double *x = attn__lab_numbers(l, PLACES, dim);

    for (int64_t i = 0; x && i < PLACES; i++)
        for (int64_t c = 0; c < dim; c++) {
            const double turn = (double)i / pow(10000, (double)(c - c % 2) /
                                                           (double)dim);

            x[i * dim + c] = vector[c] + (c % 2 ? cos(turn) : sin(turn));
        }
    return x;
}

static double *scores(lab *l, const double *q, const double *k, int64_t dim)
{
    double *s = attn__lab_numbers(l, PLACES, PLACES);

    for (int64_t i = 0; s && i < PLACES; i++)
        for (int64_t j = 0; j < PLACES; j++)
            for (int64_t c = 0; c < dim; c++)
                s[i * PLACES + j] += q[i * dim + c] * k[j * dim + c] /
                                     sqrt((double)dim);
    return s;
}

/* Least and largest score of pairs with i - j = distance. */
static double range(const double *s, int64_t distance, double *least)
{
    double most = -INFINITY;

    *least = INFINITY;
    for (int64_t j = 0; j + distance < PLACES; j++) {
        const double x = s[(j + distance) * PLACES + j];

        *least = fmin(*least, x);
        most = fmax(most, x);
    }
    return most;
}

bool attn__lab_rope(lab *l)
{
    static const char *const columns[] = {"i - j", "RoPE, least", "largest",
                                          "sines added, least", "largest",
                                          NULL};
    double *qs[2], *ks[2], *s[2], most[2] = {0, 0}, size = 1;
    scene given;

    if (!attn__lab_scene(l, 1, 8, &given))
        return false;
    if (given.dim % 2 != 0)
        return attn__lab_refuse(l, ATTN_E_SHAPE, "dim", "must be even, RoPE "
                                "turns pairs");
    if (!attn__lab_table(l, "One query and one key at 16 places", columns,
                         PLACES - 1))
        return false;
    for (int a = 0; a < 2; a++) {
        qs[a] = (a ? added : turned)(l, given.q, given.dim);
        ks[a] = qs[a] ? (a ? added : turned)(l, given.k, given.dim) : NULL;
        s[a] = ks[a] ? scores(l, qs[a], ks[a], given.dim) : NULL;
        if (!s[a])
            return false;
    }
    for (int64_t d = 0; d < PLACES - 1; d++) {
        attn__lab_number(l, d, 0, (double)d);
        for (int a = 0; a < 2; a++) {
            double least;
            const double largest = range(s[a], d, &least);

            attn__lab_number(l, d, 1 + 2 * a, least);
            attn__lab_number(l, d, 2 + 2 * a, largest);
            most[a] = fmax(most[a], largest - least);
            size = fmax(size, fmax(fabs(least), fabs(largest)));
        }
    }
    attn__lab_draw(l, "RoPE", PLACES, PLACES, s[0], NULL);
    attn__lab_draw(l, "sines added", PLACES, PLACES, s[1], NULL);
    l->result->value = "score";
    l->result->conclusion = attn__lab_text(
        l, "Turning q by i and k by j turns their dot product by i - j: at one "
        "distance the scores differ by %s, wherever the pair stands. With "
        "sines added to q and k instead they differ by up to %.3g.",
        most[0] < 1e-12 * size ? "rounding alone" : "more than rounding",
        most[1]);
    return l->result->conclusion != NULL;
}
