/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary embedding. Pair m of a vector at position t turns by the angle
 * t inv_freq[m]:
 *
 *   (a, b) -> (a cos - b sin, b cos + a sin)
 *
 * and inv_freq[m] = base^(-2m/d), changed by one of six scalings with the
 * meaning that Hugging Face transformers gives them. d = rotary_dim. */
#include <math.h>
#include <tgmath.h>

#include "ref/ref.h"

#define TWO_PI ((attn_ref_real)6.283185307179586476925286766559005768L)

/* ----------------------------------------------------------- frequencies */

static void plain(int64_t d, attn_ref_real base, attn_ref_real *inv_freq)
{
    for (int64_t m = 0; m < d / 2; m++)
        inv_freq[m] = pow(base, -(attn_ref_real)(2 * m) / (attn_ref_real)d);
}

static void linear(int64_t d, attn_ref_real base, attn_ref_real f,
                   attn_ref_real *inv_freq)
{
    plain(d, base, inv_freq);
    for (int64_t m = 0; m < d / 2; m++)
        inv_freq[m] /= f;
}

/* base' = base stretch^(d / (d - 2)): the slowest pair slows by `stretch`,
 * the fastest is left alone. */
static void ntk(int64_t d, attn_ref_real base, attn_ref_real stretch,
                attn_ref_real *inv_freq)
{
    const attn_ref_real exponent = (attn_ref_real)d / (attn_ref_real)(d - 2);

    plain(d, base * pow(stretch, exponent), inv_freq);
}

/* stretch = f L / M - (f - 1), L = max(seq_len, M), M = max_position */
static attn_ref_real dynamic_stretch(const attn_rope_desc *desc,
                                     int64_t seq_len)
{
    const attn_ref_real f = desc->factor;
    const attn_ref_real m = (attn_ref_real)desc->max_position;
    const attn_ref_real l = fmax((attn_ref_real)seq_len, m);

    return f * l / m - (f - 1);
}

/* c(r) = d ln(N / (2 pi r)) / (2 ln base): the pair that turns r times over
 * the original length N. */
static attn_ref_real yarn_pair(const attn_rope_desc *desc, int64_t d,
                               attn_ref_real turns)
{
    const attn_ref_real n = (attn_ref_real)desc->original_max_position;

    return (attn_ref_real)d * log(n / (TWO_PI * turns)) /
           (2 * log((attn_ref_real)desc->base));
}

/* Between the pairs `low` and `high` a ramp leads from the frequencies as they
 * were to those divided by f. */
static void yarn(const attn_rope_desc *desc, int64_t d, attn_ref_real *inv_freq)
{
    const attn_ref_real fast = desc->beta_fast != 0 ? desc->beta_fast : 32;
    const attn_ref_real slow = desc->beta_slow != 0 ? desc->beta_slow : 1;
    attn_ref_real low = yarn_pair(desc, d, fast);
    attn_ref_real high = yarn_pair(desc, d, slow);

    if (!desc->no_truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, (attn_ref_real)(d - 1));
    if (low == high)
        high += (attn_ref_real)0.001L;
    plain(d, desc->base, inv_freq);
    for (int64_t m = 0; m < d / 2; m++) {
        const attn_ref_real at = ((attn_ref_real)m - low) / (high - low);
        const attn_ref_real ramp = fmin(fmax(at, 0), 1);

        inv_freq[m] = inv_freq[m] / (attn_ref_real)desc->factor * ramp +
                      inv_freq[m] * (1 - ramp);
    }
}

static attn_ref_real yarn_mscale(attn_ref_real factor, attn_ref_real x)
{
    return factor > 1 ? (attn_ref_real)0.1L * x * log(factor) + 1 : 1;
}

static attn_ref_real yarn_attention(const attn_rope_desc *desc)
{
    const attn_ref_real f = desc->factor;

    if (desc->mscale != 0 && desc->mscale_all_dim != 0)
        return yarn_mscale(f, desc->mscale) /
               yarn_mscale(f, desc->mscale_all_dim);
    return yarn_mscale(f, 1);
}

/* A factor of its own for every pair, one set for short sequences and one for
 * long. */
static void longrope(const attn_rope_desc *desc, int64_t d, int64_t seq_len,
                     attn_ref_real *inv_freq)
{
    const double *factors = seq_len > desc->original_max_position
                                ? desc->long_factor
                                : desc->short_factor;

    plain(d, desc->base, inv_freq);
    for (int64_t m = 0; m < d / 2; m++)
        inv_freq[m] /= (attn_ref_real)factors[m];
}

static attn_ref_real longrope_factor(const attn_rope_desc *desc)
{
    if (desc->factor != 0)
        return desc->factor;
    return (attn_ref_real)desc->max_position /
           (attn_ref_real)desc->original_max_position;
}

/* sqrt(1 + ln f / ln N), 1 where nothing is stretched. */
static attn_ref_real longrope_attention(const attn_rope_desc *desc)
{
    const attn_ref_real f = longrope_factor(desc);

    if (f <= 1)
        return 1;
    return sqrt(1 + log(f) / log((attn_ref_real)desc->original_max_position));
}

/* Long waves are divided by f, short ones left, between them a blend. */
static void llama3(const attn_rope_desc *desc, int64_t d,
                   attn_ref_real *inv_freq)
{
    const attn_ref_real n = (attn_ref_real)desc->original_max_position;
    const attn_ref_real f = desc->factor;
    const attn_ref_real low = desc->low_freq_factor;
    const attn_ref_real high = desc->high_freq_factor;

    plain(d, desc->base, inv_freq);
    for (int64_t m = 0; m < d / 2; m++) {
        const attn_ref_real wave = TWO_PI / inv_freq[m];
        const attn_ref_real t = (n / wave - low) / (high - low);

        if (wave > n / low)
            inv_freq[m] /= f;
        else if (wave >= n / high)
            inv_freq[m] = (1 - t) * inv_freq[m] / f + t * inv_freq[m];
    }
}

/* Is every number there without which the scaling has no meaning? */
static bool is_complete(const attn_rope_desc *desc, int64_t d)
{
    const bool original = desc->original_max_position > 0;

    switch (desc->scaling) {
    case ATTN_ROPE_PLAIN:
        return true;
    case ATTN_ROPE_LINEAR:
    case ATTN_ROPE_NTK:
        return desc->factor > 0;
    case ATTN_ROPE_DYNAMIC:
        return desc->factor > 0 && desc->max_position > 0;
    case ATTN_ROPE_YARN:
        return desc->factor > 0 && original;
    case ATTN_ROPE_LONGROPE:
        return original && desc->short_factor && desc->long_factor &&
               desc->n_factors == d / 2;
    case ATTN_ROPE_LLAMA3:
        return desc->factor > 0 && original && desc->low_freq_factor > 0 &&
               desc->high_freq_factor > desc->low_freq_factor;
    }
    return false;
}

attn_status attn_ref_rope_frequencies(const attn_rope_desc *desc, int64_t dim,
                                      int64_t seq_len, attn_ref_real *inv_freq,
                                      attn_ref_real *attention_factor)
{
    const int64_t d = desc->rotary_dim ? desc->rotary_dim : dim;
    const attn_ref_real base = desc->base;
    attn_ref_real attention = 1;

    if (!is_complete(desc, d) || d % 2 != 0 || d < 0 || d > dim)
        return ATTN_E_ARG;
    if (desc->seq_len > 0)
        seq_len = desc->seq_len;
    if (desc->scaling == ATTN_ROPE_LINEAR)
        linear(d, base, desc->factor, inv_freq);
    else if (desc->scaling == ATTN_ROPE_NTK)
        ntk(d, base, desc->factor, inv_freq);
    else if (desc->scaling == ATTN_ROPE_DYNAMIC)
        ntk(d, base, dynamic_stretch(desc, seq_len), inv_freq);
    else if (desc->scaling == ATTN_ROPE_YARN)
        yarn(desc, d, inv_freq);
    else if (desc->scaling == ATTN_ROPE_LONGROPE)
        longrope(desc, d, seq_len, inv_freq);
    else if (desc->scaling == ATTN_ROPE_LLAMA3)
        llama3(desc, d, inv_freq);
    else
        plain(d, base, inv_freq);
    if (desc->scaling == ATTN_ROPE_YARN)
        attention = yarn_attention(desc);
    if (desc->scaling == ATTN_ROPE_LONGROPE)
        attention = longrope_attention(desc);
    *attention_factor =
        desc->attention_factor != 0 ? desc->attention_factor : attention;
    return ATTN_OK;
}

void attn_ref_rope_angles(int64_t n, const int64_t *positions, int64_t half,
                          const attn_ref_real *inv_freq,
                          attn_ref_real attention_factor,
                          attn_ref_real *cosines, attn_ref_real *sines)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t m = 0; m < half; m++) {
            const attn_ref_real angle =
                (attn_ref_real)positions[i] * inv_freq[m];

            cosines[i * half + m] = attention_factor * cos(angle);
            sines[i * half + m] = attention_factor * sin(angle);
        }
    }
}

/* -------------------------------------------------------------- rotation */

/* One vector; `sign` 1 turns forwards, -1 is the transpose. */
static void turn(int64_t dim, int64_t half, bool interleaved,
                 attn_ref_real sign, const attn_ref_real *cosines,
                 const attn_ref_real *sines, const attn_ref_real *x,
                 attn_ref_real *y)
{
    for (int64_t m = 0; m < half; m++) {
        const int64_t ia = interleaved ? 2 * m : m;
        const int64_t ib = interleaved ? 2 * m + 1 : m + half;
        const attn_ref_real a = x[ia], b = x[ib];

        y[ia] = a * cosines[m] - sign * b * sines[m];
        y[ib] = b * cosines[m] + sign * a * sines[m];
    }
    for (int64_t c = 2 * half; c < dim; c++)
        y[c] = x[c];
}

static void turn_all(int64_t batch, int64_t heads, int64_t len, int64_t dim,
                     int64_t half, bool interleaved, attn_ref_real sign,
                     const attn_ref_real *cosines, const attn_ref_real *sines,
                     const attn_ref_real *x, attn_ref_real *y)
{
    for (int64_t r = 0; r < batch * heads * len; r++) {
        const int64_t b = r / len / heads, i = r % len;
        const int64_t at = (b * len + i) * half;

        turn(dim, half, interleaved, sign, cosines + at, sines + at,
             x + r * dim, y + r * dim);
    }
}

void attn_ref_rope(int64_t batch, int64_t heads, int64_t len, int64_t dim,
                   int64_t half, int32_t interleaved,
                   const attn_ref_real *cosines, const attn_ref_real *sines,
                   const attn_ref_real *x, attn_ref_real *y)
{
    turn_all(batch, heads, len, dim, half, interleaved != 0, 1, cosines, sines,
             x, y);
}

void attn_ref_rope_backward(int64_t batch, int64_t heads, int64_t len,
                            int64_t dim, int64_t half, int32_t interleaved,
                            const attn_ref_real *cosines,
                            const attn_ref_real *sines, const attn_ref_real *dy,
                            attn_ref_real *dx)
{
    turn_all(batch, heads, len, dim, half, interleaved != 0, -1, cosines, sines,
             dy, dx);
}
