/* SPDX-License-Identifier: Apache-2.0
 *
 * An attention to do, and the reference doing it. */
#include "conform.h"

void job_set_mask(test_case *c, job *j, const array *mask)
{
    unsigned char *bytes = take(c, mask->count, 1);

    for (int64_t n = 0; n < mask->count; n++)
        bytes[n] = mask->x[n] != 0;
    j->mask = mask;
    j->problem.mask = bytes;
    attn_ref_broadcast(4, mask->rank, mask->shape, j->problem.mask_stride);
}

void job_set_bias(job *j, const array *bias)
{
    j->bias = bias;
    j->problem.bias = bias->x;
    attn_ref_broadcast(4, bias->rank, bias->shape, j->problem.bias_stride);
}

void job_set_slopes(job *j, const array *slopes)
{
    j->slopes = slopes;
    j->problem.alibi_slopes = slopes->x;
    attn_ref_broadcast(2, slopes->rank, slopes->shape,
                       j->problem.slopes_stride);
}

void job_set_sinks(job *j, const array *sinks)
{
    j->sinks = sinks;
    j->problem.sinks = sinks->x;
}

bool is_reference(const engine *e)
{
    return e->dtype == ATTN_NONE;
}

void do_job(test_case *c, const engine *e, const job *j, outcome *out)
{
    if (is_reference(e))
        run_reference(c, j, out);
    else
        run_kernels(c, e, j, out);
}

static attn_status forward(const job *j, const outcome *out)
{
    if (j->sequences > 0)
        return attn_ref_varlen_forward(NULL, &j->problem, j->cu_q, j->cu_k,
                                       j->q, j->k, j->v, &out->results);
    return attn_ref_forward(NULL, &j->problem, j->q, j->k, j->v, &out->results);
}

static attn_status backward(const job *j, const outcome *out)
{
    if (j->sequences > 0)
        return attn_ref_varlen_backward(NULL, &j->problem, j->cu_q, j->cu_k,
                                        j->q, j->k, j->v, j->d_o, j->dlse,
                                        &out->gradients);
    return attn_ref_backward(NULL, &j->problem, j->q, j->k, j->v, j->d_o,
                             j->dlse, &out->gradients);
}

void run_reference(test_case *c, const job *j, outcome *out)
{
    attn_status status = forward(j, out);

    if (status == ATTN_OK && j->d_o)
        status = backward(j, out);
    if (status != ATTN_OK)
        refuse(c, "reference: %s", attn_status_text(status));
}
