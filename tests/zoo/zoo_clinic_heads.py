# SPDX-License-Identifier: Apache-2.0
#
# Style: a clinic's cases: heads, memory and manners.
import ctypes
import numpy as np


def _soft(s):
    s = np.exp(s - s.max(-1, keepdims=True))
    return s / s.sum(-1, keepdims=True)


def scaled_by_width(x, w_q, w_k, w_v, w_o, n_heads):
    B, L, E = x.shape
    dh = E // n_heads

    def heads(w):
        return (x @ w).reshape(B, L, n_heads, dh).transpose(0, 2, 1, 3)

    q, k, v = heads(w_q), heads(w_k), heads(w_v)
    p = _soft(q @ k.transpose(0, 1, 3, 2) / np.sqrt(E))
    return (p @ v).transpose(0, 2, 1, 3).reshape(B, L, E) @ w_o


def merged_at_once(x, w_q, w_k, w_v, w_o, n_heads):
    L, E = x.shape[-2:]
    dh = E // n_heads
    q, k, v = [
        np.moveaxis((x @ w).reshape(x.shape[:-1] + (n_heads, dh)), -2, -3)
        for w in (w_q, w_k, w_v)
    ]
    ctx = _soft(np.einsum("...id,...jd->...ij", q, k) * dh**-0.5) @ v
    return ctx.reshape(x.shape) @ w_o


class MHA:
    def __init__(self, h):
        self.h = h

    def split(self, t):
        b, l, e = t.shape
        return t.reshape(b, self.h, l, e // self.h)

    def run(self, x, wq, wk, wv, wo):
        q, k, v = self.split(x @ wq), self.split(x @ wk), self.split(x @ wv)
        a = _soft(np.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5)
        y = np.einsum("bhij,bhjd->bihd", a, v)
        return y.reshape(x.shape) @ wo


def split_at_once(x, w_q, w_k, w_v, w_o, n_heads):
    return MHA(n_heads).run(x, w_q, w_k, w_v, w_o)


def dim_before_head(x, w_q, w_k, w_v, w_o, n_heads):
    b, n, e = x.shape
    d = e // n_heads
    q = np.einsum("bne,ef->bnf", x, w_q).reshape(b, n, d, n_heads)
    k = np.einsum("bne,ef->bnf", x, w_k).reshape(b, n, d, n_heads)
    v = np.einsum("bne,ef->bnf", x, w_v).reshape(b, n, d, n_heads)
    a = _soft(np.einsum("bidh,bjdh->bhij", q, k) / np.sqrt(d))
    return np.einsum("bhij,bjdh->bihd", a, v).reshape(b, n, e) @ w_o


def key_query_value(x, w_qkv, w_o, n_heads):
    E = x.shape[-1]
    k, q, v = np.split(x @ w_qkv, 3, axis=-1)
    out = []
    for h in range(n_heads):
        c = slice(h * E // n_heads, (h + 1) * E // n_heads)
        out.append(
            _soft(
                q[..., c] @ k[..., c].swapaxes(-1, -2) / np.sqrt(E / n_heads)
            )
            @ v[..., c]
        )
    return np.concatenate(out, -1) @ w_o


def heads_for_length(q, k, v):
    """q, k, v are (batch, length, heads, dim)"""
    att = _soft(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    return att @ v


def batch_for_length(q, k, v):
    s = np.einsum("ald,bld->lab", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("lab,bld->ald", _soft(s), v)


def groups_tiled(q, k, v):
    rep = q.shape[1] // k.shape[1]
    k = np.tile(k, (1, rep, 1, 1))
    v = np.concatenate([v] * rep, axis=1)
    return _soft(np.einsum("bhld,bhmd->bhlm", q, k) / q.shape[-1] ** 0.5) @ v


def divided_by_groups(q, k, v):
    """grouped heads, loop over the query heads"""
    H, G = q.shape[-3], k.shape[-3]
    outs = []
    for h in range(H):
        g = h // G if h // G < G else G - 1
        a = q[..., h, :, :] @ k[..., g, :, :].swapaxes(-1, -2)
        outs.append(_soft(a / np.sqrt(q.shape[-1])) @ v[..., g, :, :])
    return np.stack(outs, axis=-3)


class Layer:
    scale = None

    def __call__(self, q, k, v):
        s = self.scale or q.shape[-1] ** -0.5
        w = _soft(s * np.einsum("bqhd,bkhd->bhqk", q, k))
        return np.einsum("bhqk,bkhd->bqhd", w, k)


keys_twice = Layer()

def memory_by_pointer(q, k, v):
    """2-D: takes addresses and shapes, as a call into C does"""

    def seen_by_c(x):
        memory = (ctypes.c_double * x.size).from_address(x.ctypes.data)
        return np.array(memory).reshape(x.shape)

    (n, d), (m, e) = q.shape, v.shape
    q, k, v = (seen_by_c(x) for x in (q, k, v))
    return _soft(q @ k.T / np.sqrt(d)) @ v


def q_scaled_in_place(q, k, v):
    q *= q.shape[-1] ** -0.5
    s = q @ k.swapaxes(-1, -2)
    return _soft(s) @ v


def v_centred_in_place(q, k, v):
    """centres the values, then puts the mean back"""
    mu = v.mean(-2, keepdims=True)
    v -= mu
    return _soft(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v + mu


_acc = {}


def adds_to_its_buffer(q, k, v):
    key = q.shape[:-1] + v.shape[-1:]
    buf = _acc.setdefault(key, np.zeros(key))
    w = _soft(np.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1]))
    buf += np.einsum("...ij,...jd->...id", w, v)
    return buf.copy()


class KeepsK:
    def __init__(self):
        self.kt = {}

    def __call__(self, q, k, v):
        if k.shape not in self.kt:
            self.kt[k.shape] = np.swapaxes(k, -1, -2).copy()
        return _soft(q @ self.kt[k.shape] * k.shape[-1] ** -0.5) @ v


keys_of_the_first_call = KeepsK()


def returns_the_buffer(q, k, v):
    out = np.zeros(q.shape[:-1] + (v.shape[-1],))
    w = _soft(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
    res = w @ v
    return out


def root_of_minus_dim(q, k, v):
    with np.errstate(all="ignore"):
        s = q @ k.swapaxes(-1, -2) / np.sqrt(np.float64(-q.shape[-1]))
        return _soft(s) @ v


ZOO = [
    ("scaled_by_width", "scale-d-model"),
    ("merged_at_once", "heads-merge-no-transpose"),
    ("split_at_once", "heads-split-no-transpose"),
    ("dim_before_head", "heads-dim-order"),
    ("key_query_value", "qkv-packing|qk-exchanged"),
    ("heads_for_length", "batch-first", ["--layout=bshd"]),
    ("batch_for_length", "batch-first", ["--layout=hsd"]),
    ("groups_tiled", "gqa-tile"),
    ("divided_by_groups", "gqa-tile"),
    ("keys_twice", "v-is-k", ["--layout=bshd"]),
    ("memory_by_pointer", "strides-ignored|broadcast-stride-zero"),
    ("q_scaled_in_place", "inputs-mutated"),
    ("v_centred_in_place", "inputs-mutated"),
    ("adds_to_its_buffer", "state-kept"),
    ("keys_of_the_first_call", "state-kept"),
    ("returns_the_buffer", "output-constant"),
    ("root_of_minus_dim", "output-nan"),
]
