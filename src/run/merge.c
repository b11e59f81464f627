/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention over the union of two sets of keys from the results over each:
 * lse = ln(e^lse1 + e^lse2), and o is the average weighted by e^(lse_i - lse).
 * A part with lse = -inf saw nothing and weighs nothing, whatever its o. */
#include "core/diag.h"
#include "core/element.h"
#include "kernels/real_math.h"
#include "run/checker.h"

/* o1, o2, o of one shape and type, lse1, lse2, lse of its first three axes,
 * f64 or f32 each. The first tensor sets the shape, so it is judged first. */
static attn_status check_merge(const attn_input *o1, const attn_input *lse1,
                               const attn_input *o2, const attn_input *lse2,
                               const attn_input *o, const attn_input *lse,
                               attn_diag *diag)
{
    const struct {
        const attn_input *t;
        const char *name;
        bool stats;
    } fields[] = {{o1, "o1", false},   {lse1, "lse1", true},
                  {o2, "o2", false},   {lse2, "lse2", true},
                  {o, "o", false},     {lse, "lse", true}};

    ATTN__REQUIRE(attn__is_float(o1->dtype), diag, ATTN_E_DTYPE, "o1",
                  "is %s, must be a float type", attn_dtype_name(o1->dtype));
    ATTN__REQUIRE(o1->rank == 4, diag, ATTN_E_SHAPE, "o1",
                  "has rank %d, must be (batch, heads, len, dim)",
                  (int)o1->rank);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const attn_input *t = fields[i].t;

        ATTN__TRY(attn__check_shape(t, fields[i].name,
                                    fields[i].stats ? 3 : 4, o1->shape,
                                    diag));
        ATTN__REQUIRE(fields[i].stats
                          ? t->dtype == ATTN_F64 || t->dtype == ATTN_F32
                          : t->dtype == o1->dtype,
                      diag, ATTN_E_DTYPE, fields[i].name, "is %s, must be %s",
                      attn_dtype_name(t->dtype),
                      fields[i].stats ? "f64 or f32"
                                      : attn_dtype_name(o1->dtype));
    }
    ATTN__REQUIRE(!attn__self_overlaps(o) && !attn__self_overlaps(lse), diag,
                  ATTN_E_ARG, "o",
                  "is an output whose strides give elements one address");
    ATTN__REQUIRE(!attn__overlaps(o, lse), diag, ATTN_E_ARG, "lse",
                  "shares memory with o");
    return ATTN_OK;
}

/* An output may be an input of its kind, element for element; half of it, or
 * shifted, would be read after it was written. */
static attn_status check_reuse(const attn_input *out, const char *name,
                               const attn_input *const *inputs, size_t n,
                               attn_diag *diag)
{
    for (size_t i = 0; i < n; i++)
        ATTN__REQUIRE(attn__same_view(out, inputs[i]) ||
                          !attn__overlaps(out, inputs[i]),
                      diag, ATTN_E_ARG, name,
                      "shares memory with an input without being it");
    return ATTN_OK;
}

/* Offset of a row; one axis less where t is a statistic. */
static int64_t at(const attn_input *t, int64_t b, int64_t h, int64_t i)
{
    return b * t->stride[0] + h * t->stride[1] + i * t->stride[2];
}

/* Weights e^(lse1 - lse), e^(lse2 - lse) and lse of one row, by the larger of
 * the two, so that no exponential overflows. The weights are divided by their
 * own sum and not by e^lse: they add up to 1 to rounding. */
static double weigh(double lse1, double lse2, double weight[2])
{
    const double top = lse1 > lse2 ? lse1 : lse2;
    double lse;

    /* Both saw nothing: -inf - -inf must not be formed. */
    if (top == -(double)INFINITY && lse1 == lse2) {
        weight[0] = weight[1] = 0;
        return top;
    }
    weight[0] = attn__exp(lse1 - top);
    weight[1] = attn__exp(lse2 - top);
    lse = top + attn__log(weight[0] + weight[1]);
    if (lse != lse) /* a NaN or +inf on either side: of the whole row */
        weight[0] = weight[1] = lse;
    else {
        const double sum = weight[0] + weight[1];

        weight[0] /= sum;
        weight[1] /= sum;
    }
    return lse;
}

/* One row of o, in fp64, rounded once. */
static void merge_row(const attn_input *o1, const attn_input *o2,
                      const attn_input *o, void *out, const double weight[2],
                      const int64_t row[3])
{
    for (int64_t c = 0; c < o->shape[3]; c++) {
        const attn_input *const parts[2] = {o1, o2};
        double sum = 0;

        for (int k = 0; k < 2; k++)
            /* Skipped, not multiplied: o of an empty part may be NaN. */
            if (weight[k] != 0)
                sum += weight[k] *
                       attn__read(parts[k]->data, o->dtype,
                                  row[k] + c * parts[k]->stride[3]);
        attn__write(out, o->dtype, row[2] + c * o->stride[3], sum);
    }
}

/* An output may be an input of its kind, so that parts can be folded into one
 * accumulator; each element is read before it is written. By the calling
 * thread: memory is the limit here, and the call takes no attn_exec. */
attn_status attn_merge(attn_input o1, attn_input lse1, attn_input o2,
                       attn_input lse2, attn_tensor o, attn_tensor lse,
                       attn_diag *diag)
{
    const attn_input out = attn_in(o), out_lse = attn_in(lse);
    const attn_input *const values[2] = {&o1, &o2};
    const attn_input *const stats[2] = {&lse1, &lse2};

    ATTN__TRY(check_merge(&o1, &lse1, &o2, &lse2, &out, &out_lse, diag));
    ATTN__TRY(check_reuse(&out, "o", values, 2, diag));
    ATTN__TRY(check_reuse(&out_lse, "lse", stats, 2, diag));
    ATTN__REQUIRE(!attn__overlaps(&out, &lse1) &&
                      !attn__overlaps(&out, &lse2),
                  diag, ATTN_E_ARG, "o", "shares memory with lse1 or lse2");
    ATTN__REQUIRE(!attn__overlaps(&out_lse, &o1) &&
                      !attn__overlaps(&out_lse, &o2),
                  diag, ATTN_E_ARG, "lse", "shares memory with o1 or o2");
    for (int64_t b = 0; b < o.shape[0]; b++)
        for (int64_t h = 0; h < o.shape[1]; h++)
            for (int64_t i = 0; i < o.shape[2]; i++) {
                const int64_t row[3] = {at(&o1, b, h, i), at(&o2, b, h, i),
                                        at(&out, b, h, i)};
                double weight[2];
                const double merged = weigh(
                    attn__read(lse1.data, lse1.dtype, at(&lse1, b, h, i)),
                    attn__read(lse2.data, lse2.dtype, at(&lse2, b, h, i)),
                    weight);

                merge_row(&o1, &o2, &out, o.data, weight, row);
                attn__write(lse.data, lse.dtype, at(&out_lse, b, h, i),
                            merged);
            }
    return attn__ok(diag);
}
