# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases: two bugs each.
import math
import numpy as np


def _s(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def unscaled_sees_ahead(q, k, v):
    L = q.shape[-2]
    s = q @ k.swapaxes(-1, -2)
    s = np.where(np.triu(np.ones((L, k.shape[-2]), bool), 2), -np.inf, s)
    return _s(s) @ v


def modulo_scaled_twice(q, k, v):
    H, G = q.shape[1], k.shape[1]
    idx = np.arange(H) % G
    s = np.einsum("bhid,bhjd->bhij", q, k[:, idx]) / q.shape[-1]
    return np.einsum("bhij,bhjd->bhid", _s(s), v[:, idx])


def over_queries_unscaled(q, k, v):
    a = np.einsum("bihd,bjhd->bhij", q, k)
    e = np.exp(a - a.max(2, keepdims=True))
    return np.einsum("bhij,bjhe->bihe", e / e.sum(2, keepdims=True), v)


def cap_and_mask_added(q, k, v, mask, softcap):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    s = np.tanh(s / softcap)
    return _s(s + mask) @ v


def whole_cache_unscaled(q, k_cache, v_cache, cache_len):
    return _s(q @ k_cache.swapaxes(-1, -2)) @ v_cache


def merged_unscaled(x, w_q, w_k, w_v, w_o, n_heads):
    b, l, e = x.shape
    f = lambda w: (x @ w).reshape(b, l, n_heads, -1).transpose(0, 2, 1, 3)
    y = _s(f(w_q) @ f(w_k).swapaxes(2, 3)) @ f(w_v)
    return y.reshape(b, l, e) @ w_o


def bias_scaled_hidden_late(q, k, v, bias=None, mask=None):
    s = q @ k.swapaxes(-1, -2)
    if bias is not None:
        s = s + bias
    w = _s(s / np.sqrt(q.shape[-1]))
    if mask is not None:
        w = w * mask
    return w @ v


def distance_added_unscaled(q, k, v, alibi_slopes):
    d = np.abs(
        np.arange(q.shape[-2])[:, None]
        + k.shape[-2]
        - q.shape[-2]
        - np.arange(k.shape[-2])
    )
    s = q @ k.swapaxes(-1, -2) + np.reshape(alibi_slopes, (-1, 1, 1)) * d
    return _s(s) @ v


def no_delta_dk_unscaled(do, q, k, v):
    c = q.shape[-1] ** -0.5
    p = _s(q @ k.swapaxes(-1, -2) * c)
    ds = p * (do @ v.swapaxes(-1, -2))
    return c * ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def one_more_scaled_twice(q, k, v):
    s = np.einsum("hid,hjd->hij", q, k) / q.shape[-1]
    m = s.max(-1, keepdims=True)
    e = np.exp(s - m)
    return e @ v / (e.sum(-1, keepdims=True) + np.exp(-m))


def wide_window_unscaled(q, k, v):
    s = q @ k.swapaxes(-1, -2)
    i = np.arange(s.shape[-2])[:, None] + s.shape[-1] - s.shape[-2]
    j = np.arange(s.shape[-1])
    ok = (j <= i) & (i - j < 4)
    return (
        np.where(ok.any(1, keepdims=True), _s(np.where(ok, s, -np.inf)), 0) @ v
    )


ZOO = [
    (
        "unscaled_sees_ahead",
        "scale-missing + causal-diagonal-shift",
        ["--expect=causal=top_left"],
    ),
    ("modulo_scaled_twice", "gqa-tile + scale-twice"),
    (
        "over_queries_unscaled",
        "softmax-wrong-axis + scale-missing",
        ["--layout=bshd"],
    ),
    (
        "cap_and_mask_added",
        "softcap-wrong-or-ignored + mask-01-added",
        ["--expect=mask_true=keep"],
    ),
    ("whole_cache_unscaled", "kv-length + scale-missing", ["--kind=decode"]),
    ("merged_unscaled", "heads-merge-no-transpose + scale-missing"),
    (
        "bias_scaled_hidden_late",
        "bias-scaled + mask-after-softmax",
        ["--expect=mask_true=keep"],
    ),
    ("distance_added_unscaled", "alibi-slopes-or-sign + scale-missing"),
    (
        "no_delta_dk_unscaled",
        "bwd-softmax-or-mask + bwd-reduction-scale-layout",
    ),
    ("one_more_scaled_twice", "softmax-extra-mass + scale-twice"),
    (
        "wide_window_unscaled",
        "window-off-by-one + scale-missing",
        ["--expect=causal=bottom_right,window=2:0"],
    ),
]
