# SPDX-License-Identifier: Apache-2.0
#
# Style: layers as in papers' code and courses: x and matrices in, y out.
import numpy as np


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def split(x, h):
    b, n, e = x.shape
    return x.reshape(b, n, h, e // h).transpose(0, 2, 1, 3)


def merge(x):
    b, h, n, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, n, h * d)


def core(q, k, v, causal=False, scale=None):
    s = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return softmax(s) @ v


def mha(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v)) @ w_o


def mha_with_biases(x, Wq, bq, Wk, bk, Wv, bv, Wo, bo, num_heads):
    q, k, v = (split(x @ w + b, num_heads)
               for w, b in ((Wq, bq), (Wk, bk), (Wv, bv)))
    return merge(core(q, k, v)) @ Wo + bo


def mha_torch_weights(x, q_weight, k_weight, v_weight, out_weight, n_heads):
    """torch.nn.Linear's (out, in)"""
    q, k, v = (split(x @ w.T, n_heads)
               for w in (q_weight, k_weight, v_weight))
    return merge(core(q, k, v)) @ out_weight.T


def gqa(x, w_q, w_k, w_v, w_o, n_heads, n_kv_heads):
    q = split(x @ w_q, n_heads)
    k, v = split(x @ w_k, n_kv_heads), split(x @ w_v, n_kv_heads)
    k, v = (np.repeat(t, n_heads // n_kv_heads, 1) for t in (k, v))
    return merge(core(q, k, v)) @ w_o


def fused(x, w_qkv, w_o, n_heads):
    q, k, v = (split(t, n_heads) for t in np.split(x @ w_qkv, 3, -1))
    return merge(core(q, k, v, causal=True)) @ w_o


def one_head(X, W_Q, W_K, W_V):
    return core(X @ W_Q, X @ W_K, X @ W_V)


def view_split(x, w_q, w_k, w_v, w_o, n_heads):
    b, n, e = x.shape
    q, k, v = ((x @ w).reshape(b, n_heads, n, -1) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v)) @ w_o


def view_merge(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    o = core(q, k, v)
    return o.reshape(x.shape[0], x.shape[1], -1) @ w_o


def dim_before_heads(x, w_q, w_k, w_v, w_o, n_heads):
    b, n, _ = x.shape
    q, k, v = ((x @ w).reshape(b, n, -1, n_heads).transpose(0, 3, 1, 2)
               for w in (w_q, w_k, w_v))
    return merge(core(q, k, v)) @ w_o


def width_of_model(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v, scale=x.shape[-1] ** -0.5)) @ w_o


def per_head_packing(x, w_qkv, w_o, n_heads):
    b, n, _ = x.shape
    t = (x @ w_qkv).reshape(b, n, n_heads, 3, -1)
    q, k, v = (t[..., i, :].transpose(0, 2, 1, 3) for i in range(3))
    return merge(core(q, k, v)) @ w_o


def kqv_packing(x, w_qkv, w_o, n_heads):
    k, q, v = (split(t, n_heads) for t in np.split(x @ w_qkv, 3, -1))
    return merge(core(q, k, v)) @ w_o


def across_the_batch(x, w_q, w_k, w_v, w_o, n_heads):
    """Made for (len, batch, width), called with (batch, len, width)."""
    return mha(x.transpose(1, 0, 2), w_q, w_k, w_v, w_o,
               n_heads).transpose(1, 0, 2)


def heads_meet_heads(x, w_q, w_k, w_v, w_o, n_heads):
    b, n, _ = x.shape
    q, k, v = ((x @ w).reshape(b, n, n_heads, -1) for w in (w_q, w_k, w_v))
    return core(q, k, v).reshape(b, n, -1) @ w_o


def values_of_keys(x, w_q, w_k, w_v, w_o, n_heads):
    q, k = split(x @ w_q, n_heads), split(x @ w_k, n_heads)
    return merge(core(q, k, k)) @ w_o


def no_scale(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v, scale=1.0)) @ w_o


def gqa_tiled(x, w_q, w_k, w_v, w_o, n_heads, n_kv_heads):
    q = split(x @ w_q, n_heads)
    k, v = split(x @ w_k, n_kv_heads), split(x @ w_v, n_kv_heads)
    g = n_heads // n_kv_heads
    return merge(core(q, np.tile(k, (1, g, 1, 1)),
                      np.tile(v, (1, g, 1, 1)))) @ w_o


def sees_one_ahead(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    s = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    s = np.where(np.tri(*s.shape[-2:], 1, dtype=bool), s, -np.inf)
    return merge(softmax(s) @ v) @ w_o


def not_causal(x, w_q, w_k, w_v, w_o, n_heads):
    return mha(x, w_q, w_k, w_v, w_o, n_heads)


def softmax_over_queries(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    s = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    e = np.exp(s - s.max(2, keepdims=True))
    return merge(e / e.sum(2, keepdims=True) @ v) @ w_o


def mask_too_late(x, w_q, w_k, w_v, w_o, n_heads, causal=False):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    w = softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5)
    if causal:
        w = np.tril(w)
    return merge(w @ v) @ w_o


def never_projected(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v))


def mean_of_heads(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    o = core(q, k, v).mean(1)
    return np.tile(o, (1, 1, n_heads)) @ w_o


C = ["--expect=causal=true"]
ZOO = [
    ("mha", "correct"), ("mha", "correct", ["--expect="]),
    ("mha_with_biases", "correct"), ("mha_torch_weights", "correct"),
    ("gqa", "correct"), ("fused", "correct"),
    ("fused", "correct", C), ("one_head", "correct"),
    ("view_split", "heads-split-no-transpose"),
    ("view_merge", "heads-merge-no-transpose"),
    ("dim_before_heads", "heads-dim-order"),
    ("width_of_model", "scale-d-model"),
    ("per_head_packing", "qkv-packing"),
    ("kqv_packing", "qkv-packing"),
    ("across_the_batch", "batch-first"),
    ("heads_meet_heads", "batch-first"),
    ("values_of_keys", "v-is-k"),
    ("no_scale", "scale-missing"),
    ("gqa_tiled", "gqa-tile"),
    ("sees_one_ahead", "causal-diagonal-shift", C),
    ("sees_one_ahead", "causal-diagonal-shift"),
    ("not_causal", "mask-dropped", C),
    ("softmax_over_queries", "softmax-wrong-axis"),
    ("mask_too_late", "mask-after-softmax"),
    ("never_projected", "unexplained|unusable"),
    ("mean_of_heads", "unexplained|heads-merge-no-transpose"),
]
