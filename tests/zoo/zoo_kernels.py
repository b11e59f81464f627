# SPDX-License-Identifier: Apache-2.0
#
# Style: flash attention written out in NumPy, tiles of keys and of queries,
# running maximum and sum, options by the names of kernels.
import numpy as np


def flash(q, k, v, *, causal=False, softmax_scale=None, window_size=(-1, -1),
          softcap=0.0, alibi_slopes=None, block_q=4, block_k=4, bug=None):
    """q (batch, seqlen, heads, headdim), as flash_attn_func has it."""
    b, n, h, d = q.shape
    m, hk = k.shape[1], k.shape[2]
    if softmax_scale is None:
        softmax_scale = d ** -0.5
    out = np.zeros((b, n, h, v.shape[-1]), q.dtype)
    off = m - n
    for bi in range(b):
        for hi in range(h):
            kv = hi % hk if bug == "modulo" else hi // (h // hk)
            for qs in range(0, n, block_q):
                qe = min(qs + block_q, n)
                acc = np.zeros((qe - qs, v.shape[-1]))
                mi = np.full(qe - qs, -np.inf)
                if bug == "starts at zero":
                    mi = np.zeros(qe - qs)
                li = np.zeros(qe - qs)
                rows = np.arange(qs, qe)[:, None]
                last = m
                if bug == "drops the tail":
                    last = max(m // block_k, 1) * block_k if m >= block_k \
                        else m
                for ks in range(0, last, block_k):
                    ke = min(ks + block_k, m)
                    s = q[bi, qs:qe, hi] @ k[bi, ks:ke, kv].T
                    cols = np.arange(ks, ke)[None]
                    s = s * softmax_scale
                    if bug == "zero tail" and ke - ks < block_k:
                        pad = block_k - (ke - ks)
                        s = np.pad(s, ((0, 0), (0, pad)))
                        cols = np.arange(ks, ks + block_k)[None]
                    if softcap > 0:
                        s = softcap * np.tanh(s / softcap)
                    if alibi_slopes is not None:
                        s = s - alibi_slopes[hi] * np.abs(rows + off - cols)
                    see = np.ones(s.shape, bool)
                    if causal:
                        bound = rows + off
                        if bug == "block bound":
                            bound = qe - 1 + off + 0 * rows
                        see &= cols <= bound
                    if window_size[0] >= 0:
                        see &= cols >= rows + off - window_size[0]
                    if window_size[1] >= 0:
                        see &= cols <= rows + off + window_size[1] - \
                            (bug == "short right")
                    s = np.where(see, s, -np.inf)
                    new = np.maximum(mi, s.max(1))
                    safe = np.where(np.isinf(new), 0, new)
                    p = np.exp(s - safe[:, None])
                    alpha = np.exp(np.where(np.isinf(mi), -np.inf,
                                            mi - safe))
                    if bug == "acc not rescaled":
                        li = li * alpha + p.sum(1)
                    elif bug == "sum not rescaled":
                        li = li + p.sum(1)
                        acc = acc * alpha[:, None]
                    else:
                        li = li * alpha + p.sum(1)
                        acc = acc * alpha[:, None]
                    vt = v[bi, ks:ke, kv]
                    acc = acc + p[:, :ke - ks] @ vt
                    mi = new
                if bug == "not normalised":
                    out[bi, qs:qe, hi] = acc
                else:
                    out[bi, qs:qe, hi] = acc / np.where(li == 0, 1,
                                                        li)[:, None]
    return out


def variant(bug, **fixed):
    def attention(q, k, v, causal=False, softmax_scale=None,
                  window_size=(-1, -1), softcap=0.0, alibi_slopes=None):
        return flash(q, k, v, causal=causal, softmax_scale=softmax_scale,
                     window_size=window_size, softcap=softcap,
                     alibi_slopes=alibi_slopes, bug=bug, **fixed)
    return attention


right = variant(None)
right_odd_blocks = variant(None, block_q=3, block_k=5)
modulo = variant("modulo")
starts_at_zero = variant("starts at zero")
drops_the_tail = variant("drops the tail", block_k=3)
zero_tail = variant("zero tail", block_k=6)
block_bound = variant("block bound")
short_right = variant("short right")
acc_not_rescaled = variant("acc not rescaled", block_k=3)
sum_not_rescaled = variant("sum not rescaled", block_k=9)
not_normalised = variant("not normalised")


def split_kv(q, k, v, num_splits=3, merge="right"):
    """Parts of the keys one by one, merged by their log-sum-exp."""
    d = q.shape[-1]
    parts, lses = [], []
    for ks, vs in zip(np.array_split(k, num_splits, -2),
                      np.array_split(v, num_splits, -2)):
        if ks.shape[-2] == 0:
            continue
        s = q @ ks.swapaxes(-1, -2) / np.sqrt(d)
        top = s.max(-1, keepdims=True)
        e = np.exp(s - top)
        t = e.sum(-1, keepdims=True)
        parts.append(e / t @ vs)
        lses.append(top + np.log(t))
    lse = np.stack(lses)
    if merge == "average":
        return np.mean(parts, 0)
    if merge == "base 2":
        w = 2.0 ** (lse - lse.max(0))
    elif merge == "no max":
        w = np.exp(lse)
    else:
        w = np.exp(lse - lse.max(0))
    return (np.stack(parts) * w).sum(0) / w.sum(0)


def split_right(q, k, v):
    return split_kv(q, k, v)


def split_average(q, k, v):
    return split_kv(q, k, v, 2, "average")


def split_base_two(q, k, v):
    return split_kv(q, k, v, 3, "base 2")


def split_no_max(q, k, v):
    return split_kv(q, k, v, 3, "no max")


def stream(q, k, v, sentinel=-1e30, guard=False):
    """One key at a time, (len, dim)."""
    n, d = q.shape
    o = np.zeros((n, v.shape[1]))
    m = np.full(n, sentinel)
    t = np.zeros(n)
    for j in range(k.shape[0]):
        s = q @ k[j] / np.sqrt(d)
        new = np.maximum(m, s)
        a, p = np.exp(m - new), np.exp(s - new)
        t = t * a + p
        o = o * a[:, None] + p[:, None] * v[j]
        m = new
    return o / t[:, None]


def stream_right(q, k, v):
    return stream(q, k, v)


def stream_from_minus_hundred(q, k, v):
    return stream(q, k, v, -100.0)


ZOO = [
    ("right", "correct"),
    ("right", "correct", ["--expect=causal=bottom_right"]),
    ("right_odd_blocks", "correct"),
    ("modulo", "gqa-tile"),
    ("starts_at_zero", "online-max-stale"),
    ("drops_the_tail", "tail-tile-unmasked"),
    ("zero_tail", "tail-tile-unmasked"),
    ("block_bound", "causal-diagonal-shift"),
    ("short_right", "window-off-by-one"),
    ("acc_not_rescaled", "online-max-stale"),
    ("sum_not_rescaled", "online-max-stale"),
    ("not_normalised", "softmax-missing"),
    ("split_right", "correct"),
    ("split_average", "online-max-stale|lse-base-or-empty"),
    ("split_base_two", "lse-base-or-empty|online-max-stale"),
    ("split_no_max", "softmax-no-max"),
    ("stream_right", "correct"),
    ("stream_from_minus_hundred", "online-max-stale"),
]
