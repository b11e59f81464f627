# SPDX-License-Identifier: Apache-2.0
"""attn.lessons holds what lessons on NumPy attention assert."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import attn
from attn.lessons import (attention, causal_mask, causal_mha, self_attention,
                          show, single_head_attention, softmax)

RNG = np.random.default_rng(80)
X = RNG.normal(size=(6, 8))
WQ, WK, WV, WO = RNG.normal(size=(4, 8, 8))
U = 2.0**-53


def plain(Q, K, V, mask=None):
    """The listing that lessons print."""
    S = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        S = np.where(mask, S, -np.inf)
    E = np.exp(S - S.max(axis=-1, keepdims=True))
    A = E / E.sum(axis=-1, keepdims=True)
    return A @ V, A


def test_worked_example():
    Q = np.array([[1.0, 0.0], [0.0, 1.0]])
    K = np.array([[1.0, 0.0], [0.0, 1.0]])
    V = np.array([[10.0, 0.0], [0.0, 10.0]])
    out, A = attention(Q, K, V)
    # By hand: e^(1/sqrt 2) / (e^(1/sqrt 2) + 1) = 0.66976...
    w = np.exp(2**-0.5) / (np.exp(2**-0.5) + 1)
    assert np.allclose(A, [[w, 1 - w], [1 - w, w]], rtol=0, atol=4 * U)
    assert np.allclose(out, 10 * A, rtol=4 * U)


@pytest.mark.parametrize("Q,K,V,mask,want", [
    # equal scores: the mean of the values
    ([[0, 0], [0, 0]], [[0, 0], [0, 0]], [[1, 0], [0, 1]], None,
     [[0.5, 0.5], [0.5, 0.5]]),
    # queries and keys of different lengths, values of another width
    ([[0, 0]], [[0, 0], [0, 0], [0, 0]], [[3], [6], [9]], None, [[6]]),
    # a causal mask: itself alone, then the mean of two
    ([[0], [0]], [[0], [0]], [[10], [20]], [[True, False], [True, True]],
     [[10], [15]]),
    ([[0], [0]], [[0], [0]], [[10], [20]], [[0, -10**9], [0, 0]],
     [[10], [15]]),
    # one key: its value, whatever the score
    ([[1, 0]], [[1, 0]], [[5, 5]], None, [[5, 5]]),
    # every value equal: that value
    ([[1, 1], [1, 1]], [[1, 1], [1, 1]], [[1, 1], [1, 1]], None,
     [[1, 1], [1, 1]])])
def test_what_exercises_print(Q, K, V, mask, want):
    """Results that can be told by hand are exact."""
    out, A = attention(Q, K, V, mask)
    assert (out == want).all() and (A.sum(axis=-1) == 1).all()


def test_rows_sum_to_one_and_lie_in_zero_to_one():
    out, A = attention(X @ WQ, X @ WK, X @ WV)
    assert out.shape == (6, 8) and A.shape == (6, 6)
    assert np.allclose(A.sum(axis=-1), 1.0, rtol=0, atol=6 * U)
    assert (A >= 0).all() and (A <= 1).all()
    want = plain(X @ WQ, X @ WK, X @ WV)
    assert np.allclose(out, want[0]) and np.allclose(A, want[1])


def test_output_lies_in_the_hull_of_v():
    V = X @ WV
    out, _ = attention(X @ WQ, X @ WK, V)
    slack = 8 * U * abs(V).max()
    assert (out <= V.max(axis=0) + slack).all()
    assert (out >= V.min(axis=0) - slack).all()


def test_causal_mask():
    out, A = self_attention(X, WQ, WK, WV, mask=causal_mask(6))
    assert A[0, 0] == 1
    assert (A[np.triu_indices(6, k=1)] == 0).all()      # exactly 0
    assert (out[0] == (X @ WV)[0]).all()
    assert causal_mask(6).dtype == bool and causal_mask(6).sum() == 21


def test_first_row_is_first_value():
    Y = single_head_attention(X, WQ, WK, WV)
    V = X @ WV
    assert (Y[0] == V[0]).all()
    assert np.allclose(Y, plain(X @ WQ, X @ WK, V, causal_mask(6))[0])


def test_prefix():
    """What comes later changes nothing earlier, to the bit."""
    Y = single_head_attention(X, WQ, WK, WV)
    for n in range(1, 6):
        changed = X.copy()
        changed[n:] = RNG.normal(size=changed[n:].shape)
        again = single_head_attention(changed, WQ, WK, WV)
        assert (again[:n] == Y[:n]).all()
    assert np.allclose(single_head_attention(X[:3], WQ, WK, WV), Y[:3])


def test_permutation():
    """Without a mask, self-attention goes along with its rows' order."""
    order = RNG.permutation(6)
    out, A = self_attention(X, WQ, WK, WV)
    out2, A2 = self_attention(X[order], WQ, WK, WV)
    assert np.allclose(out2, out[order])
    assert np.allclose(A2, A[np.ix_(order, order)])


def test_sharpening():
    """Larger scores, sharper weights; equal scores, equal weights."""
    Q, K, V = X @ WQ, X @ WK, X @ WV
    peaks = [attention(Q * t, K, V)[1].max(axis=-1).min()
             for t in (0.0, 0.1, 1.0, 10.0, 1e3)]
    assert peaks == sorted(peaks) and np.isclose(peaks[0], 1 / 6)
    assert peaks[-1] > 0.999
    hot, A = attention(Q * 1e6, K, V)
    assert np.allclose(hot, V[A.argmax(axis=-1)])


def test_broken_mask_shows_itself():
    mask = causal_mask(6)
    mask[3] = False
    out, A = attention(X @ WQ, X @ WK, X @ WV, mask=mask)
    assert np.isnan(A[3]).all() and np.isnan(out[3]).all()
    assert not np.isnan(np.delete(A, 3, axis=0)).any()


@pytest.mark.parametrize("kind", [
    lambda m: m,
    lambda m: m.astype(int),
    lambda m: m.astype(float),
    lambda m: np.where(m, 0.0, -np.inf),
    lambda m: m[None, None],
    lambda m: m.tolist()])
def test_every_lesson_s_mask(kind):
    want = plain(X @ WQ, X @ WK, X @ WV, causal_mask(6))
    q, k, v = (x[None, None] if np.ndim(kind(causal_mask(6))) == 4 else x
               for x in (X @ WQ, X @ WK, X @ WV))
    out, A = attention(q, k, v, mask=kind(causal_mask(6)))
    assert np.allclose(out.reshape(6, 8), want[0])
    assert np.allclose(A.reshape(6, 6), want[1])
    assert (A.reshape(6, 6)[~causal_mask(6)] == 0).all()


def test_large_negative_masks_are_added():
    out, A = attention(X @ WQ, X @ WK, X @ WV,
                       mask=np.where(causal_mask(6), 0, -1e9))
    assert (A[~causal_mask(6)] == 0).all()
    assert np.allclose(out, plain(X @ WQ, X @ WK, X @ WV,
                                  causal_mask(6))[0])


def test_masks_that_are_none():
    for mask in (np.full((6, 6), 2), np.full((6, 6), 0.5)):
        with pytest.raises(ValueError, match="^mask: "):
            attention(X, X, X, mask=mask)


def test_batches():
    Q = RNG.normal(size=(2, 3, 6, 4))
    out, A = attention(Q, Q, Q, mask=causal_mask(6))
    want = plain(Q, Q, Q, causal_mask(6))
    assert np.allclose(out, want[0]) and np.allclose(A, want[1])
    batch = RNG.normal(size=(4, 6, 8))
    out, A = self_attention(batch, WQ, WK, WV)
    assert out.shape == (4, 6, 8) and A.shape == (4, 6, 6)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_softmax(axis):
    x = RNG.normal(size=(3, 4, 5)) * 10
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    want = e / e.sum(axis=axis, keepdims=True)
    got = softmax(x, axis)
    assert got.shape == x.shape
    assert np.allclose(got, want, rtol=1e-14, atol=0)
    assert np.allclose(got.sum(axis=axis), 1, atol=4 * U)
    assert np.allclose(softmax(x + 1000.0, axis), got, rtol=1e-12)  # shift


def test_softmax_edges():
    assert np.allclose(softmax([0, 1]), np.exp([0, 1]) / (1 + np.e))
    assert softmax(np.ones(4, np.float32)).dtype == np.float32
    assert (softmax([1e308, -1e308]) == [1, 0]).all()
    assert np.isnan(softmax([-np.inf, -np.inf])).all()
    assert softmax(np.zeros((0, 3))).shape == (0, 3)


def test_causal_mha():
    x = RNG.normal(size=(6, 8))
    y, w = causal_mha(x, WQ, WK, WV, WO, 2)
    assert y.shape == (6, 8) and w.shape == (2, 6, 6)
    heads = []
    for h in range(2):
        columns = slice(4 * h, 4 * h + 4)
        out, A = plain(x @ WQ[:, columns], x @ WK[:, columns],
                       x @ WV[:, columns], causal_mask(6))
        assert np.allclose(w[h], A)
        heads.append(out)
    assert np.allclose(y, np.concatenate(heads, axis=-1) @ WO)
    assert (w[:, ~causal_mask(6)] == 0).all() and (w[:, 0, 0] == 1).all()
    batch_y, batch_w = causal_mha(np.stack([x, 2 * x]), WQ, WK, WV, WO, 2)
    assert batch_w.shape == (2, 2, 6, 6) and np.allclose(batch_y[0], y)
    with pytest.raises(ValueError, match="3 heads"):
        causal_mha(x, WQ, WK, WV, WO, 3)


def test_one_head_of_identities():
    """The example that exercises print: T = 3, d = 2, all weights I."""
    x = np.array([[1, 0], [0, 1], [1, 1]])
    eye = np.eye(2)
    y, w = causal_mha(x, eye, eye, eye, eye, 1)
    assert np.allclose(y, [[1, 0], [0.3302, 0.6698], [0.7517, 0.7517]],
                       atol=5e-5)
    assert np.allclose(w[0, 2], [0.2483, 0.2483, 0.5035], atol=5e-5)


def test_finite_differences():
    """The lesson's check of a gradient, with attention_vjp as the answer."""
    Q, K, V = X @ WQ, X @ WK, X @ WV
    out, vjp = attn.attention_vjp(Q, K, V, causal=True)
    g = vjp(np.ones_like(out))
    h = 1e-5
    for name, M in (("dq", Q), ("dk", K), ("dv", V)):
        numeric = np.zeros_like(M)
        for at in np.ndindex(M.shape):
            kept = M[at]
            M[at] = kept + h
            up = attn.attention(Q, K, V, causal=True).sum()
            M[at] = kept - h
            down = attn.attention(Q, K, V, causal=True).sum()
            M[at] = kept
            numeric[at] = (up - down) / (2 * h)
        assert np.allclose(getattr(g, name), numeric, atol=1e-7), name


def test_show_draws():
    A = softmax(RNG.normal(size=(3, 3)))
    picture = show(A, ["the", "cat", "sat"])
    root = ElementTree.fromstring(picture.svg)
    assert root.tag.endswith("svg") and "cat" in picture.svg
    assert picture._repr_svg_() == picture.svg
    heads = show(np.stack([A, A]))
    assert "head 1" in heads.svg


def test_show_saves(tmp_path):
    picture = show(np.eye(4))
    picture.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == picture.svg
    if "png" in attn.info()["draws"]:
        picture.save(tmp_path / "a.png")
        assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    else:
        with pytest.raises(NotImplementedError, match="libpng"):
            picture.save(tmp_path / "a.png")


def test_show_errors():
    with pytest.raises(ValueError, match="^A: "):
        show(np.zeros(3))
    with pytest.raises(ValueError, match="^tokens: "):
        show(np.zeros((3, 3)), ["a"])
