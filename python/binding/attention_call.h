/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of attention: the keywords of attn._keywords.features and the
 * arrays, as attn_desc and attn_args. What the library checks is left to it;
 * here is what it can't see: ranks, words, "causal" without a corner. */
#ifndef ATTN_BINDING_ATTENTION_CALL_H
#define ATTN_BINDING_ATTENTION_CALL_H

#include "arrays.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

namespace binding {

/* ------------------------------------------------------------ numbers */

inline double number(const char *name, nb::handle object)
{
    double value;

    if (!nb::try_cast(object, value))
        fail(ATTN_E_DTYPE, name, "is %s, must be a number",
             Py_TYPE(object.ptr())->tp_name);
    return value;
}

template <class Integer>
Integer integer(const char *name, nb::handle object, const char *rule)
{
    Integer value;

    if (PyBool_Check(object.ptr()) || !nb::try_cast(object, value))
        fail(PyIndex_Check(object.ptr()) ? ATTN_E_ARG : ATTN_E_DTYPE, name,
             "is %s, must be %s",
             nb::cast<std::string>(nb::repr(object)).c_str(), rule);
    return value;
}

inline bool is_text(nb::handle object, const char *text)
{
    return PyUnicode_Check(object.ptr()) &&
           PyUnicode_CompareWithASCIIString(object.ptr(), text) == 0;
}

/* Which of `words` it is; `rule` says them all. */
inline int word(const char *name, nb::handle object, const char *const *words,
                int n, const char *rule)
{
    for (int i = 0; i < n; i++)
        if (is_text(object, words[i]))
            return i;
    fail(ATTN_E_ARG, name, "is %s, must be %s",
         nb::cast<std::string>(nb::repr(object)).c_str(), rule);
}

/* --------------------------------------------------------------- problem */

/* The order of the tuple that attn._keywords.features makes. */
enum keyword {
    MASK, BIAS, CAUSAL, WINDOW, SCALE, SOFTCAP, ALIBI_SLOPES, SINKS,
    K_LENGTHS, Q_OFFSET, CU_SEQLENS_Q, CU_SEQLENS_K, DROPOUT_P, SEED, OFFSET,
    EMPTY_ROWS, PRECISION, LAYOUT, THREADS, N_KEYWORDS
};

inline int64_t index_at(const attn_input &t, int64_t i)
{
    const auto *bytes = static_cast<const char *>(t.data) +
                        i * t.stride[0] *
                            static_cast<int64_t>(attn_dtype_size(t.dtype));
    int32_t narrow;
    int64_t wide;

    if (t.dtype == ATTN_I32) {
        std::memcpy(&narrow, bytes, sizeof narrow);
        return narrow;
    }
    std::memcpy(&wide, bytes, sizeof wide);
    return wide;
}

inline bool is_index_list(const attn_input &t)
{
    return t.rank == 1 && (t.dtype == ATTN_I32 || t.dtype == ATTN_I64);
}

/* The longest sequence of cu_seqlens; the library checks the rest. */
inline int64_t longest(const attn_input &cu)
{
    int64_t length = 0;

    for (int64_t b = 0; is_index_list(cu) && b + 1 < cu.shape[0]; b++)
        length = std::max(length, index_at(cu, b + 1) - index_at(cu, b));
    return length;
}

/* One call, as the library wants it. */
struct problem {
    attn_desc desc;
    attn_args args;
    input q, k, v, mask, bias, alibi_slopes, sinks, k_lengths, q_offset,
        cu_seqlens_q, cu_seqlens_k, block_table;
    attn_input q_given{}, k_given{}, v_given{}; /* before folding */
    int64_t threads = 0;                        /* 0: all */
    bool varlen = false, bshd = false, paged = false;

    problem(nb::handle q_array, nb::handle k_array, nb::handle v_array,
            nb::handle keywords, nb::handle table);
    /* Of a layer, which makes its own q, k and v. */
    problem() { attn_args_init(&args); }
    void apply(nb::handle *words, nb::handle table);

    /* Axes of a result as q is: (..., last) in q's layout. */
    void shape_like_q(int64_t last, int64_t *shape) const
    {
        std::memcpy(shape, q_given.shape, sizeof q_given.shape);
        shape[q_given.rank - 1] = last;
    }

    /* (B, H, L) less what q lacks; packed: (H, T). Returns the rank. */
    int32_t shape_stats(int64_t *shape) const
    {
        const attn_input &t = args.q;
        const int32_t rank = varlen ? 2 : q_given.rank - 1;
        const int64_t full[3] = {t.shape[0], t.shape[1], t.shape[2]};

        if (varlen) {
            shape[0] = t.shape[1];
            shape[1] = t.shape[0];
        } else {
            for (int32_t axis = 0; axis < rank; axis++)
                shape[axis] = full[3 - rank + axis];
        }
        return rank;
    }

    /* Views as the library wants them. */
    template <class View> View as_heads(View t) const
    {
        if (!varlen)
            fold(&t, bshd);
        return t;
    }
    template <class View> View as_stats(View t) const
    {
        if (!varlen)
            widen(&t, 3);
        return t;
    }
    void check_rank(const char *name, const attn_input &t) const;
    void check_stats_rank(const char *name, const attn_input &t) const;

private:
    void take_heads(nb::handle, nb::handle, nb::handle);
    void take_numbers(nb::handle *words);
    void take_causal(nb::handle causal);
    void take_window(nb::handle window);
    void take_arrays(nb::handle *words, nb::handle table);
    void take_optional(const char *name, nb::handle object, input *to,
                       attn_input *field, uint32_t bit);
    bool square() const;
};

inline void problem::check_rank(const char *name, const attn_input &t) const
{
    if (varlen && t.rank != 3)
        fail(ATTN_E_SHAPE, name, "has %d axes; packed sequences have 3, "
             "(total, heads, dim)", static_cast<int>(t.rank));
    if (t.rank < 2)
        fail(ATTN_E_SHAPE, name, "has %d axes; 2 (L, D), 3 (H, L, D) and 4 "
             "(B, H, L, D) are legal", static_cast<int>(t.rank));
    if (t.rank != q_given.rank)
        fail(ATTN_E_SHAPE, name, "has %d axes, but q has %d",
             static_cast<int>(t.rank), static_cast<int>(q_given.rank));
}

inline void problem::check_stats_rank(const char *name,
                                      const attn_input &t) const
{
    const int32_t rank = varlen ? 2 : q_given.rank - 1;

    if (t.rank != rank)
        fail(ATTN_E_SHAPE, name, "has %d axes, must have %d",
             static_cast<int>(t.rank), static_cast<int>(rank));
}

/* v may be None: weights have no need of it. */
inline void problem::take_heads(nb::handle q_array, nb::handle k_array,
                         nb::handle v_array)
{
    take("q", q_array, &q);
    q_given = q.view;
    check_rank("q", q_given);
    args.q = as_heads(q_given);
    take("k", k_array, &k);
    k_given = k.view;
    if (!v_array.is_none()) {
        take("v", v_array, &v);
        v_given = v.view;
    }
    if (!paged) {
        check_rank("k", k_given);
        if (v_given.dtype != ATTN_NONE)
            check_rank("v", v_given);
    }
    args.kv.k = paged ? k_given : as_heads(k_given);
    if (v_given.dtype != ATTN_NONE)
        args.kv.v = paged ? v_given : as_heads(v_given);
}

inline void problem::take_optional(const char *name, nb::handle object,
                                   input *to, attn_input *field, uint32_t bit)
{
    if (object.is_none())
        return;
    take(name, object, to);
    *field = to->view;
    desc.inputs |= bit;
}

/* A single number stands for every batch entry. */
inline void spread(attn_input *t, int64_t batch)
{
    if (t->rank == 0 && t->dtype != ATTN_NONE) {
        t->rank = 1;
        t->shape[0] = batch;
        t->stride[0] = 0;
    }
}

inline void problem::take_arrays(nb::handle *words, nb::handle table)
{
    take_optional("attn_mask", words[MASK], &mask, &args.mask,
                  ATTN_WITH_MASK);
    if (mask.view.dtype != ATTN_NONE && mask.view.dtype != ATTN_BOOL)
        fail(ATTN_E_DTYPE, "attn_mask", "is %s, must be bool (True = attend); "
             "what is added to the scores is attn_bias",
             attn_dtype_name(mask.view.dtype));
    take_optional("attn_bias", words[BIAS], &bias, &args.bias,
                  ATTN_WITH_BIAS);
    take_optional("alibi_slopes", words[ALIBI_SLOPES], &alibi_slopes,
                  &args.alibi_slopes, ATTN_WITH_ALIBI);
    take_optional("sinks", words[SINKS], &sinks, &args.sinks,
                  ATTN_WITH_SINKS);
    take_optional("k_lengths", words[K_LENGTHS], &k_lengths,
                  &args.kv.k_lengths, ATTN_WITH_K_LENGTHS);
    take_optional("q_offset", words[Q_OFFSET], &q_offset, &args.q_offset,
                  ATTN_WITH_Q_OFFSET);
    take_optional("cu_seqlens_k", words[CU_SEQLENS_K], &cu_seqlens_k,
                  &args.cu_seqlens_k, 0);
    take_optional("block_table", table, &block_table, &args.kv.block_table,
                  ATTN_WITH_PAGES);
    spread(&args.kv.k_lengths, desc.batch);
    spread(&args.q_offset, desc.batch);
}

inline void problem::take_numbers(nb::handle *words)
{
    static const char *const empty_rows[] = {"zero", "nan"};
    static const char *const precision[] = {"standard", "high"};

    if (!words[SCALE].is_none())
        desc.scale = number("scale", words[SCALE]);
    if (!words[SOFTCAP].is_none())
        desc.softcap = number("softcap", words[SOFTCAP]);
    desc.dropout_p = number("dropout_p", words[DROPOUT_P]);
    args.seed = integer<uint64_t>("seed", words[SEED], "0 to 2^64 - 1");
    args.offset = integer<uint32_t>("offset", words[OFFSET], "0 to 2^32 - 1");
    desc.empty_rows = static_cast<attn_empty_rows>(
        word("empty_rows", words[EMPTY_ROWS], empty_rows, 2,
             "'zero' or 'nan'"));
    desc.precision = static_cast<attn_precision>(
        word("precision", words[PRECISION], precision, 2,
             "'standard' or 'high'"));
    if (!words[THREADS].is_none()) {
        threads = integer<int64_t>("threads", words[THREADS], "1 to 1024");
        if (threads < 1 || threads > 1024)
            fail(ATTN_E_ARG, "threads", "must be 1 to 1024, got %lld",
                 static_cast<long long>(threads));
    }
}

inline void problem::take_window(nb::handle window)
{
    if (window.is_none())
        return;
    if (!PySequence_Check(window.ptr()) || PyUnicode_Check(window.ptr()) ||
        PySequence_Size(window.ptr()) != 2) {
        PyErr_Clear();
        fail(ATTN_E_ARG, "window", "is %s, must be (left, right): how many "
             "keys before and after, -1 = all",
             nb::cast<std::string>(nb::repr(window)).c_str());
    }
    nb::object left = nb::steal(PySequence_GetItem(window.ptr(), 0));
    nb::object right = nb::steal(PySequence_GetItem(window.ptr(), 1));

    desc.window_left =
        integer<int64_t>("window", left, "whole numbers of keys");
    desc.window_right =
        integer<int64_t>("window", right, "whole numbers of keys");
}

/* Whether every query has as many keys as there are queries. */
inline bool problem::square() const
{
    const attn_input &cu_q = args.cu_seqlens_q, &cu_k = args.cu_seqlens_k;

    if (!varlen)
        return desc.len_q == desc.len_k;
    if (!is_index_list(cu_q) || !is_index_list(cu_k) ||
        cu_q.shape[0] != cu_k.shape[0])
        return !is_index_list(cu_k); /* for the library to refuse */
    for (int64_t b = 0; b < cu_q.shape[0]; b++)
        if (index_at(cu_q, b) != index_at(cu_k, b))
            return false;
    return true;
}

inline void problem::take_causal(nb::handle causal)
{
    if (causal.ptr() == Py_False || causal.is_none())
        return;
    if (is_text(causal, "top_left"))
        desc.causal = ATTN_CAUSAL_TOP_LEFT;
    else if (is_text(causal, "bottom_right"))
        desc.causal = ATTN_CAUSAL_BOTTOM_RIGHT;
    else if (causal.ptr() != Py_True)
        fail(ATTN_E_ARG, "causal", "is %s, must be False, True, 'top_left' "
             "or 'bottom_right'",
             nb::cast<std::string>(nb::repr(causal)).c_str());
    else if (args.q_offset.dtype != ATTN_NONE || square())
        desc.causal = ATTN_CAUSAL_TOP_LEFT;
    else if (varlen)
        fail(ATTN_E_ARG, "causal", "True needs sequences of equal lengths in "
             "cu_seqlens_q and cu_seqlens_k; say 'top_left' or "
             "'bottom_right'");
    else
        fail(ATTN_E_ARG, "causal", "True needs as many queries as keys, got "
             "%lld and %lld; say 'top_left' (query 0 sees key 0) or "
             "'bottom_right' (the last query sees every key)",
             static_cast<long long>(desc.len_q),
             static_cast<long long>(desc.len_k));
}

/* The keywords one by one, borrowed from the caller's tuple. */
inline void borrow_words(nb::handle keywords, nb::handle *words)
{
    if (PyTuple_GET_SIZE(keywords.ptr()) != N_KEYWORDS)
        throw nb::value_error("the keywords are not those of this build");
    for (int i = 0; i < N_KEYWORDS; i++)
        words[i] = PyTuple_GET_ITEM(keywords.ptr(), i);
}

/* Everything but q, k and v, into a descriptor that has its sizes. */
inline void problem::apply(nb::handle *words, nb::handle table)
{
    take_arrays(words, table);
    if (varlen) {
        desc.len_q = longest(args.cu_seqlens_q);
        desc.len_k = longest(args.cu_seqlens_k);
    }
    if (paged)
        desc.len_k = args.kv.k.shape[2] * block_table.view.shape[1];
    take_numbers(words);
    take_window(words[WINDOW]);
    take_causal(words[CAUSAL]);
}

inline problem::problem(nb::handle q_array, nb::handle k_array,
                        nb::handle v_array, nb::handle keywords,
                        nb::handle table)
{
    static const char *const layouts[] = {"bhsd", "bshd"};
    nb::handle words[N_KEYWORDS];

    borrow_words(keywords, words);
    attn_args_init(&args);
    varlen = !words[CU_SEQLENS_Q].is_none();
    paged = !table.is_none();
    bshd = word("layout", words[LAYOUT], layouts, 2, "'bhsd' or 'bshd'") == 1;
    take_heads(q_array, k_array, v_array);

    const attn_input &tq = args.q, &tk = args.kv.k, &tv = args.kv.v;
    const int64_t dim_v =
        tv.dtype == ATTN_NONE ? 0 : tv.shape[tv.rank - 1];

    attn_desc_init(&desc, tq.dtype, tq.shape[0], tq.shape[1], tk.shape[1],
                   tq.shape[2], tk.shape[2], tq.shape[tq.rank - 1], dim_v);
    if (varlen) {
        take_optional("cu_seqlens_q", words[CU_SEQLENS_Q], &cu_seqlens_q,
                      &args.cu_seqlens_q, ATTN_WITH_VARLEN);
        desc.batch = std::max<int64_t>(args.cu_seqlens_q.shape[0] - 1, 0);
        desc.total_q = tq.shape[0];
    }
    apply(words, table);
}

} // namespace binding

#endif
