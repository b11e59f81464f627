# SPDX-License-Identifier: Apache-2.0
#
# Style: NumPy einsum on (batch, heads, len, dim).
import ctypes

import numpy as np


def softmax(s, axis=-1):
    e = np.exp(s - np.max(s, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def scores(q, k):
    return np.einsum("bhid,bhjd->bhij", q, k)


def mix(p, v):
    return np.einsum("bhij,bhjd->bhid", p, v)


def tri(s, k=0):
    return np.tril(np.ones(s.shape[-2:], bool), k)


def corner(s, shift=0):
    return tri(s, s.shape[-1] - s.shape[-2] + shift)


# ------------------------------------------------------------ scale

def scale_missing(q, k, v):
    return mix(softmax(scores(q, k)), v)


def scale_d_model(q, k, v):
    b, h, l, d = q.shape
    return mix(softmax(scores(q, k) / np.sqrt(h * d)), v)


def scale_twice(q, k, v):
    q = q / np.sqrt(q.shape[-1])
    return mix(softmax(scores(q, k) / np.sqrt(k.shape[-1])), v)


def scale_padded(q, k, v):
    d = q.shape[-1]
    pad = -d % 64
    q = np.pad(q, ((0, 0),) * 3 + ((0, pad),))
    k = np.pad(k, ((0, 0),) * 3 + ((0, pad),))
    return mix(softmax(scores(q, k) / np.sqrt(q.shape[-1])), v)


def scale_padded_8(q, k, v):
    d = -(-q.shape[-1] // 8) * 8
    return mix(softmax(scores(q, k) * d ** -0.5), v)


def scale_ignored(q, k, v, scale=None):
    return mix(softmax(scores(q, k) / np.sqrt(q.shape[-1])), v)


def scale_zero(q, k, v, scale=0.0):
    return mix(softmax(scores(q, k) * scale), v)


def scale_negative(q, k, v, scale=None):
    if scale is None:
        scale = q.shape[-1] ** -0.5
    root = np.sqrt(scale)
    return mix(softmax(scores(q * root, k * root)), v)


def scale_seq_len(q, k, v):
    return mix(softmax(scores(q, k) / np.sqrt(k.shape[-2])), v)


def scale_on_top(q, k, v, scale=None):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    if scale is not None:
        s = s * scale
    return mix(softmax(s), v)


# ------------------------------------------------------------ bias, cap

def bias_scaled(q, k, v, bias=None):
    s = scores(q, k)
    if bias is not None:
        s = s + bias
    return mix(softmax(s / np.sqrt(q.shape[-1])), v)


def capped(q, k, v, softcap, mask, cap_late=False, product=False,
           ignored=False, unscaled=False):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    def cap(x):
        if softcap and not ignored:
            if product:
                return x * np.tanh(x / softcap)
            if unscaled:
                return np.tanh(x / softcap)
            return softcap * np.tanh(x / softcap)
        return x
    if not cap_late:
        s = cap(s)
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    if cap_late:
        s = cap(s)
    return mix(softmax(s), v)


def softcap_late(q, k, v, mask=None, softcap=0.0):
    return capped(q, k, v, softcap, mask, cap_late=True)


def softcap_product(q, k, v, softcap=0.0):
    return capped(q, k, v, softcap, None, product=True)


def softcap_ignored(q, k, v, mask=None, softcap=0.0):
    return capped(q, k, v, softcap, mask, ignored=True)


def softcap_unscaled(q, k, v, softcap=None):
    return capped(q, k, v, softcap, None, unscaled=True)


# ------------------------------------------------------------ mask

def attend(q, k, v, hide):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    return mix(softmax(hide(s)), v)


def mask_after(q, k, v, mask=None):
    p = softmax(scores(q, k) / np.sqrt(q.shape[-1]))
    if mask is not None:
        p = p * mask
    return mix(p, v)


def mask_zero(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else np.where(mask, s, 0.0))


def mask_tiny(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else np.where(mask, s, 1e-9))


def mask_times(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None else s * mask)


def mask_10000(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else np.where(mask, s, -1e4))


def mask_100(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else np.where(mask, s, -100.0))


def mask_add_10000(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else s + (1.0 - mask) * -10000.0)


def mask_inverted(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else np.where(mask, -np.inf, s))


def mask_added(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else s + mask.astype(s.dtype))


def mask_transposed(q, k, v, key_padding_mask=None):
    return attend(q, k, v, lambda s: s if key_padding_mask is None
                  else np.where(key_padding_mask[:, None, :, None], s,
                                -np.inf))


def mask_inf_times(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else s + (1 - mask.astype(float)) * -np.inf)


def mask_tiled(q, k, v, mask=None):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    b, h, l, m = s.shape
    if mask is not None:
        mask = np.broadcast_to(mask, (b, 1, l, m))[:, 0]
        s = np.where(np.tile(mask, (h, 1, 1)).reshape(b, h, l, m), s, -np.inf)
    return mix(softmax(s), v)


def mask_batch_0(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None else np.where(
        np.broadcast_to(mask, s.shape)[:1], s, -np.inf))


def mask_or_causal(q, k, v, mask=None, causal=False):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    elif causal:
        s = np.where(corner(s), s, -np.inf)
    return mix(softmax(s), v)


def causal_wins(q, k, v, mask=None, causal=False):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    if causal:
        s = np.where(corner(s), s, -np.inf)
    elif mask is not None:
        s = np.where(mask, s, -np.inf)
    return mix(softmax(s), v)


def causal_ignored(q, k, v, causal=False):
    return mix(softmax(scores(q, k) / np.sqrt(q.shape[-1])), v)


def causal_top_left(q, k, v, causal=False):
    return attend(q, k, v, lambda s: np.where(tri(s), s, -np.inf)
                  if causal else s)


def causal_bottom_right(q, k, v, is_causal=False):
    return attend(q, k, v, lambda s: np.where(corner(s), s, -np.inf)
                  if is_causal else s)


def causal_strict(q, k, v, causal=False):
    return attend(q, k, v, lambda s: np.where(tri(s, -1), s, -np.inf)
                  if causal else s)


def causal_plus_one(q, k, v):
    return attend(q, k, v, lambda s: np.where(tri(s, 1), s, -np.inf))


def causal_two(q, k, v, causal=False):
    return attend(q, k, v, lambda s: np.where(corner(s, 2), s, -1e30)
                  if causal else s)


def causal_upper(q, k, v, causal=False):
    return attend(q, k, v, lambda s: np.where(tri(s), -1e9, s)
                  if causal else s)


def causal_blocks(q, k, v, causal=False):
    def hide(s):
        l, m = s.shape[-2:]
        i = np.arange(l)[:, None] // 4 * 4 + 3
        return np.where(np.arange(m) <= i + m - l, s, -np.inf)
    return attend(q, k, v, hide if causal else lambda s: s)


def banded(left, right, local=False):
    def hide(s):
        l, m = s.shape[-2:]
        i = np.arange(l)[:, None] + (0 if local else m - l)
        j = np.arange(m)
        return np.where((j >= i - left) & (j <= i + right), s, -np.inf)
    return hide


def window_wide(q, k, v, window_size=(-1, -1)):
    left, right = window_size
    if left < 0:
        return attend(q, k, v, lambda s: s)
    return attend(q, k, v, banded(left + 1, right))


def window_short(q, k, v, window=None):
    if window is None:
        return attend(q, k, v, lambda s: s)
    return attend(q, k, v, banded(window[0] - 1, window[1]))


def window_exclusive(q, k, v):
    return attend(q, k, v, banded(3, 0))


def window_local(q, k, v, window=None):
    if window is None:
        return attend(q, k, v, lambda s: s)
    return attend(q, k, v, banded(*window, local=True))


def window_ignored(q, k, v, window=None, causal=False):
    return attend(q, k, v, lambda s: np.where(corner(s), s, -np.inf)
                  if causal else s)


def window_right_lost(q, k, v, window=None):
    if window is None:
        return attend(q, k, v, lambda s: s)
    return attend(q, k, v, banded(window[0], 99))


def empty_nan(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else np.where(mask, s, -np.inf))


def empty_mean(q, k, v, mask=None):
    return attend(q, k, v, lambda s: s if mask is None
                  else np.where(mask, s, np.finfo(s.dtype).min))


# ------------------------------------------------------------ softmax

def by(q, k, v, weigh):
    return mix(weigh(scores(q, k) / np.sqrt(q.shape[-1])), v)


def axis_queries(q, k, v):
    return by(q, k, v, lambda s: softmax(s, axis=-2))


def axis_heads(q, k, v):
    return by(q, k, v, lambda s: softmax(s, axis=1))


def axis_batch(q, k, v):
    return by(q, k, v, lambda s: softmax(s, axis=0))


def joint_heads(q, k, v):
    return by(q, k, v, lambda s: softmax(s, axis=(1, 3)))


def joint_three(q, k, v):
    return by(q, k, v, lambda s: softmax(s, axis=(1, 2, 3)))


def joint_pairs(q, k, v):
    return by(q, k, v, lambda s: softmax(s, axis=(-2, -1)))


def twice(q, k, v):
    return by(q, k, v, lambda s: softmax(softmax(s)))


def missing(q, k, v):
    return by(q, k, v, lambda s: s)


def no_sum(q, k, v):
    return by(q, k, v, lambda s: np.exp(s - s.max(-1, keepdims=True)))


def no_max(q, k, v):
    def weigh(s):
        e = np.exp(s)
        return e / e.sum(-1, keepdims=True)
    return by(q, k, v, weigh)


def no_max_32(q, k, v):
    def weigh(s):
        e = np.exp(s.astype(np.float32))
        return e / e.sum(-1, keepdims=True)
    return by(q, k, v, weigh)


def softmax_one(q, k, v):
    def weigh(s):
        m = np.maximum(s.max(-1, keepdims=True), 0)
        e = np.exp(s - m)
        return e / (np.exp(-m) + e.sum(-1, keepdims=True))
    return by(q, k, v, weigh)


def plus_one(q, k, v):
    def weigh(s):
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / (1 + e.sum(-1, keepdims=True))
    return by(q, k, v, weigh)


def plus_eps(q, k, v):
    def weigh(s):
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / (1e-3 + e.sum(-1, keepdims=True))
    return by(q, k, v, weigh)


def sunk(s, sink, times=1, shift=True):
    m = s.max(-1, keepdims=True)
    e = np.exp(s - m)
    total = e.sum(-1, keepdims=True)
    if sink is not None:
        x = sink.reshape(1, -1, 1, 1) - (m if shift else 0)
        total = total + times * np.exp(x)
    return e / total


def sink_twice(q, k, v, sinks=None):
    return by(q, k, v, lambda s: sunk(s, sinks, 2))


def sink_ignored(q, k, v, sinks=None):
    return by(q, k, v, softmax)


def sink_unshifted(q, k, v, sinks=None):
    return by(q, k, v, lambda s: sunk(s, sinks, shift=False))


def max_from_zero(q, k, v):
    def weigh(s):
        e = np.exp(s - np.maximum(s.max(-1, keepdims=True), 0))
        return e / e.sum(-1, keepdims=True)
    return by(q, k, v, weigh)


def dropout_on(q, k, v, dropout_p=0.1):
    def weigh(s):
        p = softmax(s)
        keep = np.random.default_rng().random(p.shape) > 0.1
        return p * keep / 0.9
    return by(q, k, v, weigh)


def dropout_seeded(q, k, v):
    def weigh(s):
        p = softmax(s)
        keep = np.random.default_rng(0).random(p.shape) > 0.2
        return p * keep / 0.8
    return by(q, k, v, weigh)


# ------------------------------------------------------------ roles, heads

def grouped(k, n, how):
    h = k.shape[1]
    if how == "tile":
        return np.tile(k, (1, n // h, 1, 1))
    if how == "first":
        return np.repeat(k[:, :1], n, axis=1)
    return np.repeat(k, n // h, axis=1)


def gqa_tile(q, k, v):
    k, v = (grouped(x, q.shape[1], "tile") for x in (k, v))
    return by(q, k, v, softmax)


def gqa_first(q, k, v):
    k, v = (grouped(x, q.shape[1], "first") for x in (k, v))
    return by(q, k, v, softmax)


def gqa_divisor(q, k, v):
    h = np.arange(q.shape[1]) // k.shape[1] % k.shape[1]
    return by(q, k[:, h], v[:, h], softmax)


def gqa_right(q, k, v):
    k, v = (grouped(x, q.shape[1], "repeat") for x in (k, v))
    return by(q, k, v, softmax)


def v_is_k(q, k, v):
    return by(q, k, k, softmax)


def v_is_q(q, k, v):
    return by(q, k, q, softmax)


def exchanged(q, k, v):
    return by(k, q, v, softmax)


def over_queries(q, k, v):
    p = softmax(scores(q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("bhij,bhid->bhjd", p, v)


def reshaped_key(q, k, v):
    b, h, l, d = k.shape
    s = q @ k.reshape(b, h, d, l) / np.sqrt(d)
    return mix(softmax(s), v)


def merged_wrong(q, k, v):
    o = by(q, k, v, softmax)
    b, h, l, d = o.shape
    return o.reshape(b, l, h * d)


def across_batch(q, k, v):
    p = softmax(np.einsum("bhld,chld->hlbc", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("hlbc,chld->bhld", p, v)


def across_heads(q, k, v):
    p = softmax(np.einsum("bhld,bgld->blhg", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("blhg,bgld->bhld", p, v)


# ------------------------------------------------------------ positions

def alibi(s, slopes, distance):
    l, m = s.shape[-2:]
    i = np.arange(l)[:, None] + m - l
    j = np.arange(m)
    return s - slopes.reshape(1, -1, 1, 1) * distance(i - j)


def alibi_sign(q, k, v, alibi_slopes=None):
    return by(q, k, v, lambda s: softmax(
        s if alibi_slopes is None else alibi(s, -alibi_slopes, np.abs)))


def alibi_signed(q, k, v, alibi_slopes=None):
    return by(q, k, v, lambda s: softmax(
        s if alibi_slopes is None else alibi(s, alibi_slopes, lambda d: d)))


def alibi_reversed(q, k, v, alibi_slopes=None):
    return by(q, k, v, lambda s: softmax(
        s if alibi_slopes is None else alibi(s, alibi_slopes[::-1], np.abs)))


# ------------------------------------------------------------ lengths, lse

def lengths_ignored(q, k, v, k_lengths=None):
    return by(q, k, v, softmax)


def within(s, lengths, more=0):
    if lengths is None:
        return s
    n = np.asarray(lengths).reshape(-1, 1, 1, 1) + more
    return np.where(np.arange(s.shape[-1]) < n, s, -np.inf)


def lengths_plus_one(q, k, v, seqlens_k=None):
    return by(q, k, v, lambda s: softmax(within(s, seqlens_k, 1)))


def lengths_first(q, k, v, k_lengths=None):
    return by(q, k, v, lambda s: softmax(
        within(s, None if k_lengths is None else k_lengths[:1])))


def lse_base_2(q, k, v):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    m = s.max(-1)
    lse = np.log2(np.exp(s - m[..., None]).sum(-1)) + m / np.log(2)
    return mix(softmax(s), v), lse


def lse_no_max(q, k, v):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    lse = np.log(np.exp(s - s.max(-1, keepdims=True)).sum(-1))
    return mix(softmax(s), v), lse


def weights_unmasked(q, k, v, causal=False):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    raw = softmax(s)
    if causal:
        s = np.where(corner(s), s, -np.inf)
    return mix(softmax(s), v), raw


# ------------------------------------------------------------ manners

def mutates(q, k, v):
    q *= 1 / np.sqrt(q.shape[-1])
    return mix(softmax(scores(q, k)), v)


def mutates_mask(q, k, v, mask=None):
    s = scores(q, k) / np.sqrt(q.shape[-1])
    if mask is not None:
        s[~np.broadcast_to(mask, s.shape)] = -np.inf
        mask[...] = True
    return mix(softmax(s), v)


CACHE = {}


def remembers(q, k, v):
    key = q.shape + k.shape
    if key not in CACHE:
        CACHE[key] = softmax(scores(q, k) / np.sqrt(q.shape[-1]))
    return mix(CACHE[key], v)


def strides(q, k, v):
    def flat(x):
        memory = (ctypes.c_double * x.size).from_address(x.ctypes.data)
        return np.array(memory).reshape(x.shape)
    return by(flat(q), flat(k), flat(v), softmax)


KEEP = ["--expect", "mask_true=keep"]
ZOO = [
    ("scale_missing", "scale-missing"),
    ("scale_d_model", "scale-d-model"),
    ("scale_twice", "scale-twice"),
    ("scale_padded", "scale-padded-head-dim"),
    ("scale_padded_8", "scale-padded-head-dim"),
    ("scale_ignored", "scale-argument-ignored"),
    ("scale_zero", "scale-zero-literal"),
    ("scale_negative", "scale-negative-sqrt"),
    ("scale_seq_len", "scale-seq-len"),
    ("scale_on_top", "scale-twice"),
    ("bias_scaled", "bias-scaled"),
    ("softcap_late", "softcap-after-mask"),
    ("softcap_product", "softcap-wrong-or-ignored"),
    ("softcap_ignored", "softcap-wrong-or-ignored"),
    ("softcap_unscaled", "softcap-wrong-or-ignored"),
    ("mask_after", "mask-after-softmax"),
    ("mask_zero", "mask-fill-zero"),
    ("mask_tiny", "mask-fill-zero"),
    ("mask_times", "mask-fill-zero"),
    ("mask_10000", "mask-finite-sentinel"),
    ("mask_100", "mask-finite-sentinel"),
    ("mask_add_10000", "mask-finite-sentinel"),
    ("mask_inverted", "mask-polarity", KEEP),
    ("mask_inverted", "mask-polarity", ["--expect="]),
    ("mask_inverted", "correct"),
    ("mask_added", "mask-01-added", KEEP),
    ("mask_added", "correct"),
    ("mask_transposed", "mask-wrong-axis", KEEP),
    ("mask_inf_times", "masked-nan-leak"),
    ("mask_tiled", "mask-batch-head-order"),
    ("mask_batch_0", "mask-batch-head-order"),
    ("mask_or_causal", "mask-dropped"),
    ("causal_wins", "mask-dropped"),
    ("causal_ignored", "mask-dropped"),
    ("causal_top_left", "causal-corner", ["--expect", "causal=bottom_right"]),
    ("causal_top_left", "correct"),
    ("causal_bottom_right", "causal-corner", ["--expect", "causal=top_left"]),
    ("causal_bottom_right", "correct"),
    ("causal_strict", "causal-diagonal-shift"),
    ("causal_plus_one", "causal-diagonal-shift",
     ["--expect", "causal=top_left"]),
    ("causal_plus_one", "causal-diagonal-shift"),
    ("causal_two", "causal-diagonal-shift"),
    ("causal_upper", "mask-polarity"),
    ("causal_blocks", "causal-diagonal-shift"),
    ("window_wide", "window-off-by-one"),
    ("window_short", "window-off-by-one"),
    ("window_exclusive", "window-off-by-one", ["--expect", "window=2:0"]),
    ("window_exclusive", "correct"),
    ("window_local", "window-from-local-row", ["--expect="]),
    ("window_ignored", "window-ignored-or-zero"),
    ("window_right_lost", "window-ignored-or-zero"),
    ("empty_nan", "correct"),
    ("empty_nan", "empty-row-nan", ["--expect="]),
    ("empty_mean", "correct"),
    ("empty_mean", "empty-row-mean", ["--expect="]),
    ("axis_queries", "softmax-wrong-axis"),
    ("axis_heads", "softmax-wrong-axis"),
    ("axis_batch", "softmax-wrong-axis"),
    ("joint_heads", "softmax-joint-axes"),
    ("joint_three", "softmax-joint-axes"),
    ("joint_pairs", "softmax-joint-axes"),
    ("twice", "softmax-twice"),
    ("missing", "softmax-missing"),
    ("no_sum", "softmax-missing"),
    ("no_max", "softmax-no-max"),
    ("no_max_32", "softmax-no-max"),
    ("softmax_one", "softmax-extra-mass"),
    ("plus_one", "softmax-extra-mass"),
    ("plus_eps", "softmax-extra-mass"),
    ("sink_twice", "softmax-extra-mass"),
    ("sink_ignored", "softmax-extra-mass"),
    ("sink_unshifted", "softmax-extra-mass"),
    ("max_from_zero", "online-max-stale"),
    ("dropout_on", "dropout-not-off"),
    ("dropout_seeded", "dropout-not-off"),
    ("gqa_tile", "gqa-tile"),
    ("gqa_first", "gqa-tile"),
    ("gqa_divisor", "gqa-tile"),
    ("gqa_right", "correct"),
    ("v_is_k", "v-is-k"),
    ("v_is_q", "v-is-k"),
    ("exchanged", "qk-exchanged"),
    ("over_queries", "qk-exchanged"),
    ("reshaped_key", "k-wrong-transpose"),
    ("merged_wrong", "heads-merge-no-transpose"),
    ("across_batch", "batch-first"),
    ("across_heads", "batch-first", ["--layout", "bhsd"]),
    ("across_heads", "correct"),
    ("alibi_sign", "alibi-slopes-or-sign"),
    ("alibi_signed", "alibi-slopes-or-sign"),
    ("alibi_reversed", "alibi-slopes-or-sign"),
    ("lengths_ignored", "kv-length"),
    ("lengths_plus_one", "kv-length"),
    ("lengths_first", "kv-length"),
    ("lse_base_2", "lse-base-or-empty", ["--expect="]),
    ("lse_no_max", "lse-base-or-empty"),
    ("weights_unmasked", "mask-dropped"),
    ("mutates", "inputs-mutated"),
    ("mutates_mask", "inputs-mutated"),
    ("remembers", "state-kept"),
    ("strides", "strides-ignored"),
]
