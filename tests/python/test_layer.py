# SPDX-License-Identifier: Apache-2.0
"""attn.multi_head against its definition in extended precision, and its
gradients against finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import attn

REAL = np.longdouble


def norm(u, gain, eps):
    u = u / np.sqrt((u * u).mean(axis=-1, keepdims=True) + eps)
    return u if gain is None else u * np.reshape(gain, (-1, 1, u.shape[-1]))


def definition(arrays, heads, kv_heads, qk_norm=False, rope=None,
               causal=False):
    """y and weights of (B, L, width) arrays."""
    a = {name: np.asarray(x, REAL) for name, x in arrays.items()}
    x, x_kv = a["x"], a.get("x_kv", a["x"])

    def project(x, name, n):
        y = x @ a["w_" + name] + a.get("b_" + name, 0)
        return y.reshape(*y.shape[:2], n, -1).swapaxes(1, 2)

    q = project(x, "q", heads)
    k, v = (project(x_kv, name, kv_heads) for name in "kv")
    if qk_norm:
        q, k = norm(q, a.get("g_q"), 1e-6), norm(k, a.get("g_k"), 1e-6)
    if rope is not None:
        q, k = (attn.rope(np.asarray(u, float), np.arange(u.shape[2]), **rope)
                for u in (q, k))
    k, v = (np.repeat(np.asarray(u, REAL), heads // kv_heads, axis=1)
            for u in (k, v))
    s = np.asarray(q, REAL) @ k.swapaxes(2, 3) / np.sqrt(REAL(k.shape[-1]))
    if causal:
        s = np.where(np.tri(*s.shape[2:], dtype=bool), s, -np.inf)
    w = np.exp(s - s.max(axis=-1, keepdims=True))
    w = w / w.sum(axis=-1, keepdims=True)
    o = (w @ v).swapaxes(1, 2)
    o = o.reshape(*o.shape[:2], -1)
    return (o @ a["w_o"] if "w_o" in a else o) + a.get("b_o", 0), w


def draw(rng, heads, kv_heads, cross, biases, gains, w_o=True, dtype=float):
    batch, len_q, len_kv, width, width_kv, dim, dim_v = 2, 5, 7, 6, 8, 4, 3

    def normal(*shape):
        return rng.normal(size=shape).astype(dtype)

    if not cross:
        len_kv, width_kv = len_q, width
    a = {"x": normal(batch, len_q, width), "w_q": normal(width, heads * dim),
         "w_k": normal(width_kv, kv_heads * dim),
         "w_v": normal(width_kv, kv_heads * dim_v)}
    if cross:
        a["x_kv"] = normal(batch, len_kv, width_kv)
    if w_o:
        a["w_o"] = normal(heads * dim_v, 10)
    if biases:
        a |= {"b_q": normal(heads * dim), "b_k": normal(kv_heads * dim),
              "b_v": normal(kv_heads * dim_v)}
        if w_o:
            a["b_o"] = normal(10)
    if gains:
        a |= {"g_q": normal(dim), "g_k": normal(kv_heads, dim)}
    return a


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(4, 4), (4, 2), (3, 1)]),
       *[st.booleans()] * 6)
def test_layer_is_its_definition(seed, heads, cross, biases, gains, rope, w_o,
                                 causal):
    arrays = draw(np.random.default_rng(seed), *heads, cross, biases, gains,
                  w_o)
    rope = dict(interleaved=True) if rope else None
    causal = causal and not cross
    y, w = attn.multi_head(**arrays, heads=heads[0], kv_heads=heads[1],
                           qk_norm=gains, rope=rope, causal=causal,
                           return_weights=True)
    want_y, want_w = definition(arrays, *heads, gains, rope, causal)
    # Scores here reach S = 100; sums have at most 30 terms: an error of
    # (4 (d + 4) S + 3 * 30) u < 3e-13 in each weight and a few u in the rest.
    size = max(1, abs(want_y).max())
    assert abs(w - want_w).max() < 3e-12
    assert abs(y - want_y).max() < 1e-11 * size


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("rope", [None, dict(rotary_dim=2)])
def test_gradients_by_finite_differences(cross, rope):
    rng = np.random.default_rng(70)
    arrays = draw(rng, 4, 2, cross, True, True)
    words = dict(heads=4, kv_heads=2, qk_norm=True, rope=rope)
    y, vjp = attn.multi_head_vjp(**arrays, **words)
    dy = rng.normal(size=y.shape)
    g, step = vjp(dy), 2.0**-17
    for name, x in arrays.items():
        gradient = getattr(g, "d" + name)
        assert gradient.shape == x.shape and gradient.dtype == x.dtype
        for _ in range(4):
            at = tuple(rng.integers(n) for n in x.shape)
            kept, losses = x[at], []
            for h in (step, -step):
                x[at] = kept + h
                losses.append((attn.multi_head(**arrays, **words)
                               * dy).sum())
            x[at] = kept
            numeric = (losses[0] - losses[1]) / (2 * step)
            # step^2 f''' / 6 + u |loss| / step
            assert abs(gradient[at] - numeric) < 1e-7 * (1 + abs(numeric)), \
                (name, at)
    assert [x is not None for x in g] == [True] * 5


def test_ranks_and_torch_orientation():
    rng = np.random.default_rng(71)
    a = draw(rng, 4, 2, False, True, False)
    y, w = attn.multi_head(**a, heads=4, kv_heads=2, return_weights=True)
    one = {**a, "x": a["x"][1]}
    y1, w1 = attn.multi_head(**one, heads=4, kv_heads=2, return_weights=True)
    assert y1.tobytes() == y[1].tobytes() and w1.tobytes() == w[1].tobytes()
    turned = {name: np.ascontiguousarray(x.T).T if name.startswith("w") else x
              for name, x in a.items()}
    assert attn.multi_head(**turned, heads=4, kv_heads=2).tobytes() == \
        y.tobytes()
    _, vjp = attn.multi_head_vjp(**one, heads=4, kv_heads=2)
    assert vjp(y1).dx.shape == a["x"][1].shape


def test_same_bits_for_any_threads():
    rng = np.random.default_rng(72)
    a = draw(rng, 4, 2, False, True, True, dtype=np.float32)
    words = dict(heads=4, kv_heads=2, qk_norm=True, rope=True, causal=True)
    results = []
    for threads in (1, 2, 3, 7, None):
        y, vjp = attn.multi_head_vjp(**a, **words, threads=threads)
        g = vjp(y)
        results.append([y.tobytes()] + [x.tobytes() for x in g])
    assert all(r == results[0] for r in results)


def test_attention_keywords_reach_the_layer():
    rng = np.random.default_rng(73)
    a = draw(rng, 4, 4, False, False, False)
    mask = rng.random((5, 5)) < 0.5
    sinks = rng.normal(size=4)
    bias = rng.normal(size=(4, 5, 5))
    y, vjp = attn.multi_head_vjp(**a, heads=4, attn_mask=mask, sinks=sinks,
                                 attn_bias=bias, softcap=3.0)
    q, k, v = ((a["x"] @ a["w_" + n]).reshape(2, 5, 4, -1) for n in "qkv")
    o = attn.attention(q, k, v, layout="bshd", attn_mask=mask, sinks=sinks,
                       attn_bias=bias, softcap=3.0)
    assert abs(y - o.reshape(2, 5, -1) @ a["w_o"]).max() < 1e-12
    g = vjp(y)
    assert g.dsinks.shape == (4,) and g.dbias.shape == bias.shape


def test_errors():
    a = draw(np.random.default_rng(74), 4, 2, False, False, False)
    good = dict(a, heads=4, kv_heads=2)
    for error, field, changes in [
            (ValueError, "w_q", dict(heads=5)),
            (ValueError, "w_q", dict(heads=0)),
            (ValueError, "w_v", dict(kv_heads=4)),
            (ValueError, "w_k", dict(w_k=a["w_k"][:, :-1])),
            (ValueError, "w_o", dict(w_o=a["w_o"][:-1])),
            (TypeError, "w_q", dict(w_q=None)),
            (ValueError, "x", dict(x=a["x"][0, 0])),
            (TypeError, "w_k", dict(w_k=a["w_k"].astype("f"))),
            (ValueError, "layout", dict(layout="bshd")),
            (NotImplementedError, "cu_seqlens_q", dict(cu_seqlens_q=[0, 5])),
            (ValueError, "positions", dict(positions=[0, 1, 2, 3, 4])),
            (ValueError, "attn_mask", dict(attn_mask=np.ones((4, 4), bool))),
            (ValueError, "rotary_dim", dict(rope=dict(rotary_dim=3)))]:
        with pytest.raises(error, match=f"^{field}: "):
            attn.multi_head(**{**good, **changes})
    _, vjp = attn.multi_head_vjp(**good)
    with pytest.raises(ValueError, match="^dy: "):
        vjp(np.ones((5, 10)))
    with pytest.raises(TypeError, match="unknown"):
        attn.multi_head(**good, unknown=1)
