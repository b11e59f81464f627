# SPDX-License-Identifier: Apache-2.0
#
# Kind: backward passes.
import numpy as np


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def t(x):
    return np.swapaxes(x, -1, -2)


def fold(x, n):
    """Sum over the query heads of each KV head."""
    if x.shape[1] == n:
        return x
    b, h, l, d = x.shape
    return x.reshape(b, n, h // n, l, d).sum(2)


def see(s, causal, mask):
    if causal:
        l, m = s.shape[-2:]
        s = np.where(np.tril(np.ones((l, m), bool), m - l), s, -np.inf)
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    return s


def grads(do, q, k, v, causal=False, mask=None, delta="right", q_scale=1,
          k_scale=1, both=1, unmask="", heads="sum", swap=False, dk_t=True,
          sign=1, outer=True, forward_scale=None):
    n = k.shape[1]
    kk, vv = (np.repeat(x, q.shape[1] // n, 1) for x in (k, v))
    scale = q.shape[-1] ** -0.5
    raw = q @ t(kk) * (forward_scale or scale)
    p = softmax(see(raw, causal, mask))
    free = softmax(raw)
    dv = t(free if "v" in unmask else p) @ do
    dp = do @ t(vv)
    if "s" in unmask:
        p = free
    if delta == "right":
        d = (p * dp).sum(-1, keepdims=True)
    elif delta == "none":
        d = 0
    elif delta == "sum":
        d = dp.sum(-1, keepdims=True)
    elif delta == "mean":
        d = dp.mean(-1, keepdims=True)
    else:
        d = 0
    ds = (p if outer else 1) * (dp - sign * d)
    if delta == "diagonal":
        ds = p * (1 - p) * dp
    if delta == "skip":
        ds = dp
    scale = forward_scale or scale
    dq = ds @ kk * scale * q_scale * both
    dk = (t(ds) if dk_t else ds) @ q * scale * k_scale * both
    if heads == "sum":
        dk, dv = fold(dk, n), fold(dv, n)
    elif heads == "last":
        g = q.shape[1] // n
        dk, dv = dk[:, g - 1::g], dv[:, g - 1::g]
    elif heads == "mean":
        g = q.shape[1] // n
        dk, dv = fold(dk, n) / g, fold(dv, n) / g
    elif heads == "mod":
        b, h, l, e = dk.shape
        dk = dk.reshape(b, h // n, n, l, e).sum(1)
        dv = dv.reshape(b, h // n, n, l, dv.shape[-1]).sum(1)
    if swap:
        dq, dk = dk, dq
    return dq, dk, dv


def right(do, q, k, v):
    return grads(do, q, k, v)


def right_causal(dout, q, k, v, causal=False):
    return grads(dout, q, k, v, causal)


def right_masked(do, q, k, v, mask=None):
    return grads(do, q, k, v, mask=mask)


def right_plain(grad_out, Q, K, V):
    p = softmax(Q @ K.T / np.sqrt(Q.shape[1]))
    dv = p.T @ grad_out
    dp = grad_out @ V.T
    ds = p * (dp - (dp * p).sum(1, keepdims=True)) / np.sqrt(Q.shape[1])
    return ds @ K, ds.T @ Q, dv


def right_saved(do, q, k, v, o, lse):
    scale = q.shape[-1] ** -0.5
    p = np.exp(q @ t(k) * scale - lse[..., None])
    ds = p * (do @ t(v) - (do * o).sum(-1, keepdims=True)) * scale
    return ds @ k, t(ds) @ q, t(p) @ do


def right_loops(do, q, k, v):
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    r = len(q[0]) ** -0.5
    for i in range(len(q)):
        p = softmax(k @ q[i] * r)
        dp = v @ do[i]
        delta = p @ dp
        for j in range(len(k)):
            g = p[j] * (dp[j] - delta) * r
            dv[j] += p[j] * do[i]
            dq[i] += g * k[j]
            dk[j] += g * q[i]
    return dq, dk, dv


def no_delta(do, q, k, v):
    return grads(do, q, k, v, delta="none")


def sum_delta(do, q, k, v, causal=False):
    return grads(do, q, k, v, causal, delta="sum")


def mean_delta(do, q, k, v):
    return grads(do, q, k, v, delta="mean")


def diagonal(do, q, k, v):
    return grads(do, q, k, v, delta="diagonal")


def skipped(do, q, k, v):
    return grads(do, q, k, v, delta="skip")


def outer_lost(do, q, k, v):
    return grads(do, q, k, v, outer=False)


def plus_delta(do, q, k, v):
    return grads(do, q, k, v, sign=-1)


def unmasked(do, q, k, v, causal=False):
    return grads(do, q, k, v, causal, unmask="vs")


def unmasked_v(do, q, k, v, causal=False):
    return grads(do, q, k, v, causal, unmask="v")


def unmasked_s(do, q, k, v, mask=None):
    return grads(do, q, k, v, mask=mask, unmask="s")


def dq_unscaled(do, q, k, v):
    return grads(do, q, k, v, q_scale=q.shape[-1] ** 0.5)


def dk_unscaled(do, q, k, v):
    return grads(do, q, k, v, k_scale=q.shape[-1] ** 0.5)


def both_unscaled(do, q, k, v):
    return grads(do, q, k, v, both=q.shape[-1] ** 0.5)


def both_twice(do, q, k, v, causal=False):
    return grads(do, q, k, v, causal, both=q.shape[-1] ** -0.5)


def dk_transposed(do, q, k, v):
    return grads(do, q, k, v, dk_t=False)


def exchanged(do, q, k, v):
    return grads(do, q, k, v, swap=True)


def last_head(do, q, k, v):
    return grads(do, q, k, v, heads="last")


def mean_head(do, q, k, v):
    return grads(do, q, k, v, heads="mean")


def wrong_heads(do, q, k, v):
    return grads(do, q, k, v, heads="mod")


def forward_unscaled(do, q, k, v):
    return grads(do, q, k, v, forward_scale=1.0)


ZOO = [
    ("right", "correct"),
    ("right_causal", "correct"),
    ("right_masked", "correct"),
    ("right_plain", "correct", ["--kind", "backward"]),
    ("right_saved", "correct"),
    ("right_loops", "correct"),
    ("no_delta", "bwd-softmax-or-mask"),
    ("sum_delta", "bwd-softmax-or-mask"),
    ("mean_delta", "bwd-softmax-or-mask"),
    ("diagonal", "bwd-softmax-or-mask"),
    ("skipped", "bwd-softmax-or-mask"),
    ("outer_lost", "bwd-softmax-or-mask"),
    ("plus_delta", "bwd-softmax-or-mask"),
    ("unmasked", "bwd-softmax-or-mask"),
    ("unmasked_v", "bwd-softmax-or-mask"),
    ("unmasked_s", "bwd-softmax-or-mask"),
    ("dq_unscaled", "bwd-reduction-scale-layout"),
    ("dk_unscaled", "bwd-reduction-scale-layout"),
    ("both_unscaled", "bwd-reduction-scale-layout"),
    ("both_twice", "bwd-reduction-scale-layout"),
    ("dk_transposed", "bwd-reduction-scale-layout"),
    ("exchanged", "bwd-reduction-scale-layout"),
    ("last_head", "bwd-reduction-scale-layout"),
    ("mean_head", "bwd-reduction-scale-layout"),
    ("wrong_heads", "bwd-reduction-scale-layout"),
    ("forward_unscaled", "scale-missing"),
]
