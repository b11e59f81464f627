# SPDX-License-Identifier: Apache-2.0
#
# Kind: rotary embedding.
import numpy as np


def bf16(x):
    x = np.asarray(x, np.float32).view(np.uint32)
    return ((x + 0x7fff + (x >> 16 & 1)) & 0xffff0000).astype(
        np.uint32).view(np.float32).astype(np.float64)


def angles(positions, d, base=10000.0):
    return np.outer(positions, base ** (-np.arange(0, d, 2) / d))


def half(x, a, sign=1):
    n = a.shape[-1]
    x1, x2 = x[..., :n], x[..., n:2 * n]
    c, s = np.cos(a), sign * np.sin(a)
    return np.concatenate([x1 * c - x2 * s, x2 * c + x1 * s,
                           x[..., 2 * n:]], -1)


def paired(x, a, sign=1):
    n = 2 * a.shape[-1]
    y = x.copy()
    c, s = np.cos(a), sign * np.sin(a)
    y[..., 0:n:2] = x[..., 0:n:2] * c - x[..., 1:n:2] * s
    y[..., 1:n:2] = x[..., 1:n:2] * c + x[..., 0:n:2] * s
    return y


def right_half(x, positions):
    return half(x, angles(positions, x.shape[-1]))


def right_paired(x, positions):
    return paired(x, angles(positions, x.shape[-1]))


def right_llama(x, positions, base=10000.0, interleaved=False):
    f = paired if interleaved else half
    return f(x, angles(positions, x.shape[-1], base))


def right_complex_rope(x, pos):
    z = x.reshape(*x.shape[:-1], -1, 2)
    z = z[..., 0] + 1j * z[..., 1]
    z = z * np.exp(1j * angles(pos, x.shape[-1]))
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def right_matrix_rope(x, positions):
    d = x.shape[-1]
    a = angles(positions, d)
    a = np.concatenate([a, a], -1)
    rot = np.concatenate([-x[..., d // 2:], x[..., :d // 2]], -1)
    return x * np.cos(a) + rot * np.sin(a)


def right_partial(x, positions, rotary_dim=None):
    return half(x, angles(positions, rotary_dim or x.shape[-1]))


def right_f32(x, positions):
    a = angles(positions, x.shape[-1]).astype(np.float32)
    return half(x.astype(np.float32), a)


def right_implied_rope(x):
    return half(x, angles(np.arange(x.shape[-2]), x.shape[-1]))


def right_offset_rope(x, offset=0):
    return half(x, angles(offset + np.arange(x.shape[-2]), x.shape[-1]))


def right_blhd(x, positions):
    return half(x, angles(positions, x.shape[-1])[:, None, :])


def right_given_rope(x, cos, sin):
    n = cos.shape[-1]
    x1, x2 = x[..., :n], x[..., n:]
    if x2.shape[-1] != n:
        raise ValueError("cos has half of the width")
    return np.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin], -1)


def mixed_angles(x, positions):
    d = x.shape[-1]
    a = np.repeat(angles(positions, d), 2, -1)
    rot = np.concatenate([-x[..., d // 2:], x[..., :d // 2]], -1)
    return x * np.cos(a) + rot * np.sin(a)


def mixed_pairs(x, positions):
    d = x.shape[-1]
    a = np.concatenate([angles(positions, d)] * 2, -1)
    rot = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    return x * np.cos(a) + rot * np.sin(a)


def left_apart(x, positions):
    a = angles(positions, x.shape[-1])
    x1, x2 = x[..., ::2], x[..., 1::2]
    return np.concatenate([x1 * np.cos(a) - x2 * np.sin(a),
                           x2 * np.cos(a) + x1 * np.sin(a)], -1)


def reversed_half(x, positions):
    return half(x, angles(positions, x.shape[-1]), -1)


def reversed_pairs(x, positions):
    return paired(x, angles(positions, x.shape[-1]), -1)


def width_lost(x, positions, rotary_dim=None):
    r = rotary_dim or x.shape[-1]
    a = angles(positions, x.shape[-1])[:, :r // 2]
    return half(x, a)


def whole_head(x, positions, rotary_dim=None):
    return half(x, angles(positions, x.shape[-1]))


def exponent_halved(x, positions):
    d = x.shape[-1]
    return half(x, np.outer(positions, 10000.0 ** (-np.arange(d // 2) / d)))


def one_late(x, positions):
    return half(x, angles(np.asarray(positions) + 1, x.shape[-1]))


def one_early(x, positions):
    return paired(x, angles(np.asarray(positions) - 1, x.shape[-1]))


def restarted(x, positions):
    return half(x, angles(np.arange(x.shape[-2]), x.shape[-1]))


def restarted_rope(x, offset=0):
    return half(x, angles(np.arange(x.shape[-2]), x.shape[-1]))


def doubled(x, positions):
    a = angles(positions, x.shape[-1])
    return half(half(x, a), a)


def base_ignored(x, positions, base=10000.0):
    return half(x, angles(positions, x.shape[-1]))


def base_thousand(x, positions):
    return half(x, angles(positions, x.shape[-1], 1000.0))


def low_angles(x, positions):
    return half(x, bf16(angles(positions, x.shape[-1])))


def low_all(x, positions):
    d = x.shape[-1]
    f = bf16(10000.0 ** (-np.arange(0, d, 2) / d))
    return paired(x, bf16(np.outer(bf16(positions), f)))


def low_half(x, positions):
    a = np.outer(np.asarray(positions, np.float16),
                 (10000.0 ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
                  ).astype(np.float16))
    return half(x, a.astype(np.float64))


def two_ways(q, k, positions):
    a = angles(positions, q.shape[-1])
    return half(q, a), paired(k, a)


def both_right(q, k, positions):
    a = angles(positions, q.shape[-1])
    return half(q, a), half(k, a)


ZOO = [
    ("right_half", "correct"),
    ("right_half", "correct", ["--expect", "interleaved=false"]),
    ("right_half", "rope-pairing", ["--expect", "interleaved=true"]),
    ("right_paired", "correct"),
    ("right_llama", "correct"),
    ("right_complex_rope", "correct"),
    ("right_matrix_rope", "correct"),
    ("right_partial", "correct"),
    ("right_f32", "correct"),
    ("right_implied_rope", "correct"),
    ("right_offset_rope", "correct"),
    ("right_blhd", "correct"),
    ("right_given_rope", "correct"),
    ("mixed_angles", "rope-pairing"),
    ("mixed_pairs", "rope-pairing"),
    ("left_apart", "rope-pairing"),
    ("reversed_half", "rope-rotation-reversed"),
    ("reversed_pairs", "rope-rotation-reversed"),
    ("width_lost", "rope-partial-width"),
    ("whole_head", "rope-partial-width"),
    ("exponent_halved", "rope-partial-width|rope-base-or-scaling"),
    ("one_late", "rope-position-offset"),
    ("one_early", "rope-position-offset"),
    ("restarted", "rope-position-offset"),
    ("restarted_rope", "rope-position-offset"),
    ("doubled", "rope-position-offset"),
    ("base_ignored", "rope-base-or-scaling"),
    ("base_thousand", "rope-base-or-scaling"),
    ("low_angles", "rope-low-precision"),
    ("low_all", "rope-low-precision"),
    ("low_half", "rope-low-precision"),
    ("two_ways", "rope-pairing", ["--kind", "rope"]),
    ("both_right", "correct", ["--kind", "rope"]),
]
