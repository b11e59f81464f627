/* SPDX-License-Identifier: Apache-2.0
 *
 * The multi-head layer, forward and backward: memory for its results, and the
 * calls. */
#ifndef ATTN_BINDING_LAYER_RESULTS_H
#define ATTN_BINDING_LAYER_RESULTS_H

#include "layer_call.h"
#include "results.h"

namespace binding {

/* A result of attention inside a layer, less the batch that x lacks. */
inline void make_inner(const maker &make, const layer_problem &p,
                       attn_dtype dtype, const std::vector<int64_t> &shape,
                       output *to, attn_tensor *field)
{
    const int32_t lost = 3 - p.rank, rank = static_cast<int32_t>(shape.size());

    make.make(dtype, rank - lost, shape.data() + lost, to);
    *field = to->view;
    widen(field, rank);
}

/* y, or (y, lse, weights, entropy) less those not asked for. */
inline nb::object multi_head(const nb::dict &arrays, int64_t heads,
                             int64_t heads_kv, nb::handle rope, bool qk_norm,
                             double norm_eps, nb::handle keywords,
                             bool want_lse, bool want_weights,
                             bool want_entropy)
{
    layer_problem p(arrays, heads, heads_kv, rope, qk_norm, norm_eps,
                    keywords);
    const attn_desc &d = p.desc.attention;
    const maker make(arrays["x"]);
    output y, lse, weights, entropy;
    int64_t shape[4];
    const int32_t rank = p.shape_like_x(d.len_q, p.width_of_y(), shape);
    attn_args &inner = p.args.attention;

    make.make(d.dtype, rank, shape, &y);
    p.args.y = y.view;
    widen(&p.args.y, 3);
    if (want_lse)
        make_inner(make, p, stats_dtype(d.dtype),
                   {d.batch, d.heads_q, d.len_q}, &lse, &inner.lse);
    if (want_weights)
        make_inner(make, p, weights_dtype(d.dtype),
                   {d.batch, d.heads_q, d.len_q, d.len_k}, &weights,
                   &inner.weights);
    if (want_entropy)
        make_inner(make, p, stats_dtype(d.dtype),
                   {d.batch, d.heads_q, d.len_q}, &entropy, &inner.entropy);
    run_layer(p, ATTN_FORWARD, [&](auto *plan, auto *exec, auto *diag) {
        return attn_layer_forward(plan, &p.args, exec, diag);
    });
    const output *const made[] = {&y, &lse, &weights, &entropy};

    return finish_results(make, made, 4);
}

/* dy, (B, L, width), or dlse, (B, H, L): less the batch, if x lacks it. */
inline void take_layer_gradient(const char *name, nb::handle array,
                                int32_t rank, input *to, attn_input *field)
{
    take(name, array, to);
    if (to->view.rank != rank)
        fail(ATTN_E_SHAPE, name, "has %d axes, must have %d",
             static_cast<int>(to->view.rank), static_cast<int>(rank));
    *field = to->view;
    widen(field, 3);
}

/* Gradients by name, of every array that is given. */
inline nb::dict multi_head_backward(nb::handle dy, const nb::dict &arrays,
                                    int64_t heads, int64_t heads_kv,
                                    nb::handle rope, bool qk_norm,
                                    double norm_eps, nb::handle keywords,
                                    nb::handle dlse)
{
    layer_problem p(arrays, heads, heads_kv, rope, qk_norm, norm_eps,
                    keywords);
    const maker make(arrays["x"]);
    input in_dy, in_dlse;
    output made[n_layer_fields + 3];
    attn_args &inner = p.args.attention;
    const struct {
        const char *name;
        const attn_input *model;
        attn_tensor *field;
        bool small;
    } inner_fields[3] = {
        {"dbias", &inner.bias, &inner.dbias, false},
        {"dsinks", &inner.sinks, &inner.dsinks, true},
        {"dslopes", &inner.alibi_slopes, &inner.dslopes, true}};

    take_layer_gradient("dy", dy, p.rank, &in_dy, &p.args.d_y);
    if (!dlse.is_none())
        take_layer_gradient("dlse", dlse, p.rank, &in_dlse, &inner.dlse);
    for (int i = 0; i < n_layer_fields; i++) {
        const layer_field &field = layer_fields[i];

        if (!field.gradient || p.in[i].view.dtype == ATTN_NONE)
            continue;
        make_gradient(make, p.in[i].view, false, &made[i]);
        p.args.*field.slot = made[i].view;
        if (i < 2)
            widen(&(p.args.*field.slot), 3);
    }
    for (int i = 0; i < 3; i++) {
        if (inner_fields[i].model->dtype == ATTN_NONE)
            continue;
        make_gradient(make, *inner_fields[i].model, inner_fields[i].small,
                      &made[n_layer_fields + i]);
        *inner_fields[i].field = made[n_layer_fields + i].view;
    }
    run_layer(p, ATTN_BACKWARD, [&](auto *plan, auto *exec, auto *diag) {
        return attn_layer_backward(plan, &p.args, exec, diag);
    });
    nb::dict gradients;

    for (int i = 0; i < n_layer_fields; i++)
        if (made[i].array.is_valid())
            gradients[layer_fields[i].gradient] = make.finish(made[i]);
    for (int i = 0; i < 3; i++)
        if (made[n_layer_fields + i].array.is_valid())
            gradients[inner_fields[i].name] =
                make.finish(made[n_layer_fields + i]);
    return gradients;
}

} // namespace binding

#endif
