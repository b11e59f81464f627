# SPDX-License-Identifier: Apache-2.0
#
# Style: online softmax over tiles of keys, any leading axes, as kernels do.
import numpy as np


def flash(q, k, v, tile=4, causal=False, scale=None, fix_acc=True,
          fix_sum=True, drop_tail=False, zero_tail=False, start=-np.inf,
          fix_first=True, sign=1, merge_max=True, block_causal=0,
          tile_sink=None, sink=None, acc=np.float64):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    n, lq = k.shape[-2], q.shape[-2]
    m = np.full(q.shape[:-1], start)
    total = np.zeros(q.shape[:-1])
    o = np.zeros(q.shape[:-1] + v.shape[-1:], acc)
    if sink is not None:
        m = np.maximum(m, sink.reshape(-1, 1))
        total = np.exp(sink.reshape(-1, 1) - m)
    for j0 in range(0, n, tile):
        kt, vt = k[..., j0:j0 + tile, :], v[..., j0:j0 + tile, :]
        if drop_tail and kt.shape[-2] < tile:
            break
        if zero_tail and kt.shape[-2] < tile:
            pad = [(0, 0)] * (k.ndim - 2) + [(0, tile - kt.shape[-2]), (0, 0)]
            kt, vt = np.pad(kt, pad), np.pad(vt, pad)
        s = q @ np.swapaxes(kt, -1, -2) * scale
        if causal:
            i = np.arange(lq)[:, None]
            if block_causal:
                i = i // block_causal * block_causal + block_causal - 1
            j = j0 + np.arange(kt.shape[-2])
            s = np.where(j <= i + n - lq, s, -np.inf)
        new = np.maximum(m, s.max(-1)) if merge_max else s.max(-1)
        safe = np.where(np.isinf(new), 0, new)
        e = np.exp(s - safe[..., None])
        factor = np.exp(sign * (m - safe))
        factor = np.where(np.isinf(m), 0, factor)
        total = total * (factor if fix_sum else 1) + e.sum(-1)
        if tile_sink is not None:
            total = total + np.exp(tile_sink - safe)
        o = o * (factor[..., None] if fix_acc else 1) + e @ vt
        m = new
    return o / np.where(total == 0, 1, total)[..., None]


def right(q, k, v, causal=False):
    return flash(q, k, v, 4, causal)


def right_tile_1(q, k, v):
    return flash(q, k, v, 1)


def right_tile_16(q, k, v, causal=False, scale=None):
    return flash(q, k, v, 16, causal, scale)


def acc_stale(q, k, v):
    return flash(q, k, v, 4, fix_acc=False)


def acc_stale_1(q, k, v, causal=False):
    return flash(q, k, v, 1, causal, fix_acc=False)


def sum_stale(q, k, v):
    return flash(q, k, v, 8, fix_sum=False)


def both_stale(q, k, v):
    return flash(q, k, v, 3, fix_sum=False, fix_acc=False)


def local_max(q, k, v):
    return flash(q, k, v, 5, merge_max=False, fix_sum=False, fix_acc=False)


def upside_down(q, k, v):
    return flash(q, k, v, 4, sign=-1)


def tail_lost(q, k, v):
    return flash(q, k, v, 4, drop_tail=True)


def tail_lost_16(q, k, v):
    return flash(q, k, v, 16, drop_tail=True)


def tail_zero(q, k, v):
    return flash(q, k, v, 8, zero_tail=True)


def tail_zero_32(q, k, v):
    return flash(q, k, v, 32, zero_tail=True)


def max_zero(q, k, v):
    return flash(q, k, v, 4, start=0.0)


def max_thousand(q, k, v):
    return flash(q, k, v, 4, start=-1000.0)


def causal_by_block(q, k, v, causal=False):
    return flash(q, k, v, 4, causal, block_causal=2)


def no_scale(q, k, v, causal=False):
    return flash(q, k, v, 4, causal, scale=1.0)


def scale_twice(q, k, v, causal=False):
    return flash(q / np.sqrt(q.shape[-1]), k, v, 4, causal)


def scale_ignored(q, k, v, scale=None):
    return flash(q, k, v, 4)


def extra(q, k, v):
    return flash(q, k, v, 64, tile_sink=0.0)


def key_for_value(q, k, v):
    return flash(q, k, k, 4)


def half(q, k, v):
    q, k, v = (x.astype(np.float16) for x in (q, k, v))
    s = (q @ np.swapaxes(k, -1, -2)).astype(np.float32) / q.shape[-1] ** .5
    e = np.exp(s - s.max(-1, keepdims=True))
    p = (e / e.sum(-1, keepdims=True)).astype(np.float16)
    o = np.zeros(p.shape[:-1] + v.shape[-1:], np.float16)
    for j in range(v.shape[-2]):
        o += p[..., j:j + 1] * v[..., j:j + 1, :]
    return o


ZOO = [
    ("right", "correct"),
    ("right", "correct", ["--expect", "causal=bottom_right"]),
    ("right_tile_1", "correct"),
    ("right_tile_16", "correct"),
    ("acc_stale", "online-max-stale"),
    ("acc_stale_1", "online-max-stale"),
    ("sum_stale", "online-max-stale"),
    ("both_stale", "online-max-stale"),
    ("local_max", "online-max-stale"),
    ("upside_down", "online-max-stale"),
    ("tail_lost", "tail-tile-unmasked"),
    ("tail_lost_16", "tail-tile-unmasked"),
    ("tail_zero", "tail-tile-unmasked"),
    ("tail_zero_32", "tail-tile-unmasked"),
    ("max_zero", "online-max-stale"),
    ("max_thousand", "online-max-stale"),
    ("causal_by_block", "causal-diagonal-shift"),
    ("no_scale", "scale-missing"),
    ("scale_twice", "scale-twice"),
    ("scale_ignored", "scale-argument-ignored"),
    ("extra", "softmax-extra-mass"),
    ("key_for_value", "v-is-k"),
    ("half", "accumulate-16bit|score-overflow-16bit"),
]
