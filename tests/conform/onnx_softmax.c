/* SPDX-License-Identifier: Apache-2.0
 *
 * ONNX Softmax as an attention: with D = 0 every score is 0, so the weights
 * are the softmax of the bias. */
#include "onnx.h"

/* x (.., n, ..) as rows of n, `inner` being the size of what follows the
 * axis; `back` the other way. */
static void move_axis(const double *x, int64_t count, int64_t n, int64_t inner,
                      bool back, double *y)
{
    for (int64_t at = 0; at < count; at++) {
        const int64_t outer = at / inner / n, a = at / inner % n;
        const int64_t row = outer * inner + at % inner;

        if (back)
            y[at] = x[row * n + a];
        else
            y[row * n + a] = x[at];
    }
}

void onnx_softmax(test_case *c)
{
    const array *x = required_input(c, "input");
    int64_t axis = attribute_integer(c, "axis", -1), inner = 1;
    double *moved = take_reals(c, x->count), *y = take_reals(c, x->count);
    array bias = {.name = "bias", .dtype = x->dtype, .rank = 2, .x = moved};
    outcome out = {.results.weights = take_reals(c, x->count)};
    job j = {
        .q = take_reals(c, 0), .k = take_reals(c, 0), .v = take_reals(c, 0)};
    const engine *e;

    only_known(c, "axis", "input", "output");
    if (axis < 0)
        axis += x->rank;
    if (axis < 0 || axis >= x->rank || x->shape[axis] < 1)
        refuse(c, "there is no such axis");
    for (int32_t a = (int32_t)axis + 1; a < x->rank; a++)
        inner *= x->shape[a];
    bias.shape[1] = x->shape[axis];
    bias.shape[0] = x->count / bias.shape[1];
    bias.count = x->count;
    move_axis(x->x, x->count, bias.shape[1], inner, false, moved);
    attn_ref_problem_init(&j.problem, 1, 1, 1, bias.shape[0], bias.shape[1], 0,
                          0);
    j.problem.empty_rows = ATTN_EMPTY_NAN; /* as -inf minus -inf is there */
    job_set_bias(&j, &bias);
    for (int n = 0; (e = onnx_engine(dtype_of_word(x->dtype), n)); n++) {
        do_job(c, e, &j, &out);
        move_axis(out.results.weights, x->count, bias.shape[1], inner, true, y);
        onnx_judge(c, e, "output", y);
    }
}
