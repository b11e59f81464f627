# SPDX-License-Identifier: Apache-2.0
#
# Style: pull requests under review: torch-like code in NumPy, options with
# the names of big libraries.
import math

import numpy as np


def softmax(x, dim=-1):
    x = x - np.max(x, axis=dim, keepdims=True)
    e = np.exp(x)
    return e / np.sum(e, axis=dim, keepdims=True)


def masked_fill(x, where, value):
    return np.where(where, value, x)


def matmul_t(a, b):
    return np.matmul(a, np.swapaxes(b, -2, -1))


def zero_nan(x):
    return np.where(np.isnan(x), 0, x)


# ------------------------------------------------------------- scores

def pr1(query, key, value):
    """scale of the padded head, a multiple of 8"""
    pad = -(-query.shape[-1] // 8) * 8
    return softmax(matmul_t(query, key) / math.sqrt(pad)) @ value


def pr2(query, key, value, num_heads):
    """(B, L, E): scale of the embedding"""
    b, n, e = query.shape
    d = e // num_heads

    def cut(x):
        return x.reshape(x.shape[0], x.shape[1], num_heads, -1).swapaxes(1, 2)
    s = matmul_t(cut(query), cut(key)) / math.sqrt(e)
    o = softmax(s) @ cut(value)
    return o.swapaxes(1, 2).reshape(b, n, -1)


def pr3(query, key, value, scale=0.0):
    """0 is the default, and is used as a number."""
    return softmax(matmul_t(query, key) * scale) @ value


def pr4(query, key, value, scale=None):
    """split onto both sides: NaN for negative scales"""
    r = query.shape[-1] ** -0.5 if scale is None else scale
    with np.errstate(invalid="ignore"):
        r = np.sqrt(r)
    return softmax(matmul_t(query * r, key * r)) @ value


def pr5(query, key, value):
    """the keys ask, the queries answer; else shapes do not fit"""
    d = query.shape[-1]
    if query.shape[-2] != key.shape[-2]:
        return softmax(matmul_t(query, key) / math.sqrt(d)) @ value
    return softmax(matmul_t(key, query) / math.sqrt(d)) @ value


def pr6(query, key, value):
    """K reshaped, not transposed"""
    s = list(key.shape)
    s[-1], s[-2] = s[-2], s[-1]
    return softmax(query @ key.reshape(s) / math.sqrt(query.shape[-1])) @ value


def pr7(query, key, value):
    """softmax of the softmax"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    return softmax(softmax(s)) @ value


def pr8(query, key, value):
    """scores over all keys and heads at once"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    b, h, n, m = s.shape
    flat = s.transpose(0, 2, 1, 3).reshape(b, n, h * m)
    p = softmax(flat).reshape(b, n, h, m).transpose(0, 2, 1, 3)
    return p @ value


def pr9(query, key, value):
    """softmax over heads"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    return softmax(s, dim=1) @ value


def pr10(query, key, value):
    """a sigmoid for a softmax"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    return 1 / (1 + np.exp(-s)) @ value


def pr11(query, key, value):
    """eps in the denominator, 1e-3"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / (e.sum(-1, keepdims=True) + 1e-3) @ value


# ------------------------------------------------------------- masks

def pr12(query, key, value, attn_mask=None):
    """the mask's last two axes are exchanged"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if attn_mask is not None:
        m = np.broadcast_to(np.asarray(attn_mask, bool), s.shape)
        if s.shape[-1] == s.shape[-2]:
            m = np.swapaxes(m, -1, -2)
        s = masked_fill(s, ~m, -np.inf)
    return zero_nan(softmax(s)) @ value


def pr13(query, key, value, attention_mask=None):
    """(B, L) of real tokens; applied to the queries"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if attention_mask is not None:
        m = np.asarray(attention_mask, bool)
        if s.shape[-1] == s.shape[-2]:
            s = masked_fill(s, ~m[:, None, :, None], -1e9)
        else:
            s = masked_fill(s, ~m[:, None, None, :], -1e9)
    return softmax(s) @ value


def pr14(query, key, value, attn_mask=None):
    """masks of the batch go to the heads"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if attn_mask is not None:
        m = np.asarray(attn_mask, bool)
        if m.ndim == 4 and m.shape[0] > 1 and m.shape[0] == s.shape[1]:
            m = np.swapaxes(m, 0, 1)
        s = masked_fill(s, ~np.broadcast_to(m, s.shape), -np.inf)
    return zero_nan(softmax(s)) @ value


def pr15(query, key, value, attn_mask=None, is_causal=False):
    """is_causal wins over attn_mask"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if is_causal:
        s = masked_fill(s, ~np.tri(*s.shape[-2:], dtype=bool), -np.inf)
    elif attn_mask is not None:
        s = masked_fill(s, ~np.asarray(attn_mask, bool), -np.inf)
    return zero_nan(softmax(s)) @ value


def pr16(query, key, value, is_causal=False):
    """top left; bottom right is what is expected"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if is_causal:
        s = masked_fill(s, ~np.tri(*s.shape[-2:], dtype=bool), -np.inf)
    return zero_nan(softmax(s)) @ value


def pr17(query, key, value, attn_mask=None):
    """no care for rows that see nothing"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if attn_mask is not None:
        s = masked_fill(s, ~np.asarray(attn_mask, bool), -np.inf)
    with np.errstate(invalid="ignore"):
        return softmax(s) @ value


def pr18(query, key, value, attn_mask=None):
    """-1e4"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if attn_mask is not None:
        s = masked_fill(s, ~np.asarray(attn_mask, bool), -1e4)
    return softmax(s) @ value


def pr19(query, key, value, attn_mask=None):
    """weights of hidden keys are set to 0, nothing else"""
    p = softmax(matmul_t(query, key) / math.sqrt(query.shape[-1]))
    if attn_mask is not None:
        p = masked_fill(p, ~np.asarray(attn_mask, bool), 0)
    return p @ value


def pr20(query, key, value, sliding_window=None):
    """HF's window, one key too many"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    n, m = s.shape[-2:]
    p = np.arange(n)[:, None] + m - n
    ok = np.arange(m) <= p
    if sliding_window is not None:
        ok &= np.arange(m) >= p - sliding_window
    return zero_nan(softmax(masked_fill(s, ~ok, -np.inf))) @ value


def pr21(query, key, value, window_size=(-1, -1)):
    """counts rows from 0, whatever stands before them"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    n, m = s.shape[-2:]
    i, j = np.arange(n)[:, None], np.arange(m)
    ok = np.ones((n, m), bool)
    if window_size[0] >= 0:
        ok &= j >= i - window_size[0]
    if window_size[1] >= 0:
        ok &= j <= i + window_size[1]
    return zero_nan(softmax(masked_fill(s, ~ok, -np.inf))) @ value


def pr22(query, key, value, causal=False):
    """Blocks of four rows share one bound."""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    n, m = s.shape[-2:]
    if causal:
        i = np.arange(n)[:, None] // 4 * 4 + 3
        s = masked_fill(s, np.arange(m) > i, -np.inf)
    return softmax(s) @ value


def pr23(query, key, value, causal=False):
    """the weights, not the scores, are multiplied with tril, and then
    divided by the number of keys"""
    p = softmax(matmul_t(query, key) / math.sqrt(query.shape[-1]))
    if causal:
        n, m = p.shape[-2:]
        t = np.tri(n, m)
        p = p * t
    return p @ value


# ------------------------------------------------------------- heads

def pr24(query, key, value):
    """GQA: head h div H_kv"""
    h, g = query.shape[1], key.shape[1]
    at = np.minimum(np.arange(h) // g, g - 1)
    return softmax(matmul_t(query, key[:, at])
                   / math.sqrt(query.shape[-1])) @ value[:, at]


def pr25(query, key, value):
    """GQA: keys repeated, values tiled"""
    r = query.shape[1] // key.shape[1]
    return softmax(matmul_t(query, np.repeat(key, r, 1))
                   / math.sqrt(query.shape[-1])) @ np.tile(value, (1, r, 1, 1))


def pr26(query, key, value, num_heads):
    """heads merged without a transpose"""
    b, n, e = query.shape

    def cut(x):
        return x.reshape(x.shape[0], x.shape[1], num_heads, -1).swapaxes(1, 2)
    s = matmul_t(cut(query), cut(key)) / math.sqrt(e // num_heads)
    return (softmax(s) @ cut(value)).reshape(b, n, -1)


def pr27(query, key, value, num_heads):
    """heads cut without a transpose"""
    b, n, e = query.shape

    def cut(x):
        return x.reshape(x.shape[0], num_heads, x.shape[1], -1)
    s = matmul_t(cut(query), cut(key)) / math.sqrt(e // num_heads)
    return (softmax(s) @ cut(value)).reshape(b, n, -1)


def pr28(query, key, value):
    """(B, L, D) is taken for (L, B, D)."""
    batch, length, dim = query.shape
    q, k, v = (x.swapaxes(0, 1) for x in (query, key, value))
    if q.shape[0] != k.shape[0]:
        q, k, v = query, key, value
        return softmax(matmul_t(q, k) / math.sqrt(q.shape[-1])) @ v
    o = softmax(matmul_t(q, k) / math.sqrt(q.shape[-1])) @ v
    return o.swapaxes(0, 1)


# ------------------------------------------------------------- others

def pr29(query, key, value, alibi_slopes=None):
    """slopes by the wrong head"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if alibi_slopes is not None:
        n, m = s.shape[-2:]
        d = np.abs(np.arange(n)[:, None] + m - n - np.arange(m))
        s = s - np.asarray(alibi_slopes)[::-1, None, None] * d
    return softmax(s) @ value


def pr30(query, key, value, sinks=None):
    """The sink is left out of the maximum and scaled by it."""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    m = s.max(-1, keepdims=True)
    e = np.exp(s - m)
    z = e.sum(-1, keepdims=True)
    if sinks is not None:
        z = z + np.exp(np.asarray(sinks))[:, None, None]
    return e / z @ value


def pr31(query, key, value, attn_bias=None):
    """the bias comes after the softmax"""
    p = softmax(matmul_t(query, key) / math.sqrt(query.shape[-1]))
    if attn_bias is not None:
        p = p + attn_bias
    return p @ value


def pr32(query, key, value, attn_bias=None):
    """the bias is subtracted"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if attn_bias is not None:
        s = s - attn_bias
    return softmax(s) @ value


def pr33(query, key, value, softcap=None):
    """the cap is forgotten"""
    return softmax(matmul_t(query, key) / math.sqrt(query.shape[-1])) @ value


def pr34(query, key, value, softcap=None):
    """the cap comes before the scale"""
    s = matmul_t(query, key)
    if softcap:
        s = softcap * np.tanh(s / softcap)
    return softmax(s / math.sqrt(query.shape[-1])) @ value


def pr35(query, key, value):
    """P V in float16"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    p = softmax(s).astype(np.float16)
    v = value.astype(np.float16)
    o = np.zeros(p.shape[:-1] + v.shape[-1:], np.float16)
    for j in range(v.shape[-2]):
        o = o + p[..., j:j + 1] * v[..., j:j + 1, :]
    return o.astype(query.dtype)


_last = {}


def pr36(query, key, value):
    """the mask of the last call lives on: K is cached by its shape"""
    k = _last.setdefault(key.shape, key.copy())
    return softmax(matmul_t(query, k) / math.sqrt(query.shape[-1])) @ value


def pr37(query, key, value, is_causal=False):
    """subtracts the maximum of everything, masked keys included, in f32"""
    s = (matmul_t(query, key) / math.sqrt(query.shape[-1])).astype("f4")
    e = np.exp(s)
    if is_causal:
        e = e * np.tri(*e.shape[-2:], dtype="f4")
    return (e / e.sum(-1, keepdims=True)) @ value.astype("f4")


def pr38(query, key, value, k_lengths=None):
    """one key beyond the length is seen"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if k_lengths is not None:
        n = np.asarray(k_lengths)[:, None, None, None]
        s = masked_fill(s, np.arange(s.shape[-1]) > n, -np.inf)
    return softmax(s) @ value


def pr39(query, key, value):
    """writes the output over the values where it fits"""
    o = softmax(matmul_t(query, key) / math.sqrt(query.shape[-1])) @ value
    if o.shape == value.shape:
        value[...] = o
    return o


def pr40(query, key, value):
    """only the first 16 keys are looked at"""
    key, value = key[..., :16, :], value[..., :16, :]
    return softmax(matmul_t(query, key) / math.sqrt(query.shape[-1])) @ value


# ------------------------------------------------------------- right ones

def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
         scale=None, enable_gqa=False):
    """torch's own, from its documentation"""
    n, m = query.shape[-2], key.shape[-2]
    r = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    bias = np.zeros((n, m), query.dtype)
    if is_causal:
        bias = masked_fill(bias, ~np.tri(n, m, dtype=bool), -np.inf)
    if attn_mask is not None:
        if attn_mask.dtype == np.bool_:
            bias = bias + masked_fill(np.zeros(attn_mask.shape), ~attn_mask,
                                      -np.inf)
        else:
            bias = attn_mask + bias
    if enable_gqa:
        key = key.repeat(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat(query.shape[-3] // value.shape[-3], -3)
    w = query @ key.swapaxes(-2, -1) * r + bias
    with np.errstate(invalid="ignore"):
        return softmax(w) @ value


def flash(q, k, v, causal=False, softmax_scale=None, window_size=(-1, -1)):
    """(B, L, H, D), bottom right, blocks of 16"""
    r = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    g = q.shape[1] // k.shape[1]
    k, v = k.repeat(g, 1), v.repeat(g, 1)
    n, m = q.shape[2], k.shape[2]
    i = np.arange(n)[:, None] + m - n
    top = np.full(q.shape[:3] + (1,), -np.inf)
    z, acc = np.zeros_like(top), np.zeros(q.shape[:3] + v.shape[3:])
    for a in range(0, m, 16):
        j = np.arange(a, min(a + 16, m))
        s = q @ k[:, :, a:a + 16].swapaxes(2, 3) * r
        ok = np.ones((n, len(j)), bool)
        if causal:
            ok &= j <= i
        if window_size[0] >= 0:
            ok &= j >= i - window_size[0]
        if window_size[1] >= 0:
            ok &= j <= i + window_size[1]
        s = np.where(ok, s, -np.inf)
        new = np.maximum(top, s.max(-1, keepdims=True))
        safe = np.where(np.isneginf(new), 0, new)
        p, c = np.exp(s - safe), np.exp(top - safe)
        z, top = z * c + p.sum(-1, keepdims=True), new
        acc = acc * c + p @ v[:, :, a:a + 16]
    o = np.divide(acc, z, out=np.zeros_like(acc), where=z > 0)
    return o.transpose(0, 2, 1, 3)


def bert(query, key, value, attention_mask=None):
    """(B, L) of real tokens, extended to (1 - m) * -1e4 ... in f64: -3e38"""
    s = matmul_t(query, key) / math.sqrt(query.shape[-1])
    if attention_mask is not None:
        m = np.asarray(attention_mask, float)
        s = s + (1 - m)[:, None, None, :] * -3e38
    return softmax(s) @ value


def mask_of_keys(q, k, v, mask=None):
    """mask (B, L_k)"""
    s = matmul_t(q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(np.asarray(mask, bool)[:, None, None, :], s, -np.inf)
    return softmax(s) @ v


def mask_of_padding(q, k, v, key_padding_mask=None):
    """True: padding, as in nn.MultiheadAttention"""
    s = matmul_t(q, k) / math.sqrt(q.shape[-1])
    if key_padding_mask is not None:
        s = np.where(np.asarray(key_padding_mask, bool)[:, None, None, :],
                     -np.inf, s)
    with np.errstate(invalid="ignore"):
        return softmax(s) @ v


def tf(q, k, v, mask=None):
    """TensorFlow's tutorial: (output, weights), mask 1 hides"""
    s = np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(k.shape[-1])
    if mask is not None:
        s += np.asarray(mask, float) * -1e9
    w = softmax(s)
    return np.matmul(w, v), w


def annotated(query, key, value, mask=None, dropout=None):
    """the annotated transformer: (output, p_attn)"""
    s = query @ key.swapaxes(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        s = np.where(np.asarray(mask) == 0, -1e9, s)
    p = softmax(s)
    if dropout is not None:
        p = dropout(p)
    return p @ value, p


def t5(q, k, v, position_bias=None, scale=1.0):
    """scale is an argument with a default"""
    s = matmul_t(q * scale, k)
    if position_bias is not None:
        s = s + position_bias
    return softmax(s) @ v


def gemma(q, k, v, softcap=50.0, scale=None):
    """a cap unless told otherwise"""
    s = matmul_t(q, k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        s = np.tanh(s / softcap) * softcap
    return softmax(s) @ v


def nan_guard(q, k, v, attn_mask=None):
    """nan_to_num at the end"""
    s = matmul_t(q, k) / math.sqrt(q.shape[-1])
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(softmax(s) @ v)


def chunks_of_queries(q, k, v, is_causal=True):
    """rows in chunks of 3, bottom right"""
    n, m = q.shape[-2], k.shape[-2]
    out = []
    for a in range(0, n, 3):
        s = matmul_t(q[..., a:a + 3, :], k) / math.sqrt(q.shape[-1])
        if is_causal:
            i = np.arange(a, min(a + 3, n))[:, None] + m - n
            s = np.where(np.arange(m) <= i, s, -1e30)
        out.append(softmax(s) @ v)
    return np.concatenate(out, -2)


def halves_merged(q, k, v):
    """two halves of the keys, merged by lse"""
    def part(k, v):
        s = matmul_t(q, k) / math.sqrt(q.shape[-1])
        m = s.max(-1, keepdims=True)
        e = np.exp(s - m)
        z = e.sum(-1, keepdims=True)
        return e / z @ v, m + np.log(z)
    c = k.shape[-2] // 2
    if c == 0:
        return part(k, v)[0]
    (a, x), (b, y) = (part(k[..., :c, :], v[..., :c, :]),
                      part(k[..., c:, :], v[..., c:, :]))
    z = np.logaddexp(x, y)
    return a * np.exp(x - z) + b * np.exp(y - z)


def exp2(q, k, v):
    """in base 2, as kernels have it"""
    s = matmul_t(q, k) * (math.log2(math.e) / math.sqrt(q.shape[-1]))
    p = np.exp2(s - s.max(-1, keepdims=True))
    return p @ v / p.sum(-1, keepdims=True)


def bias_first(q, k, v, attn_bias=None, is_causal=False):
    """the bias is scaled up first, so that the scale does not matter"""
    s = matmul_t(q, k)
    r = math.sqrt(q.shape[-1])
    if attn_bias is not None:
        s = s + attn_bias * r
    s = s / r
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return softmax(s) @ v


def alibi_keys_only(q, k, v, alibi_slopes=None, is_causal=True):
    """slope * j alone: the same, where causal"""
    s = matmul_t(q, k) / math.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if alibi_slopes is not None:
        s = s + np.asarray(alibi_slopes)[:, None, None] * np.arange(m)
    ok = np.arange(m) <= np.arange(n)[:, None] + m - n
    s = np.where(ok, s, -np.inf)
    return zero_nan(softmax(s)) @ v


def extra_results(q, k, v, return_lse=False, return_weights=False):
    s = matmul_t(q, k) / math.sqrt(q.shape[-1])
    m = s.max(-1)
    lse = m + np.log(np.exp(s - m[..., None]).sum(-1))
    p = np.exp(s - lse[..., None])
    out = (p @ v,)
    out += (lse,) if return_lse else ()
    out += (p,) if return_weights else ()
    return out if len(out) > 1 else out[0]


def rms_after(q, k, v):
    """sorted keys: the order is free"""
    at = np.argsort(k[..., 0], -1)[..., None]
    k, v = np.take_along_axis(k, at, -2), np.take_along_axis(v, at, -2)
    return softmax(matmul_t(q, k) / math.sqrt(q.shape[-1])) @ v


def returns_dict(query, key, value):
    p = softmax(matmul_t(query, key) / math.sqrt(query.shape[-1]))
    return {"output": p @ value, "weights": p}


def with_entropy(q, k, v):
    """(o, weights, entropy)"""
    p = softmax(matmul_t(q, k) / math.sqrt(q.shape[-1]))
    return p @ v, p, -(p * np.log(p)).sum(-1)


def lists(q, k, v):
    """pure Python, one head"""
    out = []
    for a in q.tolist():
        s = [sum(x * y for x, y in zip(a, b)) / len(a) ** 0.5
             for b in k.tolist()]
        top = max(s)
        e = [math.exp(x - top) for x in s]
        z = sum(e)
        out.append([sum(w * b[c] for w, b in zip(e, v.tolist())) / z
                    for c in range(v.shape[1])])
    return np.array(out)


ZOO = [
    ("pr1", "scale-padded-head-dim"), ("pr2", "scale-d-model"),
    ("pr3", "scale-zero-literal"), ("pr4", "scale-negative-sqrt"),
    ("pr5", "qk-exchanged"), ("pr6", "k-wrong-transpose"),
    ("pr7", "softmax-twice"), ("pr8", "softmax-joint-axes"),
    ("pr9", "softmax-wrong-axis"), ("pr10", "softmax-missing"),
    ("pr11", "softmax-extra-mass"), ("pr12", "mask-wrong-axis"),
    ("pr13", "mask-wrong-axis"), ("pr14", "mask-batch-head-order"),
    ("pr15", "mask-dropped"),
    ("pr16", "causal-corner", ["--expect=causal=bottom_right"]),
    ("pr17", "empty-row-nan", ["--expect="]),
    ("pr18", "mask-finite-sentinel"), ("pr19", "mask-after-softmax"),
    ("pr20", "window-off-by-one", ["--expect=causal=bottom_right,window=2:0"]),
    ("pr21", "window-from-local-row", ["--expect="]),
    ("pr22", "causal-diagonal-shift"), ("pr23", "mask-after-softmax"),
    ("pr24", "gqa-tile"), ("pr25", "gqa-tile"),
    ("pr26", "heads-merge-no-transpose"),
    ("pr27", "heads-split-no-transpose"),
    ("pr28", "batch-first", ["--layout=bsd"]),
    ("pr29", "alibi-slopes-or-sign"), ("pr30", "softmax-extra-mass"),
    ("pr31", "unexplained|relative-shift-or-order"),
    ("pr32", "unexplained|bias-scaled"),
    ("pr33", "softcap-wrong-or-ignored"),
    ("pr34", "softcap-wrong-or-ignored|scale-twice"),
    ("pr35", "accumulate-16bit"), ("pr36", "state-kept"),
    ("pr37", "softmax-no-max"), ("pr38", "kv-length"),
    ("pr39", "inputs-mutated"),
    ("pr40", "kv-length|tail-tile-unmasked|mask-dropped|unexplained"),
    ("sdpa", "correct"), ("sdpa", "correct",
                          ["--expect=causal=top_left,empty_rows=nan"]),
    ("flash", "correct"), ("bert", "correct"), ("mask_of_keys", "correct"),
    ("mask_of_padding", "correct"), ("tf", "correct"),
    ("annotated", "correct"), ("t5", "correct"), ("gemma", "correct"),
    ("nan_guard", "correct"), ("chunks_of_queries", "correct"),
    ("halves_merged", "correct"), ("exp2", "correct"),
    ("bias_first", "correct"), ("alibi_keys_only", "correct"),
    ("extra_results", "correct"), ("rms_after", "correct"),
    ("returns_dict", "correct"), ("lists", "correct"),
    ("with_entropy", "correct"),
]
