# SPDX-License-Identifier: Apache-2.0
#
# Arrays in other forms than (batch, heads, len, dim): one query as a vector,
# the length last as convolutions have it, q, k, v in one array, one array that
# serves as all three, caches without a length, masks that must have all their
# axes.
import math

import numpy as np


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def heads_last(q, k, v):
    return softmax(q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])) @ v


# ------------------------------------------------------------- one query

def lookup(q, K, V):
    scores = K @ q / np.sqrt(len(q))
    weights = np.exp(scores - scores.max())
    return weights @ V / weights.sum()


def lookup_broadcast(q, K, V):
    s = q @ K.T / np.sqrt(q.shape[-1])
    e = np.exp(s - np.max(s))
    return (e / np.sum(e)) @ V


def soft_dictionary(query, keys, values):
    """A soft dictionary: query (d,), keys (n, d), values (n, e) -> (e,)."""
    total, best = 0.0, -np.inf
    mixed = np.zeros(values.shape[1])
    for key, value in zip(keys, values):
        score = sum(a * b for a, b in zip(query, key)) / len(query) ** 0.5
        new = max(best, score)
        keep = math.exp(best - new) if best > -np.inf else 0.0
        total = total * keep + math.exp(score - new)
        mixed = mixed * keep + math.exp(score - new) * value
        best = new
    return mixed / total


def lookup_masked(q, K, V, mask=None):
    s = np.einsum("d,nd->n", q, K) * q.shape[0] ** -0.5
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    p = np.exp(s - s.max())
    return np.einsum("n,ne->e", p / p.sum(), V)


def lookup_per_head(q, k, v):
    """q is a single query: (h, d) against k (h, n, d) and v (h, n, e)."""
    s = np.einsum("hd,hnd->hn", q, k) / math.sqrt(q.shape[1])
    return np.einsum("hn,hne->he", softmax(s), v)


def lookup_with_weights(q, K, V):
    p = softmax((K * q).sum(axis=1) / math.sqrt(q.size))
    return p.dot(V), p


def lookup_unscaled(q, K, V):
    s = K @ q
    e = np.exp(s - s.max())
    return e / e.sum() @ V


def lookup_unnormalised(query, keys, values):
    """query (d,), keys (n, d), values (n, e)"""
    s = np.array([np.dot(query, key) for key in keys]) / len(query) ** 0.5
    return sum(math.exp(x) * v for x, v in zip(s, values))


# ------------------------------------------------------------ length last

def conv_heads(q, k, v):
    s = np.einsum("bhdl,bhdm->bhlm", q, k) / math.sqrt(q.shape[2])
    return np.einsum("bhlm,bhem->bhel", softmax(s), v)


def conv_heads_causal(q, k, v, causal=False):
    s = np.swapaxes(q, -1, -2) @ k * q.shape[-2] ** -0.5
    if causal:
        n, m = s.shape[-2:]
        s = np.where(np.tri(n, m, m - n, dtype=bool), s, -np.inf)
    return v @ np.swapaxes(softmax(s), -1, -2)


def conv_loops(q, k, v):
    batch, heads, dim, n = q.shape
    o = np.empty((batch, heads, v.shape[2], n))
    for b in range(batch):
        for h in range(heads):
            for i in range(n):
                s = q[b, h, :, i] @ k[b, h] / math.sqrt(dim)
                o[b, h, :, i] = v[b, h] @ softmax(s)
    return o


def conv_channels(q, k, v):
    """(B, C, L) each, one head"""
    s = softmax(q.transpose(0, 2, 1) @ k / math.sqrt(q.shape[1]))
    return v @ s.transpose(0, 2, 1)


def conv_columns(q, k, v):
    w = np.exp(k.T @ q / math.sqrt(len(q)))  # a column for each query
    return v @ (w / w.sum(0))


def conv_unscaled(q, k, v):
    s = np.einsum("bhdl,bhdm->bhlm", q, k)
    return np.einsum("bhlm,bhem->bhel", softmax(s), v)


def conv_scaled_by_length(q, k, v):
    s = np.swapaxes(q, -1, -2) @ k / math.sqrt(q.shape[-1])
    return v @ np.swapaxes(softmax(s), -1, -2)


# -------------------------------------------------------------- one array

def packed_three(qkv, causal=False):
    """qkv: (B, L, 3, H, D)"""
    q, k, v = (qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    s = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)
    return (softmax(s) @ v).transpose(0, 2, 1, 3)


def packed_three_loops(qkv):
    batch, n, three, heads, dim = qkv.shape
    assert three == 3
    o = np.zeros((batch, n, heads, dim))
    for b in range(batch):
        for h in range(heads):
            q, k, v = qkv[b, :, 0, h], qkv[b, :, 1, h], qkv[b, :, 2, h]
            for i in range(n):
                o[b, i, h] = softmax(k @ q[i] / math.sqrt(dim)) @ v
    return o


def packed_stack(qkv):
    q, k, v = qkv
    s = np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("bhij,bhjd->bhid", softmax(s), v)


def packed_stack_masked(qkv, mask=None):
    s = qkv[0] @ np.moveaxis(qkv[1], -1, -2)
    s = s * qkv.shape[-1] ** -0.5
    if mask is not None:
        s = np.where(mask, s, -1e30)
    return softmax(s) @ qkv[2]


def packed_second(qkv):
    q, k, v = np.moveaxis(qkv, 1, 0)
    return heads_last(q, k, v)


def packed_flat(qkv, num_heads):
    b, n, width = qkv.shape
    t = qkv.reshape(b, n, 3, num_heads, width // (3 * num_heads))
    q, k, v = t.transpose(2, 0, 3, 1, 4)
    o = heads_last(q, k, v)
    return o.transpose(0, 2, 1, 3).reshape(b, n, -1)


def packed_split(qkv, num_heads):
    out = []
    for row in qkv:
        cut = [np.split(part, num_heads, axis=1)
               for part in np.split(row, 3, axis=1)]
        out.append(np.concatenate(
            [heads_last(q, k, v) for q, k, v in zip(*cut)], axis=1))
    return np.stack(out)


def packed_grouped(qkv, num_heads, num_kv_heads):
    b, n, width = qkv.shape
    d = width // (num_heads + 2 * num_kv_heads)
    t = qkv.reshape(b, n, -1, d).transpose(0, 2, 1, 3)
    k = t[:, num_heads:num_heads + num_kv_heads]
    v = t[:, num_heads + num_kv_heads:]
    group = num_heads // num_kv_heads
    o = heads_last(t[:, :num_heads], np.repeat(k, group, 1),
                   np.repeat(v, group, 1))
    return o.transpose(0, 2, 1, 3).reshape(b, n, -1)


def packed_by_head(qkv, num_heads):
    b, n, _ = qkv.shape
    t = qkv.reshape(b, n, num_heads, -1).transpose(0, 2, 1, 3)
    o = heads_last(*np.split(t, 3, axis=-1))
    return o.transpose(0, 2, 1, 3).reshape(b, n, -1)


def packed_channels(qkv, n_heads):
    b, width, n = qkv.shape
    q, k, v = qkv.reshape(b, 3, n_heads, -1, n).transpose(1, 0, 2, 3, 4)
    s = np.einsum("bhct,bhcs->bhts", q, k) / math.sqrt(q.shape[2])
    return np.einsum("bhts,bhcs->bhct", softmax(s), v).reshape(b, -1, n)


def packed_one_head(qkv):
    q, k, v = np.split(qkv, 3, axis=-1)
    return heads_last(q, k, v)


def packed_one_sequence(qkv):
    """(3, L, D)"""
    return heads_last(qkv[0], qkv[1], qkv[2])


def packed_unscaled(qkv):
    q, k, v = qkv
    return softmax(np.einsum("bhid,bhjd->bhij", q, k)) @ v


def packed_twice(qkv, num_heads):
    b, n, width = qkv.shape
    t = qkv.reshape(b, n, 3, num_heads, -1).transpose(2, 0, 3, 1, 4)
    s = t[0] @ t[1].swapaxes(-1, -2) / math.sqrt(t.shape[-1])
    o = softmax(softmax(s)) @ t[2]
    return o.transpose(0, 2, 1, 3).reshape(b, n, -1)


def packed_late(qkv, causal=True):
    """qkv: (B, L, 3, H, D)"""
    q, k, v = (x.transpose(0, 2, 1, 3)
               for x in (qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]))
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(s.shape[-1], k=1, dtype=bool), s, -np.inf)
    return (softmax(s) @ v).transpose(0, 2, 1, 3)


def packed_kv(q, kv):
    """q: (B, L, H, D), kv: (B, S, 2, H, D)"""
    s = np.einsum("blhd,bshd->bhls", q, kv[:, :, 0]) / math.sqrt(q.shape[-1])
    return np.einsum("bhls,bshd->blhd", softmax(s), kv[:, :, 1])


def packed_kv_stack(q, kv):
    k, v = kv
    out = np.empty_like(q)
    for b, h in np.ndindex(*q.shape[:2]):
        out[b, h] = heads_last(q[b, h], k[b, h], v[b, h])
    return out


def packed_kv_flat(q, kv, num_heads):
    k, v = np.split(kv, 2, axis=-1)
    q, k, v = (t.reshape(len(t), t.shape[1], num_heads, -1).swapaxes(1, 2)
               for t in (q, k, v))
    o = heads_last(q, k, v).swapaxes(1, 2)
    return o.reshape(*o.shape[:2], -1)


def packed_kv_exchanged(q, kv):
    v, k = kv
    return heads_last(q, k, v)


def packed_kv_exchanged_by_head(q, kv):
    """q: (B, L, H, D), kv: (B, S, 2, H, D)"""
    s = np.einsum("blhd,bshd->bhls", q, kv[:, :, 1]) / math.sqrt(q.shape[-1])
    return np.einsum("bhls,bshd->blhd", softmax(s), kv[:, :, 0])


def packed_kv_flat_exchanged(q, kv, num_heads):
    width = kv.shape[-1] // 2
    return packed_kv_flat(q, np.roll(kv, width, -1), num_heads)


def packed_kv_halves_exchanged(q, kv):
    values, keys = np.split(kv, 2, axis=-1)
    return heads_last(q, keys, values)


def packed_keys_first(qkv):
    k, q, v = qkv
    return heads_last(q, k, v)


def packed_backwards(qkv, num_heads):
    return packed_flat(np.concatenate(np.split(qkv, 3, -1)[::-1], -1),
                       num_heads)


def packed_grouped_values_first(qkv, num_heads, num_kv_heads):
    d = qkv.shape[-1] // (num_heads + 2 * num_kv_heads)
    q, k, v = np.split(qkv, np.cumsum([num_heads, num_kv_heads]) * d, -1)
    return packed_grouped(np.concatenate([q, v, k], -1), num_heads,
                          num_kv_heads)


# ------------------------------------------------- one array serves as more

def self_attention(x):
    return heads_last(x, x, x)


def nobody_says_what(x):
    return heads_last(x, x, x)


def self_attention_loops(tokens):
    """tokens (n, d); the weights are returned too"""
    n, d = tokens.shape
    p = np.zeros((n, n))
    for i in range(n):
        p[i] = softmax(tokens @ tokens[i] / math.sqrt(d))
    return p @ tokens, p


def self_attention_causal(x, causal=False):
    s = x @ x.swapaxes(-1, -2) / math.sqrt(x.shape[-1])
    if causal:
        s = np.where(np.tri(s.shape[-1], dtype=bool), s, -np.inf)
    return softmax(s) @ x


def self_attention_masked(x, mask=None, eps=1e-30):
    s = x @ x.swapaxes(-1, -2) / math.sqrt(x.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -1 / eps)
    return softmax(s) @ x


def self_attention_heads(x, n_heads):
    b, n, width = x.shape
    h = x.reshape(b, n, n_heads, -1).transpose(0, 2, 1, 3)
    return heads_last(h, h, h).transpose(0, 2, 1, 3).reshape(b, n, width)


def self_attention_shorthand(x):
    """x: (B, L, H, D)"""
    s = np.einsum("bihd,bjhd->bhij", x, x) / math.sqrt(x.shape[-1])
    return np.einsum("bhij,bjhd->bihd", softmax(s), x)


def cross_attention(x, context):
    return heads_last(x, context, context)


def cross_attention_unscaled(query, memory):
    return softmax(query @ memory.swapaxes(-1, -2)) @ memory


def self_attention_unscaled(x):
    return softmax(x @ x.swapaxes(-1, -2)) @ x


def self_attention_columns(x):
    s = x @ x.T / math.sqrt(x.shape[1])
    e = np.exp(s - s.max())
    return e / e.sum(0) @ x


def self_attention_twice(x):
    s = x @ x.swapaxes(-1, -2) / math.sqrt(x.shape[-1])
    return softmax(softmax(s)) @ x


def self_attention_by_length(x):
    return softmax(x @ x.swapaxes(-1, -2) / math.sqrt(x.shape[-2])) @ x


def self_attention_raw(x):
    e = np.exp(x @ x.T / math.sqrt(x.shape[1]))
    return e @ x / e.sum(1)[:, None]


def self_attention_cut_in_place(x, n_heads):
    b, n, width = x.shape
    h = x.reshape(b, n_heads, n, -1)
    return heads_last(h, h, h).transpose(0, 2, 1, 3).reshape(b, n, width)


def self_attention_late(x, causal=False):
    s = x @ x.swapaxes(-1, -2) / math.sqrt(x.shape[-1])
    if causal:
        s = np.where(np.tri(s.shape[-1], k=1, dtype=bool), s, -np.inf)
    return softmax(s) @ x


def self_attention_weak_fill(x, mask=None):
    s = x @ x.swapaxes(-1, -2) / math.sqrt(x.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -1e4)
    return softmax(s) @ x


# ----------------------------------------- k and v without an axis of heads

def one_for_all_heads(q, k, v):
    s = np.einsum("bhid,bjd->bhij", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("bhij,bjd->bhid", softmax(s), v)


def one_for_all_heads_causal(q, k, v, causal=False):
    """q (B, L, H, D), k and v (B, L, D)"""
    s = np.einsum("bihd,bjd->bhij", q, k) / math.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return np.einsum("bhij,bjd->bihd", softmax(s), v)


def one_for_all_heads_unscaled(q, k, v):
    return np.stack([softmax(q[:, h] @ k.swapaxes(1, 2)) @ v
                     for h in range(q.shape[1])], 1)


def one_for_all_heads_over_heads(q, k, v):
    s = np.einsum("hid,jd->hij", q, k) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(0))
    return np.einsum("hij,jd->hid", e / e.sum(0), v)


# ------------------------------------------------- the weights are the answer

def weights_of(q, k):
    return softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))


def weights_of_masked(q, k, mask=None):
    """(B, L, H, D)"""
    s = np.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.shape[-1])
    return softmax(s if mask is None else np.where(mask, s, -np.inf))


def weights_of_rows(q, k):
    """(B, L, H, D), weights (B, L, H, L)"""
    s = np.einsum("bihd,bjhd->bihj", q, k) / math.sqrt(q.shape[-1])
    return softmax(s)


def weights_unscaled(q, k):
    return softmax(q @ k.swapaxes(-1, -2))


def weights_of_columns(q, k):
    s = q @ k.T / math.sqrt(q.shape[1])
    e = np.exp(s - s.max())
    return e / e.sum(0)


def weights_weak_fill(q, k, mask=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    return softmax(s if mask is None else np.where(mask, s, -1e4))


# ----------------------------------------------- an lse with the heads last

def lse_by_rows(q, k, v):
    """(B, L, H, D), lse (B, L, H)"""
    s = np.einsum("bihd,bjhd->bihj", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("bihj,bjhd->bihd", softmax(s), v), \
        np.logaddexp.reduce(s, -1)


def lse_by_rows_without_maximum(q, k, v):
    """(B, L, H, D), lse (B, L, H)"""
    s = np.einsum("bihd,bjhd->bihj", q, k) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bihj,bjhd->bihd", softmax(s), v), np.log(e.sum(-1))


# -------------------------------------------------- one matrix with its bias

def layer_packed(x, in_proj_weight, in_proj_bias, out_proj_weight,
                 out_proj_bias, num_heads):
    """weights (out, in)"""
    qkv = x @ in_proj_weight.T + in_proj_bias
    return packed_flat(qkv, num_heads) @ out_proj_weight.T + out_proj_bias


def layer_packed_without_last_bias(x, in_proj_weight, in_proj_bias,
                                   out_proj_weight, out_proj_bias, num_heads):
    qkv = x @ in_proj_weight.T + in_proj_bias
    return packed_flat(qkv, num_heads) @ out_proj_weight.T


# ----------------------------------------------------- k given transposed

def turned_keys(q, k_t, v):
    return softmax(q @ k_t / math.sqrt(q.shape[-1])) @ v


def turned_keys_loops(query, key_transposed, value):
    o = np.zeros(query.shape[:-1] + value.shape[-1:])
    for i in np.ndindex(*query.shape[:-1]):
        b = i[:-1]
        s = sum(query[i][c] * key_transposed[b][c]
                for c in range(query.shape[-1]))
        o[i] = softmax(s / query.shape[-1] ** 0.5) @ value[b]
    return o


def turned_keys_unscaled(q, k_t, v):
    return softmax(q @ k_t) @ v


# ---------------------------------------------------- caches without length

def step_whole(q, k_cache, v_cache):
    return heads_last(q, k_cache, v_cache)


def step_whole_loops(q, cache_k, cache_v):
    o = np.zeros(q.shape[:3] + cache_v.shape[3:])
    for b, h in np.ndindex(*q.shape[:2]):
        w = softmax(cache_k[b, h] @ q[b, h, 0] / math.sqrt(q.shape[-1]))
        o[b, h, 0] = w @ cache_v[b, h]
    return o


def step_appending(q, k, v, past_k, past_v):
    k = np.concatenate([past_k, k], axis=-2)
    v = np.concatenate([past_v, v], axis=-2)
    return heads_last(q, k, v), (k, v)


def step_with_past(query, key, value, past_key=None, past_value=None):
    if past_key is not None:
        key = np.append(past_key, key, axis=2)
        value = np.append(past_value, value, axis=2)
    s = np.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(key.shape[-1])
    return np.einsum("bhqk,bhkd->bhqd", softmax(s), value)


def step_forgets_new(q, k, v, past_k, past_v):
    return heads_last(q, past_k, past_v)


def step_unscaled(q, k, v, past_k, past_v):
    k = np.concatenate([past_k, k], axis=-2)
    v = np.concatenate([past_v, v], axis=-2)
    return softmax(q @ k.swapaxes(-1, -2)) @ v


# ------------------------------------------------------ masks of four axes

def strict_mask(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        if mask.ndim != 4 or mask.shape[1] != 1:
            raise ValueError("mask must be (B, 1, L, L)")
        s = np.where(mask, s, -np.inf)
    return softmax(s) @ v


def strict_mask_by_batch(q, k, v, attn_mask=None):
    s = np.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    if attn_mask is not None:
        assert attn_mask.ndim == 3
        for b in range(len(s)):
            s[b] = np.where(attn_mask[b], s[b], -np.inf)
    return np.einsum("bhij,bhjd->bhid", softmax(s), v)


ZOO = [
    ("lookup", "correct"), ("lookup_broadcast", "correct"),
    ("soft_dictionary", "correct"), ("lookup_masked", "correct"),
    ("lookup_per_head", "correct"), ("lookup_with_weights", "correct"),
    ("lookup_unscaled", "scale-missing"),
    ("lookup_unnormalised", "softmax-missing"),
    ("conv_heads", "correct"), ("conv_heads_causal", "correct"),
    ("conv_loops", "correct"), ("conv_channels", "correct"),
    ("conv_columns", "softmax-no-max"),
    ("conv_unscaled", "scale-missing"),
    ("conv_scaled_by_length", "scale-seq-len"),
    ("packed_three", "correct"), ("packed_three_loops", "correct"),
    ("packed_stack", "correct"), ("packed_stack_masked", "correct"),
    ("packed_second", "correct"), ("packed_flat", "correct"),
    ("packed_split", "correct"), ("packed_grouped", "correct"),
    ("packed_by_head", "correct"), ("packed_channels", "correct"),
    ("packed_one_head", "correct"), ("packed_one_sequence", "correct"),
    ("packed_unscaled", "scale-missing"),
    ("packed_twice", "softmax-twice"),
    ("packed_late", "causal-diagonal-shift"),
    ("packed_kv", "correct"), ("packed_kv_stack", "correct"),
    ("packed_kv_flat", "correct"),
    ("packed_kv_exchanged", "qkv-packing"),
    ("packed_kv_exchanged_by_head", "qkv-packing"),
    ("packed_kv_flat_exchanged", "qkv-packing"),
    ("packed_kv_halves_exchanged", "qkv-packing"),
    ("packed_keys_first", "qkv-packing"),
    ("packed_backwards", "qkv-packing"),
    ("packed_grouped_values_first", "qkv-packing"),
    ("self_attention", "correct"), ("nobody_says_what", "correct"),
    ("self_attention_loops", "correct"), ("self_attention_causal", "correct"),
    ("self_attention_masked", "correct"), ("self_attention_heads", "correct"),
    ("self_attention_shorthand", "correct"), ("cross_attention", "correct"),
    ("cross_attention_unscaled", "scale-missing"),
    ("self_attention_unscaled", "scale-missing"),
    ("self_attention_columns", "softmax-wrong-axis"),
    ("self_attention_twice", "softmax-twice"),
    ("self_attention_by_length", "scale-seq-len"),
    ("self_attention_raw", "softmax-no-max"),
    ("self_attention_cut_in_place", "heads-split-no-transpose"),
    ("self_attention_late", "causal-diagonal-shift"),
    ("self_attention_weak_fill", "mask-finite-sentinel"),
    ("one_for_all_heads", "correct"),
    ("one_for_all_heads_causal", "correct"),
    ("one_for_all_heads_unscaled", "scale-missing"),
    ("one_for_all_heads_over_heads", "softmax-wrong-axis"),
    ("weights_of", "correct"), ("weights_of_masked", "correct"),
    ("weights_of_rows", "correct"), ("weights_unscaled", "scale-missing"),
    ("weights_of_columns", "softmax-wrong-axis"),
    ("weights_weak_fill", "mask-finite-sentinel"),
    ("lse_by_rows", "correct"),
    ("lse_by_rows_without_maximum", "lse-base-or-empty"),
    ("layer_packed", "correct"),
    ("layer_packed_without_last_bias", "unexplained"),
    ("turned_keys", "correct"), ("turned_keys_loops", "correct"),
    ("turned_keys_unscaled", "scale-missing"),
    ("step_whole", "correct"), ("step_whole_loops", "correct"),
    ("step_appending", "correct"), ("step_with_past", "correct"),
    ("step_forgets_new", "kv-length"),
    ("step_unscaled", "scale-missing"),
    ("strict_mask", "correct"), ("strict_mask_by_batch", "correct"),
]
