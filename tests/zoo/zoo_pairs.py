# SPDX-License-Identifier: Apache-2.0
#
# Two bugs at once, whose effects do not cancel.
import numpy as np


def softmax(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def base(q, k, v, causal=False, mask=None, scale="right", shift=0, corner=True,
         axis=-1, late=False, fill=-np.inf, tile=False, value=None,
         twice=False, extra=0.0, invert=False, window=None, wide=0, cap=None,
         cap_late=False, add=False):
    d = q.shape[-1]
    if k.shape[1] != q.shape[1]:
        g = q.shape[1] // k.shape[1]
        if tile:
            k, v = np.tile(k, (1, g, 1, 1)), np.tile(v, (1, g, 1, 1))
        else:
            k, v = np.repeat(k, g, 1), np.repeat(v, g, 1)
    s = q @ k.swapaxes(-1, -2)
    s = s * {"right": d ** -0.5, "none": 1.0, "model": (q.shape[1] * d) ** -.5,
             "twice": 1 / d, "length": k.shape[-2] ** -0.5}[scale]
    if cap and not cap_late:
        s = cap * np.tanh(s / cap)
    n, m = s.shape[-2:]
    see = np.ones((n, m), bool)
    off = m - n if corner else 0
    i, j = np.arange(n)[:, None] + off, np.arange(m)
    if causal:
        see &= j <= i + shift
    if window is not None:
        see &= (j >= i - window[0] - wide) & (j <= i + window[1])
    if mask is not None:
        see = see & (~mask if invert else mask)
    if add:
        s = s + see
    elif not late:
        s = np.where(see, s, fill)
    if cap and cap_late:
        s = cap * np.tanh(s / cap)
    if extra:
        e = np.exp(s - s.max(-1, keepdims=True))
        p = e / (e.sum(-1, keepdims=True) + extra)
    else:
        p = softmax(s, axis)
    if twice:
        p = softmax(p)
    if late:
        p = p * see
    return p @ (k if value == "k" else v)


def scale_and_diagonal(q, k, v, causal=False):
    return base(q, k, v, causal, scale="none", shift=1)


def model_and_tile(q, k, v):
    return base(q, k, v, scale="model", tile=True)


def scale_and_late(q, k, v, mask=None):
    return base(q, k, v, mask=mask, scale="none", late=True)


def twice_and_zero(q, k, v, mask=None):
    return base(q, k, v, mask=mask, scale="twice", fill=0.0)


def axis_and_scale(q, k, v):
    return base(q, k, v, axis=-2, scale="none")


def tile_and_extra(q, k, v):
    return base(q, k, v, tile=True, extra=1.0)


def length_and_twice(q, k, v):
    return base(q, k, v, scale="length", twice=True)


def value_and_scale(q, k, v):
    return base(q, k, v, value="k", scale="model")


def corner_and_scale(q, k, v, causal=False):
    return base(q, k, v, causal, corner=False, scale="none")


def strict_and_tile(q, k, v, causal=False):
    return base(q, k, v, causal, shift=-1, tile=True)


def invert_and_scale(q, k, v, mask=None):
    return base(q, k, v, mask=mask, invert=True, scale="none")


def wide_and_model(q, k, v, window=None):
    return base(q, k, v, window=window, wide=1, scale="model")


def cap_and_scale(q, k, v, softcap=None, mask=None):
    return base(q, k, v, mask=mask, cap=softcap, cap_late=True, scale="twice")


def added_and_tile(q, k, v, mask=None):
    return base(q, k, v, mask=mask, add=True, tile=True)


def mutates_and_scale(q, k, v):
    q *= 0.5
    return base(q, k, v, scale="right")


def axis_and_value(q, k, v):
    return base(q, k, v, axis=1, value="k")


ZOO = [
    ("scale_and_diagonal", "scale-missing + causal-diagonal-shift"),
    ("model_and_tile", "scale-d-model + gqa-tile"),
    ("scale_and_late", "scale-missing + mask-after-softmax"),
    ("twice_and_zero", "scale-twice + mask-fill-zero"),
    ("axis_and_scale", "softmax-wrong-axis + scale-missing"),
    ("tile_and_extra", "gqa-tile + softmax-extra-mass"),
    ("length_and_twice", "scale-seq-len + softmax-twice"),
    ("value_and_scale", "v-is-k + scale-d-model"),
    ("corner_and_scale", "causal-corner + scale-missing",
     ["--expect", "causal=bottom_right"]),
    ("strict_and_tile", "causal-diagonal-shift + gqa-tile"),
    ("invert_and_scale", "mask-polarity + scale-missing",
     ["--expect", "mask_true=keep"]),
    ("wide_and_model", "window-off-by-one + scale-d-model"),
    ("cap_and_scale", "softcap-after-mask + scale-twice"),
    ("added_and_tile", "mask-01-added + gqa-tile", ["--expect="]),
    ("axis_and_value", "softmax-wrong-axis + v-is-k"),
]
