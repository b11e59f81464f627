/* SPDX-License-Identifier: Apache-2.0
 *
 * The dropout mask as an array, from the counters that kernels use. */
#include "core/diag.h"
#include "core/philox.h"
#include "run/checker.h"

/* A pair's bits come from the counter (j div 4, i, b * H + h, offset), 32 bits
 * each: two pairs must not share one. */
static attn_status check_reach(const attn_tensor *out, const int64_t *start,
                               attn_diag *diag)
{
    const int64_t limit = INT64_C(1) << 32;
    int64_t heads;

    ATTN__REQUIRE(attn__mul_i64(out->shape[0], out->shape[1], &heads) &&
                      heads <= limit,
                  diag, ATTN_E_OVERFLOW, "out",
                  "batch * heads = %lld * %lld is above 2^32",
                  (long long)out->shape[0], (long long)out->shape[1]);
    for (int axis = 0; axis < 2; axis++)
        ATTN__REQUIRE(out->shape[2 + axis] <= limit && start[axis] >= 0 &&
                          start[axis] <= limit - out->shape[2 + axis],
                      diag, ATTN_E_OVERFLOW, "start",
                      "%lld plus %lld indices leaves 0 to 2^32",
                      (long long)start[axis],
                      (long long)out->shape[2 + axis]);
    return ATTN_OK;
}

/* out is bool, of rank 4, and no element of it has another's address. */
static attn_status check_mask(const attn_tensor *out, double p,
                              attn_diag *diag)
{
    const attn_input view = attn_in(*out);

    ATTN__TRY(attn__check_view(&view, "out", diag));
    ATTN__REQUIRE(out->dtype == ATTN_BOOL, diag, ATTN_E_DTYPE, "out",
                  "is %s, must be bool", attn_dtype_name(out->dtype));
    ATTN__REQUIRE(out->rank == 4, diag, ATTN_E_SHAPE, "out",
                  "has rank %d, must be (batch, heads, len_q, len_k)",
                  (int)out->rank);
    ATTN__REQUIRE(!attn__self_overlaps(&view), diag, ATTN_E_ARG, "out",
                  "is an output whose strides give elements one address");
    ATTN__REQUIRE(p >= 0 && p <= 1, diag, ATTN_E_ARG, "p",
                  "must be in [0, 1], got %g", p);
    return ATTN_OK;
}

/* Row i of head h of batch entry b: 1 where the pair is kept. The head's
 * number counts all heads of all batch entries, as in a forward of the same
 * shape. */
static void fill_row(const attn_tensor *out, const attn__dropout *dropout,
                     const int64_t index[3], const int64_t *start)
{
    unsigned char *row = (unsigned char *)out->data +
                         index[0] * out->stride[0] +
                         index[1] * out->stride[1] +
                         index[2] * out->stride[2];
    const uint32_t head =
        (uint32_t)(index[0] * out->shape[1] + index[1]);

    for (int64_t j = 0; j < out->shape[3]; j++)
        row[j * out->stride[3]] = attn__dropout_keeps(
            dropout, head, index[2] + start[0], j + start[1]);
}

/* What a forward with the same p, seed, offset and start applies, for those
 * who want to see it or to compare: kernels never read such an array. */
attn_status attn_dropout_mask(attn_tensor out, double p, uint64_t seed,
                              uint32_t offset, const int64_t *start,
                              attn_diag *diag)
{
    const int64_t origin[2] = {0, 0};
    attn__dropout dropout;

    if (!start)
        start = origin;
    ATTN__TRY(check_mask(&out, p, diag));
    ATTN__TRY(check_reach(&out, start, diag));
    dropout = attn__dropout_of(p, seed, offset);
    for (int64_t b = 0; b < out.shape[0]; b++)
        for (int64_t h = 0; h < out.shape[1]; h++)
            for (int64_t i = 0; i < out.shape[2]; i++)
                fill_row(&out, &dropout, (int64_t[3]){b, h, i}, start);
    return attn__ok(diag);
}
