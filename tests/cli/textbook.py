# SPDX-License-Identifier: Apache-2.0
#
# textbook.py: attention, its gradients and rotary embedding in NumPy float64,
# written from the formulas and from nothing else in this repository. Arrays
# are (B, H, L, D). With every result comes the size of what was summed for it:
# the same sums with absolute values, to which rounding errors are relative.

import numpy as np


def philox(counter, key):
    """Philox4x32-10 on arrays: counter is four uint64 arrays of 32 bits."""
    c = [np.asarray(x, dtype=np.uint64) for x in counter]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a = np.uint64(0xD2511F53) * c[0]
        b = np.uint64(0xCD9E8D57) * c[2]
        c = [(b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), b & low,
             (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), a & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


def dropout_factors(shape, p, seed, offset):
    """1 / (1 - p) where a weight is kept, 0 where it is dropped."""
    b, h, i, j = np.indices(shape, dtype=np.uint64)
    words = philox([j // 4, i, b * np.uint64(shape[1]) + h,
                    np.full(shape, offset, np.uint64)], seed)
    word = np.choose((j % 4).astype(int), words)
    kept = word >= np.uint64(int(p * 2 ** 32))
    return np.where(kept, 1 / (1 - p) if p < 1 else 0.0, 0.0)


def rope(x, positions, base=10000.0, interleaved=False, rotary_dim=None,
         factor=1.0, inverse=False):
    """x (B, H, L, D), positions (B, L); factor is of linear scaling."""
    d = rotary_dim or x.shape[-1]
    inv_freq = base ** (-np.arange(0, d, 2) / d) / factor
    angle = positions[:, None, :, None] * inv_freq * (-1 if inverse else 1)
    y = x.copy()
    first, second = ((slice(0, d, 2), slice(1, d, 2)) if interleaved else
                     (slice(0, d // 2), slice(d // 2, d)))
    a, b = x[..., first], x[..., second]
    y[..., first] = a * np.cos(angle) - b * np.sin(angle)
    y[..., second] = b * np.cos(angle) + a * np.sin(angle)
    return y


def attention(q, k, v, *, scale=None, causal=None, window=(-1, -1),
              softcap=0.0, mask=None, bias=None, alibi_slopes=None, sinks=None,
              k_lengths=None, q_offset=None, dropout=None, do=None, dlse=None):
    """A dictionary of results, and one of their sizes.

    causal is None, "top_left" or "bottom_right"; dropout is (p, seed, offset).
    """
    B, H, Lq, D = q.shape
    group, Lk = H // k.shape[1], k.shape[2]
    K, V = (np.repeat(x, group, axis=1) for x in (k, v))
    scale = (D ** -0.5 if D else 1.0) if scale is None else scale
    if q_offset is None:
        if causal == "top_left" or (causal is None and Lq == Lk):
            q_offset = np.zeros(B, int)
        else:
            q_offset = (np.full(B, Lk) if k_lengths is None
                        else np.asarray(k_lengths)) - Lq
    p = np.arange(Lq)[None, :] + np.asarray(q_offset)[:, None]
    p, j = p[:, None, :, None], np.arange(Lk)[None, None, None, :]

    s = scale * np.einsum("bhid,bhjd->bhij", q, K)
    size_s = abs(scale) * np.einsum("bhid,bhjd->bhij", abs(q), abs(K))
    slope = np.ones_like(s)  # of the capped score by the raw one
    if softcap > 0:
        t = np.tanh(s / softcap)
        s, slope = softcap * t, 1 - t * t
    if bias is not None:
        s, size_s = s + bias, size_s + abs(np.where(np.isinf(bias), 0, bias))
    if alibi_slopes is not None:
        m = np.asarray(alibi_slopes, float)
        m = np.broadcast_to(m, (B, H))[:, :, None, None] * abs(p - j)
        s, size_s = s - m, size_s + abs(m)

    seen = np.ones((B, H, Lq, Lk), bool)
    if mask is not None:
        seen &= mask
    if causal:
        seen &= j <= p
    seen &= (window[0] < 0) | (p - window[0] <= j)
    seen &= (window[1] < 0) | (j <= p + window[1])
    if k_lengths is not None:
        seen &= j < np.asarray(k_lengths)[:, None, None, None]
    seen &= s > -np.inf

    s = np.where(seen, s, -np.inf)
    sink = (np.full((B, H, Lq), -np.inf) if sinks is None else
            np.broadcast_to(np.asarray(sinks, float)[None, :, None],
                            (B, H, Lq)))
    top = np.maximum(s.max(axis=-1, initial=-np.inf), sink)
    safe = np.where(np.isfinite(top), top, 0.0)
    e = np.exp(s - safe[..., None])
    total = e.sum(axis=-1) + np.exp(sink - safe)
    P = np.divide(e, total[..., None], out=np.zeros_like(e),
                  where=total[..., None] > 0)
    with np.errstate(divide="ignore"):
        lse = safe + np.log(total)
        logs = np.log(np.where(P > 0, P, 1.0))
    keep = (np.ones_like(P) if dropout is None else
            dropout_factors(P.shape, *dropout))

    out = {"o": np.einsum("bhij,bhjd->bhid", P * keep, V), "lse": lse,
           "weights": P, "entropy": -(P * logs).sum(axis=-1)}
    S = np.where(seen, size_s, 0).max(axis=-1, initial=0)
    if sinks is not None:
        S = np.maximum(S, abs(sink))
    size = {"S": S, "o": np.einsum("bhij,bhjd->bhid", P * keep, abs(V)),
            "lse": 1 + S, "weights": P,
            "entropy": 1 + (P * abs(logs)).sum(axis=-1)}
    if do is not None:
        backward(q, K, V, P, keep, slope, scale, p, j, seen, s, do, dlse,
                 lse, sink, out, size, group, bias, alibi_slopes, sinks)
    return out, size


def to_shape(x, shape):
    """Sum x over the axes that a broadcast of `shape` to x's had added."""
    x = x.sum(axis=tuple(range(x.ndim - len(shape))))
    axes = tuple(a for a, n in enumerate(shape) if n == 1 and x.shape[a] != 1)
    return x.sum(axis=axes, keepdims=True) if axes else x


def backward(q, K, V, P, keep, slope, scale, p, j, seen, s, do, dlse, lse,
             sink, out, size, group, bias, slopes, sinks):
    """Gradients of sum(o do) + sum(lse dlse)."""
    B, H, Lq, Lk = P.shape
    dlse = np.zeros((B, H, Lq)) if dlse is None else dlse
    dP = np.einsum("bhid,bhjd->bhij", do, V) * keep
    size_dP = np.einsum("bhid,bhjd->bhij", abs(do), abs(V)) * keep
    delta = (P * dP).sum(axis=-1, keepdims=True)
    size_delta = (P * size_dP).sum(axis=-1, keepdims=True)
    ds = P * (dP - delta + dlse[..., None])
    size_ds = P * (size_dP + size_delta + abs(dlse[..., None]))

    def heads(x):  # sum over the query heads that share a key head
        return x.reshape(B, H // group, group, *x.shape[2:]).sum(axis=2)

    for result, g, mag in ((out, ds * slope, lambda x: x),
                           (size, size_ds, abs)):
        w = P * keep
        result["dq"] = np.einsum("bhij,bhjd->bhid", g, mag(K)) * mag(scale)
        result["dk"] = heads(np.einsum("bhij,bhid->bhjd", g, mag(q))
                             * mag(scale))
        result["dv"] = heads(np.einsum("bhij,bhid->bhjd", w, mag(do)))
    for result, g in ((out, ds), (size, size_ds)):
        if bias is not None:
            result["dbias"] = to_shape(g, bias.shape)
        if slopes is not None:
            x = (-g if result is out else g) * abs(p - j)
            x = x.sum(axis=(2, 3))
            result["dslopes"] = x if np.ndim(slopes) == 2 else x.sum(axis=0)
    if sinks is not None:
        p_sink = np.exp(sink - np.where(np.isfinite(lse), lse, 0))
        out["dsinks"] = (p_sink * (dlse - delta[..., 0])).sum(axis=(0, 2))
        size["dsinks"] = (p_sink * (abs(dlse) + size_delta[..., 0])).sum(
            axis=(0, 2))
