# SPDX-License-Identifier: Apache-2.0
#
# Style: notebooks of a workshop, (batch, heads, len, dim) by einsum, each
# function by itself, with the names that people use.
import numpy as np

NEG = -1e9


def stable_softmax(x, dim=-1):
    x = x - np.max(x, axis=dim, keepdims=True)
    x = np.exp(x)
    return x / np.sum(x, axis=dim, keepdims=True)


def sdpa(query, key, value, attn_mask=None, is_causal=False, scale=None):
    """Right: torch's semantics, top-left causal, True = take part."""
    d = query.shape[-1]
    scale = 1 / np.sqrt(d) if scale is None else scale
    logits = np.einsum("bhqd,bhkd->bhqk", query, key) * scale
    if is_causal:
        keep = np.tri(query.shape[-2], key.shape[-2], dtype=bool)
        logits = np.where(keep, logits, -np.inf)
    if attn_mask is not None:
        logits = np.where(attn_mask, logits, -np.inf)
    return np.einsum("bhqk,bhkd->bhqd", stable_softmax(logits), value)


def temperature_lost(query, key, value, attn_mask=None):
    logits = np.einsum("bhqd,bhkd->bhqk", query, key)
    if attn_mask is not None:
        logits = np.where(attn_mask, logits, NEG)
    return stable_softmax(logits) @ value


def prescaled_and_scaled(query, key, value, attn_mask=None):
    query = query * query.shape[-1] ** -0.5
    logits = np.einsum("bhqd,bhkd->bhqk", query, key)
    logits = logits / np.sqrt(query.shape[-1])
    if attn_mask is not None:
        logits = np.where(attn_mask, logits, NEG)
    return stable_softmax(logits) @ value


def embedding_scale(query, key, value, is_causal=False):
    embed = query.shape[1] * query.shape[3]
    logits = np.einsum("bhqd,bhkd->bhqk", query, key) / embed ** 0.5
    if is_causal:
        n, m = logits.shape[-2:]
        logits[..., np.triu(np.ones((n, m), dtype=bool), 1)] = -np.inf
    return stable_softmax(logits) @ value


def zero_means_default(q, k, v, scale=0.0):
    return stable_softmax(scale * np.einsum("bhid,bhjd->bhij", q, k)) @ v


def padded_to_sixteen(q, k, v):
    d = q.shape[-1]
    pad = [(0, 0)] * (q.ndim - 1) + [(0, -d % 16)]
    q, k = np.pad(q, pad), np.pad(k, pad)
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    return stable_softmax(s) @ v


def forgets_its_scale(q, k, v, sm_scale=None):
    s = q @ k.swapaxes(-2, -1) * (1.0 / np.sqrt(q.shape[-1]))
    return stable_softmax(s) @ v


def root_of_scale(q, k, v, scale=None):
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    r = np.sqrt(np.float64(scale))
    return stable_softmax((r * q) @ (r * k).swapaxes(-2, -1)) @ v


def bias_inside(q, k, v, attn_bias=None):
    s = q @ k.swapaxes(-2, -1)
    if attn_bias is not None:
        s = s + attn_bias
    return stable_softmax(s / np.sqrt(q.shape[-1])) @ v


def wrong_way_round(q, k, v):
    s = np.einsum("bhid,bhjd->bhij", k, q) / np.sqrt(q.shape[-1])
    return stable_softmax(s) @ v


def reshaped_keys(q, k, v):
    b, h, m, d = k.shape
    s = q @ k.reshape(b, h, d, m) / np.sqrt(d)
    return stable_softmax(s) @ v


def late_cap(q, k, v, is_causal=False, softcap=0.0):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    if softcap > 0:
        s = softcap * np.tanh(s / softcap)
    return stable_softmax(s) @ v


def no_cap(q, k, v, is_causal=False, logit_softcap=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return stable_softmax(s) @ v


def half_a_cap(q, k, v, softcap=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if softcap:
        s = np.tanh(s / softcap)
    return stable_softmax(s) @ v


def mask_at_the_end(q, k, v, mask=None):
    w = stable_softmax(q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1]))
    if mask is not None:
        w = np.where(mask, w, 0)
    return w @ v


def tiny_fill(q, k, v, attn_mask=None, is_causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if is_causal:
        s = np.where(np.tri(n, m, m - n, dtype=bool), s, -1e-9)
    if attn_mask is not None:
        s = np.where(attn_mask, s, -1e-9)
    return stable_softmax(s) @ v


def product_with_mask(q, k, v, mask=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = s * mask.astype(s.dtype)
    return stable_softmax(s) @ v


def minus_ten_thousand(q, k, v, mask=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = s - 10000.0 * (1 - mask)
    return stable_softmax(s) @ v


def minus_fifty(q, k, v, is_causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -50.0)
    return stable_softmax(s) @ v


def key_padding_as_keep(q, k, v, key_padding_mask=None):
    """key_padding_mask (B, Lk): True marks padding"""
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if key_padding_mask is not None:
        s = np.where(key_padding_mask[:, None, None, :], s, -np.inf)
    return stable_softmax(s) @ v


def added_booleans(q, k, v, mask=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = s + mask
    return stable_softmax(s) @ v


def pads_the_queries(q, k, v, key_padding_mask=None):
    """key_padding_mask (B, L): True is a real token"""
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if key_padding_mask is not None:
        s = np.where(key_padding_mask[:, None, :, None], s, NEG)
    return stable_softmax(s) @ v


def tiled_batch_mask(q, k, v, mask=None):
    b, h, n, d = q.shape
    m = k.shape[2]
    s = (q @ k.swapaxes(-2, -1) / np.sqrt(d)).reshape(b * h, n, m)
    if mask is not None:
        full = np.broadcast_to(mask, np.broadcast_shapes(mask.shape,
                                                         (b, 1, n, m)))[:, 0]
        s = np.where(np.concatenate([full] * h, 0), s, NEG)
    return (stable_softmax(s)).reshape(b, h, n, m) @ v


def mask_or_causal(q, k, v, attn_mask=None, is_causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if attn_mask is not None:
        s = np.where(attn_mask, s, NEG)
    elif is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, NEG)
    return stable_softmax(s) @ v


def not_causal_at_all(q, k, v, causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    return stable_softmax(s) @ v


def one_ahead(q, k, v, causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if causal:
        s = s + np.triu(np.full((n, m), -np.inf), m - n + 2)
    return stable_softmax(s) @ v


def strictly_before(q, k, v, causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if causal:
        s = np.where(np.tri(n, m, m - n - 1, dtype=bool), s, NEG)
    return stable_softmax(s) @ v


def upper_instead(q, k, v, causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if causal:
        s = np.where(np.triu(np.ones(s.shape[-2:], bool)), s, -np.inf)
    return stable_softmax(s) @ v


def window_plus_one(q, k, v, window_size=(-1, -1), causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    p = np.arange(n)[:, None] + m - n
    j = np.arange(m)[None]
    left, right = window_size
    ok = np.ones((n, m), bool)
    if left >= 0:
        ok &= p - j <= left + 1
    if right >= 0:
        ok &= j - p <= right
    if causal:
        ok &= j <= p
    return stable_softmax(np.where(ok, s, -np.inf)) @ v


def window_of_rows(q, k, v, window_size=(-1, -1), causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    i = np.arange(n)[:, None]
    j = np.arange(m)[None]
    left, right = window_size
    ok = np.ones((n, m), bool)
    if causal:
        ok &= j <= i + m - n
    if left >= 0:
        ok &= j >= i - left
    if right >= 0:
        ok &= j <= i + right
    return stable_softmax(np.where(ok, s, NEG)) @ v


def right_side_open(q, k, v, window_size=(-1, -1)):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    p = np.arange(n)[:, None] + m - n
    if window_size[0] >= 0:
        s = np.where(np.arange(m) >= p - window_size[0], s, -np.inf)
    return stable_softmax(s) @ v


def over_heads(q, k, v):
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("bhij,bhjd->bhid", stable_softmax(s, 1), v)


def over_queries(q, k, v):
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("bhij,bhjd->bhid", stable_softmax(s, dim=2), v)


def one_for_all_heads(q, k, v):
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1])
    b, h, n, m = s.shape
    flat = s.transpose(0, 2, 1, 3).reshape(b, n, h * m)
    w = stable_softmax(flat).reshape(b, n, h, m).transpose(0, 2, 1, 3)
    return w @ v


def twice(q, k, v):
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1])
    return stable_softmax(stable_softmax(s)) @ v


def linear(q, k, v):
    return (q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])) @ v


def naive_exp(q, k, v):
    e = np.exp(q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1]))
    return e / e.sum(-1, keepdims=True) @ v


def no_keepdims(q, k, v):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1) @ v


def off_by_one_softmax(q, k, v):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    m = s.max(-1, keepdims=True)
    e = np.exp(s - m)
    return e / (np.exp(-m) + e.sum(-1, keepdims=True)) @ v


def generous_eps(q, k, v):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / (e.sum(-1, keepdims=True) + 1e-3) @ v


def keeps_dropping(q, k, v, dropout_p=0.1):
    w = stable_softmax(q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1]))
    keep = np.random.rand(*w.shape) >= 0.1
    return (w * keep / 0.9) @ v


def tiles_its_groups(q, k, v):
    g = q.shape[1] // k.shape[1]
    k, v = np.concatenate([k] * g, 1), np.concatenate([v] * g, 1)
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    return stable_softmax(s) @ v


def first_kv_head(q, k, v):
    k, v = k[:, :1], v[:, :1]
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    return stable_softmax(s) @ v


def keys_as_values(q, k, v):
    w = stable_softmax(q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1]))
    return w @ k


def sinks_twice(q, k, v, sinks=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if sinks is None:
        return stable_softmax(s) @ v
    sink = np.broadcast_to(sinks.reshape(1, -1, 1, 1), s.shape[:-1] + (1,))
    w = stable_softmax(np.concatenate([s, sink, sink], -1))
    return w[..., :-2] @ v


def sink_forgotten(q, k, v, sinks=None, causal=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    if causal:
        s = np.where(np.tri(n, m, m - n, dtype=bool), s, NEG)
        return stable_softmax(s) @ v
    if sinks is not None:
        sink = np.broadcast_to(sinks.reshape(-1, 1, 1), s.shape[:-1] + (1,))
        return stable_softmax(np.concatenate([s, sink], -1))[..., :-1] @ v
    return stable_softmax(s) @ v


def slopes_by_power(q, k, v, causal=True):
    h = q.shape[1]
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    dist = np.arange(m)[None] - (np.arange(n)[:, None] + m - n)
    slopes = 2.0 ** (-8.0 * np.arange(h) / h)
    s = s + slopes[:, None, None] * dist
    s = np.where(dist <= 0, s, NEG)
    return stable_softmax(s) @ v


def rewards_distance(q, k, v, alibi_slopes=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    n, m = s.shape[-2:]
    p = np.arange(n)[:, None] + m - n
    if alibi_slopes is not None:
        s = s + alibi_slopes[:, None, None] * np.abs(p - np.arange(m))
    return stable_softmax(s) @ v


def ignores_lengths(q, k, v, seqlens_k=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    return stable_softmax(s) @ v


def length_plus_one(q, k, v, kv_lens=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if kv_lens is not None:
        ok = np.arange(k.shape[2]) <= np.asarray(kv_lens)[:, None, None, None]
        s = np.where(ok, s, -np.inf)
    return stable_softmax(s) @ v


def nan_for_nobody(q, k, v, attn_mask=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf)
    return stable_softmax(s) @ v


def mean_for_nobody(q, k, v, attn_mask=None):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if attn_mask is not None:
        s = np.where(attn_mask, s, np.finfo(s.dtype).min)
    return stable_softmax(s) @ v


def zero_times_nan(q, k, v, mask=None):
    """mask: 1 = keep"""
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = s + (1.0 - mask) * -np.inf
    return stable_softmax(s) @ v


def weights_with_dropout(q, k, v, return_weights=False):
    w = stable_softmax(q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1]))
    o = w @ v
    keep = np.random.default_rng(1).random(w.shape) >= 0.25
    return (o, w * keep / 0.75) if return_weights else o


def log_two_lse(q, k, v, return_lse=False):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    m = s.max(-1, keepdims=True)
    e = np.exp(s - m)
    t = e.sum(-1, keepdims=True)
    lse = (m + np.log(t))[..., 0] * np.log2(np.e)
    return (e / t @ v, lse) if return_lse else e / t @ v


def lse_below(q, k, v):
    s = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    t = e.sum(-1, keepdims=True)
    return e / t @ v, np.log(t)[..., 0]


def all_zero(q, k, v):
    return np.zeros(q.shape[:-1] + v.shape[-1:])


BOTTOM, TOP = ["--expect=causal=bottom_right"], ["--expect=causal=top_left"]
ZOO = [
    ("sdpa", "correct"),
    ("sdpa", "empty-row-nan", TOP),
    ("sdpa", "causal-corner", BOTTOM),
    ("temperature_lost", "scale-missing"),
    ("prescaled_and_scaled", "scale-twice"),
    ("embedding_scale", "scale-d-model"),
    ("zero_means_default", "scale-zero-literal"),
    ("padded_to_sixteen", "scale-padded-head-dim"),
    ("forgets_its_scale", "scale-argument-ignored"),
    ("root_of_scale", "scale-negative-sqrt"),
    ("bias_inside", "bias-scaled"),
    ("wrong_way_round", "qk-exchanged"),
    ("reshaped_keys", "k-wrong-transpose"),
    ("late_cap", "softcap-after-mask"),
    ("no_cap", "softcap-wrong-or-ignored"),
    ("half_a_cap", "softcap-wrong-or-ignored"),
    ("mask_at_the_end", "mask-after-softmax"),
    ("tiny_fill", "mask-fill-zero"),
    ("product_with_mask", "mask-fill-zero"),
    ("minus_ten_thousand", "mask-finite-sentinel"),
    ("minus_fifty", "mask-finite-sentinel"),
    ("key_padding_as_keep", "mask-polarity", ["--expect=mask_true=drop"]),
    ("added_booleans", "mask-01-added", ["--expect=mask_true=keep"]),
    ("pads_the_queries", "mask-wrong-axis",
     ["--expect=mask_true=keep,empty_rows=any"]),
    ("tiled_batch_mask", "mask-batch-head-order"),
    ("mask_or_causal", "mask-dropped"),
    ("not_causal_at_all", "mask-dropped"),
    ("one_ahead", "causal-diagonal-shift"),
    ("strictly_before", "causal-diagonal-shift"),
    ("upper_instead", "mask-polarity|causal-diagonal-shift"),
    ("window_plus_one", "window-off-by-one"),
    ("window_of_rows", "window-from-local-row", ["--expect="]),
    ("right_side_open", "window-ignored-or-zero"),
    ("over_heads", "softmax-wrong-axis"),
    ("over_queries", "softmax-wrong-axis"),
    ("one_for_all_heads", "softmax-joint-axes"),
    ("twice", "softmax-twice"),
    ("linear", "softmax-missing"),
    ("naive_exp", "softmax-no-max"),
    ("no_keepdims", "softmax-keepdims-forgotten"),
    ("off_by_one_softmax", "softmax-extra-mass"),
    ("generous_eps", "softmax-extra-mass"),
    ("keeps_dropping", "dropout-not-off"),
    ("tiles_its_groups", "gqa-tile"),
    ("first_kv_head", "gqa-tile"),
    ("keys_as_values", "v-is-k"),
    ("sinks_twice", "softmax-extra-mass"),
    ("sink_forgotten", "softmax-extra-mass"),
    ("slopes_by_power", "alibi-slopes-or-sign"),
    ("rewards_distance", "alibi-slopes-or-sign"),
    ("ignores_lengths", "kv-length"),
    ("length_plus_one", "kv-length"),
    ("nan_for_nobody", "correct"),
    ("nan_for_nobody", "empty-row-nan", ["--expect="]),
    ("mean_for_nobody", "correct"),
    ("mean_for_nobody", "empty-row-mean", ["--expect="]),
    ("zero_times_nan", "masked-nan-leak"),
    ("weights_with_dropout", "dropout-not-off"),
    ("log_two_lse", "lse-base-or-empty", ["--expect="]),
    ("lse_below", "lse-base-or-empty"),
    ("all_zero", "output-constant"),
]
