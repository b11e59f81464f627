# SPDX-License-Identifier: Apache-2.0
#
# Style: one function with every option, copied and broken in one place each,
# as in the history of a repository. (batch, heads, len, dim).
import numpy as np


def attention(q, k, v, attn_mask=None, attn_bias=None, scale=None,
              causal=False, window=None, softcap=None, alibi_slopes=None,
              sinks=None, k_lengths=None, q_offset=None, bug=frozenset()):
    """window (left, right), -1 = no bound; True in attn_mask = attend"""
    B, H, N, D = q.shape
    G, M = k.shape[1], k.shape[2]
    if "kv head by remainder" in bug:
        idx = np.arange(H) % G
    elif "kv head 0" in bug:
        idx = np.zeros(H, int)
    else:
        idx = np.arange(H) // (H // G)
    k, v = k[:, idx], v[:, idx]
    if scale is None:
        scale = D ** -0.5
    if "scale cubed" in bug:
        scale = scale ** 3
    if "scale by v" in bug:
        scale = v.shape[-1] ** -0.5
    s = np.matmul(q, np.moveaxis(k, -1, -2))
    if "bias before scale" in bug and attn_bias is not None:
        s = s + attn_bias
    if "cap before scale" in bug and softcap:
        s = softcap * np.tanh(s / softcap)
    s = s * scale
    if softcap and not bug & {"cap before scale", "no cap", "cap last",
                              "cap with bias"}:
        c = softcap * (2 if "cap doubled" in bug else 1)
        s = c * np.tanh(s / c)
    end = np.full(B, M) if k_lengths is None else np.asarray(k_lengths)
    if q_offset is not None:
        off = np.broadcast_to(np.asarray(q_offset), (B,))
    elif not causal and N == M:
        off = np.zeros(B, int)
    else:
        off = end - N
    if "offset forgotten" in bug:
        off = np.zeros(B, int)
    if "offset plus one" in bug and q_offset is not None:
        off = off + 1
    p = off[:, None, None, None] + np.arange(N)[:, None]
    j = np.arange(M)
    if attn_bias is not None and "bias before scale" not in bug:
        if "bias of head 0" in bug:
            attn_bias = attn_bias[..., :1, :, :] if attn_bias.ndim > 2 \
                else attn_bias
        s = s + attn_bias * (0.5 if "bias halved" in bug else 1)
    if "cap with bias" in bug and softcap:
        s = softcap * np.tanh(s / softcap)
    if alibi_slopes is not None:
        m = np.asarray(alibi_slopes).reshape(-1, 1, 1)
        if "alibi squared distance" in bug:
            s = s - m * (p - j) ** 2
        elif "alibi off by a head" in bug:
            s = s - np.roll(m, 1, 0) * np.abs(p - j)
        elif "alibi by row" in bug:
            s = s - m * np.abs(np.arange(N)[:, None] - j)
        elif "alibi signed" in bug:
            s = s - m * (p - j)
        elif "no alibi" not in bug:
            s = s - m * np.abs(p - j)
    see = np.ones(np.broadcast_shapes(s.shape), bool)
    if causal and "never causal" not in bug:
        extra = 2 * ("two ahead" in bug) - ("one behind" in bug)
        if "causal from top" in bug:
            see &= j <= np.arange(N)[:, None]
        else:
            see &= j <= p + extra
    if window is not None:
        left, right = window
        w = p if "window by row" not in bug else np.arange(N)[:, None]
        if left >= 0 and "no left" not in bug:
            see &= j >= w - left + ("left short" in bug)
        if right >= 0 and "no right" not in bug:
            see &= j <= w + right + ("right long" in bug)
    if attn_mask is not None and "no mask" not in bug:
        if "mask inverted" in bug:
            see = see & ~attn_mask
        elif "mask of batch 0" in bug and attn_mask.ndim == 4:
            see = see & attn_mask[:1]
        elif "mask instead of causal" in bug:
            see = np.broadcast_to(attn_mask, see.shape).copy()
        else:
            see = see & attn_mask
    if k_lengths is not None and "no lengths" not in bug:
        n = end[:, None, None, None]
        if "length of sample 0" in bug:
            n = end[0]
        if "lengths of queries" in bug:
            see &= (np.arange(N)[:, None] < n)
        else:
            see &= j < n
    if "fill 0" in bug:
        s = np.where(see, s, 0)
    elif "fill -30" in bug:
        s = np.where(see, s, -30.0)
    elif "mask times" in bug:
        s = s * see
    elif "mask last" not in bug:
        s = np.where(see, s, -np.inf)
    if "cap last" in bug and softcap:
        s = softcap * np.tanh(s / softcap)
    top = s.max(-1, keepdims=True)
    if sinks is not None:
        z = np.asarray(sinks).reshape(1, H, 1, 1)
        top = np.maximum(top, z)
    top = np.where(np.isinf(top), 0, top)
    e = np.exp(s - top)
    t = e.sum(-1, keepdims=True)
    if "plus one" in bug:
        t = t + 1
    if "plus eps" in bug:
        t = t + 1e-4
    if sinks is not None and "no sink" not in bug:
        times = 2 if "sink twice" in bug else -(-M // 4) \
            if "sink per tile" in bug else 1
        if "sink scaled" in bug:
            t = t + np.exp(z * scale - top)
        else:
            t = t + times * np.exp(z - top)
    w = e / np.where(t == 0, 1, t)
    if "mask last" in bug:
        w = w * see
    if "values reversed" in bug:
        v = v[..., ::-1, :]
    o = w @ v
    if "nan rows" in bug:
        o = np.where(see.any(-1, keepdims=True), o, np.nan)
    if "mean rows" in bug:
        o = np.where(see.any(-1, keepdims=True), o,
                     v.mean(-2, keepdims=True))
    return o


def broken(*bugs):
    def f(q, k, v, attn_mask=None, attn_bias=None, scale=None, causal=False,
          window=None, softcap=None, alibi_slopes=None, sinks=None,
          k_lengths=None, q_offset=None):
        return attention(q, k, v, attn_mask, attn_bias, scale, causal,
                         window, softcap, alibi_slopes, sinks, k_lengths,
                         q_offset, frozenset(bugs))
    return f


BUGS = {
    "kv head by remainder": "gqa-tile", "kv head 0": "gqa-tile",
    "scale cubed": "scale-twice|scale-d-model|unexplained",
    "scale by v": "scale-d-model",
    "bias before scale": "bias-scaled",
    "cap before scale": "softcap-wrong-or-ignored",
    "no cap": "softcap-wrong-or-ignored",
    "cap last": "softcap-after-mask", "cap doubled":
    "softcap-wrong-or-ignored", "cap with bias": "softcap-wrong-or-ignored",
    "offset forgotten": "causal-corner|window-from-local-row",
    "offset plus one": "rope-position-offset|causal-diagonal-shift|"
                       "causal-corner",
    "bias of head 0": "mask-batch-head-order",
    "bias halved": "bias-scaled",
    "alibi squared distance": "alibi-slopes-or-sign",
    "alibi off by a head": "alibi-slopes-or-sign",
    "alibi by row": "alibi-slopes-or-sign|window-from-local-row",
    "no alibi": "alibi-slopes-or-sign",
    "never causal": "mask-dropped", "two ahead": "causal-diagonal-shift",
    "one behind": "causal-diagonal-shift", "causal from top":
    "causal-corner", "window by row": "window-from-local-row",
    "no left": "window-ignored-or-zero", "no right":
    "window-ignored-or-zero", "left short": "window-off-by-one",
    "right long": "window-off-by-one", "no mask": "mask-dropped",
    "mask inverted": "mask-polarity", "mask of batch 0":
    "mask-batch-head-order", "mask instead of causal": "mask-dropped",
    "no lengths": "kv-length", "length of sample 0": "kv-length",
    "lengths of queries": "mask-wrong-axis", "fill 0": "mask-fill-zero",
    "fill -30": "mask-finite-sentinel", "mask times": "mask-fill-zero",
    "mask last": "mask-after-softmax", "plus one": "softmax-extra-mass",
    "plus eps": "softmax-extra-mass", "no sink": "softmax-extra-mass",
    "sink twice": "softmax-extra-mass", "sink per tile":
    "softmax-extra-mass", "sink scaled": "softmax-extra-mass",
    "values reversed": "unexplained", "nan rows": "empty-row-nan",
    "mean rows": "empty-row-mean",
}
right = broken()
ZOO = [("right", "correct"), ("right", "correct", ["--expect="]),
       ("right", "correct", ["--expect=causal=bottom_right"])]
for number, (name, wanted) in enumerate(BUGS.items()):
    title = name.replace(" ", "_").replace("-", "minus_")
    globals()[title] = broken(name)
    ZOO.append((title, wanted, ["--expect="]))
