/* SPDX-License-Identifier: Apache-2.0
 *
 * Rotary embedding and its transpose: pairs (a, b) of each row turn by
 * angle = position * inv_freq[m], both lengthened by the attention factor.
 * Angles in fp64: fp32 angles are wrong by 7e-4 at position 131071. */
#include "core/checked.h"
#include "core/diag.h"
#include "core/element.h"
#include "position/rope_frequencies.h"
#include "run/checker.h"

#include <math.h>

/* A tensor of rank 2 to 4 seen as (batch, heads, len, dim). */
typedef struct rows {
    int64_t shape[4], in_stride[4], out_stride[4];
} rows;

/* x and y of rank 2 to 4, (.., L, D), the same shape and type. */
static attn_status check_rows(const attn_input *x, const attn_tensor *y,
                              rows *r, attn_diag *diag)
{
    const attn_input out = attn_in(*y);

    ATTN__TRY(attn__check_view(x, "x", diag));
    ATTN__REQUIRE(attn__is_float(x->dtype), diag, ATTN_E_DTYPE, "x",
                  "is %s, must be a float type", attn_dtype_name(x->dtype));
    ATTN__REQUIRE(x->rank >= 2, diag, ATTN_E_SHAPE, "x",
                  "has rank %d, must be (.., len, dim)", (int)x->rank);
    ATTN__TRY(attn__check_shape(&out, "y", x->rank, x->shape, diag));
    ATTN__REQUIRE(out.dtype == x->dtype, diag, ATTN_E_DTYPE, "y",
                  "is %s, must be %s as x", attn_dtype_name(out.dtype),
                  attn_dtype_name(x->dtype));
    ATTN__REQUIRE(!attn__self_overlaps(&out), diag, ATTN_E_ARG, "y",
                  "is an output whose strides give elements one address");
    for (int a = 0; a < 4; a++) {
        const int from = a - (4 - x->rank);

        r->shape[a] = from < 0 ? 1 : x->shape[from];
        r->in_stride[a] = from < 0 ? 0 : x->stride[from];
        r->out_stride[a] = from < 0 ? 0 : out.stride[from];
    }
    return ATTN_OK;
}

/* y may be x itself; anything else must be apart from it. */
static attn_status check_apart(const attn_input *x, const attn_tensor *y,
                               const attn_input *positions, attn_diag *diag)
{
    const attn_input out = attn_in(*y);
    bool same = x->data == out.data;

    for (int32_t a = 0; a < x->rank; a++)
        same = same && x->stride[a] == out.stride[a];
    ATTN__REQUIRE(same || !attn__overlaps(&out, x), diag, ATTN_E_ARG, "y",
                  "shares memory with x without being x");
    ATTN__REQUIRE(!attn__overlaps(&out, positions), diag, ATTN_E_ARG, "y",
                  "shares memory with positions");
    return ATTN_OK;
}

/* (L), or (B, L) where batch entries stand at places of their own, as padded
 * ones do. */
static attn_status check_positions(const attn_input *t, const rows *r,
                                   attn_diag *diag)
{
    const int64_t shape[2] = {r->shape[0], r->shape[2]};
    const int32_t rank = t->rank == 2 ? 2 : 1;

    ATTN__REQUIRE(attn__is_index(t->dtype), diag, ATTN_E_DTYPE, "positions",
                  "is %s, must be i32 or i64", attn_dtype_name(t->dtype));
    return attn__check_shape(t, "positions", rank, shape + 2 - rank, diag);
}

/* Positions may be negative: the angle turns the other way. */
static int64_t position_at(const attn_input *t, int64_t b, int64_t i)
{
    return attn__load_index(t->data, t->dtype,
                            t->rank == 2
                                ? b * t->stride[0] + i * t->stride[1]
                                : i * t->stride[0]);
}

/* One past the largest position, at least 1: the length by which dynamic and
 * longrope scalings choose their frequencies, if the caller names none. */
static int64_t length_of(const attn_input *positions, const rows *r)
{
    int64_t longest = 0;

    for (int64_t b = 0; b < (positions->rank == 2 ? r->shape[0] : 1); b++)
        for (int64_t i = 0; i < r->shape[2]; i++)
            longest = attn__max_i64(longest, position_at(positions, b, i));
    return attn__saturating_add(longest, 1);
}

/* Pair m of one row in all heads: elements c0 and c1 turn by (cos, sin). */
static void turn(const attn_input *x, const attn_tensor *y, const rows *r,
                 int64_t b, int64_t i, int64_t c0, int64_t c1, double cosine,
                 double sine)
{
    for (int64_t h = 0; h < r->shape[1]; h++) {
        const int64_t in = b * r->in_stride[0] + h * r->in_stride[1] +
                           i * r->in_stride[2];
        const int64_t out = b * r->out_stride[0] + h * r->out_stride[1] +
                            i * r->out_stride[2];
        const double p =
            attn__read(x->data, x->dtype, in + c0 * r->in_stride[3]);
        const double q =
            attn__read(x->data, x->dtype, in + c1 * r->in_stride[3]);

        /* Both are read before either is written: y may be x. */
        attn__write(y->data, y->dtype, out + c0 * r->out_stride[3],
                    p * cosine - q * sine);
        attn__write(y->data, y->dtype, out + c1 * r->out_stride[3],
                    q * cosine + p * sine);
    }
}

/* Components past rotary_dim pass through, through fp64 and back, which is
 * exact for all numbers of all types. */
static void copy(const attn_input *x, const attn_tensor *y, const rows *r,
                 int64_t b, int64_t i, int64_t c)
{
    for (int64_t h = 0; h < r->shape[1]; h++)
        attn__write(y->data, y->dtype,
                    b * r->out_stride[0] + h * r->out_stride[1] +
                        i * r->out_stride[2] + c * r->out_stride[3],
                    attn__read(x->data, x->dtype,
                               b * r->in_stride[0] + h * r->in_stride[1] +
                                   i * r->in_stride[2] +
                                   c * r->in_stride[3]));
}

/* `direction` is 1 for the rotation, -1 for its transpose. */
static attn_status rotate(const attn_rope_desc *desc, const attn_input *x,
                          const attn_input *positions, const attn_tensor *y,
                          double direction, attn_diag *diag)
{
    int64_t rotary_dim, seq_len;
    double factor;
    rows r;

    ATTN__TRY(check_rows(x, y, &r, diag));
    ATTN__TRY(attn__rope_check(desc, r.shape[3], &rotary_dim, diag));
    ATTN__TRY(check_positions(positions, &r, diag));
    ATTN__TRY(check_apart(x, y, positions, diag));
    seq_len = desc->seq_len ? desc->seq_len : length_of(positions, &r);
    factor = attn__rope_attention_factor(desc);
    /* Pairs outermost: cos and sin of an angle are formed once for all heads,
     * and the table of frequencies need not be kept. */
    for (int64_t m = 0; m < rotary_dim / 2; m++) {
        const double inv_freq =
            attn__rope_inv_freq(desc, rotary_dim, seq_len, m);
        const int64_t c0 = desc->interleaved ? 2 * m : m;
        const int64_t c1 = desc->interleaved ? 2 * m + 1
                                             : m + rotary_dim / 2;

        for (int64_t b = 0; b < r.shape[0]; b++)
            for (int64_t i = 0; i < r.shape[2]; i++) {
                const double angle =
                    (double)position_at(positions, b, i) * inv_freq;

                turn(x, y, &r, b, i, c0, c1, factor * cos(angle),
                     direction * factor * sin(angle));
            }
    }
    for (int64_t c = rotary_dim; c < r.shape[3]; c++)
        for (int64_t b = 0; b < r.shape[0]; b++)
            for (int64_t i = 0; i < r.shape[2]; i++)
                copy(x, y, &r, b, i, c);
    return attn__ok(diag);
}

/* y = R(positions) x. y may be x. */
attn_status attn_rope(const attn_rope_desc *desc, attn_input x,
                      attn_input positions, attn_tensor y, attn_diag *diag)
{
    return rotate(desc, &x, &positions, &y, 1, diag);
}

/* dx = R(positions)^T dy: the rotation by the opposite angle, with the same
 * attention factor. */
attn_status attn_rope_backward(const attn_rope_desc *desc, attn_input dy,
                               attn_input positions, attn_tensor dx,
                               attn_diag *diag)
{
    return rotate(desc, &dy, &positions, &dx, -1, diag);
}
