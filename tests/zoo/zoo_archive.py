# SPDX-License-Identifier: Apache-2.0
#
# Style: an old repository's utilities: each function on its own, with the
# conventions of its year.
import math

import numpy as np
from numpy import exp, newaxis


def smax(a, ax):
    m = a.max(ax, keepdims=True)
    e = exp(a - m)
    return e / e.sum(ax, keepdims=True)


# ------------------------------------------------------------- softmax

def softmax_rows(x):
    """by log-sum-exp"""
    m = np.max(x, axis=-1)
    return exp(x - (m + np.log(np.sum(exp(x - m[..., newaxis]), -1)))
               [..., newaxis])


def softmax_axis_arg(x, axis=-1):
    return smax(x, axis)


def softmax_axis_ignored(x, axis=-1):
    return smax(x, -1)


def softmax_axis_first(x, axis=0):
    """axis has another default, and is honoured"""
    return smax(x, axis)


def softmax_subtracts_mean(x):
    e = exp(x - x.mean(-1, keepdims=True))  # right, if not for all x
    return e / e.sum(-1, keepdims=True)


def softmax_squares(x):
    return x ** 2 / (x ** 2).sum(-1, keepdims=True)


def softmax_in_place(x):
    x -= x.max(-1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(-1, keepdims=True)
    return x


def softmax_log(x):
    m = x.max(-1, keepdims=True)
    return x - m - np.log(exp(x - m).sum(-1, keepdims=True))


# ------------------------------------------------------------- rotation

def freqs(d, base=10000.0):
    return base ** (-np.arange(0, d, 2) / d)


def rope_llama(x, positions, base=10000.0):
    """halves; base is honoured"""
    a = np.multiply.outer(np.asarray(positions, float),
                          freqs(x.shape[-1], base))
    c, s = np.cos(a), np.sin(a)
    lo, hi = np.split(x, 2, -1)
    return np.concatenate((lo * c - hi * s, hi * c + lo * s), -1)


def rope_gptj(x, pos):
    """pairs"""
    a = np.asarray(pos, float)[:, None] * freqs(x.shape[-1])
    out = np.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * np.cos(a) - x[..., 1::2] * np.sin(a)
    out[..., 1::2] = x[..., 1::2] * np.cos(a) + x[..., 0::2] * np.sin(a)
    return out


def rope_matrix(x, positions):
    """as a block-diagonal matrix for every position"""
    d = x.shape[-1]
    out = np.empty_like(x)
    for i, p in enumerate(positions):
        r = np.zeros((d, d))
        for m, f in enumerate(freqs(d)):
            c, s = math.cos(p * f), math.sin(p * f)
            r[2 * m:2 * m + 2, 2 * m:2 * m + 2] = [[c, -s], [s, c]]
        out[..., i, :] = x[..., i, :] @ r.T
    return out


def rope_overwritten(x, pos):
    """the second line reads what the first has written"""
    a = np.asarray(pos, float)[:, None] * freqs(x.shape[-1])
    out = x.copy()
    out[..., 0::2] = out[..., 0::2] * np.cos(a) - out[..., 1::2] * np.sin(a)
    out[..., 1::2] = out[..., 1::2] * np.cos(a) + out[..., 0::2] * np.sin(a)
    return out


def rope_interleaves_wrongly(x, positions):
    """pairs by halves, results interleaved"""
    a = np.asarray(positions, float)[:, None] * freqs(x.shape[-1])
    lo, hi = np.split(x, 2, -1)
    c, s = np.cos(a), np.sin(a)
    return np.stack((lo * c - hi * s, hi * c + lo * s), -1).reshape(x.shape)


def rope_one_based(x, positions):
    return rope_gptj(x, np.asarray(positions) - 1)


def rope_index_not_doubled(x, positions):
    """base^(-m / d) in place of base^(-2m / d)"""
    h = x.shape[-1] // 2
    a = np.asarray(positions, float)[:, None] * 10000.0 ** (
        -np.arange(h) / x.shape[-1])
    lo, hi = np.split(x, 2, -1)
    c, s = np.cos(a), np.sin(a)
    return np.concatenate((lo * c - hi * s, hi * c + lo * s), -1)


def rope_half_rotated(x, positions):
    """only the first half of the channels"""
    d = x.shape[-1] // 2
    return np.concatenate((rope_llama(x[..., :d], positions), x[..., d:]), -1)


def rope_f32_angles(x, positions):
    """float32 angles: enough"""
    a = (np.asarray(positions, "f4")[:, None] *
         freqs(x.shape[-1]).astype("f4")).astype("f4")
    lo, hi = np.split(x, 2, -1)
    c, s = np.cos(a), np.sin(a)
    return np.concatenate((lo * c - hi * s, hi * c + lo * s), -1)


def rope_both(q, k, positions):
    return rope_llama(q, positions), rope_llama(k, positions)


def rope_both_k_twice(q, k, positions):
    return (rope_llama(q, positions),
            rope_llama(rope_llama(k, positions), positions))


def rope_both_k_reversed(q, k, positions):
    return (rope_llama(q, positions),
            rope_llama(k, -np.asarray(positions, float)))


# ------------------------------------------------------------- caches

def decode_group(q, kc, vc, lens):
    """q (B, H, D), caches (B, N, G, D): right"""
    b, h, d = q.shape
    g = kc.shape[2]
    out = np.empty((b, h, vc.shape[3]))
    for i in range(b):
        n = int(lens[i])
        for j in range(h):
            m = j // (h // g)
            s = kc[i, :n, m] @ q[i, j] / math.sqrt(d)
            w = exp(s - s.max())
            out[i, j] = w @ vc[i, :n, m] / w.sum()
    return out


def decode_off_by_one(q, k_cache, v_cache, cache_seqlens):
    """sees one slot less"""
    n = np.maximum(np.reshape(cache_seqlens, (-1, 1, 1, 1)) - 1, 1)
    r = q.shape[1] // k_cache.shape[1]
    k, v = k_cache.repeat(r, 1), v_cache.repeat(r, 1)
    s = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    return smax(np.where(np.arange(k.shape[2]) < n, s, -np.inf), -1) @ v


def decode_additive(q, k_cache, v_cache, cache_seqlens):
    """right: adds -1e30"""
    n = np.reshape(cache_seqlens, (-1, 1, 1, 1))
    r = q.shape[1] // k_cache.shape[1]
    k, v = k_cache.repeat(r, 1), v_cache.repeat(r, 1)
    s = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    s = s + np.where(np.arange(k.shape[2]) < n, 0, -1e30)
    return smax(s, -1) @ v


def decode_zero_mask(q, k_cache, v_cache, cache_seqlens):
    """multiplies instead"""
    n = np.reshape(cache_seqlens, (-1, 1, 1, 1))
    r = q.shape[1] // k_cache.shape[1]
    k, v = k_cache.repeat(r, 1), v_cache.repeat(r, 1)
    s = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    return smax(s * (np.arange(k.shape[2]) < n), -1) @ v


def decode_keys_only(q, k_cache, v_cache, cache_seqlens):
    """the values come from the keys' cache where they fit"""
    n = np.reshape(cache_seqlens, (-1, 1, 1, 1))
    r = q.shape[1] // k_cache.shape[1]
    k = k_cache.repeat(r, 1)
    v = k if k_cache.shape == v_cache.shape else v_cache.repeat(r, 1)
    s = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    return smax(np.where(np.arange(k.shape[2]) < n, s, -np.inf), -1) @ v


def decode_max_length(q, k_cache, v_cache, cache_seqlens):
    """everybody has the longest length"""
    n = int(np.max(cache_seqlens))
    r = q.shape[1] // k_cache.shape[1]
    k, v = k_cache.repeat(r, 1)[:, :, :n], v_cache.repeat(r, 1)[:, :, :n]
    return smax(q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3]), -1) @ v


def decode_two_parts(q, k_cache, v_cache, cache_seqlens):
    """right: two halves of the cache, merged"""
    n = np.reshape(cache_seqlens, (-1, 1, 1, 1))
    r = q.shape[1] // k_cache.shape[1]
    k, v = k_cache.repeat(r, 1), v_cache.repeat(r, 1)
    c = k.shape[2] // 2

    def part(a, b):
        s = q @ k[:, :, a:b].swapaxes(2, 3) / math.sqrt(q.shape[3])
        s = np.where(np.arange(a, b) < n, s, -np.inf)
        m = s.max(-1, keepdims=True)
        e = exp(s - np.where(np.isneginf(m), 0, m))
        return e @ v[:, :, a:b], m, e.sum(-1, keepdims=True)
    (o1, m1, z1), (o2, m2, z2) = part(0, c), part(c, k.shape[2])
    m = np.maximum(m1, m2)
    a, b = exp(m1 - m), exp(m2 - m)
    return (o1 * a + o2 * b) / (z1 * a + z2 * b)


# ------------------------------------------------------------- merging

def merge_attn_states(o_a, lse_a, o_b, lse_b):
    """right, by sigmoid of the difference; empty parts too"""
    with np.errstate(invalid="ignore"):
        t = lse_a - lse_b
    t = np.where(np.isnan(t), 0, t)
    w = (1 / (1 + exp(-np.clip(t, -700, 700))))[..., newaxis]
    return np.where(w == 0, 0, w * o_a) + np.where(w == 1, 0, (1 - w) * o_b), \
        np.logaddexp(lse_a, lse_b)


def merge_means(o1, lse1, o2, lse2):
    return (o1 + o2) / 2, np.logaddexp(lse1, lse2)


def merge_raw_weights(o1, lse1, o2, lse2):
    """weights lse itself"""
    a, b = lse1[..., newaxis], lse2[..., newaxis]
    return (a * o1 + b * o2) / (a + b), np.logaddexp(lse1, lse2)


def merge_swapped(o1, lse1, o2, lse2):
    z = np.logaddexp(lse1, lse2)
    return exp(lse2 - z)[..., newaxis] * o1 + exp(lse1 - z)[..., newaxis] * \
        o2, z


def merge_lse_max(o1, lse1, o2, lse2):
    """the new lse is the larger one"""
    z = np.logaddexp(lse1, lse2)
    o = exp(lse1 - z)[..., newaxis] * o1 + exp(lse2 - z)[..., newaxis] * o2
    return o, np.maximum(lse1, lse2)


# ------------------------------------------------------------- gradients

def back(do, q, k, v, o, lse):
    """right, from the saved lse: (B, H, L, D)"""
    r = 1 / math.sqrt(q.shape[-1])
    p = exp(q @ k.swapaxes(-1, -2) * r - lse[..., newaxis])
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (do * o).sum(-1)[..., newaxis])
    return ds @ k * r, ds.swapaxes(-1, -2) @ q * r, p.swapaxes(-1, -2) @ do


def back_delta_of_v(do, q, k, v, o, lse):
    """delta from do * do"""
    r = 1 / math.sqrt(q.shape[-1])
    p = exp(q @ k.swapaxes(-1, -2) * r - lse[..., newaxis])
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (do * do).sum(-1)[..., newaxis])
    return ds @ k * r, ds.swapaxes(-1, -2) @ q * r, p.swapaxes(-1, -2) @ do


def back_unnormalised(do, q, k, v):
    """p is exp(s - max) without the sum"""
    r = 1 / math.sqrt(q.shape[-1])
    s = q @ k.swapaxes(-1, -2) * r
    p = exp(s - s.max(-1, keepdims=True))
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True))
    return ds @ k * r, ds.swapaxes(-1, -2) @ q * r, p.swapaxes(-1, -2) @ do


def back_scale_squared(do, q, k, v):
    """the scale once in s, twice in ds"""
    r = 1 / math.sqrt(q.shape[-1])
    p = smax(q @ k.swapaxes(-1, -2) * r, -1)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * r
    return ds @ k * r, ds.swapaxes(-1, -2) @ q * r, p.swapaxes(-1, -2) @ do


def back_dk_negative(do, q, k, v):
    r = 1 / math.sqrt(q.shape[-1])
    p = smax(q @ k.swapaxes(-1, -2) * r, -1)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * r
    return ds @ k, -ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def back_mask(do, q, k, v, mask=None):
    """right, with a mask: True keeps"""
    r = 1 / math.sqrt(q.shape[-1])
    s = q @ k.swapaxes(-1, -2) * r
    if mask is not None:
        s = np.where(mask, s, -1e30)
    p = smax(s, -1)
    if mask is not None:
        p = np.where(mask, p, 0)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * r
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def back_numeric(do, q, k, v):
    """right, by differences of a complex step"""
    def f(q, k, v):
        s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        e = exp(s - s.real.max(-1, keepdims=True))
        return ((e / e.sum(-1, keepdims=True) @ v) * do).sum()
    grads = []
    for which, x in enumerate((q, k, v)):
        g = np.empty(x.shape)
        for at in np.ndindex(x.shape):
            y = x.astype(complex)
            y[at] += 1e-30j
            args = [q, k, v]
            args[which] = y
            g[at] = f(*args).imag / 1e-30
        grads.append(g)
    return tuple(grads)


# ------------------------------------------------------------- layers

def cut(t, h):
    return t.reshape(t.shape[:-1] + (h, -1)).swapaxes(-2, -3)


def glue(t):
    t = t.swapaxes(-2, -3)
    return t.reshape(t.shape[:-2] + (-1,))


def attend(q, k, v):
    return smax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -1) @ v


def mha_biased(x, w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o, n_heads):
    return glue(attend(cut(x @ w_q + b_q, n_heads), cut(x @ w_k + b_k, n_heads),
                       cut(x @ w_v + b_v, n_heads))) @ w_o + b_o


def mha_bias_inside(x, w_q, b_q, w_k, b_k, w_v, b_v, w_o, b_o, n_heads):
    """b_o is added ahead of the projection where it fits"""
    o = glue(attend(cut(x @ w_q + b_q, n_heads), cut(x @ w_k + b_k, n_heads),
                    cut(x @ w_v + b_v, n_heads)))
    return (o + b_o) @ w_o if o.shape[-1] == b_o.shape[0] else o @ w_o + b_o


def mqa(x, w_q, w_k, w_v, w_o, n_heads, n_kv_heads):
    """right: groups"""
    q, k, v = cut(x @ w_q, n_heads), cut(x @ w_k, n_kv_heads), \
        cut(x @ w_v, n_kv_heads)
    r = n_heads // n_kv_heads
    return glue(attend(q, k.repeat(r, -3), v.repeat(r, -3))) @ w_o


def mqa_tiled(x, w_q, w_k, w_v, w_o, n_heads, n_kv_heads):
    q, k, v = cut(x @ w_q, n_heads), cut(x @ w_k, n_kv_heads), \
        cut(x @ w_v, n_kv_heads)
    at = np.arange(n_heads) % n_kv_heads
    return glue(attend(q, k[..., at, :, :], v[..., at, :, :])) @ w_o


def torch_linear(x, w_q, w_k, w_v, w_o, n_heads):
    """right: (out, in) matrices, as nn.Linear has them"""
    return glue(attend(cut(x @ w_q.T, n_heads), cut(x @ w_k.T, n_heads),
                       cut(x @ w_v.T, n_heads))) @ w_o.T


def heads_averaged(x, w_q, w_k, w_v, w_o, n_heads):
    """every head gets the mean of all heads' weights"""
    q, k, v = (cut(x @ w, n_heads) for w in (w_q, w_k, w_v))
    p = smax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -1)
    p = np.broadcast_to(p.mean(-3, keepdims=True), p.shape)
    return glue(p @ v) @ w_o


def residual(x, w_q, w_k, w_v, w_o, n_heads):
    """adds x"""
    y = glue(attend(*(cut(x @ w, n_heads) for w in (w_q, w_k, w_v)))) @ w_o
    return x + y


def one_head_for_all(x, w_q, w_k, w_v, w_o, n_heads):
    """n_heads is not looked at"""
    return attend(x @ w_q, x @ w_k, x @ w_v) @ w_o


B, D = ["--kind=backward"], ["--kind=decode"]
S, R = "bwd-softmax-or-mask", "bwd-reduction-scale-layout"
L = "lse-base-or-empty"
ZOO = [
    ("softmax_rows", "correct"), ("softmax_axis_arg", "correct"),
    ("softmax_axis_ignored", "softmax-wrong-axis"),
    ("softmax_subtracts_mean", "correct"),
    ("softmax_squares", "softmax-missing|unexplained"),
    ("softmax_in_place", "inputs-mutated"),
    ("softmax_log", "softmax-missing"),
    ("rope_llama", "correct"), ("rope_gptj", "correct"),
    ("rope_matrix", "correct"),
    ("rope_overwritten", "unexplained|rope-rotation-reversed|rope-pairing"),
    ("rope_interleaves_wrongly", "rope-pairing"),
    ("rope_one_based", "rope-position-offset"),
    ("rope_index_not_doubled", "rope-base-or-scaling|rope-partial-width"),
    ("rope_half_rotated", "correct"),
    ("rope_half_rotated", "rope-partial-width", ["--expect="]),
    ("rope_f32_angles", "correct"), ("rope_both", "correct"),
    ("rope_both_k_twice", "rope-position-offset"),
    ("rope_both_k_reversed", "rope-rotation-reversed"),
    ("decode_group", "correct", D), ("decode_off_by_one", "kv-length", D),
    ("decode_additive", "correct", D),
    ("decode_zero_mask", "mask-fill-zero|kv-length", D),
    ("decode_keys_only", "v-is-k", D), ("decode_max_length", "kv-length", D),
    ("decode_two_parts", "correct", D),
    ("merge_attn_states", "correct"), ("merge_means", L),
    ("merge_raw_weights", L), ("merge_swapped", L), ("merge_lse_max", L),
    ("back", "correct", B), ("back_delta_of_v", S, B),
    ("back_unnormalised", S + "|softmax-missing", B),
    ("back_scale_squared", R, B), ("back_dk_negative", R, B),
    ("back_mask", "correct", B), ("back_numeric", "correct", B),
    ("mha_biased", "correct"),
    ("mha_bias_inside", "unexplained|qkv-packing"),
    ("mqa", "correct"), ("mqa_tiled", "gqa-tile"),
    ("torch_linear", "correct"), ("heads_averaged", "unexplained"),
    ("residual", "unexplained"),
    ("one_head_for_all", "scale-d-model|softmax-joint-axes|unexplained"),
]
