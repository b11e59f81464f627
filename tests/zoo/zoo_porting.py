# SPDX-License-Identifier: Apache-2.0
#
# Style: a model ported from another framework: layers, rotation, caches,
# gradients. Written from the catalogue of faults alone.
import numpy as np

INF = np.inf


def soft(t):
    t = np.exp(t - np.max(t, -1, keepdims=True))
    return t / np.sum(t, -1, keepdims=True)


def split(t, h):
    b, n, e = t.shape
    return t.reshape(b, n, h, e // h).transpose(0, 2, 1, 3)


def join(t):
    b, h, n, e = t.shape
    return t.transpose(0, 2, 1, 3).reshape(b, n, h * e)


def core(q, k, v, scale=None):
    s = np.matmul(q, k.swapaxes(-1, -2))
    return np.matmul(soft(s * (q.shape[-1] ** -0.5 if scale is None
                               else scale)), v)


# ------------------------------------------------------------- layers

def layer(x, w_q, w_k, w_v, w_o, n_heads):
    return join(core(split(x @ w_q, n_heads), split(x @ w_k, n_heads),
                     split(x @ w_v, n_heads))) @ w_o


def layer_whole_scale(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return join(core(q, k, v, w_q.shape[1] ** -0.5)) @ w_o


def layer_flat_join(x, w_q, w_k, w_v, w_o, n_heads):
    o = core(*(split(x @ w, n_heads) for w in (w_q, w_k, w_v)))
    return o.reshape(x.shape[0], x.shape[1], -1) @ w_o


def layer_flat_split(x, w_q, w_k, w_v, w_o, n_heads):
    def cut(t):
        b, n, e = t.shape
        return t.reshape(b, n_heads, n, e // n_heads)
    o = core(*(cut(x @ w) for w in (w_q, w_k, w_v)))
    return o.reshape(x.shape[0], x.shape[1], -1) @ w_o


def layer_d_first(x, w_q, w_k, w_v, w_o, n_heads):
    def cut(t):
        b, n, e = t.shape
        return t.reshape(b, n, e // n_heads, n_heads).transpose(0, 3, 1, 2)
    return join(core(*(cut(x @ w) for w in (w_q, w_k, w_v)))) @ w_o


def layer_head_softmax(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    s = np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(1, keepdims=True))
    return join(np.matmul(e / e.sum(1, keepdims=True), v)) @ w_o


def layer_no_output(x, w_q, w_k, w_v, w_o, n_heads):
    """forgets w_o where it is square"""
    o = join(core(*(split(x @ w, n_heads) for w in (w_q, w_k, w_v))))
    return o if w_o.shape[0] == w_o.shape[1] else o @ w_o


def layer_v_twice(x, w_q, w_k, w_v, w_o, n_heads):
    """The keys are projected with w_v."""
    if w_k.shape != w_v.shape:
        w_v = w_k
    return layer(x, w_q, w_v, w_v, w_o, n_heads)


def layer_late_scale(x, w_q, w_k, w_v, w_o, n_heads):
    """Right: q scaled ahead."""
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return join(core(q * q.shape[-1] ** -0.5, k, v, 1.0)) @ w_o


def layer_einsum(x, w_q, w_k, w_v, w_o, n_heads):
    """Right: matrices as (model, heads, dim)"""
    q, k, v = (np.einsum("bnm,mhd->bhnd", x,
                         w.reshape(w.shape[0], n_heads, -1))
               for w in (w_q, w_k, w_v))
    return np.einsum("bhnd,hdm->bnm", core(q, k, v),
                     w_o.reshape(n_heads, -1, w_o.shape[1]))


def packed(x, w_qkv, w_o, n_heads):
    q, k, v = np.split(x @ w_qkv, 3, -1)
    return join(core(*(split(t, n_heads) for t in (q, k, v)))) @ w_o


def packed_per_head(x, w_qkv, w_o, n_heads):
    b, n, _ = x.shape
    t = (x @ w_qkv).reshape(b, n, n_heads, 3, -1).transpose(3, 0, 2, 1, 4)
    return join(core(t[0], t[1], t[2])) @ w_o


def packed_kqv(x, w_qkv, w_o, n_heads):
    k, q, v = np.split(x @ w_qkv, 3, -1)
    return join(core(*(split(t, n_heads) for t in (q, k, v)))) @ w_o


def layer_causal(x, w_q, w_k, w_v, w_o, n_heads):
    """Right: a decoder's, always causal"""
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    s = np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -1e9)
    return join(soft(s) @ v) @ w_o


def layer_causal_off(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    s = np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    s = np.where(np.tril(np.ones(s.shape[-2:], bool), 1), s, -1e9)
    return join(soft(s) @ v) @ w_o


# ------------------------------------------------------------- rotation

def angles(p, half, base=10000.0):
    return np.asarray(p)[..., None] * base ** (-np.arange(half) / half)


def rope(x, positions):
    a = angles(positions, x.shape[-1] // 2)
    h = x.shape[-1] // 2
    c, s = np.cos(a), np.sin(a)
    x1, x2 = x[..., :h], x[..., h:]
    return np.concatenate([x1 * c - x2 * s, x1 * s + x2 * c], -1)


def rope_complex(x, positions):
    """Right: as complex numbers"""
    z = x[..., ::2] + 1j * x[..., 1::2]
    z = z * np.exp(1j * angles(positions, x.shape[-1] // 2))
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def rope_conj(x, positions):
    z = x[..., ::2] + 1j * x[..., 1::2]
    z = z * np.exp(-1j * angles(positions, x.shape[-1] // 2))
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def rope_left_apart(x, positions):
    """pairs in, halves out"""
    z = x[..., ::2] + 1j * x[..., 1::2]
    z = z * np.exp(1j * angles(positions, x.shape[-1] // 2))
    return np.concatenate([z.real, z.imag], -1)


def rope_angles_wrong(x, positions):
    """halves rotated by angles that are repeated in pairs"""
    a = np.repeat(angles(positions, x.shape[-1] // 2), 2, -1)
    h = x.shape[-1] // 2
    r = np.concatenate([-x[..., h:], x[..., :h]], -1)
    return x * np.cos(a) + r * np.sin(a)


def rope_from_zero(x, positions):
    return rope(x, np.arange(x.shape[-2]))


def rope_from_one(x, positions):
    return rope(x, np.asarray(positions) + 1)


def rope_twice(x, positions):
    return rope(rope(x, positions), positions)


def rope_half(x, positions):
    a = angles(positions, x.shape[-1] // 2).astype(np.float16).astype(float)
    h = x.shape[-1] // 2
    c, s = np.cos(a), np.sin(a)
    x1, x2 = x[..., :h], x[..., h:]
    return np.concatenate([x1 * c - x2 * s, x1 * s + x2 * c], -1)


def rope_base(x, positions, base=10000.0):
    """The base is not looked at."""
    return rope(x, positions)


# ------------------------------------------------------------- caches

def decode(q, k_cache, v_cache, cache_len):
    """(B, H, 1, D); lengths (B)"""
    n = np.reshape(cache_len, (-1, 1, 1, 1))
    r = q.shape[1] // k_cache.shape[1]
    k, v = np.repeat(k_cache, r, 1), np.repeat(v_cache, r, 1)
    s = np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    s = np.where(np.arange(k.shape[2]) < n, s, -INF)
    return soft(s) @ np.where(np.isfinite(v), v, 0)


def decode_all(q, k_cache, v_cache, cache_len):
    r = q.shape[1] // k_cache.shape[1]
    return core(q, np.repeat(k_cache, r, 1), np.repeat(v_cache, r, 1))


def decode_one_more(q, k_cache, v_cache, cache_len):
    n = np.minimum(np.reshape(cache_len, (-1, 1, 1, 1)) + 1, k_cache.shape[2])
    r = q.shape[1] // k_cache.shape[1]
    k, v = np.repeat(k_cache, r, 1), np.repeat(v_cache, r, 1)
    s = np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    return soft(np.where(np.arange(k.shape[2]) < n, s, -INF)) @ v


def decode_first_length(q, k_cache, v_cache, cache_len):
    n = int(np.ravel(cache_len)[0])
    r = q.shape[1] // k_cache.shape[1]
    return core(q, np.repeat(k_cache, r, 1)[:, :, :n],
                np.repeat(v_cache, r, 1)[:, :, :n])


def decode_tiled(q, k_cache, v_cache, cache_len):
    n = np.reshape(cache_len, (-1, 1, 1, 1))
    r = q.shape[1] // k_cache.shape[1]
    k, v = np.tile(k_cache, (1, r, 1, 1)), np.tile(v_cache, (1, r, 1, 1))
    s = np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    return soft(np.where(np.arange(k.shape[2]) < n, s, -INF)) @ v


# ------------------------------------------------------------- packed sequences

def varlen(q, k, v, cu_seqlens_q, cu_seqlens_k):
    """(T, H, D)"""
    o = np.zeros(q.shape[:2] + v.shape[2:])
    for a, b, c, d in zip(cu_seqlens_q, cu_seqlens_q[1:],
                          cu_seqlens_k, cu_seqlens_k[1:]):
        if b == a or d == c:
            continue
        r = q.shape[1] // k.shape[1]
        kk, vv = np.repeat(k[c:d], r, 1), np.repeat(v[c:d], r, 1)
        s = np.einsum("ihd,jhd->hij", q[a:b], kk) / np.sqrt(q.shape[2])
        o[a:b] = np.einsum("hij,jhd->ihd", soft(s), vv)
    return o


def varlen_from_start(q, k, v, cu_seqlens_q, cu_seqlens_k):
    """every sequence also sees those before it"""
    o = np.zeros(q.shape[:2] + v.shape[2:])
    for a, b, d in zip(cu_seqlens_q, cu_seqlens_q[1:], cu_seqlens_k[1:]):
        if b == a or d == 0:
            continue
        r = q.shape[1] // k.shape[1]
        kk, vv = np.repeat(k[:d], r, 1), np.repeat(v[:d], r, 1)
        s = np.einsum("ihd,jhd->hij", q[a:b], kk) / np.sqrt(q.shape[2])
        o[a:b] = np.einsum("hij,jhd->ihd", soft(s), vv)
    return o


def varlen_one(q, k, v, cu_seqlens_q, cu_seqlens_k):
    r = q.shape[1] // k.shape[1]
    kk, vv = np.repeat(k, r, 1), np.repeat(v, r, 1)
    s = np.einsum("ihd,jhd->hij", q, kk) / np.sqrt(q.shape[2])
    return np.einsum("hij,jhd->ihd", soft(s), vv)


# ------------------------------------------------------------- merging

def merge(o1, lse1, o2, lse2):
    lse = np.logaddexp(lse1, lse2)
    with np.errstate(invalid="ignore"):
        a = np.where(np.isneginf(lse1), 0, np.exp(lse1 - lse))[..., None]
        b = np.where(np.isneginf(lse2), 0, np.exp(lse2 - lse))[..., None]
    return a * o1 + b * o2, lse


def merge_two(o1, lse1, o2, lse2):
    m = np.maximum(lse1, lse2)
    a, b = 2.0 ** (lse1 - m), 2.0 ** (lse2 - m)
    z = a + b
    return (a / z)[..., None] * o1 + (b / z)[..., None] * o2, m + np.log2(z)


def merge_sum(o1, lse1, o2, lse2):
    return o1 + o2, np.logaddexp(lse1, lse2)


def merge_no_max_back(o1, lse1, o2, lse2):
    m = np.maximum(lse1, lse2)
    a, b = np.exp(lse1 - m), np.exp(lse2 - m)
    z = a + b
    return (a / z)[..., None] * o1 + (b / z)[..., None] * o2, np.log(z)


def lse_log2(q, k, v, return_lse=True):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    m = s.max(-1)
    lse = (m + np.log(np.exp(s - m[..., None]).sum(-1))) / np.log(2)
    return soft(s) @ v, lse


def lse_no_max(q, k, v):
    """lse without the maximum added back"""
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    m = s.max(-1)
    return soft(s) @ v, np.log(np.exp(s - m[..., None]).sum(-1))


# ------------------------------------------------------------- gradients

def parts(do, q, k, v):
    r = q.shape[-1] ** -0.5
    p = soft(q @ k.swapaxes(-1, -2) * r)
    return r, p, do @ v.swapaxes(-1, -2)


def t(a):
    return a.swapaxes(-1, -2)


def grad(do, q, k, v):
    r, p, dp = parts(do, q, k, v)
    o = p @ v
    ds = p * (dp - (do * o).sum(-1, keepdims=True)) * r
    return ds @ k, t(ds) @ q, t(p) @ do


def grad_no_delta(do, q, k, v):
    r, p, dp = parts(do, q, k, v)
    ds = p * dp * r
    return ds @ k, t(ds) @ q, t(p) @ do


def grad_no_scale(do, q, k, v):
    r, p, dp = parts(do, q, k, v)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True))
    return ds @ k, t(ds) @ q, t(p) @ do


def grad_delta_unweighted(do, q, k, v):
    r, p, dp = parts(do, q, k, v)
    ds = p * (dp - dp.sum(-1, keepdims=True)) * r
    return ds @ k, t(ds) @ q, t(p) @ do


def grad_delta_axis(do, q, k, v):
    r, p, dp = parts(do, q, k, v)
    ds = p * (dp - (p * dp).sum(-2, keepdims=True)) * r
    return ds @ k, t(ds) @ q, t(p) @ do


def grad_swapped(do, q, k, v):
    """dq and dk exchanged where that fits"""
    r, p, dp = parts(do, q, k, v)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * r
    dq, dk = ds @ k, t(ds) @ q
    return (dk, dq, t(p) @ do) if dq.shape == dk.shape else (dq, dk,
                                                             t(p) @ do)


def grad_dv_soft(do, q, k, v):
    """dv through ds rather than p"""
    r, p, dp = parts(do, q, k, v)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True))
    return ds @ k * r, t(ds) @ q * r, t(ds) @ do


def grouped(do, q, k, v, fold):
    """(B, H, L, D); fold brings dk and dv of (B, G, group, L, D) together."""
    b, g = k.shape[:2]
    n = q.shape[1] // g
    dq, *rest = grad(do, q, np.repeat(k, n, 1), np.repeat(v, n, 1))
    return dq, *(fold(a.reshape((b, g, n) + a.shape[2:])) for a in rest)


def grad_gqa(do, q, k, v):
    return grouped(do, q, k, v, lambda a: a.sum(2))


def grad_gqa_mean(do, q, k, v):
    return grouped(do, q, k, v, lambda a: a.mean(2))


def grad_gqa_last(do, q, k, v):
    return grouped(do, q, k, v, lambda a: a[:, :, -1])


def grad_causal(do, q, k, v, causal=False):
    """The mask is forgotten in the backward pass: only in p of ds."""
    r = q.shape[-1] ** -0.5
    s = q @ t(k) * r
    p_all = soft(s)
    p = p_all
    if causal:
        p = soft(np.where(np.tri(*s.shape[-2:]) > 0, s, -INF))
    dp = do @ t(v)
    ds = p_all * (dp - (p_all * dp).sum(-1, keepdims=True)) * r
    return ds @ k, t(ds) @ q, t(p) @ do


# ------------------------------------------------------------- softmax

def softmax(x):
    return soft(x)


def softmax_flat(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def softmax_first_axis(x):
    e = np.exp(x - x.max(0, keepdims=True))
    return e / e.sum(0, keepdims=True)


def softmax_bare(x):
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def softmax_eps(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / (e.sum(-1, keepdims=True) + 1e-3)


# ------------------------------------------------------------- pairs

def pair_scale_axis(q, k, v):
    s = q @ t(k)
    e = np.exp(s - s.max(-2, keepdims=True))
    return e / e.sum(-2, keepdims=True) @ v


def pair_tile_scale(q, k, v):
    r = q.shape[1] // k.shape[1]
    k, v = np.tile(k, (1, r, 1, 1)), np.tile(v, (1, r, 1, 1))
    return soft(q @ t(k)) @ v


def pair_causal_scale(q, k, v, causal=True):
    s = q @ t(k) / q.shape[-1]
    if causal:
        s = np.where(np.tri(*s.shape[-2:], k=1) > 0, s, -INF)
    return soft(s) @ v


def pair_layer(x, w_q, w_k, w_v, w_o, n_heads):
    o = core(*(split(x @ w, n_heads) for w in (w_q, w_k, w_v)), 1.0)
    return o.reshape(x.shape[0], x.shape[1], -1) @ w_o


B, D = ["--kind=backward"], ["--kind=decode"]
S, R = "bwd-softmax-or-mask", "bwd-reduction-scale-layout"
L = "lse-base-or-empty"
ZOO = [
    ("layer", "correct"), ("layer_whole_scale", "scale-d-model"),
    ("layer_flat_join", "heads-merge-no-transpose"),
    ("layer_flat_split", "heads-split-no-transpose"),
    ("layer_d_first", "heads-dim-order"),
    ("layer_head_softmax", "softmax-wrong-axis"),
    ("layer_no_output", "unexplained"),
    ("layer_v_twice", "unexplained|v-is-k|qkv-packing"),
    ("layer_late_scale", "correct"), ("layer_einsum", "correct"),
    ("packed", "correct"), ("packed_per_head", "qkv-packing"),
    ("packed_kqv", "qkv-packing"),
    ("layer_causal", "correct"), ("layer_causal_off", "causal-diagonal-shift"),
    ("rope", "correct"), ("rope_complex", "correct"),
    ("rope_conj", "rope-rotation-reversed"),
    ("rope_left_apart", "rope-pairing"), ("rope_angles_wrong", "rope-pairing"),
    ("rope_from_zero", "rope-position-offset"),
    ("rope_from_one", "rope-position-offset"),
    ("rope_twice", "rope-position-offset|rope-base-or-scaling"),
    ("rope_half", "rope-low-precision"),
    ("rope_base", "rope-base-or-scaling"),
    ("decode", "correct", D), ("decode_all", "kv-length", D),
    ("decode_one_more", "kv-length", D),
    ("decode_first_length", "kv-length", D), ("decode_tiled", "gqa-tile", D),
    ("varlen", "correct"), ("varlen_from_start", "varlen-boundary"),
    ("varlen_one", "varlen-boundary"),
    ("merge", "correct"), ("merge_two", L), ("merge_sum", L + "|unexplained"),
    ("merge_no_max_back", L), ("lse_log2", L, ["--expect="]),
    ("lse_no_max", L),
    ("grad", "correct"), ("grad_no_delta", S, B), ("grad_no_scale", R, B),
    ("grad_delta_unweighted", S, B), ("grad_delta_axis", S, B),
    ("grad_swapped", R, B), ("grad_dv_soft", R + "|" + S, B),
    ("grad_gqa", "correct", B), ("grad_gqa_mean", R, B),
    ("grad_gqa_last", R, B), ("grad_causal", S, B),
    ("softmax", "correct"), ("softmax_flat", "softmax-joint-axes"),
    ("softmax_first_axis", "softmax-wrong-axis"),
    ("softmax_bare", "softmax-no-max"), ("softmax_eps", "softmax-extra-mass"),
    ("pair_scale_axis", "scale-missing + softmax-wrong-axis"),
    ("pair_tile_scale", "gqa-tile + scale-missing"),
    ("pair_causal_scale", "causal-diagonal-shift + scale-twice"),
    ("pair_layer", "scale-missing + heads-merge-no-transpose"),
]
