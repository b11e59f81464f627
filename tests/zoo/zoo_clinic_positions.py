# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases: positions.
import numpy as np


def halves_with_paired_angles(x, positions):
    d = x.shape[-1]
    inv = 10000.0 ** (-np.arange(0, d, 2) / d)
    ang = np.asarray(positions)[..., None] * inv
    c = np.repeat(np.cos(ang), 2, axis=-1)
    s = np.repeat(np.sin(ang), 2, axis=-1)
    rot = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], -1)
    return x * c + rot * s


def part_with_whole_exponents(x, positions):
    """rotates the first half of the channels, passes the others on"""
    D = x.shape[-1]
    r = D // 2
    r -= r % 2
    m = np.arange(r // 2)
    theta = 10000.0 ** (-2 * m / D)
    a = np.multiply.outer(np.asarray(positions, float), theta)
    x1, x2, rest = x[..., : r // 2], x[..., r // 2 : r], x[..., r:]
    return np.concatenate(
        [
            x1 * np.cos(a) - x2 * np.sin(a),
            x2 * np.cos(a) + x1 * np.sin(a),
            rest,
        ],
        -1,
    )


def counts_from_one(x, positions):
    y = np.empty_like(x)
    d = x.shape[-1]
    for m in range(d // 2):
        t = (np.asarray(positions) + 1) * 10000.0 ** (-2.0 * m / d)
        c, s = np.cos(t), np.sin(t)
        y[..., 2 * m] = x[..., 2 * m] * c - x[..., 2 * m + 1] * s
        y[..., 2 * m + 1] = x[..., 2 * m + 1] * c + x[..., 2 * m] * s
    return y


def angles_in_half(x, positions):
    d = x.shape[-1]
    freq = (1.0 / 10000 ** (np.arange(0, d, 2, dtype=np.float32) / d)).astype(
        np.float16
    )
    ang = np.asarray(positions).astype(np.float16)[..., None] * freq
    ang = ang.astype(np.float64)
    cos, sin = np.cos(ang), np.sin(ang)
    a, b = np.split(x, 2, -1)
    return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)


def turns_back(x, positions):
    z = x[..., 0::2] + 1j * x[..., 1::2]
    d = x.shape[-1]
    w = np.exp(-np.log(10000.0) * np.arange(0, d, 2) / d)
    z = z * np.exp(-1j * np.asarray(positions)[..., None] * w)
    return np.stack([z.real, z.imag], -1).reshape(x.shape)


def base_one_thousand(x, positions):
    h = x.shape[-1] // 2
    th = 1000.0 ** -(np.arange(h) / h)
    a = np.asarray(positions)[..., None] * th
    u, w = x[..., :h], x[..., h:]
    return np.concatenate(
        [u * np.cos(a) - w * np.sin(a), w * np.cos(a) + u * np.sin(a)], -1
    )


def distance_added(q, k, v, alibi_slopes):
    lq, lk = q.shape[-2], k.shape[-2]
    d = np.abs(np.arange(lq)[:, None] + lk - lq - np.arange(lk)[None])
    s = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1])
    s = s + np.asarray(alibi_slopes)[:, None, None] * d
    s = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bhij,bhje->bhie", s, v) / s.sum(-1)[..., None]


def slopes_mirrored(q, k, v, alibi_slopes):
    H, n, dim = q.shape[-3:]
    out = np.zeros(q.shape[:-1] + (v.shape[-1],))
    for h in range(H):
        m = alibi_slopes[H - 1 - h]
        dist = np.abs(
            np.subtract.outer(
                np.arange(n) + k.shape[-2] - n, np.arange(k.shape[-2])
            )
        )
        z = (
            q[..., h, :, :] @ k[..., h, :, :].swapaxes(-1, -2) * dim**-0.5
            - m * dist
        )
        z = np.exp(z - z.max(-1, keepdims=True))
        out[..., h, :, :] = z @ v[..., h, :, :] / z.sum(-1, keepdims=True)
    return out


def bias_moved_right(q, k, v, bias):
    moved = np.zeros_like(bias)
    moved[..., 1:] = bias[..., :-1]
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + moved
    s = np.exp(s - s.max(-1, keepdims=True))
    return s / s.sum(-1, keepdims=True) @ v


ZOO = [
    ("halves_with_paired_angles", "rope-pairing", ["--kind=rope"]),
    (
        "part_with_whole_exponents",
        "rope-partial-width|rope-base-or-scaling",
        ["--kind=rope"],
    ),
    ("counts_from_one", "rope-position-offset", ["--kind=rope"]),
    ("angles_in_half", "rope-low-precision", ["--kind=rope"]),
    ("turns_back", "rope-rotation-reversed", ["--kind=rope"]),
    ("base_one_thousand", "rope-base-or-scaling", ["--kind=rope"]),
    ("distance_added", "alibi-slopes-or-sign"),
    ("slopes_mirrored", "alibi-slopes-or-sign"),
    ("bias_moved_right", "relative-shift-or-order"),
]
