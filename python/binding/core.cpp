/* SPDX-License-Identifier: Apache-2.0
 *
 * core.cpp: the one extension module of the Python package, attn._core. It
 * turns arrays into views and keywords into descriptors, makes memory for
 * results, and calls the C library without the interpreter's lock; it computes
 * nothing. attn/_core.pyi has the signatures, the modules of attn the manual.
 */
#include "doctor_call.h"
#include "heat_map.h"
#include "lab_call.h"
#include "layer_results.h"

#ifndef _WIN32
#include <pthread.h>
#endif

using namespace binding;
using namespace nb::literals;

namespace {

/* ------------------------------------------------------------- functions */

void make_stats(const maker &make, const problem &p, output *to,
                attn_tensor *field)
{
    int64_t shape[4];
    const int32_t rank = p.shape_stats(shape);

    make.make(stats_dtype(p.desc.dtype), rank, shape, to);
    *field = p.as_stats(to->view);
}

/* (B, n_heads, n_rows, Lk) less what q lacks. */
attn_tensor make_weights(const maker &make, const problem &p, int64_t heads,
                         int64_t rows, output *to)
{
    const int64_t full[4] = {p.desc.batch, heads, rows, p.desc.len_k};
    const int32_t rank = p.varlen ? 4 : p.q_given.rank;

    make.make(weights_dtype(p.desc.dtype), rank, full + 4 - rank, to);
    attn_tensor t = to->view;
    widen(&t, 4);
    return t;
}

/* o, or (o, lse, weights, entropy) less those not asked for. want_lse: 1 as
 * an array of the kind of q, 2 as NumPy's, which has float64 for sure. */
nb::object attention(nb::handle q, nb::handle k, nb::handle v,
                     nb::handle keywords, nb::handle out, int want_lse,
                     bool want_weights, bool want_entropy, nb::handle table)
{
    problem p(q, k, v, keywords, table);
    const maker make(q);
    output o, lse, weights, entropy;

    if (want_weights && p.varlen)
        fail(ATTN_E_UNSUPPORTED, "return_weights",
             "weights cannot be had of packed sequences");
    if (out.is_none()) {
        int64_t shape[4];

        p.shape_like_q(p.desc.dim_v, shape);
        make.make(p.desc.dtype, p.q_given.rank, shape, &o);
    } else {
        take_writable("out", out, &o);
        if (o.view.rank != p.q_given.rank)
            fail(ATTN_E_SHAPE, "out", "has %d axes, but q has %d",
                 static_cast<int>(o.view.rank),
                 static_cast<int>(p.q_given.rank));
    }
    p.args.o = p.as_heads(o.view);
    if (want_lse)
        make_stats(want_lse == 1 ? make : maker(), p, &lse, &p.args.lse);
    if (want_weights)
        p.args.weights = make_weights(make, p, p.desc.heads_q, p.desc.len_q,
                                      &weights);
    if (want_entropy)
        make_stats(make, p, &entropy, &p.args.entropy);
    run(p, ATTN_FORWARD, [&](auto *plan, auto *exec, auto *diag) {
        return attn_forward(plan, &p.args, exec, diag);
    });
    if (!want_lse && !want_weights && !want_entropy)
        return make.finish(o);
    const output *const made[] = {&o, &lse, &weights, &entropy};

    return finish_results(make, made, 4);
}

/* (dq, dk, dv, dbias, dsinks, dslopes); None for what `wanted`, a bit for each
 * in this order, leaves out, or whose input is not there. */
nb::object backward(nb::handle d_o, nb::handle q, nb::handle k, nb::handle v,
                    nb::handle o, nb::handle lse, nb::handle keywords,
                    nb::handle dlse, int wanted)
{
    problem p(q, k, v, keywords, nb::none());
    const maker make(q);
    input in_do, in_o, in_lse, in_dlse;
    output made[6];
    const struct {
        const attn_input *model;
        attn_tensor *field;
        bool heads, small;
    } gradients[6] = {
        {&p.q_given, &p.args.dq, true, false},
        {&p.k_given, &p.args.dk, true, false},
        {&p.v_given, &p.args.dv, true, false},
        {&p.bias.view, &p.args.dbias, false, false},
        {&p.sinks.view, &p.args.dsinks, false, true},
        {&p.alibi_slopes.view, &p.args.dslopes, false, true}};

    take("do", d_o, &in_do);
    take("o", o, &in_o);
    take("lse", lse, &in_lse);
    p.check_rank("do", in_do.view);
    p.check_rank("o", in_o.view);
    p.check_stats_rank("lse", in_lse.view);
    p.args.d_o = p.as_heads(in_do.view);
    /* The library reads these two, which it declares as outputs. */
    const attn_input vo = p.as_heads(in_o.view), vl = p.as_stats(in_lse.view);
    const auto as_tensor = [](const attn_input &t) {
        attn_tensor to = {const_cast<void *>(t.data), t.dtype, t.rank,
                          {}, {}};

        std::memcpy(to.shape, t.shape, sizeof to.shape);
        std::memcpy(to.stride, t.stride, sizeof to.stride);
        return to;
    };
    p.args.o = as_tensor(vo);
    p.args.lse = as_tensor(vl);
    if (!dlse.is_none()) {
        take("dlse", dlse, &in_dlse);
        p.check_stats_rank("dlse", in_dlse.view);
        p.args.dlse = p.as_stats(in_dlse.view);
    }
    for (int i = 0; i < 6; i++) {
        const auto &g = gradients[i];

        if (!(wanted >> i & 1) || g.model->dtype == ATTN_NONE)
            continue;
        make_gradient(make, *g.model, g.small, &made[i]);
        *g.field = g.heads ? p.as_heads(made[i].view) : made[i].view;
    }
    run(p, ATTN_BACKWARD, [&](auto *plan, auto *exec, auto *diag) {
        return attn_backward(plan, &p.args, exec, diag);
    });
    nb::list results;

    for (const output &one : made)
        results.append(one.array.is_valid() ? make.finish(one) : nb::none());
    return nb::tuple(results);
}

/* A list of indices, or none for all. */
const int64_t *take_chosen(const char *name, nb::handle object, input *to,
                           int64_t *n)
{
    if (object.is_none())
        return nullptr;
    take(name, object, to);
    const attn_input &t = to->view;

    if (t.rank != 1 || t.dtype != ATTN_I64 ||
        (t.shape[0] > 1 && t.stride[0] != 1))
        fail(ATTN_E_SHAPE, name, "must be a list of whole numbers");
    *n = t.shape[0];
    return static_cast<const int64_t *>(t.data);
}

nb::object weights(nb::handle q, nb::handle k, nb::handle keywords, int stage,
                   nb::handle heads, nb::handle rows)
{
    problem p(q, k, nb::none(), keywords, nb::none());
    const maker make(q);
    static const int64_t nothing = 0;
    input in_heads, in_rows;
    attn_rows chosen = {nullptr, nullptr, p.desc.heads_q, p.desc.len_q};
    output out;

    if (p.varlen)
        fail(ATTN_E_UNSUPPORTED, "cu_seqlens_q",
             "weights cannot be had of packed sequences");
    chosen.heads = take_chosen("heads", heads, &in_heads, &chosen.n_heads);
    chosen.rows = take_chosen("rows", rows, &in_rows, &chosen.n_rows);
    if (!heads.is_none() && !chosen.heads)
        chosen.heads = &nothing; /* an empty list is not "all" */
    if (!rows.is_none() && !chosen.rows)
        chosen.rows = &nothing;
    const attn_tensor view =
        make_weights(make, p, chosen.n_heads, chosen.n_rows, &out);
    run(p, ATTN_WEIGHTS, [&](auto *plan, auto *exec, auto *diag) {
        return attn_weights(plan, &p.args, static_cast<attn_stage>(stage),
                            &chosen, view, exec, diag);
    });
    return make.finish(out);
}

nb::object dropout_mask(const std::vector<int64_t> &shape, double p,
                        nb::handle seed, nb::handle offset, int64_t start_q,
                        int64_t start_k)
{
    const maker make; /* NumPy's */
    const int64_t start[2] = {start_q, start_k};
    attn_diag diag;
    output out;
    const auto key = integer<uint64_t>("seed", seed, "0 to 2^64 - 1");
    const auto counter = integer<uint32_t>("offset", offset, "0 to 2^32 - 1");

    make.make(ATTN_BOOL, static_cast<int32_t>(shape.size()), shape.data(),
              &out);
    attn_tensor view = out.view;
    widen(&view, 4);
    attn_status status;
    {
        nb::gil_scoped_release unlocked;

        status = attn_dropout_mask(view, p, key, counter, start, &diag);
    }
    check(status, diag);
    return make.finish(out);
}

nb::object merge(nb::handle o1, nb::handle lse1, nb::handle o2,
                 nb::handle lse2, bool bshd)
{
    static const char *const names[] = {"o1", "lse1", "o2", "lse2"};
    const nb::handle given[] = {o1, lse1, o2, lse2};
    const maker make(o1);
    input in[4];
    attn_input view[4];
    output o, lse;
    attn_diag diag;

    for (int i = 0; i < 4; i++) {
        take(names[i], given[i], &in[i]);
        view[i] = in[i].view;
        const int32_t rank = in[0].view.rank - i % 2;

        if (in[0].view.rank < 2 || view[i].rank != rank)
            fail(ATTN_E_SHAPE, names[i], "has %d axes, must have %d",
                 static_cast<int>(view[i].rank),
                 static_cast<int>(std::max<int32_t>(rank, 2 - i % 2)));
        if (i % 2)
            widen(&view[i], 3);
        else
            fold(&view[i], bshd);
    }
    make.make(view[0].dtype, in[0].view.rank, in[0].view.shape, &o);
    make.make(view[1].dtype, in[1].view.rank, in[1].view.shape, &lse);
    attn_tensor to_o = o.view, to_lse = lse.view;
    fold(&to_o, bshd);
    widen(&to_lse, 3);
    attn_status status;
    {
        nb::gil_scoped_release unlocked;

        status = attn_merge(view[0], view[1], view[2], view[3], to_o, to_lse,
                            &diag);
    }
    check(status, diag);
    return nb::make_tuple(make.finish(o), make.finish(lse));
}

/* Rows behind the `lengths` of a cache; the caller then moves the lengths. */
void kv_append(nb::handle cache, nb::handle rows, nb::handle lengths,
               nb::handle table, const char *name)
{
    output out;
    input in_rows, in_lengths, in_table;
    attn_diag diag;

    take_writable("cache", cache, &out);
    take(name, rows, &in_rows);
    take("lengths", lengths, &in_lengths);
    if (!table.is_none())
        take("block_table", table, &in_table);
    attn_status status;
    {
        nb::gil_scoped_release unlocked;

        status = attn_kv_append(out.view, in_rows.view, in_lengths.view,
                                in_table.view, &diag);
    }
    if (status != ATTN_OK && std::strcmp(diag.field, "rows") == 0)
        fail(status, name, "%s", diag.message);
    check(status, diag);
}

/* ------------------------------------------------------------------ RoPE */

nb::object rope(nb::handle x, nb::handle positions, const nb::dict &options,
                bool transposed)
{
    const maker make(x);
    const rope_options rotation(options);
    input in_x, in_positions;
    output out;
    attn_diag diag;

    take("x", x, &in_x);
    take("positions", positions, &in_positions);
    make.make(in_x.view.dtype, in_x.view.rank, in_x.view.shape, &out);
    attn_status status;
    {
        nb::gil_scoped_release unlocked;

        status = (transposed ? attn_rope_backward : attn_rope)(
            &rotation.desc, in_x.view, in_positions.view, out.view, &diag);
    }
    check(status, diag);
    return make.finish(out);
}

/* (inverse frequencies, factor on cos and sin) */
nb::tuple rope_frequencies(const nb::dict &options, int64_t dim,
                           int64_t seq_len)
{
    const rope_options rotation(options);
    const int64_t rotary =
        rotation.desc.rotary_dim ? rotation.desc.rotary_dim : dim;
    std::vector<double> inverse(
        static_cast<size_t>(std::max<int64_t>(rotary / 2, 0)));
    double factor = 1;
    attn_diag diag;

    check(attn_rope_frequencies(&rotation.desc, dim, seq_len, inverse.data(),
                                &factor, &diag),
          diag);
    return nb::make_tuple(inverse, factor);
}

/* --------------------------------------------------------------- machine */

template <class Describe> std::string text_of(Describe describe)
{
    std::string text(describe(nullptr, 0), '\0');

    describe(text.data(), text.size() + 1);
    return text;
}

nb::dict facts()
{
    nb::dict found;
    char version[32];

    std::snprintf(version, sizeof version, "%d.%d.%d",
                  static_cast<int>(attn_version() >> 16),
                  static_cast<int>(attn_version() >> 8 & 255),
                  static_cast<int>(attn_version() & 255));
    found["version"] = version;
    found["isa"] = attn_isa_name(attn_cpu_isa());
    found["threads"] = all_threads();
    found["cpu"] = text_of(attn_cpu_describe);
    found["kernels"] = text_of(attn_kernels_describe);
    found["draws"] = attn_picture_formats();
    return found;
}

void forget_pool()
{
    shared_pool.store(nullptr);
}

} // namespace

NB_MODULE(_core, m)
{
    const nb::module_ numpy = nb::module_::import_("numpy");
    const nb::module_ arrays = nb::module_::import_("attn._arrays");
    static const struct {
        attn_dtype dtype;
        const char *name;
    } types[] = {{ATTN_F64, "float64"}, {ATTN_F32, "float32"},
                 {ATTN_F16, "float16"}, {ATTN_BOOL, "bool"},
                 {ATTN_I32, "int32"},   {ATTN_I64, "int64"}};

    python = new python_side; /* lives as long as the process */
    python->ndarray = numpy.attr("ndarray");
    python->empty = numpy.attr("empty");
    for (const auto &type : types)
        python->dtype[type.dtype] = numpy.attr("dtype")(type.name);
    python->coerce = arrays.attr("coerce");
    python->importer = arrays.attr("importer");
#ifndef _WIN32
    pthread_atfork(nullptr, nullptr, forget_pool);
#else
    (void)forget_pool;
#endif

    nb::set_leak_warnings(false);
    const auto optional = [](const char *name) {
        return nb::arg(name).none();
    };
    m.def("attention", &attention, optional("q"), optional("k"), optional("v"),
          "keywords"_a, optional("out"), "want_lse"_a, "want_weights"_a,
          "want_entropy"_a, optional("block_table"));
    m.def("backward", &backward, optional("do"), optional("q"), optional("k"),
          optional("v"), optional("o"), optional("lse"), "keywords"_a,
          optional("dlse"), "wanted"_a);
    m.def("weights", &weights, optional("q"), optional("k"), "keywords"_a,
          "stage"_a, optional("heads"), optional("rows"));
    m.def("dropout_mask", &dropout_mask);
    m.def("merge", &merge, optional("o1"), optional("lse1"), optional("o2"),
          optional("lse2"), "bshd"_a);
    m.def("kv_append", &kv_append, optional("cache"), optional("rows"),
          optional("lengths"), optional("block_table"), "name"_a);
    m.def("rope", &rope, optional("x"), optional("positions"), "options"_a,
          "transposed"_a);
    m.def("rope_frequencies", &rope_frequencies);
    m.def("multi_head", &multi_head, "arrays"_a, "heads"_a, "heads_kv"_a,
          optional("rope"), "qk_norm"_a, "norm_eps"_a, "keywords"_a,
          "want_lse"_a, "want_weights"_a, "want_entropy"_a);
    m.def("multi_head_backward", &multi_head_backward, optional("dy"),
          "arrays"_a, "heads"_a, "heads_kv"_a, optional("rope"), "qk_norm"_a,
          "norm_eps"_a, "keywords"_a, optional("dlse"));
    m.def("heat_map", &heat_map);
    m.def("doctor", &doctor, "name"_a, "hello"_a, "answer"_a, "kind"_a,
          "layout"_a.none(), "dtype"_a, "seed"_a, "expect"_a.none(),
          "seconds"_a);
    m.def("doctor_list", &doctor_list);
    m.def("lab", &lab);
    m.def("lab_list", &lab_list);
    m.def("facts", &facts);
}