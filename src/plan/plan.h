/* SPDX-License-Identifier: Apache-2.0
 *
 * What the bytes of an attn_plan mean. */
#ifndef ATTN_PLAN_PLAN_H
#define ATTN_PLAN_PLAN_H

#include "attn.h"
#include "kernels/kernels.h"

/* Tells a plan of this version from arbitrary bytes: "attnplan", and the size,
 * which changes with the fields. */
#define ATTN__PLAN_MARK (UINT64_C(0x6174746e706c616e) ^ sizeof(attn__plan))

/* No pointers, only row numbers and counts: a plan is copied as bytes, and is
 * the same in every process that runs this build. */
typedef struct attn__plan {
    uint64_t mark;
    attn_desc desc;
    int64_t macro_rows;            /* rows of one unit of forward and dq */
    size_t share_bytes;            /* most that dq's shares may take */
    int16_t kernel[ATTN__N_PASSES]; /* rows of kernels.def */
    size_t slot, shared;            /* bytes of a forward */
} attn__plan;

_Static_assert(sizeof(attn__plan) <= sizeof(attn_plan), "a plan must fit");

/* Copy the body out of `plan`; E_ARG if it was not made by attn_plan_init. */
attn_status attn__plan_open(const attn_plan *plan, attn__plan *body,
                            attn_diag *diag);

/* Every rule that a descriptor must keep, in the order of its fields. */
attn_status attn__desc_validate(const attn_desc *desc, attn_diag *diag);

/* Kernels and rows per unit for a valid descriptor: the fastest, or the last
 * rows of kernels.def that are right, `wherever_right`. E_UNSUPPORTED where no
 * row takes the type on this CPU within desc.isa_limit. */
attn_status attn__plan_choose(attn__plan *plan, bool wherever_right,
                              attn_diag *diag);

/* For tests: a plan that takes kernels where they do not pay, too. */
attn_status attn__plan_use_every_kernel(attn_plan *plan, attn_diag *diag);

/* Set slot and shared; false where the workspace of any pass overflows. */
bool attn__plan_count(attn__plan *plan);

/* The workspace of a pass; false where a size overflows. Enough for every run
 * within the capacity of the descriptor and with any strides. */
bool attn__workspace_of(const attn__plan *plan, attn_pass pass,
                        int64_t threads, attn_workspace *workspace);

/* Which kernel a forward runs: bits depend on len_q. It is the descriptor's and
 * not the longest of a call, so that a sequence has the same bits whatever else
 * is packed with it. */
static inline attn__pass attn__forward_pass(const attn_desc *d)
{
    return d->len_q <= ATTN__DECODE_QUERIES ? ATTN__PASS_decode
                                            : ATTN__PASS_fwd;
}

/* Segments of the keys that a decode takes apart; at least one. */
static inline int64_t attn__segments(int64_t len_k)
{
    return attn__max_i64(1, attn__ceil_div(len_k, ATTN__SEGMENT_KEYS));
}

/* Where backward forms dq beside dk and dv: bytes of a share of dq (slot.h),
 * shares of a (batch, KV head), and how many of these the shared part of the
 * workspace holds at a time; 0 where it holds none and dq is formed alone. */
typedef struct attn__dq_shares {
    size_t size;
    int64_t groups, heads;
} attn__dq_shares;

attn__dq_shares attn__dq_shares_of(const attn__plan *plan);

/* Rows of the arrays of per-row sums that backward keeps, for one head: of one
 * batch entry, or packed (varlen) of all sequences. A total of 0 was not known
 * when planning, and batch * len_q bounds it. */
static inline int64_t attn__rows_per_head(const attn_desc *d)
{
    if (!(d->inputs & ATTN_WITH_VARLEN))
        return d->len_q;
    return d->total_q ? d->total_q : d->batch * d->len_q;
}

#endif
