# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases: what hides keys.
import numpy as np
from numpy import inf


def smax(a):
    a = a - a.max(-1, keepdims=True)
    a = np.exp(a)
    return a / a.sum(-1, keepdims=True)


def sc(q, k):
    return np.matmul(q, np.swapaxes(k, -1, -2)) / np.sqrt(q.shape[-1])


def hidden_late(q, k, v, mask):
    p = smax(sc(q, k))
    p = p * mask
    return p @ v


def triangle_of_scores(q, k, v):
    """causal attention over (heads, time, dim)"""
    T = q.shape[-2]
    att = (q @ k.transpose(0, 2, 1)) * (1.0 / np.sqrt(k.shape[-1]))
    att = np.tril(att)
    return smax(att) @ v


def mask_added(q, k, v, attn_mask=None):
    w = np.einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5
    if attn_mask is not None:
        w = w + attn_mask
    w = np.exp(w - w.max(axis=-1, keepdims=True))
    return np.einsum("...ij,...jd->...id", w / w.sum(-1, keepdims=True), v)


class CausalHead:
    FILL = -1e4

    def __call__(self, q, k, v):
        t, s = q.shape[-2], k.shape[-2]
        a = sc(q, k)
        keep = np.tri(t, s, dtype=bool)
        a = np.where(keep, a, self.FILL)
        return smax(a) @ v


ten_thousand_below = CausalHead()


def fifty_below(q, k, v, mask):
    s = sc(q, k)
    s = np.where(mask, s, -50.0)
    w = smax(s)
    w = np.where(mask.any(-1, keepdims=True), w, 0)
    return w @ v


def rows_count_from_zero(q, k, v):
    att = sc(q, k)
    rows, cols = np.indices(att.shape[-2:])
    att[..., cols > rows] = -inf
    return smax(att) @ v


def sees_one_ahead(q, k, v):
    B, L, H, D = q.shape
    out = np.zeros(q.shape[:3] + (v.shape[-1],))
    for b in range(B):
        for h in range(H):
            for t in range(L):
                stop = min(t + 2, k.shape[1])
                s = k[b, :stop, h] @ q[b, t, h] / np.sqrt(D)
                e = np.exp(s - s.max())
                out[b, t, h] = (e / e.sum()) @ v[b, :stop, h]
    return out


def never_itself(q, k, v):
    n = q.shape[-2]
    hidden = np.triu(np.ones((n, n), bool), k=0)
    s = np.where(hidden, -inf, sc(q, k))
    top = s.max(-1, keepdims=True)
    top[~np.isfinite(top)] = 0
    e = np.exp(s - top)
    z = e.sum(-1, keepdims=True)
    return np.divide(e, z, out=np.zeros_like(e), where=z > 0) @ v


def drops_what_is_kept(q, k, v, mask=None):
    s = sc(q, k)
    if mask is not None:
        s = np.ma.array(s, mask=np.broadcast_to(mask, s.shape)).filled(-inf)
    m = np.maximum(s.max(-1, keepdims=True), -1e300)
    e = np.exp(s - m)
    return (e / np.maximum(e.sum(-1, keepdims=True), 1e-300)) @ v


def mask_on_transposed(q, k, v, mask=None):
    """2-D; the scores are kept as (keys, queries)"""
    st = k @ q.T / np.sqrt(q.shape[1])
    if mask is not None:
        st = np.where(mask, st, -inf)
    m = st.max(0)
    m = np.where(np.isneginf(m), 0, m)
    e = np.exp(st - m)
    z = e.sum(0)
    z[z == 0] = 1
    return (e / z).T @ v


def mask_by_heads_first(q, k, v, attn_mask=None):
    B, H, L, D = q.shape
    S = k.shape[2]
    q3, k3, v3 = (t.reshape(B * H, t.shape[2], t.shape[3]) for t in (q, k, v))
    a = np.einsum("nld,nsd->nls", q3, k3) / D**0.5
    if attn_mask is not None:
        full = np.broadcast_to(attn_mask, (B, H, L, S))
        full = full.transpose(1, 0, 2, 3).reshape(B * H, L, S)
        a = np.where(full, a, -inf)
    mx = a.max(-1, keepdims=True)
    e = np.exp(a - np.where(mx == -inf, 0, mx))
    z = e.sum(-1, keepdims=True)
    o = np.einsum("nls,nsd->nld", e / np.where(z == 0, 1, z), v3)
    return o.reshape(B, H, L, -1)


def three_before_itself(q, k, v):
    "three keys: itself and two before"
    lq, lk = q.shape[-2], k.shape[-2]
    pos = np.arange(lq) + lk - lq
    dist = pos[:, None] - np.arange(lk)
    ok = (dist >= 0) & (dist <= 3)
    return (
        np.where(ok.any(1)[:, None], smax(np.where(ok, sc(q, k), -inf)), 0) @ v
    )


def window_by_rows(q, k, v, width=3):
    s = sc(q, k)
    lq, lk = s.shape[-2:]
    i = np.arange(lq)[:, None]
    j = np.arange(lk)[None, :]
    ok = (j <= i + (lk - lq)) & (j > i - width)
    w = smax(np.where(ok, s, -inf))
    w[..., ~ok.any(axis=-1), :] = 0
    return w @ v


def window_with_masks_only(q, k, v, mask=None, window=None):
    s = sc(q, k)
    if mask is not None:
        keep = np.broadcast_to(mask, s.shape)
        if window is not None:
            lq, lk = s.shape[-2:]
            d = np.arange(lk)[None] - (np.arange(lq)[:, None] + lk - lq)
            left, right = window
            if left >= 0:
                keep = keep & (d >= -left)
            if right >= 0:
                keep = keep & (d <= right)
        s = np.where(keep, s, -inf)
    m = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(m == -inf, 0, m))
    z = e.sum(-1, keepdims=True)
    return e @ v / np.where(z == 0, 1, z)


def causal_or_mask(q, k, v, mask=None, is_causal=False):
    s = sc(q, k)
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -inf)
    elif mask is not None:
        s = np.where(mask, s, -inf)
    m = np.max(s, -1, keepdims=True, initial=-1e200)
    e = np.exp(s - m)
    z = e.sum(-1, keepdims=True)
    z = z + (z == 0)
    return (e / z) @ v


def nan_where_nothing_is(query, key, value, attn_mask=None):
    s = sc(query, key)
    if attn_mask is not None:
        s = np.where(attn_mask, s, -inf)
    with np.errstate(invalid="ignore"):
        return smax(s) @ value


def lowest_number(q, k, v, mask):
    s = sc(q, k)
    s = np.where(mask, s, np.finfo(s.dtype).min)
    return smax(s) @ v


def zero_times_infinity(q, k, v, mask):
    with np.errstate(all="ignore"):
        add = (1.0 - mask.astype(float)) * -inf
        s = sc(q, k) + add
        return smax(s) @ v


P_DROP = 0.1


def always_drops(q, k, v):
    w = smax(sc(q, k))
    keep = np.random.rand(*w.shape) >= P_DROP
    return (w * keep / (1 - P_DROP)) @ v


def tiles_of_eight(q, k, v):
    """keys in tiles of 8, padded with zeros"""
    T = 8
    lk = k.shape[-2]
    pad = -lk % T
    width = [(0, 0)] * (k.ndim - 2) + [(0, pad), (0, 0)]
    kp, vp = np.pad(k, width), np.pad(v, width)
    m = np.full(q.shape[:-1], -inf)
    l = np.zeros(q.shape[:-1])
    o = np.zeros(q.shape[:-1] + v.shape[-1:])
    for t in range(0, lk + pad, T):
        s = sc(q, kp[..., t : t + T, :])
        mn = np.maximum(m, s.max(-1))
        a = np.exp(m - mn)
        p = np.exp(s - mn[..., None])
        l = l * a + p.sum(-1)
        o = o * a[..., None] + p @ vp[..., t : t + T, :]
        m = mn
    return o / l[..., None]


ZOO = [
    ("hidden_late", "mask-after-softmax"),
    ("triangle_of_scores", "mask-fill-zero"),
    ("mask_added", "mask-01-added", ["--expect=mask_true=keep"]),
    (
        "ten_thousand_below",
        "mask-finite-sentinel",
        ["--expect=causal=top_left"],
    ),
    ("fifty_below", "mask-finite-sentinel", ["--expect=mask_true=keep"]),
    (
        "rows_count_from_zero",
        "causal-corner",
        ["--expect=causal=bottom_right"],
    ),
    (
        "sees_one_ahead",
        "causal-diagonal-shift",
        ["--layout=bshd", "--expect=causal=top_left"],
    ),
    (
        "never_itself",
        "causal-diagonal-shift",
        ["--expect=causal=bottom_right"],
    ),
    ("drops_what_is_kept", "mask-polarity", ["--expect=mask_true=keep"]),
    ("mask_on_transposed", "mask-wrong-axis", ["--expect=mask_true=keep"]),
    (
        "mask_by_heads_first",
        "mask-batch-head-order",
        ["--expect=mask_true=keep"],
    ),
    (
        "three_before_itself",
        "window-off-by-one",
        ["--expect=causal=bottom_right,window=2:0"],
    ),
    (
        "window_by_rows",
        "window-from-local-row",
        ["--expect=causal=bottom_right,window=2:0"],
    ),
    ("window_with_masks_only", "window-ignored-or-zero"),
    ("causal_or_mask", "mask-dropped"),
    ("nan_where_nothing_is", "empty-row-nan", ["--expect=mask_true=keep"]),
    ("lowest_number", "empty-row-mean", ["--expect=mask_true=keep"]),
    (
        "zero_times_infinity",
        "masked-nan-leak|output-nan",
        ["--expect=mask_true=keep"],
    ),
    ("always_drops", "dropout-not-off"),
    ("tiles_of_eight", "tail-tile-unmasked"),
]
