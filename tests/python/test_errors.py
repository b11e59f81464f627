# SPDX-License-Identifier: Apache-2.0
"""Every bad argument: the exception, one sentence that names the argument,
and nothing written into `out`."""

import numpy as np
import pytest

import attn

RNG = np.random.default_rng(20)


def case(**changes):
    """Arguments of a good call, with some replaced."""
    given = dict(q=RNG.normal(size=(2, 4, 5, 8)),
                 k=RNG.normal(size=(2, 2, 7, 8)),
                 v=RNG.normal(size=(2, 2, 7, 6)))
    given.update(changes)
    return given


def zeros(*shape, dtype=np.float64):
    return np.zeros(shape, dtype)


BAD = [
    # ranks and shapes
    ("q", ValueError, dict(q=zeros(8))),
    ("q", ValueError, dict(q=zeros(1, 2, 4, 5, 8))),
    ("q", ValueError, dict(q=np.float64(1.0) + zeros())),
    ("k", ValueError, dict(k=zeros(2, 7, 8))),
    ("v", ValueError, dict(v=zeros(7, 6))),
    ("k", ValueError, dict(k=zeros(2, 2, 7, 9))),
    ("k", ValueError, dict(k=zeros(3, 2, 7, 8), v=zeros(3, 2, 7, 6))),
    ("v", ValueError, dict(v=zeros(2, 2, 6, 6))),
    ("v", ValueError, dict(v=zeros(2, 4, 7, 6))),
    ("heads_kv", ValueError, dict(k=zeros(2, 3, 7, 8), v=zeros(2, 3, 7, 6))),
    ("heads_kv", ValueError, dict(k=zeros(2, 0, 7, 8), v=zeros(2, 0, 7, 6))),
    # types
    ("dtype", TypeError, {n: zeros(2, 2, 3, 4, dtype=np.int64)
                          for n in "qkv"}),
    ("q", TypeError, dict(q=zeros(2, 4, 5, 8, dtype=np.complex128))),
    ("q", TypeError, dict(q=zeros(2, 4, 5, 8, dtype=np.uint8))),
    ("q", TypeError, dict(q=zeros(2, 4, 5, 8, dtype=np.longdouble))),
    ("q", TypeError, dict(q=zeros(2, 4, 5, 8, dtype=object))),
    ("q", TypeError, dict(q=zeros(2, 4, 5, 8, dtype=">f8"))),
    ("q", TypeError, dict(q=[[1.0]])),
    ("q", TypeError, dict(q=None)),
    ("k", TypeError, dict(k="k")),
    ("k", TypeError, dict(k=zeros(2, 2, 7, 8, dtype=np.float32))),
    ("v", TypeError, dict(v=zeros(2, 2, 7, 6, dtype=np.float32))),
    # strides that are no whole number of elements
    ("q", ValueError, dict(q=np.zeros((2, 4, 5, 8), "f8,f4")["f0"])),
    # masks and biases
    ("attn_mask", TypeError, dict(attn_mask=zeros(5, 7))),
    ("attn_mask", TypeError, dict(attn_mask=zeros(5, 7, dtype=np.int32))),
    ("attn_mask", ValueError, dict(attn_mask=zeros(5, 6, dtype=bool))),
    ("attn_mask", ValueError, dict(attn_mask=zeros(7, 5, dtype=bool))),
    ("attn_mask", ValueError, dict(attn_mask=zeros(1, 1, 1, 5, 7,
                                                   dtype=bool))),
    ("attn_bias", TypeError, dict(attn_bias=zeros(5, 7, dtype=bool))),
    ("attn_bias", TypeError, dict(attn_bias=zeros(5, 7, dtype=np.float16))),
    ("attn_bias", ValueError, dict(attn_bias=zeros(2, 5, 7))),
    # causal, window
    ("causal", ValueError, dict(causal=True)),
    ("causal", ValueError, dict(causal="topleft")),
    ("causal", ValueError, dict(causal=2)),
    ("window_left", ValueError, dict(window=(-2, 0))),
    ("window_right", ValueError, dict(window=(0, -2))),
    ("window", ValueError, dict(window=3)),
    ("window", ValueError, dict(window=(1, 2, 3))),
    ("window", TypeError, dict(window=(1.5, 0))),
    ("window", TypeError, dict(window=("1", 0))),
    # numbers
    ("scale", ValueError, dict(scale=float("nan"))),
    ("scale", TypeError, dict(scale="1")),
    ("softcap", ValueError, dict(softcap=-1.0)),
    ("softcap", ValueError, dict(softcap=float("inf"))),
    ("dropout_p", ValueError, dict(dropout_p=1.5)),
    ("dropout_p", ValueError, dict(dropout_p=float("nan"))),
    ("seed", ValueError, dict(seed=-1)),
    ("seed", ValueError, dict(seed=2**64)),
    ("seed", TypeError, dict(seed=0.5)),
    ("offset", ValueError, dict(offset=2**32)),
    ("threads", ValueError, dict(threads=0)),
    ("threads", ValueError, dict(threads=1025)),
    ("threads", TypeError, dict(threads=1.0)),
    # words
    ("empty_rows", ValueError, dict(empty_rows="one")),
    ("precision", ValueError, dict(precision="low")),
    ("layout", ValueError, dict(layout="bsdh")),
    # per head, per batch
    ("alibi_slopes", ValueError, dict(alibi_slopes=zeros(2))),
    ("alibi_slopes", ValueError, dict(alibi_slopes=zeros(4, 2))),
    ("alibi_slopes", TypeError, dict(alibi_slopes=["a"] * 4)),
    ("sinks", ValueError, dict(sinks=zeros(2))),
    ("sinks", TypeError, dict(sinks=zeros(4, dtype=np.int32))),
    ("k_lengths", ValueError, dict(k_lengths=[1, 8])),
    ("k_lengths", ValueError, dict(k_lengths=[-1, 7])),
    ("k_lengths", ValueError, dict(k_lengths=[7])),
    ("k_lengths", TypeError, dict(k_lengths=[1.0, 2.0])),
    ("q_offset", ValueError, dict(q_offset=[0, 0, 0])),
    ("q_offset", ValueError, dict(q_offset=2**62 + 1)),
    ("q_offset", TypeError, dict(q_offset=0.5)),
]


@pytest.mark.parametrize("field,error,changes", BAD)
def test_bad_argument(field, error, changes):
    given = case(**changes)
    q, k, v = (given.pop(n) for n in "qkv")
    out = np.full((2, 4, 5, 6), 7.0)
    for function in (
            lambda: attn.attention(q, k, v, out=out, **given),
            lambda: attn.attention_vjp(q, k, v, **given)):
        with pytest.raises(error) as caught:
            function()
        check_sentence(str(caught.value), field)
    assert (out == 7.0).all()


def check_sentence(text, field):
    assert text.startswith(field + ": "), text
    assert "\n" not in text and 10 < len(text) < 250, text


PACKED = dict(cu_seqlens_q=[0, 2, 5], cu_seqlens_k=[0, 3, 7])
BAD_PACKED = [
    ("cu_seqlens_q", ValueError, dict(cu_seqlens_q=[1, 2, 5])),
    ("cu_seqlens_q", ValueError, dict(cu_seqlens_q=[0, 4, 3, 5],
                                      cu_seqlens_k=[0, 3, 7, 7])),
    ("cu_seqlens_q", ValueError, dict(cu_seqlens_q=[0, 2, 4])),
    ("cu_seqlens_k", ValueError, dict(cu_seqlens_k=[0, 3, 8])),
    ("cu_seqlens_k", ValueError, dict(cu_seqlens_k=[0, 7])),
    ("cu_seqlens_k", ValueError, dict(cu_seqlens_k=None)),
    ("cu_seqlens_q", TypeError, dict(cu_seqlens_q=[0.0, 2.0, 5.0])),
    ("attn_mask", NotImplementedError,
     dict(attn_mask=np.ones((5, 7), bool))),
    ("attn_bias", NotImplementedError, dict(attn_bias=np.ones((5, 7)))),
    ("causal", ValueError, dict(causal=True)),
]


@pytest.mark.parametrize("field,error,changes", BAD_PACKED)
def test_bad_packed_argument(field, error, changes):
    q, k, v = zeros(5, 4, 8), zeros(7, 2, 8), zeros(7, 2, 6)
    out = np.full((5, 4, 6), 7.0)
    with pytest.raises(error) as caught:
        attn.attention(q, k, v, out=out, **{**PACKED, **changes})
    check_sentence(str(caught.value), field)
    assert (out == 7.0).all()


def test_bad_packed_ranks_and_results():
    q = zeros(2, 5, 4, 8)
    with pytest.raises(ValueError, match=r"^q: has 4 axes; packed"):
        attn.attention(q, q, q, **PACKED)
    q, k = zeros(5, 4, 8), zeros(7, 2, 8)
    with pytest.raises(NotImplementedError, match="^return_weights: "):
        attn.attention(q, k, k, return_weights=True, **PACKED)
    with pytest.raises(NotImplementedError, match="^cu_seqlens_q: "):
        attn.weights(q, k, **PACKED)


@pytest.mark.parametrize("out,error", [
    (zeros(2, 4, 5, 8), ValueError),
    (zeros(4, 5, 6), ValueError),
    (zeros(2, 4, 5, 6, dtype=np.float32), TypeError),
    (np.broadcast_to(zeros(6), (2, 4, 5, 6)), ValueError),
    (zeros(2, 4, 5, 6, dtype=">f8"), TypeError),
    ([0.0], TypeError)])
def test_bad_out(out, error):
    given = case()
    with pytest.raises(error) as caught:
        attn.attention(given["q"], given["k"], given["v"], out=out)
    check_sentence(str(caught.value), "out")


def test_out_that_is_an_input():
    q = zeros(2, 3, 4)
    kept = q.copy()
    with pytest.raises(ValueError, match="^out: .*shares memory with q"):
        attn.attention(q, q.copy(), q.copy(), out=q)
    assert np.array_equal(q, kept)


def test_unknown_keyword():
    q = zeros(2, 3, 4)
    for function in (attn.attention, attn.attention_vjp, attn.weights):
        arguments = (q, q) if function is attn.weights else (q, q, q)
        with pytest.raises(TypeError, match="is_causal"):
            function(*arguments, is_causal=True)


def test_float_mask_points_to_bias():
    q = zeros(2, 3, 4)
    with pytest.raises(TypeError, match="attn_bias"):
        attn.attention(q, q, q, attn_mask=zeros(3, 3))


def test_bad_gradients():
    q = zeros(2, 3, 4)
    o, lse = attn.attention(q, q, q, return_lse=True)
    good = dict(do=o, q=q, k=q, v=q, o=o, lse=lse)
    for field, error, value in [
            ("do", ValueError, zeros(2, 3, 5)),
            ("do", TypeError, zeros(2, 3, 4, dtype=np.float32)),
            ("o", ValueError, zeros(2, 4, 4)),
            ("lse", ValueError, zeros(2, 4)),
            ("lse", TypeError, zeros(2, 3, dtype=np.float16)),
            ("dlse", ValueError, zeros(3, 2))]:
        with pytest.raises(error) as caught:
            attn.attention_backward(**{**good, field: value})
        check_sentence(str(caught.value), field)
    with pytest.raises(NotImplementedError, match="^empty_rows: "):
        attn.attention_backward(**good, empty_rows="nan")


RIGHT = np.zeros((1, 2, 1, 8), np.float32)
BAD_CALLS = [
    ("dtype", TypeError, lambda: attn.KVCache(1, 2, 4, 8, dtype="int8")),
    ("capacity", TypeError, lambda: attn.KVCache(1, 2, 4.0, 8)),
    ("dim", ValueError, lambda: attn.KVCache(1, 2, 4, -8)),
    ("page_size", ValueError, lambda: attn.KVCache(1, 2, 4, 8, page_size=0)),
    ("k", TypeError, lambda: attn.KVCache(1, 2, 4, 8).append([1], RIGHT)),
    ("k", ValueError, lambda: attn.KVCache(1, 3, 4, 8).append(RIGHT, RIGHT)),
    ("v", ValueError, lambda: attn.KVCache(1, 2, 4, 8, 7).append(RIGHT,
                                                                 RIGHT)),
    ("v", TypeError, lambda: attn.KVCache(1, 2, 4, 8, dtype="float64").append(
        RIGHT, RIGHT)),
    ("shape", TypeError, lambda: attn.dropout_mask(5, 0.5, 1)),
    ("shape", TypeError, lambda: attn.dropout_mask((2.0, 3), 0.5, 1)),
    ("shape", ValueError, lambda: attn.dropout_mask((2, -3), 0.5, 1)),
    ("p", TypeError, lambda: attn.dropout_mask((2, 3), "a", 1)),
    ("p", ValueError, lambda: attn.dropout_mask((2, 3), 1.5, 1)),
    ("seed", TypeError, lambda: attn.dropout_mask((2, 3), 0.5, 1.5)),
    ("heads", TypeError, lambda: attn.multi_head(*[np.eye(8)] * 5,
                                                 heads="2")),
    ("norm_eps", TypeError, lambda: attn.multi_head(
        *[np.eye(8)] * 5, heads=2, qk_norm=True, norm_eps="x")),
    ("rope", ValueError, lambda: attn.multi_head(
        *[np.eye(8)] * 5, heads=2, rope={"theta": 1.0})),
    ("name", ValueError, lambda: attn.lab("sharpening")),
    ("seed", ValueError, lambda: attn.lab("sharpen", seed=-1)),
    ("length", TypeError, lambda: attn.lab("sharpen", length=8.0)),
]


@pytest.mark.parametrize("field,error,call", BAD_CALLS)
def test_bad_calls_of_the_other_functions(field, error, call):
    with pytest.raises(error) as caught:
        call()
    check_sentence(str(caught.value), field)


def test_a_layers_types_are_told_without_plans():
    x = np.eye(8)
    with pytest.raises(TypeError) as caught:
        attn.multi_head(x, x.astype("f4"), x, x, x, heads=2)
    assert str(caught.value) == "w_q: is f32, must be f64, the layer's dtype"


def test_a_refused_append_changes_nothing():
    cache = attn.KVCache(1, 2, 4, 8, dtype=np.float32)
    cache.append(RIGHT + 1, RIGHT + 2)
    held = cache.k.copy(), cache.v.copy()
    for k, v in [(RIGHT, RIGHT[:, :1]), (RIGHT.astype("f8"), RIGHT),
                 (RIGHT, RIGHT.astype("f8")), (RIGHT[0], RIGHT[0])]:
        with pytest.raises((ValueError, TypeError)):
            cache.append(k, v)
    assert cache.lengths.tolist() == [1]
    assert (cache.k[:, :, :1] == held[0][:, :, :1]).all()
    assert (cache.v[:, :, :1] == held[1][:, :, :1]).all()


def test_bad_weights():
    q = zeros(2, 3, 4)
    for field, words in [("mode", dict(mode="prob")),
                         ("heads", dict(heads=[2])),
                         ("heads", dict(heads=[-1])),
                         ("rows", dict(rows=[3])),
                         ("rows", dict(rows=[[0]])),
                         ("rows", dict(rows=[1.5])),
                         ("heads", dict(heads=["0"]))]:
        with pytest.raises((ValueError, TypeError)) as caught:
            attn.weights(q, q, **words)
        check_sentence(str(caught.value), field)
