# SPDX-License-Identifier: Apache-2.0
#
# Style: a seminar's exercises: masks, windows, positions, lengths.
import math

import numpy as np


def softmax(z):
    m = z.max(-1, keepdims=True)
    m = np.where(np.isfinite(m), m, 0)
    e = np.exp(z - m)
    t = e.sum(-1, keepdims=True)
    return e / np.where(t == 0, 1, t)


def cap_after_mask(q, k, v, softcap=0.0, causal=False):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.tri(s.shape[-2], s.shape[-1], dtype=bool), s, -np.inf)
    if softcap > 0:
        s = softcap * np.tanh(s / softcap)
    return softmax(s) @ v


def cap_without_factor(q, k, v, softcap=None):
    z = np.einsum("bhnd,bhmd->bhnm", q, k) * q.shape[-1] ** -0.5
    if softcap:
        z = np.tanh(z / softcap)
    return np.einsum("bhnm,bhme->bhne", softmax(z), v)


def weights_masked(q, k, v, mask=None):
    p = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    if mask is not None:
        p = p * mask
    return p @ v


def tril_of_scores(x_q, x_k, x_v):
    s = x_q @ x_k.T / np.sqrt(x_q.shape[1])
    s = np.tril(s)
    return softmax(s) @ x_v


def booleans_added(query, key, value, attn_mask=None):
    s = query @ key.swapaxes(-2, -1) / math.sqrt(key.shape[-1])
    if attn_mask is not None:
        s = s + attn_mask.astype(s.dtype)
    return softmax(s) @ value


class BlockAttention:
    NEG = 1e4

    def __call__(self, q, k, v):
        nd, ns = q.shape[-2], k.shape[-2]
        w = (
            q
            @ k.swapaxes(-1, -2)
            / np.sqrt(v.shape[-1] if False else q.shape[-1])
        )
        b = (np.arange(nd)[:, None] >= np.arange(ns) - ns + nd).astype(w.dtype)
        w = w * b - self.NEG * (1 - b)
        return softmax(w) @ v


fill_of_ten_thousand = BlockAttention()


def tril_from_the_left(q, k, v):
    keep = np.tril(np.ones((q.shape[-2], k.shape[-2]), bool))
    s = np.where(
        keep,
        np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(q.shape[-1]),
        -np.inf,
    )
    return np.einsum("...qk,...ke->...qe", softmax(s), v)


def one_token_ahead(q, k, v):
    T = q.shape[0]
    rows = []
    for t in range(T):
        upto = t + 2
        s = k[:upto] @ q[t] / math.sqrt(q.shape[1])
        a = np.exp(s - s.max())
        rows.append((a / a.sum()) @ v[:upto])
    return np.stack(rows)


def one_token_ahead_of_rows(q, k, v):
    T = q.shape[0]
    rows = []
    for t in range(T):
        upto = min(t + 2, T)
        s = k[:upto] @ q[t] / math.sqrt(q.shape[1])
        a = np.exp(s - s.max())
        rows.append((a / a.sum()) @ v[:upto])
    return np.stack(rows)


def true_hides(q, k, v, attn_mask=None):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if attn_mask is not None:
        s = np.where(attn_mask, -np.inf, s)
    return softmax(s) @ v


def lengths_hide_rows(q, k, v, k_lengths):
    b, h, n, d = q.shape
    s = q @ k.transpose(0, 1, 3, 2) / d**0.5
    ok = np.arange(k.shape[2])[None] < np.asarray(k_lengths)[:, None]
    s = np.where(ok[:, None, :, None], s, -np.inf)
    return softmax(s) @ v


def mask_tiled_by_heads(q, k, v, mask):
    B, H, M, D = q.shape
    N = k.shape[2]
    qf, kf, vf = (t.reshape(B * H, t.shape[2], t.shape[3]) for t in (q, k, v))
    mask = np.broadcast_to(mask, (B, 1, M, N))[:, 0]
    mask = np.tile(mask, (H, 1, 1))
    s = np.einsum("zmd,znd->zmn", qf, kf) / np.sqrt(D)
    s[~mask] = -np.inf
    return (softmax(s) @ vf).reshape(B, H, M, -1)


def window_of_five(q, k, v):
    """each token sees itself and the three before it"""
    n, m = q.shape[-2], k.shape[-2]
    out = np.zeros(q.shape[:-1] + (v.shape[-1],))
    for i in range(n):
        p = i + m - n
        lo = max(0, p - 4)
        s = np.einsum(
            "...d,...jd->...j", q[..., i, :], k[..., lo : p + 1, :]
        ) / np.sqrt(q.shape[-1])
        out[..., i, :] = np.einsum(
            "...j,...je->...e", softmax(s), v[..., lo : p + 1, :]
        )
    return out


def window_from_row(q, k, v):
    n, m = q.shape[-2], k.shape[-2]
    row, col = np.arange(n)[:, None], np.arange(m)
    vis = (col <= row + m - n) & (col > row - 3)
    s = np.where(vis, q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, -np.inf)
    return softmax(s) @ v


def right_side_not_read(q, k, v, window=(-1, -1)):
    left, right = window
    off = k.shape[-2] - q.shape[-2]
    dist = np.arange(q.shape[-2])[:, None] + off - np.arange(k.shape[-2])
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if left >= 0:
        s = np.where(dist <= left, s, -np.inf)
    return softmax(s) @ v


def causal_or_mask(q, k, v, mask=None, causal=False):
    s = q @ k.swapaxes(-1, -2) * (1 / np.sqrt(q.shape[-1]))
    if causal:
        i, j = np.indices(s.shape[-2:])
        s = np.where(j > i, -np.inf, s)
    elif mask is not None:
        s = np.where(mask, s, -np.inf)
    return softmax(s) @ v


def empty_rows_nan(q, k, v, mask):
    z = np.where(mask, q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    with np.errstate(all="ignore"):
        z = z - z.max(-1, keepdims=True)
        e = np.exp(z)
        return e / e.sum(-1, keepdims=True) @ v


def empty_rows_mean(query, key, value, mask=None):
    d_k = query.shape[-1]
    scores = np.matmul(query, key.swapaxes(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = np.where(mask == 0, -1e9, scores)
    p_attn = softmax(scores)
    return np.matmul(p_attn, value)


def zero_times_infinity(q, k, v, mask):
    with np.errstate(all="ignore"):
        add = (1.0 - mask) * -np.inf
        s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + add
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v


def mask_repeats(q, k, v, mask=None):
    """mask may be smaller than the scores: it repeats"""
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        flat = np.ascontiguousarray(mask).ravel()
        idx = np.arange(s.size) % flat.size
        s = np.where(flat[idx].reshape(s.shape), s, -np.inf)
    return softmax(s) @ v


def past_without_itself(q, k, v):
    T = q.shape[-2]
    hide = np.triu(np.ones((T, T), bool))
    hide[0, 0] = False
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(np.where(hide, -np.inf, s)) @ v


def angles_paired_halves_turned(x, positions):
    d = x.shape[-1]
    f = 10000.0 ** (-np.arange(0, d, 2) / d)
    ang = np.asarray(positions)[..., None] * f
    cos, sin = np.repeat(np.cos(ang), 2, -1), np.repeat(np.sin(ang), 2, -1)
    rot = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], -1)
    return x * cos + rot * sin


def half_turned_slowly(x, positions):
    dim = x.shape[-1]
    rot = dim // 2
    inv = 1 / 10000 ** (np.arange(0, rot, 2) / dim)
    t = np.asarray(positions)[:, None] * inv[None]
    a, b, rest = x[..., 0:rot:2], x[..., 1:rot:2], x[..., rot:]
    y = np.empty_like(x)
    y[..., 0:rot:2] = a * np.cos(t) - b * np.sin(t)
    y[..., 1:rot:2] = a * np.sin(t) + b * np.cos(t)
    y[..., rot:] = rest
    return y


def positions_not_read(x, positions):
    n, d = x.shape[-2:]
    half = d // 2
    ang = np.outer(np.arange(n), 10000 ** (-np.arange(half) / half))
    c, s = np.cos(ang), np.sin(ang)
    u, w = x[..., :half], x[..., half:]
    return np.concatenate((u * c - w * s, w * c + u * s), axis=-1)


def half_precision_angles(x, positions):
    d = x.shape[-1]
    inv = (10000.0 ** (-np.arange(0, d, 2) / d)).astype(np.float16)
    p = np.asarray(positions).astype(np.float16)
    a = (p[:, None] * inv).astype(np.float64)
    z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * a)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def turned_backwards(x, positions):
    d = x.shape[-1]
    theta = np.power(10000.0, -2 * np.arange(d // 2) / d)
    z = x.reshape(*x.shape[:-1], d // 2, 2)
    z = z[..., 0] + z[..., 1] * 1j
    z = z * np.exp(np.asarray(positions)[:, None] * theta * -1j)
    return np.stack((z.real, z.imag), axis=-1).reshape(x.shape)


def base_not_read(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    freq = np.exp(-np.log(10000.0) * np.arange(half) / half)
    ph = np.multiply.outer(np.asarray(positions, float), freq)
    lo, hi = x[..., :half], x[..., half:]
    return np.concatenate(
        [lo * np.cos(ph) - hi * np.sin(ph), lo * np.sin(ph) + hi * np.cos(ph)],
        -1,
    )


def far_keys_gain(q, k, v, alibi_slopes):
    i = np.arange(q.shape[-2])[:, None]
    j = np.arange(k.shape[-2])[None]
    i = i + k.shape[-2] - q.shape[-2]
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    s = s + np.abs(i - j) * np.asarray(alibi_slopes)[:, None, None]
    return softmax(s) @ v


def slopes_from_head_zero(q, k, v):
    B, H, L, D = q.shape
    m = 2.0 ** (-8.0 * np.arange(H) / H)
    rel = np.arange(k.shape[2])[None, :] - np.arange(L)[:, None]
    s = (
        np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(D)
        + m[None, :, None, None] * rel
    )
    s = np.where(rel > 0, -np.inf, s)
    return softmax(s) @ v


def bias_mirrored(q, k, v, bias=None):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if bias is not None:
        s += np.swapaxes(bias, -1, -2)
    return softmax(s) @ v


def whole_cache_seen(q, k_cache, v_cache, cache_len):
    """one new token against the cache"""
    s = np.einsum("bhqd,bhkd->bhqk", q, k_cache) / np.sqrt(q.shape[-1])
    return np.einsum("bhqk,bhkd->bhqd", softmax(s), v_cache)


def one_key_too_many(q, k, v, k_lengths):
    L = k.shape[2]
    s = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[3])
    for b, n in enumerate(np.asarray(k_lengths)):
        s[b, :, :, int(n) + 1 :] = -np.inf
    return softmax(s) @ v


def boundary_to_the_left(q, k, v, cu_seqlens_q, cu_seqlens_k):
    """(total, heads, dim)"""
    sq = np.searchsorted(cu_seqlens_q, np.arange(q.shape[0]), side="left")
    sk = np.searchsorted(cu_seqlens_k, np.arange(k.shape[0]), side="left")
    s = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
    s = np.where((sq[:, None] == sk[None])[None], s, -np.inf)
    m = s.max(-1, keepdims=True)
    m[m == -np.inf] = 0
    e = np.exp(s - m)
    z = e.sum(-1, keepdims=True)
    z[z == 0] = 1
    return np.einsum("hqk,khe->qhe", e / z, v)


def lse_in_bits(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    m = s.max(-1)
    l = np.exp(s - m[..., None]).sum(-1)
    return softmax(s) @ v, (m + np.log(l)) / np.log(2)


def lse_without_maximum(q, k, v):
    s = np.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5
    e = np.exp(s - s.max(-1, keepdims=True))
    z = e.sum(-1)
    return np.einsum("...ij,...je->...ie", e, v) / z[..., None], np.log(z)


def merge_with_powers_of_two(o1, lse1, o2, lse2):
    top = np.maximum(lse1, lse2)
    top = np.where(np.isfinite(top), top, 0)
    a, b = np.exp2(lse1 - top), np.exp2(lse2 - top)
    t = a + b
    safe = np.where(t > 0, t, 1)
    with np.errstate(divide="ignore"):
        lse = top + np.log2(t)
    return (a / safe)[..., None] * o1 + (b / safe)[..., None] * o2, lse


def scores_in_half(q, k, v):
    s = np.matmul(q, k.swapaxes(-1, -2)).astype(np.float16)
    s = s.astype(np.float32) / np.sqrt(np.float32(q.shape[-1]))
    return (softmax(s) @ v.astype(np.float32)).astype(q.dtype)


def sum_in_half(q, k, v):
    s = (
        q.astype(np.float32)
        @ k.astype(np.float32).swapaxes(-1, -2)
        / np.sqrt(np.float32(q.shape[-1]))
    )
    p = softmax(s).astype(np.float16)
    acc = np.zeros(q.shape[:-1] + v.shape[-1:], np.float16)
    for j in range(k.shape[-2]):
        acc = acc + p[..., j, None] * v[..., None, j, :].astype(np.float16)
    return acc


ZOO = [
    ("cap_after_mask", "softcap-after-mask"),
    ("cap_without_factor", "softcap-wrong-or-ignored"),
    ("weights_masked", "mask-after-softmax"),
    ("tril_of_scores", "mask-fill-zero"),
    ("booleans_added", "mask-01-added", ["--expect=mask_true=keep"]),
    ("fill_of_ten_thousand", "mask-finite-sentinel"),
    ("tril_from_the_left", "causal-corner", ["--expect=causal=bottom_right"]),
    ("one_token_ahead", "causal-diagonal-shift"),
    ("one_token_ahead_of_rows", "causal-diagonal-shift"),
    ("true_hides", "mask-polarity", ["--expect=mask_true=keep"]),
    ("lengths_hide_rows", "mask-wrong-axis"),
    ("mask_tiled_by_heads", "mask-batch-head-order"),
    (
        "window_of_five",
        "window-off-by-one",
        ["--expect=causal=bottom_right,window=3:0"],
    ),
    (
        "window_from_row",
        "window-from-local-row",
        ["--expect=causal=bottom_right,window=2:0"],
    ),
    ("right_side_not_read", "window-ignored-or-zero"),
    ("causal_or_mask", "mask-dropped"),
    ("empty_rows_nan", "empty-row-nan", ["--expect=mask_true=keep"]),
    ("empty_rows_mean", "empty-row-mean", ["--expect=mask_true=keep"]),
    ("zero_times_infinity", "masked-nan-leak|output-nan"),
    ("mask_repeats", "broadcast-stride-zero|mask-batch-head-order"),
    ("past_without_itself", "causal-diagonal-shift"),
    ("angles_paired_halves_turned", "rope-pairing", ["--kind=rope"]),
    (
        "half_turned_slowly",
        "rope-partial-width|rope-base-or-scaling",
        ["--kind=rope"],
    ),
    ("positions_not_read", "rope-position-offset", ["--kind=rope"]),
    ("half_precision_angles", "rope-low-precision", ["--kind=rope"]),
    ("turned_backwards", "rope-rotation-reversed", ["--kind=rope"]),
    ("base_not_read", "rope-base-or-scaling", ["--kind=rope"]),
    ("far_keys_gain", "alibi-slopes-or-sign"),
    ("slopes_from_head_zero", "alibi-slopes-or-sign"),
    ("bias_mirrored", "relative-shift-or-order"),
    ("whole_cache_seen", "kv-length"),
    ("one_key_too_many", "kv-length"),
    ("boundary_to_the_left", "varlen-boundary"),
    ("lse_in_bits", "lse-base-or-empty", ["--expect="]),
    ("lse_without_maximum", "lse-base-or-empty"),
    ("merge_with_powers_of_two", "lse-base-or-empty"),
    ("scores_in_half", "score-overflow-16bit", ["--dtype=f16"]),
    ("sum_in_half", "accumulate-16bit", ["--dtype=f16"]),
]
