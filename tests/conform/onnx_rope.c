/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX RotaryEmbedding, which is given cos and sin. The reference takes them
 * as they are. The kernels form angles themselves, so each pair is turned by
 * a longrope whose only frequency is that pair's angle, at position 1, and
 * whose attention_factor is sqrt(cos^2 + sin^2). */
#include <math.h>
#include <string.h>

#include "onnx.h"

static const char KNOWN_INPUTS[] = "X cos_cache sin_cache position_ids";

typedef struct rotary {
    int64_t batch, heads, len, dim, half;
    int32_t interleaved;
    const double *x;
    double *cosines, *sines; /* (batch, len, half) */
} rotary;

/* The rows of a cache for every token: by position, or as they come. */
static double *rows_of(test_case *c, const rotary *r, const array *cache)
{
    const array *ids = input_named(c, "position_ids");
    const int64_t tokens = r->batch * r->len;
    double *rows = take_reals(c, tokens * r->half);

    if (cache->rank != (ids ? 2 : 3) ||
        cache->shape[cache->rank - 1] != r->half ||
        (!ids && cache->count != tokens * r->half) ||
        (ids && ids->count != tokens))
        refuse(c, "%s does not fit X", cache->name);
    for (int64_t n = 0; n < tokens * r->half; n++) {
        const int64_t token = n / r->half;
        const int64_t row = ids ? (int64_t)ids->x[token] : token;

        if (row < 0 || (row + 1) * r->half > cache->count)
            refuse(c, "a position outside the cache");
        rows[n] = cache->x[row * r->half + n % r->half];
    }
    return rows;
}

/* ------------------------------------------------------------ the kernels */

/* In (0, 2 pi]: a longrope factor has to be positive. */
static double positive_angle(double cosine, double sine)
{
    const double angle = atan2(sine, cosine);

    return angle > 0 ? angle : angle + 2 * acos(-1);
}

/* Turn every pair of token (b, i) by the angle of pair m. */
static double *turn_token(test_case *c, const engine *e, const rotary *r,
                          int64_t token, int64_t m, const double *x)
{
    const double a = r->cosines[token * r->half + m];
    const double b = r->sines[token * r->half + m];
    const double angle = positive_angle(a, b);
    const int64_t one = 1, n = r->heads * r->dim, position = 1;
    double *factors = take_reals(c, r->half), *y = take_reals(c, n);
    void *out = take(c, n, attn_dtype_size(e->dtype));
    attn_rope_desc desc;
    attn_diag diag;

    attn_rope_init(&desc);
    desc.interleaved = r->interleaved;
    desc.rotary_dim = 2 * r->half;
    desc.scaling = ATTN_ROPE_LONGROPE;
    desc.original_max_position = desc.max_position = 4;
    desc.factor = 1;
    desc.attention_factor = hypot(a, b);
    desc.n_factors = r->half;
    desc.short_factor = desc.long_factor = factors;
    for (int64_t f = 0; f < r->half; f++)
        factors[f] = pow(desc.base, -(double)f / (double)r->half) / angle;
    if (attn_rope(&desc,
                  attn_in_bhsd(stored(c, e->dtype, x, n), e->dtype, 1, r->heads,
                               1, r->dim),
                  attn_in_dense(&position, ATTN_I64, 1, &one),
                  attn_bhsd(out, e->dtype, 1, r->heads, 1, r->dim),
                  &diag) != ATTN_OK)
        refuse(c, "%s: %s: %s", e->name, diag.field, diag.message);
    unstored(e->dtype, out, n, y);
    return y;
}

/* The components of pair m, in the vectors of one token. */
static void copy_pair(const rotary *r, int64_t m, int64_t at, double *y,
                      const double *from)
{
    const int64_t a = r->interleaved ? 2 * m : m;
    const int64_t b = r->interleaved ? 2 * m + 1 : m + r->half;

    y[at + a] = from[a];
    y[at + b] = from[b];
}

static void by_kernels(test_case *c, const engine *e, const rotary *r,
                       double *y)
{
    double *x = take_reals(c, r->heads * r->dim);

    for (int64_t token = 0; token < r->batch * r->len; token++) {
        const int64_t b = token / r->len, i = token % r->len;

        for (int64_t m = 0; m < r->half; m++) {
            const double *turned;

            for (int64_t h = 0; h < r->heads; h++)
                memcpy(x + h * r->dim,
                       r->x + ((b * r->heads + h) * r->len + i) * r->dim,
                       (size_t)r->dim * sizeof *x);
            turned = turn_token(c, e, r, token, m, x);
            for (int64_t h = 0; h < r->heads; h++) {
                const int64_t at = ((b * r->heads + h) * r->len + i) * r->dim;

                copy_pair(r, m, at, y, turned + h * r->dim);
                for (int64_t d = 2 * r->half; d < r->dim; d++)
                    y[at + d] = turned[h * r->dim + d];
            }
        }
    }
}

/* ------------------------------------------------------------------- run */

static void run_engine(test_case *c, const engine *e, const rotary *r)
{
    const int64_t n = r->batch * r->heads * r->len * r->dim;
    const bool joined = required_input(c, "X")->rank == 3;
    double *y = take_reals(c, n);

    if (is_reference(e))
        attn_ref_rope(r->batch, r->heads, r->len, r->dim, r->half,
                      r->interleaved, r->cosines, r->sines, r->x, y);
    else
        by_kernels(c, e, r, y);
    onnx_judge(c, e, "Y",
               joined ? join_heads(c, y, r->batch, r->heads, r->len, r->dim)
                      : y);
}

void onnx_rotary_embedding(test_case *c)
{
    const array *x = split_heads(c, required_input(c, "X"),
                                 attribute_integer(c, "num_heads", 0));
    const int64_t rotary_dim = attribute_integer(c, "rotary_embedding_dim", 0);
    rotary r = {.batch = x->shape[0],
                .heads = x->shape[1],
                .len = x->shape[2],
                .dim = x->shape[3],
                .x = x->x};
    const engine *e;

    only_known(c, "interleaved num_heads rotary_embedding_dim", KNOWN_INPUTS,
               "Y");
    r.half = (rotary_dim ? rotary_dim : r.dim) / 2;
    r.interleaved = attribute_integer(c, "interleaved", 0) != 0;
    if (r.half < 1 || 2 * r.half > r.dim)
        refuse(c, "rotary_embedding_dim does not fit X");
    r.cosines = rows_of(c, &r, required_input(c, "cos_cache"));
    r.sines = rows_of(c, &r, required_input(c, "sin_cache"));
    for (int n = 0; (e = onnx_engine(dtype_of_word(x->dtype), n)); n++)
        run_engine(c, e, &r);
}
