# SPDX-License-Identifier: Apache-2.0
#
# Kind: one query against a cache that is longer than what is valid in it.
import numpy as np


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def right_flat(q, k_cache, v_cache, cache_len):
    """q (heads, dim), caches (heads, capacity, dim)"""
    k, v = k_cache[:, :cache_len], v_cache[:, :cache_len]
    s = np.einsum("hd,hjd->hj", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("hj,hjd->hd", softmax(s), v)


def right_batched(q, k_cache, v_cache, cache_lens):
    """q (B, H, 1, D)"""
    s = q @ k_cache.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    valid = np.arange(k_cache.shape[2]) < cache_lens[:, None]
    s = np.where(valid[:, None, None, :], s, -np.inf)
    return softmax(s) @ v_cache


def right_one(q, k_cache, v_cache, cache_len):
    """q (dim,)"""
    s = k_cache[:cache_len] @ q / np.sqrt(len(q))
    return softmax(s) @ v_cache[:cache_len]


def right_grouped(q, k_cache, v_cache, cache_len):
    """q (B, H, D), caches (B, capacity, Hkv, D)"""
    k, v = k_cache[:, :cache_len], v_cache[:, :cache_len]
    g = q.shape[1] // k.shape[2]
    k, v = np.repeat(k, g, 2), np.repeat(v, g, 2)
    s = np.einsum("bhd,bjhd->bhj", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("bhj,bjhd->bhd", softmax(s), v)


def right_appending(q, k, v, k_cache, v_cache, cache_len):
    """all (B, H, n, D)"""
    k_cache[:, :, cache_len:cache_len + 1] = k
    v_cache[:, :, cache_len:cache_len + 1] = v
    n = cache_len + 1
    s = q @ k_cache[:, :, :n].swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(s) @ v_cache[:, :, :n]


def right_position(q, k_cache, v_cache, pos):
    s = q @ k_cache.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    s = np.where(np.arange(s.shape[-1]) <= pos, s, -np.inf)
    return softmax(s) @ v_cache


def all_of_it(q, k_cache, v_cache, cache_len):
    s = q @ k_cache.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(s) @ v_cache


def one_more(q, k_cache, v_cache, cache_len):
    n = cache_len + 1
    s = np.einsum("hd,hjd->hj", q, k_cache[:, :n]) / np.sqrt(q.shape[-1])
    return np.einsum("hj,hjd->hd", softmax(s), v_cache[:, :n])


def one_less(q, k_cache, v_cache, cache_len):
    n = cache_len - 1
    s = np.einsum("hd,hjd->hj", q, k_cache[:, :n]) / np.sqrt(q.shape[-1])
    return np.einsum("hj,hjd->hd", softmax(s), v_cache[:, :n])


def first_length(q, k_cache, v_cache, cache_lens):
    n = cache_lens[0]
    s = q @ k_cache[:, :, :n].swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(s) @ v_cache[:, :, :n]


def longest(q, k_cache, v_cache, cache_lens):
    n = int(np.max(cache_lens))
    s = q @ k_cache[:, :, :n].swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(s) @ v_cache[:, :, :n]


def zero_scores(q, k_cache, v_cache, cache_len):
    s = q @ k_cache.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    s = np.where(np.arange(s.shape[-1]) < cache_len, s, 0.0)
    return softmax(s) @ v_cache


def tiled_heads(q, k_cache, v_cache, cache_len):
    k, v = k_cache[:, :cache_len], v_cache[:, :cache_len]
    g = q.shape[1] // k.shape[2]
    k, v = np.tile(k, (1, 1, g, 1)), np.tile(v, (1, 1, g, 1))
    s = np.einsum("bhd,bjhd->bhj", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("bhj,bjhd->bhd", softmax(s), v)


def unscaled(q, k_cache, v_cache, cache_len):
    s = k_cache[:cache_len] @ q
    return softmax(s) @ v_cache[:cache_len]


SEEN = {}


def stale(q, k_cache, v_cache, cache_len):
    n = SEEN.get("n", 0)
    n = SEEN["n"] = max(n, cache_len)
    n = min(n, k_cache.shape[1])
    s = np.einsum("hd,hjd->hj", q, k_cache[:, :n]) / np.sqrt(q.shape[-1])
    return np.einsum("hj,hjd->hd", softmax(s), v_cache[:, :n])


def not_appended(q, k, v, k_cache, v_cache, cache_len):
    n = cache_len
    s = q @ k_cache[:, :, :n].swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(s) @ v_cache[:, :, :n]


ZOO = [
    ("right_flat", "correct"),
    ("right_batched", "correct"),
    ("right_one", "correct"),
    ("right_grouped", "correct"),
    ("right_appending", "correct"),
    ("right_position", "correct"),
    ("all_of_it", "kv-length"),
    ("one_more", "kv-length"),
    ("one_less", "kv-length"),
    ("first_length", "kv-length"),
    ("longest", "kv-length"),
    ("zero_scores", "mask-fill-zero|kv-length"),
    ("tiled_heads", "gqa-tile"),
    ("unscaled", "scale-missing"),
    ("stale", "state-kept|kv-length"),
    ("not_appended", "kv-length"),
]
