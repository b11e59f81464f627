# SPDX-License-Identifier: Apache-2.0
#
# Style: signatures and results as libraries have them, without the libraries.
import dataclasses
import math

import numpy as np


def softmax(s):
    top = np.max(s, -1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(top), top, 0))
    z = e.sum(-1, keepdims=True)
    return e / np.where(z == 0, 1, z)


def transposed(x):
    return np.swapaxes(x, -1, -2)


def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
         scale=None, enable_gqa=False):
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if enable_gqa:
        group = query.shape[-3] // key.shape[-3]
        key = np.repeat(key, group, -3)
        value = np.repeat(value, group, -3)
    s = query @ transposed(key) * scale
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    if attn_mask is not None and attn_mask.dtype == bool:
        s = np.where(attn_mask, s, -np.inf)
    elif attn_mask is not None:
        s = s + attn_mask
    return softmax(s) @ value


def sdpa_tiles_groups(query, key, value, attn_mask=None, dropout_p=0.0,
                      is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        group = query.shape[-3] // key.shape[-3]
        key = np.concatenate([key] * group, -3)
        value = np.concatenate([value] * group, -3)
    return sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale)


def dot_product_attention(query, key, value, bias=None, mask=None, *,
                          scale=None, is_causal=False,
                          query_seq_lengths=None, key_value_seq_lengths=None,
                          local_window_size=None, implementation=None):
    """(B, T, N, H)"""
    group = query.shape[2] // key.shape[2]
    key, value = np.repeat(key, group, 2), np.repeat(value, group, 2)
    scale = 1 / math.sqrt(query.shape[3]) if scale is None else scale
    s = np.einsum("btnh,bsnh->bnts", query, key) * scale
    if bias is not None:
        s = s + bias
    i, j = np.ogrid[:s.shape[2], :s.shape[3]]
    see = np.ones((1, 1) + s.shape[2:], bool)
    if mask is not None:
        see = see & mask
    if is_causal:
        see = see & (j <= i)
    if local_window_size is not None:
        left, right = np.broadcast_to(local_window_size, 2)
        see = see & (j >= i - left) & (j <= i + right)
    if key_value_seq_lengths is not None:
        n = np.asarray(key_value_seq_lengths)
        see = see & (j < n[:, None, None, None])
    p = softmax(np.where(see, s, -np.inf))
    return np.einsum("bnts,bsnh->btnh", p, value)


def one_length_short(query, key, value, bias=None, mask=None, *, scale=None,
                     is_causal=False, key_value_seq_lengths=None):
    """(B, T, N, H)"""
    n = key_value_seq_lengths
    return dot_product_attention(
        query, key, value, bias, mask, scale=scale, is_causal=is_causal,
        key_value_seq_lengths=None if n is None else np.asarray(n) - 1)


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False,
                    window_size=(-1, -1), softcap=0.0, alibi_slopes=None,
                    deterministic=False, return_attn_probs=False):
    n, m = q.shape[1], k.shape[1]
    group = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, group, 2), np.repeat(v, group, 2)
    s = np.einsum("blhd,bshd->bhls", q, k)
    s = s * (softmax_scale or q.shape[-1] ** -0.5)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    far = np.arange(n)[:, None] + m - n - np.arange(m)
    if alibi_slopes is not None:
        s = s - np.reshape(alibi_slopes, (-1, 1, 1)) * np.abs(far)
    see = np.ones((n, m), bool)
    if causal:
        see &= far >= 0
    if window_size[0] >= 0:
        see &= far <= window_size[0]
    if window_size[1] >= 0:
        see &= -far <= window_size[1]
    return np.einsum("bhls,bshd->blhd", softmax(np.where(see, s, -np.inf)), v)


def mlx_attention(q, k, v, *, scale, mask=None):
    group = q.shape[1] // k.shape[1]
    s = (q * scale) @ transposed(np.repeat(k, group, 1))
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    return softmax(s) @ np.repeat(v, group, 1)


def memory_efficient(query, key, value, attn_bias=None, p=0.0, scale=None, *,
                     output_dtype=None):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    s = np.einsum("bmhk,bnhk->bhmn", query * scale, key)
    if attn_bias is not None:
        s = s + attn_bias
    return np.einsum("bhmn,bnhk->bmhk", softmax(s), value)


def eager_forward(module, query, key, value, attention_mask, scaling,
                  dropout=0.0, **kwargs):
    s = query @ transposed(key) * scaling
    if attention_mask is not None:
        s = s + attention_mask
    p = softmax(s)
    return np.swapaxes(p @ value, 1, 2), p


def eager_forward_of_keys(module, query, key, value, attention_mask, scaling,
                          dropout=0.0, **kwargs):
    return eager_forward(module, query, key, key, attention_mask, scaling)


@dataclasses.dataclass
class Output:
    hidden: np.ndarray
    attentions: np.ndarray = None


def in_a_dataclass(q, k, v):
    p = softmax(q @ transposed(k) / math.sqrt(q.shape[-1]))
    return Output(p @ v, p)


def nothing_beside(q, k, v):
    p = softmax(q @ transposed(k) / math.sqrt(q.shape[-1]))
    return {"weights": None, "output": p @ v}


def length_before_batch(query, key, value, num_heads):
    """query, key, value: (L, B, E)"""
    def heads(x):
        x = x.reshape(x.shape[:2] + (num_heads, -1))
        return x.transpose(1, 2, 0, 3)

    q, k, v = heads(query), heads(key), heads(value)
    o = softmax(q @ transposed(k) / math.sqrt(q.shape[-1])) @ v
    return o.transpose(2, 0, 1, 3).reshape(query.shape[:2] + (-1,))


def core_attention(query, key, value):
    """query, key, value: [s, b, h, d]; returns [s, b, h * d]"""
    s = np.einsum("sbhd,tbhd->bhst", query, key) / query.shape[-1] ** 0.5
    o = np.einsum("bhst,tbhd->sbhd", softmax(s), value)
    return o.reshape(o.shape[:2] + (-1,))


def core_unscaled(query, key, value):
    """query, key, value: [s, b, h, d]"""
    s = np.einsum("sbhd,tbhd->bhst", query, key)
    return np.einsum("bhst,tbhd->sbhd", softmax(s), value)


def layer(x, context, w_q, w_k, w_v, w_o, heads):
    def split(t, w):
        return (t @ w).reshape(t.shape[:2] + (heads, -1)).swapaxes(1, 2)

    q, k, v = split(x, w_q), split(context, w_k), split(context, w_v)
    o = softmax(q @ transposed(k) / math.sqrt(q.shape[-1])) @ v
    return o.swapaxes(1, 2).reshape(x.shape[:2] + (-1,)) @ w_o


def layer_unscaled(x, context, w_q, w_k, w_v, w_o, heads):
    return layer(x, context, w_q * math.sqrt(w_q.shape[1] / heads), w_k, w_v,
                 w_o, heads)


def time_first(x, w_q, w_k, w_v, w_o, n_heads):
    """x: (T, B, E)"""
    x = x.swapaxes(0, 1)
    return layer(x, x, w_q, w_k, w_v, w_o, n_heads).swapaxes(0, 1)


def time_forgotten(x, w_q, w_k, w_v, w_o, n_heads):
    """x: (T, B, E)"""
    return layer(x, x, w_q, w_k, w_v, w_o, n_heads)


ZOO = [
    ("sdpa", "correct"),
    ("sdpa_tiles_groups", "gqa-tile"),
    ("dot_product_attention", "correct"),
    ("one_length_short", "kv-length"),
    ("flash_attn_func", "correct"),
    ("mlx_attention", "correct"),
    ("memory_efficient", "correct"),
    ("eager_forward", "correct"),
    ("eager_forward_of_keys", "v-is-k"),
    ("in_a_dataclass", "correct"),
    ("nothing_beside", "correct"),
    ("length_before_batch", "correct"),
    ("length_before_batch", "correct", ["--layout=sbe"]),
    ("core_attention", "correct"),
    ("core_unscaled", "scale-missing"),
    ("layer", "correct"),
    ("layer_unscaled", "scale-missing"),
    ("time_first", "correct"),
    ("time_forgotten", "batch-first"),
]
