# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases: caches, sequences, parts and halves.
import numpy as np


def _sm(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def all_of_the_cache(q, k_cache, v_cache, cache_len):
    s = np.matmul(q, np.swapaxes(k_cache, -1, -2)) / np.sqrt(q.shape[-1])
    return np.matmul(_sm(s), v_cache)


def without_the_newest(q, k_cache, v_cache, cache_len):
    n = int(np.max(cache_len))
    n = max(n - 1, 1)
    k, v = k_cache[..., :n, :], v_cache[..., :n, :]
    return _sm(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5) @ v


def one_row_too_many(q, k, v, k_lengths):
    s = np.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
    j = np.arange(k.shape[2])
    hide = j[None, :] > np.asarray(k_lengths)[:, None]
    s = np.where(hide[:, None, None, :], -np.inf, s)
    return np.einsum("bhij,bhjd->bhid", _sm(s), v)


def length_of_the_longest(q, k, v, k_lengths):
    out = []
    n = max(1, int(np.max(k_lengths)))
    for b in range(q.shape[0]):
        w = _sm(q[b] @ k[b, :, :n].transpose(0, 2, 1) / np.sqrt(q.shape[3]))
        out.append(w @ v[b, :, :n])
    return np.array(out)


def sequences_see_each_other(q, k, v, cu_seqlens_q, cu_seqlens_k):
    """q, k, v: (tokens, heads, dim)"""
    tq, tk = int(cu_seqlens_q[-1]), int(cu_seqlens_k[-1])
    s = np.einsum("ihd,jhd->hij", q[:tq], k[:tk]) / np.sqrt(q.shape[-1])
    return np.einsum("hij,jhd->ihd", _sm(s), v[:tk])


def lse_in_bits(q, k, v):
    """returns the output and the log-sum-exp"""
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    m = s.max(-1, keepdims=True)
    e = np.exp(s - m)
    z = e.sum(-1, keepdims=True)
    lse = (m * np.log2(np.e) + np.log2(z))[..., 0]
    return e @ v / z, lse


def lse_without_maximum(q, k, v):
    a = np.einsum("hid,hjd->hij", q, k) * q.shape[-1] ** -0.5
    top = a.max(axis=-1)
    e = np.exp(a - top[..., None])
    z = e.sum(axis=-1)
    return np.einsum("hij,hje->hie", e, v) / z[..., None], np.log(z)


def powers_of_two(o1, lse1, o2, lse2):
    w1 = np.exp2(lse1 - np.maximum(lse1, lse2))
    w2 = np.exp2(lse2 - np.maximum(lse1, lse2))
    t = w1 + w2
    o = (w1[..., None] * o1 + w2[..., None] * o2) / t[..., None]
    return o, np.maximum(lse1, lse2) + np.log2(t)


def nothing_and_nothing(o1, lse1, o2, lse2):
    with np.errstate(all="ignore"):
        top = np.maximum(lse1, lse2)
        a, b = np.exp(lse1 - top), np.exp(lse2 - top)
        s = a + b
        return (
            o1 * (a / s)[..., None] + o2 * (b / s)[..., None]
        ), top + np.log(s)


def products_in_half(q, k, v):
    q, k = q.astype(np.float16), k.astype(np.float16)
    with np.errstate(all="ignore"):
        s = np.matmul(q, np.swapaxes(k, -1, -2))
        s = s.astype(np.float32) / np.sqrt(np.float32(q.shape[-1]))
        w = _sm(s)
    return (w @ v.astype(np.float32)).astype(v.dtype)


def sums_in_half(q, k, v):
    s = (
        q.astype(np.float32)
        @ k.astype(np.float32).swapaxes(-1, -2)
        / np.float32(np.sqrt(q.shape[-1]))
    )
    e = np.exp(s - s.max(-1, keepdims=True))
    o = np.zeros(q.shape[:-1] + (v.shape[-1],), np.float16)
    z = np.zeros(q.shape[:-1], np.float16)
    for j in range(k.shape[-2]):
        p = e[..., j].astype(np.float16)
        o = (
            o + p[..., None] * v[..., j, :].astype(np.float16)[..., None, :]
        ).astype(np.float16)
        z = (z + p).astype(np.float16)
    return (o / z[..., None]).astype(q.dtype)


ZOO = [
    ("all_of_the_cache", "kv-length", ["--kind=decode"]),
    ("without_the_newest", "kv-length"),
    ("one_row_too_many", "kv-length"),
    ("length_of_the_longest", "kv-length"),
    ("sequences_see_each_other", "varlen-boundary"),
    ("lse_in_bits", "lse-base-or-empty", ["--expect="]),
    ("lse_without_maximum", "lse-base-or-empty"),
    ("powers_of_two", "lse-base-or-empty"),
    ("nothing_and_nothing", "lse-base-or-empty", ["--expect="]),
    ("products_in_half", "score-overflow-16bit", ["--dtype=f16"]),
    ("sums_in_half", "accumulate-16bit", ["--dtype=f16"]),
]
