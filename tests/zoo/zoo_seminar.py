# SPDX-License-Identifier: Apache-2.0
#
# Style: a seminar's exercises: scale, bias and softmax.
import math

import numpy as np


def loops_unscaled(Q, K, V):
    n, m = len(Q), len(K)
    out = np.zeros((n, V.shape[1]))
    for i in range(n):
        raw = [sum(a * b for a, b in zip(Q[i], K[j])) for j in range(m)]
        big = max(raw)
        ws = [math.exp(r - big) for r in raw]
        z = sum(ws)
        for j in range(m):
            out[i] += ws[j] / z * V[j]
    return out


def layer_scaled_by_width(x, w_q, w_k, w_v, w_o, n_heads):
    batch, seq, d_model = x.shape
    dh = w_q.shape[1] // n_heads

    def split(t):
        return t.reshape(batch, seq, n_heads, -1).transpose(0, 2, 1, 3)

    q, k, v = split(x @ w_q), split(x @ w_k), split(x @ w_v)
    att = q @ k.transpose(0, 1, 3, 2) / np.sqrt(d_model)
    att = att - att.max(-1, keepdims=True)
    att = np.exp(att)
    att /= att.sum(-1, keepdims=True)
    y = (att @ v).transpose(0, 2, 1, 3).reshape(batch, seq, -1)
    return y @ w_o


def scaled_by_length(query, key, value):
    logits = np.einsum("bhqd,bhkd->bhqk", query, key) * key.shape[2] ** -0.5
    logits -= np.max(logits, axis=3, keepdims=True)
    probs = np.exp(logits)
    probs = probs / probs.sum(axis=3, keepdims=True)
    return np.einsum("bhqk,bhkd->bhqd", probs, value)


# two authors, two scales
def scaled_scores(a, b):
    return np.matmul(a, np.swapaxes(b, -1, -2)) / np.sqrt(a.shape[-1])


def scaled_by_two_authors(q, k, v):
    q = q * q.shape[-1] ** -0.5
    s = scaled_scores(q, k)
    w = np.exp(s - s.max(-1)[..., None])
    return w @ v / w.sum(-1)[..., None]


def scaled_by_padded_dim(q, k, v):
    d = q.shape[-1]
    extra = -d % 16
    pad = [(0, 0)] * (q.ndim - 1) + [(0, extra)]
    q, k = np.pad(q, pad), np.pad(k, pad)
    s = q @ np.moveaxis(k, -1, -2) / math.sqrt(q.shape[-1])
    w = np.exp(s - s.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    return w @ v


def scale_not_read(query, key, value, scale=None, is_causal=False):
    sm = 1.0 / math.sqrt(query.shape[-1])
    s = np.einsum("...id,...jd->...ij", query, key) * sm
    if is_causal:
        i = np.arange(s.shape[-2])[:, None]
        j = np.arange(s.shape[-1])
        s = np.where(j <= i, s, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("...ij,...je->...ie", e / e.sum(-1, keepdims=True), value)


def zero_scale_taken_literally(q, k, v, scale=0.0):
    """scale: multiplier of the logits; leave at 0.0 for the default"""
    s = scale * (q @ k.swapaxes(-2, -1))
    s = s - s.max(axis=-1, keepdims=True)
    p = np.exp(s)
    p /= p.sum(axis=-1, keepdims=True)
    return p @ v


def root_of_negative_scale(q, k, v, scale=None):
    if scale is None:
        scale = q.shape[-1] ** -0.5
    r = np.sqrt(np.float64(scale))
    qs, ks = q * r, k * r
    a = qs @ ks.swapaxes(-1, -2)
    a = np.exp(a - a.max(-1, keepdims=True))
    return (a / a.sum(-1, keepdims=True)) @ v


class ScoredWithBias:
    def __init__(self):
        self.temp = None

    def __call__(self, q, k, v, bias=None):
        s = q @ k.swapaxes(-1, -2)
        if bias is not None:
            s = s + bias
        s = s / np.sqrt(q.shape[-1])
        p = np.exp(s - s.max(-1, keepdims=True))
        return p / p.sum(-1, keepdims=True) @ v


bias_before_scale = ScoredWithBias()


def softmax_over_heads(q, k, v):
    """q, k, v: (batch, length, heads, width)"""
    s = np.einsum("blhd,bmhd->bhlm", q, k) / np.sqrt(q.shape[-1])
    s = s - s.max(axis=1, keepdims=True)
    e = np.exp(s)
    a = e / e.sum(axis=1, keepdims=True)
    return np.einsum("bhlm,bmhe->blhe", a, v)


def softmax_of_columns(x, axis=0):
    z = np.exp(x - x.max(axis=axis, keepdims=True))
    return z / z.sum(axis=axis, keepdims=True)


def default_axis_is_the_first(Q, K, V):
    return softmax_of_columns(Q @ K.T / Q.shape[1] ** 0.5) @ V


def one_sum_for_all(Q, K, V):
    S = Q.dot(K.T) / np.sqrt(K.shape[1])
    E = np.exp(S - np.max(S))
    return (E / np.sum(E)).dot(V)


def sum_without_keepdims(q, k, v):
    s = q @ k.T * q.shape[1] ** -0.5
    e = np.exp(s - s.max())
    return (e / e.sum(axis=-1)) @ v


def weights_of(q, k):
    t = q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-1])
    t = np.exp(t - np.max(t, -1, keepdims=True))
    return t / np.sum(t, -1, keepdims=True)


def weights_go_through_again(q, k, v):
    w = weights_of(q, k)
    w = np.exp(w) / np.exp(w).sum(-1, keepdims=True)
    return w @ v


def product_of_keys_and_values(q, k, v):
    kv = np.einsum("...nd,...ne->...de", k, v)
    return np.einsum("...md,...de->...me", q, kv) / np.sqrt(q.shape[-1])


def quiet_softmax(q, k, v):
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1])
    m = np.maximum(s.max(-1, keepdims=True), 0)
    e = np.exp(s - m)
    return np.einsum(
        "bhij,bhjd->bhid", e / (np.exp(-m) + e.sum(-1, keepdims=True)), v
    )


def sink_counted_twice(q, k, v, sinks):
    """sinks: (heads,)"""
    B, H, N, D = q.shape
    rep = H // k.shape[1]
    k, v = k.repeat(rep, 1), v.repeat(rep, 1)
    s = q @ k.transpose(0, 1, 3, 2) / D**0.5
    col = np.broadcast_to(sinks.reshape(1, H, 1, 1), (B, H, N, 1))
    cat = np.concatenate([s, col], -1)
    mx = cat.max(-1, keepdims=True)
    e = np.exp(cat - mx)
    denom = e.sum(-1, keepdims=True) + np.exp(col - mx)
    return e[..., :-1] / denom @ v


def one_after_the_maximum(q, k, v):
    s = (q / np.sqrt(q.shape[-1])) @ np.swapaxes(k, -1, -2)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e @ v / (1 + e.sum(-1, keepdims=True))


def exponentials_of_scores(q, k, v):
    w = np.exp(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]))
    return (w @ v) / w.sum(-1, keepdims=True)


def accumulator_not_rescaled(q, k, v, block=3):
    n, d = q.shape
    o = np.zeros((n, v.shape[1]))
    l = np.zeros(n)
    m = np.full(n, -np.inf)
    for s0 in range(0, k.shape[0], block):
        kb, vb = k[s0 : s0 + block], v[s0 : s0 + block]
        s = q @ kb.T / np.sqrt(d)
        m2 = np.maximum(m, s.max(1))
        p = np.exp(s - m2[:, None])
        l = l * np.exp(m - m2) + p.sum(1)
        o = o + p @ vb
        m = m2
    return o / l[:, None]


def maximum_begins_at_zero(q, k, v):
    out = np.empty(q.shape[:-1] + v.shape[-1:])
    for idx in np.ndindex(*q.shape[:-1]):
        head, row = idx[:-1], q[idx] / np.sqrt(q.shape[-1])
        top, tot, acc = 0.0, 0.0, np.zeros(v.shape[-1])
        for kj, vj in zip(k[head], v[head]):
            x = float(row @ kj)
            if x > top:
                f = np.exp(top - x)
                tot *= f
                acc = acc * f
                top = x
            e = np.exp(x - top)
            tot += e
            acc = acc + e * vj
        out[idx] = acc / tot
    return out


def letters_exchanged(q, k, v):
    s = np.einsum("bhid,bhjd->bhji", q, k) / np.sqrt(q.shape[-1])
    s = np.exp(s - s.max(-1, keepdims=True))
    s = s / s.sum(-1, keepdims=True)
    return s @ v


def keys_reshaped(q, k, v):
    b, h, n, d = k.shape
    s = q @ k.reshape(b, h, d, n)
    s = s / d**0.5
    s = np.exp(s - s.max(-1, keepdims=True))
    return s / s.sum(-1, keepdims=True) @ v


def sum_over_the_first_axis(x):
    ex = np.exp(x - x.max(axis=-1, keepdims=True))
    return ex / ex.sum(axis=0, keepdims=True)


def softmax_without_maximum(x):
    ex = np.exp(x)
    return ex / ex.sum(-1, keepdims=True)


ZOO = [
    ("loops_unscaled", "scale-missing"),
    ("layer_scaled_by_width", "scale-d-model"),
    ("scaled_by_length", "scale-seq-len", ["--layout=bhsd"]),
    ("scaled_by_two_authors", "scale-twice"),
    ("scaled_by_padded_dim", "scale-padded-head-dim"),
    ("scale_not_read", "scale-argument-ignored"),
    ("zero_scale_taken_literally", "scale-zero-literal"),
    ("root_of_negative_scale", "scale-negative-sqrt"),
    ("bias_before_scale", "bias-scaled"),
    ("softmax_over_heads", "softmax-wrong-axis", ["--layout=bshd"]),
    ("default_axis_is_the_first", "softmax-wrong-axis"),
    ("one_sum_for_all", "softmax-joint-axes"),
    ("sum_without_keepdims", "softmax-keepdims-forgotten"),
    ("weights_go_through_again", "softmax-twice"),
    ("product_of_keys_and_values", "softmax-missing"),
    ("quiet_softmax", "softmax-extra-mass"),
    ("sink_counted_twice", "softmax-extra-mass"),
    ("one_after_the_maximum", "softmax-extra-mass"),
    ("exponentials_of_scores", "softmax-no-max"),
    ("accumulator_not_rescaled", "online-max-stale"),
    ("maximum_begins_at_zero", "online-max-stale"),
    ("letters_exchanged", "qk-exchanged"),
    ("keys_reshaped", "k-wrong-transpose"),
    ("sum_over_the_first_axis", "softmax-wrong-axis", ["--kind=softmax"]),
    ("softmax_without_maximum", "softmax-no-max", ["--kind=softmax"]),
]
