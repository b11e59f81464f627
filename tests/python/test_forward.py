# SPDX-License-Identifier: Apache-2.0
"""attn.attention and attn.weights against the formula."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import attn
from reference import (Bounded, check, dropout_factor, forward, score_size,
                       scores, softmax, tiny)
from strategies import FLOATS, problems


@given(problems(dtypes=FLOATS))
def test_every_result_is_within_its_bound(p):
    got = attn.attention(p.q, p.k, p.v, return_lse=True, return_weights=True,
                         return_entropy=True, **p.keywords)
    want = forward(p)
    for name, array in zip(("o", "lse", "weights", "entropy"), got):
        check(name, array, want[name])


@given(problems(dtypes=FLOATS))
def test_result_types(p):
    o, lse, w, entropy = attn.attention(
        p.q, p.k, p.v, return_lse=True, return_weights=True,
        return_entropy=True, **p.keywords)
    wide = p.q.dtype in (np.float64, np.float32)
    assert o.dtype == p.q.dtype
    assert lse.dtype == entropy.dtype == (np.float64 if wide else np.float32)
    assert w.dtype == (np.float64 if p.q.dtype == np.float64 else np.float32)


@given(problems())
def test_asking_for_more_changes_no_bit(p):
    o = attn.attention(p.q, p.k, p.v, **p.keywords)
    more = attn.attention(p.q, p.k, p.v, return_lse=True, return_weights=True,
                          return_entropy=True, **p.keywords)
    assert o.tobytes() == more[0].tobytes()
    for name, array in zip(("lse", "weights", "entropy"), more[1:]):
        alone = attn.attention(p.q, p.k, p.v, **{f"return_{name}": True},
                               **p.keywords)
        assert alone[1].tobytes() == array.tobytes(), name


@given(problems())
def test_weights_in_all_four_stages(p):
    raw, capped, biased = scores(p)
    # d products and sums, scale, softcap, bias and ALiBi
    bound = (p.dim + 8) * p.u * score_size(p) + tiny(p)
    for mode, want in {"raw": raw, "softcapped": capped,
                       "biased": biased}.items():
        got = attn.weights(p.q, p.k, mode=mode, **p.keywords)
        check(mode, got, Bounded(want, bound))
    probs = attn.weights(p.q, p.k, **p.keywords)
    assert (probs[biased == -np.inf] == 0).all()
    check("probs", probs, forward(p)["weights"])


@given(problems(), st.data())
def test_chosen_heads_and_rows(p, data):
    heads = data.draw(st.lists(st.integers(0, p.heads - 1), max_size=4))
    rows = data.draw(st.lists(st.integers(0, max(p.len_q - 1, 0)),
                              max_size=4)) if p.len_q else []
    whole = attn.weights(p.q, p.k, **p.keywords)
    some = attn.weights(p.q, p.k, heads=heads, rows=rows, **p.keywords)
    assert some.shape == (p.batch, len(heads), len(rows), p.len_k)
    assert some.tobytes() == whole[:, heads][:, :, rows].tobytes()


@settings(max_examples=30)
@given(problems(), st.floats(0, 1), st.integers(0, 2**64 - 1),
       st.integers(0, 2**32 - 1))
def test_dropout_is_the_mask_that_is_shown(p, drop, seed, offset):
    p.keywords["dropout_p"] = drop
    mask = attn.dropout_mask((p.batch, p.heads, p.len_q, p.len_k), drop, seed,
                             offset)
    o, lse, w = attn.attention(p.q, p.k, p.v, seed=seed, offset=offset,
                               return_lse=True, return_weights=True,
                               **p.keywords)
    want = forward(p, mask)
    check("o", o, want["o"])
    check("lse", lse, want["lse"])         # both before dropout
    check("weights", w, want["weights"])
    assert dropout_factor(p, mask).shape == mask.shape


@given(problems())
def test_empty_rows_can_be_nan(p):
    got = attn.attention(p.q, p.k, p.v, return_lse=True, return_weights=True,
                         return_entropy=True, empty_rows="nan", **p.keywords)
    zero = attn.attention(p.q, p.k, p.v, return_lse=True, return_weights=True,
                          return_entropy=True, **p.keywords)
    _, lse, _ = softmax(p, scores(p)[2])
    empty = lse == -np.inf
    for with_nan, with_zero in zip(got, zero):
        assert np.isnan(with_nan[empty]).all()
        assert with_nan[~empty].tobytes() == with_zero[~empty].tobytes()


def test_packed_sequences_are_sequences():
    rng = np.random.default_rng(1)
    lens_q, lens_k = [3, 0, 17, 5], [4, 2, 17, 0]
    cu_q, cu_k = np.cumsum([0] + lens_q), np.cumsum([0] + lens_k)
    q = rng.normal(size=(cu_q[-1], 4, 8))
    k, v = rng.normal(size=(2, cu_k[-1], 2, 8))
    o, lse, entropy = attn.attention(
        q, k, v, cu_seqlens_q=cu_q, cu_seqlens_k=cu_k.astype(np.int32),
        causal="bottom_right", return_lse=True, return_entropy=True)
    assert o.shape == q.shape and lse.shape == entropy.shape == (4, cu_q[-1])
    for a, b, c, d in zip(cu_q, cu_q[1:], cu_k, cu_k[1:]):
        alone, alone_lse = attn.attention(
            q[a:b], k[c:d], v[c:d], layout="bshd", causal="bottom_right",
            return_lse=True)
        np.testing.assert_allclose(o[a:b], alone, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(lse[:, a:b], alone_lse, rtol=1e-13)


def test_packed_causal_true_needs_equal_lengths():
    q = np.ones((6, 1, 4))
    same = dict(cu_seqlens_q=[0, 2, 6], cu_seqlens_k=[0, 2, 6])
    a = attn.attention(q, q, q, causal=True, **same)
    b = attn.attention(q, q, q, causal="top_left", **same)
    assert a.tobytes() == b.tobytes()
    try:
        attn.attention(q, q, q, causal=True, cu_seqlens_q=[0, 2, 6],
                       cu_seqlens_k=[0, 3, 6])
    except ValueError as error:
        assert "top_left" in str(error) and "bottom_right" in str(error)
    else:
        raise AssertionError("accepted unequal lengths")
