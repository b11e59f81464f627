# SPDX-License-Identifier: Apache-2.0
#
# Style: what is written in job interviews and first pull requests: two or
# three axes, loops, classes, floats as masks, packed heads.
import math
from collections import namedtuple

import numpy as np


def soft(x):
    z = np.exp(x - np.max(x, -1)[..., None])
    return z / np.sum(z, -1)[..., None]


# ---------------------------------------------------------- (len, dim)

def a_right(Q, K, V, mask=None):
    scores = np.matmul(Q, K.T) / math.sqrt(K.shape[1])
    if mask is not None:
        scores = np.where(mask, scores, float("-inf"))
    A = soft(scores)
    return np.matmul(A, V), A


def a_over_length(Q, K, V):
    return soft(Q @ K.T / math.sqrt(len(K))) @ V


def a_no_sqrt(Q, K, V):
    return soft(Q @ K.T / K.shape[1]) @ V


def a_times_sqrt(Q, K, V):
    return soft(Q @ K.T * math.sqrt(K.shape[1])) @ V


def a_axis_zero(Q, K, V):
    S = Q @ K.T / math.sqrt(K.shape[1])
    E = np.exp(S - S.max(axis=0))
    return (E / E.sum(axis=0)) @ V


def a_loops(Q, K, V, causal=False):
    n, m, d = len(Q), len(K), len(Q[0])
    out = np.zeros((n, V.shape[1]))
    for i in range(n):
        top = -1e300
        for j in range(m):
            if causal and j > i:
                break
            top = max(top, sum(Q[i][c] * K[j][c] for c in range(d))
                      / math.sqrt(d))
        total = 0.0
        for j in range(m):
            if causal and j > i:
                break
            w = math.exp(sum(Q[i][c] * K[j][c] for c in range(d))
                         / math.sqrt(d) - top)
            total += w
            for c in range(V.shape[1]):
                out[i][c] += w * V[j][c]
        out[i] /= total
    return out


def a_loops_short(Q, K, V, causal=False):
    """range(i) where range(i + 1) was meant."""
    n, d = len(Q), len(Q[0])
    out = np.zeros((n, V.shape[1]))
    for i in range(n):
        last = max(i, 1) if causal else len(K)
        s = np.array([np.dot(Q[i], K[j]) / math.sqrt(d)
                      for j in range(min(last, len(K)))])
        out[i] = soft(s) @ V[:len(s)]
    return out


def a_forgets_last(Q, K, V):
    out = []
    for row in Q:
        s = np.array([row @ K[j] for j in range(len(K) - 1)])
        out.append(soft(s / math.sqrt(len(row))) @ V[:-1])
    return np.array(out)


def a_returns_weights_first(Q, K, V):
    A = soft(Q @ K.T / math.sqrt(K.shape[1]))
    return A, A @ V


def a_scores_returned(Q, K, V):
    S = Q @ K.T / math.sqrt(K.shape[1])
    return soft(S) @ V, S


def a_q_for_v(Q, K, V):
    return soft(Q @ K.T / math.sqrt(K.shape[1])) @ Q


def a_weights_transposed(Q, K, V):
    return soft(Q @ K.T / math.sqrt(K.shape[1])).T @ V


def a_sigmoid(Q, K, V):
    return 1 / (1 + np.exp(-(Q @ K.T / math.sqrt(K.shape[1])))) @ V


def a_max_of_all(Q, K, V):
    S = Q @ K.T / math.sqrt(K.shape[1])
    E = np.exp(S - S.max())
    return E / E.sum(1, keepdims=True) @ V


def a_double(Q, K, V):
    A = soft(Q @ K.T / math.sqrt(K.shape[1]))
    return soft(A) @ V


def a_unit_norm(Q, K, V):
    S = Q @ K.T / math.sqrt(K.shape[1])
    E = np.exp(S - S.max(1, keepdims=True))
    return E / np.sqrt((E ** 2).sum(1, keepdims=True)) @ V


def a_clipped(Q, K, V):
    S = np.clip(Q @ K.T / math.sqrt(K.shape[1]), -3, 3)
    return soft(S) @ V


def a_abs(Q, K, V):
    return soft(np.abs(Q @ K.T) / math.sqrt(K.shape[1])) @ V


# ---------------------------------------------------- (batch, len, dim)

class SelfAttention:
    def __init__(self, causal=True):
        self.causal = causal

    def __call__(self, q, k, v):
        s = np.einsum("bid,bjd->bij", q, k) / q.shape[2] ** 0.5
        if self.causal:
            s += np.triu(np.ones(s.shape[1:]) * -1e10, 1)
        return soft(s) @ v


b_causal = SelfAttention()
b_free = SelfAttention(False)


def b_float_mask(q, k, v, mask):
    """mask: 0 keeps, -inf hides"""
    return soft(q @ k.transpose(0, 2, 1) / q.shape[2] ** 0.5 + mask) @ v


def b_batch_softmax(q, k, v):
    s = np.einsum("bid,bjd->bij", q, k) / q.shape[2] ** 0.5
    e = np.exp(s - s.max(0))
    return (e / e.sum(0)) @ v


def b_lower_right(q, k, v, causal=False):
    s = np.einsum("bid,bjd->bij", q, k) / q.shape[2] ** 0.5
    if causal:
        n, m = s.shape[1:]
        s = np.where(np.arange(m)[None] <= np.arange(n)[:, None] + m - n, s,
                     -np.inf)
    return soft(s) @ v


# ------------------------------------------------------- packed heads

def p_right(q, k, v, num_heads):
    b, n, e = q.shape
    m = k.shape[1]
    q = q.reshape(b, n, num_heads, -1).transpose(0, 2, 1, 3)
    k = k.reshape(b, m, num_heads, -1).transpose(0, 2, 3, 1)
    v = v.reshape(b, m, num_heads, -1).transpose(0, 2, 1, 3)
    o = soft(q @ k / math.sqrt(q.shape[-1])) @ v
    return o.transpose(0, 2, 1, 3).reshape(b, n, -1)


def p_view(q, k, v, num_heads):
    b, n, e = q.shape
    m = k.shape[1]
    q, k, v = (x.reshape(b, num_heads, -1, x.shape[2] // num_heads)
               for x in (q, k, v))
    o = soft(q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1])) @ v
    return o.transpose(0, 2, 1, 3).reshape(b, n, -1)


def p_view_back(q, k, v, num_heads):
    b, n, e = q.shape
    q, k, v = (x.reshape(b, x.shape[1], num_heads, -1).transpose(0, 2, 1, 3)
               for x in (q, k, v))
    o = soft(q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1])) @ v
    return o.reshape(b, n, -1)


def p_whole_width(q, k, v, num_heads):
    b, n, e = q.shape
    q, k, v = (x.reshape(b, x.shape[1], num_heads, -1).transpose(0, 2, 1, 3)
               for x in (q, k, v))
    o = soft(q @ k.swapaxes(2, 3) / math.sqrt(e)) @ v
    return o.transpose(0, 2, 1, 3).reshape(b, n, -1)


def p_interleaved(q, k, v, num_heads):
    b, n, e = q.shape
    q, k, v = (x.reshape(b, x.shape[1], -1, num_heads).transpose(0, 3, 1, 2)
               for x in (q, k, v))
    o = soft(q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1])) @ v
    return o.transpose(0, 2, 1, 3).reshape(b, n, -1)


def p_head_axis(q, k, v, num_heads):
    b, n, e = q.shape
    q, k, v = (x.reshape(b, x.shape[1], num_heads, -1) for x in (q, k, v))
    o = soft(q @ k.swapaxes(2, 3) / math.sqrt(q.shape[-1])) @ v
    return o.reshape(b, n, -1)


# --------------------------------------------------- (batch, heads, ...)

Output = namedtuple("Output", "output attn")


def h_named_tuple(query, key, value, mask=None):
    s = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    p = soft(s)
    return Output(p @ value, p)


def h_dict(query, key, value):
    p = soft(query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1]))
    return {"weights": p, "output": p @ value}


def h_bshd_heads_swapped(q, k, v):
    """Reads (batch, len, heads, dim), forgets to move the heads first."""
    s = np.einsum("blhd,blgd->blhg", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("blhg,blgd->blhd", soft(s), v)


def h_bshd_right(q, k, v, is_causal=False):
    s = np.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return np.einsum("bhqk,bkhd->bqhd", soft(s), v)


def h_k_dot_t(q, k, v):
    """k.T turns all axes round."""
    s = q @ k.T.reshape(k.shape[0], k.shape[1], k.shape[3], k.shape[2])
    return soft(s / math.sqrt(q.shape[-1])) @ v


def h_mask_on_heads(q, k, v, mask=None):
    """mask (B, Lq, Lk) meets (B, H, Lq, Lk) from the right."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        if mask.ndim == 4:
            mask = mask[:, 0]
        s = np.where(mask, s, -1e9)
    return soft(s) @ v


def h_mask_transposed(q, k, v, attn_mask=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if attn_mask is not None:
        s = np.where(np.broadcast_to(attn_mask, s.shape).swapaxes(-1, -2)
                     if s.shape[-1] == s.shape[-2] else attn_mask, s, -1e9)
    return soft(s) @ v


def h_window_both(q, k, v, sliding_window=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if sliding_window is not None:
        i, j = np.arange(n)[:, None] + m - n, np.arange(m)
        s = np.where((j <= i) & (j >= i - sliding_window), s, -np.inf)
    return soft(s) @ v


def h_window_zero(q, k, v, window_size=(-1, -1)):
    """0 is taken for no window."""
    left, right = window_size
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    i, j = np.arange(n)[:, None] + m - n, np.arange(m)
    see = np.ones((n, m), bool)
    if left > 0:
        see &= j >= i - left
    if right > 0:
        see &= j <= i + right
    return soft(np.where(see, s, -np.inf)) @ v


def h_window_without_causal(q, k, v, causal=False, window=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    i, j = np.arange(n)[:, None] + m - n, np.arange(m)
    see = np.ones((n, m), bool)
    if causal:
        see &= j <= i
        if window is not None:
            see &= j > i - window
    return soft(np.where(see, s, -np.inf)) @ v


def h_half_precision(q, k, v):
    q, k, v = (x.astype(np.float16) for x in (q, k, v))
    s = q @ k.swapaxes(-1, -2) / np.float16(math.sqrt(q.shape[-1]))
    return soft(s.astype(np.float32)).astype(np.float16) @ v


def h_single_precision(q, k, v):
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    return soft(q @ k.swapaxes(-1, -2) / np.float32(math.sqrt(q.shape[-1]))) \
        @ v


def h_sums_in_half(q, k, v):
    p = soft(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))
    o = np.zeros(p.shape[:-1] + v.shape[-1:], np.float16)
    for j in range(k.shape[-2]):
        o += (p[..., j, None] * v[..., j, None, :]).astype(np.float16)
    return o.astype(q.dtype)


def h_flat_buffer(q, k, v):
    """Reads the memory of q as if it were dense."""
    base = q if q.base is None else q.base
    flat = np.ravel(base, order="K")[:q.size].reshape(q.shape)
    return soft(flat @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def h_scales_in_place(q, k, v):
    q /= math.sqrt(q.shape[-1])
    return soft(q @ k.swapaxes(-1, -2)) @ v


def h_fills_the_mask(q, k, v, mask=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        mask &= np.tri(*mask.shape[-2:], k=10 ** 6, dtype=bool)
        s = np.where(mask, s, -np.inf)
        mask[...] = True
    return soft(s) @ v


CACHE = {}


def h_caches_by_shape(q, k, v):
    if q.shape not in CACHE:
        CACHE[q.shape] = soft(q @ k.swapaxes(-1, -2)
                              / math.sqrt(q.shape[-1]))
    return CACHE[q.shape] @ v if CACHE[q.shape].shape[-1] == v.shape[-2] \
        else soft(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def h_grouped_by_division(q, k, v):
    """h // Hkv where h // (H / Hkv) was meant"""
    hk = k.shape[1]
    index = np.minimum(np.arange(q.shape[1]) // hk, hk - 1)
    k, v = k[:, index], v[:, index]
    return soft(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def h_grouped_backwards(q, k, v):
    g = q.shape[1] // k.shape[1]
    k, v = np.repeat(k[:, ::-1], g, 1), np.repeat(v[:, ::-1], g, 1)
    return soft(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def h_values_tiled_only(q, k, v):
    g = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, g, 1), np.tile(v, (1, g, 1, 1))
    return soft(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v


def h_relative_bias_shifted(q, k, v, attn_bias=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if attn_bias is not None:
        s = s + np.roll(attn_bias, 1, -1)
    return soft(s) @ v


def h_bias_transposed(q, k, v, attn_bias=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if attn_bias is not None:
        s = s + (attn_bias.swapaxes(-1, -2)
                 if s.shape[-1] == s.shape[-2] else attn_bias)
    return soft(s) @ v


def h_cap_of_ten(q, k, v, softcap=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if softcap is not None:
        s = 50.0 * np.tanh(s / 50.0)
    return soft(s) @ v


def h_sink_as_key(q, k, v, sinks=None):
    """The sink attends to the first value instead of to nothing."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if sinks is None:
        return soft(s) @ v
    e = np.broadcast_to(sinks.reshape(-1, 1, 1), s.shape[:-1] + (1,))
    w = soft(np.concatenate([e, s], -1))
    w[..., 1] += w[..., 0]
    return w[..., 1:] @ v


def h_sink_negated(q, k, v, sinks=None):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if sinks is None:
        return soft(s) @ v
    e = np.broadcast_to(-sinks.reshape(-1, 1, 1), s.shape[:-1] + (1,))
    return soft(np.concatenate([e, s], -1))[..., 1:] @ v


def h_random_each_time(q, k, v):
    p = soft(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))
    return p * np.random.binomial(1, 0.8, p.shape) / 0.8 @ v


def h_dropped_before(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    s = s * np.random.default_rng(0).binomial(1, 0.9, s.shape) / 0.9
    return soft(s) @ v


def h_nan_everywhere(q, k, v):
    with np.errstate(all="ignore"):
        return q @ k.swapaxes(-1, -2) @ v / np.zeros(1)


def h_first_value(q, k, v):
    return np.broadcast_to(v[..., :1, :], q.shape[:-1] + v.shape[-1:]).copy()


def h_mean_of_values(q, k, v):
    return np.broadcast_to(v.mean(-2, keepdims=True),
                           q.shape[:-1] + v.shape[-1:]).copy()


def h_short(q, k, v):
    o = soft(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])) @ v
    return o[..., :-1, :]


def h_list_of_heads(q, k, v):
    return [soft(q[:, h] @ k[:, h].swapaxes(-1, -2)
                 / math.sqrt(q.shape[-1])) @ v[:, h]
            for h in range(q.shape[1])]


W, X = "window-off-by-one", "--expect="
ZOO = [
    ("a_right", "correct"), ("a_over_length", "scale-seq-len"),
    ("a_no_sqrt", "scale-twice"), ("a_times_sqrt", "scale-missing"),
    ("a_axis_zero", "softmax-wrong-axis"),
    ("a_loops", "correct"),
    ("a_loops_short", "causal-diagonal-shift"),
    ("a_forgets_last", "tail-tile-unmasked|kv-length"),
    ("a_returns_weights_first", "correct"),
    ("a_scores_returned", "correct|softmax-missing"),
    ("a_q_for_v", "v-is-k"), ("a_weights_transposed", "qk-exchanged"),
    ("a_sigmoid", "softmax-missing"), ("a_max_of_all", "correct"),
    ("a_double", "softmax-twice"), ("a_unit_norm", "softmax-missing"),
    ("a_clipped", "softcap-wrong-or-ignored|unexplained"),
    ("a_abs", "unexplained"),
    ("b_causal", "correct"), ("b_causal", "correct",
                              ["--expect=causal=top_left"]),
    ("b_free", "mask-dropped", ["--expect=causal=top_left"]),
    ("b_float_mask", "correct", ["--expect=mask_true=add,empty_rows=any"]),
    ("b_float_mask", "correct"),
    ("b_batch_softmax", "softmax-wrong-axis"),
    ("b_lower_right", "correct"),
    ("b_lower_right", "causal-corner", ["--expect=causal=top_left"]),
    ("p_right", "correct"), ("p_view", "heads-split-no-transpose"),
    ("p_view_back", "heads-merge-no-transpose"),
    ("p_whole_width", "scale-d-model"), ("p_interleaved", "heads-dim-order"),
    ("p_head_axis", "batch-first"),
    ("h_named_tuple", "correct"), ("h_dict", "correct"),
    ("h_bshd_heads_swapped", "batch-first", ["--layout=bshd"]),
    ("h_bshd_right", "correct"),
    ("h_k_dot_t", "k-wrong-transpose"),
    ("h_mask_on_heads", "mask-batch-head-order"),
    ("h_mask_transposed", "mask-wrong-axis"),
    ("h_window_both", W, ["--expect=window=3"]),
    ("h_window_zero", "window-ignored-or-zero", [X]),
    ("h_window_without_causal", "window-ignored-or-zero", [X]),
    ("h_half_precision", "score-overflow-16bit"),
    ("h_single_precision", "correct"),
    ("h_sums_in_half", "accumulate-16bit"),
    ("h_flat_buffer", "strides-ignored"),
    ("h_scales_in_place", "inputs-mutated"),
    ("h_fills_the_mask", "inputs-mutated"),
    ("h_caches_by_shape", "state-kept"),
    ("h_grouped_by_division", "gqa-tile"),
    ("h_grouped_backwards", "gqa-tile"),
    ("h_values_tiled_only", "gqa-tile"),
    ("h_relative_bias_shifted", "relative-shift-or-order"),
    ("h_bias_transposed", "relative-shift-or-order"),
    ("h_cap_of_ten", "softcap-wrong-or-ignored"),
    ("h_sink_as_key", "softmax-extra-mass"),
    ("h_sink_negated", "softmax-extra-mass"),
    ("h_random_each_time", "dropout-not-off"),
    ("h_dropped_before", "dropout-not-off|unexplained"),
    ("h_nan_everywhere", "output-nan"),
    ("h_first_value", "output-constant|gqa-tile"),
    ("h_mean_of_values", "scale-zero-literal"),
    ("h_short", "unusable"), ("h_list_of_heads", "unusable"),
]
