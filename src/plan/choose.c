/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a plan: which kernel for each pass, how many rows a unit has. What
 * can change bits looks at dtype, dims, features, len_q and ISA alone. */
#include "core/diag.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

/* Panels of one unit should stay in the second-level cache, of which this is
 * half or a quarter on the CPUs of these years (1 to 2 MiB). It decides no
 * bits: rows do not know of each other. */
#define PANEL_BYTES (512 * 1024)
/* Most bytes that dq's shares may take. One KV head of 65536 rows, dim 64, f32
 * has as many; where they are not enough, dq costs two more products. */
#define SHARE_BYTES ((size_t)64 << 20)
/* A product of two numbers below 2^-126 counts as 0 in tiles. */
#define TILES_MOST_SCALE 0x1p20
/* From where on tiles were faster (docs/kernels.md). */
#define TILES_LEAST_DIM 32
#define TILES_LEAST_DIM_F32 64
#define TILES_LEAST_QUERIES 64
#define TILES_LEAST_QUERIES_F32 1024

/* Whether products by AMX tiles are right. They are made for scores that matter
 * beyond 2^-100; a decode's bits are those of vectors, and so must its
 * backward's be. */
static bool tiles_fit(const attn_desc *d)
{
    return fabs(d->scale) <= TILES_MOST_SCALE && d->dim_qk > 0 &&
           d->dim_v > 0 && d->len_q > ATTN__DECODE_QUERIES &&
           attn__cpu_may_use_amx();
}

/* Whether they are faster than vectors: few products fill no tile, and the
 * three parts of fp32 must be paid for. */
static bool tiles_pay(const attn_desc *d)
{
    const int64_t least = attn__min_i64(d->dim_qk, d->dim_v);

    if (d->dtype == ATTN_F32)
        return d->len_q >= TILES_LEAST_QUERIES_F32 &&
               least >= TILES_LEAST_DIM_F32 &&
               d->dim_qk % ATTN__PART_STEP == 0 &&
               d->dim_v % ATTN__PART_STEP == 0;
    return d->len_q >= TILES_LEAST_QUERIES && least >= TILES_LEAST_DIM;
}

/* The row of a pass's kernel of the highest level that fits, or -1. */
static int16_t best_kernel(const attn_desc *d, int pass, bool tiles)
{
    for (int isa = ATTN_ISA_AMX; isa >= ATTN_ISA_SCALAR; isa--) {
        const int number = attn__kernel_number[pass][d->dtype][isa];
        const attn__kernel_row *row;

        if (number == 0)
            continue;
        row = &attn__kernels[number - 1];
        if ((tiles || row->tile.parts == 0) &&
            attn__cpu_runs(row->needs, row->isa, d->isa_limit))
            return (int16_t)(number - 1);
    }
    return -1;
}

/* Rows that share a pass over K and V: as many whole tiles as the cache
 * holds panels for, at least one. Bits do not depend on it: a run with more
 * threads than units cuts smaller ones. */
static int64_t macro_rows(const attn_desc *d, attn__tile_shape tile)
{
    const int64_t rows = (int64_t)tile.tile_rows;
    const int64_t width = d->dim_qk / 2 + d->dim_v / 2 + 1; /* may be huge */
    const int64_t fit = PANEL_BYTES / 2 / (int64_t)tile.real_size / width;
    const int64_t most =
        tile.parts > 0 ? ATTN__MACRO_ROWS_SPLIT : ATTN__MACRO_ROWS;

    return attn__max_i64(rows, attn__min_i64(most, fit) / rows * rows);
}

/* The choice is made for all passes at once: a plan does not know which of
 * them it will run, and a backward must form the scores of its forward again
 * bit for bit, so both take the same level. */
attn_status attn__plan_choose(attn__plan *plan, bool wherever_right,
                              attn_diag *diag)
{
    const bool tiles = tiles_fit(&plan->desc) &&
                       (wherever_right || tiles_pay(&plan->desc));

    for (int pass = 0; pass < ATTN__N_PASSES; pass++) {
        plan->kernel[pass] = best_kernel(&plan->desc, pass, tiles);
        ATTN__REQUIRE(plan->kernel[pass] >= 0, diag, ATTN_E_UNSUPPORTED,
                      "dtype", "no kernel of this build takes %s",
                      attn_dtype_name(plan->desc.dtype));
    }
    plan->macro_rows = macro_rows(
        &plan->desc, attn__kernels[plan->kernel[ATTN__PASS_fwd]].tile);
    plan->share_bytes = SHARE_BYTES;
    return ATTN_OK;
}

/* Allocates nothing and keeps no pointer of the caller's. `plan` is touched
 * only on success. */
attn_status attn_plan_init(attn_plan *plan, const attn_desc *desc,
                           attn_diag *diag)
{
    attn__plan body;

    ATTN__REQUIRE(plan, diag, ATTN_E_ARG, "plan", "must not be NULL");
    ATTN__REQUIRE(desc, diag, ATTN_E_ARG, "desc", "must not be NULL");
    ATTN__TRY(attn__desc_validate(desc, diag));
    memset(&body, 0, sizeof body);
    body.mark = ATTN__PLAN_MARK;
    body.desc = *desc;
    ATTN__TRY(attn__plan_choose(&body, false, diag));
    /* What cannot be counted is refused here, not in the middle of a run. */
    ATTN__REQUIRE(attn__plan_count(&body), diag, ATTN_E_OVERFLOW, "dim_qk",
                  "the workspace for dim_qk = %lld, dim_v = %lld overflows",
                  (long long)desc->dim_qk, (long long)desc->dim_v);
    /* All bytes, and only on success: plans can be compared, copied and kept,
     * and a failed call leaves the old one. */
    memset(plan, 0, sizeof *plan);
    memcpy(plan, &body, sizeof body);
    return attn__ok(diag);
}

attn_status attn__plan_use_every_kernel(attn_plan *plan, attn_diag *diag)
{
    attn__plan body;

    ATTN__TRY(attn__plan_open(plan, &body, diag));
    ATTN__TRY(attn__plan_choose(&body, true, diag));
    ATTN__REQUIRE(attn__plan_count(&body), diag, ATTN_E_OVERFLOW, "dim_qk",
                  "the workspace overflows");
    memcpy(plan, &body, sizeof body);
    return attn__ok(diag);
}

/* Copied rather than cast: the public attn_plan is an array of bytes, and
 * reading it as another type through a pointer would break the aliasing rules.
 */
attn_status attn__plan_open(const attn_plan *plan, attn__plan *body,
                            attn_diag *diag)
{
    ATTN__REQUIRE(plan, diag, ATTN_E_ARG, "plan", "must not be NULL");
    memcpy(body, plan, sizeof *body); /* a plan's storage may be any bytes */
    ATTN__REQUIRE(body->mark == ATTN__PLAN_MARK, diag, ATTN_E_ARG, "plan",
                  "was not made by attn_plan_init of this version");
    return ATTN_OK;
}
