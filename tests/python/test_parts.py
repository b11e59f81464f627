# SPDX-License-Identifier: Apache-2.0
"""Dropout masks, partial results, and caches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import attn
from reference import Problem, check, forward
from strategies import FLOATS

# ---------------------------------------------------------------- dropout


def philox(key, counter):
    """Philox4x32-10 (Salmon et al. 2011), on Python's integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF,
             (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF,
             (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_philox_known_answers():
    # From the kat_vectors of Random123 1.14.
    assert philox((0, 0), (0, 0, 0, 0)) == [0x6627E8D5, 0xE169C58D,
                                            0xBC57AC4C, 0x9B00DBD8]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.floats(0, 1),
       st.tuples(st.integers(0, 99), st.integers(0, 99)))
def test_dropout_mask_is_philox(seed, offset, p, start):
    shape = (2, 2, 2, 7)
    mask = attn.dropout_mask(shape, p, seed, offset, start=start)
    assert mask.dtype == bool and mask.shape == shape
    for b, h, i, j in np.ndindex(shape):
        row, column = i + start[0], j + start[1]
        word = philox((seed & 0xFFFFFFFF, seed >> 32),
                      (column // 4, row, b * shape[1] + h, offset))[column % 4]
        assert mask[b, h, i, j] == (word >= int(p * 2**32))


def test_dropout_mask_of_fewer_axes_and_its_errors():
    whole = attn.dropout_mask((1, 1, 5, 6), 0.5, 9)
    assert np.array_equal(attn.dropout_mask((5, 6), 0.5, 9), whole[0, 0])
    for shape in ((), (1, 1, 1, 1, 1), (-1, 2)):
        with pytest.raises(ValueError, match="^shape: "):
            attn.dropout_mask(shape, 0.5, 9)
    with pytest.raises(ValueError, match="^p: "):
        attn.dropout_mask((1, 2), 1.5, 9)


# ------------------------------------------------------------------ merge


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
def test_merge(dtype, rank, layout):
    rng = np.random.default_rng(50)
    q, k, v = rng.normal(size=(3, 2, 3, 9, 4)).astype(dtype)
    q, k, v = (x[(0,) * (4 - rank)] for x in (q, k, v))
    whole = Problem(*(x.reshape((1,) * (4 - rank) + x.shape)
                      for x in (q, k, v)))
    if layout == "bshd" and rank > 2:
        q, k, v = (x.swapaxes(-3, -2) for x in (q, k, v))
    axis = -3 if layout == "bshd" and rank > 2 else -2

    def part(start, stop):
        keys = [slice(None)] * rank
        keys[axis] = slice(start, stop)
        return attn.attention(q, k[tuple(keys)], v[tuple(keys)],
                              layout=layout, return_lse=True)

    o, lse = attn.merge(*part(0, 2), *part(2, 9), layout=layout)
    assert o.dtype == dtype and o.shape == q.shape
    if layout == "bshd" and rank > 2:
        o = o.swapaxes(-3, -2)
    want = forward(whole)
    # The parts were rounded to the type once already.
    want["o"].bound *= 2
    want["o"].bound += 2 * whole.half_ulp * abs(whole.wide(whole.v)).max()
    want["lse"].bound *= 2
    check("o", o.reshape(want["o"].value.shape), want["o"])
    check("lse", lse.reshape(want["lse"].value.shape), want["lse"])


def test_merge_with_nothing():
    rng = np.random.default_rng(51)
    q, k, v = rng.normal(size=(3, 4, 8))
    o, lse = attn.attention(q, k, v, return_lse=True)
    nothing = attn.attention(q, k[:0], v[:0], return_lse=True)
    for merged in (attn.merge(o, lse, *nothing), attn.merge(*nothing, o, lse)):
        assert merged[0].tobytes() == o.tobytes()
        assert merged[1].tobytes() == lse.tobytes()
    o, lse = attn.merge(*nothing, *nothing)
    assert (o == 0).all() and (lse == -np.inf).all()


def test_merge_errors():
    o, lse = np.zeros((2, 3, 4)), np.zeros((2, 3))
    for field, arguments in [("o2", (o, lse, o[:1], lse)),
                             ("lse2", (o, lse, o, lse[:1])),
                             ("o1", (o[0, 0, 0], lse, o, lse))]:
        with pytest.raises((ValueError, TypeError), match=f"^{field}: "):
            attn.merge(*arguments)
    with pytest.raises(ValueError, match="^layout: "):
        attn.merge(o, lse, o, lse, layout="thd")


# ------------------------------------------------------------------ cache


@pytest.mark.parametrize("page_size", [None, 1, 4, 16, 100])
@pytest.mark.parametrize("dtype", FLOATS)
def test_decode_equals_attention(page_size, dtype):
    rng = np.random.default_rng(52)
    q = rng.normal(size=(2, 4, 20, 8)).astype(dtype)
    k, v = rng.normal(size=(2, 2, 2, 20, 8)).astype(dtype)
    cache = attn.KVCache(2, 2, 24, 8, dtype=q.dtype.name, page_size=page_size)
    assert cache.k.dtype == dtype
    at = 0
    for n in (5, 1, 1, 7, 0, 6):
        new = slice(at, at + n)
        cache.append(k[:, :, new], v[:, :, new])
        at += n
        o, lse = attn.decode(q[:, :, new], cache, return_lse=True)
        p = Problem(q[:, :, new], k[:, :, :at], v[:, :, :at],
                    dict(causal="bottom_right"))
        want = forward(p)
        check("o", o, want["o"])
        check("lse", lse, want["lse"])
    assert cache.lengths.tolist() == [20, 20]


def test_pages_have_the_bits_of_a_contiguous_cache():
    rng = np.random.default_rng(53)
    k, v = rng.normal(size=(2, 2, 2, 30, 8)).astype(np.float32)
    q = rng.normal(size=(2, 4, 3, 8)).astype(np.float32)
    results = []
    for page_size in (None, 7, 16):
        cache = attn.KVCache(2, 2, 40, 8, page_size=page_size)
        cache.append(k, v)
        cache.lengths[:] = (30, 11)      # one sequence forgets its last keys
        if page_size:                    # pages may lie anywhere
            order = rng.permutation(cache.block_table.size)
            pages = np.zeros_like(cache.k), np.zeros_like(cache.v)
            pages[0][order], pages[1][order] = cache.k, cache.v
            cache.k, cache.v = pages
            cache.block_table[:] = order.reshape(cache.block_table.shape)
        results.append(attn.decode(q, cache, window=(8, 0)).tobytes())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("page_size", [None, 8])
def test_decode_of_packed_queries(page_size):
    """Serving: sequences at different lengths, one new token for some."""
    rng = np.random.default_rng(54)
    k, v = rng.normal(size=(2, 3, 2, 16, 8))
    cache = attn.KVCache(3, 2, 16, 8, dtype=float, page_size=page_size)
    cache.append(k, v)
    cache.lengths[:] = (16, 5, 9)
    cu = [0, 1, 1, 4]                    # 1, 0 and 3 new tokens
    q = rng.normal(size=(4, 2, 8))
    o = attn.decode(q, cache, cu_seqlens_q=cu)
    for b, n in enumerate((16, 5, 9)):
        rows = slice(cu[b], cu[b + 1])
        want = attn.attention(q[rows].swapaxes(0, 1), k[b, :, :n],
                              v[b, :, :n], causal="bottom_right")
        np.testing.assert_allclose(o[rows].swapaxes(0, 1), want, rtol=1e-12,
                                   atol=1e-13)


def test_cache_layouts_and_sizes():
    cache = attn.KVCache(2, 3, 8, 4, dim_v=6, dtype=np.float64)
    k, v = np.ones((2, 3, 2, 4)), np.full((2, 3, 2, 6), 2.0)
    cache.append(k, v)
    q = np.ones((2, 1, 3, 4))            # (B, L, H, D)
    o = attn.decode(q, cache, layout="bshd")
    assert o.shape == (2, 1, 3, 6) and np.allclose(o, 2.0)
    assert "lengths=[2, 2]" in repr(cache) and "float64" in repr(cache)


def test_cache_errors_leave_it_as_it_was():
    cache = attn.KVCache(1, 2, 4, 8, dtype=np.float64)
    rows = np.ones((1, 2, 3, 8))
    cache.append(rows, rows)
    kept = cache.k.tobytes(), cache.v.tobytes()
    for error, field, k, v in [
            (ValueError, "k", rows, rows),                      # 6 of 4
            (ValueError, "v", rows[:, :, :1], rows[:, :, :0]),
            (ValueError, "k", rows[:, :1, :1], rows[:, :1, :1]),
            (ValueError, "k", rows[..., :1, :7], rows[..., :1, :]),
            (TypeError, "k", rows[:, :, :1].astype("f"), rows[:, :, :1])]:
        with pytest.raises(error) as caught:
            cache.append(k, v)
        assert caught.match("^(k|v|cache): "), str(caught.value)
        assert cache.lengths.tolist() == [3]
        assert cache.k[:, :, :3].tobytes() == rows.tobytes()
    del kept
    for name, sizes in [("batch", (-1, 1, 1, 1)), ("capacity", (1, 1, -1, 1))]:
        with pytest.raises(ValueError, match=f"^{name}: "):
            attn.KVCache(*sizes)
    with pytest.raises(ValueError, match="^page_size: "):
        attn.KVCache(1, 1, 1, 1, page_size=0)
    with pytest.raises(ValueError, match="^k_lengths: "):
        attn.decode(np.ones((1, 2, 1, 8)), cache, k_lengths=[1])
    with pytest.raises(ValueError, match="^q: "):
        attn.decode(np.ones((2, 1, 8)), cache)
