/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory a run needs: a shared part (per-row sums of backward, states
 * of a decode) and a slot per thread, counted by the same functions that
 * kernels divide it with. Strides are not known yet, so copies of K and V are
 * counted for whoever may need them. */
#include "core/diag.h"
#include "core/exec.h"
#include "plan/plan.h"

#include <string.h>

/* Rows per tile and size of an accumulator, all that a slot's size depends on
 * besides the dims. */
static attn__tile_shape tile_of(const attn__plan *plan, attn__pass pass)
{
    return attn__kernels[plan->kernel[pass]].tile;
}

/* The slot of a forward or of weights: panels of q, scores and sums of as many
 * rows as share a pass over K and V. */
static bool forward_bytes(const attn__plan *plan, attn__pass pass,
                          size_t *slot)
{
    attn__arena arena = {NULL, 0, false};
    attn__slot unused;

    memset(&unused, 0, sizeof unused); /* no base: the arena only counts */
    (pass == ATTN__PASS_decode ? attn__decode_slot : attn__forward_slot)(
        &arena, &unused, tile_of(plan, pass), (size_t)plan->macro_rows,
        (size_t)plan->desc.dim_qk, (size_t)plan->desc.dim_v);
    *slot = arena.used;
    return !arena.overflow;
}

/* The largest of the three kernels' slots: phases run one after the other and
 * use the same memory. */
static bool backward_bytes(const attn__plan *plan, size_t *slot)
{
    const size_t dim_qk = (size_t)plan->desc.dim_qk;
    const size_t dim_v = (size_t)plan->desc.dim_v;
    attn__arena arenas[3] = {{NULL, 0, false}, {NULL, 0, false},
                             {NULL, 0, false}};
    attn__slot unused;

    memset(&unused, 0, sizeof unused);
    attn__dq_slot(&arenas[0], &unused, tile_of(plan, ATTN__PASS_dq),
                  (size_t)plan->macro_rows, dim_qk, dim_v);
    attn__dkv_slot(&arenas[1], &unused, tile_of(plan, ATTN__PASS_dkv), dim_qk,
                   dim_v);
    attn__dbias_slot(&arenas[2], &unused, tile_of(plan, ATTN__PASS_dbias),
                     dim_qk, dim_v);
    *slot = 0;
    for (size_t i = 0; i < 3; i++) {
        if (arenas[i].overflow)
            return false;
        if (arenas[i].used > *slot)
            *slot = arenas[i].used;
    }
    return true;
}

/* States of a decode: m, l and acc of each row after each segment. They are
 * shared, not in slots: who computes a segment is not who joins them. The
 * capacity counts, so that a growing cache never needs more than was planned;
 * where it is one segment, the kernel finishes rows by itself. */
static bool state_bytes(const attn__plan *plan, size_t *shared)
{
    const attn_desc *d = &plan->desc;
    const int64_t segments = attn__segments(d->len_k);
    size_t bytes;

    *shared = 0;
    if (attn__forward_pass(d) != ATTN__PASS_decode || segments == 1)
        return true;
    return attn__mul_size((size_t)d->batch, (size_t)d->heads_q, &bytes) &&
           attn__mul_size(bytes, (size_t)d->len_q, &bytes) &&
           attn__mul_size(bytes, (size_t)segments, &bytes) &&
           attn__mul_size(bytes, (size_t)d->dim_v + 2, &bytes) &&
           attn__mul_size(bytes, tile_of(plan, ATTN__PASS_decode).real_size,
                          &bytes) &&
           attn__align_size(bytes, ATTN__ALIGN, shared);
}

/* One double per row for each of dsinks and dslopes that may be asked for:
 * whether they are, only the call says. */
static bool shared_bytes(const attn_desc *d, size_t *shared)
{
    const size_t arrays = (d->inputs & ATTN_WITH_SINKS ? 1u : 0u) +
                          (d->inputs & ATTN_WITH_ALIBI ? 1u : 0u);
    const size_t batch =
        d->inputs & ATTN_WITH_VARLEN ? 1 : (size_t)d->batch;
    size_t bytes;

    return attn__mul_size(batch, (size_t)d->heads_q, &bytes) &&
           attn__mul_size(bytes, (size_t)attn__rows_per_head(d), &bytes) &&
           attn__mul_size(bytes, arrays * sizeof(double), &bytes) &&
           attn__align_size(bytes, ATTN__ALIGN, shared);
}

attn__dq_shares attn__dq_shares_of(const attn__plan *plan)
{
    const attn_desc *d = &plan->desc;
    const attn__tile_shape tile = tile_of(plan, ATTN__PASS_dkv);
    const int64_t group = d->heads_kv ? d->heads_q / d->heads_kv : 0;
    const attn__dq_shares none = {0, 0, 0};
    attn__dq_shares shares = {0, attn__key_groups(d->len_k), 0};
    size_t head;

    /* A page may belong to several sequences, and has no rows of its own. */
    if ((d->inputs & ATTN_WITH_PAGES) || group == 0 ||
        d->len_q > INT64_MAX / group)
        return none;
    if (!attn__share_size(tile, d->len_q * group, d->dim_qk,
                          d->inputs & ATTN_WITH_ALIBI, &shares.size) ||
        !attn__mul_size(shares.size, (size_t)shares.groups, &head) ||
        head > plan->share_bytes)
        return none;
    shares.heads = d->batch * d->heads_kv;
    if (head > 0)
        shares.heads = attn__min_i64(shares.heads,
                                     (int64_t)(plan->share_bytes / head));
    return shares;
}

/* Per-row sums, then dq's shares. */
static bool backward_shared(const attn__plan *plan, size_t *shared)
{
    const attn__dq_shares shares = attn__dq_shares_of(plan);

    return shared_bytes(&plan->desc, shared) &&
           attn__add_size(*shared,
                          (size_t)(shares.heads * shares.groups) *
                              shares.size,
                          shared);
}

/* The slot and the shared part of a pass. */
static bool count(const attn__plan *plan, attn_pass pass, size_t *slot,
                  size_t *shared)
{
    size_t weights = 0;

    *shared = 0;
    if (pass == ATTN_BACKWARD)
        return backward_bytes(plan, slot) &&
               backward_shared(plan, shared);
    if (!forward_bytes(plan, ATTN__PASS_weights, &weights))
        return false;
    *slot = weights;
    if (pass == ATTN_WEIGHTS)
        return true;
    if (!forward_bytes(plan, attn__forward_pass(&plan->desc), slot))
        return false;
    if (weights > *slot) /* a forward may also write weights */
        *slot = weights;
    return state_bytes(plan, shared);
}

/* Whether no count can overflow, without counting: a slot takes less than 2^14
 * bytes for each unit of dims, and 2^20 heads of 2^20 rows have 2^44 bytes of
 * sums. */
static bool is_ordinary(const attn_desc *d)
{
    const int64_t most = INT64_C(1) << 20;

    return d->dim_qk <= most && d->dim_v <= most && d->batch <= most &&
           d->heads_q <= most && d->len_q <= most && d->total_q <= most &&
           d->batch * d->heads_q <= most;
}

/* Calls of a few microseconds plan each time, and most go forward: so that is
 * counted now and kept, the rest when it is asked for. */
bool attn__plan_count(attn__plan *plan)
{
    attn_workspace unused;

    return count(plan, ATTN_FORWARD, &plan->slot, &plan->shared) &&
           attn__workspace_of(plan, ATTN_FORWARD, 1, &unused) &&
           (is_ordinary(&plan->desc) ||
            (attn__workspace_of(plan, ATTN_BACKWARD, 1, &unused) &&
             attn__workspace_of(plan, ATTN_WEIGHTS, 1, &unused)));
}

/* size = shared + threads * slot, each aligned, so that slot i begins at
 * shared + i * slot. No two slots share a cache line. */
bool attn__workspace_of(const attn__plan *plan, attn_pass pass,
                        int64_t threads, attn_workspace *workspace)
{
    *workspace = (attn_workspace){0, ATTN__ALIGN, plan->shared, plan->slot};
    if (pass != ATTN_FORWARD &&
        !count(plan, pass, &workspace->slot, &workspace->shared))
        return false;
    return attn__mul_size(workspace->slot, (size_t)threads,
                          &workspace->size) &&
           attn__add_size(workspace->size, workspace->shared,
                          &workspace->size) &&
           workspace->size <= PTRDIFF_MAX; /* pointers into it subtract */
}

attn_status attn_plan_workspace(const attn_plan *plan, attn_pass pass,
                                int64_t threads, attn_workspace *workspace,
                                attn_diag *diag)
{
    attn__plan body;

    ATTN__TRY(attn__plan_open(plan, &body, diag));
    ATTN__REQUIRE((unsigned)pass <= ATTN_WEIGHTS, diag, ATTN_E_ARG, "pass",
                  "%d is not forward (0), backward (1) or weights (2)",
                  (int)pass);
    ATTN__TRY(attn__check_threads(threads, diag));
    ATTN__REQUIRE(workspace, diag, ATTN_E_ARG, "workspace",
                  "must not be NULL");
    ATTN__REQUIRE(attn__workspace_of(&body, pass, threads, workspace), diag,
                  ATTN_E_OVERFLOW, "workspace",
                  "the size for %lld threads overflows", (long long)threads);
    return attn__ok(diag);
}
