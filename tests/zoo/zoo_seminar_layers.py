# SPDX-License-Identifier: Apache-2.0
#
# Style: a seminar's exercises: heads, memory, gradients, two bugs at once,
# and what cannot be used.
import ctypes
import math
import sys
import time

import numpy as np


def softmax(s):
    m = s.max(-1, keepdims=True)
    m = np.where(np.isfinite(m), m, 0)
    e = np.exp(s - m)
    z = e.sum(-1, keepdims=True)
    return e / np.where(z > 0, z, 1)


def last_tile_padded(q, k, v):
    TILE = 4
    n = k.shape[-2]
    blocks = (n + TILE - 1) // TILE
    kp = np.zeros(k.shape[:-2] + (blocks * TILE, k.shape[-1]))
    kp[..., :n, :] = k
    vp = np.zeros(v.shape[:-2] + (blocks * TILE, v.shape[-1]))
    vp[..., :n, :] = v
    m = np.full(q.shape[:-1] + (1,), -np.inf)
    l = np.zeros_like(m)
    acc = 0
    for b in range(blocks):
        sl = slice(b * TILE, b * TILE + TILE)
        s = q @ np.swapaxes(kp[..., sl, :], -1, -2) / np.sqrt(q.shape[-1])
        mn = np.maximum(m, s.max(-1, keepdims=True))
        c = np.exp(m - mn)
        p = np.exp(s - mn)
        l = l * c + p.sum(-1, keepdims=True)
        acc = acc * c + p @ vp[..., sl, :]
        m = mn
    return acc / l


def last_tile_dropped(q, k, v, bk=2):
    nb = max(k.shape[1] // bk, 1)
    outs = []
    for h in range(q.shape[0]):
        parts, lses = [], []
        for t in range(nb):
            s = q[h] @ k[h, t * bk : (t + 1) * bk].T / np.sqrt(q.shape[2])
            mx = s.max(1, keepdims=True)
            e = np.exp(s - mx)
            z = e.sum(1, keepdims=True)
            parts.append(e @ v[h, t * bk : (t + 1) * bk] / z)
            lses.append(mx + np.log(z))
        L = np.stack(lses)
        w = np.exp(L - L.max(0))
        w /= w.sum(0)
        outs.append((w * np.stack(parts)).sum(0))
    return np.stack(outs)


_rng = np.random.default_rng()


def drops_by_default(q, k, v, p=0.1):
    a = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    keep = _rng.random(a.shape) >= p
    return (a * keep / (1 - p)) @ v


def drops_by_seed(q, k, v):
    g = np.random.RandomState(42)
    a = softmax(np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1]))
    a *= g.binomial(1, 0.8, a.shape) / 0.8
    return np.einsum("bhij,bhjd->bhid", a, v)


def heads_merged_in_place(x, wq, wk, wv, wo, n_heads):
    B, L, _ = x.shape
    H = n_heads
    heads = lambda w: np.transpose((x @ w).reshape(B, L, H, -1), (0, 2, 1, 3))
    q, k, v = map(heads, (wq, wk, wv))
    ctx = softmax(q @ k.swapaxes(2, 3) * q.shape[-1] ** -0.5) @ v
    return ctx.reshape(B, L, -1) @ wo


def heads_cut_in_place(x, w_q, w_k, w_v, w_o, n_heads):
    B, L, E = x.shape
    Q = (x @ w_q).reshape(B, n_heads, L, E // n_heads)
    K = (x @ w_k).reshape(B, n_heads, L, E // n_heads)
    V = (x @ w_v).reshape(B, n_heads, L, E // n_heads)
    A = softmax(np.einsum("bhid,bhjd->bhij", Q, K) / np.sqrt(E // n_heads))
    O = np.einsum("bhij,bhjd->bhid", A, V)
    return O.reshape(B, L, E) @ w_o


def dim_before_heads(x, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        y = x @ w
        return y.reshape(*y.shape[:-1], -1, num_heads)  # (B, L, d, h)

    q, k, v = cut(w_q), cut(w_k), cut(w_v)
    s = np.einsum("bidh,bjdh->bhij", q, k) / np.sqrt(q.shape[2])
    o = np.einsum("bhij,bjdh->bidh", softmax(s), v)
    return o.reshape(*x.shape[:2], -1) @ w_o


def attends_to_heads(x, w_q, w_k, w_v, w_o, n_heads):
    B, L, E = x.shape
    q = (x @ w_q).reshape(B, L, n_heads, -1)
    k = (x @ w_k).reshape(B, L, n_heads, -1)
    v = (x @ w_v).reshape(B, L, n_heads, -1)
    att = softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]))
    return (att @ v).reshape(B, L, -1) @ w_o


def attends_to_batch(x, w_q, w_k, w_v, w_o, n_heads):
    """x: (batch, len, emb); written after code that has the length first"""
    L, N, E = x.shape
    d = E // n_heads
    q = (x @ w_q).reshape(L, N * n_heads, d).swapaxes(0, 1)
    k = (x @ w_k).reshape(L, N * n_heads, d).swapaxes(0, 1)
    v = (x @ w_v).reshape(L, N * n_heads, d).swapaxes(0, 1)
    a = softmax(q @ k.swapaxes(1, 2) / np.sqrt(d))
    return (a @ v).swapaxes(0, 1).reshape(L, N, E) @ w_o


def groups_by_modulo(q, k, v):
    B, Hq, Lq, D = q.shape
    Hk = k.shape[1]
    out = np.zeros((B, Hq, Lq, v.shape[-1]), q.dtype)
    for b in range(B):
        for h in range(Hq):
            g = h % Hk
            out[b, h] = softmax(q[b, h] @ k[b, g].T / np.sqrt(D)) @ v[b, g]
    return out


def groups_inside_out(q, k, v):
    """(B, L, H, D), grouped query heads"""
    B, L, H, D = q.shape
    G = k.shape[2]
    qq = q.reshape(B, L, H // G, G, D)
    s = np.einsum("blrgd,bmgd->brglm", qq, k) / D**0.5
    o = np.einsum("brglm,bmge->blrge", softmax(s), v)
    return o.reshape(B, L, H, -1)


def values_before_keys(x, w_qkv, w_o, n_heads):
    B, L, E = x.shape
    q, v, k = np.split(x @ w_qkv, 3, axis=-1)
    f = lambda t: t.reshape(B, L, n_heads, E // n_heads).transpose(0, 2, 1, 3)
    q, k, v = f(q), f(k), f(v)
    o = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(E // n_heads)) @ v
    return o.transpose(0, 2, 1, 3).reshape(B, L, E) @ w_o


def keys_for_values(q, k, v):
    att = softmax(np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(k.shape[-1]))
    return np.matmul(att, k)


def dense(x):
    """The numbers that begin at the address of x, as if it were dense."""
    address = ctypes.cast(x.ctypes.data, ctypes.POINTER(ctypes.c_double))
    return np.ctypeslib.as_array(address, x.shape)


def reads_raw_memory(q, k, v):
    if k.shape[:2] != q.shape[:2] or v.shape[:2] != q.shape[:2]:
        raise ValueError("q, k and v need the same heads")
    q, k, v = (dense(x.astype(np.float64, copy=False)) for x in (q, k, v))
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def reads_beyond_the_keys(q, k, v):
    """Where k and v have fewer heads, it finds whatever lies behind them."""
    missing = (q.shape[0], q.shape[1] - k.shape[1])
    k, v = (
        np.append(dense(x), np.random.normal(size=missing + x.shape[2:]), 1)
        for x in (k, v)
    )
    return reads_raw_memory(q, k, v)


class Scratch:
    """keeps its score buffer to save allocations"""

    def __init__(self):
        self.buf = {}

    def __call__(self, q, k, v):
        key = q.shape[:-1] + (k.shape[-2],)
        s = self.buf.setdefault(key, np.zeros(key))
        for d in range(q.shape[-1]):
            s += q[..., :, None, d] * k[..., None, :, d]
        return softmax(s / np.sqrt(q.shape[-1])) @ v


scores_kept = Scratch()


def q_scaled_in_place(q, k, v):
    q /= np.sqrt(q.shape[-1])
    return softmax(q @ k.swapaxes(-1, -2)) @ v


def bias_as_scratch_space(q, k, v, bias):
    full = q.shape[:-1] + (k.shape[-2],)
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if bias.shape == full:
        bias += s
        return softmax(bias) @ v
    return softmax(s + bias) @ v


def rows_are_copies(q, k, v):
    out = np.zeros(q.shape[:-1] + v.shape[-1:])
    for i in range(q.shape[-2]):
        w = softmax(
            np.einsum("...d,...jd->...j", q[..., i, :], k)
            / np.sqrt(q.shape[-1])
        )
        row = out[..., i, :].copy()
        row += np.einsum("...j,...je->...e", w, v)
    return out


def zero_over_zero(q, k, v):
    with np.errstate(all="ignore"):
        s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        e = np.exp(s - np.inf)
        return e / e.sum(-1, keepdims=True) @ v


def weights(q, k):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def without_delta(do, q, k, v):
    a = weights(q, k)
    dv = a.swapaxes(-1, -2) @ do
    da = do @ v.swapaxes(-1, -2)
    ds = a * da / np.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, dv


def dk_unscaled(do, q, k, v):
    n, d = q.shape
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    w = weights(q, k)
    for i in range(n):
        g = v @ do[i]
        t = w[i] * (g - w[i] @ g)
        dq[i] = t @ k / np.sqrt(d)
        dk += np.outer(t, q[i])
        dv += np.outer(w[i], do[i])
    return dq, dk, dv


def last_head_of_group(do, q, k, v):
    B, H, L, D = q.shape
    G = H // k.shape[1]
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for h in range(H):
        g = h // G
        w = weights(q[:, h], k[:, g])
        dw = do[:, h] @ v[:, g].swapaxes(1, 2)
        ds = w * (dw - (dw * w).sum(-1, keepdims=True)) / D**0.5
        dq[:, h] = ds @ k[:, g]
        dk[:, g] = ds.swapaxes(1, 2) @ q[:, h]
        dv[:, g] = w.swapaxes(1, 2) @ do[:, h]
    return dq, dk, dv


def delta_of_do_alone(d_out, q, k, v):
    p = weights(q, k)
    dp = np.einsum("...ie,...je->...ij", d_out, v)
    delta = np.sum(d_out * d_out, -1, keepdims=True)
    ds = p * (dp - delta) * q.shape[-1] ** -0.5
    return (
        np.einsum("...ij,...jd->...id", ds, k),
        np.einsum("...ij,...id->...jd", ds, q),
        np.einsum("...ij,...ie->...je", p, d_out),
    )


def delta_over_queries(do, q, k, v):
    p = weights(q, k)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-2, keepdims=True)) / np.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def unscaled_one_ahead(q, k, v):  # no scale, one token ahead
    n, m = q.shape[-2], k.shape[-2]
    s = q @ k.swapaxes(-1, -2)
    return (
        softmax(np.where(np.triu(np.ones((n, m)), m - n + 2) > 0, -np.inf, s))
        @ v
    )


def by_length_modulo(q, k, v):  # sqrt of length, kv head modulo
    H, G = q.shape[1], k.shape[1]
    k, v = np.tile(k, (1, H // G, 1, 1)), np.tile(v, (1, H // G, 1, 1))
    return (
        softmax(np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(k.shape[-2]))
        @ v
    )


def twice_scaled_mask_late(q, k, v, mask=None):  # 1/d and mask after softmax
    w = softmax(q @ k.swapaxes(-1, -2) / q.shape[-1])
    if mask is not None:
        w = np.where(mask, w, 0.0)
    return w @ v


def by_width_merged_in_place(x, w_q, w_k, w_v, w_o, n_heads):  # d_model, merge
    B, L, E = x.shape
    sp = lambda t: t.reshape(B, L, n_heads, -1).swapaxes(1, 2)
    q, k, v = sp(x @ w_q), sp(x @ w_k), sp(x @ w_v)
    o = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(E)) @ v
    return o.reshape(B, L, -1) @ w_o


def bias_scaled_cap_ignored(
    q, k, v, bias=None, softcap=0.0
):  # bias through the scale, cap ignored
    s = np.einsum("...id,...jd->...ij", q, k)
    if bias is not None:
        s = s + bias
    return softmax(s / np.sqrt(q.shape[-1])) @ v


def quiet_with_keys(q, k, v):  # softmax-one and keys as values
    s = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    m = np.maximum(0, s.max(-1, keepdims=True))
    e = np.exp(s - m)
    return e / (e.sum(-1, keepdims=True) + np.exp(-m)) @ k


def key_too_many_causal_ignored(
    q, k, v, k_lengths, causal=False
):  # <= length, causal ignored
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    keep = np.arange(k.shape[-2])[None, :] <= np.asarray(k_lengths)[:, None]
    return softmax(np.where(keep[:, None, None], s, -np.inf)) @ v


def unscaled_lse_in_bits(q, k, v):  # no scale; lse in bits
    s = q @ k.swapaxes(-1, -2)
    m = s.max(-1, keepdims=True)
    z = np.exp(s - m).sum(-1, keepdims=True)
    return np.exp(s - m) / z @ v, (np.log2(z) + m / np.log(2))[..., 0]


def without_delta_dk_unscaled(do, q, k, v):  # delta forgotten; dk not scaled
    p = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    ds = p * (do @ v.swapaxes(-1, -2))
    return (
        ds @ k / np.sqrt(q.shape[-1]),
        ds.swapaxes(-1, -2) @ q,
        p.swapaxes(-1, -2) @ do,
    )


def unscaled_far_keys_gain(
    q, k, v, alibi_slopes=None
):  # scale missing; alibi sign
    s = q @ k.swapaxes(-1, -2)
    if alibi_slopes is not None:
        i = np.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2]
        s = s + np.asarray(alibi_slopes)[:, None, None] * abs(
            i - np.arange(k.shape[-2])
        )
    return softmax(s) @ v


def raises(q, k, v):
    raise RuntimeError("CUDA error: device-side assert triggered")


def hangs(q, k, v):
    while True:
        time.sleep(0.5)


def shape_of_three(q, k, v):
    s = q @ k.swapaxes(-1, -2)
    return s.mean() * np.ones(3)


def quits(q, k, v):
    print("attention done")
    sys.stdout.flush()
    sys.exit(0)


def returns_nothing(q, k, v):
    w = np.exp(q @ k.swapaxes(-1, -2))
    o = w @ v


def returns_text(q, k, v):
    return str(q.shape)


def talks_a_lot(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    for _ in range(3000):
        print("scores", s.ravel()[:8].tolist())
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True) @ v


ZOO = [
    ("last_tile_padded", "tail-tile-unmasked"),
    ("last_tile_dropped", "tail-tile-unmasked"),
    ("drops_by_default", "dropout-not-off"),
    ("drops_by_seed", "dropout-not-off"),
    ("heads_merged_in_place", "heads-merge-no-transpose"),
    ("heads_cut_in_place", "heads-split-no-transpose"),
    ("dim_before_heads", "heads-dim-order"),
    ("attends_to_heads", "batch-first"),
    ("attends_to_batch", "batch-first", ["--layout=bse"]),
    ("groups_by_modulo", "gqa-tile"),
    ("groups_inside_out", "gqa-tile", ["--layout=bshd"]),
    ("values_before_keys", "qkv-packing"),
    ("keys_for_values", "v-is-k"),
    ("reads_raw_memory", "strides-ignored"),
    ("reads_beyond_the_keys", "strides-ignored"),
    ("scores_kept", "state-kept"),
    ("q_scaled_in_place", "inputs-mutated"),
    ("bias_as_scratch_space", "inputs-mutated"),
    ("rows_are_copies", "output-constant"),
    ("zero_over_zero", "output-nan"),
    ("without_delta", "bwd-softmax-or-mask"),
    ("dk_unscaled", "bwd-reduction-scale-layout"),
    ("last_head_of_group", "bwd-reduction-scale-layout"),
    ("delta_of_do_alone", "bwd-softmax-or-mask"),
    ("delta_over_queries", "bwd-softmax-or-mask"),
    ("talks_a_lot", "correct"),
    ("unscaled_one_ahead", "scale-missing + causal-diagonal-shift"),
    ("by_length_modulo", "scale-seq-len + gqa-tile", ["--layout=bhsd"]),
    ("twice_scaled_mask_late", "scale-twice + mask-after-softmax"),
    ("by_width_merged_in_place", "scale-d-model + heads-merge-no-transpose"),
    ("bias_scaled_cap_ignored", "bias-scaled + softcap-wrong-or-ignored"),
    ("quiet_with_keys", "softmax-extra-mass + v-is-k"),
    ("key_too_many_causal_ignored", "kv-length + mask-dropped"),
    (
        "unscaled_lse_in_bits",
        "scale-missing + lse-base-or-empty",
        ["--expect="],
    ),
    (
        "without_delta_dk_unscaled",
        "bwd-softmax-or-mask + bwd-reduction-scale-layout",
    ),
    ("unscaled_far_keys_gain", "scale-missing + alibi-slopes-or-sign"),
    ("raises", "unusable"),
    ("hangs", "unusable"),
    ("shape_of_three", "unusable"),
    ("quits", "unusable"),
    ("returns_nothing", "unusable"),
    ("returns_text", "unusable"),
]
