/* SPDX-License-Identifier: Apache-2.0
 *
 * The descriptor's defaults, and every rule that it must keep. */
#include "core/checked.h"
#include "core/diag.h"
#include "core/tensor.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

/* The eight ATTN_WITH_ bits of attn.h. A bit that this version does not know
 * may not be passed over: the result would lack what it asks for. */
#define KNOWN_INPUTS UINT32_C(0xff)
/* Positions are sums of a few of these and must fit in 63 bits. */
#define MAX_SIZE (INT64_C(1) << 60)
#define MAX_REACH (INT64_C(1) << 62)

/* Every field that is not named here is 0, and 0 is its default: no mask, no
 * cap, no dropout, empty rows give zero. So fields that later versions append
 * need no code in programs of today. Without dims every score is 0 and the
 * scale means nothing; 1 keeps it finite. */
void attn_desc_init(attn_desc *desc, attn_dtype dtype, int64_t batch,
                    int64_t heads_q, int64_t heads_kv, int64_t len_q,
                    int64_t len_k, int64_t dim_qk, int64_t dim_v)
{
    memset(desc, 0, sizeof *desc);
    desc->size = sizeof *desc;
    desc->dtype = dtype;
    desc->kv_dtype = dtype;
    desc->batch = batch;
    desc->heads_q = heads_q;
    desc->heads_kv = heads_kv;
    desc->len_q = len_q;
    desc->len_k = len_k;
    desc->dim_qk = dim_qk;
    desc->dim_v = dim_v;
    desc->window_left = -1;
    desc->window_right = -1;
    desc->scale = dim_qk > 0 ? 1 / sqrt((double)dim_qk) : 1;
}

/* Two fields for one type, since quantised keys will come; today they must
 * agree. */
static attn_status validate_types(const attn_desc *d, attn_diag *diag)
{
    ATTN__REQUIRE(attn__is_float(d->dtype), diag, ATTN_E_DTYPE, "dtype",
                  "must be f64, f32, bf16 or f16, got %s",
                  attn_dtype_name(d->dtype));
    ATTN__REQUIRE(attn__is_float(d->kv_dtype), diag, ATTN_E_DTYPE, "kv_dtype",
                  "must be f64, f32, bf16 or f16, got %s",
                  attn_dtype_name(d->kv_dtype));
    ATTN__REQUIRE(d->kv_dtype == d->dtype, diag, ATTN_E_UNSUPPORTED,
                  "kv_dtype", "%s differs from dtype = %s",
                  attn_dtype_name(d->kv_dtype), attn_dtype_name(d->dtype));
    return ATTN_OK;
}

/* Enums come from outside and may hold any number. */
static attn_status validate_choices(const attn_desc *d, attn_diag *diag)
{
    ATTN__REQUIRE((unsigned)d->causal <= ATTN_CAUSAL_BOTTOM_RIGHT, diag,
                  ATTN_E_ARG, "causal",
                  "%d is not none (0), top_left (1) or bottom_right (2)",
                  (int)d->causal);
    ATTN__REQUIRE((unsigned)d->empty_rows <= ATTN_EMPTY_NAN, diag, ATTN_E_ARG,
                  "empty_rows", "%d is not zero (0) or nan (1)",
                  (int)d->empty_rows);
    ATTN__REQUIRE((unsigned)d->precision <= ATTN_PRECISION_HIGH, diag,
                  ATTN_E_ARG, "precision",
                  "%d is not standard (0) or high (1)", (int)d->precision);
    ATTN__REQUIRE((unsigned)d->isa_limit <= ATTN_ISA_AMX, diag, ATTN_E_ARG,
                  "isa_limit", "%d is not a level (0 to %d)",
                  (int)d->isa_limit, (int)ATTN_ISA_AMX);
    return ATTN_OK;
}

/* Zero is a size like any other: no rows, no keys, no heads, no dims are
 * problems with an answer. Only heads of keys must exist where there are
 * queries to read them, and each serves the same number of query heads. */
static attn_status validate_sizes(const attn_desc *d, attn_diag *diag)
{
    const struct {
        const char *name;
        int64_t size;
    } sizes[] = {{"batch", d->batch},       {"heads_q", d->heads_q},
                 {"heads_kv", d->heads_kv}, {"len_q", d->len_q},
                 {"len_k", d->len_k},       {"dim_qk", d->dim_qk},
                 {"dim_v", d->dim_v},       {"total_q", d->total_q}};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ATTN__REQUIRE(sizes[i].size >= 0, diag, ATTN_E_SHAPE, sizes[i].name,
                      "must not be negative, got %lld",
                      (long long)sizes[i].size);
        ATTN__REQUIRE(sizes[i].size <= MAX_SIZE, diag, ATTN_E_OVERFLOW,
                      sizes[i].name, "%lld is above 2^60",
                      (long long)sizes[i].size);
    }
    ATTN__REQUIRE(d->heads_kv > 0 || d->heads_q == 0, diag, ATTN_E_SHAPE,
                  "heads_kv", "must be positive, got 0 with heads_q = %lld",
                  (long long)d->heads_q);
    ATTN__REQUIRE(d->heads_kv == 0 || d->heads_q % d->heads_kv == 0, diag,
                  ATTN_E_SHAPE, "heads_kv",
                  "%lld does not divide heads_q = %lld",
                  (long long)d->heads_kv, (long long)d->heads_q);
    return ATTN_OK;
}

/* The work must be countable: batch * heads * rows in 63 bits, with a factor of
 * 8 for the largest element, so that byte offsets into statistics (lse, per-row
 * sums) can't overflow either. Tensors are checked one by one, with their
 * strides, when they come. */
static attn_status validate_products(const attn_desc *d, attn_diag *diag)
{
    int64_t n = attn__max_i64(d->batch, 1);
    const bool fits =
        attn__mul_i64(n, attn__max_i64(d->heads_q, 1), &n) &&
        attn__mul_i64(n,
                      attn__max_i64(attn__max_i64(d->len_q, d->len_k), 1),
                      &n) &&
        attn__mul_i64(n, 8, &n);

    ATTN__REQUIRE(fits, diag, ATTN_E_OVERFLOW, "batch",
                  "batch * heads_q * length = %lld * %lld * %lld overflows",
                  (long long)d->batch, (long long)d->heads_q,
                  (long long)attn__max_i64(d->len_q, d->len_k));
    return ATTN_OK;
}

/* Combinations that have no meaning (yet); each presence alone is legal. */
static attn_status validate_inputs(const attn_desc *d, attn_diag *diag)
{
    const bool varlen = d->inputs & ATTN_WITH_VARLEN;

    ATTN__REQUIRE((d->inputs & ~KNOWN_INPUTS) == 0, diag, ATTN_E_ARG,
                  "inputs", "0x%x has unknown bits",
                  (unsigned)d->inputs);
    ATTN__REQUIRE(!varlen || !(d->inputs & ATTN_WITH_MASK), diag,
                  ATTN_E_UNSUPPORTED, "mask",
                  "a mask cannot go with cu_seqlens");
    ATTN__REQUIRE(!varlen || !(d->inputs & ATTN_WITH_BIAS), diag,
                  ATTN_E_UNSUPPORTED, "bias",
                  "a bias cannot go with cu_seqlens");
    ATTN__REQUIRE(!(d->inputs & ATTN_WITH_PAGES) ||
                      (d->inputs & ATTN_WITH_K_LENGTHS),
                  diag, ATTN_E_MISMATCH, "k_lengths",
                  "is required where K and V are paged (block_table)");
    ATTN__REQUIRE(varlen || d->total_q == 0, diag, ATTN_E_MISMATCH, "total_q",
                  "%lld without varlen; must be 0", (long long)d->total_q);
    return ATTN_OK;
}

/* -1 is "no bound"; 0 is a bound, at the query's own position. What lies below
 * -1 is refused, since in some libraries any negative number means no bound,
 * and in others it is a reach to the other side. */
static attn_status validate_window(const char *name, int64_t window,
                                   attn_diag *diag)
{
    ATTN__REQUIRE(window >= -1, diag, ATTN_E_ARG, name,
                  "must be -1 (unbounded) or more, got %lld",
                  (long long)window);
    ATTN__REQUIRE(window <= MAX_REACH, diag, ATTN_E_ARG, name,
                  "%lld is above 2^62", (long long)window);
    return ATTN_OK;
}

/* Scales of 0, below 0 and infinite are the formula's own business; NaN is
 * nobody's wish. */
static attn_status validate_numbers(const attn_desc *d, attn_diag *diag)
{
    ATTN__REQUIRE(!isnan(d->scale), diag, ATTN_E_ARG, "scale",
                  "must not be NaN");
    ATTN__REQUIRE(isfinite(d->softcap) && d->softcap >= 0, diag, ATTN_E_ARG,
                  "softcap", "must be finite and 0 (off) or more, got %g",
                  d->softcap);
    ATTN__REQUIRE(d->dropout_p >= 0 && d->dropout_p <= 1, diag, ATTN_E_ARG,
                  "dropout_p", "must be in [0, 1], got %g", d->dropout_p);
    return ATTN_OK;
}

/* The dropout counter has 32 bits for each index. */
static attn_status validate_dropout(const attn_desc *d, attn_diag *diag)
{
    const int64_t limit = INT64_C(1) << 32;

    if (!(d->dropout_p > 0))
        return ATTN_OK;
    ATTN__REQUIRE(d->len_q <= limit, diag, ATTN_E_OVERFLOW, "len_q",
                  "%lld is above 2^32, the reach of dropout",
                  (long long)d->len_q);
    ATTN__REQUIRE(d->len_k <= limit, diag, ATTN_E_OVERFLOW, "len_k",
                  "%lld is above 2^32, the reach of dropout",
                  (long long)d->len_k);
    ATTN__REQUIRE(d->batch * attn__max_i64(d->heads_q, 1) <= limit, diag,
                  ATTN_E_OVERFLOW, "batch",
                  "batch * heads_q = %lld * %lld is above 2^32, the reach of "
                  "dropout",
                  (long long)d->batch, (long long)d->heads_q);
    return ATTN_OK;
}

/* In the order of the fields, so that of several mistakes the first one in the
 * struct is named, always the same. Later rules rely on earlier ones: products
 * on sizes being in range, dropout on products. */
attn_status attn__desc_validate(const attn_desc *d, attn_diag *diag)
{
    ATTN__REQUIRE(d->size == sizeof *d, diag, ATTN_E_ARG, "size",
                  "%u is not the size of attn_desc; use attn_desc_init",
                  (unsigned)d->size);
    ATTN__TRY(validate_types(d, diag));
    ATTN__TRY(validate_choices(d, diag));
    ATTN__TRY(validate_sizes(d, diag));
    ATTN__TRY(validate_products(d, diag));
    ATTN__TRY(validate_inputs(d, diag));
    ATTN__TRY(validate_window("window_left", d->window_left, diag));
    ATTN__TRY(validate_window("window_right", d->window_right, diag));
    ATTN__TRY(validate_numbers(d, diag));
    return validate_dropout(d, diag);
}
