/* SPDX-License-Identifier: Apache-2.0
 *
 * Multi-head attention, right and in the four wrong ways that beginners find:
 * each beside the right one, with what betrays it. Written out here, as a wrong
 * one can't be asked of the library. */
#include <math.h>
#include <string.h>

#include "lab/workbench.h"

typedef enum variant {
    RIGHT,
    TRANSPOSE_ALL, /* k.T instead of k.transpose(0, 2, 1) */
    RESHAPE_ONLY,  /* x.reshape(H, L, D), without the transpose */
    WRONG_AXIS,    /* softmax over queries */
    MASK_TURNED,   /* the causal mask transposed */
    VARIANTS
} variant;

typedef struct shapes {
    int64_t heads, len, dim;
} shapes;

typedef struct outcome {
    double *y, *p; /* (len, heads dim), (heads, len, len) */
    double least, most; /* sums of rows of p */
    unsigned char *shown; /* (len, len) */
} outcome;

/* Element (h, i, c) of a projection (len, heads dim), split into heads. */
static double at(const shapes *z, variant v, const double *x, int64_t h,
                 int64_t i, int64_t c)
{
    if (v == RESHAPE_ONLY)
        return x[(h * z->len + i) * z->dim + c];
    return x[(i * z->heads + h) * z->dim + c];
}

/* q @ k.T: element (c, j) of the last two axes of k.T is k[j][c] of the right
 * head; if all three axes are turned, it is k[j, c, h]. */
static double score(const shapes *z, variant v, const double *q,
                    const double *k, int64_t h, int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t c = 0; c < z->dim; c++)
        sum += at(z, v, q, h, i, c) * (v == TRANSPOSE_ALL
                                           ? at(z, v, k, j, c, h)
                                           : at(z, v, k, h, j, c));
    return sum / sqrt((double)z->dim);
}

static bool is_hidden(variant v, int64_t i, int64_t j)
{
    return v == MASK_TURNED ? j < i : j > i;
}

/* exp(s - max) / sum along keys, or along queries. */
static void normalise(const shapes *z, variant v, double *p)
{
    const int64_t n = z->len, along = v == WRONG_AXIS ? n : 1;
    const int64_t across = v == WRONG_AXIS ? 1 : n;

    for (int64_t line = 0; line < n; line++) {
        double *row = p + line * across, most = -INFINITY, sum = 0;

        for (int64_t j = 0; j < n; j++)
            most = fmax(most, row[j * along]);
        for (int64_t j = 0; j < n; j++)
            sum += row[j * along] = exp(row[j * along] - most);
        for (int64_t j = 0; j < n; j++)
            row[j * along] /= sum;
    }
}

static bool attend(lab *l, const shapes *z, variant v, const scene *s,
                   outcome *to)
{
    const int64_t n = z->len;

    to->y = attn__lab_numbers(l, n, z->heads * z->dim);
    to->p = attn__lab_numbers(l, z->heads * n, n);
    to->shown = attn__lab_memory(l, n * n, 1);
    to->least = INFINITY;
    to->most = -INFINITY;
    if (!to->y || !to->p || !to->shown)
        return false;
    for (int64_t i = 0; i < n * n; i++)
        to->shown[i] = !is_hidden(v, i / n, i % n);
    for (int64_t h = 0; h < z->heads; h++) {
        double *p = to->p + h * n * n;

        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++)
                p[i * n + j] = is_hidden(v, i, j)
                                   ? -INFINITY
                                   : score(z, v, s->q, s->k, h, i, j);
        normalise(z, v, p);
        for (int64_t i = 0; i < n; i++) {
            double sum = 0;

            for (int64_t j = 0; j < n; j++) {
                sum += p[i * n + j];
                for (int64_t c = 0; c < z->dim; c++)
                    to->y[(i * z->heads + h) * z->dim + c] +=
                        p[i * n + j] * at(z, v, s->v, h, j, c);
            }
            to->least = fmin(to->least, sum);
            to->most = fmax(to->most, sum);
        }
    }
    return true;
}

/* How far output 0 moves when the last token is another one: causal outputs
 * don't see it. */
static bool leak(lab *l, const shapes *z, variant v, const scene *s,
                 const outcome *before, double *moved)
{
    const int64_t width = z->heads * z->dim, last = (z->len - 1) * width;
    const size_t bytes = (size_t)(z->len * width) * sizeof *s->q;
    scene t = *s;
    double **const parts[3] = {&t.q, &t.k, &t.v};
    outcome after;

    for (int i = 0; i < 3; i++) {
        double *copy = attn__lab_numbers(l, z->len, width);

        if (!copy)
            return false;
        memcpy(copy, *parts[i], bytes);
        for (int64_t c = 0; c < width; c++)
            copy[last + c] += 1;
        *parts[i] = copy;
    }
    if (!attend(l, z, v, &t, &after))
        return false;
    *moved = attn__lab_apart(before->y, after.y, width);
    return true;
}

static bool tell(lab *l, const shapes *z, variant v, const scene *s,
                 const outcome *right)
{
    static const char *const names[VARIANTS] = {
        "right", "k.T of all axes", "reshape without transpose",
        "softmax over queries", "mask transposed"};
    static const char *const betrays[VARIANTS] = {
        "-", "an error unless H = L = D; here head h mixes all heads' keys",
        "head 0 holds only the first tokens, whole",
        "rows don't sum to 1, columns do",
        "Y[0] is not V[0] and moves with the last token"};
    const bool runs = v != TRANSPOSE_ALL ||
                      (z->heads == z->len && z->len == z->dim);
    double moved;
    outcome o;

    attn__lab_word(l, v, 0, names[v]);
    attn__lab_word(l, v, 5, runs ? betrays[v] : "an error, as shapes differ");
    if (!runs) {
        for (int64_t c = 1; c < 5; c++)
            attn__lab_word(l, v, c, "-");
        return true;
    }
    if (!attend(l, z, v, s, &o) || !leak(l, z, v, s, &o, &moved))
        return false;
    attn__lab_number(l, v, 1,
                     attn__lab_apart(o.y, right->y,
                                     z->len * z->heads * z->dim));
    attn__lab_number(l, v, 2, o.least);
    attn__lab_number(l, v, 3, o.most);
    attn__lab_number(l, v, 4, moved);
    return attn__lab_draw(l, names[v], z->len, z->len, o.p, o.shown);
}

bool attn__lab_heads(lab *l)
{
    static const char *const columns[] = {
        "variant", "|Y - right|", "least row sum", "largest",
        "move of Y[0]", "what betrays it", NULL};
    const int64_t heads = l->data->heads > 0 ? l->data->heads : 4;
    outcome right;
    shapes z;
    scene s;

    if (!attn__lab_scene(l, 4, 4 * heads, &s))
        return false;
    if (s.dim % heads != 0 || s.dim != s.dim_v)
        return attn__lab_refuse(l, ATTN_E_SHAPE, "heads", "must divide the "
                                "columns of q, k and v, which are equally "
                                "many");
    z = (shapes){heads, s.len, s.dim / heads};
    if (!attn__lab_table(l, "Multi-head attention, causal", columns,
                         VARIANTS) ||
        !attend(l, &z, RIGHT, &s, &right))
        return false;
    for (int v = RIGHT; v < VARIANTS; v++)
        if (!tell(l, &z, (variant)v, &s, &right))
            return false;
    l->result->conclusion =
        "All that run give the right shape and no error, but only one is "
        "attention. Look at sums of rows, at Y[0] = V[0], and whether the last "
        "token reaches the first output; and test with H, L and D different, "
        "so that wrong axes fail.";
    return true;
}
