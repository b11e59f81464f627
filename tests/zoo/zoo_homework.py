# SPDX-License-Identifier: Apache-2.0
#
# Style: homework of a course, by the names of its assignments.
import numpy as np


def softmax(a, axis=-1):
    a = np.exp(a - np.amax(a, axis=axis, keepdims=True))
    return a / np.sum(a, axis=axis, keepdims=True)


# -------------------------------------------------------------- layers

def multi_head_attention(x, Wq, Wk, Wv, Wo, h):
    n, e = x.shape[-2:]
    outs = []
    d = Wq.shape[1] // h
    for i in range(h):
        c = slice(i * d, (i + 1) * d)
        q, k, v = x @ Wq[:, c], x @ Wk[:, c], x @ Wv[:, c]
        outs.append(softmax(q @ k.swapaxes(-1, -2) / d ** 0.5) @ v)
    return np.concatenate(outs, -1) @ Wo


def mha_sums_heads(x, Wq, Wk, Wv, Wo, h):
    """Heads are added, each with its rows of Wo: the same."""
    d = Wq.shape[1] // h
    e = Wv.shape[1] // h
    y = 0
    for i in range(h):
        q, k = x @ Wq[:, i * d:(i + 1) * d], x @ Wk[:, i * d:(i + 1) * d]
        v = x @ Wv[:, i * e:(i + 1) * e]
        y = y + softmax(q @ k.swapaxes(-1, -2) / d ** 0.5) @ v @ \
            Wo[i * e:(i + 1) * e]
    return y


def mha_strided_heads(x, Wq, Wk, Wv, Wo, h):
    """Head i takes the columns i, i + h, ..."""
    outs = []
    for i in range(h):
        q, k, v = x @ Wq[:, i::h], x @ Wk[:, i::h], x @ Wv[:, i::h]
        outs.append(softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v)
    return np.concatenate(outs, -1) @ Wo


def mha_stacked(x, Wq, Wk, Wv, Wo, h):
    """np.stack(...).reshape where concatenate was meant"""
    d = Wq.shape[1] // h
    outs = []
    for i in range(h):
        c = slice(i * d, (i + 1) * d)
        q, k, v = x @ Wq[:, c], x @ Wk[:, c], x @ Wv[:, c]
        outs.append(softmax(q @ k.swapaxes(-1, -2) / d ** 0.5) @ v)
    return np.stack(outs, -3).reshape(x.shape[:-1] + (-1,)) @ Wo


def mha_first_projection(x, Wq, Wk, Wv, Wo, h):
    """K is projected with Wq."""
    return multi_head_attention(x, Wq, Wq, Wv, Wo, h)


def mha_transposed_output(x, Wq, Wk, Wv, Wo, h):
    return multi_head_attention(x, Wq, Wk, Wv, Wo.T, h) \
        if Wo.shape[0] == Wo.shape[1] else \
        multi_head_attention(x, Wq, Wk, Wv, Wo, h)


def mha_no_bias(x, Wq, bq, Wk, bk, Wv, bv, Wo, bo, h):
    return multi_head_attention(x, Wq, Wk, Wv, Wo, h)


def mha_bias_after(x, Wq, bq, Wk, bk, Wv, bv, Wo, bo, h):
    d = Wq.shape[1] // h
    q, k, v = x @ Wq + bq, x @ Wk + bk, x @ Wv + bv
    outs = [softmax(q[..., i * d:i * d + d] @
                    k[..., i * d:i * d + d].swapaxes(-1, -2) / d ** 0.5)
            @ v[..., i * d:i * d + d] for i in range(h)]
    return np.concatenate(outs, -1) @ Wo + bo


def mha_causal(x, Wq, Wk, Wv, Wo, h, causal=True):
    d = Wq.shape[1] // h
    n = x.shape[-2]
    outs = []
    for i in range(h):
        c = slice(i * d, (i + 1) * d)
        q, k, v = x @ Wq[:, c], x @ Wk[:, c], x @ Wv[:, c]
        s = q @ k.swapaxes(-1, -2) / d ** 0.5
        if causal:
            s = np.where(np.tri(n, dtype=bool), s, -1e10)
        outs.append(softmax(s) @ v)
    return np.concatenate(outs, -1) @ Wo


def mha_masked(x, Wq, Wk, Wv, Wo, h, mask=None):
    """mask (B, L) of real tokens"""
    d = Wq.shape[1] // h
    outs = []
    for i in range(h):
        c = slice(i * d, (i + 1) * d)
        q, k, v = x @ Wq[:, c], x @ Wk[:, c], x @ Wv[:, c]
        s = q @ k.swapaxes(-1, -2) / d ** 0.5
        if mask is not None:
            s = np.where(np.asarray(mask, bool)[..., None, :], s, -1e9) \
                if np.ndim(mask) == x.ndim - 1 else \
                np.where(np.asarray(mask, bool), s, -1e9)
        outs.append(softmax(s) @ v)
    return np.concatenate(outs, -1) @ Wo


# ------------------------------------------------------------- gradients

def attention_backward(dO, Q, K, V):
    """(n, d): every derivative by hand"""
    r = 1 / np.sqrt(Q.shape[1])
    P = softmax(Q @ K.T * r)
    dV = P.T @ dO
    dP = dO @ V.T
    dS = np.zeros_like(P)
    for i in range(len(P)):
        for j in range(P.shape[1]):
            for l in range(P.shape[1]):
                dS[i, j] += dP[i, l] * P[i, l] * ((j == l) - P[i, j])
    return dS @ K * r, dS.T @ Q * r, dV


def backward_symmetric(dO, Q, K, V):
    """The sign between the two terms is wrong."""
    r = 1 / np.sqrt(Q.shape[1])
    P = softmax(Q @ K.T * r)
    dP = dO @ V.T
    dS = P * (dP + (P * dP).sum(1, keepdims=True))
    return dS @ K * r, dS.T @ Q * r, P.T @ dO


def backward_forgets_v(dO, Q, K, V):
    r = 1 / np.sqrt(Q.shape[1])
    P = softmax(Q @ K.T * r)
    dP = dO @ dO.T if len(Q) == len(K) else dO @ V.T
    dS = P * (dP - (P * dP).sum(1, keepdims=True))
    return dS @ K * r, dS.T @ Q * r, P.T @ dO


def backward_scaled_scores(dO, Q, K, V):
    """Scales dq only."""
    r = 1 / np.sqrt(Q.shape[1])
    P = softmax(Q @ K.T * r)
    dP = dO @ V.T
    dS = P * (dP - (P * dP).sum(1, keepdims=True))
    return dS @ K * r, dS.T @ Q, P.T @ dO


def backward_no_softmax(dO, Q, K, V):
    r = 1 / np.sqrt(Q.shape[1])
    P = softmax(Q @ K.T * r)
    dS = dO @ V.T
    return dS @ K * r, dS.T @ Q * r, P.T @ dO


def backward_dv_of_scores(dO, Q, K, V):
    r = 1 / np.sqrt(Q.shape[1])
    S = Q @ K.T * r
    P = softmax(S)
    dP = dO @ V.T
    dS = P * (dP - (P * dP).sum(1, keepdims=True))
    return dS @ K * r, dS.T @ Q * r, S.T @ dO


def backward_zero(dO, Q, K, V):
    return np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)


def backward_twice_dv(dO, Q, K, V):
    r = 1 / np.sqrt(Q.shape[1])
    P = softmax(Q @ K.T * r)
    dP = dO @ V.T
    dS = P * (dP - (P * dP).sum(1, keepdims=True))
    return dS @ K * r, dS.T @ Q * r, 2 * P.T @ dO


def backward_causal(do, q, k, v, is_causal=True):
    r = q.shape[-1] ** -0.5
    s = q @ k.swapaxes(-1, -2) * r
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    p = softmax(s)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * r
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def backward_other_corner(do, q, k, v, is_causal=True):
    """The forward pass is top left, this is bottom right."""
    r = q.shape[-1] ** -0.5
    s = q @ k.swapaxes(-1, -2) * r
    n, m = s.shape[-2:]
    if is_causal:
        s = np.where(np.tri(n, m, m - n, dtype=bool), s, -np.inf)
    p = softmax(s)
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * r
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


# -------------------------------------------------------------- caches

def step(q, k_cache, v_cache, cache_len):
    """q (H, 1, D), caches (H, N, D), one number"""
    k, v = k_cache[:, :cache_len], v_cache[:, :cache_len]
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def step_all(q, k_cache, v_cache, cache_len):
    return softmax(q @ k_cache.swapaxes(-1, -2)
                   / np.sqrt(q.shape[-1])) @ v_cache


def step_forgets_newest(q, k_cache, v_cache, cache_len):
    n = max(int(cache_len) - 1, 1)
    return step(q, k_cache, v_cache, n)


def step_ring(q, k_cache, v_cache, cache_len):
    """Reads from the write position on, as a ring: the order is free."""
    n = int(cache_len)
    order = np.roll(np.arange(n), n // 2)
    k, v = k_cache[:, order], v_cache[:, order]
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def step_ring_mixed(q, k_cache, v_cache, cache_len):
    """Keys in ring order, values not."""
    n = int(cache_len)
    order = np.roll(np.arange(n), 1)
    k, v = k_cache[:, order], v_cache[:, :n]
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def step_scaled_by_length(q, k_cache, v_cache, cache_len):
    k, v = k_cache[:, :cache_len], v_cache[:, :cache_len]
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(k.shape[-2])) @ v


def step_padded_zeros(q, k_cache, v_cache, cache_len):
    """Unused slots score 0."""
    n = int(cache_len)
    s = q @ k_cache.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    s = np.where(np.arange(s.shape[-1]) < n, s, 0)
    return softmax(s) @ v_cache


# ------------------------------------------------------------ rotations

def rope_qk(q, k, positions):
    """Both, (B, H, L, D), neighbours in pairs"""
    d = q.shape[-1]
    f = 1 / 10000 ** (np.arange(0, d, 2) / d)
    a = np.asarray(positions)[:, None] * f
    out = []
    for x in (q, k):
        e, o = x[..., 0::2], x[..., 1::2]
        y = np.stack([e * np.cos(a) - o * np.sin(a),
                      o * np.cos(a) + e * np.sin(a)], -1)
        out.append(y.reshape(x.shape))
    return tuple(out)


def rope_qk_mixed(q, k, positions):
    """q in pairs, k in halves"""
    d = q.shape[-1]
    f = 1 / 10000 ** (np.arange(0, d, 2) / d)
    a = np.asarray(positions)[:, None] * f
    e, o = q[..., 0::2], q[..., 1::2]
    y = np.stack([e * np.cos(a) - o * np.sin(a),
                  o * np.cos(a) + e * np.sin(a)], -1).reshape(q.shape)
    e, o = np.split(k, 2, -1)
    z = np.concatenate([e * np.cos(a) - o * np.sin(a),
                        o * np.cos(a) + e * np.sin(a)], -1)
    return y, z


def rope_keys_late(q, k, positions):
    """Keys one position further than queries"""
    a = rope_qk(q, k, positions)[0]
    b = rope_qk(q, k, np.asarray(positions) + 1)[1]
    return a, b


def rope_rotate_half(x, cos, sin):
    """cos and sin (L, D), repeated by halves, as in transformers"""
    h = x.shape[-1] // 2
    r = np.concatenate([-x[..., h:], x[..., :h]], -1)
    return x * cos + r * sin


def rope_rotate_half_plus(x, cos, sin):
    h = x.shape[-1] // 2
    r = np.concatenate([x[..., h:], -x[..., :h]], -1)
    return x * cos + r * sin


def rope_no_minus(x, positions):
    h = x.shape[-1] // 2
    f = 10000.0 ** (-np.arange(h) / h)
    a = np.asarray(positions)[:, None] * f
    c, s = np.cos(a), np.sin(a)
    return np.concatenate([x[..., :h] * c + x[..., h:] * s,
                           x[..., h:] * c + x[..., :h] * s], -1)


def rope_degrees(x, positions):
    h = x.shape[-1] // 2
    f = 10000.0 ** (-np.arange(h) / h)
    a = np.deg2rad(np.asarray(positions)[:, None] * f)
    c, s = np.cos(a), np.sin(a)
    return np.concatenate([x[..., :h] * c - x[..., h:] * s,
                           x[..., h:] * c + x[..., :h] * s], -1)


def rope_wrong_exponent(x, positions):
    h = x.shape[-1] // 2
    f = 10000.0 ** (-np.arange(h) / x.shape[-1])
    a = np.asarray(positions)[:, None] * f
    c, s = np.cos(a), np.sin(a)
    return np.concatenate([x[..., :h] * c - x[..., h:] * s,
                           x[..., h:] * c + x[..., :h] * s], -1)


S, R = "bwd-softmax-or-mask", "bwd-reduction-scale-layout"
B = ["--kind=backward"]
ZOO = [
    ("multi_head_attention", "correct"), ("mha_sums_heads", "correct"),
    ("mha_strided_heads", "heads-dim-order"),
    ("mha_stacked", "heads-merge-no-transpose"),
    ("mha_first_projection", "unexplained|qk-exchanged|qkv-packing"),
    ("mha_transposed_output", "k-wrong-transpose|unexplained|qkv-packing"),
    ("mha_no_bias", "unexplained"), ("mha_bias_after", "correct"),
    ("mha_causal", "correct"), ("mha_masked", "correct"),
    ("attention_backward", "correct"), ("backward_symmetric", S, B),
    ("backward_forgets_v", S + "|" + R, B),
    ("backward_scaled_scores", R, B), ("backward_no_softmax", S, B),
    ("backward_dv_of_scores", R + "|" + S, B),
    ("backward_zero", "output-constant", B), ("backward_twice_dv", R, B),
    ("backward_causal", "correct", B),
    ("backward_causal", "correct", B + ["--expect=causal=top_left"]),
    ("backward_other_corner", S + "|causal-corner",
     B + ["--expect=causal=top_left"]),
    ("step", "correct", ["--kind=decode"]),
    ("step_all", "kv-length", ["--kind=decode"]),
    ("step_forgets_newest", "kv-length", ["--kind=decode"]),
    ("step_ring", "correct", ["--kind=decode"]),
    ("step_ring_mixed", "unexplained|kv-length|v-is-k", ["--kind=decode"]),
    ("step_scaled_by_length", "scale-seq-len", ["--kind=decode"]),
    ("step_padded_zeros", "mask-fill-zero|kv-length", ["--kind=decode"]),
    ("rope_qk", "correct"), ("rope_qk_mixed", "rope-pairing"),
    ("rope_keys_late", "rope-position-offset"),
    ("rope_rotate_half", "correct"),
    ("rope_rotate_half_plus", "rope-rotation-reversed"),
    ("rope_no_minus", "rope-rotation-reversed|unexplained"),
    ("rope_degrees", "rope-base-or-scaling|unexplained"),
    ("rope_wrong_exponent", "rope-base-or-scaling|rope-partial-width"),
]
