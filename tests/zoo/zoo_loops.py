# SPDX-License-Identifier: Apache-2.0
#
# Style: plain Python loops on (len, dim), as lessons have them.
import math

import numpy as np


def weigh(s):
    m = max(s)
    e = [math.exp(x - m) for x in s]
    t = sum(e)
    return [x / t for x in e]


def rows(q, k, score, see=None, weights=weigh, late=None):
    out = []
    for i in range(len(q)):
        s = []
        for j in range(len(k)):
            if see is not None and not see(i, j):
                s.append(-math.inf)
            else:
                s.append(score(i, j))
        p = weights(s)
        if late is not None:
            p = [x if late(i, j) else 0.0 for j, x in enumerate(p)]
        out.append(p)
    return out


def combine(p, v):
    o = np.zeros((len(p), v.shape[1]))
    for i in range(len(p)):
        for j in range(len(v)):
            for c in range(v.shape[1]):
                o[i, c] += p[i][j] * v[j, c]
    return o


def dot(x, y):
    t = 0.0
    for c in range(len(x)):
        t += x[c] * y[c]
    return t


def scaled(q, k):
    r = math.sqrt(len(q[0]))
    return lambda i, j: dot(q[i], k[j]) / r


def right(Q, K, V):
    return combine(rows(Q, K, scaled(Q, K)), V)


def right_causal(Q, K, V):
    return combine(rows(Q, K, scaled(Q, K), lambda i, j: j <= i), V)


def no_scale(Q, K, V):
    return combine(rows(Q, K, lambda i, j: dot(Q[i], K[j])), V)


def divided_by_d(Q, K, V):
    d = len(Q[0])
    return combine(rows(Q, K, lambda i, j: dot(Q[i], K[j]) / d), V)


def times_root(Q, K, V):
    r = math.sqrt(len(Q[0]))
    return combine(rows(Q, K, lambda i, j: dot(Q[i], K[j]) * r), V)


def root_of_length(Q, K, V):
    r = math.sqrt(len(Q))
    return combine(rows(Q, K, lambda i, j: dot(Q[i], K[j]) / r), V)


def strict(Q, K, V):
    return combine(rows(Q, K, scaled(Q, K),
                        lambda i, j: j < i or i == 0), V)


def future(Q, K, V):
    return combine(rows(Q, K, scaled(Q, K), lambda i, j: j <= i + 1), V)


def late_mask(Q, K, V):
    return combine(rows(Q, K, scaled(Q, K), late=lambda i, j: j <= i), V)


def zero_fill(Q, K, V):
    f = scaled(Q, K)
    return combine(rows(Q, K, lambda i, j: f(i, j) if j <= i else 0.0), V)


def minus_ten(Q, K, V):
    f = scaled(Q, K)
    return combine(rows(Q, K, lambda i, j: f(i, j) if j <= i else -10.0), V)


def lowered(Q, K, V):
    f = scaled(Q, K)
    return combine(rows(Q, K, lambda i, j: f(i, j) - (j > i)), V)


def columns(Q, K, V):
    f = scaled(Q, K)
    s = np.array([[f(i, j) for j in range(len(K))] for i in range(len(Q))])
    e = np.exp(s - s.max(axis=0))
    return combine(e / e.sum(axis=0), V)


def forgot_keepdims(Q, K, V):
    f = scaled(Q, K)
    s = np.array([[f(i, j) for j in range(len(K))] for i in range(len(Q))])
    e = np.exp(s - s.max())
    return (e / e.sum(axis=-1)) @ V


def forgot_both(Q, K, V):
    s = Q @ K.T / math.sqrt(Q.shape[-1])
    e = np.exp(s - s.max(axis=-1))
    return (e / e.sum(axis=-1)) @ V


def whole_softmax(Q, K, V):
    s = Q @ K.T / math.sqrt(Q.shape[-1])
    e = np.exp(s - s.max())
    return (e / e.sum()) @ V


def two_softmax(Q, K, V):
    return combine(rows(Q, K, scaled(Q, K),
                        weights=lambda s: weigh(weigh(s))), V)


def raw(Q, K, V):
    return combine(rows(Q, K, scaled(Q, K), weights=lambda s: s), V)


def linear(Q, K, V):
    return combine(rows(Q, K, scaled(Q, K),
                        weights=lambda s: [x / sum(s) for x in s]), V)


def naive_exp(Q, K, V):
    def weights(s):
        e = [np.exp(np.float64(x)) for x in s]
        return [x / sum(e) for x in e]
    return combine(rows(Q, K, scaled(Q, K), weights=weights), V)


def one_more(Q, K, V):
    def weights(s):
        m = max(max(s), 0.0)
        e = [math.exp(x - m) for x in s]
        t = sum(e) + math.exp(-m)
        return [x / t for x in e]
    return combine(rows(Q, K, scaled(Q, K), weights=weights), V)


def clamp_max(Q, K, V):
    def weights(s):
        m = 0.0
        for x in s:
            m = max(m, x)
        e = [math.exp(x - m) for x in s]
        t = sum(e)
        return [x / t if t else 0.0 for x in e]
    return combine(rows(Q, K, scaled(Q, K), weights=weights), V)


def swapped(Q, K, V):
    return combine(rows(K, Q, scaled(K, Q)), V)


def keys_as_values(Q, K, V):
    return combine(rows(Q, K, scaled(Q, K)), K)


def reshaped(Q, K, V):
    s = Q @ K.reshape(K.shape[1], K.shape[0]) / math.sqrt(Q.shape[1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ V


def inverted(Q, K, V, mask=None):
    return combine(rows(Q, K, scaled(Q, K),
                        None if mask is None
                        else lambda i, j: not mask[i][j]), V)


def mask_columns(Q, K, V, mask=None):
    return combine(rows(Q, K, scaled(Q, K),
                        None if mask is None else lambda i, j: mask[j][i]),
                   V)


def windowed(Q, K, V, window=None):
    return combine(rows(Q, K, scaled(Q, K), None if window is None
                        else lambda i, j: i - window <= j <= i), V)


def windowed_short(Q, K, V, window=None):
    return combine(rows(Q, K, scaled(Q, K), None if window is None
                        else lambda i, j: i - window + 1 < j <= i), V)


def in_place(Q, K, V):
    for i in range(len(Q)):
        Q[i] /= math.sqrt(Q.shape[1])
    return combine(rows(Q, K, lambda i, j: dot(Q[i], K[j])), V)


ZOO = [
    ("right", "correct"),
    ("right_causal", "correct"),
    ("right_causal", "correct", ["--expect", "causal=top_left"]),
    ("right_causal", "causal-corner", ["--expect", "causal=bottom_right"]),
    ("no_scale", "scale-missing"),
    ("divided_by_d", "scale-twice"),
    ("times_root", "scale-missing|scale-twice"),
    ("root_of_length", "scale-seq-len"),
    ("strict", "causal-diagonal-shift", ["--expect", "causal=top_left"]),
    ("future", "causal-diagonal-shift"),
    ("right", "mask-dropped", ["--expect", "causal=true"]),
    ("late_mask", "mask-after-softmax"),
    ("zero_fill", "mask-fill-zero"),
    ("minus_ten", "mask-finite-sentinel"),
    ("lowered", "mask-01-added"),
    ("columns", "softmax-wrong-axis"),
    ("forgot_keepdims", "softmax-keepdims-forgotten"),
    ("forgot_both", "softmax-keepdims-forgotten"),
    ("whole_softmax", "softmax-joint-axes"),
    ("two_softmax", "softmax-twice"),
    ("raw", "softmax-missing"),
    ("linear", "softmax-missing"),
    ("naive_exp", "softmax-no-max"),
    ("one_more", "softmax-extra-mass"),
    ("clamp_max", "online-max-stale"),
    ("swapped", "qk-exchanged"),
    ("keys_as_values", "v-is-k"),
    ("reshaped", "k-wrong-transpose"),
    ("inverted", "mask-polarity", ["--expect", "mask_true=keep"]),
    ("mask_columns", "mask-wrong-axis"),
    ("windowed", "window-off-by-one", ["--expect="]),
    ("windowed", "correct"),
    ("windowed_short", "window-off-by-one"),
    ("in_place", "inputs-mutated"),
]
