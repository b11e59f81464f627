/* SPDX-License-Identifier: Apache-2.0
 *
 * The layer's descriptor and plan: defaults, and every rule beyond those of
 * the attention inside it. */
#include "core/checked.h"
#include "layer/layer_steps.h"

#include <math.h>
#include <string.h>

/* Widths of tensors; products of two of them are checked where they occur. */
#define MAX_WIDTH (INT64_C(1) << 59)

void attn_layer_desc_init(attn_layer_desc *desc, attn_dtype dtype,
                          int64_t batch, int64_t len, int64_t dim_x,
                          int64_t heads, int64_t heads_kv)
{
    const int64_t dim = heads > 0 ? dim_x / heads : 0;

    memset(desc, 0, sizeof *desc);
    desc->size = sizeof *desc;
    desc->dim_x = dim_x;
    desc->dim_y = dim_x;
    desc->norm_eps = 1e-6;
    attn_desc_init(&desc->attention, dtype, batch, heads, heads_kv, len, len,
                   dim, dim);
    attn_rope_init(&desc->rope);
}

static attn_status validate_width(const char *name, int64_t width,
                                  attn_diag *diag)
{
    ATTN__REQUIRE(width >= 0, diag, ATTN_E_SHAPE, name,
                  "must not be negative, got %lld", (long long)width);
    ATTN__REQUIRE(width <= MAX_WIDTH, diag, ATTN_E_OVERFLOW, name,
                  "%lld is above 2^59", (long long)width);
    return ATTN_OK;
}

static attn_status validate_heads_width(const char *name, int64_t heads,
                                        int64_t dim, attn_diag *diag)
{
    int64_t width;

    ATTN__REQUIRE(attn__mul_i64(heads, dim, &width) && width <= MAX_WIDTH,
                  diag, ATTN_E_OVERFLOW, name,
                  "times the heads, %lld * %lld, is above 2^59",
                  (long long)dim, (long long)heads);
    return ATTN_OK;
}

static attn_status validate_self(const attn_layer_desc *d, attn_diag *diag)
{
    const attn_desc *a = &d->attention;

    ATTN__REQUIRE(d->dim_x_kv > 0 || a->len_k == a->len_q, diag, ATTN_E_SHAPE,
                  "len_k",
                  "is %lld, must be len_q = %lld in self-attention "
                  "(dim_x_kv = 0)",
                  (long long)a->len_k, (long long)a->len_q);
    ATTN__REQUIRE(!(a->inputs & ATTN_WITH_VARLEN), diag, ATTN_E_UNSUPPORTED,
                  "inputs", "a layer takes no packed sequences");
    ATTN__REQUIRE(!(a->inputs & ATTN_WITH_PAGES), diag, ATTN_E_UNSUPPORTED,
                  "inputs", "a layer makes its own keys: no pages");
    return ATTN_OK;
}

/* attn_rope knows the rules; no rows make it check and do nothing else. */
static attn_status validate_rope(const attn_layer_desc *d, attn_diag *diag)
{
    const int64_t shape[2] = {0, d->attention.dim_qk};
    const attn_tensor nothing = attn_dense(NULL, ATTN_F64, 2, shape);

    if (!d->rotary)
        return ATTN_OK;
    return attn_rope(&d->rope, attn_in(nothing),
                     attn_in_dense(NULL, ATTN_I64, 1, shape), nothing, diag);
}

static attn_status validate(const attn_layer_desc *d, attn_diag *diag)
{
    const attn_desc *a = &d->attention;

    ATTN__REQUIRE((unsigned)d->qk_norm <= 1, diag, ATTN_E_ARG, "qk_norm",
                  "%d is not 0 or 1", (int)d->qk_norm);
    ATTN__REQUIRE((unsigned)d->rotary <= 1, diag, ATTN_E_ARG, "rotary",
                  "%d is not 0 or 1", (int)d->rotary);
    ATTN__TRY(validate_width("dim_x", d->dim_x, diag));
    ATTN__TRY(validate_width("dim_x_kv", d->dim_x_kv, diag));
    ATTN__TRY(validate_width("dim_y", d->dim_y, diag));
    ATTN__REQUIRE(isfinite(d->norm_eps) && d->norm_eps >= 0, diag, ATTN_E_ARG,
                  "norm_eps", "must be finite and not negative, got %g",
                  d->norm_eps);
    ATTN__TRY(validate_heads_width("dim_qk", a->heads_q, a->dim_qk, diag));
    ATTN__TRY(validate_heads_width("dim_v", a->heads_q, a->dim_v, diag));
    ATTN__TRY(validate_self(d, diag));
    return validate_rope(d, diag);
}

attn_status attn_layer_plan_init(attn_layer_plan *plan,
                                 const attn_layer_desc *desc, attn_diag *diag)
{
    attn__layer_plan body;
    attn__layer_memory unused;

    ATTN__REQUIRE(plan, diag, ATTN_E_ARG, "plan", "must not be NULL");
    ATTN__REQUIRE(desc, diag, ATTN_E_ARG, "desc", "must not be NULL");
    ATTN__REQUIRE(desc->size == sizeof *desc, diag, ATTN_E_ARG, "size",
                  "%u is not the size of attn_layer_desc; use "
                  "attn_layer_desc_init",
                  (unsigned)desc->size);
    memset(&body, 0, sizeof body);
    body.mark = ATTN__LAYER_MARK;
    body.desc = *desc;
    ATTN__TRY(attn_plan_init(&body.attention, &desc->attention, diag));
    ATTN__TRY(validate(desc, diag));
    ATTN__REQUIRE(attn__layer_divide(&body, ATTN_BACKWARD, 1, NULL, &unused),
                  diag, ATTN_E_OVERFLOW, "batch",
                  "the workspace for batch = %lld, len_q = %lld overflows",
                  (long long)desc->attention.batch,
                  (long long)desc->attention.len_q);
    memset(plan, 0, sizeof *plan);
    memcpy(plan, &body, sizeof body);
    return attn__ok(diag);
}

attn_status attn__layer_plan_open(const attn_layer_plan *plan,
                                  attn__layer_plan *body, attn_diag *diag)
{
    ATTN__REQUIRE(plan, diag, ATTN_E_ARG, "plan", "must not be NULL");
    memcpy(body, plan, sizeof *body);
    ATTN__REQUIRE(body->mark == ATTN__LAYER_MARK, diag, ATTN_E_ARG, "plan",
                  "was not made by attn_layer_plan_init of this version");
    return ATTN_OK;
}
