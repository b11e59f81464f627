# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases: all right.
import math
import numpy as np

NEG = float("-inf")


def keys_scaled(q, k, v):
    q, k, v = (np.ascontiguousarray(np.moveaxis(t, 1, 2)) for t in (q, k, v))
    k = k * (1 / q.shape[-1] ** 0.5)
    s = q @ np.moveaxis(k, 2, 3)
    s -= s.max(-1, keepdims=True)
    np.exp(s, out=s)
    s /= s.sum(-1)[..., np.newaxis]
    return np.moveaxis(s @ v, 1, 2)


def lists(Q, K, V):
    res = []
    for q in Q:
        sims = [
            sum(float(a) * float(b) for a, b in zip(q, k)) / math.sqrt(len(q))
            for k in K
        ]
        big = max(sims)
        ex = [math.exp(s - big) for s in sims]
        tot = math.fsum(ex)
        res.append(
            [
                math.fsum(e * float(v[c]) for e, v in zip(ex, V)) / tot
                for c in range(V.shape[1])
            ]
        )
    return np.array(res)


def tiles_backwards(q, k, v, bq=3, bk=7):
    """(B, H, L, D), both axes in tiles"""
    B, H, L, D = q.shape
    S = k.shape[2]
    out = np.zeros((B, H, L, v.shape[3]))
    for b, h in np.ndindex(B, H):
        for i0 in range(0, L, bq):
            qi = q[b, h, i0 : i0 + bq]
            m = np.full(len(qi), NEG)
            l = np.zeros(len(qi))
            o = np.zeros((len(qi), v.shape[3]))
            for j0 in reversed(range(0, S, bk)):
                s = qi @ k[b, h, j0 : j0 + bk].T / math.sqrt(D)
                mn = np.maximum(m, s.max(1))
                f = np.exp(m - mn)
                p = np.exp(s - mn[:, None])
                l = f * l + p.sum(1)
                o = f[:, None] * o + p @ v[b, h, j0 : j0 + bk]
                m = mn
            out[b, h, i0 : i0 + bq] = o / l[:, None]
    return out


class Suffix:
    """queries are the last of the keys"""

    def __call__(self, q, k, v):
        Lq, Lk = q.shape[-2], k.shape[-2]
        out = []
        for i in range(Lq):
            n = Lk - Lq + i + 1
            if n <= 0:
                out.append(np.zeros(v.shape[:-2] + v.shape[-1:]))
                continue
            s = (
                np.einsum("...d,...jd->...j", q[..., i, :], k[..., :n, :])
                / q.shape[-1] ** 0.5
            )
            e = np.exp(s - s.max(-1, keepdims=True))
            out.append(
                np.einsum(
                    "...j,...jd->...d",
                    e / e.sum(-1, keepdims=True),
                    v[..., :n, :],
                )
            )
        return np.stack(out, axis=-2)


suffix = Suffix()


def prefix(q, k, v):
    keep = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
    s = np.where(
        keep, np.einsum("hid,hjd->hij", q, k) / math.sqrt(q.shape[-1]), -1e9
    )
    e = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("hij,hjd->hid", e / e.sum(-1, keepdims=True), v)


def band(q, k, v):
    lq, lk = q.shape[-2], k.shape[-2]
    out = np.zeros(q.shape[:-1] + (v.shape[-1],))
    for i in range(lq):
        p = i + lk - lq
        lo, hi = max(0, p - 3), min(lk, p + 2)
        if hi <= lo:
            continue
        s = (
            np.matmul(k[..., lo:hi, :], q[..., i, :, None])[..., 0]
            * q.shape[-1] ** -0.5
        )
        e = np.exp(s - s.max(-1, keepdims=True))
        e /= e.sum(-1, keepdims=True)
        out[..., i, :] = np.matmul(e[..., None, :], v[..., lo:hi, :])[
            ..., 0, :
        ]
    return out


def grouped(q, k, v):
    B, H, L, D = q.shape
    G = k.shape[1]
    qg = q.reshape(B, G, H // G, L, D)
    s = np.einsum("bgrld,bgsd->bgrls", qg, k) / np.sqrt(D)
    w = np.exp(s - s.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    return np.einsum("bgrls,bgse->bgrle", w, v).reshape(B, H, L, -1)


def true_drops(q, k, v, mask):
    """mask: True where the key must not be seen"""
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    s[np.broadcast_to(mask, s.shape)] = NEG
    m = s.max(-1, keepdims=True)
    m[m == NEG] = 0
    e = np.exp(s - m)
    z = e.sum(-1, keepdims=True)
    return np.divide(e, z, out=np.zeros_like(e), where=z != 0) @ v


def renormalised(q, k, v, mask=None):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is None:
        mask = np.ones(s.shape[-2:], bool)
    top = np.where(mask, s, NEG).max(-1, keepdims=True)
    p = np.exp(np.minimum(s - np.where(np.isinf(top), 0, top), 0)) * mask
    z = p.sum(-1, keepdims=True)
    z[z == 0] = 1
    return (p / z) @ v


def bias_and_logaddexp(q, k, v, bias):
    s = np.add(
        np.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5, bias
    )
    p = np.exp(s - np.logaddexp.reduce(s, axis=-1)[..., None])
    return np.einsum("...ij,...jd->...id", p, v)


def capped(q, k, v, softcap=0.0, causal=False):
    s = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    s = softcap * np.tanh(s / softcap) if softcap > 0 else s
    if causal:
        lq, lk = s.shape[-2:]
        s = s + np.triu(np.full((lq, lk), NEG), 1 + lk - lq)
    m = s.max(-1, keepdims=True)
    p = np.exp(s - np.where(m == NEG, 0, m))
    z = p.sum(-1, keepdims=True)
    return np.where(z > 0, p / np.where(z > 0, z, 1), 0) @ v


def with_sinks(q, k, v, sinks):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    sk = sinks.reshape(-1, 1, 1)
    m = np.maximum(s.max(-1, keepdims=True), sk)
    p = np.exp(s - m)
    return (p @ v) / (p.sum(-1, keepdims=True) + np.exp(sk - m))


def alibi_by_key(q, k, v, alibi_slopes):
    """causal; the distance enters through the key index alone"""
    lq, lk = q.shape[-2], k.shape[-2]
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    s = s + np.asarray(alibi_slopes)[..., None, None] * np.arange(lk)
    i, j = np.ogrid[:lq, :lk]
    s = np.where(j <= i + lk - lq, s, NEG)
    m = s.max(-1, keepdims=True)
    e = np.exp(s - np.where(m == NEG, 0, m))
    z = e.sum(-1, keepdims=True)
    return (e / np.where(z == 0, 1, z)) @ v


def rope_of_halves(x, positions):
    d = x.shape[-1]
    f = np.exp(np.arange(d // 2) * (-2 * math.log(10000) / d))
    a = np.asarray(positions, np.float64)[..., None] * f
    a = np.concatenate([a, a], -1)
    turned = np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], -1)
    return np.cos(a) * x + np.sin(a) * turned


def rope_of_pairs(x, positions):
    out = np.array(x, float)
    d = x.shape[-1]
    for m in range(d // 2):
        t = np.asarray(positions) * 10000.0 ** (-2 * m / d)
        rot = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
        out[..., 2 * m : 2 * m + 2] = np.einsum(
            "ij...,...j->...i", rot, x[..., 2 * m : 2 * m + 2]
        )
    return out


def sequence_by_sequence(q, k, v, cu_seqlens_q, cu_seqlens_k):
    o = np.zeros((q.shape[0], q.shape[1], v.shape[2]))
    for (a, b), (c, d) in zip(
        zip(cu_seqlens_q, cu_seqlens_q[1:]),
        zip(cu_seqlens_k, cu_seqlens_k[1:]),
    ):
        if b == a or d == c:
            continue
        for h in range(q.shape[1]):
            s = q[a:b, h] @ k[c:d, h].T / math.sqrt(q.shape[2])
            e = np.exp(s - s.max(1, keepdims=True))
            o[a:b, h] = e @ v[c:d, h] / e.sum(1, keepdims=True)
    return o


def length_by_length(q, k, v, k_lengths):
    o = np.zeros(q.shape[:3] + (v.shape[3],))
    for b, n in enumerate(np.asarray(k_lengths).tolist()):
        if n:
            s = q[b] @ k[b, :, :n].transpose(0, 2, 1) / q.shape[3] ** 0.5
            e = np.exp(s - s.max(2, keepdims=True))
            o[b] = (e / e.sum(2, keepdims=True)) @ v[b, :, :n]
    return o


def one_step(q, k_cache, v_cache, cache_len):
    s = np.einsum("...id,...jd->...ij", q, k_cache) / math.sqrt(q.shape[-1])
    n = np.asarray(cache_len)
    n = n.reshape(n.shape + (1,) * (s.ndim - n.ndim))
    see = np.arange(s.shape[-1]) < n
    s = np.where(see, s, NEG)
    e = np.exp(s - np.maximum(s.max(-1, keepdims=True), -1e300))
    vv = np.where(
        np.swapaxes(see, -1, -2) if np.ndim(see) > 1 else see[:, None],
        v_cache,
        0,
    )
    return (e / np.maximum(e.sum(-1, keepdims=True), 1e-300)) @ vv


def half_outside(q, k, v):
    """half in, half out, single inside"""
    f = np.float32
    s = (q.astype(f) / f(math.sqrt(q.shape[-1]))) @ k.astype(f).swapaxes(
        -1, -2
    )
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e @ v.astype(f) / e.sum(-1, keepdims=True)).astype(q.dtype)


def single_inside(q, k, v):
    q, k, v = np.float32(q), np.float32(k), np.float32(v)
    e = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(
        np.float32(q.shape[-1])
    )
    e = np.exp(e - e.max(-1, keepdims=True))
    return np.einsum("...ij,...jd->...id", e / e.sum(-1, keepdims=True), v)


def head_by_head(x, w_q, w_k, w_v, w_o, n_heads):
    """the output projection is summed head by head"""
    E = x.shape[-1]
    d = E // n_heads
    y = 0
    for h in range(n_heads):
        c = slice(h * d, h * d + d)
        q, k, v = x @ w_q[:, c], x @ w_k[:, c], x @ w_v[:, c]
        s = q @ k.swapaxes(-1, -2) / d**0.5
        s = np.exp(s - s.max(-1, keepdims=True))
        y = y + (s / s.sum(-1, keepdims=True)) @ v @ w_o[c]
    return y


def packed(x, w_qkv, w_o, n_heads):
    b, l, e = x.shape
    q, k, v = (
        (x @ w_qkv)
        .reshape(b, l, 3, n_heads, e // n_heads)
        .transpose(2, 0, 3, 1, 4)
    )
    s = q @ k.transpose(0, 1, 3, 2) / np.sqrt(e // n_heads)
    s = np.exp(s - s.max(-1, keepdims=True))
    return ((s / s.sum(-1, keepdims=True)) @ v).transpose(0, 2, 1, 3).reshape(
        b, l, e
    ) @ w_o


def roots_on_both_sides(do, q, k, v):
    r = q.shape[-1] ** -0.25
    a, b = q * r, k * r
    s = a @ b.swapaxes(-1, -2)
    p = np.exp(s - s.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    o = p @ v
    ds = p * (do @ v.swapaxes(-1, -2) - (do * o).sum(-1, keepdims=True))
    return r * (ds @ b), r * (ds.swapaxes(-1, -2) @ a), p.swapaxes(-1, -2) @ do


def by_jacobian(do, q, k, v):
    """row by row, with the jacobian of softmax; causal from the first key"""
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    c = 1 / math.sqrt(q.shape[-1])
    for idx in np.ndindex(q.shape[:-1]):
        lead, i = idx[:-1], idx[-1]
        n = min(i + 1, k.shape[-2])
        K, V = k[lead][:n], v[lead][:n]
        s = K @ q[idx] * c
        p = np.exp(s - s.max())
        p /= p.sum()
        ds = (np.diag(p) - np.outer(p, p)) @ (V @ do[idx])
        dq[idx] = c * ds @ K
        dk[lead][:n] += c * np.outer(ds, q[idx])
        dv[lead][:n] += np.outer(p, do[idx])
    return dq, dk, dv


def grouped_gradients(do, q, k, v):
    B, H, L, D = q.shape
    G = k.shape[1]
    q5, do5 = q.reshape(B, G, -1, L, D), do.reshape(B, G, -1, L, do.shape[-1])
    s = np.einsum("bgrid,bgjd->bgrij", q5, k) / math.sqrt(D)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    dp = np.einsum("bgrie,bgje->bgrij", do5, v)
    ds = (
        p
        * (dp - np.einsum("bgrij,bgrij->bgri", p, dp)[..., None])
        / math.sqrt(D)
    )
    return (
        np.einsum("bgrij,bgjd->bgrid", ds, k).reshape(q.shape),
        np.einsum("bgrij,bgrid->bgjd", ds, q5),
        np.einsum("bgrij,bgrie->bgje", p, do5),
    )


def with_lse(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    lse = np.logaddexp.reduce(s, axis=-1)
    return np.exp(s - lse[..., None]) @ v, lse


def with_weights(query, key, value, mask=None):
    s = query @ key.swapaxes(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -1e30)
    p = np.exp(s - s.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    if mask is not None:
        p = np.where(mask, p, 0.0)
    return p @ value, p


def by_logaddexp(o1, lse1, o2, lse2):
    lse = np.logaddexp(lse1, lse2)
    safe = np.where(np.isneginf(lse), 0.0, lse)
    return (
        np.exp(lse1 - safe)[..., None] * o1
        + np.exp(lse2 - safe)[..., None] * o2,
        lse,
    )


def by_logarithm(x):
    mx = x.max(axis=-1, keepdims=True)
    return np.exp(
        x - (mx + np.log(np.exp(x - mx).sum(axis=-1, keepdims=True)))
    )


def by_powers_of_two(q, k, v):
    """powers of two, as kernels do"""
    t = (q * (1.4426950408889634 / math.sqrt(q.shape[-1]))) @ k.swapaxes(
        -1, -2
    )
    t = np.exp2(t - t.max(-1, keepdims=True))
    return (t @ v) / t.sum(-1, keepdims=True)


def mean_key_removed(q, k, v):
    """the mean key is removed first, the softmax does not see it"""
    k = k - k.mean(-2, keepdims=True)
    kt = (k / np.sqrt(q.shape[-1])).swapaxes(-1, -2)
    st = np.swapaxes(q @ kt, -1, -2)
    e = np.exp(st - st.max(-2, keepdims=True))
    e = e / e.sum(-2, keepdims=True)
    return np.einsum("...ji,...je->...ie", e, v)


def sum_divided_last(q, k, v, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    z = scale * np.einsum("bhid,bhjd->bhij", q, k)
    z = np.exp(z - z.max(-1, keepdims=True))
    return np.einsum("bhij,bhjd,bhi->bhid", z, v, 1 / z.sum(-1))


ZOO = [
    ("keys_scaled", "correct", ["--layout=bshd"]),
    ("keys_scaled", "correct"),
    ("lists", "correct"),
    ("tiles_backwards", "correct"),
    ("suffix", "correct", ["--expect=causal=bottom_right"]),
    ("suffix", "correct"),
    ("prefix", "correct", ["--expect=causal=top_left"]),
    ("band", "correct", ["--expect=window=3:1"]),
    ("band", "correct"),
    ("grouped", "correct"),
    ("true_drops", "correct", ["--expect=mask_true=drop"]),
    ("true_drops", "correct"),
    ("renormalised", "correct", ["--expect=mask_true=keep"]),
    ("bias_and_logaddexp", "correct"),
    ("capped", "correct"),
    ("with_sinks", "correct"),
    ("alibi_by_key", "correct"),
    ("rope_of_halves", "correct", ["--kind=rope"]),
    ("rope_of_pairs", "correct", ["--kind=rope"]),
    ("sequence_by_sequence", "correct"),
    ("length_by_length", "correct"),
    ("one_step", "correct", ["--kind=decode"]),
    ("half_outside", "correct", ["--dtype=f16"]),
    ("single_inside", "correct"),
    ("head_by_head", "correct"),
    ("packed", "correct"),
    ("roots_on_both_sides", "correct"),
    ("by_jacobian", "correct", ["--expect=causal=top_left"]),
    ("grouped_gradients", "correct"),
    ("with_lse", "correct"),
    ("with_weights", "correct", ["--expect=mask_true=keep"]),
    ("by_logaddexp", "correct"),
    ("by_logarithm", "correct"),
    ("by_powers_of_two", "correct"),
    ("mean_key_removed", "correct"),
    ("sum_divided_last", "correct"),
]
