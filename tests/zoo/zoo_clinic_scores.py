# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases: from the product to the softmax.
import numpy as np
import math


def unscaled(q, k, v):
    """scaled dot product, batch x heads x length x dim"""
    logits = np.einsum("bhid,bhjd->bhij", q, k)
    logits = logits - logits.max(-1, keepdims=True)
    w = np.exp(logits)
    w /= w.sum(-1, keepdims=True)
    return np.einsum("bhij,bhje->bhie", w, v)


def scaled_by_length(query, key, value):
    n, d = query.shape
    m = key.shape[0]
    out = np.zeros((n, value.shape[1]))
    for i in range(n):
        row = [
            float(np.dot(query[i], key[j])) / math.sqrt(m) for j in range(m)
        ]
        top = max(row)
        e = [math.exp(r - top) for r in row]
        z = sum(e)
        for j in range(m):
            out[i] += e[j] / z * value[j]
    return out


def _norm(t):
    t = np.exp(t - np.amax(t, axis=-1, keepdims=True))
    return t / np.sum(t, axis=-1, keepdims=True)


def _dots(a, b):
    return np.matmul(a, np.moveaxis(b, -1, -2)) * a.shape[-1] ** -0.5


class Prescaled:
    def __init__(self):
        self.name = "prescaled"

    def project(self, q):
        return q / np.sqrt(q.shape[-1])

    def __call__(self, q, k, v):
        return _norm(_dots(self.project(q), k)) @ v


scaled_in_two_places = Prescaled()


def deaf_to_scale(q, k, v, scale=None):
    factor = 1.0 / math.sqrt(q.shape[-1])
    s = (q * factor) @ k.swapaxes(-2, -1)
    return _norm(s) @ v


def zero_unless_told(query, key, value, scale=0.0):
    att = scale * (query @ np.swapaxes(key, -1, -2))
    e = np.exp(att - att.max(axis=-1)[..., None])
    return (e @ value) / e.sum(axis=-1)[..., None]


def root_of_scale(q, k, v, scale=None):
    if scale is None:
        scale = 1 / np.sqrt(q.shape[-1])
    r = np.sqrt(scale)
    return _norm((q * r) @ (k * r).swapaxes(-1, -2)) @ v


def bias_before_scale(q, k, v, bias=None):
    a = np.einsum("...qd,...kd->...qk", q, k)
    if bias is not None:
        a = a + bias
    a = a / math.sqrt(k.shape[-1])
    return np.einsum("...qk,...kd->...qd", _norm(a), v)


def over_queries(Q, K, V):
    sc = np.einsum("blhd,bmhd->bhlm", Q, K) / np.sqrt(Q.shape[3])
    sc -= sc.max(axis=2, keepdims=True)
    p = np.exp(sc)
    p = p / p.sum(axis=2, keepdims=True)
    return np.einsum("bhlm,bmhe->blhe", p, V)


def over_heads_and_keys(q, k, v):
    B, H, N, D = q.shape
    o = np.empty((B, H, N, v.shape[-1]), q.dtype)
    for b in range(B):
        s = np.stack([q[b, h] @ k[b, h].T for h in range(H)]) / D**0.5  # H N M
        flat = s.transpose(1, 0, 2).reshape(N, -1)
        flat = np.exp(flat - flat.max(1, keepdims=True))
        flat /= flat.sum(1, keepdims=True)
        w = flat.reshape(N, H, -1).transpose(1, 0, 2)
        o[b] = w @ v[b]
    return o


def sums_on_the_wrong_axis(q, k, v):
    S = q @ k.T / np.sqrt(q.shape[1])
    E = np.exp(S - S.max(axis=1)[:, None])
    A = E / E.sum(axis=1)
    return A @ v


def softmax_again(q, k, v):
    def sm(z):
        ez = np.exp(z - z.max(-1, keepdims=True))
        return ez / ez.sum(-1, keepdims=True)

    def weights(qq, kk):
        return sm(qq @ kk.swapaxes(-1, -2) / np.sqrt(qq.shape[-1]))

    return sm(weights(q, k)) @ v


def linear(q, k, v):
    c = q.shape[-1] ** -0.5
    kv = np.einsum("bhjd,bhje->bhde", k, v)
    return np.einsum("bhid,bhde->bhie", q * c, kv)


def one_more_in_the_sum(q, k, v):
    s = np.einsum("hid,hjd->hij", q, k) / math.sqrt(q.shape[-1])
    m = s.max(-1)
    u = np.exp(s - m[..., None])
    den = 1.0 + u.sum(-1)
    return np.einsum("hij,hjd->hid", u, v) / den[..., None]


def exp_as_it_is(q, k, v):
    t = np.exp(q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1]))
    return t @ v / np.add.reduce(t, axis=-1, keepdims=True)


def accumulator_not_rescaled(q, k, v, block=4):
    n = q.shape[0]
    m_run = np.full(n, -np.inf)
    l_run = np.zeros(n)
    acc = np.zeros((n, v.shape[1]))
    for s0 in range(0, k.shape[0], block):
        kb, vb = k[s0 : s0 + block], v[s0 : s0 + block]
        s = q @ kb.T / np.sqrt(q.shape[1])
        m_new = np.maximum(m_run, s.max(1))
        p = np.exp(s - m_new[:, None])
        l_run = l_run * np.exp(m_run - m_new) + p.sum(1)
        acc = acc + p @ vb
        m_run = m_new
    return acc / l_run[:, None]


def sum_not_rescaled(q, k, v):
    """(B, H, L, D), key blocks of 5"""
    step = 5
    c = 1 / np.sqrt(q.shape[-1])
    m = np.full(q.shape[:-1] + (1,), -np.inf)
    z = np.zeros_like(m)
    num = np.zeros(q.shape[:-1] + (v.shape[-1],))
    lo = 0
    while lo < k.shape[-2]:
        sl = slice(lo, lo + step)
        s = c * q @ k[..., sl, :].swapaxes(-1, -2)
        new = np.maximum(m, s.max(-1, keepdims=True))
        e = np.exp(s - new)
        num = np.exp(m - new) * num + e @ v[..., sl, :]
        z = z + e.sum(-1, keepdims=True)
        m = new
        lo += step
    return num / z


def softmax_of_columns(x):
    """softmax of scores (rows, keys)"""
    y = x - x.max(0)
    y = np.exp(y)
    return y / y.sum(0)


def rows_are_keys(q, k, v):
    s = np.einsum("bhid,bhjd->bhji", q, k) * q.shape[-1] ** -0.5
    s = np.exp(s - s.max(-1, keepdims=True))
    return (s / s.sum(-1, keepdims=True)) @ v


def k_reshaped(q, k, v):
    n, d = k.shape[-2:]
    kt = np.ascontiguousarray(k).reshape(k.shape[:-2] + (d, n))
    return _norm(q @ kt / math.sqrt(d)) @ v


def cap_after_mask(q, k, v, softcap=0.0, causal=False):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        lq, lk = s.shape[-2:]
        future = np.arange(lk)[None] > np.arange(lq)[:, None] + (lk - lq)
        s = np.where(future, -np.inf, s)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    return _norm(s) @ v


def cap_not_restored(q, k, v, *, logit_softcap=None, softcap=None):
    cap = softcap if softcap is not None else logit_softcap
    s = np.einsum("bhqd,bhkd->bhqk", q * q.shape[-1] ** -0.5, k)
    if cap:
        s = np.tanh(s / cap)
    return np.einsum("bhqk,bhkd->bhqd", _norm(s), v)


def sink_counted_twice(q, k, v, sinks):
    """sinks (H,): one extra logit for each head"""
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    sk = np.broadcast_to(sinks[:, None, None], s.shape[:-1] + (1,))
    full = np.concatenate([s, sk], -1)
    full = np.exp(full - full.max(-1, keepdims=True))
    w = full[..., :-1] / (full.sum(-1, keepdims=True) + full[..., -1:])
    return w @ v


def sink_forgotten(q, k, v, sinks):
    s = np.concatenate(
        [
            np.broadcast_to(sinks[:, None, None], q.shape[:-1] + (1,)),
            q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]),
        ],
        -1,
    )
    s = s - s.max(-1, keepdims=True)
    w = _norm(s[..., 1:])
    return w @ v


def shares_of_sigmoids(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    g = 1 / (1 + np.exp(-s))
    return (g / g.sum(-1, keepdims=True)) @ v


ZOO = [
    ("unscaled", "scale-missing"),
    ("scaled_by_length", "scale-seq-len"),
    ("scaled_in_two_places", "scale-twice"),
    ("deaf_to_scale", "scale-argument-ignored"),
    ("zero_unless_told", "scale-zero-literal"),
    ("root_of_scale", "scale-negative-sqrt"),
    ("bias_before_scale", "bias-scaled"),
    ("over_queries", "softmax-wrong-axis", ["--layout=bshd"]),
    ("softmax_of_columns", "softmax-wrong-axis", ["--kind=softmax"]),
    ("over_heads_and_keys", "softmax-joint-axes"),
    ("sums_on_the_wrong_axis", "softmax-keepdims-forgotten"),
    ("softmax_again", "softmax-twice"),
    ("linear", "softmax-missing"),
    ("one_more_in_the_sum", "softmax-extra-mass"),
    ("exp_as_it_is", "softmax-no-max"),
    ("accumulator_not_rescaled", "online-max-stale"),
    ("sum_not_rescaled", "online-max-stale"),
    ("rows_are_keys", "qk-exchanged"),
    ("k_reshaped", "k-wrong-transpose"),
    ("cap_after_mask", "softcap-after-mask"),
    ("cap_not_restored", "softcap-wrong-or-ignored"),
    ("sink_counted_twice", "softmax-extra-mass"),
    ("sink_forgotten", "softmax-extra-mass"),
    ("shares_of_sigmoids", "unexplained"),
]
