/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverse frequencies of rotary embedding (Su et al. 2021) under every
 * scaling. Formulas as in Hugging Face transformers' rope utilities; yarn:
 * Peng et al. 2023; longrope: Ding et al. 2024. With d = rotary_dim:
 *
 *   plain     base^(-2m/d)
 *   linear    plain / factor
 *   ntk       base := base * factor^(d/(d-2))
 *   dynamic   base := base * (factor L/M - (factor - 1))^(d/(d-2)),
 *             M = max_position, L = max(seq_len, M)
 *   yarn      plain/factor and plain, blended over a range of m
 *   longrope  plain / (long or short)_factor[m]
 *   llama3    plain, plain/factor, or a blend, by wavelength */
#include "position/rope_frequencies.h"

#include "core/diag.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

void attn_rope_init(attn_rope_desc *desc)
{
    memset(desc, 0, sizeof *desc);
    desc->size = sizeof *desc;
    desc->base = 10000;
}

static double plain(double base, int64_t rotary_dim, int64_t m)
{
    return pow(base, -2.0 * (double)m / (double)rotary_dim);
}

/* base * ratio^(d/(d-2)); with one pair alone its frequency is 1 anyway. */
static double stretched_base(double base, double ratio, int64_t rotary_dim)
{
    const double d = (double)rotary_dim;

    return rotary_dim > 2 ? base * pow(ratio, d / (d - 2)) : base;
}

static double dynamic_base(const attn_rope_desc *d, int64_t rotary_dim,
                           int64_t seq_len)
{
    const double longest = (double)d->max_position;
    const double len = fmax((double)seq_len, longest);

    return stretched_base(d->base, d->factor * len / longest - (d->factor - 1),
                          rotary_dim);
}

/* The pair whose wavelength makes r turns within the original length. */
static double yarn_pair(const attn_rope_desc *d, double rotary_dim,
                        double original, double turns)
{
    return rotary_dim * log(original / (turns * 2 * PI)) / (2 * log(d->base));
}

static double original_length(const attn_rope_desc *d)
{
    return (double)(d->original_max_position ? d->original_max_position
                                             : d->max_position);
}

static double yarn(const attn_rope_desc *d, int64_t rotary_dim, int64_t m)
{
    const double dim = (double)rotary_dim, original = original_length(d);
    const double inv_freq = plain(d->base, rotary_dim, m);
    double low =
        yarn_pair(d, dim, original, d->beta_fast != 0 ? d->beta_fast : 32);
    double high =
        yarn_pair(d, dim, original, d->beta_slow != 0 ? d->beta_slow : 1);
    double ramp;

    if (!d->no_truncate) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, dim - 1);
    if (low == high)
        high += 0.001;
    ramp = fmin(fmax(((double)m - low) / (high - low), 0), 1);
    return inv_freq / d->factor * ramp + inv_freq * (1 - ramp);
}

static double llama3(const attn_rope_desc *d, int64_t rotary_dim, int64_t m)
{
    const double inv_freq = plain(d->base, rotary_dim, m);
    const double wavelength = 2 * PI / inv_freq;
    const double original = original_length(d);
    double t;

    if (wavelength < original / d->high_freq_factor)
        return inv_freq;
    if (wavelength > original / d->low_freq_factor)
        return inv_freq / d->factor;
    t = (original / wavelength - d->low_freq_factor) /
        (d->high_freq_factor - d->low_freq_factor);
    return (1 - t) * inv_freq / d->factor + t * inv_freq;
}

double attn__rope_inv_freq(const attn_rope_desc *d, int64_t rotary_dim,
                           int64_t seq_len, int64_t m)
{
    switch (d->scaling) {
    case ATTN_ROPE_LINEAR:
        return plain(d->base, rotary_dim, m) / d->factor;
    case ATTN_ROPE_NTK:
        return plain(stretched_base(d->base, d->factor, rotary_dim), rotary_dim,
                     m);
    case ATTN_ROPE_DYNAMIC:
        return plain(dynamic_base(d, rotary_dim, seq_len), rotary_dim, m);
    case ATTN_ROPE_YARN:
        return yarn(d, rotary_dim, m);
    case ATTN_ROPE_LONGROPE:
        return plain(d->base, rotary_dim, m) /
               ((double)seq_len > original_length(d) ? d->long_factor
                                                     : d->short_factor)[m];
    case ATTN_ROPE_LLAMA3:
        return llama3(d, rotary_dim, m);
    case ATTN_ROPE_PLAIN:
        break;
    }
    return plain(d->base, rotary_dim, m);
}

static double yarn_gain(double mscale, double factor)
{
    return factor > 1 ? 0.1 * mscale * log(factor) + 1 : 1;
}

/* longrope's factor, where only the lengths are given, is their ratio. */
static double longrope_factor(const attn_rope_desc *d)
{
    if (d->factor > 0 || !d->max_position || !d->original_max_position)
        return d->factor;
    return (double)d->max_position / (double)d->original_max_position;
}

double attn__rope_attention_factor(const attn_rope_desc *d)
{
    if (d->attention_factor != 0)
        return d->attention_factor;
    if (d->scaling == ATTN_ROPE_YARN) {
        if (d->mscale != 0 && d->mscale_all_dim != 0)
            return yarn_gain(d->mscale, d->factor) /
                   yarn_gain(d->mscale_all_dim, d->factor);
        return yarn_gain(1, d->factor);
    }
    if (d->scaling == ATTN_ROPE_LONGROPE) {
        const double factor = longrope_factor(d);

        return factor > 1 ? sqrt(1 + log(factor) / log(original_length(d))) : 1;
    }
    return 1;
}

/* --------------------------------------------------------------- checks */

static attn_status require_positive(const char *name, double value,
                                    attn_diag *diag)
{
    ATTN__REQUIRE(isfinite(value) && value > 0, diag, ATTN_E_ARG, name,
                  "must be positive for this scaling, got %g", value);
    return ATTN_OK;
}

static attn_status check_longrope(const attn_rope_desc *d, int64_t rotary_dim,
                                  attn_diag *diag)
{
    ATTN__REQUIRE(d->short_factor && d->long_factor, diag, ATTN_E_ARG,
                  d->short_factor ? "long_factor" : "short_factor",
                  "is required for longrope");
    ATTN__REQUIRE(d->n_factors == rotary_dim / 2, diag, ATTN_E_SHAPE,
                  "n_factors", "must be rotary_dim / 2 = %lld, got %lld",
                  (long long)rotary_dim / 2, (long long)d->n_factors);
    for (int64_t m = 0; m < d->n_factors; m++) {
        ATTN__TRY(require_positive("short_factor", d->short_factor[m], diag));
        ATTN__TRY(require_positive("long_factor", d->long_factor[m], diag));
    }
    return require_positive("original_max_position", original_length(d), diag);
}

static attn_status check_scaling(const attn_rope_desc *d, int64_t rotary_dim,
                                 attn_diag *diag)
{
    if (d->scaling == ATTN_ROPE_LONGROPE)
        return check_longrope(d, rotary_dim, diag);
    if (d->scaling != ATTN_ROPE_PLAIN)
        ATTN__TRY(require_positive("factor", d->factor, diag));
    if (d->scaling == ATTN_ROPE_DYNAMIC) {
        ATTN__TRY(
            require_positive("max_position", (double)d->max_position, diag));
        ATTN__REQUIRE(d->factor >= 1, diag, ATTN_E_ARG, "factor",
                      "must be 1 or more for dynamic, got %g", d->factor);
    }
    if (d->scaling == ATTN_ROPE_YARN)
        ATTN__TRY(require_positive("original_max_position", original_length(d),
                                   diag));
    if (d->scaling == ATTN_ROPE_LLAMA3) {
        ATTN__TRY(require_positive("original_max_position", original_length(d),
                                   diag));
        ATTN__TRY(
            require_positive("low_freq_factor", d->low_freq_factor, diag));
        ATTN__REQUIRE(d->high_freq_factor > d->low_freq_factor, diag,
                      ATTN_E_ARG, "high_freq_factor",
                      "must be above low_freq_factor = %g, got %g",
                      d->low_freq_factor, d->high_freq_factor);
    }
    return ATTN_OK;
}

attn_status attn__rope_check(const attn_rope_desc *d, int64_t dim,
                             int64_t *rotary_dim, attn_diag *diag)
{
    ATTN__REQUIRE(d, diag, ATTN_E_ARG, "desc", "must not be NULL");
    ATTN__REQUIRE(d->size == sizeof *d, diag, ATTN_E_ARG, "size",
                  "%u is not the size of attn_rope_desc; use attn_rope_init",
                  (unsigned)d->size);
    ATTN__REQUIRE((unsigned)d->scaling <= ATTN_ROPE_LLAMA3, diag, ATTN_E_ARG,
                  "scaling", "%d is not a scaling (0 to %d)", (int)d->scaling,
                  (int)ATTN_ROPE_LLAMA3);
    *rotary_dim = d->rotary_dim ? d->rotary_dim : dim;
    ATTN__REQUIRE(*rotary_dim >= 0 && *rotary_dim <= dim &&
                      *rotary_dim % 2 == 0,
                  diag, ATTN_E_SHAPE, "rotary_dim",
                  "must be even and at most dim = %lld, got %lld",
                  (long long)dim, (long long)*rotary_dim);
    ATTN__REQUIRE(isfinite(d->base) && d->base > 0, diag, ATTN_E_ARG, "base",
                  "must be positive, got %g", d->base);
    ATTN__REQUIRE(d->seq_len >= 0, diag, ATTN_E_ARG, "seq_len",
                  "must be 0 (from the positions) or more, got %lld",
                  (long long)d->seq_len);
    ATTN__REQUIRE(isfinite(d->attention_factor), diag, ATTN_E_ARG,
                  "attention_factor", "must be finite, got %g",
                  d->attention_factor);
    return check_scaling(d, *rotary_dim, diag);
}

attn_status attn_rope_frequencies(const attn_rope_desc *desc, int64_t dim,
                                  int64_t seq_len, double *inv_freq,
                                  double *attention_factor, attn_diag *diag)
{
    int64_t rotary_dim;

    ATTN__TRY(attn__rope_check(desc, dim, &rotary_dim, diag));
    ATTN__REQUIRE(inv_freq || rotary_dim == 0, diag, ATTN_E_ARG, "inv_freq",
                  "must not be NULL");
    ATTN__REQUIRE(attention_factor, diag, ATTN_E_ARG, "attention_factor",
                  "must not be NULL");
    if (desc->seq_len)
        seq_len = desc->seq_len;
    for (int64_t m = 0; m < rotary_dim / 2; m++)
        inv_freq[m] = attn__rope_inv_freq(desc, rotary_dim, seq_len, m);
    *attention_factor = attn__rope_attention_factor(desc);
    return attn__ok(diag);
}
