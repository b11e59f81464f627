# SPDX-License-Identifier: Apache-2.0
#
# Built-in ALiBi, packed sequences, further options, further slips.
import numpy as np


def softmax(s, axis=-1):
    m = s.max(axis=axis, keepdims=True)
    e = np.exp(s - np.where(np.isinf(m), 0, m))
    t = e.sum(axis=axis, keepdims=True)
    return e / np.where(t == 0, 1, t)


def t(x):
    return np.swapaxes(x, -1, -2)


# ------------------------------------------------------------ ALiBi

def paper_slopes(h):
    n = 2 ** int(np.floor(np.log2(h)))
    m = [2 ** (-8 * (i + 1) / n) for i in range(n)]
    return np.array(m + [2 ** (-4 * (2 * i + 1) / n) for i in range(h - n)])


def alibi(q, k, v, m, sign=-1, causal=True):
    s = q @ t(k) / np.sqrt(q.shape[-1])
    n, l = s.shape[-2:]
    d = np.arange(n)[:, None] + l - n - np.arange(l)
    s = s + sign * m.reshape(-1, 1, 1) * np.abs(d)
    if causal:
        s = np.where(d >= 0, s, -np.inf)
    return softmax(s) @ v


def alibi_paper(q, k, v):
    return alibi(q, k, v, paper_slopes(q.shape[1]))


def alibi_both_ways(q, k, v):
    return alibi(q, k, v, paper_slopes(q.shape[1]), causal=False)


def alibi_from_zero(q, k, v):
    h = q.shape[1]
    return alibi(q, k, v, 2.0 ** (-8 * np.arange(h) / h))


def alibi_plus(q, k, v):
    return alibi(q, k, v, paper_slopes(q.shape[1]), sign=1)


def alibi_halves(q, k, v):
    return alibi(q, k, v, 0.5 ** np.arange(1, q.shape[1] + 1))


def alibi_wanted(q, k, v):
    return alibi(q, k, v, np.array([0.5, 0.25, 0.125]))


def alibi_unwanted(q, k, v):
    return alibi(q, k, v, np.array([0.125, 0.25, 0.5]))


# ------------------------------------------------------------ packed

def packed(q, k, v, cu_q, cu_k, causal=False, ignore=False, cut=None,
           local=True):
    cu_q, cu_k = list(cu_q), list(cu_k)
    if cut:
        cu_q, cu_k = cu_q[:cut] + cu_q[-1:], cu_k[:cut] + cu_k[-1:]
    a = np.searchsorted(cu_q, np.arange(len(q)), side="right") - 1
    b = np.searchsorted(cu_k, np.arange(len(k)), side="right") - 1
    see = a[:, None] == b
    i, j = np.arange(len(q)), np.arange(len(k))
    if local:
        i = i - np.take(cu_q, a) + np.diff(cu_k)[a] - np.diff(cu_q)[a]
        j = j - np.take(cu_k, b)
    if causal:
        see = see & (j <= i[:, None])
    if ignore:
        see = j <= i[:, None] if causal else np.ones_like(see)
    s = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("hij,jhd->ihd", softmax(np.where(see, s, -np.inf)), v)


def varlen_right(q, k, v, cu_seqlens_q, cu_seqlens_k):
    return packed(q, k, v, cu_seqlens_q, cu_seqlens_k)


def varlen_causal(q, k, v, cu_seqlens_q, cu_seqlens_k, causal=False):
    return packed(q, k, v, cu_seqlens_q, cu_seqlens_k, causal)


def varlen_loop(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                max_seqlen_k, causal=False):
    out = np.zeros(q.shape[:2] + v.shape[-1:])
    for a, b, c, d in zip(cu_seqlens_q, cu_seqlens_q[1:], cu_seqlens_k,
                          cu_seqlens_k[1:]):
        s = np.einsum("ihd,jhd->hij", q[a:b], k[c:d]) / np.sqrt(q.shape[-1])
        if causal:
            n, m = s.shape[-2:]
            s = np.where(np.tri(n, m, m - n, dtype=bool), s, -np.inf)
        out[a:b] = np.einsum("hij,jhd->ihd", softmax(s), v[c:d])
    return out


def varlen_ignored(q, k, v, cu_seqlens_q, cu_seqlens_k):
    return packed(q, k, v, cu_seqlens_q, cu_seqlens_k, ignore=True)


def varlen_first(q, k, v, cu_seqlens_q, cu_seqlens_k):
    return packed(q, k, v, cu_seqlens_q, cu_seqlens_k, cut=2)


def varlen_global(q, k, v, cu_seqlens_q, cu_seqlens_k, causal=False):
    return packed(q, k, v, cu_seqlens_q, cu_seqlens_k, causal, local=False)


# ------------------------------------------------------------ masks again

def causal_finite(q, k, v, causal=True):
    s = q @ t(k) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if causal:
        s = np.where(np.tri(n, m, m - n, dtype=bool), s, -1e4)
    return softmax(s) @ v


def causal_billion(q, k, v):
    s = q @ t(k) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    return softmax(np.where(np.tri(n, m, dtype=bool), s, -1e9)) @ v


def broadcast_flat(q, k, v, mask=None):
    s = q @ t(k) / np.sqrt(q.shape[-1])
    if mask is not None:
        flat = np.resize(np.asarray(mask).reshape(-1), s.shape)
        s = np.where(flat, s, -np.inf)
    return softmax(s) @ v


def weights_path(q, k, v, causal=False, return_weights=False):
    s = q @ t(k) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if causal and not return_weights:
        s = np.where(np.tri(n, m, m - n, dtype=bool), s, -np.inf)
    p = softmax(s)
    return (p @ v, p) if return_weights else p @ v


def reversed_key(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[-1])
    return softmax(s) @ v


def padded_power(q, k, v):
    d = 1 << (q.shape[-1] - 1).bit_length()
    return softmax(q @ t(k) / np.sqrt(d)) @ v


def raw_eps(q, k, v):
    e = np.exp(q @ t(k) / np.sqrt(q.shape[-1]))
    return e / (e.sum(-1, keepdims=True) + 1e-3) @ v


def annotated(query, key, value, mask=None, dropout=None):
    s = query @ t(key) / np.sqrt(query.shape[-1])
    if mask is not None:
        s = np.where(mask == 0, -1e9, s)
    p = softmax(s)
    if dropout is not None:
        p = dropout(p)
    return p @ value, p


def with_width(Q, K, V, d_k):
    return softmax(Q @ t(K) / np.sqrt(d_k)) @ V


def with_required_mask(Q, K, V, mask):
    s = Q @ t(K) / np.sqrt(Q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    return softmax(s) @ V


def nameless(a, b, c):
    return softmax(a @ t(b) / np.sqrt(a.shape[-1])) @ c


def zero_window(q, k, v, window_size=(-1, -1)):
    s = q @ t(k) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    d = np.arange(n)[:, None] + m - n - np.arange(m)
    left, right = window_size
    if left > 0:
        s = np.where(d <= left, s, -np.inf)
    if right > 0:
        s = np.where(-d <= right, s, -np.inf)
    return softmax(s) @ v


def bshd_unscaled(q, k, v):
    s = np.einsum("bihd,bjhd->bhij", q, k)
    return np.einsum("bhij,bjhd->bihd", softmax(s), v)


def dropout_default(q, k, v, dropout_p=0.2):
    p = softmax(q @ t(k) / np.sqrt(q.shape[-1]))
    if dropout_p:
        p = p * (np.random.random(p.shape) > dropout_p) / (1 - dropout_p)
    return p @ v


def eval_ignored(q, k, v, dropout_p=0.2, training=False):
    p = softmax(q @ t(k) / np.sqrt(q.shape[-1]))
    p = p * (np.random.random(p.shape) > dropout_p) / (1 - dropout_p)
    return p @ v


ZOO = [
    ("alibi_paper", "correct"),
    ("alibi_both_ways", "correct"),
    ("alibi_from_zero", "alibi-slopes-or-sign"),
    ("alibi_plus", "alibi-slopes-or-sign"),
    ("alibi_halves", "alibi-slopes-or-sign"),
    ("alibi_wanted", "correct",
     ["--expect", "causal=bottom_right,alibi_slopes=0.5:0.25:0.125"]),
    ("alibi_unwanted", "alibi-slopes-or-sign",
     ["--expect", "causal=bottom_right,alibi_slopes=0.5:0.25:0.125"]),
    ("varlen_right", "correct"),
    ("varlen_causal", "correct"),
    ("varlen_loop", "correct"),
    ("varlen_ignored", "varlen-boundary"),
    ("varlen_first", "varlen-boundary"),
    ("varlen_global", "varlen-boundary"),
    ("causal_finite", "mask-finite-sentinel"),
    ("causal_billion", "correct"),
    ("broadcast_flat", "broadcast-stride-zero|mask-batch-head-order"),
    ("weights_path", "mask-dropped"),
    ("reversed_key", "k-wrong-transpose", ["--layout", "bhsd"]),
    ("padded_power", "scale-padded-head-dim"),
    ("raw_eps", "softmax-extra-mass"),
    ("annotated", "correct"),
    ("with_width", "correct"),
    ("with_required_mask", "correct"),
    ("nameless", "correct"),
    ("zero_window", "window-ignored-or-zero", ["--expect="]),
    ("bshd_unscaled", "scale-missing"),
    ("dropout_default", "dropout-not-off"),
    ("eval_ignored", "dropout-not-off"),
]
