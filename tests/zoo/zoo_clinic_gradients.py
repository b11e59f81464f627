# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases: gradients.
import numpy as np


def _p(q, k, hide=None):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if hide is not None:
        s = np.where(hide, -np.inf, s)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def without_delta(do, q, k, v):
    p = _p(q, k)
    dv = p.swapaxes(-1, -2) @ do
    ds = p * (do @ v.swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, dv


def mask_forgotten(do, q, k, v):
    lq, lk = q.shape[-2], k.shape[-2]
    future = np.triu(np.ones((lq, lk), bool), 1)
    p = _p(q, k, future)
    dv = np.einsum("...ij,...id->...jd", p, do)
    full = _p(q, k)
    dp = np.einsum("...id,...jd->...ij", do, v)
    ds = full * (dp - (full * dp).sum(-1, keepdims=True))
    ds *= q.shape[-1] ** -0.5
    return (
        np.einsum("...ij,...jd->...id", ds, k),
        np.einsum("...ij,...id->...jd", ds, q),
        dv,
    )


def dk_unscaled(do, q, k, v):
    sc = 1.0 / np.sqrt(q.shape[-1])
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for i in range(q.shape[0]):
        s = sc * (k @ q[i])
        p = np.exp(s - s.max())
        p /= p.sum()
        dp = v @ do[i]
        ds = p * (dp - p @ dp)
        dq[i] = sc * (ds @ k)
        dk += np.outer(ds, q[i])
        dv += np.outer(p, do[i])
    return dq, dk, dv


def last_head_of_the_group(do, q, k, v):
    B, H, L, D = q.shape
    G = k.shape[1]
    r = H // G
    kk, vv = np.repeat(k, r, 1), np.repeat(v, r, 1)
    p = _p(q, kk)
    dp = do @ vv.transpose(0, 1, 3, 2)
    ds = p * (dp - np.sum(p * dp, -1, keepdims=True)) / np.sqrt(D)
    dq = ds @ kk
    dk, dv = np.zeros_like(k), np.zeros_like(v)
    for h in range(H):
        dk[:, h // r] = ds[:, h].transpose(0, 2, 1) @ q[:, h]
        dv[:, h // r] = p[:, h].transpose(0, 2, 1) @ do[:, h]
    return dq, dk, dv


def delta_of_o_alone(do, q, k, v):
    p = _p(q, k)
    o = p @ v
    delta = (o * o).sum(-1)
    dp = np.einsum("bhie,bhje->bhij", do, v)
    ds = p * (dp - delta[..., None]) * q.shape[-1] ** -0.5
    return (
        np.einsum("bhij,bhjd->bhid", ds, k),
        np.einsum("bhij,bhid->bhjd", ds, q),
        np.einsum("bhij,bhie->bhje", p, do),
    )


def scaled_twice(do, q, k, v):
    d = q.shape[-1]
    P = _p(q, k)
    dP = do @ np.swapaxes(v, -1, -2)
    dS = P * dP - P * (P * dP).sum(-1, keepdims=True)
    return (
        dS @ k / d,
        np.swapaxes(dS, -1, -2) @ q / d,
        np.swapaxes(P, -1, -2) @ do,
    )


ZOO = [
    ("without_delta", "bwd-softmax-or-mask"),
    ("mask_forgotten", "bwd-softmax-or-mask", ["--expect=causal=top_left"]),
    ("dk_unscaled", "bwd-reduction-scale-layout"),
    ("last_head_of_the_group", "bwd-reduction-scale-layout"),
    ("delta_of_o_alone", "bwd-softmax-or-mask"),
    ("scaled_twice", "bwd-reduction-scale-layout"),
]
