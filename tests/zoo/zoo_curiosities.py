# SPDX-License-Identifier: Apache-2.0
#
# Right, though it does not look so; each beside one that is wrong in a way
# that looks as harmless.
import math
from functools import partial

import numpy as np


def norm(x, axis=-1):
    x = np.exp(x - x.max(axis, keepdims=True))
    return x / x.sum(axis, keepdims=True)


def dot(q, k):
    return np.einsum("...id,...jd->...ij", q, k)


# masks after softmax, renormalised or not
def late_mask_fixed(q, k, v, mask=None):
    p = norm(dot(q, k) / math.sqrt(q.shape[-1]))
    if mask is not None:
        p = np.where(mask, p, 0.0)
        p /= p.sum(-1, keepdims=True)
    return p @ v


def late_mask_columns(q, k, v, mask=None):
    """Renormalised, but over the queries."""
    p = norm(dot(q, k) / math.sqrt(q.shape[-1]))
    if mask is not None:
        p = np.where(mask, p, 0.0)
        p /= p.sum(-2, keepdims=True)
    return p @ v


# the scale in halves
def fourth_roots(q, k, v):
    r = math.sqrt(math.sqrt(q.shape[-1]))
    return norm(dot(q / r, k / r)) @ v


def square_roots(q, k, v):
    r = math.sqrt(q.shape[-1])
    return norm(dot(q / r, k / r)) @ v


def one_fourth_root(q, k, v):
    r = q.shape[-1] ** 0.25
    return norm(dot(q / r, k)) @ v


# padding of the head dimension
def padded_right(q, k, v):
    d = q.shape[-1]
    z = np.zeros(q.shape[:-1] + (-d % 8,)), np.zeros(k.shape[:-1] + (-d % 8,))
    q, k = np.concatenate([q, z[0]], -1), np.concatenate([k, z[1]], -1)
    return norm(dot(q, k) * d ** -0.5) @ v


def padded_wrong(q, k, v):
    d = q.shape[-1]
    z = np.zeros(q.shape[:-1] + (-d % 8,)), np.zeros(k.shape[:-1] + (-d % 8,))
    q, k = np.concatenate([q, z[0]], -1), np.concatenate([k, z[1]], -1)
    return norm(dot(q, k) * q.shape[-1] ** -0.5) @ v


# padding of the keys
def keys_padded_right(q, k, v):
    n = -k.shape[-2] % 4
    w = [(0, 0)] * (k.ndim - 2) + [(0, n), (0, 0)]
    m = k.shape[-2]
    k, v = np.pad(k, w), np.pad(v, w)
    s = dot(q, k) / math.sqrt(q.shape[-1])
    s[..., m:] = -np.inf
    return norm(s) @ v


def keys_padded_wrong(q, k, v):
    n = -k.shape[-2] % 4
    w = [(0, 0)] * (k.ndim - 2) + [(0, n), (0, 0)]
    k, v = np.pad(k, w), np.pad(v, w)
    return norm(dot(q, k) / math.sqrt(q.shape[-1])) @ v


# sums in other orders
def by_columns(q, k, v):
    """One key after another, unnormalised, one maximum beforehand."""
    s = dot(q, k) / math.sqrt(q.shape[-1])
    top = s.max(-1, keepdims=True)
    o, t = 0, 0
    for j in range(k.shape[-2]):
        e = np.exp(s[..., j:j + 1] - top)
        o, t = o + e * v[..., j:j + 1, :], t + e
    return o / t


def by_columns_own_maximum(q, k, v):
    """The maximum of the first half serves for all: exp may overflow."""
    s = dot(q, k) / math.sqrt(q.shape[-1])
    top = s[..., :1]
    e = np.exp(s - top)
    return e / e.sum(-1, keepdims=True) @ v


def joined(q, k, v, share):
    """The first and the second half of the keys, each with its lse; share
    says how much of the first half's o joins."""
    m = k.shape[-2] // 2
    if m == 0:
        return norm(dot(q, k) / math.sqrt(q.shape[-1])) @ v
    parts = []
    for a, b in ((0, m), (m, k.shape[-2])):
        s = dot(q, k[..., a:b, :]) / math.sqrt(q.shape[-1])
        t = s.max(-1, keepdims=True)
        e = np.exp(s - t)
        z = e.sum(-1, keepdims=True)
        parts.append((e @ v[..., a:b, :] / z, t + np.log(z)))
    (o1, l1), (o2, l2) = parts
    w = share(l1, l2)
    return w * o1 + (1 - w) * o2


def two_halves(q, k, v):
    return joined(q, k, v, lambda l1, l2: 1 / (1 + np.exp(l2 - l1)))


def two_halves_swapped(q, k, v):
    return joined(q, k, v, lambda l1, l2: 1 / (1 + np.exp(l1 - l2)))


# alibi written differently
def alibi_by_key(q, k, v, alibi_slopes=None, causal=True):
    s = dot(q, k) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if alibi_slopes is not None:
        s = s + np.asarray(alibi_slopes)[:, None, None] * np.arange(m)
    i = np.arange(n)[:, None] + m - n
    return norm(np.where(np.arange(m) <= i, s, -np.inf)) @ v


def alibi_by_query(q, k, v, alibi_slopes=None, causal=True):
    """A term by the query's index alone is none at all."""
    s = dot(q, k) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if alibi_slopes is not None:
        s = s - np.asarray(alibi_slopes)[:, None, None] * \
            np.arange(n)[:, None]
    i = np.arange(n)[:, None] + m - n
    return norm(np.where(np.arange(m) <= i, s, -np.inf)) @ v


# softmax in other words
def log_softmax(q, k, v):
    s = dot(q, k) / math.sqrt(q.shape[-1])
    s = s - np.logaddexp.reduce(s, -1, keepdims=True)
    return np.exp(s) @ v


def log_softmax_forgotten(q, k, v):
    s = dot(q, k) / math.sqrt(q.shape[-1])
    s = s - np.logaddexp.reduce(s, -1, keepdims=True)
    return s @ v


def sigmoid_of_two(q, k, v):
    """exp by 2^x"""
    s = dot(q, k) / math.sqrt(q.shape[-1]) / math.log(2)
    e = np.exp2(s - np.floor(s.max(-1, keepdims=True)))
    return e @ v / e.sum(-1, keepdims=True)


def two_for_e(q, k, v):
    s = dot(q, k) / math.sqrt(q.shape[-1])
    e = np.exp2(s - s.max(-1, keepdims=True))
    return e @ v / e.sum(-1, keepdims=True)


def temperature_two(q, k, v):
    return norm(dot(q, k) / (2 * math.sqrt(q.shape[-1]))) @ v


def nothing_eps(q, k, v):
    s = dot(q, k) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / (e.sum(-1, keepdims=True) + 1e-12) @ v


def clamped_sum(q, k, v):
    s = dot(q, k) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-6) @ v


def clamped_weights(q, k, v):
    p = norm(dot(q, k) / math.sqrt(q.shape[-1]))
    return np.maximum(p, 1e-3) @ v


def top_k_only(q, k, v):
    """Keeps the four largest scores of a row."""
    s = dot(q, k) / math.sqrt(q.shape[-1])
    n = min(4, s.shape[-1])
    least = np.sort(s, -1)[..., -n:][..., :1]
    return norm(np.where(s >= least, s, -np.inf)) @ v


# storage
def in_float32(q, k, v, causal=False):
    q, k, v = (np.asarray(x, np.float32) for x in (q, k, v))
    s = dot(q, k) * np.float32(q.shape[-1] ** -0.5)
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s,
                     np.finfo(np.float32).min)
    return norm(s) @ v


def kept_in_half(q, k, v):
    """Half precision in memory, single in arithmetic."""
    q, k, v = (np.asarray(x, np.float16).astype(np.float32)
               for x in (q, k, v))
    return (norm(dot(q, k) / np.float32(math.sqrt(q.shape[-1]))) @
            v).astype(np.float16)


def fortran(q, k, v):
    return np.asfortranarray(norm(np.asfortranarray(
        dot(q, k) / math.sqrt(q.shape[-1]))) @ v)


def of_lists(q, k, v):
    q, k, v = map(np.asarray, (np.asarray(q).tolist(),
                               np.asarray(k).tolist(),
                               np.asarray(v).tolist()))
    return (norm(dot(q, k) / math.sqrt(q.shape[-1])) @ v).tolist()


# arguments by position, further arguments, other names
def many_arguments(q, k, v, dropout_p=0.0, verbose=False, training=False,
                   impl="fast", *rest, **others):
    return norm(dot(q, k) / math.sqrt(q.shape[-1])) @ v


def heads_in_einsum(query_states, key_states, value_states, num_heads):
    b, n, _ = query_states.shape
    q, k, v = (np.stack(np.split(x, num_heads, -1), 1)
               for x in (query_states, key_states, value_states))
    o = norm(dot(q, k) / math.sqrt(q.shape[-1])) @ v
    return np.concatenate(list(o.transpose(1, 0, 2, 3)), -1)


def one_more_axis(q, k, v):
    """(B, Hkv, G, L, D): groups by a view"""
    b, h, n, d = q.shape
    g = k.shape[1]
    q = q.reshape(b, g, h // g, n, d)
    s = np.einsum("bghid,bgjd->bghij", q, k) / math.sqrt(d)
    return np.einsum("bghij,bgje->bghie", norm(s), v).reshape(b, h, n, -1)


def one_more_axis_swapped(q, k, v):
    b, h, n, d = q.shape
    g = k.shape[1]
    q = q.reshape(b, h // g, g, n, d)
    s = np.einsum("bhgid,bgjd->bhgij", q, k) / math.sqrt(d)
    return np.einsum("bhgij,bgje->bhgie", norm(s), v).reshape(b, h, n, -1)


def scaled(factor, q, k, v):
    return norm(dot(q, k) * factor(q.shape[-1])) @ v


partial_right = partial(scaled, lambda d: d ** -0.5)
partial_wrong = partial(scaled, lambda d: 0.2)


def empty_rows_zero(q, k, v, mask=None):
    s = dot(q, k) / math.sqrt(q.shape[-1])
    if mask is None:
        return norm(s) @ v
    s = np.where(mask, s, -1e30)
    e = np.exp(s - s.max(-1, keepdims=True)) * mask
    t = e.sum(-1, keepdims=True)
    return np.divide(e, t, out=np.zeros_like(e), where=t > 0) @ v


def window_by_blocks(q, k, v, window_size=None):
    """Only the keys of a row's window are ever touched."""
    n, m = q.shape[-2], k.shape[-2]
    out = np.empty(q.shape[:-1] + v.shape[-1:])
    for i in range(n):
        a, b = 0, m
        if window_size is not None:
            p = i + m - n
            a = max(0, p - window_size[0]) if window_size[0] >= 0 else 0
            b = min(m, p + window_size[1] + 1) if window_size[1] >= 0 else m
        s = dot(q[..., i:i + 1, :], k[..., a:b, :]) / math.sqrt(q.shape[-1])
        out[..., i, :] = (norm(s) @ v[..., a:b, :])[..., 0, :]
    return out


def window_by_blocks_short(q, k, v, window_size=None):
    n, m = q.shape[-2], k.shape[-2]
    out = np.empty(q.shape[:-1] + v.shape[-1:])
    for i in range(n):
        a, b = 0, m
        if window_size is not None:
            p = i + m - n
            a = max(0, p - window_size[0]) if window_size[0] >= 0 else 0
            b = min(m, p + window_size[1]) if window_size[1] >= 0 else m
            b = max(b, a + 1)
        s = dot(q[..., i:i + 1, :], k[..., a:b, :]) / math.sqrt(q.shape[-1])
        out[..., i, :] = (norm(s) @ v[..., a:b, :])[..., 0, :]
    return out


def sink_in_front(q, k, v, sinks=None):
    s = dot(q, k) / math.sqrt(q.shape[-1])
    if sinks is None:
        return norm(s) @ v
    z = np.broadcast_to(np.asarray(sinks)[:, None, None], s.shape[:-1] + (1,))
    zero = np.zeros_like(v[..., :1, :])
    return norm(np.concatenate([z, s], -1)) @ np.concatenate([zero, v], -2)


def sink_scaled_with_the_rest(q, k, v, sinks=None):
    s = dot(q, k)
    if sinks is not None:
        z = np.broadcast_to(np.asarray(sinks)[:, None, None],
                            s.shape[:-1] + (1,))
        s = np.concatenate([z, s], -1)
    p = norm(s / math.sqrt(q.shape[-1]))
    return p[..., -k.shape[-2]:] @ v


def lengths_by_slices(q, k, v, seqlens=None):
    out = np.empty(q.shape[:-1] + v.shape[-1:])
    for b in range(len(q)):
        n = k.shape[-2] if seqlens is None else int(seqlens[b])
        out[b] = norm(dot(q[b], k[b, ..., :n, :]) /
                      math.sqrt(q.shape[-1])) @ v[b, ..., :n, :]
    return out


def lengths_by_slices_first(q, k, v, seqlens=None):
    n = k.shape[-2] if seqlens is None else int(seqlens[0])
    return norm(dot(q, k[..., :n, :]) / math.sqrt(q.shape[-1])) @ \
        v[..., :n, :]


X = "--expect="
ZOO = [
    ("late_mask_fixed", "correct"),
    ("late_mask_columns", "mask-after-softmax|softmax-wrong-axis|"
                          "softmax-extra-mass|unexplained"),
    ("fourth_roots", "correct"), ("square_roots", "scale-twice"),
    ("one_fourth_root", "scale-missing"),
    ("padded_right", "correct"), ("padded_wrong", "scale-padded-head-dim"),
    ("keys_padded_right", "correct"),
    ("keys_padded_wrong", "tail-tile-unmasked"),
    ("by_columns", "correct"),
    ("by_columns_own_maximum", "correct"),
    ("two_halves", "correct"),
    ("two_halves_swapped", "lse-base-or-empty|online-max-stale"),
    ("alibi_by_key", "correct"),
    ("alibi_by_query", "alibi-slopes-or-sign"),
    ("log_softmax", "correct"), ("log_softmax_forgotten", "softmax-missing"),
    ("sigmoid_of_two", "correct"),
    ("two_for_e", "scale-d-model|scale-missing|softmax-missing"),
    ("temperature_two", "scale-d-model|scale-twice"),
    ("nothing_eps", "correct"), ("clamped_sum", "correct"),
    ("clamped_weights", "softmax-extra-mass|unexplained"),
    ("top_k_only", "unexplained|mask-dropped|tail-tile-unmasked"),
    ("in_float32", "correct"), ("kept_in_half", "correct"),
    ("fortran", "correct"), ("of_lists", "correct"),
    ("many_arguments", "correct"), ("heads_in_einsum", "correct"),
    ("one_more_axis", "correct"), ("one_more_axis_swapped", "gqa-tile"),
    ("partial_right", "correct"), ("partial_wrong", "scale-d-model|"
                                   "scale-padded-head-dim|scale-missing"),
    ("empty_rows_zero", "correct"), ("empty_rows_zero", "correct", [X]),
    ("window_by_blocks", "correct", [X]),
    ("window_by_blocks_short", "window-off-by-one", [X]),
    ("sink_in_front", "correct"),
    ("sink_scaled_with_the_rest", "softmax-extra-mass"),
    ("lengths_by_slices", "correct"),
    ("lengths_by_slices_first", "kv-length"),
]
