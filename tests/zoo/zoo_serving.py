# SPDX-License-Identifier: Apache-2.0
#
# Style: inference servers: caches, packed batches, states that are merged,
# rotations.
import numpy as np


def softmax(s):
    m = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(m), m, 0))
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-300)


def decode(q, k_cache, v_cache, cache_seqlens):
    """q (B, H, 1, D), caches (B, Hkv, N, D), lengths (B,)"""
    g = q.shape[1] // k_cache.shape[1]
    k, v = np.repeat(k_cache, g, 1), np.repeat(v_cache, g, 1)
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    n = np.asarray(cache_seqlens).reshape(-1, 1, 1, 1)
    return softmax(np.where(np.arange(k.shape[2]) < n, s, -np.inf)) @ v


def decode_stale(q, k_cache, v_cache, cache_seqlens):
    g = q.shape[1] // k_cache.shape[1]
    k, v = np.repeat(k_cache, g, 1), np.repeat(v_cache, g, 1)
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def decode_off_by_one(q, k_cache, v_cache, cache_seqlens):
    return decode(q, k_cache, v_cache, np.asarray(cache_seqlens) - 1)


def decode_longest(q, k_cache, v_cache, cache_seqlens):
    n = np.full_like(np.asarray(cache_seqlens), np.max(cache_seqlens))
    return decode(q, k_cache, v_cache, n)


def decode_modulo(q, k_cache, v_cache, cache_seqlens):
    g = q.shape[1] // k_cache.shape[1]
    return decode(q, np.concatenate([k_cache] * g, 1),
                  np.concatenate([v_cache] * g, 1), cache_seqlens)


def decode_no_scale(q, k_cache, v_cache, cache_len):
    return decode(q * np.sqrt(q.shape[-1]), k_cache, v_cache, cache_len)


SEEN = {}


def decode_remembers(q, k_cache, v_cache, cache_len):
    """Keeps the greatest length it has seen."""
    n = np.asarray(cache_len)
    SEEN["n"] = max(SEEN.get("n", 0), int(n.max()))
    return decode(q, k_cache, v_cache,
                  np.minimum(np.full_like(n, SEEN["n"]), k_cache.shape[2]))


def decode_ring(q, k_cache, v_cache, cache_len):
    """Reads the newest rows first and stops one early when full."""
    n = np.minimum(np.asarray(cache_len), k_cache.shape[2] - 1)
    return decode(q, k_cache, v_cache, n)


def varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
           causal=False):
    """(total, heads, dim) each"""
    out = np.zeros(q.shape[:2] + v.shape[-1:])
    g = q.shape[1] // k.shape[1]
    for a, b, c, d in zip(cu_seqlens_q, cu_seqlens_q[1:], cu_seqlens_k,
                          cu_seqlens_k[1:]):
        for h in range(q.shape[1]):
            s = q[a:b, h] @ k[c:d, h // g].T / np.sqrt(q.shape[-1])
            if causal:
                ok = np.arange(d - c) <= np.arange(b - a)[:, None] + \
                    (d - c) - (b - a)
                s = np.where(ok, s, -np.inf)
            out[a:b, h] = softmax(s) @ v[c:d, h // g]
    return out


def varlen_boundless(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                     max_seqlen_k, causal=False):
    n, m = len(q), len(k)
    return varlen(q, k, v, [0, n], [0, m], n, m, causal)


def varlen_two_only(q, k, v, cu_seqlens_q, cu_seqlens_k):
    a, b = list(cu_seqlens_q), list(cu_seqlens_k)
    return varlen(q, k, v, a[:2] + a[-1:], b[:2] + b[-1:], 0, 0)


def varlen_query_bounds(q, k, v, cu_seqlens_q, cu_seqlens_k):
    b = np.minimum(cu_seqlens_q, len(k))
    return varlen(q, k, v, cu_seqlens_q, b, 0, 0)


def merge_states(out1, lse1, out2, lse2):
    m = np.maximum(lse1, lse2)
    safe = np.where(np.isinf(m), 0, m)
    a, b = np.exp(lse1 - safe), np.exp(lse2 - safe)
    t = np.where(a + b == 0, 1, a + b)
    o = (a / t)[..., None] * out1 + (b / t)[..., None] * out2
    with np.errstate(divide="ignore"):
        return o, safe + np.log(a + b)


def merge_states_base_two(out1, lse1, out2, lse2):
    m = np.maximum(lse1, lse2)
    a, b = np.exp2(lse1 - m), np.exp2(lse2 - m)
    o = (a / (a + b))[..., None] * out1 + (b / (a + b))[..., None] * out2
    return o, m + np.log2(a + b)


def merge_states_averaged(out1, lse1, out2, lse2):
    return (out1 + out2) / 2, np.logaddexp(lse1, lse2)


def merge_states_nan(out1, lse1, out2, lse2):
    m = np.maximum(lse1, lse2)
    a, b = np.exp(lse1 - m), np.exp(lse2 - m)
    o = (a / (a + b))[..., None] * out1 + (b / (a + b))[..., None] * out2
    return o, m + np.log(a + b)


def merge_states_naive(out1, lse1, out2, lse2):
    a, b = np.exp(lse1), np.exp(lse2)
    o = (a[..., None] * out1 + b[..., None] * out2) / (a + b)[..., None]
    return o, np.log(a + b)


def merge_states_wrong_lse(out1, lse1, out2, lse2):
    return merge_states(out1, lse1, out2, lse2)[0], np.maximum(lse1, lse2)


def table(positions, dim, base):
    f = base ** (-np.arange(0, dim, 2) / dim)
    return np.multiply.outer(np.asarray(positions, float), f)


def turn(a, b, angle):
    c, s = np.cos(angle), np.sin(angle)
    return a * c - b * s, a * s + b * c


def rotary_half(x, positions, theta=10000.0):
    """x (..., L, D)"""
    h = x.shape[-1] // 2
    a, b = turn(x[..., :h], x[..., h:], table(positions, 2 * h, theta))
    return np.concatenate([a, b], -1)


def rotary_pairs(x, positions, theta=10000.0):
    y = np.empty_like(x)
    y[..., ::2], y[..., 1::2] = turn(x[..., ::2], x[..., 1::2],
                                     table(positions, x.shape[-1], theta))
    return y


def rotary_complex(x, positions):
    z = x[..., ::2] + 1j * x[..., 1::2]
    z = z * np.exp(1j * table(positions, x.shape[-1], 10000.0))
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def rotary_mixed(x, positions):
    """Pairs of neighbours, angles laid out for halves."""
    a = table(positions, x.shape[-1], 10000.0)
    a = np.concatenate([a, a], -1)
    r = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    return x * np.cos(a) + r * np.sin(a)


def rotary_backwards(x, positions):
    return rotary_half(x, -np.asarray(positions))


def rotary_restarts(x, positions):
    return rotary_half(x, np.arange(x.shape[-2]))


def rotary_late(x, positions):
    return rotary_half(x, np.asarray(positions) + 1)


def rotary_deaf(x, positions, theta=10000.0):
    return rotary_half(x, positions)


def rotary_other_base(x, positions):
    return rotary_half(x, positions, 100.0)


def rotary_half_width(x, positions, rotary_dim=None):
    """Frequencies over the whole head, though only a part is rotated."""
    d = x.shape[-1] if rotary_dim is None else rotary_dim
    h = d // 2
    f = 10000.0 ** (-np.arange(0, d, 2) / x.shape[-1])
    a, b = turn(x[..., :h], x[..., h:d],
                np.multiply.outer(np.asarray(positions, float), f))
    return np.concatenate([a, b, x[..., d:]], -1)


def rotary_coarse(x, positions):
    """Angles in float16."""
    h = x.shape[-1] // 2
    a = table(positions, 2 * h, 10000.0).astype(np.float16).astype(float)
    a, b = turn(x[..., :h], x[..., h:], a)
    return np.concatenate([a, b], -1)


def softmax_naive(x):
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def softmax_columns(x):
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


def softmax_total(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def softmax_with_eps(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / (e.sum(axis=axis, keepdims=True) + 1e-6)


def softmax_min(x):
    e = np.exp(x - x.min(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_global_max(x):
    e = np.exp(x - np.max(x))
    return e / e.sum(-1, keepdims=True)


def softmax_scipy(x, axis=-1):
    m = x.max(axis=axis, keepdims=True)
    return np.exp(x - (m + np.log(np.exp(x - m).sum(axis, keepdims=True))))


L = "lse-base-or-empty"
ZOO = [
    ("decode", "correct"), ("decode_stale", "kv-length"),
    ("decode_off_by_one", "kv-length"), ("decode_longest", "kv-length"),
    ("decode_modulo", "gqa-tile"), ("decode_no_scale", "scale-missing"),
    ("decode_remembers", "state-kept|kv-length"),
    ("decode_ring", "kv-length"),
    ("varlen", "correct"), ("varlen_boundless", "varlen-boundary"),
    ("varlen_two_only", "varlen-boundary"),
    ("varlen_query_bounds", "varlen-boundary"),
    ("merge_states", "correct"), ("merge_states", "correct", ["--expect="]),
    ("merge_states_base_two", L), ("merge_states_averaged", L),
    ("merge_states_nan", L, ["--expect="]),
    ("merge_states_naive", "softmax-no-max"),
    ("merge_states_wrong_lse", L),
    ("rotary_half", "correct"), ("rotary_pairs", "correct"),
    ("rotary_complex", "correct"),
    ("rotary_pairs", "rope-pairing", ["--expect=interleaved=false"]),
    ("rotary_mixed", "rope-pairing"),
    ("rotary_backwards", "rope-rotation-reversed"),
    ("rotary_restarts", "rope-position-offset"),
    ("rotary_late", "rope-position-offset"),
    ("rotary_deaf", "rope-base-or-scaling"),
    ("rotary_other_base", "rope-base-or-scaling", ["--expect="]),
    ("rotary_half_width", "rope-partial-width"),
    ("rotary_coarse", "rope-low-precision"),
    ("softmax_naive", "softmax-no-max"),
    ("softmax_columns", "softmax-wrong-axis"),
    ("softmax_total", "softmax-joint-axes"),
    ("softmax_with_eps", "softmax-extra-mass"),
    ("softmax_min", "correct"),
    ("softmax_global_max", "correct"),
    ("softmax_scipy", "correct"),
]
