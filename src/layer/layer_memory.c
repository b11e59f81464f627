/* SPDX-License-Identifier: Apache-2.0
 *
 * The workspace of a layer: one function counts its bytes and hands out its
 * pieces, so that the two cannot disagree. */
#include "core/checked.h"
#include "layer/layer_steps.h"

#include <string.h>

typedef struct division {
    char *base; /* NULL while counting */
    size_t used;
    bool fits;
} division;

static void *take(division *d, size_t bytes)
{
    const size_t at = d->used;

    d->fits = d->fits && attn__align_size(bytes, ATTN__LAYER_ALIGN, &bytes) &&
              attn__add_size(at, bytes, &d->used) && d->used <= PTRDIFF_MAX;
    return d->base && d->fits ? d->base + at : NULL;
}

static void *take_product(division *d, attn_dtype dtype, int32_t rank,
                          const int64_t *shape)
{
    size_t bytes = attn_dtype_size(dtype);

    for (int32_t a = 0; a < rank; a++)
        d->fits = d->fits &&
                  attn__mul_size(bytes, (size_t)shape[a], &bytes);
    return take(d, bytes);
}

static attn_tensor take_dense(division *d, attn_dtype dtype, int32_t rank,
                              const int64_t *shape)
{
    return attn_dense(take_product(d, dtype, rank, shape), dtype, rank, shape);
}

/* (batch, heads, len, dim) in the order (batch, len, heads, dim). */
static attn_tensor take_rows(division *d, const attn_desc *a, int64_t heads,
                             int64_t len, int64_t dim)
{
    const int64_t shape[4] = {a->batch, len, heads, dim};

    return attn_bshd(take_product(d, a->dtype, 4, shape), a->dtype, a->batch,
                     heads, len, dim);
}

static void take_forward(division *d, const attn_layer_desc *desc,
                         attn__layer_memory *m)
{
    const attn_desc *a = &desc->attention;
    const int64_t longest = attn__max_i64(a->len_q, a->len_k);

    m->q = take_rows(d, a, a->heads_q, a->len_q, a->dim_qk);
    m->k = take_rows(d, a, a->heads_kv, a->len_k, a->dim_qk);
    m->v = take_rows(d, a, a->heads_kv, a->len_k, a->dim_v);
    m->o = take_rows(d, a, a->heads_q, a->len_q, a->dim_v);
    if (desc->rotary)
        m->counts = take_dense(d, ATTN_I64, 1, &longest);
}

static void take_backward(division *d, const attn_layer_desc *desc,
                          attn__layer_memory *m)
{
    const attn_desc *a = &desc->attention;
    const int64_t gains[2] = {a->heads_q, a->dim_qk};
    const int64_t lse[3] = {a->batch, a->heads_q, a->len_q};
    const int64_t x[3] = {a->batch, a->len_q, desc->dim_x};
    const int64_t x_kv[3] = {a->batch, a->len_k, desc->dim_x_kv};

    if (desc->qk_norm) {
        m->raw_q = take_rows(d, a, a->heads_q, a->len_q, a->dim_qk);
        m->raw_k = take_rows(d, a, a->heads_kv, a->len_k, a->dim_qk);
        m->sum_dg = take_dense(d, ATTN_F64, 2, gains);
    }
    m->d_o = take_rows(d, a, a->heads_q, a->len_q, a->dim_v);
    m->dq = take_rows(d, a, a->heads_q, a->len_q, a->dim_qk);
    m->dk = take_rows(d, a, a->heads_kv, a->len_k, a->dim_qk);
    m->dv = take_rows(d, a, a->heads_kv, a->len_k, a->dim_v);
    m->lse = take_dense(d, ATTN_F64, 3, lse);
    if (attn_dtype_size(a->dtype) == 2) {
        m->sum_dx = take_dense(d, ATTN_F32, 3, x);
        if (desc->dim_x_kv > 0)
            m->sum_dx_kv = take_dense(d, ATTN_F32, 3, x_kv);
    }
}

/* Attention and products run one after another in the same memory. */
static bool run_bytes(const attn__layer_plan *plan, attn_pass pass,
                      int64_t threads, size_t *bytes)
{
    const attn_pass passes[2] = {ATTN_FORWARD, pass};
    attn_workspace need;

    if (attn_gemm_workspace(plan->desc.attention.dtype, threads, &need,
                            NULL) != ATTN_OK)
        return false;
    *bytes = need.size;
    for (int i = 0; i < 2; i++) {
        if (attn_plan_workspace(&plan->attention, passes[i], threads, &need,
                                NULL) != ATTN_OK)
            return false;
        if (need.size > *bytes)
            *bytes = need.size;
    }
    return true;
}

bool attn__layer_divide(const attn__layer_plan *plan, attn_pass pass,
                        int64_t threads, char *base,
                        attn__layer_memory *memory)
{
    division d = {base, 0, true};

    memset(memory, 0, sizeof *memory);
    take_forward(&d, &plan->desc, memory);
    if (pass == ATTN_BACKWARD)
        take_backward(&d, &plan->desc, memory);
    if (!run_bytes(plan, pass, threads, &memory->run_size))
        return false;
    memory->run = take(&d, memory->run_size);
    memory->size = d.used;
    return d.fits;
}

attn_status attn_layer_workspace(const attn_layer_plan *plan, attn_pass pass,
                                 int64_t threads, attn_workspace *workspace,
                                 attn_diag *diag)
{
    attn__layer_plan body;
    attn__layer_memory memory;

    ATTN__TRY(attn__layer_plan_open(plan, &body, diag));
    ATTN__REQUIRE(pass == ATTN_FORWARD || pass == ATTN_BACKWARD, diag,
                  ATTN_E_ARG, "pass", "%d is not forward (0) or backward (1)",
                  (int)pass);
    ATTN__TRY(attn__check_threads(threads, diag));
    ATTN__REQUIRE(workspace, diag, ATTN_E_ARG, "workspace",
                  "must not be NULL");
    ATTN__REQUIRE(attn__layer_divide(&body, pass, threads, NULL, &memory),
                  diag, ATTN_E_OVERFLOW, "workspace",
                  "the size for %lld threads overflows", (long long)threads);
    *workspace = (attn_workspace){memory.size, ATTN__LAYER_ALIGN, memory.size,
                                  0};
    return attn__ok(diag);
}
