# SPDX-License-Identifier: Apache-2.0
#
# Right implementations in odd styles. Not one of them may alarm the doctor.
import math

import numpy as np


def softmax(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def quarter_scale(q, k, v):
    r = q.shape[-1] ** -0.25
    return softmax((q * r) @ (k * r).swapaxes(-1, -2)) @ v


def query_first(q, k, v, scale=None):
    q = q * (scale if scale is not None else q.shape[-1] ** -0.5)
    return softmax(q @ np.moveaxis(k, -1, -2)) @ v


def mask_then_renormalise(q, k, v, mask=None):
    p = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    if mask is not None:
        p = p * mask
        p = p / p.sum(-1, keepdims=True)
    return p @ v


def key_index_alibi(q, k, v, alibi_slopes=None, causal=True):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if alibi_slopes is not None and causal:
        s = s + alibi_slopes.reshape(-1, 1, 1) * np.arange(m)
    elif alibi_slopes is not None:
        i = np.arange(n)[:, None] + m - n
        s = s - alibi_slopes.reshape(-1, 1, 1) * np.abs(i - np.arange(m))
    if causal:
        s = np.where(np.tril(np.ones((n, m), bool), m - n), s, -np.inf)
    return softmax(s) @ v


def column_major(q, k, v):
    kt = np.asfortranarray(k.swapaxes(-1, -2))
    s = np.asfortranarray(q @ kt)
    return np.asfortranarray(softmax(s / np.sqrt(q.shape[-1])) @ v)


def transposed_world(q, k, v):
    s = k @ q.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    p = softmax(s, axis=-2)
    return p.swapaxes(-1, -2) @ v


def log_space(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    m = s.max(-1, keepdims=True)
    lse = m + np.log(np.exp(s - m).sum(-1, keepdims=True))
    return np.exp(s - lse) @ v


def base_two(q, k, v):
    s = q @ k.swapaxes(-1, -2) * (math.log2(math.e) / math.sqrt(q.shape[-1]))
    e = np.exp2(s - s.max(-1, keepdims=True))
    return e @ v / e.sum(-1, keepdims=True)


def late_division(q, k, v, causal=False):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        n, m = s.shape[-2:]
        s = s + np.triu(np.full((n, m), -1e9), m - n + 1)
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e @ v) / (e @ np.ones(v.shape[:-1] + (1,)))


def backwards(q, k, v):
    return softmax(q @ k[..., ::-1, :].swapaxes(-1, -2)
                   / math.sqrt(q.shape[-1])) @ v[..., ::-1, :]


def one_by_one(q, k, v):
    """q (B, H, L, D)"""
    o = np.empty(q.shape[:-1] + v.shape[-1:])
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            g = h * k.shape[1] // q.shape[1]
            for i in range(q.shape[2]):
                s = k[b, g] @ q[b, h, i] / math.sqrt(q.shape[3])
                e = np.exp(s - s.max())
                o[b, h, i] = e / e.sum() @ v[b, g]
    return o


def lists(q, k, v):
    """Lists of lists, as without NumPy."""
    q, k, v = (np.asarray(x).tolist() for x in (q, k, v))
    out = []
    for row in q:
        s = [sum(a * b for a, b in zip(row, key)) / math.sqrt(len(row))
             for key in k]
        m = max(s)
        e = [math.exp(x - m) for x in s]
        t = sum(e)
        out.append([sum(x / t * val[c] for x, val in zip(e, v))
                    for c in range(len(v[0]))])
    return out


def seen_as_bshd(query, key, value):
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (query, key, value))
    o = softmax(q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])) @ v
    return o.transpose(0, 2, 1, 3)


def heads_last_merge(q, k, v):
    """-> (B, L, H * D)"""
    o = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v
    b, h, n, d = o.shape
    return o.transpose(0, 2, 1, 3).reshape(b, n, h * d)


def packed(q, k, v, n_heads):
    def split(x):
        b, n, e = x.shape
        return x.reshape(b, n, n_heads, e // n_heads).transpose(0, 2, 1, 3)
    o = softmax(split(q) @ split(k).swapaxes(-1, -2)
                / math.sqrt(q.shape[-1] // n_heads)) @ split(v)
    b, h, n, d = o.shape
    return o.transpose(0, 2, 1, 3).reshape(b, n, h * d)


def flattened_batch(q, k, v):
    b, h, n, d = q.shape
    q2 = q.reshape(b * h, n, d)
    k2 = k.reshape(b * h, -1, d)
    v2 = v.reshape(b * h, -1, v.shape[-1])
    p = softmax(np.einsum("xid,xjd->xij", q2, k2) / math.sqrt(d))
    return np.einsum("xij,xjd->xid", p, v2).reshape(b, h, n, -1)


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
         scale=None, enable_gqa=False):
    """As torch has it: top-left, boolean or additive masks."""
    n, m = query.shape[-2], key.shape[-2]
    if query.shape[1] != key.shape[1]:
        g = query.shape[1] // key.shape[1]
        key, value = np.repeat(key, g, 1), np.repeat(value, g, 1)
    s = query @ key.swapaxes(-1, -2)
    s = s * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        s = np.where(np.tril(np.ones((n, m), bool)), s, -np.inf)
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf) if attn_mask.dtype == bool \
            else s + attn_mask
    return softmax(s) @ value


def drop_mask(q, k, v, mask=None):
    """mask: True = drop"""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, -np.inf, s)
    return softmax(s) @ v


def additive(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = s + mask
    return softmax(s) @ v


def billions(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -1e9)
    return softmax(s) @ v


def nan_to_num(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    m = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(m), 0, m))
    t = e.sum(-1, keepdims=True)
    return e / np.where(t == 0, 1, t) @ v


def single(q, k, v, causal=False):
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    s = q @ k.swapaxes(-1, -2) / np.float32(math.sqrt(q.shape[-1]))
    if causal:
        n, m = s.shape[-2:]
        s = np.where(np.tri(n, m, m - n, dtype=bool), s, np.float32(-1e30))
    return softmax(s) @ v


def gemma(q, k, v, softcap=None, window=None, causal=True):
    """window: how many keys a row sees, itself included"""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if softcap:
        s = softcap * np.tanh(s / softcap)
    n, m = s.shape[-2:]
    i, j = np.arange(n)[:, None] + m - n, np.arange(m)
    see = np.ones((n, m), bool)
    if causal:
        see &= j <= i
    if window is not None:
        see &= (j > i - window) & (j <= i)
    return softmax(np.where(see, s, -np.inf)) @ v


def flash_window(q, k, v, causal=False, window_size=(-1, -1)):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    i, j = np.arange(n)[:, None] + m - n, np.arange(m)
    see = np.ones((n, m), bool)
    if causal:
        see &= j <= i
    if window_size[0] >= 0:
        see &= j >= i - window_size[0]
    if window_size[1] >= 0:
        see &= j <= i + window_size[1]
    s = np.where(see, s, -np.inf)
    m = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isinf(m), 0, m))
    t = e.sum(-1, keepdims=True)
    return e @ v / np.where(t == 0, 1, t)


def with_lengths(q, k, v, k_lengths=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if k_lengths is not None:
        s = np.where(np.arange(s.shape[-1])
                     < k_lengths.reshape(-1, 1, 1, 1), s, -np.inf)
    return softmax(s) @ v


def with_sinks(q, k, v, sinks=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if sinks is not None:
        x = np.broadcast_to(sinks.reshape(-1, 1, 1), s.shape[:-1] + (1,))
        return softmax(np.concatenate([s, x], -1))[..., :-1] @ v
    return softmax(s) @ v


def with_lse(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    m = s.max(-1)
    e = np.exp(s - m[..., None])
    t = e.sum(-1)
    return e @ v / t[..., None], m + np.log(t)


def with_weights(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    p = softmax(s)
    return p @ v, p


def tiny_eps(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / (e.sum(-1, keepdims=True) + 1e-12) @ v


class Attention:
    def __init__(self, dropout=0.1):
        self.training = False

    def __call__(self, q, k, v, mask=None):
        return billions(q, k, v, mask)


as_object = Attention()


def training_switch(q, k, v, dropout_p=0.1, training=True):
    p = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))
    if training and dropout_p > 0:
        p = p * (np.random.random(p.shape) > dropout_p) / (1 - dropout_p)
    return p @ v


def two_pass(q, k, v, causal=False):
    """Keys in two halves, merged by their sums."""
    n, m = q.shape[-2], k.shape[-2]
    c = m // 2
    parts = []
    for a, b in ((0, c), (c, m)):
        if a == b:
            continue
        s = q @ k[..., a:b, :].swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            i, j = np.arange(n)[:, None] + m - n, np.arange(a, b)
            s = np.where(j <= i, s, -np.inf)
        x = s.max(-1, keepdims=True)
        e = np.exp(s - np.where(np.isinf(x), 0, x))
        parts.append((x, e.sum(-1, keepdims=True), e @ v[..., a:b, :]))
    top = np.max([x for x, _, _ in parts], 0)
    w = [np.exp(x - top) for x, _, _ in parts]
    t = sum(a * s for a, (_, s, _) in zip(w, parts))
    return sum(a * o for a, (_, _, o) in zip(w, parts)) / t


def chunked_queries(q, k, v):
    out = [softmax(q[..., i:i + 3, :] @ k.swapaxes(-1, -2)
                   / math.sqrt(q.shape[-1])) @ v
           for i in range(0, q.shape[-2], 3)]
    return np.concatenate(out, -2)


def longdouble(q, k, v):
    q, k, v = (x.astype(np.longdouble) for x in (q, k, v))
    s = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(
        np.longdouble(q.shape[-1]))
    return np.einsum("...ij,...jd->...id", softmax(s), v)


ZOO = [(name, "correct") for name in (
    "quarter_scale", "query_first", "mask_then_renormalise",
    "key_index_alibi", "column_major", "transposed_world", "log_space",
    "base_two", "late_division", "backwards", "one_by_one", "lists",
    "seen_as_bshd", "heads_last_merge", "packed", "flattened_batch", "sdpa",
    "drop_mask", "additive", "billions", "nan_to_num", "single", "gemma",
    "flash_window", "with_lengths", "with_sinks", "with_lse", "with_weights",
    "tiny_eps", "as_object", "training_switch", "two_pass",
    "chunked_queries", "longdouble")]
ZOO += [
    ("sdpa", "correct", ["--expect", "causal=top_left,empty_rows=nan"]),
    ("nan_to_num", "correct", ["--expect="]),
    ("flash_window", "correct", ["--expect", "causal=bottom_right"]),
    ("gemma", "correct", ["--expect", "empty_rows=nan"]),
    ("with_sinks", "correct", ["--expect="]),
    ("sdpa", "correct", ["--dtype", "f32"]),
    ("sdpa", "correct", ["--dtype", "f16"]),
    ("two_pass", "correct", ["--dtype", "float16"]),
]
