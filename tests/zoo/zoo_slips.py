# SPDX-License-Identifier: Apache-2.0
#
# Slips that are easily made, and what looks like one.
import math

import numpy as np


def softmax(s):
    top = np.max(s, -1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(top), top, 0))
    z = e.sum(-1, keepdims=True)
    return e / np.where(z == 0, 1, z)


def scores(q, k):
    return q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])


def weights_scaled(q, k, v):
    s = q @ np.swapaxes(k, -1, -2)
    return softmax(s) / math.sqrt(q.shape[-1]) @ v


def powers_of_two(q, k, v):
    s = scores(q, k)
    e = np.exp2(s - s.max(-1, keepdims=True))
    return e @ v / e.sum(-1, keepdims=True)


def mean_subtracted(q, k, v):
    s = scores(q, k)
    e = np.exp(s - s.mean(-1, keepdims=True))
    return e @ v / e.sum(-1, keepdims=True)


def maximum_of_the_first_tile(q, k, v, tile=4):
    top, total, o = None, 0, 0
    for j in range(0, k.shape[-2], tile):
        s = scores(q, k[..., j:j + tile, :])
        if top is None:
            top = s.max(-1, keepdims=True)
        p = np.exp(s - top)
        total = total + p.sum(-1, keepdims=True)
        o = o + p @ v[..., j:j + tile, :]
    return o / total


def last_key_repeated(q, k, v, tile=4):
    n = k.shape[-2]
    at = np.minimum(np.arange(-(-n // tile) * tile), n - 1)
    return softmax(scores(q, k[..., at, :])) @ v[..., at, :]


def sink_without_its_logit(q, k, v, sinks):
    s = scores(q, k)
    s = np.concatenate([s, np.zeros(s.shape[:-1] + (1,))], -1)
    return softmax(s)[..., :-1] @ v


masks = {}


def mask_of_its_shape(q, k, v, mask=None):
    s = scores(q, k)
    if mask is not None:
        s = np.where(masks.setdefault(mask.shape, mask.copy()), s, -np.inf)
    return softmax(s) @ v


def mask_before_scale(q, k, v, attn_mask=None):
    """attn_mask: floats that are added to the scores"""
    s = q @ np.swapaxes(k, -1, -2)
    if attn_mask is not None:
        s = s + attn_mask
    return softmax(s / math.sqrt(q.shape[-1])) @ v


def padding_of_queries(q, k, v, mask=None):
    s = scores(q, k)
    if mask is not None:
        s = np.where(mask[:, None, :, None], s, -1e9)
    return softmax(s) @ v


def first_value(q, k, v):
    return np.repeat(v[..., :1, :], q.shape[-2], -2) + 0 * q[..., :1]


def relative_shift(q, k, v, bias=None):
    s = scores(q, k)
    if bias is not None:
        n, m = s.shape[-2:]
        bias = np.broadcast_to(bias, s.shape)
        bias = np.pad(bias, [(0, 0)] * (s.ndim - 1) + [(1, 0)])
        bias = bias.reshape(s.shape[:-2] + (m + 1, n))[..., 1:, :]
        s = s + bias.reshape(s.shape)
    return softmax(s) @ v


def tiles_backwards(q, k, v, rows=3, keys=7):
    """No gradients in spite of the name."""
    o = np.zeros(q.shape[:-1] + v.shape[-1:])
    for i in range(0, q.shape[-2], rows):
        at = slice(i, i + rows)
        parts = [(scores(q[..., at, :], k[..., j:j + keys, :]),
                  v[..., j:j + keys, :])
                 for j in reversed(range(0, k.shape[-2], keys))]
        top = np.max([s.max(-1, keepdims=True) for s, _ in parts], 0)
        total = sum(np.exp(s - top).sum(-1, keepdims=True) for s, _ in parts)
        o[..., at, :] = sum(np.exp(s - top) @ x for s, x in parts) / total
    return o


ZOO = [
    ("weights_scaled", "scale-missing"),
    ("powers_of_two", "softmax-missing"),
    ("mean_subtracted", "correct"),
    ("maximum_of_the_first_tile", "correct"),
    ("last_key_repeated", "tail-tile-unmasked"),
    ("sink_without_its_logit", "softmax-extra-mass"),
    ("mask_of_its_shape", "state-kept"),
    ("mask_before_scale", "bias-scaled"),
    ("padding_of_queries", "mask-wrong-axis"),
    ("first_value", "output-constant|unexplained"),
    ("relative_shift", "relative-shift-or-order"),
    ("tiles_backwards", "correct"),
]
