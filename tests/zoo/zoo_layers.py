# SPDX-License-Identifier: Apache-2.0
#
# Kind: multi-head layers, in the styles of lessons and of frameworks.
import numpy as np


def softmax(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def core(q, k, v, mask=None, scale=None):
    s = q @ k.swapaxes(-1, -2) * (scale or q.shape[-1] ** -0.5)
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    return softmax(s) @ v


def split(x, h):
    b, l, e = x.shape
    return x.reshape(b, l, h, e // h).transpose(0, 2, 1, 3)


def merge(o):
    b, h, l, d = o.shape
    return o.transpose(0, 2, 1, 3).reshape(b, l, h * d)


def right(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v)) @ w_o


def right_causal(x, Wq, Wk, Wv, Wo, num_heads, causal=True):
    q, k, v = (split(x @ w, num_heads) for w in (Wq, Wk, Wv))
    l = x.shape[1]
    mask = np.tril(np.ones((l, l), bool)) if causal else None
    return merge(core(q, k, v, mask)) @ Wo


def right_torch(x, wq, wk, wv, wo, n_heads, mask=None):
    q, k, v = (split(x @ w.T, n_heads) for w in (wq, wk, wv))
    return merge(core(q, k, v, mask)) @ wo.T


def right_biased(x, w_q, w_k, w_v, w_o, b_q, b_k, b_v, b_o, n_heads):
    q, k, v = (split(x @ w + b, n_heads)
               for w, b in ((w_q, b_q), (w_k, b_k), (w_v, b_v)))
    return merge(core(q, k, v)) @ w_o + b_o


def right_packed(x, w_qkv, w_o, n_heads):
    q, k, v = (split(y, n_heads)
               for y in np.split(x @ w_qkv, 3, axis=-1))
    return merge(core(q, k, v)) @ w_o


def right_gqa(x, w_q, w_k, w_v, w_o, n_heads, n_kv_heads):
    q, k, v = (split(x @ w, h) for w, h in
               ((w_q, n_heads), (w_k, n_kv_heads), (w_v, n_kv_heads)))
    g = n_heads // n_kv_heads
    return merge(core(q, k.repeat(g, 1), v.repeat(g, 1))) @ w_o


def right_one(X, Wq, Wk, Wv):
    q, k, v = X @ Wq, X @ Wk, X @ Wv
    return softmax(q @ k.T / np.sqrt(k.shape[1])) @ v


def right_weights(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    p = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return merge(p @ v) @ w_o, p


def right_loop(x, w_q, w_k, w_v, w_o, n_heads):
    out = []
    d = w_q.shape[1] // n_heads
    e = w_v.shape[1] // n_heads
    for h in range(n_heads):
        q = x @ w_q[:, h * d:(h + 1) * d]
        k = x @ w_k[:, h * d:(h + 1) * d]
        v = x @ w_v[:, h * e:(h + 1) * e]
        out.append(core(q, k, v))
    return np.concatenate(out, -1) @ w_o


def merge_reshape(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    o = core(q, k, v)
    return o.reshape(x.shape[0], x.shape[1], -1) @ w_o


def split_reshape(x, w_q, w_k, w_v, w_o, n_heads):
    b, l, _ = x.shape
    q, k, v = ((x @ w).reshape(b, n_heads, l, -1) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v)) @ w_o


def split_reshape_both(x, w_q, w_k, w_v, w_o, n_heads):
    b, l, _ = x.shape
    q, k, v = ((x @ w).reshape(b * n_heads, l, -1) for w in (w_q, w_k, w_v))
    return core(q, k, v).reshape(b, l, -1) @ w_o


def dim_first(x, w_q, w_k, w_v, w_o, n_heads):
    b, l, _ = x.shape
    q, k, v = ((x @ w).reshape(b, l, -1, n_heads).transpose(0, 3, 1, 2)
               for w in (w_q, w_k, w_v))
    return merge(core(q, k, v)) @ w_o


def dim_first_both(x, w_q, w_k, w_v, w_o, n_heads):
    b, l, _ = x.shape
    q, k, v = ((x @ w).reshape(b, l, -1, n_heads).transpose(0, 3, 1, 2)
               for w in (w_q, w_k, w_v))
    return core(q, k, v).transpose(0, 2, 3, 1).reshape(b, l, -1) @ w_o


def across_heads(x, w_q, w_k, w_v, w_o, n_heads):
    b, l, _ = x.shape
    q, k, v = ((x @ w).reshape(b, l, n_heads, -1) for w in (w_q, w_k, w_v))
    return core(q, k, v).reshape(b, l, -1) @ w_o


def across_batch(x, w_q, w_k, w_v, w_o, n_heads):
    y = right(x.transpose(1, 0, 2), w_q, w_k, w_v, w_o, n_heads)
    return y.transpose(1, 0, 2)


def model_scale(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v, scale=w_q.shape[1] ** -0.5)) @ w_o


def input_scale(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v, scale=x.shape[-1] ** -0.5)) @ w_o


def no_scale(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    return merge(core(q, k, v, scale=1.0)) @ w_o


def per_head(x, w_qkv, w_o, n_heads):
    b, l, _ = x.shape
    y = (x @ w_qkv).reshape(b, l, n_heads, 3, -1).transpose(3, 0, 2, 1, 4)
    return merge(core(*y)) @ w_o


def last_three(x, w_qkv, w_o, n_heads):
    b, l, _ = x.shape
    y = (x @ w_qkv).reshape(b, l, n_heads, -1, 3).transpose(4, 0, 2, 1, 3)
    return merge(core(*y)) @ w_o


def kqv(x, w_qkv, w_o, n_heads):
    k, q, v = (split(y, n_heads)
               for y in np.split(x @ w_qkv, 3, axis=-1))
    return merge(core(q, k, v)) @ w_o


def heads_axis(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    p = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), axis=1)
    return merge(p @ v) @ w_o


def gqa_tiled(x, w_q, w_k, w_v, w_o, n_heads, n_kv_heads):
    q, k, v = (split(x @ w, h) for w, h in
               ((w_q, n_heads), (w_k, n_kv_heads), (w_v, n_kv_heads)))
    g = n_heads // n_kv_heads
    return merge(core(q, np.tile(k, (1, g, 1, 1)),
                      np.tile(v, (1, g, 1, 1)))) @ w_o


def gqa_sequence(x, w_q, w_k, w_v, w_o, n_heads, n_kv_heads):
    b, l, _ = x.shape
    q, k, v = (split(x @ w, h) for w, h in
               ((w_q, n_heads), (w_k, n_kv_heads), (w_v, n_kv_heads)))
    g = n_heads // n_kv_heads
    k = k.repeat(g, 2).reshape(b, n_heads, l, -1)
    v = v.repeat(g, 2).reshape(b, n_heads, l, -1)
    return merge(core(q, k, v)) @ w_o


def keys_twice(x, w_q, w_k, w_v, w_o, n_heads):
    q, k = split(x @ w_q, n_heads), split(x @ w_k, n_heads)
    return merge(core(q, k, k)) @ w_o


def mask_late(x, w_q, w_k, w_v, w_o, n_heads, mask=None):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    p = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    if mask is not None:
        p = p * mask
    return merge(p @ v) @ w_o


def pad_queries(x, w_q, w_k, w_v, w_o, n_heads, key_padding_mask=None):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    m = None
    if key_padding_mask is not None:
        m = key_padding_mask[:, None, :, None]
    return merge(core(q, k, v, m)) @ w_o


def future(x, w_q, w_k, w_v, w_o, n_heads):
    q, k, v = (split(x @ w, n_heads) for w in (w_q, w_k, w_v))
    l = x.shape[1]
    return merge(core(q, k, v, np.tril(np.ones((l, l), bool), 1))) @ w_o


ZOO = [
    ("right", "correct"),
    ("right_causal", "correct"),
    ("right_causal", "correct", ["--expect", "causal=top_left"]),
    ("right_torch", "correct"),
    ("right_biased", "correct"),
    ("right_packed", "correct"),
    ("right_gqa", "correct"),
    ("right_one", "correct"),
    ("right_weights", "correct"),
    ("right_loop", "correct"),
    ("merge_reshape", "heads-merge-no-transpose"),
    ("split_reshape", "heads-split-no-transpose"),
    ("split_reshape_both", "heads-split-no-transpose"),
    ("dim_first", "heads-dim-order"),
    ("dim_first_both", "heads-dim-order"),
    ("across_heads", "batch-first|heads-split-no-transpose"),
    ("across_batch", "batch-first"),
    ("model_scale", "scale-d-model"),
    ("input_scale", "scale-d-model"),
    ("no_scale", "scale-missing"),
    ("per_head", "qkv-packing", ["--expect="]),
    ("last_three", "qkv-packing"),
    ("kqv", "qkv-packing"),
    ("heads_axis", "softmax-wrong-axis"),
    ("gqa_tiled", "gqa-tile"),
    ("gqa_sequence", "gqa-tile"),
    ("keys_twice", "v-is-k"),
    ("mask_late", "mask-after-softmax"),
    ("pad_queries", "mask-wrong-axis", ["--expect", "mask_true=keep"]),
    ("future", "causal-diagonal-shift"),
]
