# SPDX-License-Identifier: Apache-2.0
#
# Style: an atelier's sketches, some of them right.
import math
import numpy as np


def normalised(s):
    top = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(top), top, 0))
    z = e.sum(-1, keepdims=True)
    return e / np.where(z > 0, z, 1)


def one_head_student(q, k, v):
    # q, k, v: one head (L, D)
    a = q @ k.T / np.sqrt(q.shape[1])
    a = np.exp(a - a.max(axis=1, keepdims=True))
    a = a / a.sum(axis=1)
    return a @ v


def student_by_head_dim(q, k, v):
    # the width is head_dim
    head_dim = q.shape[1]
    a = q @ k.T / np.sqrt(head_dim)
    a = np.exp(a - a.max(axis=1, keepdims=True))
    a = a / a.sum(axis=1)
    return a @ v


def one_head_right(q, k, v):
    # q, k, v: one head (L, D)
    a = q @ k.T / np.sqrt(q.shape[1])
    a = np.exp(a - a.max(axis=1, keepdims=True))
    a = a / a.sum(axis=1, keepdims=True)
    return a @ v


def right_by_head_dim(q, k, v):
    # the width is head_dim
    head_dim = q.shape[1]
    a = q @ k.T / np.sqrt(head_dim)
    a = np.exp(a - a.max(axis=1, keepdims=True))
    a = a / a.sum(axis=1, keepdims=True)
    return a @ v


def all_heads_turned(q, k, v):
    # q, k, v: (batch, heads, L, D)
    a = q @ k.T / np.sqrt(q.shape[-1])
    return normalised(a) @ v


def additive_conversion(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        with np.errstate(all="ignore"):
            s = s + (1.0 - mask) * -np.inf
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def over_heads(q, k, v):
    """(B, L, H, D), but forgot to move H"""
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return normalised(s) @ v


def gradients_by_mean(do, q, k, v):
    # 2-D, row by row; the mean where the weighted sum belongs
    c = 1 / np.sqrt(q.shape[1])
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for i in range(len(q)):
        s = c * (k @ q[i])
        w = np.exp(s - s.max())
        w /= w.sum()
        g = v @ do[i]
        ds = w * (g - g.mean()) * c
        dq[i] = ds @ k
        dk += np.outer(ds, q[i])
        dv += np.outer(w, do[i])
    return dq, dk, dv


TURNED = {}


def turned_once(q, k, v):
    key = k.shape
    if key not in TURNED:
        TURNED[key] = np.ascontiguousarray(k.swapaxes(-1, -2))
    return normalised(q @ TURNED[key] / np.sqrt(q.shape[-1])) @ v


def forgot_to_store(q, k, v):
    out = np.zeros(q.shape[:-1] + v.shape[-1:])
    for b in np.ndindex(q.shape[:-2]):
        o = out[b].copy()
        o[:] = normalised(q[b] @ k[b].T / np.sqrt(q.shape[-1])) @ v[b]
    return out


def rotated_mixed(x, positions):
    d = x.shape[-1]
    f = 10000.0 ** (-np.arange(0, d, 2) / d)
    ang = np.asarray(positions)[..., None] * f
    ang = np.concatenate([ang, ang], -1)
    rot = np.empty_like(x)
    rot[..., 0::2] = -x[..., 1::2]
    rot[..., 1::2] = x[..., 0::2]
    return x * np.cos(ang) + rot * np.sin(ang)


def quiet_and_early(q, k, v):
    s = np.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    s = np.where(np.arange(m) <= np.arange(n)[:, None], s, -np.inf)
    top = np.maximum(s.max(-1, keepdims=True), 0)
    e = np.exp(s - top)
    w = e / (e.sum(-1, keepdims=True) + np.exp(-top))
    return np.einsum("bhij,bjhd->bihd", w, v)


def backwards_keys(q, k, v):
    """keys from last to first, one head, online"""
    rows = q.shape[0]
    acc = np.zeros((rows, v.shape[1]))
    den, mx = np.zeros(rows), np.full(rows, -np.inf)
    for kk, vv in zip(k[::-1], v[::-1]):
        s = q @ kk / math.sqrt(q.shape[1])
        new = np.maximum(mx, s)
        old = np.exp(mx - new)
        w = np.exp(s - new)
        acc = acc * old[:, None] + w[:, None] * vv
        den = den * old + w
        mx = new
    return acc / den[:, None]


def renormalised(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    p = normalised(s)
    if mask is not None:
        p = p * mask
        t = p.sum(-1, keepdims=True)
        p = np.divide(p, t, out=np.zeros_like(p), where=t > 0)
    return p @ v


def groups_as_axis(q, k, v):
    b, h, n, d = q.shape
    g = k.shape[1]
    x = q.reshape(b, g, h // g, n, d)
    s = np.einsum("bgrnd,bgmd->bgrnm", x, k) / d**0.5
    o = np.einsum("bgrnm,bgme->bgrne", normalised(s), v)
    return o.reshape(b, h, n, -1)


def hide_where_true(q, k, v, mask=None):
    """mask: True = do not look"""
    s = np.einsum("bnhd,bmhd->bhnm", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        hidden = np.broadcast_to(mask, s.shape)
        s = np.ma.masked_array(s, hidden).filled(-np.inf)
    return np.einsum("bhnm,bmhd->bnhd", normalised(s), v)


ZOO = [
    ("one_head_student", "softmax-keepdims-forgotten"),
    ("student_by_head_dim", "softmax-keepdims-forgotten"),
    ("one_head_right", "correct"),
    ("right_by_head_dim", "correct"),
    ("all_heads_turned", "k-wrong-transpose"),
    ("additive_conversion", "masked-nan-leak"),
    ("over_heads", "batch-first", ["--layout=bshd"]),
    ("gradients_by_mean", "bwd-softmax-or-mask"),
    ("turned_once", "state-kept"),
    ("forgot_to_store", "output-constant"),
    ("rotated_mixed", "rope-pairing"),
    (
        "quiet_and_early",
        "causal-corner + softmax-extra-mass",
        ["--expect=causal=bottom_right"],
    ),
    ("backwards_keys", "correct"),
    ("renormalised", "correct"),
    ("groups_as_axis", "correct"),
    ("hide_where_true", "correct"),
]
