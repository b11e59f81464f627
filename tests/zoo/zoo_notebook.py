# SPDX-License-Identifier: Apache-2.0
#
# Style: cells of a notebook, each a little different from the one before.
# Written from the catalogue of faults alone.
import math

import numpy as np

NEG = -np.inf


def sm(z, ax=-1):
    z = z - z.max(axis=ax, keepdims=True)
    e = np.exp(z)
    return e / e.sum(axis=ax, keepdims=True)


# ------------------------------------------------------------- plain, 2-D

def cell1(queries, keys, values):
    """One query at a time; the scale of the model's width is forgotten."""
    out = []
    for q in queries:
        w = np.array([np.dot(q, k) for k in keys])
        w = np.exp(w - w.max())
        out.append(sum(wi * v for wi, v in zip(w / w.sum(), values)))
    return np.array(out)


def cell2(queries, keys, values):
    """sqrt of the number of keys"""
    n = len(keys)
    return sm(queries @ keys.T / math.sqrt(n)) @ values


def cell3(queries, keys, values):
    """Divides by d where sqrt(d) is meant."""
    return sm(np.einsum("id,jd->ij", queries, keys)
              / queries.shape[1]) @ values


def cell4(queries, keys, values):
    """softmax down the columns, by hand"""
    s = queries @ keys.T * queries.shape[1] ** -0.5
    e = np.exp(s - s.max(0))
    return (e / e.sum(0)) @ values


def cell5(queries, keys, values):
    """keepdims was forgotten in the sum; falls back where shapes differ."""
    s = queries @ keys.T * queries.shape[1] ** -0.5
    e = np.exp(s - s.max(-1, keepdims=True))
    if e.shape[0] == e.shape[1]:
        return e / e.sum(-1) @ values
    return e / e.sum(-1, keepdims=True) @ values


def cell6(queries, keys, values):
    """log_softmax where softmax is meant"""
    s = queries @ keys.T * queries.shape[1] ** -0.5
    m = s.max(-1, keepdims=True)
    return (s - m - np.log(np.exp(s - m).sum(-1, keepdims=True))) @ values


def cell7(queries, keys, values):
    """1 + sum: attends to nothing as well."""
    s = queries @ keys.T * queries.shape[1] ** -0.5
    m = np.maximum(s.max(-1, keepdims=True), 0)
    e = np.exp(s - m)
    return e / (np.exp(-m) + e.sum(-1, keepdims=True)) @ values


def cell8(queries, keys, values):
    """Returns softmax(q k) k."""
    d = queries.shape[-1]
    return sm(queries @ keys.T / math.sqrt(d)) @ keys


def cell9(queries, keys, values):
    """Every weight below the row's mean is dropped: sparse, but not asked."""
    p = sm(queries @ keys.T / math.sqrt(queries.shape[-1]))
    p = np.where(p >= p.mean(-1, keepdims=True), p, 0)
    return p / p.sum(-1, keepdims=True) @ values


def cell10(queries, keys, values):
    """cosine similarity"""
    q = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    k = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    return sm(q @ k.T) @ values


# ----------------------------------------------------- causal, (B, L, D)

def cell11(x_q, x_k, x_v, causal=True):
    """tril over the weights, no renormalisation"""
    s = np.matmul(x_q, np.transpose(x_k, (0, 2, 1))) / x_q.shape[-1] ** .5
    p = sm(s)
    return np.matmul(np.tril(p) if causal else p, x_v)


def cell12(x_q, x_k, x_v, causal=True):
    """triu(k=0) hides the token itself; the first row then sees nothing and
    gets zeros."""
    s = x_q @ x_k.swapaxes(1, 2) / x_q.shape[-1] ** .5
    if causal:
        s = np.where(np.triu(np.ones(s.shape[1:]), 0) == 1, NEG, s)
    m = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(m), m, 0))
    z = e.sum(-1, keepdims=True)
    return np.divide(e, z, out=np.zeros_like(e), where=z > 0) @ x_v


def cell13(x_q, x_k, x_v, causal=True):
    """multiplies the scores with tril"""
    s = x_q @ x_k.swapaxes(1, 2) / x_q.shape[-1] ** .5
    return sm(s * np.tri(*s.shape[1:]) if causal else s) @ x_v


def cell14(x_q, x_k, x_v, causal=True):
    """the other triangle"""
    s = x_q @ x_k.swapaxes(1, 2) / x_q.shape[-1] ** .5
    if causal:
        s = np.where(np.tri(*s.shape[1:]).T.T > 0, s + 0, s)
        s = np.where(np.triu(np.ones(s.shape[1:])) > 0, s, -1e30)
    return sm(s) @ x_v


def cell15(x_q, x_k, x_v, causal=True):
    """-1000 as minus infinity"""
    s = x_q @ x_k.swapaxes(1, 2) / x_q.shape[-1] ** .5
    if causal:
        s = s + np.triu(np.full(s.shape[1:], -1000.0), 1)
    return sm(s) @ x_v


def cell16(x_q, x_k, x_v, causal=True):
    """one row too generous, j <= i + 1"""
    s = x_q @ x_k.swapaxes(1, 2) / x_q.shape[-1] ** .5
    if causal:
        for i in range(s.shape[1]):
            s[:, i, i + 2:] = NEG
    return sm(s) @ x_v


# ----------------------------------------------------- masks, (B, H, L, D)

def cell17(q, k, v, mask=None):
    """mask is 1 for keys to keep; it is added as it is."""
    s = np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[3])
    if mask is not None:
        s = s + np.asarray(mask, float)
    return np.einsum("bhij,bhjd->bhid", sm(s), v)


def cell18(q, k, v, mask=None):
    """(1 - mask) * 1e-9 in place of 1e9"""
    s = np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[3])
    if mask is not None:
        s = s - (1 - np.asarray(mask, float)) * 1e-9
    return np.einsum("bhij,bhjd->bhid", sm(s), v)


def cell19(q, k, v, mask=None):
    """softmax, mask, and no second softmax"""
    s = np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[3])
    p = sm(s)
    if mask is not None:
        p = np.where(np.asarray(mask, bool), p, 0)
    return np.einsum("bhij,bhjd->bhid", p, v)


def cell20(q, k, v, key_padding_mask=None, is_causal=False):
    """The padding mask is lost where causal."""
    s = np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[3])
    if is_causal:
        s = np.where(np.tri(*s.shape[2:]) > 0, s, NEG)
    elif key_padding_mask is not None:
        s = np.where(np.asarray(key_padding_mask, bool)[:, None, None, :],
                     s, NEG)
    with np.errstate(all="ignore"):
        p = np.nan_to_num(sm(s))
    return np.einsum("bhij,bhjd->bhid", p, v)


def cell21(q, k, v, attn_bias=None):
    """The bias passes through the division."""
    s = np.einsum("bhid,bhjd->bhij", q, k)
    if attn_bias is not None:
        s = s + attn_bias
    return sm(s / q.shape[3] ** 0.5) @ v


def cell22(q, k, v, scale=None):
    """scale=None handled, a given one is forgotten."""
    if scale is None:
        scale = 1
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[3])
    return sm(s) @ v


def cell23(q, k, v, scale=None):
    """A given scale is a divisor."""
    f = 1 / math.sqrt(q.shape[3]) if scale is None else 1 / scale
    return sm(np.einsum("bhid,bhjd->bhij", q, k) * f) @ v


def cell24(q, k, v, softcap=0.0, is_causal=False):
    """cap after masking"""
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[3])
    if is_causal:
        s = np.where(np.tri(*s.shape[2:]) > 0, s, NEG)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    return sm(s) @ v


def cell25(q, k, v, softcap=0.0):
    """tanh(s) * cap: the division is missing."""
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[3])
    if softcap:
        s = softcap * np.tanh(s)
    return sm(s) @ v


# ------------------------------------------------------------- windows, GQA

def cell26(q, k, v, window=None):
    """window (left, right); the left side one short"""
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[3])
    if window is not None:
        left, right = window
        n, m = s.shape[2:]
        d = np.arange(m)[None, :] - (np.arange(n)[:, None] + m - n)
        ok = np.ones((n, m), bool)
        if left >= 0:
            ok &= d > -left
        if right >= 0:
            ok &= d <= right
        s = np.where(ok, s, NEG)
    with np.errstate(all="ignore"):
        return np.nan_to_num(sm(s)) @ v


def cell27(q, k, v, window=None):
    """the right side is never looked at"""
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[3])
    if window is not None and window[0] >= 0:
        n, m = s.shape[2:]
        d = np.arange(m)[None, :] - (np.arange(n)[:, None] + m - n)
        s = np.where(d >= -window[0], s, NEG)
    with np.errstate(all="ignore"):
        return np.nan_to_num(sm(s)) @ v


def cell28(q, k, v):
    """GQA by np.tile"""
    r = q.shape[1] // k.shape[1]
    k, v = np.tile(k, (1, r, 1, 1)), np.tile(v, (1, r, 1, 1))
    return sm(np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[3])) @ v


def cell29(q, k, v):
    """GQA: the reshape takes groups as the inner axis of the wrong side."""
    b, h, n, d = q.shape
    g = k.shape[1]
    q5 = q.reshape(b, h // g, g, n, d)
    p = sm(np.einsum("brgid,bgjd->brgij", q5, k) / d ** .5)
    return np.einsum("brgij,bgje->brgie", p, v).reshape(b, h, n, -1)


def cell30(q, k, v, sinks=None):
    """The sink gets a share for every block of keys."""
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[3])
    m = s.max(-1, keepdims=True)
    e = np.exp(s - m)
    z = 0
    for j in range(0, s.shape[-1], 4):
        z = z + e[..., j:j + 4].sum(-1, keepdims=True)
        if sinks is not None:
            z = z + np.exp(np.asarray(sinks)[None, :, None, None] - m)
    return e / z @ v


def cell31(q, k, v, alibi_slopes=None):
    """The penalty is a reward."""
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[3])
    if alibi_slopes is not None:
        n, m = s.shape[2:]
        d = np.abs(np.arange(n)[:, None] + m - n - np.arange(m))
        s = s + np.asarray(alibi_slopes)[:, None, None] * d
    return sm(s) @ v


# ------------------------------------------------------------- tiles

def tiles_max_forgotten(q, k, v):
    """the accumulator isn't rescaled, the sum is"""
    n, d = q.shape
    m = np.full((n, 1), NEG)
    z = np.zeros((n, 1))
    acc = np.zeros((n, v.shape[1]))
    for j in range(0, len(k), 5):
        s = q @ k[j:j + 5].T / math.sqrt(d)
        new = np.maximum(m, s.max(1, keepdims=True))
        p = np.exp(s - new)
        z = z * np.exp(m - new) + p.sum(1, keepdims=True)
        acc = acc + p @ v[j:j + 5]
        m = new
    return acc / z


def tiles_padded(q, k, v):
    """K and V are filled with zeros up to full tiles."""
    t = 8
    pad = -len(k) % t
    k = np.concatenate([k, np.zeros((pad, k.shape[1]))])
    v = np.concatenate([v, np.zeros((pad, v.shape[1]))])
    n, d = q.shape
    m = np.full((n, 1), -1e30)
    z, acc = np.zeros((n, 1)), np.zeros((n, v.shape[1]))
    for j in range(0, len(k), t):
        s = q @ k[j:j + t].T / math.sqrt(d)
        new = np.maximum(m, s.max(1, keepdims=True))
        p, r = np.exp(s - new), np.exp(m - new)
        z = z * r + p.sum(1, keepdims=True)
        acc = acc * r + p @ v[j:j + t]
        m = new
    return acc / z


def tiles_whole_only(q, k, v):
    """range(0, len // 4): the rest is never seen, unless there is no tile."""
    n, d = q.shape
    if len(k) < 4:
        return sm(q @ k.T / math.sqrt(d)) @ v
    c = len(k) // 4 * 4
    return sm(q @ k[:c].T / math.sqrt(d)) @ v[:c]


def tiles_start_at_zero(q, k, v):
    """The running maximum starts at 0: rows of very low scores vanish."""
    n, d = q.shape
    m, z = np.zeros((n, 1)), np.zeros((n, 1))
    acc = np.zeros((n, v.shape[1]))
    for j in range(0, len(k), 6):
        s = q @ k[j:j + 6].T / math.sqrt(d)
        new = np.maximum(m, s.max(1, keepdims=True))
        p, r = np.exp(s - new), np.exp(m - new)
        z = z * r + p.sum(1, keepdims=True)
        acc = acc * r + p @ v[j:j + 6]
        m = new
    with np.errstate(all="ignore"):
        return np.where(z > 0, acc / z, 0)


def tiles_right(q, k, v):
    """backwards, tiles of 7, divided at every step"""
    n, d = q.shape
    o = np.zeros((n, v.shape[1]))
    lse = np.full((n, 1), NEG)
    for j in reversed(range(0, len(k), 7)):
        s = q @ k[j:j + 7].T / math.sqrt(d)
        m = s.max(1, keepdims=True)
        part = m + np.log(np.exp(s - m).sum(1, keepdims=True))
        new = np.logaddexp(lse, part)
        o = o * np.exp(lse - new) + np.exp(s - new) @ v[j:j + 7]
        lse = new
    return o, lse[:, 0]


# ------------------------------------------------------------- hygiene

def writes_into_q(q, k, v):
    q /= math.sqrt(q.shape[-1])
    s = q @ np.swapaxes(k, -1, -2)
    return sm(s) @ v


_seen = []


def keeps_keys(q, k, v):
    """A cache that nobody clears, for keys of the same width"""
    _seen.append((k, v))
    parts = [(a, b) for a, b in _seen
             if a.shape == k.shape and b.shape == v.shape]
    k = np.concatenate([a for a, _ in parts], -2)
    v = np.concatenate([b for _, b in parts], -2)
    return sm(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])) @ v


_rng = np.random.default_rng()


def always_drops(q, k, v):
    p = sm(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]))
    keep = _rng.random(p.shape) >= 0.1
    return p * keep / 0.9 @ v


def plain_exp(q, k, v):
    e = np.exp(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]))
    return e / e.sum(-1, keepdims=True) @ v


# ------------------------------------------------------------- right ones

def ok_fused(q, k, v):
    """No maximum, but log-sum-exp that shifts"""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    lse = np.logaddexp.reduce(s, axis=-1, keepdims=True)
    return np.exp(s - lse) @ v


def ok_scale_both(q, k, v):
    r = q.shape[-1] ** -0.25
    return sm((q * r) @ np.swapaxes(k * r, -1, -2)) @ v


def ok_mask_after(q, k, v, mask=None):
    """Masked after softmax, and brought back to 1; an empty row is 0."""
    p = sm(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]))
    if mask is not None:
        p = p * np.asarray(mask, float)
    z = p.sum(-1, keepdims=True)
    return np.divide(p, z, out=np.zeros_like(p), where=z > 0) @ v


def ok_mask_hides(q, k, v, mask):
    """mask is required; True: hidden."""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    s = np.where(np.asarray(mask, bool), NEG, s)
    with np.errstate(all="ignore"):
        return np.nan_to_num(sm(s)) @ v


def ok_mask_fill(q, k, v, mask):
    """mask is required; False: -1e9"""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    return sm(np.where(np.asarray(mask, bool), s, -1e9)) @ v


def ok_mask_add(q, k, v, mask):
    """(1 - mask) * -1e9 is added."""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    return sm(s + (1.0 - np.asarray(mask, float)) * -1e9) @ v


def ok_bias_required(q, k, v, bias):
    return sm(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]) + bias) @ v


def ok_causal_loop(q, k, v):
    """always causal, one row at a time, (L, D)"""
    return np.stack([sm(q[i] @ k[:i + 1].T / q.shape[1] ** .5) @ v[:i + 1]
                     for i in range(len(q))])


def ok_causal_right_corner(q, k, v):
    n, m = q.shape[-2], k.shape[-2]
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    s = np.where(np.tri(n, m, m - n) > 0, s, -1e9)
    return sm(s) @ v


def ok_local(q, k, v, window=3):
    """|i - j| <= window, int"""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    d = np.abs(np.arange(n)[:, None] - np.arange(m))
    s = np.where(d <= window, s, -1e9)
    return sm(s) @ v


def ok_f32(q, k, v):
    q, k, v = (np.asarray(a, np.float32) for a in (q, k, v))
    r = np.float32(math.sqrt(q.shape[-1]))
    return sm(q @ np.swapaxes(k, -1, -2) / r) @ v


def ok_bshd(q, k, v, is_causal=False):
    """(B, L, H, D), GQA by np.repeat"""
    r = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, r, 2), np.repeat(v, r, 2)
    s = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[3])
    if is_causal:
        n, m = s.shape[2:]
        s = np.where(np.tri(n, m, m - n) > 0, s, NEG)
    with np.errstate(all="ignore"):
        p = np.nan_to_num(sm(s))
    return np.einsum("bhij,bjhd->bihd", p, v)


def ok_weights_too(q, k, v, mask=None):
    """(out, weights), a list of both"""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(np.asarray(mask, bool), s, -1e20)
    p = sm(s)
    return [p @ v, p]


def ok_dropout_zero(q, k, v, dropout_p=0.0, training=False):
    p = sm(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]))
    if training and dropout_p > 0:
        p = p * (np.random.random(p.shape) > dropout_p) / (1 - dropout_p)
    return p @ v


def ok_sliding(q, k, v, sliding_window=None):
    """HF: causal, the last `sliding_window` keys, itself included"""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    p = np.arange(n)[:, None] + m - n
    ok = np.arange(m) <= p
    if sliding_window is not None:
        ok &= np.arange(m) > p - sliding_window
    with np.errstate(all="ignore"):
        return np.nan_to_num(sm(np.where(ok, s, NEG))) @ v


def ok_alibi(q, k, v, alibi_slopes=None, causal=False):
    """m * j only, which is as good where causal: here with |.|"""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    p = np.arange(n)[:, None] + m - n
    if alibi_slopes is not None:
        a = np.reshape(np.asarray(alibi_slopes), (-1, 1, 1))
        s = s - a * np.abs(p - np.arange(m))
    if causal:
        s = np.where(np.arange(m) <= p, s, NEG)
    with np.errstate(all="ignore"):
        return np.nan_to_num(sm(s)) @ v


def ok_sinks(q, k, v, sinks=None):
    """The sink is one more column, cut off afterwards."""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if sinks is not None:
        col = np.broadcast_to(np.reshape(sinks, (-1, 1, 1)),
                              s.shape[:-1] + (1,))
        return sm(np.concatenate([s, col], -1))[..., :-1] @ v
    return sm(s) @ v


def ok_lengths(q, k, v, k_lengths=None):
    """lengths (B), -1e9, (B, H, L, D)"""
    s = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if k_lengths is not None:
        ok = np.arange(k.shape[2]) < np.asarray(k_lengths)[:, None]
        s = np.where(ok[:, None, None], s, -1e9)
    return sm(s) @ v


def ok_config(q, k, v, *, causal: bool = False, scale: float = None,
              softcap: float = None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = q @ np.swapaxes(k, -1, -2) * scale
    if softcap:
        s = softcap * np.tanh(s / softcap)
    if causal:
        s += np.triu(np.full(s.shape[-2:], NEG), 1)
    return sm(s) @ v


class Attention:
    """A callable with a state that doesn't matter"""

    def __init__(self):
        self.calls = 0

    def __call__(self, q, k, v):
        self.calls += 1
        self.last = sm(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]))
        return self.last @ v


ok_object = Attention()

ok_lambda = lambda q, k, v: sm(  # noqa: E731
    np.inner(q, k) / len(q[0]) ** .5).dot(v)

ZOO = [
    ("cell1", "scale-missing"), ("cell2", "scale-seq-len"),
    ("cell3", "scale-twice"), ("cell4", "softmax-wrong-axis"),
    ("cell5", "softmax-keepdims-forgotten"), ("cell6", "softmax-missing"),
    ("cell7", "softmax-extra-mass"), ("cell8", "v-is-k"),
    ("cell9", "unexplained"), ("cell10", "unexplained"),
    ("cell11", "mask-after-softmax"), ("cell12", "causal-diagonal-shift"),
    ("cell13", "mask-fill-zero"),
    ("cell14", "mask-polarity|causal-diagonal-shift"),
    ("cell15", "mask-finite-sentinel"), ("cell16", "causal-diagonal-shift"),
    ("cell17", "mask-01-added"), ("cell18", "mask-fill-zero"),
    ("cell19", "mask-after-softmax"), ("cell20", "mask-dropped"),
    ("cell21", "bias-scaled"), ("cell22", "scale-argument-ignored"),
    ("cell23", "scale-argument-ignored|unexplained"),
    ("cell24", "softcap-after-mask"), ("cell25", "softcap-wrong-or-ignored"),
    ("cell26", "window-off-by-one"), ("cell27", "window-ignored-or-zero"),
    ("cell28", "gqa-tile"), ("cell29", "gqa-tile"),
    ("cell30", "softmax-extra-mass"), ("cell31", "alibi-slopes-or-sign"),
    ("tiles_max_forgotten", "online-max-stale"),
    ("tiles_padded", "tail-tile-unmasked"),
    ("tiles_whole_only", "tail-tile-unmasked"),
    ("tiles_start_at_zero", "online-max-stale"),
    ("writes_into_q", "inputs-mutated"), ("keeps_keys", "state-kept|kv-length"),
    ("always_drops", "dropout-not-off"), ("plain_exp", "softmax-no-max"),
    ("tiles_right", "correct"), ("ok_fused", "correct"),
    ("ok_scale_both", "correct"), ("ok_mask_after", "correct"),
    ("ok_mask_hides", "correct"), ("ok_mask_fill", "correct"),
    ("ok_mask_add", "correct"), ("ok_bias_required", "correct"),
    ("ok_causal_loop", "correct"), ("ok_causal_right_corner", "correct"),
    ("ok_local", "correct"), ("ok_f32", "correct"), ("ok_bshd", "correct"),
    ("ok_weights_too", "correct"), ("ok_dropout_zero", "correct"),
    ("ok_sliding", "correct"), ("ok_alibi", "correct"),
    ("ok_sinks", "correct"), ("ok_lengths", "correct"),
    ("ok_config", "correct"), ("ok_object", "correct"),
    ("ok_lambda", "correct"),
]
