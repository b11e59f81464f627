# SPDX-License-Identifier: Apache-2.0
"""What counts as an array: strides, ranks, layouts, types, makers."""

import array

import ml_dtypes
import numpy as np
import pytest

import attn
from strategies import FLOATS

RNG = np.random.default_rng(10)
Q, K, V = RNG.normal(size=(3, 2, 4, 9, 6))
WANT = attn.attention(Q, K, V)


class Foreign:
    """An array of a maker that nobody knows, with nothing but DLPack."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **how):
        return self.data.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


class Standard(Foreign):
    """One whose maker follows the array API standard."""

    def __array_namespace__(self):
        return Standard

    @staticmethod
    def from_dlpack(x):
        return Standard(np.from_dlpack(x))


def views(x):
    """Arrays equal to x with all kinds of strides."""
    yield np.asfortranarray(x)
    yield x[..., ::-1].copy()[..., ::-1]
    yield x[:, :, ::-1].copy()[:, :, ::-1]
    wide = np.zeros(x.shape[:-1] + (2 * x.shape[-1],), x.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    yield x.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)
    raw = np.zeros(x.nbytes + 1, np.uint8)[1:]         # not aligned
    raw = raw.view(x.dtype).reshape(x.shape)
    raw[...] = x
    yield raw


def test_any_strides_give_the_same_bits():
    for q, k, v in zip(views(Q), views(K), views(V)):
        assert attn.attention(q, k, v).tobytes() == WANT.tobytes()


def test_broadcast_inputs_have_strides_of_zero():
    k = np.broadcast_to(K[:1, :1], K.shape)
    want = attn.attention(Q, k.copy(), k.copy())
    assert attn.attention(Q, k, k).tobytes() == want.tobytes()


def test_packed_qkv_is_three_views():
    qkv = np.stack([Q, K, V], axis=3)                  # (B, H, L, 3, D)
    o = attn.attention(qkv[..., 0, :], qkv[..., 1, :], qkv[..., 2, :])
    assert o.tobytes() == WANT.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_read_only_inputs(dtype):
    q, k, v = (x.astype(dtype) for x in (Q, K, V))
    want = attn.attention(q, k, v)
    for x in (q, k, v):
        x.flags.writeable = False
    assert attn.attention(q, k, v).tobytes() == want.tobytes()


@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_ranks_and_layouts(rank, layout):
    def part(x):
        x = {4: x, 3: x[1], 2: x[1, 2]}[rank]
        return x.swapaxes(-3, -2) if layout == "bshd" and rank > 2 else x

    whole = attn.attention(Q, K, V, return_lse=True, return_weights=True,
                           return_entropy=True)
    got = attn.attention(part(Q), part(K), part(V), layout=layout,
                         return_lse=True, return_weights=True,
                         return_entropy=True)
    assert np.array_equal(got[0], part(whole[0]))
    for a, b in zip(got[1:], whole[1:]):               # in every layout
        b = {4: b, 3: b[1], 2: b[1, 2]}[rank]
        assert a.shape == b.shape and a.tobytes() == b.tobytes()
    w = attn.weights(part(Q), part(K), layout=layout)
    assert w.tobytes() == got[2].tobytes() and w.shape == got[2].shape


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [
    ((0, 2, 3, 4), (0, 2, 5, 4), (0, 2, 5, 6)),
    ((1, 2, 0, 4), (1, 2, 5, 4), (1, 2, 5, 6)),
    ((1, 2, 3, 4), (1, 2, 0, 4), (1, 2, 0, 6)),
    ((1, 2, 3, 0), (1, 2, 5, 0), (1, 2, 5, 6)),
    ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 0)),
    ((1, 0, 3, 4), (1, 0, 5, 4), (1, 0, 5, 6)),
    ((0, 0), (0, 0), (0, 0))])
def test_zero_sizes(dtype, shape):
    q, k, v = (np.ones(s, dtype) for s in shape)
    o, vjp = attn.attention_vjp(q, k, v)
    assert o.shape == q.shape[:-1] + v.shape[-1:]
    assert (o == (1 if k.shape[-2] else 0)).all()
    for d, x in zip(vjp(np.ones_like(o)), (q, k, v)):
        assert d.shape == x.shape and d.dtype == x.dtype


def test_out_is_written_and_returned():
    for make in (np.zeros_like, np.asfortranarray):
        out = make(WANT) * 0
        assert attn.attention(Q, K, V, out=out) is out
        assert np.array_equal(out, WANT)
    out = np.zeros((2, 9, 4, 12))[..., ::2]
    assert attn.attention(Q.swapaxes(1, 2), K.swapaxes(1, 2),
                          V.swapaxes(1, 2), layout="bshd", out=out) is out
    assert np.array_equal(out, WANT.swapaxes(1, 2))


def test_out_of_bfloat16():
    q = Q.astype(ml_dtypes.bfloat16)
    out = np.zeros_like(q)
    o, lse = attn.attention(q, q, q, out=out, return_lse=True)
    assert o is out
    assert out.tobytes() == attn.attention(q, q, q).tobytes()


def test_other_makers_arrays():
    want = attn.attention(Q, K, V, return_lse=True)
    got = attn.attention(Standard(Q), Foreign(K), V, return_lse=True)
    for a, b in zip(got, want):
        assert isinstance(a, Standard)                 # of the kind of q
        assert np.array_equal(np.from_dlpack(a), b)
    out = np.zeros_like(WANT)
    attn.attention(Q, Foreign(K), Foreign(V), out=Foreign(out))
    assert out.tobytes() == WANT.tobytes()


def test_buffers_that_are_no_numpy_arrays():
    q = memoryview(np.ascontiguousarray(Q))
    o = attn.attention(q, K, V)
    assert type(o) is np.ndarray and o.tobytes() == WANT.tobytes()
    positions = array.array("i", [0, 1, 2])
    x = np.ones((3, 4))
    assert np.array_equal(attn.rope(x, positions), attn.rope(x, [0, 1, 2]))


def test_small_arrays_may_be_lists_and_numbers():
    words = dict(k_lengths=[5, 9], q_offset=3, sinks=[0.1, 0.2, 0.3, 0.4],
                 alibi_slopes=(0.5, 0.25, 0.125, 0.0625))
    arrays = dict(k_lengths=np.array([5, 9]), q_offset=np.array([3, 3]),
                  sinks=np.array(words["sinks"]),
                  alibi_slopes=np.array(words["alibi_slopes"]))
    assert attn.attention(Q, K, V, **words).tobytes() == \
        attn.attention(Q, K, V, **arrays).tobytes()
    for kind in (np.int8, np.uint16, np.int32, np.uint64):
        arrays["k_lengths"] = np.array([5, 9], kind)
        assert attn.attention(Q, K, V, **words).tobytes() == \
            attn.attention(Q, K, V, **arrays).tobytes()


def test_subclasses_of_ndarray(tmp_path):
    path = tmp_path / "q"
    q = np.memmap(path, np.float64, "w+", shape=Q.shape)
    q[...] = Q
    assert np.array_equal(attn.attention(q, K, V), WANT)


def test_no_copies():
    """A result's memory is the only memory that a call adds."""
    import tracemalloc
    q = np.zeros((1, 8, 4096, 64), np.float32)
    k = q.swapaxes(1, 2)[:, :8]                        # small, other strides
    k = k.swapaxes(1, 2)
    attn.attention(q[:, :, :8], k, k)
    tracemalloc.start()
    o = attn.attention(q, k, k)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < o.nbytes + q.nbytes // 4
