# SPDX-License-Identifier: Apache-2.0
#
# Style: hand-written gradients, each with its own forward pass.
import numpy as np


def forward(q, k, v, causal=False, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = np.einsum("...id,...jd->...ij", q, k) * scale
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True), scale


def right(do, q, k, v, causal=False, scale=None):
    p, scale = forward(q, k, v, causal, scale)
    dv = np.einsum("...ij,...ie->...je", p, do)
    dp = np.einsum("...ie,...je->...ij", do, v)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, dv


def right_by_jacobian(grad_out, query, key, value):
    """(len, dim), the Jacobian of each row written out"""
    p, scale = forward(query, key, value)
    dv = p.T @ grad_out
    dp = grad_out @ value.T
    ds = np.stack([(np.diag(r) - np.outer(r, r)) @ g
                   for r, g in zip(p, dp)]) * scale
    return ds @ key, ds.T @ query, dv


def right_with_saved(dout, q, k, v, out, softmax_lse):
    scale = q.shape[-1] ** -0.5
    g = q.shape[1] // k.shape[1]
    kk, vv = np.repeat(k, g, 1), np.repeat(v, g, 1)
    p = np.exp(q @ kk.swapaxes(-1, -2) * scale - softmax_lse[..., None])
    delta = (dout * out).sum(-1, keepdims=True)
    ds = p * (dout @ vv.swapaxes(-1, -2) - delta) * scale
    dk, dv = ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dout
    b, h, m, d = k.shape
    return (ds @ kk, dk.reshape(b, h, g, m, d).sum(2),
            dv.reshape(b, h, g, m, -1).sum(2))


def no_delta(do, q, k, v):
    p, scale = forward(q, k, v)
    ds = p * (do @ v.swapaxes(-1, -2)) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def elementwise_softmax(do, q, k, v):
    p, scale = forward(q, k, v)
    ds = p * (1 - p) * (do @ v.swapaxes(-1, -2)) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def causal_forgotten(do, q, k, v, causal=False, scale=None):
    return right(do, q, k, v, False, scale)


def causal_in_dv_only(do, q, k, v, causal=False):
    dv = right(do, q, k, v, causal)[2]
    dq, dk, _ = right(do, q, k, v, False)
    return dq, dk, dv


def unscaled_gradients(do, q, k, v):
    dq, dk, dv = right(do, q, k, v)
    r = q.shape[-1] ** 0.5
    return dq * r, dk * r, dv


def unscaled_dk(do, q, k, v):
    dq, dk, dv = right(do, q, k, v)
    return dq, dk * q.shape[-1] ** 0.5, dv


def one_head_of_the_group(do, q, k, v):
    g = q.shape[1] // k.shape[1]
    dq, dk, dv = right(do, q, np.repeat(k, g, 1), np.repeat(v, g, 1))
    return dq, dk[:, g - 1::g], dv[:, g - 1::g]


def mean_of_the_group(do, q, k, v):
    g = q.shape[1] // k.shape[1]
    b, h, m, d = k.shape
    dq, dk, dv = right(do, q, np.repeat(k, g, 1), np.repeat(v, g, 1))
    return (dq, dk.reshape(b, h, g, m, d).mean(2),
            dv.reshape(b, h, g, m, -1).mean(2))


def dk_not_transposed(do, q, k, v):
    p, scale = forward(q, k, v)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    return ds @ k, ds @ q, p.swapaxes(-1, -2) @ do


def exchanged(do, q, k, v):
    dq, dk, dv = right(do, q, k, v)
    return dk, dq, dv


def delta_over_columns(do, q, k, v):
    p, scale = forward(q, k, v)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-2, keepdims=True)) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def dropout_left_in(do, q, k, v):
    p, scale = forward(q, k, v)
    keep = np.random.default_rng(3).random(p.shape) > 0.2
    pd = p * keep / 0.8
    dp = (do @ v.swapaxes(-1, -2)) * keep / 0.8
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, pd.swapaxes(-1, -2) @ do


def halved(do, q, k, v):
    return tuple(x / 2 for x in right(do, q, k, v))


def negative(do, q, k, v):
    dq, dk, dv = right(do, q, k, v)
    return -dq, -dk, dv


def delta_of_a_mean(do, q, k, v, o):
    p, scale = forward(q, k, v)
    delta = (do * o).mean(-1, keepdims=True)
    ds = p * (do @ v.swapaxes(-1, -2) - delta) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def scaled_twice(do, q, k, v):
    p, scale = forward(q, k, v)
    dp = do @ v.swapaxes(-1, -2)
    ds = scale * p * (dp - (p * dp).sum(-1, keepdims=True))
    return scale * ds @ k, scale * ds.swapaxes(-1, -2) @ q, \
        p.swapaxes(-1, -2) @ do


def forward_too_sharp(do, q, k, v):
    return right(do, q, k, v, scale=1.0)


S = "bwd-softmax-or-mask"
R = "bwd-reduction-scale-layout"
ZOO = [
    ("right", "correct", ["--kind=backward"]),
    ("right", "correct"),
    ("right", "correct", ["--kind=backward", "--expect=causal=top_left"]),
    ("right_by_jacobian", "correct", ["--kind=backward"]),
    ("right_with_saved", "correct"),
    ("no_delta", S), ("elementwise_softmax", S), ("causal_forgotten", S),
    ("causal_in_dv_only", S), ("unscaled_gradients", R), ("unscaled_dk", R),
    ("one_head_of_the_group", R), ("mean_of_the_group", R),
    ("dk_not_transposed", R), ("exchanged", R), ("delta_over_columns", S),
    ("dropout_left_in", S), ("halved", R), ("negative", R),
    ("delta_of_a_mean", S), ("scaled_twice", R),
    ("forward_too_sharp", "scale-missing|" + R),
]
