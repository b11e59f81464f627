/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of the multi-head layer: arrays by their names, as
 * attn_layer_desc and attn_layer_args. */
#ifndef ATTN_BINDING_LAYER_CALL_H
#define ATTN_BINDING_LAYER_CALL_H

#include "attn_layer.h"
#include "execution.h"
#include "rotation.h"

namespace binding {

/* The layer's own tensors, with the gradients that they have. */
struct layer_field {
    const char *name, *gradient;
    attn_input attn_layer_args::*value;
    attn_tensor attn_layer_args::*slot;
};

constexpr layer_field layer_fields[] = {
    {"x", "dx", &attn_layer_args::x, &attn_layer_args::dx},
    {"x_kv", "dx_kv", &attn_layer_args::x_kv, &attn_layer_args::dx_kv},
    {"w_q", "dw_q", &attn_layer_args::w_q, &attn_layer_args::dw_q},
    {"w_k", "dw_k", &attn_layer_args::w_k, &attn_layer_args::dw_k},
    {"w_v", "dw_v", &attn_layer_args::w_v, &attn_layer_args::dw_v},
    {"w_o", "dw_o", &attn_layer_args::w_o, &attn_layer_args::dw_o},
    {"b_q", "db_q", &attn_layer_args::b_q, &attn_layer_args::db_q},
    {"b_k", "db_k", &attn_layer_args::b_k, &attn_layer_args::db_k},
    {"b_v", "db_v", &attn_layer_args::b_v, &attn_layer_args::db_v},
    {"b_o", "db_o", &attn_layer_args::b_o, &attn_layer_args::db_o},
    {"g_q", "dg_q", &attn_layer_args::g_q, &attn_layer_args::dg_q},
    {"g_k", "dg_k", &attn_layer_args::g_k, &attn_layer_args::dg_k},
    {"positions", nullptr, &attn_layer_args::positions, nullptr},
    {"positions_kv", nullptr, &attn_layer_args::positions_kv, nullptr}};
constexpr int n_layer_fields = sizeof layer_fields / sizeof layer_fields[0];

struct layer_problem {
    attn_layer_desc desc;
    attn_layer_args args;
    problem attention;
    input in[n_layer_fields];
    int32_t rank = 0; /* of x: 2 (L, d) or 3 (B, L, d) */
    rope_options rotation;

    /* `arrays`: by the names above, those that are given. */
    layer_problem(const nb::dict &arrays, int64_t heads, int64_t heads_kv,
                  nb::handle rope, bool qk_norm, double norm_eps,
                  nb::handle keywords)
        : rotation(rope.is_none() ? nb::dict() : nb::cast<nb::dict>(rope))
    {
        attn_layer_args_init(&args);
        for (int i = 0; i < n_layer_fields; i++)
            if (arrays.contains(layer_fields[i].name))
                take_field(i, arrays[layer_fields[i].name]);
        describe(heads, heads_kv);
        desc.rope = rotation.desc;
        desc.rotary = !rope.is_none();
        desc.qk_norm = qk_norm;
        desc.norm_eps = norm_eps;
        nb::handle words[N_KEYWORDS];

        borrow_words(keywords, words);
        attention.desc = desc.attention;
        attention.apply(words, nb::none());
        desc.attention = attention.desc;
        args.attention = attention.args;
    }

    /* (B, L, width) less the batch, if x lacks it. */
    int32_t shape_like_x(int64_t len, int64_t width, int64_t *shape) const
    {
        const int64_t full[3] = {desc.attention.batch, len, width};

        std::memcpy(shape, full + 3 - rank,
                    static_cast<size_t>(rank) * sizeof *full);
        return rank;
    }

    int64_t width_of_y() const
    {
        return desc.dim_y ? desc.dim_y
                          : desc.attention.heads_q * desc.attention.dim_v;
    }

private:
    void take_field(int i, nb::handle array)
    {
        const layer_field &field = layer_fields[i];

        take(field.name, array, &in[i]);
        attn_input view = in[i].view;
        if (i < 2) { /* x and x_kv */
            if (view.rank < 2 || view.rank > 3 || (i && view.rank != rank))
                fail(ATTN_E_SHAPE, field.name, "has %d axes; (L, width) and "
                     "(B, L, width) are legal, alike for x and x_kv",
                     static_cast<int>(view.rank));
            rank = view.rank;
            widen(&view, 3);
        }
        args.*field.value = view;
    }

    /* Components of a head, from the columns of a weight. */
    static int64_t split(const char *name, const attn_input &w, int64_t heads)
    {
        if (w.rank != 2)
            fail(ATTN_E_SHAPE, name, "has %d axes, must be (width, heads * "
                 "dim)", static_cast<int>(w.rank));
        if (heads < 1 || w.shape[1] % heads != 0)
            fail(ATTN_E_SHAPE, name, "has %lld columns, which %lld heads do "
                 "not divide", static_cast<long long>(w.shape[1]),
                 static_cast<long long>(heads));
        return w.shape[1] / heads;
    }

    void describe(int64_t heads, int64_t heads_kv)
    {
        const attn_input &kv = args.x_kv.dtype ? args.x_kv : args.x;
        const int64_t dim_qk = split("w_q", args.w_q, heads);
        const int64_t dim_v = split("w_v", args.w_v, heads_kv);

        attn_layer_desc_init(&desc, args.x.dtype, args.x.shape[0],
                             args.x.shape[1], args.x.shape[2], heads,
                             heads_kv);
        attn_desc_init(&desc.attention, args.x.dtype, args.x.shape[0], heads,
                       heads_kv, args.x.shape[1], kv.shape[1], dim_qk, dim_v);
        desc.dim_x_kv = args.x_kv.dtype ? args.x_kv.shape[2] : 0;
        desc.dim_y = args.w_o.rank == 2 ? args.w_o.shape[1] : 0;
    }
};

template <class Call>
void run_layer(const layer_problem &p, attn_pass pass, Call call)
{
    const int64_t threads =
        p.attention.threads ? p.attention.threads : all_threads();
    attn_layer_plan plan;
    attn_workspace need;
    attn_diag diag;

    check(attn_layer_plan_init(&plan, &p.desc, &diag), diag);
    check(attn_layer_workspace(&plan, pass, threads, &need, &diag), diag);
    execute(threads, need, pass, [&](attn_exec *exec, attn_diag *said) {
        return call(&plan, exec, said);
    });
}

} // namespace binding

#endif
