# SPDX-License-Identifier: Apache-2.0
#
# Style: a seminar's solutions: all right, each in its own way.
import functools
import math

import numpy as np


def sums_of_lists(Q, K, V):
    out = []
    for qi in Q.tolist():
        t = [
            sum(x * y for x, y in zip(qi, kj)) / math.sqrt(len(qi))
            for kj in K.tolist()
        ]
        top = max(t)
        u = [math.exp(x - top) for x in t]
        z = math.fsum(u)
        out.append(
            [
                math.fsum(a * b for a, b in zip(u, col)) / z
                for col in V.T.tolist()
            ]
        )
    return np.array(out)


def masked_then_normalised(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    w = np.exp(s - s.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    if mask is not None:
        w = np.where(mask, w, 0)
        z = w.sum(-1, keepdims=True)
        w = np.divide(w, z, out=np.zeros_like(w), where=z > 0)
    return w @ v


def fourth_roots(q, k, v):
    f = q.shape[-1] ** -0.25
    s = np.einsum("bthd,bshd->bhts", q * f, k * f)
    s = np.exp(s - s.max(-1, keepdims=True))
    s /= s.sum(-1, keepdims=True)
    return np.einsum("bhts,bshd->bthd", s, v)


def softmax_of(x):
    m = np.max(x, axis=-1, keepdims=True)
    m = np.where(m == -np.inf, 0.0, m)
    e = np.exp(x - m)
    z = np.sum(e, axis=-1, keepdims=True)
    return e / np.where(z == 0, 1.0, z)


def slopes_on_keys(q, k, v, alibi_slopes):
    """causal, slope * key index: the softmax takes the rest out"""
    s = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]))
    n, m = s.shape[-2:]
    s = s + np.asarray(alibi_slopes)[..., :, None, None] * np.arange(
        m, dtype=float
    )
    return (
        softmax_of(np.where(np.tri(n, m, m - n, dtype=bool), s, -np.inf)) @ v
    )


def from_the_left(q, k, v):
    s = np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1])
    i, j = np.ogrid[: s.shape[-2], : s.shape[-1]]
    s[..., i < j] = -np.inf
    return np.einsum("...qk,...kd->...qd", softmax_of(s), v)


def rows_from_the_end(q, k, v):
    n, m = q.shape[-2], k.shape[-2]
    rows = []
    for i in range(n):
        hi = max(0, i + 1 + m - n)
        a = np.einsum(
            "...d,...jd->...j", q[..., i, :], k[..., :hi, :]
        ) / math.sqrt(q.shape[-1])
        rows.append(
            np.einsum("...j,...je->...e", softmax_of(a), v[..., :hi, :])
            if hi
            else np.zeros(q.shape[:-2] + v.shape[-1:])
        )
    return np.stack(rows, -2)


def window_of_a_pair(q, k, v, window=(-1, -1)):
    L, R = window
    n, m = q.shape[-2], k.shape[-2]
    p = np.arange(n)[:, None] + (m - n)
    j = np.arange(m)[None, :]
    bad = np.zeros((n, m), bool)
    if L >= 0:
        bad |= j < p - L
    if R >= 0:
        bad |= j > p + R
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax_of(np.where(bad, -np.inf, s)) @ v


def band_of_four(q, k, v):
    """4 tokens: self and three before"""
    n = q.shape[1]
    m = k.shape[1]
    keep = np.tri(n, m, m - n) - np.tri(n, m, m - n - 4)
    s = np.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[3])
    s = np.where(keep == 1, s, -np.inf)
    return np.einsum("bhqk,bkhd->bqhd", softmax_of(s), v)


def groups_as_axis(q, k, v):
    B, H, L, D = q.shape
    G = k.shape[1]
    q5 = q.reshape(B, G, H // G, L, D)
    s = np.einsum("bgrld,bgmd->bgrlm", q5, k) / np.sqrt(D)
    return np.einsum("bgrlm,bgme->bgrle", softmax_of(s), v).reshape(
        B, H, L, v.shape[-1]
    )


class KeyPadding:
    def __call__(self, query, key, value, key_padding_mask=None):
        """True marks padding; (batch, len_k)"""
        s = np.matmul(query, np.swapaxes(key, -1, -2)) / math.sqrt(
            query.shape[-1]
        )
        if key_padding_mask is not None:
            s = np.where(key_padding_mask[:, None, None, :], -np.inf, s)
        return softmax_of(s) @ value


true_is_padding = KeyPadding()


def true_is_hidden(q, k, v, mask):
    """mask: True = not allowed"""
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    return softmax_of(np.where(mask, -np.inf, s)) @ v


def integers_as_mask(q, k, v, mask=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(np.asarray(mask) != 0, s, -np.inf)
    w = softmax_of(s)
    return w @ v, w


def bias_added(q, k, v, attn_bias=0.0):
    s = (
        np.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1])
        + attn_bias
    )
    return softmax_of(s) @ v


def all_options(q, k, v, scale=None, softcap=0.0, causal=False, mask=None):
    s = (
        q
        @ k.swapaxes(-1, -2)
        * (q.shape[-1] ** -0.5 if scale is None else scale)
    )
    if softcap:
        s = np.tanh(s / softcap) * softcap
    keep = np.ones(s.shape[-2:], bool)
    if causal:
        keep = np.tril(keep, s.shape[-1] - s.shape[-2])
    if mask is not None:
        keep = keep & mask
    return softmax_of(np.where(keep, s, -np.inf)) @ v


def sink_in_front(q, k, v, sinks):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    z = np.broadcast_to(np.asarray(sinks)[:, None, None], s.shape[:-1] + (1,))
    return softmax_of(np.concatenate([z, s], -1))[..., 1:] @ v


def slopes_by_head(q, k, v, alibi_slopes=None):
    n, m = q.shape[-2], k.shape[-2]
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if alibi_slopes is not None:
        dist = np.abs(np.subtract.outer(np.arange(m - n, m), np.arange(m)))
        s = s - np.asarray(alibi_slopes)[:, None, None] * dist
    return softmax_of(s) @ v


def rotated_halves(x, positions):
    h = x.shape[-1] // 2
    t = np.asarray(positions)[:, None] / 10000.0 ** (np.arange(h) / h)
    R = np.concatenate([-x[..., h:], x[..., :h]], -1)
    return x * np.tile(np.cos(t), 2) + R * np.tile(np.sin(t), 2)


def rotated_as_complex(x, positions, base=10000.0):
    d = x.shape[-1]
    a = np.asarray(positions, float)[:, None] * base ** (
        -np.arange(0, d, 2) / d
    )
    z = np.ascontiguousarray(x).astype(float).view(complex) * np.exp(1j * a)
    return z.view(float)


def sequence_by_sequence(q, k, v, cu_seqlens_q, cu_seqlens_k):
    out = np.zeros(q.shape[:2] + v.shape[2:])
    for a, b, c, d in zip(
        cu_seqlens_q[:-1],
        cu_seqlens_q[1:],
        cu_seqlens_k[:-1],
        cu_seqlens_k[1:],
    ):
        s = np.einsum("qhd,khd->hqk", q[a:b], k[c:d]) / np.sqrt(q.shape[-1])
        if d > c:
            out[a:b] = np.einsum("hqk,khe->qhe", softmax_of(s), v[c:d])
    return out


def length_by_length(q, k, v, k_lengths):
    out = np.zeros(q.shape[:3] + v.shape[3:])
    for b in range(len(q)):
        n = int(k_lengths[b])
        if n == 0:
            continue
        s = q[b] @ k[b, :, :n].swapaxes(1, 2) / math.sqrt(q.shape[-1])
        out[b] = softmax_of(s) @ v[b, :, :n]
    return out


def step(q, k_cache, v_cache, cache_len):
    B = q.shape[0]
    n = np.broadcast_to(np.asarray(cache_len), (B,))
    o = np.zeros(q.shape[:-1] + v_cache.shape[-1:])
    for b in range(B):
        k, v = k_cache[b, :, : n[b]], v_cache[b, :, : n[b]]
        o[b] = softmax_of(q[b] @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    return o


def half_in_half_out(q, k, v):
    t = q.dtype
    q, k, v = (z.astype(np.float64) for z in (q, k, v))
    return (
        softmax_of(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    ).astype(t)


def single_inside(q, k, v):
    q, k, v = (z.astype(np.float32) for z in (q, k, v))
    return (
        softmax_of(q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1])))
        @ v
    )


def layer_of_one_head(x, w_q, w_k, w_v):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return softmax_of(q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])) @ v


def x_with_itself(x):
    g = x @ x.swapaxes(-1, -2) / np.sqrt(x.shape[-1])
    return softmax_of(g) @ x


def heads_by_columns(x, w_q, w_k, w_v, w_o, n_heads):
    B, L, E = x.shape
    cols = np.split(np.arange(w_q.shape[1]), n_heads)
    y = [
        softmax_of(
            (x @ w_q[:, c])
            @ (x @ w_k[:, c]).swapaxes(1, 2)
            / math.sqrt(len(c))
        )
        @ (x @ w_v[:, c])
        for c in cols
    ]
    return np.concatenate(y, -1) @ w_o


def causal_heads_summed(x, w_q, w_k, w_v, w_o, n_heads):
    """the output projection, head by head, summed"""
    T = x.shape[1]
    d = w_q.shape[1] // n_heads
    e = w_v.shape[1] // n_heads
    total = 0
    for h in range(n_heads):
        c, u = slice(h * d, (h + 1) * d), slice(h * e, (h + 1) * e)
        s = np.einsum("btd,bsd->bts", x @ w_q[:, c], x @ w_k[:, c]) / np.sqrt(
            d
        )
        s[:, ~np.tri(T, dtype=bool)] = -np.inf
        total = total + softmax_of(s) @ (x @ w_v[:, u]) @ w_o[u]
    return total


def one_matrix(x, w_qkv, w_o, n_heads):
    B, L, E = x.shape
    qkv = (x @ w_qkv).reshape(B, L, 3, n_heads, -1)
    q, k, v = np.moveaxis(qkv, (2, 3), (0, 2))
    o = softmax_of(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v
    return np.moveaxis(o, 1, 2).reshape(B, L, -1) @ w_o


def gradients(do, q, k, v):
    p = softmax_of(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    o = p @ v
    ds = (
        p
        * (do @ v.swapaxes(-1, -2) - (do * o).sum(-1, keepdims=True))
        / np.sqrt(q.shape[-1])
    )
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def gradients_by_jacobian(do, q, k, v):
    r = 1 / math.sqrt(q.shape[1])
    p = softmax_of(q @ k.T * r)
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), p.T @ do
    for i in range(len(q)):
        J = np.diag(p[i]) - np.outer(p[i], p[i])
        g = J @ (v @ do[i]) * r
        dq[i] = g @ k
        dk += g[:, None] * q[i]
    return dq, dk, dv


def o_and_lse(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    lse = np.logaddexp.reduce(s, axis=-1)
    return np.exp(s - lse[..., None]) @ v, lse


def tiles_of_five(q, k, v, Br=2, Bc=5):
    d = q.shape[-1]
    out = np.empty(q.shape[:-1] + v.shape[-1:])
    for i in range(0, q.shape[-2], Br):
        qb = q[..., i : i + Br, :] / np.sqrt(d)
        m = np.full(qb.shape[:-1], -np.inf)
        l = np.zeros_like(m)
        a = np.zeros(qb.shape[:-1] + v.shape[-1:])
        for j in range(0, k.shape[-2], Bc):
            s = qb @ k[..., j : j + Bc, :].swapaxes(-1, -2)
            mn = np.maximum(m, s.max(-1))
            f = np.exp(m - mn)
            p = np.exp(s - mn[..., None])
            l, a, m = (
                l * f + p.sum(-1),
                a * f[..., None] + p @ v[..., j : j + Bc, :],
                mn,
            )
        out[..., i : i + Br, :] = a / l[..., None]
    return out


def merge_of_two(o1, lse1, o2, lse2):
    with np.errstate(all="ignore"):
        lse = np.logaddexp(lse1, lse2)
        ok = np.isfinite(lse)
        w1 = np.where(ok, np.exp(lse1 - lse), 0)[..., None]
        w2 = np.where(ok, np.exp(lse2 - lse), 0)[..., None]
    return w1 * o1 + w2 * o2, lse


def softmax_by_powers_of_two(x):
    x = np.asarray(x)
    e = np.exp2((x - x.max(-1, keepdims=True)) * np.log2(np.e))
    return e / e.sum(-1, keepdims=True)


def made(causal):
    @functools.wraps(made)
    def run(q, k, v):
        s = (k @ q.swapaxes(-1, -2)).swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        if causal:
            s = s + np.triu(
                np.full(s.shape[-2:], -np.inf), 1 + s.shape[-1] - s.shape[-2]
            )
        return softmax_of(s) @ v

    return lambda q, k, v: run(q, k, v)


closure = made(True)


ZOO = [
    ("sums_of_lists", "correct"),
    ("masked_then_normalised", "correct"),
    ("slopes_on_keys", "correct"),
    ("from_the_left", "correct"),
    ("rows_from_the_end", "correct"),
    ("window_of_a_pair", "correct"),
    ("groups_as_axis", "correct"),
    ("true_is_padding", "correct"),
    ("true_is_hidden", "correct"),
    ("integers_as_mask", "correct"),
    ("bias_added", "correct"),
    ("all_options", "correct"),
    ("sink_in_front", "correct"),
    ("slopes_by_head", "correct"),
    ("sequence_by_sequence", "correct"),
    ("length_by_length", "correct"),
    ("step", "correct"),
    ("single_inside", "correct"),
    ("layer_of_one_head", "correct"),
    ("x_with_itself", "correct"),
    ("heads_by_columns", "correct"),
    ("causal_heads_summed", "correct"),
    ("one_matrix", "correct"),
    ("gradients", "correct"),
    ("gradients_by_jacobian", "correct"),
    ("o_and_lse", "correct"),
    ("tiles_of_five", "correct"),
    ("merge_of_two", "correct"),
    ("closure", "correct"),
    ("fourth_roots", "correct", ["--layout=bshd"]),
    (
        "band_of_four",
        "correct",
        ["--expect=causal=bottom_right,window=3:0", "--layout=bshd"],
    ),
    ("half_in_half_out", "correct", ["--dtype=f16"]),
    ("rotated_halves", "correct", ["--kind=rope"]),
    ("rotated_as_complex", "correct", ["--kind=rope"]),
    ("softmax_by_powers_of_two", "correct", ["--kind=softmax"]),
]
